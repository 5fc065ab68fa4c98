//! Where a client is: datagrams of its session that come from another address, and the proof that
//! it is there (RFC 9000 sections 8.2 and 9).
//!
//! A translator of addresses (NAT) may give a client another port or address at any time, and a
//! host may change its network. The session's socket never sees what comes from there; the gate
//! hands it over ([`MigrationInbox`]). A datagram that is sealed, and the newest of the session,
//! makes its address a candidate. The session moves once the candidate has sent back a challenge
//! that was sent to it. Until then everything else goes where it went before, and the candidate is
//! sent no more bytes than came from it: a copied datagram, or a client that names another's
//! address, moves nothing.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use fullpipe_units::{Span, Time};

use crate::headers::is_ipv6;

/// What a client has to send back.
pub type Challenge = [u8; 8];

/// Bytes of a datagram with a challenge: header, number, kind, challenge, tag.
pub const CHALLENGE_BYTES: u64 = 12 + 8 + 1 + 8 + 16;

/// A challenge that is not answered is sent again after this time.
const AGAIN: Span = Span::from_millis(200);

/// A candidate of whom nothing is heard for this time is none any more.
const FORGOTTEN: Span = Span::from_secs(3);

/// A client that has moved does not move again within this time: no NAT is as quick, and each move
/// is a line of the log.
const SETTLING: Span = Span::from_millis(500);

/// Datagrams that wait for a session's thread at most.
const MOST_WAITING: usize = 32;

/// Control messages of a session from an address that is not validated yet: the gate puts them in,
/// the session's thread takes them out.
#[derive(Debug)]
pub struct MigrationInbox {
    any: AtomicBool,
    waiting: Mutex<VecDeque<(SocketAddr, Vec<u8>)>>,
    /// The address that was validated last.
    peer: Mutex<SocketAddr>,
}

impl MigrationInbox {
    /// Of a client that was proven to be at `peer`.
    pub fn new(peer: SocketAddr) -> Self {
        Self {
            any: AtomicBool::new(false),
            waiting: Mutex::default(),
            peer: Mutex::new(peer),
        }
    }

    /// Keeps a datagram, if there is room.
    pub fn put(&self, from: SocketAddr, datagram: &[u8]) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MOST_WAITING {
            waiting.push_back((from, datagram.to_vec()));
            self.any.store(true, Ordering::Release);
        }
    }

    /// The next one.
    pub fn take(&self) -> Option<(SocketAddr, Vec<u8>)> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let next = waiting.pop_front();
        self.any.store(!waiting.is_empty(), Ordering::Release);
        next
    }

    /// The address that was validated last.
    pub fn peer(&self) -> SocketAddr {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&self, to: SocketAddr) {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }
}

/// What a session has to do about its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// Send this datagram to an address that is not the peer's.
    Challenge(SocketAddr, Vec<u8>),
    /// The peer is there from now on.
    Move(SocketAddr),
    /// See whether this host still has the address that it sends from.
    Look,
}

/// The address of a client, and the one that it may have now.
#[derive(Debug)]
pub struct Paths {
    peer: SocketAddr,
    candidate: Option<Candidate>,
    moved: bool,
    /// When the next move may begin.
    settled: Time,
}

#[derive(Debug)]
struct Candidate {
    at: SocketAddr,
    challenge: Challenge,
    /// Bytes of UDP payload from there, and to there.
    received: u64,
    sent: u64,
    /// When the next challenge may leave.
    due: Time,
    last_received: Time,
}

impl Paths {
    /// Of a client that was proven to be at `peer`.
    pub fn new(peer: SocketAddr) -> Self {
        Self {
            peer,
            candidate: None,
            moved: false,
            settled: Time::ZERO,
        }
    }

    /// The address that was validated last.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// A datagram whose seal is right came from there; `newest`: none of a higher number came
    /// before. `fresh` makes a challenge.
    pub fn heard(
        &mut self,
        now: Time,
        from: SocketAddr,
        bytes: usize,
        newest: bool,
        fresh: impl FnOnce() -> Option<Challenge>,
    ) {
        if from == self.peer {
            if newest {
                // It is where it was: what came from elsewhere was a copy, or is over.
                self.candidate = None;
            }
            return;
        }
        match &mut self.candidate {
            Some(candidate) if candidate.at == from => {
                candidate.received += bytes as u64;
                candidate.last_received = now;
            }
            // A late one of an earlier path. And the socket of a session has one family.
            _ if !newest || is_ipv6(from) != is_ipv6(self.peer) => {}
            _ => {
                self.candidate = fresh().map(|challenge| Candidate {
                    at: from,
                    challenge,
                    received: bytes as u64,
                    sent: 0,
                    due: now.max(self.settled),
                    last_received: now,
                });
            }
        }
    }

