//! How much the sink of a flow's data can take, and what the path would bring: flow control for a reader that may be slow.
//!
//! The receiver's window ends where the room of the sink ends, so that a disk that cannot follow holds the sender and costs no
//! segment. The buffer behind it should hold what the path brings in two round trips and no more, which is measured as
//! Dynamic Right-Sizing does it (Fisk and Feng 2001): the payload that arrives within one round trip, that of the handshake.

use fullpipe_flow::Receiver;
use fullpipe_units::{Span, Time};

/// Of one flow whose sink has bounds.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    mss: u64,
    handshake: bool,
    /// The SYN's arrival, then the time until the first data.
    opened: Option<Time>,
    rtt: Option<Span>,
    /// Beginning of the present round trip, and what had been delivered by then, segments.
    since: Time,
    before: u64,
    /// Most segments of one round trip.
    most: u64,
    /// Largest room there has been, segments; 0: the sink has said nothing yet.
    widest: u64,
    /// When to look whether there is more.
    look: Time,
}

impl Room {
    /// Before the first segment of `mss` bytes, with a SYN before it or none.
    pub fn new(mss: u32, handshake: bool) -> Self {
        Self {
            mss: u64::from(mss.max(1)),
            handshake,
            opened: None,
            rtt: None,
            since: Time::ZERO,
            before: 0,
            most: 0,
            widest: 0,
            look: Time::MAX,
        }
    }

    /// The SYN has come.
    pub fn open(&mut self, now: Time) {
        self.opened = Some(now);
    }

    /// A segment has come.
    #[inline]
    pub fn count(&mut self, now: Time, delivered: u64) {
        let rtt = match (self.rtt, self.opened) {
            (Some(rtt), _) => rtt,
            (None, Some(opened)) => *self.rtt.insert(now.saturating_since(opened)),
            (None, None) => return,
        };
        if now.saturating_since(self.since) >= rtt {
            // A pause of the sender is no round trip.
            if now.saturating_since(self.since) < rtt * 2 {
                self.most = self.most.max(delivered - self.before);
            }
            (self.since, self.before) = (now, delivered);
        }
    }

    /// Bytes that the path can bring within two round trips; without a handshake that is not known.
    #[inline]
    pub fn wanted(&self) -> u64 {
        match self.handshake {
            true => self.most.saturating_mul(2 * self.mss),
            false => u64::MAX,
        }
    }

    /// The sink has room for so many bytes: `receiver` hears of it.
    #[inline]
    pub fn set(&mut self, receiver: &mut Receiver, bytes: u64) {
        let segments = bytes / self.mss;
        self.widest = self.widest.max(segments).max(1);
        receiver.set_room(segments);
    }

    /// Segments that make an ACK worth its while which does nothing but open the window.
    pub fn step(&self) -> u64 {
        (self.widest / 16).clamp(1, MOST_STEP)
    }

    /// Decides whether to look again soon: a sender that knows of half of the window need not hear of the rest.
    #[inline]
    pub fn arm(&mut self, now: Time, receiver: &Receiver) {
        let restricted = 2 * receiver.window_known() < self.widest;
        match (restricted, self.look == Time::MAX) {
            (true, true) => self.look = now + GLANCE,
            (false, false) => self.look = Time::MAX,
            _ => {}
        }
    }

    /// When to look; [`Time::MAX`]: no need.
    #[inline]
    pub fn look(&self) -> Time {
        self.look
    }

    /// It is looked now.
    pub fn looked(&mut self) {
        self.look = Time::MAX;
    }
}

/// Between two looks. A disk that could fill the buffer in this time would not need one.
const GLANCE: Span = Span::from_millis(1);
/// See [`Room::step`].
const MOST_STEP: u64 = 64;
