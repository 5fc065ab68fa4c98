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