    /// A challenge came back from there: the client moves, if it is the right one.
    pub fn answered(&mut self, now: Time, from: SocketAddr, answer: Challenge) {
        let right = |c: &mut Candidate| c.at == from && c.sent > 0 && c.challenge == answer;
        if self.candidate.take_if(right).is_some() {
            self.peer = from;
            self.moved = true;
            self.settled = now + SETTLING;
        }
    }

    /// True once after a move.
    pub fn take_move(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// The challenge that is to be sent now, and where to.
    pub fn poll(&mut self, now: Time) -> Option<(SocketAddr, Challenge)> {
        let forgotten = |c: &mut Candidate| now.saturating_since(c.last_received) > FORGOTTEN;
        self.candidate.take_if(forgotten);
        let candidate = self.candidate.as_mut()?;
        let allowed = candidate.sent + CHALLENGE_BYTES <= candidate.received;
        if now < candidate.due || !allowed {
            return None;
        }
        candidate.sent += CHALLENGE_BYTES;
        candidate.due = now + AGAIN;
        Some((candidate.at, candidate.challenge))
    }

    /// Tells whoever sorts datagrams where the client is.
    pub fn tell(&self, inbox: &MigrationInbox) {
        inbox.moved(self.peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(host: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], 1000 + u16::from(host)))
    }

    fn hear(paths: &mut Paths, now: Time, host: u8, newest: bool) {
        paths.heard(now, at(host), 37, newest, || Some([host; 8]));
    }

    #[test]
    fn a_client_moves_once_it_has_answered_from_there() {
        let mut paths = Paths::new(at(1));
        let mut now = Time::ZERO;
        hear(&mut paths, now, 2, true);
        assert_eq!(
            paths.poll(now),
            None,
            "fewer bytes came than a challenge has"
        );
        hear(&mut paths, now, 2, true);
        assert_eq!(paths.poll(now), Some((at(2), [2; 8])));
        now += Span::from_secs(1);
        assert_eq!(paths.poll(now), None, "45 and 45 are more than 74");
        for (host, answer) in [(3, 2), (1, 2), (2, 3)] {
            paths.answered(now, at(host), [answer; 8]);
            assert_eq!(paths.peer(), at(1), "{host} {answer}");
        }
        paths.answered(now, at(2), [2; 8]);
        assert_eq!(paths.peer(), at(2));
        assert!(paths.take_move() && !paths.take_move());
    }

    #[test]
    fn a_copy_and_a_late_one_move_nothing() {
        let mut paths = Paths::new(at(1));
        let now = Time::ZERO;
        hear(&mut paths, now, 2, false);
        hear(&mut paths, now, 2, false);
        assert_eq!(paths.poll(now), None, "late");
        hear(&mut paths, now, 2, true);
        hear(&mut paths, now, 2, true);
        assert!(paths.poll(now).is_some());
        // The client itself is heard again, where it was.
        hear(&mut paths, now, 1, true);
        paths.answered(now, at(2), [2; 8]);
        assert_eq!(paths.peer(), at(1));
        let other: SocketAddr = "[2001:db8::1]:9".parse().unwrap();
        paths.heard(now, other, 5000, true, || Some([9; 8]));
        assert_eq!(paths.poll(now), None, "another family");
    }

    proptest! {
        /// Over any schedule: no address but the peer's is sent more than came from it, and the
        /// peer is whoever answered a challenge that was sent to it alone.
        #[test]
        fn bytes_to_an_unproven_address_never_exceed_those_from_it(
            steps in proptest::collection::vec((0u8..5, 0u8..6, any::<bool>(), 20usize..200), 1..300)
        ) {
            let mut paths = Paths::new(at(0));
            let (mut now, mut made) = (Time::ZERO, 0u8);
            let (mut from, mut to) = ([0u64; 5], [0u64; 5]);
            let mut sent: Vec<(SocketAddr, Challenge)> = Vec::new();
            for (host, what, newest, bytes) in steps {
                let before = paths.peer();
                match what {
                    0..=2 => {
                        from[usize::from(host)] += bytes as u64;
                        paths.heard(now, at(host), bytes, newest, || {
                            made = made.wrapping_add(1);
                            Some([made; 8])
                        });
                    }
                    // Any challenge that was ever sent, from anywhere.
                    3 => {
                        let known = sent.get(bytes % sent.len().max(1)).copied();
                        let (owner, answer) = known.unwrap_or((at(4), [0; 8]));
                        paths.answered(now, at(host), answer);
                        if paths.peer() != before {
                            prop_assert_eq!((paths.peer(), owner), (at(host), at(host)));
                        }
                    }
                    _ => now += Span::from_millis(bytes as u64 * 5),
                }
                while let Some((there, challenge)) = paths.poll(now) {
                    prop_assert_ne!(there, paths.peer());
                    let i = (0..5).find(|i| at(*i) == there).unwrap();
                    to[usize::from(i)] += CHALLENGE_BYTES;
                    prop_assert!(to[usize::from(i)] <= from[usize::from(i)]);
                    sent.push((there, challenge));
                }
            }
        }
    }
}
