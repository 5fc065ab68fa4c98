//! When the next segment may leave: spreading of the initial window, then pacing of the connection
//! if wanted; and trains of segments that segmentation offload sends as one.
//!
//! Each segment moves the next send time by its length over the rate; how much of a lateness is
//! made up for is a [`PacerRule`].

use fullpipe_units::{Span, Time};

use crate::config::PacerRule;

/// Release times.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    next: Time,
    rule: PacerRule,
    /// The pacer holds a segment back: the sender wants to be called at its time.
    gated: bool,
    /// Segments of the initial window still to be spaced, and their gap.
    spread_left: u64,
    spread_gap: Span,
    /// Before the departure of this number: [`Pacer::next`], and what was left to spread.
    before: (u64, Time, u64),
    train: Train,
    /// The flow's own ceiling sets the rate.
    capped: bool,
    /// It has to do beyond the initial window: the connection is paced, or segments leave in
    /// trains.
    lasts: bool,
    /// It has nothing to do: every segment leaves at once.
    free: bool,
}

/// New segments that leave as one.
#[derive(Clone, Copy, Debug)]
struct Train {
    /// Most segments.
    whole: u64,
    /// Segments left of the present one.
    left: u64,
}

/// What a train is made of, segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrainRoom {
    /// Window in force, and how much of it is free.
    pub(super) window: u64,
    pub(super) free: u64,
    /// New data that may be sent.
    pub(super) data: u64,
    /// A millisecond of the pacing rate; infinite when not paced.
    pub(super) millisecond: f64,
    /// More ACKs are on their way, and the window is not being reduced: it can wait for them.
    pub(super) may_wait: bool,
}

impl Pacer {
    /// Nothing is held back; a train has at most `tso_segments`; `paced`: the connection has a
    /// pacing rate, or may have one.
    pub(super) fn new(rule: PacerRule, tso_segments: u32, paced: bool) -> Self {
        let lasts = paced || tso_segments > 1;
        Self {
            next: Time::ZERO,
            rule,
            capped: false,
            gated: false,
            spread_left: 0,
            before: (0, Time::ZERO, 0),
            spread_gap: Span::ZERO,
            train: Train {
                whole: u64::from(tso_segments),
                left: 0,
            },
            lasts,
            free: !lasts,
        }
    }

    /// Every departure matters: the host's queue is to be kept small.
    pub(super) fn bind(&mut self) {
        self.lasts = true;
        self.free = false;
    }

    /// The flow's own ceiling sets the rate, or window and RTT do.
    #[inline]
    pub(super) fn cap(&mut self, capped: bool) {
        self.capped = capped;
    }

    #[inline]
    pub(super) fn is_capped(&self) -> bool {
        self.capped
    }

    /// Spread the first `segments` segments by `gap` from now on (Initial Spreading 2014).
    pub(super) fn spread(&mut self, now: Time, segments: u64, gap: Span) {
        if gap > Span::ZERO {
            self.spread_left = segments;
            self.spread_gap = gap;
            self.next = now;
            self.free = false;
        }
    }

    /// A loss, a timeout or a mark ends spreading: the rest is ACK-clocked.
    pub(super) fn end_spreading(&mut self) {
        if self.spread_left > 0 {
            self.spread_left = 0;
            self.finish_spreading();
        }
    }

    fn finish_spreading(&mut self) {
        self.next = Time::ZERO;
        self.gated = false;
        self.free = !self.lasts;
    }

    /// Every segment may leave at once, and its departure matters to no other.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.free
    }

    /// The segment that the window admits has to wait for its time.
    #[inline]
    pub(super) fn holds(&self, now: Time) -> bool {
        now < self.next && self.train.left == 0
    }

    /// Whether a segment waits for [`Pacer::wake_at`].
    #[inline]
    pub(super) fn gate(&mut self, waits: bool) {
        self.gated = waits;
    }

    #[inline]
    pub(super) fn is_gated(&self) -> bool {
        self.gated
    }

    /// When the segment that is held back may leave; [`Time::MAX`]: none is.
    #[inline]
    pub(super) fn wake_at(&self) -> Time {
        if self.gated { self.next } else { Time::MAX }
    }

    /// When pacing lets the next segment leave.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// A segment leaves now, the one with this number of all; `gap` is its length over the pacing
    /// rate, if the connection is paced.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, number: u64, gap: Option<Span>) {
        self.before = (number, self.next, self.spread_left);
        if self.spread_left > 0 {
            self.spread_left -= 1;
            if self.spread_left > 0 {
                self.next = self.next.max(now) + self.spread_gap;
            } else {
                self.finish_spreading();
            }
        } else if let Some(gap) = gap {
            match self.rule {
                PacerRule::Credit => {
                    let credit = (gap * 2).max(Span::from_millis(1));
                    self.next = self.next.max(now - credit) + gap;
                }
                PacerRule::Linux => {
                    let late = now.saturating_since(self.next);
                    self.next = self.next.max(now);
                    if number >= UNPACED {
                        self.next += gap.saturating_sub(late.min(gap / 2));
                    }
                }
            }
        }
    }

    /// The rate rises from `old` to `new` bit/s: the rest of a gap of the old rate passes at the
    /// new one. A gap at 1 kbit/s is twelve seconds long.
    pub(super) fn hasten(&mut self, now: Time, old: f64, new: f64) {
        if self.spread_left == 0 && new > old {
            let left = self.next.saturating_since(now).as_secs_f64() * (old / new);
            self.next = self.next.min(now + Span::from_secs_f64(left));
        }
    }

    /// The segment of this number did not leave: its time is not used up (Linux
    /// `__tcp_transmit_skb`, which moves the pacer only where the host took the segment).
    pub(super) fn take_back(&mut self, number: u64) {
        let (of, next, spread_left) = self.before;
        if of == number {
            (self.next, self.spread_left) = (next, spread_left);
            self.free = false;
        }
    }

    /// Segments leave in trains.
    #[inline]
    pub(super) fn has_trains(&self) -> bool {
        self.train.whole > 1
    }

    /// Segments that leave as one now.
    pub(super) fn train(&self) -> u64 {
        self.train.left + 1
    }

    #[inline]
    pub(super) fn end_train(&mut self) {
        self.train.left = 0;
    }

    /// One more segment of the present train; false: there is none.
    #[inline]
    pub(super) fn continue_train(&mut self) -> bool {
        let goes_on = self.train.left > 0;
        self.train.left -= u64::from(goes_on);
        goes_on
    }

    /// The first segment of a train if enough may leave together; false: wait for more ACKs (Linux
    /// `tcp_tso_should_defer`). What is in flight brings them, so an empty network is never waited
    /// for.
    pub(super) fn start_train(&mut self, room: TrainRoom) -> bool {
        // Spreading needs each segment alone (Initial Spreading 2014: no offload for the first
        // window).
        if self.spread_left > 0 {
            return true;
        }
        // Linux `tcp_tso_autosize`: a millisecond of the rate, at least two segments.
        let paced = (room.millisecond as u64).max(2);
        let whole = self.train.whole.min(paced);
        let enough = whole.min((room.window / TSO_WINDOW_DIVISOR).max(1));
        if room.may_wait && room.free < enough && room.free < room.data {
            return false;
        }
        self.train.left = whole.min(room.free).min(room.data) - 1;
        true
    }
}

/// The segment from which on [`PacerRule::Linux`] paces (`tcp_update_skb_after_send`).
const UNPACED: u64 = 10;

/// The part of the window that is always enough for a train (Linux `tcp_tso_win_divisor`).
const TSO_WINDOW_DIVISOR: u64 = 3;
