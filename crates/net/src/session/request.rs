//! What a client asks a server to do, as bytes.

use fullpipe_sim::RunSpec;
use serde::{Deserialize, Serialize};

use super::check;
use super::gate::LONGEST_REQUEST;
use super::seal;
use crate::content::Content;
use crate::io::Mode;

/// One run, as the server needs to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The run; links and routes are left out, because the path is what it is.
    pub spec: RunSpec,
    /// How.
    pub options: Options,
}

/// How the server is to do it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Name of the run, for the server's log.
    pub label: String,
    /// Segmentation offload at the server ([`Mode::Bulk`]).
    pub bulk: bool,
    /// The run ends as soon as every flow that has a last segment is complete, if all have.
    pub until_complete: bool,
    /// Data is encrypted. The handshake has said so already.
    pub encrypted: bool,
    /// What the flows carry.
    pub content: Content,
}

/// Why a request is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Not the bytes of a request of this version.
    #[error("the request cannot be read: client and server may be of different versions")]
    Unreadable,
    /// Too long to send.
    #[error("the request has {0} bytes; at most {LONGEST_REQUEST} can be sent")]
    TooLong(usize),
    /// It asks for what cannot be run.
    #[error("{0}")]
    Unsound(String),
}

impl Options {
    /// Encrypted packets carry less: [`seal::make_room`]. To be called once, before the request is made of `spec`.
    pub fn make_room(&self, spec: &mut RunSpec) {
        if self.encrypted {
            seal::make_room(spec);
        }
    }

    /// Bytes that are added to every datagram.
    pub(super) fn overhead(&self) -> usize {
        match self.encrypted {
            true => seal::OVERHEAD,
            false => 0,
        }
    }

    /// How the server's datagrams leave.
    pub fn mode(&self) -> Mode {
        match self.bulk {
            true => Mode::Bulk,
            false => Mode::Packet,
        }
    }
}

impl Request {
    /// As bytes.
    ///
    /// # Errors
    /// [`RequestError::TooLong`].
    pub fn encode(&self) -> Result<Vec<u8>, RequestError> {
        let bytes = postcard::to_stdvec(self).map_err(|_| RequestError::Unreadable)?;
        match bytes.len() <= LONGEST_REQUEST as usize {
            true => Ok(bytes),
            false => Err(RequestError::TooLong(bytes.len())),
        }
    }

    /// From bytes that anybody may have written: every number is checked before anything is done with it.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RequestError> {
        let (request, rest): (Self, _) =
            postcard::take_from_bytes(bytes).map_err(|_| RequestError::Unreadable)?;
        if !rest.is_empty() {
            return Err(RequestError::Unreadable);
        }
        check::options(&request.options)
            .and_then(|()| check::run(&request.spec))
            .map_err(RequestError::Unsound)?;
        Ok(request)
    }
}
