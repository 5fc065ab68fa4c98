//! The server's side of the handshake, without a socket or a clock: a datagram in, at most one
//! shorter or equal one out.
//!
//! Nothing is remembered of whom a HELLO came from. What is remembered of an OPEN is the cookie,
//! until it is too old to be used again: of a right one, because it opens one session; of a wrong
//! one, because to read it costs a multiplication on the curve (some 50 us), and the next shall
//! cost its sender another HELLO.

use std::collections::HashSet;
use std::net::SocketAddr;

use fullpipe_units::Time;

use crate::wire::{Header, Kind, SessionId, WireError};

use super::cookie::{COOKIE, Cookie, CookieError, CookieJar, LIFE};
use super::message::{self, Ask, NoEntropy, Open, Reason};
use super::noise::Responder;
use super::{Identity, Key, Secrets, ServerId};

/// Longest request that a client may announce, bytes.
pub const LONGEST_REQUEST: u32 = 256 * 1024;

/// Cookies that are remembered because their OPEN was wrong. If there are more of them within the
/// life of a cookie, a cookie may be good for several.
const MOST_TRIED: usize = 65_536;

/// Answers strangers.
#[derive(Debug)]
pub struct Gate {
    key: Key,
    identity: Identity,
    jar: CookieJar,
    tried: Tried,
    counts: GateCounts,
}

/// Cookies whose OPENs were read in vain, since `since`.
#[derive(Debug, Default)]
struct Tried {
    since: Time,
    cookies: HashSet<[u8; COOKIE]>,
}

impl Tried {
    /// True if an OPEN with this cookie was read before.
    fn has(&mut self, now: Time, cookie: &Cookie) -> bool {
        if now.saturating_since(self.since) > LIFE {
            self.since = now;
            self.cookies.clear();
        }
        self.cookies.contains(&cookie.0)
    }

    fn note(&mut self, cookie: &Cookie) {
        if self.cookies.len() < MOST_TRIED {
            self.cookies.insert(cookie.0);
        }
    }
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
    /// OPENs without the key, or meant for another server.
    pub bad_proofs: u64,
    /// HELLOs of another version, answered in its form.
    pub other_versions: u64,
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
#[derive(Debug)]
pub struct Opened {
    /// Address that the cookie has proven.
    pub from: SocketAddr,
    /// The verified OPEN message.
    pub open: Open,
    /// Kind and size of the request to come.
    pub ask: Ask,
    /// The handshake that is to be answered, once.
    noise: Option<Responder>,
}

impl Gate {
    /// For holders of `key`, as the server that has this identity.
    pub fn new(key: Key, identity: Identity, jar: CookieJar) -> Self {
        Self {
            key,
            identity,
            jar,
            tried: Tried::default(),
            counts: GateCounts::default(),
        }
    }

    /// Takes another identity, before the first client comes.
    pub(super) fn be(&mut self, identity: Identity) {
        self.identity = identity;
    }

    /// Public key of the server, which clients remember.
    pub fn identity(&self) -> ServerId {
        self.identity.public()
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
                    return GateOutput::Answer(self.cookie(&nonce, &cookie));
                }
                Err(_) => self.counts.garbage += 1,
            },
            Ok(Kind::Open) => match Open::read(datagram) {
                Ok(open) => return self.judge_open(now, from, open),
                Err(_) => self.counts.garbage += 1,
            },
            Err(WireError::Version) => match message::refuse_version(datagram) {
                Some(answer) => {
                    self.counts.other_versions += 1;
                    return GateOutput::Answer(answer.to_vec());
                }
                None => self.counts.garbage += 1,
            },
            _ => self.counts.garbage += 1,
        }
        GateOutput::Nothing
    }

    fn cookie(&self, nonce: &message::Nonce, cookie: &Cookie) -> Vec<u8> {
        message::cookie(nonce, cookie, &self.identity.public()).to_vec()
    }

    /// The cookie first: it costs one hash, and nothing else is believed of an address that has
    /// none.
    fn judge_open(&mut self, now: Time, from: SocketAddr, open: Open) -> GateOutput {
        let cookie = self.jar.check(now, from, &open.nonce, &open.cookie);
        let clear = |reason| GateOutput::Answer(message::refuse(&open.nonce, reason).to_vec());
        // The second with a cookie is not read: its client begins anew.
        if cookie == Err(CookieError::Invalid) || self.tried.has(now, &open.cookie) {
            self.counts.bad_cookies += 1;
            return clear(Reason::Cookie);
        }
        // Before anything is said about a replay the key must be shown.
        let Some((noise, ask)) = open.understand(&self.key, &self.identity) else {
            self.counts.bad_proofs += 1;
            self.tried.note(&open.cookie);
            return clear(Reason::Authentication);
        };
        let reason = match cookie {
            Err(_) => {
                self.counts.replays += 1;
                self.tried.note(&open.cookie);
                Reason::Replay
            }
            Ok(()) if ask.length > LONGEST_REQUEST => Reason::TooLong(LONGEST_REQUEST),
            Ok(()) => {
                let noise = Some(noise);
                return GateOutput::Open(Box::new(Opened {
                    from,
                    open,
                    ask,
                    noise,
                }));
            }
        };
        match open.refuse(noise, reason) {
            Ok(answer) => GateOutput::Answer(answer.to_vec()),
            Err(NoEntropy) => GateOutput::Nothing,
        }
    }

    /// Opens the session: its cookie is used now. `None` if no more can be remembered; then refuse
    /// it.
    pub fn accept(
        &mut self,
        now: Time,
        opened: &mut Opened,
        session: SessionId,
    ) -> Option<(Vec<u8>, Secrets)> {
        if !self.jar.spend(now, opened.from, &opened.open.cookie) {
            return None;
        }
        let noise = opened.noise.take()?;
        let (accept, secrets) = opened.open.accept(noise, session).ok()?;
        self.counts.bytes_out += accept.len() as u64;
        Some((accept.to_vec(), secrets))
    }

    /// Says no, for its client alone. The cookie may be tried again. `None` if it was answered
    /// before.
    pub fn refuse(&mut self, opened: &mut Opened, reason: Reason) -> Option<Vec<u8>> {
        let noise = opened.noise.take()?;
        let answer = opened.open.refuse(noise, reason).ok()?;
        self.counts.bytes_out += answer.len() as u64;
        Some(answer.to_vec())
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
