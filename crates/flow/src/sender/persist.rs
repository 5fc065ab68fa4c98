//! The peer's window is closed and nothing is on its way: the ACK that opens it may be lost, so the sender asks (RFC 9293 section
//! 3.8.6.1).
//!
//! Asked is with the last segment that was acknowledged, sent again: the receiver knows it, and answers at once with its present
//! window. (Linux does the same with a byte, `tcp_xmit_probe_skb`.) It is outside of the scoreboard: nothing is inferred from what
//! becomes of it, and the controller does not hear of it.

use fullpipe_cc::Controller;
use fullpipe_units::Time;

use super::Sender;
use crate::segment::Segment;

/// See above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Persist {
    at: Time,
    due: bool,
    /// Probes since the window closed.
    asked: u32,
    /// The segment that asked last.
    probe: u64,
    /// The ACK at hand has moved the window's end.
    updated: bool,
}

impl Default for Persist {
    fn default() -> Self {
        Self {
            at: Time::MAX,
            due: false,
            asked: 0,
            probe: u64::MAX,
            updated: false,
        }
    }
}

impl Persist {
    /// When the next question is due; [`Time::MAX`]: the window is open.
    #[inline]
    pub(super) fn at(&self) -> Time {
        self.at
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// The ACK at hand moves the window's end: it is no duplicate (RFC 5681 section 2).
    #[inline]
    pub(super) fn note_update(&mut self) {
        self.updated = true;
    }

    /// Whether it did; asked once per ACK by whom it concerns.
    pub(super) fn take_update(&mut self) -> bool {
        std::mem::take(&mut self.updated)
    }

    /// A duplicate of `seq` is the answer to a question, not a sign of a retransmission too many.
    pub(super) fn has_probed(&self, seq: u64) -> bool {
        self.probe == seq
    }
}

impl<C: Controller> Sender<C> {
    /// With nothing on its way: waits for an open window if there is data and the window is closed.
    #[inline]
    pub(super) fn arm_persist(&mut self, now: Time) {
        if self.board.nxt() < self.peer_limit || self.board.nxt() >= self.app_limit {
            self.persist.at = Time::MAX;
            self.persist.due = false;
            self.persist.asked = 0;
        } else if self.persist.at == Time::MAX && !self.persist.due {
            let wait = self.rtt.rto() * (1 << self.persist.asked.min(16));
            self.persist.at = self.timer(now, wait.min(self.cfg.rto.max));
        }
    }

    pub(super) fn on_persist_timer(&mut self) {
        self.persist.at = Time::MAX;
        self.persist.due = true;
    }

    /// Asks. The next question is later, whether this one is answered or not.
    #[cold]
    pub(super) fn send_window_probe(&mut self, now: Time) -> Option<Segment> {
        self.persist.due = false;
        let closed = self.board.nxt() >= self.peer_limit && self.board.nxt() < self.app_limit;
        if !closed || self.board.flight() > 0 {
            return None;
        }
        // The window after the handshake has one segment at least: something was acknowledged.
        let seq = self.board.una().checked_sub(1)?;
        self.persist.probe = seq;
        self.persist.asked += 1;
        self.counts.sent += 1;
        self.counts.window_probes += 1;
        self.arm_persist(now);
        Some(self.segment(now, seq, true, false))
    }

    /// The local queue refused it: the next one is as good.
    pub(super) fn unsend_window_probe(&mut self, now: Time) {
        self.counts.sent -= 1;
        self.counts.window_probes -= 1;
        self.arm_persist(now);
    }
}
