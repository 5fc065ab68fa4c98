//! The sender's timers: retransmission, tail loss probe, reordering.

use fullpipe_units::{Span, Time};

use crate::clock::TimerClock;
use crate::config::{TimerConfig, TimerGrain};

/// When each timer goes off; [`Time::MAX`]: it is off.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    clock: TimerClock,
    rto: Time,
    probe: Time,
    reorder: Time,
    /// The host has one timer for the three of them (Linux `icsk_retransmit_timer`): while it is
    /// that of reordering the others are off.
    exclusive: bool,
    /// The reordering timer was set by this ACK.
    reorder_fresh: bool,
    /// The probe's timer was set at this time, and nothing that it depends on has changed since:
    /// segments that leave in the same instant need not set it again. [`Time::MAX`]: not so.
    probe_set: Time,
    /// When the pacer of an exclusive host lets the next segment leave.
    paced: Time,
    /// When the retransmission timer of an exclusive host has gone off, until a segment is resent;
    /// [`Time::MAX`]: it has not.
    expired: Time,
}

impl Timers {
    pub(super) fn new(cfg: &TimerConfig) -> Self {
        Self {
            clock: TimerClock::new(cfg.grain, cfg.hz),
            rto: Time::MAX,
            probe: Time::MAX,
            reorder: Time::MAX,
            exclusive: cfg.grain == TimerGrain::Wheel,
            reorder_fresh: false,
            probe_set: Time::MAX,
            paced: Time::ZERO,
            expired: Time::MAX,
        }
    }

    /// When a timer set now for `span` goes off.
    #[inline]
    pub(super) fn after(&self, now: Time, span: Span) -> Time {
        self.clock.after(now, span)
    }

    /// The first to go off.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.rto.min(self.probe).min(self.reorder)
    }

    #[inline]
    pub(super) fn rto_is_on(&self) -> bool {
        self.rto != Time::MAX
    }

    #[inline]
    pub(super) fn rto_is_due(&self, now: Time) -> bool {
        now >= self.rto
    }

    #[inline]
    pub(super) fn start_rto(&mut self, now: Time, span: Span) {
        self.rto = self.clock.after(now, self.beyond_pacing(now, span));
        self.probe_set = Time::MAX;
    }

    /// The same by the timer itself when it has gone off, which asks no pacer, neither for the time
    /// of the first segment that it sends again (`tcp_retransmit_timer`).
    pub(super) fn start_rto_again(&mut self, now: Time, span: Span) {
        self.rto = self.clock.after(now, span);
        self.probe_set = Time::MAX;
        self.expired = match self.exclusive {
            true => now,
            false => Time::MAX,
        };
    }

    /// The timer of an exclusive host has gone off now, and nothing has left since.
    pub(super) fn resends(&self, now: Time) -> bool {
        self.expired == now
    }

    /// A segment leaves; true if the timer sends it.
    pub(super) fn take_expiry(&mut self, now: Time) -> bool {
        std::mem::replace(&mut self.expired, Time::MAX) == now
    }

    /// A paced sender in Linux waits until `next` for its next segment.
    #[inline]
    pub(super) fn note_pacing(&mut self, next: Time) {
        if self.exclusive {
            self.paced = next;
        }
    }

    /// A timer waits as much longer as the pacer does, in whole ticks (`tcp_pacing_delay`).
    #[inline]
    fn beyond_pacing(&self, now: Time, span: Span) -> Span {
        match self.paced > now {
            true => span + self.clock.whole_ticks(self.paced - now),
            false => span,
        }
    }

    pub(super) fn stop_rto(&mut self) {
        self.rto = Time::MAX;
        self.probe_set = Time::MAX;
    }

    /// The probe's timer never outlasts the retransmission timer (RFC 8985 section 7.2).
    #[inline(always)]
    pub(super) fn start_probe(&mut self, now: Time, span: Span) {
        let span = self.beyond_pacing(now, span);
        self.probe = self.clock.after(now, span).min(self.rto);
        self.probe_set = Time::MAX;
    }

    /// The wait set last is that of every segment that leaves `now`, until
    /// [`Timers::release_probe`].
    #[inline]
    pub(super) fn hold_probe(&mut self, now: Time) {
        self.probe_set = now;
    }

    /// What the wait depends on may change.
    #[inline]
    pub(super) fn release_probe(&mut self) {
        self.probe_set = Time::MAX;
    }

    #[inline]
    pub(super) fn holds_probe(&self, now: Time) -> bool {
        self.probe_set == now
    }

    #[inline]
    pub(super) fn stop_probe(&mut self) {
        self.probe = Time::MAX;
        self.probe_set = Time::MAX;
    }

    /// Turns the probe's timer off if it is due.
    #[inline]
    pub(super) fn take_probe(&mut self, now: Time) -> bool {
        let due = now >= self.probe;
        if due {
            self.stop_probe();
        }
        due
    }

    /// A segment counts as lost `at` that time unless it is delivered; `None`: none is late. A
    /// kernel's timer takes 2 ms more (Linux `TCP_TIMEOUT_MIN_US`), takes the place of the others,
    /// and goes off for nothing if nothing is late any more.
    pub(super) fn set_reorder(&mut self, now: Time, at: Option<Time>) {
        match at {
            Some(at) if self.exclusive => {
                self.reorder = self.after(now, at - now + Span::from_millis(2));
                self.reorder_fresh = true;
                self.rto = Time::MAX;
                self.stop_probe();
            }
            Some(at) => self.reorder = at,
            None if self.exclusive => {}
            None => self.reorder = Time::MAX,
        }
    }

    /// An ACK is looked at that may set the reordering timer.
    pub(super) fn begin_ack(&mut self) {
        self.reorder_fresh = false;
    }

    /// This ACK has set the one timer for reordering: it sets no other.
    #[inline]
    pub(super) fn is_taken(&self) -> bool {
        self.exclusive && self.reorder_fresh
    }

    /// The one timer is that of reordering.
    #[inline]
    pub(super) fn waits_for_reordering(&self) -> bool {
        self.exclusive && self.reorder != Time::MAX
    }

    /// The one timer is that of reordering or of a probe: the timeout that takes its place counts
    /// from the first outstanding segment's last transmission (Linux `tcp_rearm_rto`).
    pub(super) fn hides_rto(&self) -> bool {
        self.exclusive && (self.reorder != Time::MAX || self.probe != Time::MAX)
    }

    /// The host has one timer.
    #[inline]
    pub(super) fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// The one timer is set for something else.
    #[inline]
    pub(super) fn stop_reorder(&mut self) {
        self.reorder = Time::MAX;
        self.reorder_fresh = false;
    }

    /// A segment that is late may be lost.
    #[inline]
    pub(super) fn reorder_is_on(&self) -> bool {
        self.reorder != Time::MAX
    }

    /// Turns the reordering timer off if it is due.
    #[inline]
    pub(super) fn take_reorder(&mut self, now: Time) -> bool {
        let due = now >= self.reorder;
        if due {
            self.stop_reorder();
        }
        due
    }

    pub(super) fn stop(&mut self) {
        self.rto = Time::MAX;
        self.stop_probe();
        self.stop_reorder();
    }
}
