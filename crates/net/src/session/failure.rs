//! Why a session with a server brings no result.

use std::io;
use std::net::SocketAddr;

use fullpipe_units::Span;
use rustix::io::Errno;

use super::control::EndReason;
use super::handshake::HandshakeError;
use super::known::KnownError;
use super::pull::PullError;
use super::request::RequestError;
use super::{Reason, ServerId};
use crate::endpoint::EndpointError;

/// A session that came to no result, by its cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The handshake.
    #[error("{peer}: {error}")]
    Handshake {
        /// The server.
        peer: SocketAddr,
        /// Outcome of the handshake.
        error: HandshakeError,
    },
    /// The server is not the one that the user has met under this name.
    #[error("another server answers as `{name}`: its identity is {found}, and was {met}")]
    Changed {
        /// Host and port as the user names them.
        name: String,
        /// Identity in the COOKIE that came.
        found: ServerId,
        /// Identity in the file of known servers.
        met: ServerId,
        /// File and line of what is known.
        known: String,
    },
    /// The file of known servers.
    #[error(transparent)]
    Known(#[from] KnownError),
    /// The request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The server will not run it.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// Nothing is heard of the server any more.
    #[error("the server has not been heard of for 10 seconds")]
    Vanished,
    /// The server is there, and does not come to the point.
    #[error("the server answers, but not within {0}, to {1}")]
    Stuck(Span, &'static str),
    /// The server is there, and its flows stand still.
    #[error("the server answers, but the flows have stood still for 2 minutes")]
    Stalled,
    /// The server ended the run before its time, and said why.
    #[error("{}", .0.text())]
    Ended(EndReason),
    /// The result of the far side.
    #[error(transparent)]
    Result(#[from] PullError),
    /// The far side sent what is no result, or not one of this run.
    #[error("the server's result does not fit: {0}")]
    Misfit(String),
    /// There is no route.
    #[error("this host knows no way to {peer}: {error}")]
    NoWay {
        /// The server.
        peer: SocketAddr,
        /// The operating system's error.
        error: io::Error,
    },
    /// The far endpoint failed.
    #[error("at the server: {0}")]
    Far(String),
    /// The near endpoint failed.
    #[error(transparent)]
    Near(#[from] EndpointError),
    /// Something beside the run that this host was to do.
    #[error("{0}")]
    Here(String),
    /// The operating system.
    #[error("socket: {0}")]
    Io(#[from] io::Error),
    /// Stopped from outside.
    #[error("interrupted")]
    Interrupted,
}

impl SessionError {
    /// The server, or the way to it, is gone, or nobody waits for it any more: what this side has
    /// measured is still good.
    pub(super) fn is_loss(&self) -> bool {
        matches!(
            self,
            Self::Vanished | Self::Stuck(..) | Self::Result(_) | Self::Io(_) | Self::Interrupted
        )
    }

    /// The server does not answer, is about to stop, or there is no way to it at the moment: later
    /// there may be.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Vanished | Self::Stuck(..) | Self::NoWay { .. } | Self::Io(_) => true,
            Self::Ended(why) => matches!(why, EndReason::ShuttingDown | EndReason::Vanished),
            Self::Handshake { error, .. } => {
                error.is_busy()
                    || matches!(
                        error,
                        HandshakeError::NoAnswer | HandshakeError::Refused(Reason::Stopping)
                    )
            }
            _ => false,
        }
    }

    /// The remedy, in one sentence, if there is one.
    pub fn hint(&self) -> Option<String> {
        if let Self::Changed { known, .. } = self {
            return Some(format!(
                "if the server was set up anew, remove {known}; if not, somebody answers in its stead, and should have neither key nor data"
            ));
        }
        self.fixed_hint().map(str::to_owned)
    }

    fn fixed_hint(&self) -> Option<&'static str> {
        match self {
            Self::Here(_) => None,
            Self::Handshake { error, .. } => match error {
                HandshakeError::NoAnswer => Some(
                    "is `fullpipe serve` running there, and does the firewall let UDP through to its port?",
                ),
                HandshakeError::Refused(Reason::Authentication) | HandshakeError::Impostor => Some(
                    "both sides need the same key: here it comes with `--key FILE`, or in FULLPIPE_KEY; a server with `--open` takes none",
                ),
                busy if busy.is_busy() => Some("try again later"),
                HandshakeError::Refused(Reason::Unencrypted) => Some("say `--encrypt`"),
                HandshakeError::OtherVersion(_) | HandshakeError::Refused(Reason::Version(_)) => {
                    Some("use the same release of fullpipe on both sides")
                }
                HandshakeError::OtherServer { .. } => Some(
                    "if the server was set up anew, ask its owner for its identity (`fullpipe serve` prints it) and put that in the place of the old one; if not, somebody answers in its stead",
                ),
                _ => None,
            },
            Self::Vanished => Some(
                "is `fullpipe serve` still running there, and does the network carry packets both ways?",
            ),
            Self::Stalled => {
                Some("is its disk busy, or does something on the way drop all but short packets?")
            }
            Self::NoWay { .. } => Some("look at the links and routes of this host"),
            Self::Io(e) if Errno::from_io_error(e) == Some(Errno::MSGSIZE) => Some(
                "an interface on the way takes no packets of 1228 bytes (IPv6: 1248), which the handshake needs: give it a larger MTU",
            ),
            Self::Near(EndpointError::Longer { .. }) => Some("or give the interface a larger MTU"),
            Self::Near(_) => Some("the fault is at this host: mend it and try again"),
            _ => None,
        }
    }
}

impl From<SessionError> for fullpipe_run::GroundError {
    fn from(error: SessionError) -> Self {
        let (what, hint) = (error.to_string(), error.hint());
        match error {
            SessionError::Interrupted => Self::Interrupted,
            SessionError::Refused(_) => Self::Environment {
                what,
                hint: LESS.to_owned(),
            },
            SessionError::Request(_) => Self::Unable {
                key: None,
                what,
                hint: LESS.to_owned(),
            },
            SessionError::Here(_) => Self::Environment {
                what,
                hint: "choose another place, or make room there".to_owned(),
            },
            _ => Self::Environment {
                what,
                hint: hint.unwrap_or_else(|| AGAIN.to_owned()),
            },
        }
    }
}

const LESS: &str = "ask for less, or change the limits of `fullpipe serve`";
const AGAIN: &str = "look at what `fullpipe serve` says there, and try again";

#[cfg(test)]
mod tests {
    use fullpipe_run::GroundError;

    use super::*;

    #[test]
    fn a_limit_of_the_server_is_no_fault_of_the_request() {
        let refused = SessionError::Refused("too long (--max-duration)".to_owned());
        let refused = GroundError::from(refused);
        assert!(matches!(refused, GroundError::Environment { .. }));
        let full = SessionError::Handshake {
            peer: ([192, 0, 2, 1], 9).into(),
            error: HandshakeError::Refused(Reason::BusyForPeer(1)),
        };
        assert_eq!(full.hint().as_deref(), Some("try again later"));
    }

    #[test]
    fn an_interface_that_takes_no_handshake_has_a_remedy() {
        let hint = |errno: Errno| SessionError::Io(errno.into()).hint();
        assert!(hint(Errno::MSGSIZE).is_some_and(|hint| hint.contains("larger MTU")));
        assert_eq!(hint(Errno::NOBUFS), None);
    }
}
