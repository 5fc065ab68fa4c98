//! Arguments of `fullpipe serve`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use fullpipe_net::session::PORT;
use fullpipe_units::{Bytes, Rate, Span};

use super::LiveFlags;
use super::parse::{quantity, time};

/// `fullpipe serve`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// Address to listen on, as `192.0.2.7`, `192.0.2.7:7000` or `[::1]:7000` [default: every
    /// address of this host, port 6220]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = listen)]
    pub listen: Option<SocketAddr>,

    /// File with the key that clients must have, readable by its owner only. The environment
    /// variable FULLPIPE_KEY may hold the key instead
    #[arg(long, value_name = "FILE", conflicts_with = "open")]
    pub key: Option<PathBuf>,

    /// Serve anyone who can reach this host, without a key
    #[arg(long)]
    pub open: bool,

    /// Refuse tests whose data is not encrypted
    #[arg(long)]
    pub require_encryption: bool,

    /// File with this server's own key pair, by which clients know it; made if it is missing
    /// [default: $XDG_STATE_HOME/fullpipe/identity, or ~/.local/state/fullpipe/identity]
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,

    /// Write a new random key and this server's identity to this file, which must not exist yet,
    /// and do nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "open", "listen", "files"])]
    pub new_key: Option<PathBuf>,

    /// Highest bit rate of a test in either direction, headers included [default: none]
    #[arg(long, value_name = "RATE", value_parser = quantity::<Rate>)]
    pub max_rate: Option<Rate>,

    /// Maximum duration of a test
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = time)]
    pub max_duration: Span,

    /// Maximum bytes of a test, headers included, both directions together; of a copy, bytes of
    /// each file, whatever the headers [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>)]
    pub max_bytes: Option<Bytes>,

    /// Maximum number of tests at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_tests: u32,

    /// Maximum number of tests at a time per client: an IPv4 address, or a /64 of IPv6
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_tests_per_peer: u32,

    /// Maximum number of flows, traffic sources and pings of a test
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_flows: u32,

    /// Maximum segments in flight of a test, all flows together; each takes about 100 bytes of
    /// memory
    #[arg(long, value_name = "SEGMENTS", default_value_t = 1 << 22, value_parser = clap::value_parser!(u64).range(16..=1 << 32))]
    pub max_window: u64,

    /// Maximum memory for the buffers of all tests together
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = quantity::<Bytes>)]
    pub max_memory: Bytes,

    /// Directory from which clients may fetch files and in which they may store files of up to
    /// `--max-bytes` each [default: no files]
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,

    /// Allow clients to replace existing files
    #[arg(long, requires = "files")]
    pub overwrite: bool,

    /// Remove partial files in DIR that nobody has resumed for this time, such as `36h` or `7d`, at
    /// the start and every hour; `never` keeps them
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = keeping)]
    pub keep_parts: Keep,

    /// Maximum bytes on the disk of all partial files in DIR together [default: half of what is
    /// free at the start]
    #[arg(long, value_name = "SIZE", requires = "files", value_parser = quantity::<Bytes>)]
    pub max_partial: Option<Bytes>,

    /// How long running tests may continue after the first Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub grace: Span,

    /// How tests are watched
    #[command(flatten)]
    pub live: LiveFlags,

    /// Format of the log on stderr
    #[arg(long, value_enum, default_value_t = LogForm::Text)]
    pub log: LogForm,
}

/// How long an unfinished file is kept; `None`: for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep(pub Option<Span>);

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// One sentence per event
    Text,
    /// One object per event and line
    Json,
}

/// Long help of the command.
pub const ABOUT: &str = "\
Serve tests to other hosts.

This host becomes the far side of runs that clients request (`fullpipe send`, `fullpipe ping`, \
`fullpipe run --ground udp --peer`): it receives, sends and answers probes. A firewall has to open \
one UDP port. A client must first prove that it receives at its address and has the key; until then \
the server keeps no state for it and never sends it more bytes than it sent. Tests are limited; a \
client is told which limit it meets.

The first Ctrl-C or SIGTERM lets running tests finish within the grace time and exits with 0, the \
second exits at once.";

const EXAMPLES: &str = "\
Examples:
  fullpipe serve --new-key ~/fullpipe.key       make a key; copy the file to the clients
  fullpipe serve --key ~/fullpipe.key
  fullpipe serve --key ~/fullpipe.key --listen 192.0.2.7:7000 --max-rate 5Gbit/s --max-duration 60s
  fullpipe serve --listen 127.0.0.1             this host only: no key needed";

fn listen(text: &str) -> Result<SocketAddr, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    text.parse()
        .or_else(|_| bare.parse().map(|ip: IpAddr| SocketAddr::new(ip, PORT)))
        .map_err(|_| {
            let expected =
                "expected an address of this host, as `192.0.2.7`, `192.0.2.7:7000` or `[::1]:7000`";
            match text.parse::<u16>() {
                Ok(port) => format!("{expected}\n\n  hint: write `'[::]:{port}'`: every address"),
                Err(_) => expected.to_owned(),
            }
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
        assert!(at("5201").unwrap_err().contains("write `'[::]:5201'`"));
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
