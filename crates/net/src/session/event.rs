//! What a server tells whoever runs it: one line, or one object, per event.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use fullpipe_units::{Bytes, Rate, Span};
use serde::Serialize;

use super::control::EndReason;
use super::limits::Limits;
use super::message::Reason;
use crate::shown::Address;

/// Something that happened to a server. Tests are called by a number of their own: what names a
/// session on the wire stays secret.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The socket is bound.
    Listening {
        /// Local address of the socket.
        address: SocketAddr,
        /// Of the key; `None`: open to anybody.
        key: Option<String>,
        /// Public key of the server, which clients remember.
        identity: String,
        /// Limits in force.
        limits: Limits,
    },
    /// A client with the key has opened a session.
    Opened {
        /// Number of the test.
        test: u64,
        /// The client.
        peer: Address,
    },
    /// A client with the key was turned away.
    Refused {
        /// The client.
        peer: Address,
        /// Why, in words.
        reason: String,
    },
    /// What a client asked for was granted.
    Granted {
        /// Number of the test.
        test: u64,
        /// The client.
        peer: Address,
        /// Label that the client chose for the test.
        label: String,
        /// Flows, sources and probes.
        flows: usize,
        /// Planned length, seconds.
        seconds: f64,
        /// Departures from the request, one sentence each.
        notes: Vec<String>,
    },
    /// What a client asked for was not granted.
    Denied {
        /// Number of the test.
        test: u64,
        /// The client.
        peer: Address,
        /// Reason for the refusal, one sentence.
        reason: String,
    },
    /// A test has ended.
    Finished {
        /// Number of the test.
        test: u64,
        /// The client.
        peer: Address,
        /// Why, in words.
        why: String,
        /// Duration of the run, seconds.
        seconds: f64,
        /// Bytes that came, headers of IP and UDP included.
        received: u64,
        /// Bytes that left.
        sent: u64,
    },
    /// A session that only asked something has ended.
    Closed {
        /// Number of the test.
        test: u64,
        /// The client.
        peer: Address,
    },
    /// Files of a client have their names here.
    Stored {
        /// Number of the test.
        test: u64,
        /// The client.
        peer: Address,
        /// Name of the file that was stored first.
        name: String,
        /// Number of files that were stored.
        files: u64,
        /// Bytes of them all.
        bytes: u64,
    },
    /// A session ended before its time.
    Lost {
        /// Number of the test.
        test: u64,
        /// The client.
        peer: Address,
        /// The error that ended it.
        what: String,
    },
    /// A client has another address or port, and has proven it.
    Moved {
        /// Number of the test.
        test: u64,
        /// The client, until then.
        from: Address,
        /// The client, once it had sent back the challenge.
        to: Address,
    },
    /// Datagrams that led to nothing, since the last event of this kind.
    Turned {
        /// Not of a handshake.
        garbage: u64,
        /// Handshakes with another key, or without one.
        wrong_key: u64,
        /// Handshakes that were used before.
        replayed: u64,
        /// Handshakes with an old or wrong cookie.
        bad_cookie: u64,
        /// Handshakes of another version of the protocol.
        other_version: u64,
        /// Refusals that had no line of their own.
        refused: u64,
        /// Where the last handshake with another key came from.
        last_wrong_key: Option<Address>,
    },
    /// Unfinished files that nobody went on with were removed, or ought to have been.
    Removed {
        /// Number of unfinished files removed.
        parts: u64,
        /// Bytes that they took on the disk.
        bytes: u64,
        /// How many more could not be removed.
        failed: u64,
    },
    /// It takes no new tests and waits for those that run.
    Stopping {
        /// Tests still running.
        tests: usize,
    },
    /// The server has shut down.
    Stopped {
        /// Tests in all.
        tests: u64,
    },
}

impl Event {
    /// `error`: what is the matter with this host, if that is the reason.
    pub(super) fn refused(peer: SocketAddr, reason: Reason, error: Option<&io::Error>) -> Self {
        let reason = match error {
            Some(error) => format!("no socket or thread for its test: {error}"),
            None => reason.to_string(),
        };
        let peer = peer.into();
        Self::Refused { peer, reason }
    }

