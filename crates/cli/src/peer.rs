//! Another host, as the command line names it: its address, its key, its errors.

use std::error::Error;
use std::path::Path;

use fullpipe_grounds::{Way, WayError};
use fullpipe_net::session::Key;
use fullpipe_net::session::client::SessionError;
use fullpipe_net::session::key::VARIABLE;
use fullpipe_net::session::known::KnownServers;

use crate::args::PeerFlags;
use crate::commands::send::target::Server;
use crate::exit::{Exit, Failure};
use crate::{ground, output, state};

/// Finds the server and reads the key.
///
/// # Errors
/// The name means nothing, the key cannot be used, the processor is not there.
pub fn way(server: &Server, flags: &PeerFlags) -> Result<Way, Failure> {
    let way = Way::new(&server.host, server.port, ground::options(flags))?;
    if way.lacks_segmentation() {
        output::warning(
            "this system has no segmentation offload for UDP: datagrams leave one by one",
        );
    }
    let way = way
        .with_key(key(flags.key.as_deref())?, flags.encrypt)
        .with_server(flags.server_id);
    let known = flags.known_servers.clone();
    let known = known.or_else(|| state::file("known-servers"));
    Ok(way.with_known(known.map(KnownServers::new), output::say))
}

/// Refuses settings of a path, or of a host's interface, that is made where the path is ours and
/// not between two hosts. `of_path`: keys of `[path]` that say something there.
///
/// # Errors
/// There is one; the message names it.
pub fn honoured(set: &[(String, String)], of_path: &[&str], host: &str) -> Result<(), Failure> {
    let made = |key: &str| {
        let parts: Vec<&str> = key.split('.').collect();
        match parts.as_slice() {
            ["path", own, ..] => !of_path.contains(own),
            ["link" | "route", ..] => true,
            ["flow" | "traffic", _, own, ..] | [own] => OF_A_MADE_PATH.contains(own),
            _ => false,
        }
    };
    let Some((key, _)) = set.iter().find(|(key, _)| made(key)) else {
        return Ok(());
    };
    let message = format!("--set {key}: the path is the network to {host}, as it is");
    let known: Vec<String> = of_path.iter().map(|key| format!("path.{key}")).collect();
    Err(Failure::new(Exit::Usage, message)
        .hint(format!("of a path there are {}", known.join(", ")))
        .hint("`fullpipe emulate` makes one between two programs, `run --ground udp` for a run"))
}

/// Keys of a flow that become links, or are about them: delay and the interface of its host.
const OF_A_MADE_PATH: [&str; 6] = [
    "rtt",
    "rtt_spread",
    "nic_rate",
    "txqueuelen",
    "sendstall",
    "host",
];

/// The shared key: of a file, of the environment, or none.
fn key(file: Option<&Path>) -> Result<Key, Failure> {
    let key = match (file, std::env::var(VARIABLE)) {
        (Some(path), _) => Key::from_file(path),
        (None, Ok(text)) => Key::from_text(&text, &format!("variable {VARIABLE}")),
        (None, Err(_)) => Ok(Key::open()),
    };
    key.map_err(|e| failed(Exit::Environment, &e, e.hint()))
}

impl From<WayError> for Failure {
    fn from(error: WayError) -> Self {
        failed(Exit::Environment, &error, error.hint())
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let exit = match &error {
            SessionError::Interrupted => Exit::Interrupted,
            _ => Exit::Environment,
        };
        failed(exit, &error, error.hint())
    }
}

fn failed(exit: Exit, error: &dyn Error, hint: Option<impl Into<String>>) -> Failure {
    Failure {
        exit,
        message: error.to_string(),
        hints: hint.map(Into::into).into_iter().collect(),
    }
}
