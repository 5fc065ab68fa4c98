//! `fullpipe serve`.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fullpipe_net::content::Allowed;
use fullpipe_net::file::{Directory, Room, descriptors};
use fullpipe_net::io::Stop;
use fullpipe_net::session::board::Board;
use fullpipe_net::session::event::Event;
use fullpipe_net::session::key::VARIABLE;
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::server::{Config, Server};
use fullpipe_net::session::{Identity, Key, KeyError, PORT};
use fullpipe_realtime::log::Log;

use crate::args::{LogForm, Serve};
use crate::exit::{Exit, Failure};
use crate::live::prometheus::server::{self, Tally};
use crate::live::{dashboard, prometheus};
use crate::{output, state};

/// Runs the command.
pub fn serve(args: &Serve) -> Result<Exit, Failure> {
    if let Some(path) = &args.new_key {
        let server = identity(args)?.public();
        let key = Key::create(path, &server).map_err(|e| key_failure(&e))?;
        output::say(&format!(
            "wrote {} (key {}, server {server})",
            path.display(),
            key.fingerprint()
        ));
        return Ok(Exit::Ok);
    }
    let everywhere = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT);
    let listen = args.listen.unwrap_or(everywhere);
    let key = find_key(args, listen)?;
    let identity = identity(args)?;
    let public = identity.public();
    if let Some(meant) = key.server().filter(|meant| *meant != public) {
        let message = format!("the key is for the server {meant}, and this one is {public}");
        return Err(Failure::new(Exit::Usage, message)
            .hint("give the file of that server's key pair with `--identity FILE`")
            .hint("or make a key for this server: `fullpipe serve --new-key FILE`"));
    }
    let config = Config {
        listen,
        key,
        limits: limits(args),
        grace: args.grace,
    };
    let allowed = allowed(args)?;
    if args.live.dashboard {
        dashboard::check()?;
    }
    let (tally, board) = (Arc::new(Tally::default()), Board::default());
    let log = Arc::new(Mutex::new(Log::new(output::say)));
    let server = bind(config, args, &tally, &log)?
        .with_board(board.clone())
        .with_identity(identity)
        .with_files(allowed)
        .only_encrypted(args.require_encryption);
    let stop = Stop::new().map_err(|e| Failure::io("cannot wait for signals", &e))?;
    stop_on_signals(stop.clone())?;
    if let Some(address) = args.live.prometheus {
        let (tally, board) = (Arc::clone(&tally), board.clone());
        prometheus::serve(address, move || server::page(&tally, &board))?;
    }
    let title = format!("serving tests on UDP {}", server.address());
    let done = AtomicBool::new(false);
    let served = std::thread::scope(|scope| {
        let dashboard = args.live.dashboard.then(|| {
            let stop = || interrupt(&stop);
            let (tally, board, done) = (&tally, &board, &done);
            scope.spawn(move || dashboard::of_server(title, tally, board, &stop, done))
        });
        let served = server.run(&stop);
        done.store(true, Ordering::Release);
        dashboard::closed(dashboard).map(|()| served)
    });
    // Of a log that nobody reads the end is lost.
    log.lock().unwrap_or_else(PoisonError::into_inner).end();
    match served? {
        Ok(_) => Ok(Exit::Ok),
        Err(e) => Err(Failure::io("cannot go on listening", &e)),
    }
}

/// This server's key pair: of its file, or a new one.
fn identity(args: &Serve) -> Result<Identity, Failure> {
    if let Some(path) = &args.identity {
        return Identity::at(path).map_err(|e| key_failure(&e));
    }
    let why = match state::file("identity").map(|path| Identity::at(&path)) {
        Some(Ok(identity)) => return Ok(identity),
        Some(Err(error @ KeyError::Unwritable { .. })) => error.to_string(),
        Some(Err(error @ KeyError::Unreadable { .. })) => error.to_string(),
        Some(Err(error)) => return Err(key_failure(&error)),
        None => "there is no home directory to keep an identity in".to_owned(),
    };
    output::warning(&format!(
        "{why}; clients will take this server for another one after the next start"
    ));
    output::hint("name a file that it may write: `--identity FILE`");
    Identity::generate().map_err(|e| key_failure(&e))
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
    let open = descriptors::as_many_as_allowed();
    let failed = |e| Failure::io(format!("cannot serve files of {}", dir.display()), &e);
    let open = descriptors::of_directories(open, args.max_tests);
    let files = Directory::open(dir).map_err(failed)?;
    let files = Arc::new(files.with_most_open(open));
    let room = match args.max_partial {
        Some(most) => Room::new(Arc::clone(&files), most.0),
        None => Room::half(Arc::clone(&files)).map_err(failed)?,
    };
    Ok(Allowed {
        files: Some(files),
        room,
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
        return Key::from_file(path).map_err(|e| match path.exists() {
            true => key_failure(&e),
            false => key_failure(&e).hint(format!(
                "`fullpipe serve --new-key {}` makes one",
                path.display()
            )),
        });
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
        KeyError::Malformed { .. } | KeyError::NoFile { .. } | KeyError::NoIdentity { .. } => {
            Exit::Usage
        }
        _ => Exit::Environment,
    };
    let failure = Failure::new(exit, error.to_string());
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Sessions wait for nobody who reads the log.
fn bind(
    config: Config,
    args: &Serve,
    tally: &Arc<Tally>,
    log: &Arc<Mutex<Log>>,
) -> Result<Server, Failure> {
    let (form, tally, log) = (args.log, Arc::clone(tally), Arc::clone(log));
    let log = Arc::new(move |event: &Event| {
        tally.note(event);
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.say(&line(form, event));
    });
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

/// The first lets tests finish, the second ends the program.
fn interrupt(stop: &Stop) {
    static SIGNALLED: AtomicBool = AtomicBool::new(false);
    if SIGNALLED.swap(true, Ordering::Relaxed) {
        dashboard::leave();
        std::process::exit(Exit::Interrupted as i32);
    }
    stop.set();
}

fn stop_on_signals(stop: Stop) -> Result<(), Failure> {
    let listening = ctrlc::set_handler(move || interrupt(&stop));
    listening
        .map_err(|e| Failure::new(Exit::Environment, format!("cannot listen for signals: {e}")))
}
