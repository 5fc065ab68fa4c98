//! Sessions between two hosts: handshake, keys, limits, control channel, results.
//!
//! ```text
//! client                                   server
//! HELLO   nonce, 1200 bytes          ->            remembers nothing
//!                                    <-   COOKIE   a keyed hash of address, nonce and time
//! OPEN    cookie, digest of the request, proof ->  checks the cookie, then the proof, then its limits
//!                                    <-   ACCEPT   session, the server's own proof    (or REFUSE, a number)
//! CONTROL the request, in parts      ->
//!                                    <-   CONTROL  granted, with the limits           (or refused, a sentence)
//! CONTROL start                      ->            far endpoint runs: data, ACKs, cross traffic, pings
//! CONTROL alive, every half second   <->  CONTROL  alive
//! CONTROL ask for the result         ->
//!                                    <-   CONTROL  the result, in parts
//! CONTROL close                      ->            forgets everything
//! ```
//!
//! - [`key`]: the shared key; where it may come from.
//! - [`cookie`]: cookies, and which of them were used.
//! - [`message`]: the datagrams of the handshake.
//! - [`gate`], [`handshake`]: server and client side of the handshake, sans I/O.
//! - [`seal`]: encryption of a session's datagrams.
//!
//! The threat model is in SECURITY.md. Proofs and tags of handshake and control messages,
//! which are never encrypted, are keyed BLAKE3 hashes.

pub mod channel;
mod check;
mod cleanup;
pub mod client;
pub mod client_session;
pub mod control;
pub mod control_port;
pub mod cookie;
pub mod event;
mod exchange;
mod failure;
pub mod gate;
pub mod handshake;
pub mod key;
pub mod limits;
pub mod message;
mod parse;
pub mod pull;
mod report;
pub mod request;
pub mod seal;
mod sealed;
mod seen;
pub mod server;
pub mod server_session;
mod session_thread;
#[cfg(test)]
mod tests;

use crate::wire::SessionId;

pub use gate::{Gate, GateOutput, Opened};
pub use handshake::{Handshake, HandshakeError};
pub use key::{Key, KeyError};
pub use message::{Ask, Reason, TestKind};
pub use sealed::Sealed;

/// Default UDP port of `serve`.
pub const PORT: u16 = 6220;

/// Random bytes from the operating system.
pub(crate) fn entropy(out: &mut [u8]) -> Result<(), getrandom::Error> {
    getrandom::fill(out)
}

/// Keys that two hosts share once a session is open.
#[derive(Clone)]
pub struct Secrets {
    /// Session number, in the header of every datagram.
    pub session: SessionId,
    /// Keys of control messages.
    pub control: Directions,
    /// Keys of encrypted data ([`seal`]).
    pub data: Directions,
}

/// One key for each direction.
#[derive(Clone)]
pub struct Directions {
    /// Key of messages from client to server.
    pub up: [u8; 32],
    /// Key of messages from server to client.
    pub down: [u8; 32],
}

impl Secrets {
    /// From the shared key and the OPEN that made the session, which holds the nonces of both
    /// sides.
    fn derive(key: &Key, open: &[u8], session: SessionId) -> Self {
        let mut stream = key
            .hasher("session")
            .update(&session.0.to_be_bytes())
            .update(open)
            .finalize_xof();
        let mut next = || {
            let mut key = [0; 32];
            stream.fill(&mut key);
            key
        };
        let control = Directions {
            up: next(),
            down: next(),
        };
        let data = Directions {
            up: next(),
            down: next(),
        };
        Self {
            session,
            control,
            data,
        }
    }
}

/// Keys never reach a log.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
