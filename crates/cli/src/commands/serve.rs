//! `fullpipe serve`.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args as ClapArgs, ValueEnum};
use fullpipe_net::content::Allowed;
use fullpipe_net::file::Directory;
use fullpipe_net::io::Stop;
use fullpipe_net::session::event::Event;
use fullpipe_net::session::key::VARIABLE;
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::server::{Config, Server};
use fullpipe_net::session::{Key, KeyError, PORT};
use fullpipe_units::{Bytes, Rate, Span};

use crate::exit::{Exit, Failure};
use crate::output;

/// `fullpipe serve`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// Address to listen on, as `192.0.2.7`, `192.0.2.7:7000` or `[::1]:7000` [default: every
    /// address of this host, port 6220]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = listen)]
    pub listen: Option<SocketAddr>,

    /// File with the key that clients must have; nobody but its owner may be able to read it.
    /// FULLPIPE_KEY in the environment may hold the key instead
    #[arg(long, value_name = "FILE", conflicts_with = "open")]
    pub key: Option<PathBuf>,

    /// Serve anybody who can reach this host, without a key
    #[arg(long)]
    pub open: bool,

    /// Refuse tests whose data is not encrypted; needs a key
    #[arg(long, conflicts_with = "open")]
    pub require_encryption: bool,

    /// Write a new random key to this file, which must not exist yet, and do nothing else
    #[arg(long, value_name = "FILE", exclusive = true)]
    pub new_key: Option<PathBuf>,

    /// Highest bit rate of a test in either direction, headers included [default: none]
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<Rate>,

    /// Longest test
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub max_duration: Span,

    /// Most bytes of a test, both directions together [default: any number]
    #[arg(long, value_name = "SIZE")]
    pub max_bytes: Option<Bytes>,

    /// Most tests at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_tests: u32,

    /// Most tests at a time for one client: an IPv4 address, or a /64 of IPv6
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_tests_per_peer: u32,

    /// Most flows, sources and probes of a test
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_flows: u32,

    /// Most segments in flight of a test, all flows together; each takes about 100 bytes of memory
    #[arg(long, value_name = "SEGMENTS", default_value_t = 1 << 22, value_parser = clap::value_parser!(u64).range(16..=1 << 32))]
    pub max_window: u64,

    /// Most memory that the buffers of all tests together may grow to
    #[arg(long, value_name = "SIZE", default_value = "1GB")]
    pub max_memory: Bytes,

    /// Directory whose files clients may fetch, and into which they may put files; `--max-bytes`
    /// bounds each [default: no files]
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,

    /// Clients may replace files that are there, if they ask for it
    #[arg(long, requires = "files")]
    pub overwrite: bool,

    /// Remove unfinished files of DIR that nobody has gone on with for this time, such as
    /// `36h` or `7d`, when serving starts and every hour; `never` keeps them
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = keeping)]
    pub keep_parts: Keep,

    /// How long tests that run may go on after the first Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub grace: Span,

    /// Form of the log on stderr
    #[arg(long, value_enum, default_value_t = LogForm::Text)]
    pub log: LogForm,
}

/// How long an unfinished file is kept; `None`: for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep(pub Option<Span>);

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// A sentence per event
    Text,
    /// An object per event, one per line
    Json,
}

/// Long help of the command.
pub const ABOUT: &str = "\
Serve tests to other hosts.

Clients (`fullpipe send`, `fullpipe ping`, `fullpipe run --ground udp --peer`) ask for a run; this host is the far side of it: it \
receives, or sends, and answers probes. One UDP port is all that a firewall has to let through. A client is believed only \
after it has shown that it receives what is sent to its address and that it has the key; before that nothing is remembered of it, and \
it never gets more bytes than it sent. What a test may ask for is limited; a client is told which limit it meets.

The first Ctrl-C or SIGTERM lets tests that run finish within the grace time and exits with 0, the second exits at once.";

