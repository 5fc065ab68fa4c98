//! Sessions between two hosts: handshake, keys, limits, control channel, results.
//!
//! ```text
//! client                                   server
//! HELLO   nonce, 1200 bytes          ->            remembers nothing
//!                                    <-   COOKIE   a keyed hash of address, nonce and time; its public key
//! OPEN    cookie, Noise: digest of the request ->  checks the cookie, then the key, then its limits
//!                                    <-   ACCEPT   Noise: the session                 (or REFUSE, a reason)
//! CONTROL the request, in parts      ->
//!                                    <-   CONTROL  granted, with the limits           (or refused, a sentence)
//! CONTROL start                      ->            far endpoint runs: data, ACKs, cross traffic, pings
//! CONTROL alive, every half second   <->  CONTROL  alive
//! CONTROL ask for the result         ->
//!                                    <-   CONTROL  the result, in parts
//! CONTROL close                      ->            forgets everything
//! ```
//!
//! - [`key`], [`identity`]: the shared key, and the server's own; where they may come from.
//! - [`cookie`]: cookies, and which of them were used.
//! - [`message`]: the datagrams of the handshake; [`noise`]: its cryptography.
//! - [`gate`], [`handshake`]: server and client side of the handshake, sans I/O.
//! - [`check`]: what a run may ask for at all.
//! - [`channel`], [`seal`]: sealed control messages, and encrypted data.
//! - [`board`]: the tests of a server that run, for whoever watches it.
//! - [`path`]: clients whose address changes; [`mtu`]: paths that become narrower.
//!
//! The threat model is in SECURITY.md.

pub mod board;
pub mod channel;
pub mod check;
mod cipher;
mod cleanup;
pub mod client;
pub mod client_session;
pub mod control;
pub mod control_port;
pub mod cookie;
mod credit;
pub mod event;
mod exchange;
mod failure;
pub mod gate;
pub mod handshake;
pub mod identity;
pub mod key;
pub mod known;
pub mod limits;
pub mod message;
pub mod mtu;
pub mod noise;
mod parse;
pub mod path;
mod private_file;
pub mod pull;
mod refusal;
mod report;
pub mod request;
pub mod seal;
mod sealed;
mod seen;
pub mod server;
pub mod server_session;
mod session_thread;
pub mod shaper;
mod simple;
#[cfg(test)]
mod tests;

use crate::wire::SessionId;
use cipher::Cipher;
use seal::End;

pub use gate::{Gate, GateOutput, Opened};
pub use handshake::{Handshake, HandshakeError};
pub use identity::{Identity, ServerId};
pub use key::{Key, KeyError};
pub use message::{Ask, TestKind};
pub use refusal::Reason;
pub use sealed::Sealed;

/// Default UDP port of `serve`.
pub const PORT: u16 = 6220;

/// Random bytes from the operating system.
pub(crate) fn entropy(out: &mut [u8]) -> Result<(), getrandom::Error> {
    getrandom::fill(out)
}

/// What two hosts share once a session is open.
#[derive(Clone)]
pub struct Secrets {
    /// Session number, in the header of every datagram.
    pub session: SessionId,
    /// The two keys that the handshake ends with; [`channel`] and [`seal`] use different numbers
    /// under them.
    pub keys: Directions,
}

/// One key for each direction.
#[derive(Clone)]
pub struct Directions {
    /// Key of what the client sends.
    pub up: [u8; 32],
    /// Key of what the server sends.
    pub down: [u8; 32],
}

impl Directions {
    /// Ciphers of what `end` sends and of what it receives.
    fn ciphers(&self, end: End) -> (Cipher, Cipher) {
        let (up, down) = (Cipher::new(&self.up), Cipher::new(&self.down));
        match end {
            End::Client => (up, down),
            End::Server => (down, up),
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