    pub(super) fn finished(
        test: u64,
        peer: SocketAddr,
        why: EndReason,
        lasted: Span,
        (received, sent): (u64, u64),
    ) -> Self {
        Self::Finished {
            test,
            peer: peer.into(),
            why: why.text().to_owned(),
            seconds: lasted.as_secs_f64(),
            received,
            sent,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening {
                address,
                key: Some(key),
                identity,
                ..
            } => write!(
                f,
                "listening on UDP {address}, key {key}, identity {identity}"
            ),
            Self::Listening {
                address,
                key: None,
                identity,
                ..
            } => write!(
                f,
                "listening on UDP {address}, open to anybody who can reach it, identity {identity}"
            ),
            Self::Opened { test, peer } => write!(f, "test {test}: opened by {peer}"),
            Self::Refused { peer, reason } => write!(f, "refused {peer}: {reason}"),
            Self::Granted {
                test,
                label,
                flows,
                seconds,
                notes,
                ..
            } => {
                write!(f, "test {test}: granted")?;
                if !label.is_empty() {
                    write!(f, " `{label}`")?;
                }
                let plural = if *flows == 1 { "" } else { "s" };
                write!(f, ", {flows} flow{plural}, at most {seconds} s")?;
                notes.iter().try_for_each(|note| write!(f, "; {note}"))
            }
            Self::Denied { test, reason, .. } => write!(f, "test {test}: refused: {reason}"),
            Self::Finished {
                test,
                why,
                seconds,
                received,
                sent,
                ..
            } => write!(
                f,
                "test {test}: {why} after {seconds:.1} s, received {}, sent {}",
                Amount(*received, *seconds),
                Amount(*sent, *seconds)
            ),
            Self::Closed { test, .. } => write!(f, "test {test}: closed by the client"),
            Self::Stored {
                test,
                name,
                files: 1,
                bytes,
                ..
            } => write!(f, "test {test}: stored `{name}` ({})", Bytes(short(*bytes))),
            Self::Stored {
                test,
                name,
                files,
                bytes,
                ..
            } => write!(
                f,
                "test {test}: stored {files} files ({}), `{name}` first",
                Bytes(short(*bytes))
            ),
            Self::Moved { test, from, to } => write!(f, "test {test}: {from} is {to} now"),
            Self::Lost { test, what, .. } => write!(f, "test {test}: {what}"),
            Self::Turned {
                garbage,
                wrong_key,
                replayed,
                bad_cookie,
                other_version,
                refused,
                last_wrong_key,
            } => {
                let counts = [
                    (*wrong_key, "handshakes with another key"),
                    (*replayed, "used handshakes"),
                    (*bad_cookie, "old or wrong cookies"),
                    (*other_version, "handshakes of another version of fullpipe"),
                    (*refused, "more refusals"),
                    (*garbage, "datagrams of no handshake"),
                ];
                let seen = counts.iter().filter(|(n, _)| *n > 0);
                let seen: Vec<String> = seen.map(|(n, what)| format!("{n} {what}")).collect();
                write!(f, "turned away: {}", seen.join(", "))?;
                match last_wrong_key {
                    Some(peer) => write!(f, " (last key from {peer})"),
                    None => Ok(()),
                }
            }
            Self::Removed {
                parts,
                bytes,
                failed,
            } => {
                let bytes = Bytes(short(*bytes));
                let plural = if *parts == 1 { "" } else { "s" };
                write!(
                    f,
                    "removed {parts} abandoned unfinished file{plural} ({bytes})"
                )?;
                match failed {
                    0 => Ok(()),
                    _ => write!(f, "; {failed} more could not be removed"),
                }
            }
            Self::Stopping { tests: 0 } => f.write_str("stopping"),
            Self::Stopping { tests: 1 } => f.write_str("stopping; 1 test goes on for a while"),
            Self::Stopping { tests } => write!(f, "stopping; {tests} tests go on for a while"),
            Self::Stopped { tests: 1 } => f.write_str("stopped after 1 test"),
            Self::Stopped { tests } => write!(f, "stopped after {tests} tests"),
        }
    }
}

/// Bytes over seconds.
struct Amount(u64, f64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes, seconds) = *self;
        let bits = (bytes as f64 * 8.0 / seconds.max(0.001)) as u64;
        let rate = Rate::from_bits_per_sec(short(bits));
        write!(f, "{} ({rate})", Bytes(short(bytes)))
    }
}

/// Three digits are enough for people.
fn short(n: u64) -> u64 {
    match n.checked_ilog10() {
        Some(digits) if digits > 2 => n - n % 10u64.pow(digits - 2),
        _ => n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let granted = |flows| Event::Granted {
            test: 1,
            peer: SocketAddr::from(([192, 0, 2, 1], 7)).into(),
            label: "send".to_owned(),
            flows,
            seconds: 3.0,
            notes: Vec::new(),
        };
        let text = |flows| granted(flows).to_string();
        assert_eq!(text(1), "test 1: granted `send`, 1 flow, at most 3 s");
        assert_eq!(text(2), "test 1: granted `send`, 2 flows, at most 3 s");
        let stored = |files| Event::Stored {
            test: 1,
            peer: SocketAddr::from(([192, 0, 2, 1], 7)).into(),
            name: "data.bin".to_owned(),
            files,
            bytes: 20_123_456,
        };
        let text = |files| stored(files).to_string();
        assert_eq!(text(1), "test 1: stored `data.bin` (20.1MB)");
        assert_eq!(text(3), "test 1: stored 3 files (20.1MB), `data.bin` first");
        let removed = |parts| Event::Removed {
            parts,
            bytes: 9,
            failed: 0,
        };
        let text = |parts| removed(parts).to_string();
        assert_eq!(text(1), "removed 1 abandoned unfinished file (9B)");
        assert_eq!(text(2), "removed 2 abandoned unfinished files (9B)");
    }
}
