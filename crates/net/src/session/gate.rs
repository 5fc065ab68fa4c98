//! The server's side of the handshake, without a socket or a clock: a datagram in, at most one
//! shorter or equal one out.
//!
//! Nothing is remembered of whom a HELLO or a wrong OPEN came from. What is remembered of a right
//! one is the cookie, until it is too old to be used again.

use std::net::SocketAddr;

use fullpipe_units::Time;

use crate::wire::{Header, Kind, SessionId};

use super::cookie::{CookieError, CookieJar};
use super::message::{self, Open, Reason};
use super::{Key, Secrets};

/// Longest request that a client may announce, bytes.
pub const LONGEST_REQUEST: u32 = 256 * 1024;

/// Answers strangers.
#[derive(Debug)]
pub struct Gate {
    key: Key,
    jar: CookieJar,
    counts: GateCounts,
}

/// What came to a [`Gate`], by what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateCounts {
    /// HELLOs answered with a cookie.
    pub hellos: u64,
    /// Not a datagram of a handshake.
    pub garbage: u64,
    /// OPENs with a cookie that is too old or wrong.
    pub bad_cookies: u64,
    /// OPENs without the key.
    pub bad_proofs: u64,
    /// OPENs whose cookie had been used.
    pub replays: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
}

/// What to do with a datagram that belongs to no session.
#[derive(Debug)]
pub enum GateOutput {
    /// Nothing to answer.
    Nothing,
    /// Send this back.
    Answer(Vec<u8>),
    /// A valid OPEN. The caller has to [`Gate::accept`] or [`Gate::refuse`] it.
    Open(Box<Opened>),
}

/// A valid OPEN.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Address that the cookie has proven.
    pub from: SocketAddr,
    /// The verified OPEN message.
    pub open: Open,
}

impl Gate {
    /// For holders of `key`.
    pub fn new(key: Key, jar: CookieJar) -> Self {
        Self {
            key,
            jar,
            counts: GateCounts::default(),
        }
    }

    /// A datagram came from an address that has no session.
    pub fn handle(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> GateOutput {
        self.counts.bytes_in += datagram.len() as u64;
        let heard = self.answer(now, from, datagram);
        if let GateOutput::Answer(answer) = &heard {
            // The rule of this module; a longer answer would be a fault of ours, and is not sent.
            if answer.len() > datagram.len() {
                return GateOutput::Nothing;
            }
            self.counts.bytes_out += answer.len() as u64;
        }
        heard
    }

    fn answer(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> GateOutput {
        let kind = Header::decode(datagram).map(|header| header.kind);
        match kind {
            Ok(Kind::Hello) => match message::read_hello(datagram) {
                Ok(nonce) => {
                    self.counts.hellos += 1;
                    let cookie = self.jar.mint(now, from, &nonce);
                    return GateOutput::Answer(message::cookie(&nonce, &cookie).to_vec());
                }
                Err(_) => self.counts.garbage += 1,
            },
            Ok(Kind::Open) => match Open::read(datagram) {
                Ok(open) => return self.judge_open(now, from, open),
                Err(_) => self.counts.garbage += 1,
            },
            _ => self.counts.garbage += 1,
        }
        GateOutput::Nothing
    }

    /// The cookie first: it costs one hash, and nothing else is believed of an address that has
    /// none.
    fn judge_open(&mut self, now: Time, from: SocketAddr, open: Open) -> GateOutput {
        let cookie = self.jar.check(now, from, &open.nonce, &open.cookie);
        let reason = match cookie {
            Err(CookieError::Invalid) => {
                self.counts.bad_cookies += 1;
                Reason::Cookie
            }
            // Before anything is said about a replay the key must be shown.
            _ if !open.proves(&self.key) => {
                self.counts.bad_proofs += 1;
                Reason::Authentication
            }
            Err(CookieError::Used) => {
                self.counts.replays += 1;
                Reason::Replay
            }
            Ok(()) if open.ask.length > LONGEST_REQUEST => Reason::TooLong(LONGEST_REQUEST),
            Ok(()) => return GateOutput::Open(Box::new(Opened { from, open })),
        };
        GateOutput::Answer(message::refuse(&open.nonce, reason).to_vec())
    }

    /// Opens the session: its cookie is used now. `None` if no more can be remembered; then refuse
    /// it.
    pub fn accept(
        &mut self,
        now: Time,
        opened: &Opened,
        session: SessionId,
    ) -> Option<(Vec<u8>, Secrets)> {
        if !self.jar.spend(now, opened.from, &opened.open.cookie) {
            return None;
        }
        let accept = opened.open.accept(&self.key, session);
        self.counts.bytes_out += accept.len() as u64;
        Some((accept.to_vec(), opened.open.secrets(&self.key, session)))
    }

    /// Says no. The cookie may be tried again.
    pub fn refuse(&mut self, opened: &Opened, reason: Reason) -> Vec<u8> {
        let answer = message::refuse(&opened.open.nonce, reason).to_vec();
        self.counts.bytes_out += answer.len() as u64;
        answer
    }

    /// Datagram and byte counters since the start.
    pub fn counts(&self) -> GateCounts {
        self.counts
    }

    /// Cookies that are remembered: all the memory there is of anybody.
    pub fn remembered(&self) -> usize {
        self.jar.remembered()
    }
}
