//! The peer's window is closed and nothing is in flight: the ACK that opens it may be lost, so the
//! sender probes (RFC 9293 section 3.8.6.1).
//!
//! The probe is the last acknowledged segment, sent again: the receiver knows it and answers at
//! once with its present window (Linux does the same with one byte, `tcp_xmit_probe_skb`). It is
//! outside the scoreboard: nothing is inferred from its fate, and the controller does not hear of
//! it.

use fullpipe_units::{Span, Time};

/// The persist timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Persist {
    /// When the next probe is due; [`Time::MAX`]: the window is open.
    at: Time,
    due: bool,
    /// Probes since the window closed.
    probes: u32,
    /// The segment sent as the last probe; [`u64::MAX`]: none yet.
    probe: u64,
}

impl Persist {
    pub(super) fn new() -> Self {
        Self {
            at: Time::MAX,
            due: false,
            probes: 0,
            probe: u64::MAX,
        }
    }

    #[inline]
    pub(super) fn at(&self) -> Time {
        self.at
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// The timer waits already, or its probe is about to leave.
    #[inline]
    pub(super) fn is_armed(&self) -> bool {
        self.at != Time::MAX || self.due
    }

    /// The pause before the next probe: doubled with each one, as a retransmission's.
    pub(super) fn pause(&self, rto: Span, max: Span) -> Span {
        (rto * (1 << self.probes.min(16))).min(max)
    }

    pub(super) fn start(&mut self, at: Time) {
        self.at = at;
    }

    /// The window is open, or nothing waits for it.
    #[inline]
    pub(super) fn stop(&mut self) {
        self.at = Time::MAX;
        self.due = false;
        self.probes = 0;
    }

    /// The timer's expiry: a probe is due.
    #[inline]
    pub(super) fn check(&mut self, now: Time) {
        if now >= self.at {
            self.at = Time::MAX;
            self.due = true;
        }
    }

    /// The due probe is taken up, to be sent or not.
    pub(super) fn take(&mut self) {
        self.due = false;
    }

    /// `seq` leaves as a probe.
    pub(super) fn sent(&mut self, seq: u64) {
        self.probe = seq;
        self.probes += 1;
    }

    /// A duplicate of `seq` answers a probe; it is no sign of a needless retransmission.
    pub(super) fn has_probed(&self, seq: u64) -> bool {
        self.probe == seq
    }
}