const EXAMPLES: &str = "\
Examples:
  fullpipe serve --new-key ~/fullpipe.key       make a key; copy the file to the clients
  fullpipe serve --key ~/fullpipe.key
  fullpipe serve --key ~/fullpipe.key --listen 192.0.2.7:7000 --max-rate 5Gbit/s --max-duration 60s
  fullpipe serve --listen 127.0.0.1             this host only: no key needed";

/// Runs the command.
pub fn serve(args: &Serve) -> Result<Exit, Failure> {
    if let Some(path) = &args.new_key {
        let key = Key::create(path).map_err(|e| key_failure(&e))?;
        output::say(&format!(
            "wrote {} (key {})",
            path.display(),
            key.fingerprint()
        ));
        return Ok(Exit::Ok);
    }
    let everywhere = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT);
    let listen = args.listen.unwrap_or(everywhere);
    let key = find_key(args, listen)?;
    if args.require_encryption && key.is_open() {
        let message = "`--require-encryption` needs a key: what everybody can derive hides nothing";
        return Err(Failure::new(Exit::Usage, message)
            .hint("make a key with `fullpipe serve --new-key FILE`, then give `--key FILE`"));
    }
    let config = Config {
        listen,
        key,
        limits: limits(args),
        grace: args.grace,
    };
    let allowed = allowed(args)?;
    let server = bind(config, args)?
        .with_files(allowed)
        .only_encrypted(args.require_encryption);
    let stop = Stop::new().map_err(|e| Failure::io("cannot wait for signals", &e))?;
    stop_on_signals(stop.clone())?;
    match server.run(&stop) {
        Ok(_) => Ok(Exit::Ok),
        Err(e) => Err(Failure::io("cannot go on listening", &e)),
    }
}

fn limits(args: &Serve) -> Limits {
    Limits {
        max_rate: args.max_rate,
        max_duration: args.max_duration,
        max_bytes: args.max_bytes,
        max_tests: args.max_tests,
        max_tests_per_peer: args.max_tests_per_peer,
        max_flows: args.max_flows,
        max_window: args.max_window,
        max_memory: args.max_memory,
    }
}

fn allowed(args: &Serve) -> Result<Allowed, Failure> {
    let Some(dir) = &args.files else {
        return Ok(Allowed::default());
    };
    let open = Directory::open(dir)
        .map_err(|e| Failure::io(format!("cannot serve files of {}", dir.display()), &e))?;
    Ok(Allowed {
        files: Some(Arc::new(open)),
        overwrite: args.overwrite,
        most: args.max_bytes.map(|most| most.0),
        keep_parts: args
            .keep_parts
            .0
            .map(|age| Duration::from_nanos(age.as_nanos())),
        ..Allowed::default()
    })
}

/// Of the file, of the environment, or none where that is safe or wanted.
fn find_key(args: &Serve, listen: SocketAddr) -> Result<Key, Failure> {
    if let Some(path) = &args.key {
        return Key::from_file(path).map_err(|e| key_failure(&e));
    }
    match Key::from_environment() {
        Some(_) if args.open => {
            let message = format!("`--open` serves anybody, but {VARIABLE} holds a key");
            return Err(Failure::new(Exit::Usage, message)
                .hint(format!("leave out `--open`, or unset {VARIABLE}")));
        }
        Some(key) => return key.map_err(|e| key_failure(&e)),
        None => {}
    }
    if args.open || listen.ip().to_canonical().is_loopback() {
        return Ok(Key::open());
    }
    let message = "without a key anybody who can reach this host could use it";
    Err(Failure::new(Exit::Usage, message)
        .hint("make a key with `fullpipe serve --new-key FILE`, then give `--key FILE`")
        .hint("serve this host only: `--listen 127.0.0.1`")
        .hint("serve anybody all the same: `--open`"))
}

fn key_failure(error: &KeyError) -> Failure {
    let exit = match error {
        KeyError::Malformed { .. } | KeyError::NoFile { .. } => Exit::Usage,
        _ => Exit::Environment,
    };
    let failure = Failure::new(exit, error.to_string());
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn bind(config: Config, args: &Serve) -> Result<Server, Failure> {
    let form = args.log;
    let log = Arc::new(move |event: &Event| output::say(&line(form, event)));
    let listen = config.listen;
    let mut bound = Server::bind(config.clone(), log.clone());
    if args.listen.is_none() && bound.as_ref().is_err_and(|e| lacks_ipv6(e.raw_os_error())) {
        let listen = SocketAddr::new([0, 0, 0, 0].into(), listen.port());
        bound = Server::bind(Config { listen, ..config }, log);
    }
    bound.map_err(|e| {
        let failure = Failure::io(format!("cannot listen on UDP {listen}"), &e);
        match e.kind() {
            ErrorKind::AddrInUse => failure
                .hint("another program has this port: choose one with `--listen ADDRESS:PORT`"),
            ErrorKind::PermissionDenied => failure.hint("ports below 1024 need privilege"),
            _ => failure,
        }
    })
}

/// `EAFNOSUPPORT` or `EADDRNOTAVAIL`: a host without IPv6.
fn lacks_ipv6(error: Option<i32>) -> bool {
    matches!(error, Some(97 | 99))
}

fn line(form: LogForm, event: &Event) -> String {
    if form == LogForm::Text {
        return event.to_string();
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = since.map_or(0.0, |since| since.as_millis() as f64 / 1e3);
    let mut object = serde_json::to_value(event).unwrap_or_default();
    object["time"] = time.into();
    object.to_string()
}

/// The first signal lets tests finish, the second ends the program.
fn stop_on_signals(stop: Stop) -> Result<(), Failure> {
    static SIGNALLED: AtomicBool = AtomicBool::new(false);
    let listening = ctrlc::set_handler(move || {
        if SIGNALLED.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted as i32);
        }
        stop.set();
    });
    listening
        .map_err(|e| Failure::new(Exit::Environment, format!("cannot listen for signals: {e}")))
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    text.parse()
        .or_else(|_| bare.parse().map(|ip: IpAddr| SocketAddr::new(ip, PORT)))
        .map_err(|_| {
            "expected an address of this host, as `192.0.2.7`, `192.0.2.7:7000` or `[::1]:7000`"
                .to_owned()
        })
}

/// A time that may be in days, or `never`.
fn keeping(text: &str) -> Result<Keep, String> {
    if text == "never" {
        return Ok(Keep(None));
    }
    let span = match text.strip_suffix('d').map(str::parse::<f64>) {
        Some(Ok(days)) if (0.0..=MOST_DAYS).contains(&days) => Span::from_secs_f64(days * 86_400.0),
        Some(_) => return Err("expected a number of days up to 10000, as `7d`".to_owned()),
        None => text.parse().map_err(|e| format!("{e}"))?,
    };
    if span < LEAST_KEPT {
        // A client that was interrupted should be able to come back.
        return Err(format!("at least {LEAST_KEPT}"));
    }
    Ok(Keep(Some(span)))
}

const MOST_DAYS: f64 = 10_000.0;
const LEAST_KEPT: Span = Span::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_leave_out_the_port() {
        let at = |text| listen(text).map(|at| at.to_string());
        assert_eq!(at("192.0.2.7").unwrap(), "192.0.2.7:6220");
        assert_eq!(at("192.0.2.7:7000").unwrap(), "192.0.2.7:7000");
        assert_eq!(at("::1").unwrap(), "[::1]:6220");
        assert_eq!(at("[::1]").unwrap(), "[::1]:6220");
        assert_eq!(at("[::1]:7000").unwrap(), "[::1]:7000");
        assert!(at("host.example").is_err());
    }

    #[test]
    fn parts_are_kept_for_days_or_for_ever() {
        let kept = |text| keeping(text).map(|keep| keep.0.map(|span| span.as_secs_f64()));
        assert_eq!(kept("7d"), Ok(Some(604_800.0)));
        assert_eq!(kept("0.5d"), Ok(Some(43_200.0)));
        assert_eq!(kept("36h"), Ok(Some(129_600.0)));
        assert_eq!(kept("never"), Ok(None));
        for text in ["", "d", "-1d", "1e99d", "NaNd", "1s", "0d", "soon"] {
            assert!(kept(text).is_err(), "{text}");
        }
    }
}
