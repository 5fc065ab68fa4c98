//! Start-up x window law: the frame that every loss-based and most delay-based algorithms share.
//!
//! [`Classic`] owns what is the same for all of them: the slow-start test, byte or ACK counting,
//! the base of a decrease, the floors, the undo snapshot, the clamp. A [`WindowLaw`] and a
//! [`StartUp`] hold only what their paper defines. Any start-up runs with any law:
//!
//! ```
//! use fullpipe_cc::law::scalable::Scalable;
//! use fullpipe_cc::startup::limited::{Limited, Rule};
//! use fullpipe_cc::{Classic, Controller, Setup};
//!
//! let start = Limited::new(100.0, Rule::Rfc);
//! let law = Scalable { step: 0.01, decrease: 0.125, lwnd: 16.0 };
//! let cc = Classic::new(start, law, None, Setup::default());
//! assert_eq!(cc.window(), 10.0);
//! ```

use alloc::boxed::Box;
use core::mem;

use fullpipe_units::Time;

use crate::controller::{
    AckEvent, CongestionEvent, CongestionKind, Controller, Count, IdleEvent, LostSegment, Phase,
    RestartEvent, RtoEvent, TakeOver, assert_ratio,
};

/// Window and threshold, real-valued segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window, segments.
    pub w: f64,
    /// Slow-start threshold, segments; infinite before the first reduction.
    pub ssth: f64,
}

impl Window {
    /// Adds `step` segments for each of `n` effective segments, up to `ssth`; returns those not
    /// used.
    pub fn climb(&mut self, n: f64, step: f64) -> f64 {
        let room = self.ssth - self.w;
        if n * step <= room {
            self.w += n * step;
            0.0
        } else {
            self.w = self.ssth;
            n - room / step
        }
    }
}

/// Which window a decrease multiplies (RFC 5681 eq. 4 and RFC 9438 4.6: FlightSize; Linux: cwnd).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Base {
    /// `min(w, FlightSize)`.
    #[default]
    MinFlight,
    /// The window itself.
    Cwnd,
    /// As [`Base::MinFlight`], but for a loss in slow start: what was in flight when the first
    /// lost segment left, and half of what is at least. Slow start has doubled it since, so the
    /// window counts as no larger, either.
    Sent,
}

/// What the endpoint fixes for a controller when the flow is made. Values out of their range are a
/// mistake of the endpoint, which debug builds refuse with a panic.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Initial window, segments: finite, at least 1.
    pub initial_window: f64,
    /// Upper clamp of the window, segments, at least 1; infinite for none.
    pub max_window: f64,
    /// Unit in which ACKs are counted: segments, or one per ACK.
    pub count: Count,
    /// `L`: most segments one ACK may add in slow start, above 0 (RFC 3465 2.2: 2; infinite when
    /// paced, RFC 9406 4.2).
    pub slow_start_limit: f64,
    /// Base of a decrease.
    pub base: Base,
    /// Segment size, bytes of payload, above 0.
    pub mss: u32,
    /// The sender paces.
    pub paced: bool,
    /// Ticks per second of the clock that kernel modules read, above 0 (Linux `CONFIG_HZ`).
    pub hz: u32,
    /// The peer acknowledges selectively: more than one loss per round is seen.
    pub selective_acks: bool,
    /// Seed of what the controller draws at random.
    pub seed: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            initial_window: 10.0,
            max_window: f64::INFINITY,
            count: Count::Segments,
            slow_start_limit: 2.0,
            base: Base::MinFlight,
            mss: 1448,
            paced: false,
            hz: 250,
            selective_acks: true,
            seed: 0,
        }
    }
}

impl Setup {
    /// True if every value is in its range.
    pub fn is_valid(&self) -> bool {
        self.initial_window.is_finite()
            && self.initial_window >= 1.0
            && self.max_window >= 1.0
            && self.slow_start_limit > 0.0
            && self.mss > 0
            && self.hz > 0
    }

    /// Panics in debug builds unless [`Self::is_valid`], the bounds that controllers rely on.
    #[track_caller]
    pub(crate) fn assert_valid(&self) {
        debug_assert!(self.is_valid(), "out of range: {self:?}");
    }

    /// Of RFC 9002, `mss` being the largest datagram: initial window (section 7.2), no limit of
    /// what an ACK adds in slow start (section 7.3.1; the sender paces, section 7.7), reductions
    /// of the window itself (appendix B.6).
    pub fn quic(mss: u32) -> Self {
        Self {
            initial_window: (14_720.0 / f64::from(mss)).clamp(2.0, 10.0),
            slow_start_limit: f64::INFINITY,
            base: Base::Cwnd,
            mss,
            paced: true,
            ..Self::default()
        }
    }
}

/// What a document about slow start defines.
#[cfg_attr(feature = "registry", ambassador::delegatable_trait)]
pub trait StartUp: Clone {
    /// What the endpoint fixes, before everything else.
    fn set_up(&mut self, _setup: &Setup) {}

    /// The sender paces from now on ([`Setup::paced`] said before whether it did).
    fn on_pacing(&mut self) {}

    /// Threshold of the first slow start, segments; infinite: the first congestion event ends it.
    fn initial_ssthresh(&self) -> f64 {
        f64::INFINITY
    }

    /// Every ACK while in start-up, grown or not: RTT rounds and exit tests. Leaving means lowering
    /// `win.ssth`.
    fn observe(&mut self, _win: &mut Window, _ev: &AckEvent) {}

    /// Raise `win.w` for `n` effective segments (already limited by `L`), never past `win.ssth`;
    /// returns the segments left over for congestion avoidance.
    fn grow(&mut self, win: &mut Window, n: f64, ev: &AckEvent) -> f64;

    /// A congestion event or a timeout ended start-up, or one begins again after a timeout.
    fn on_congestion(&mut self) {}

    /// The flow restarts after idle time.
    fn on_idle(&mut self, _ev: &IdleEvent) {}

    /// The sender's segment size changed; `ratio` is old over new. Scale what is kept in segments.
    fn on_mss_change(&mut self, _ratio: f64) {}

    /// Named variables for traces.
    fn report(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}

/// What a paper about a window law defines.
#[cfg_attr(feature = "registry", ambassador::delegatable_trait)]
pub trait WindowLaw: Clone {
    /// False for a law that has no slow start at all (LEDBAT): its `increase` runs from the first
    /// ACK.
    fn has_slow_start(&self) -> bool {
        true
    }

    /// What the endpoint fixes, before everything else: for a law that is tuned to it.
    fn set_up(&mut self, _setup: &Setup) {}

    /// True if the law reads [`AckEvent::owd`].
    fn reads_owd(&self) -> bool {
        false
    }

    /// See [`Controller::needs_ecn`].
    fn needs_ecn(&self) -> bool {
        false
    }

    /// See [`Controller::on_delivery`]: what a decrease by this very ACK must know.
    fn on_delivery(&mut self, _ev: &AckEvent) {}

    /// Every ACK in every phase, before growth: RTT filters, bandwidth samples, round ends. A
    /// delay-based law may move `win` here (Vegas' round end, TCP-LP's early back-off).
    fn observe(&mut self, _win: &mut Window, _ev: &AckEvent) {}

    /// Congestion avoidance for `n` effective segments (already limited to the window): raise
    /// `win.w`.
    fn increase(&mut self, win: &mut Window, n: f64, ev: &AckEvent);

    /// True if at window `w` the law grows by the segments that an ACK covers, even where
    /// [`Setup::count`] counts ACKs: one that is defined per round trip, or that divides by the
    /// segments per ACK.
    fn counts_segments(&self, _w: f64) -> bool {
        false
    }

    /// True while the law forbids any growth, that of a start-up included (TCP-LP's inference
    /// time).
    fn holds(&self, _now: Time) -> bool {
        false
    }

    /// A congestion event at window `w`: returns the new `ssthresh` (segments, before the floor), a
    /// fraction of `base`.
    fn decrease(&mut self, w: f64, base: f64, ev: &CongestionEvent) -> f64;

    /// First timeout of a segment: returns the new `ssthresh` and resets the law's epoch. Each law
    /// states its own rule.
    fn on_rto(&mut self, w: f64, base: f64, ev: &RtoEvent) -> f64;

    /// Recovery ended.
    fn on_recovery_exit(&mut self, _win: &mut Window, _now: Time) {}

    /// The law's state has just been restored from the snapshot of a spurious reduction.
    fn on_undo(&mut self, _win: &mut Window, _now: Time) {}

    /// Window validation changed the window after idle or application-limited time.
    fn on_idle(&mut self, _ev: &IdleEvent) {}

    /// A segment leaves and nothing was in flight, perhaps after [`WindowLaw::on_idle`] at the same
    /// time: a law whose growth depends on time leaves out the pause, once.
    fn on_restart(&mut self, _ev: &RestartEvent) {}

    /// The segment size changed: windows that the law remembers are multiplied by `ratio` (old over
    /// new).
    fn on_mss_change(&mut self, _ratio: f64) {}

    /// Named variables for traces; `w` is the present window.
    fn report(&self, w: f64, visit: &mut dyn FnMut(&'static str, f64));

    /// An ACK under this law: what [`Classic`] makes of it, for no law to define. It is a method
    /// so that an enum of laws looks once an ACK which of them it is; each has a function of its
    /// own, which saves no more registers than it needs.
    #[inline(never)]
    fn on_ack<S: StartUp>(&mut self, frame: &mut Frame<S>, ev: &AckEvent)
    where
        Self: Sized,
    {
        frame.on_ack(self, ev);
    }
}

/// The state of a [`Classic`] that is the same under every law.
#[derive(Clone, Debug)]
pub struct Frame<S> {
    win: Window,
    start: S,
    setup: Setup,
    /// An RTO happened and its data is not yet recovered: `L = 1` (RFC 3465 2.3).
    after_rto: bool,
}

impl<S: StartUp> Frame<S> {
    #[inline]
    fn on_ack<W: WindowLaw>(&mut self, law: &mut W, ev: &AckEvent) {
        law.observe(&mut self.win, ev);
        if self.win.w < self.win.ssth {
            self.start.observe(&mut self.win, ev);
        }
        if ev.may_grow() && !law.holds(ev.now) {
            self.grow(law, ev);
        }
        self.clamp();
    }

    #[inline]
    fn grow<W: WindowLaw>(&mut self, law: &mut W, ev: &AckEvent) {
        let mut n = self.setup.count.of(ev);
        if n > 0.0 && self.win.w < self.win.ssth {
            let limit = if self.after_rto {
                1.0
            } else {
                self.setup.slow_start_limit
            };
            n = self.start.grow(&mut self.win, n.min(limit), ev);
        }
        if n > 0.0 {
            self.after_rto = false;
            if self.setup.count == Count::Acks && law.counts_segments(self.win.w) {
                n *= ev.delivered_now() as f64 / Count::Acks.of(ev);
            }
            // As `min`, which would ask whether these are numbers.
            let n = if self.win.w < n { self.win.w } else { n };
            law.increase(&mut self.win, n, ev);
        }
    }

    fn base(&self, flight: u64) -> f64 {
        match self.setup.base {
            Base::MinFlight | Base::Sent => self.win.w.min(flight as f64),
            Base::Cwnd => self.win.w,
        }
    }

    #[inline]
    fn clamp(&mut self) {
        // As `max` and `min`, which would ask for a second time whether these are numbers.
        let (w, most) = (self.win.w, self.setup.max_window);
        let w = if w > 1.0 { w } else { 1.0 };
        self.win.w = if most < w { most } else { w };
    }
}

/// A start-up and a window law, composed.
#[derive(Clone, Debug)]
pub struct Classic<S, W> {
    frame: Frame<S>,
    law: W,
    /// Fraction kept on an ECN mark in congestion avoidance (RFC 8511); `None`: as on loss.
    ecn_keep: Option<f64>,
    /// What the last reduction may restore, in a place of its own: every ACK reads the rest.
    saved: Box<Saved<S, W>>,
    /// There is such a reduction.
    may_undo: bool,
    /// The last reduction answered a mark.
    by_mark: bool,
    /// When the latest losses were found, and the flight when the first of them left: what
    /// [`Base::Sent`] needs.
    lost: Option<(Time, u64)>,
}

#[derive(Clone, Debug)]
struct Saved<S, W> {
    win: Window,
    start: S,
    law: W,
}

impl<S: StartUp, W: WindowLaw> Classic<S, W> {
    /// A controller at the start of a connection. `ecn_keep` is ABE's kept fraction, if wanted.
    pub fn new(mut start: S, mut law: W, ecn_keep: Option<f64>, setup: Setup) -> Self {
        setup.assert_valid();
        start.set_up(&setup);
        law.set_up(&setup);
        let ssth = if law.has_slow_start() {
            start.initial_ssthresh()
        } else {
            1.0
        };
        let w = setup.initial_window.min(setup.max_window);
        let win = Window { w, ssth };
        Self {
            saved: Box::new(Saved {
                win,
                start: start.clone(),
                law: law.clone(),
            }),
            may_undo: false,
            by_mark: false,
            lost: None,
            frame: Frame {
                win,
                start,
                setup,
                after_rto: false,
            },
            law,
            ecn_keep,
        }
    }

    /// The window law, for one that is steered from outside.
    pub fn law_mut(&mut self) -> &mut W {
        &mut self.law
    }

    /// Another window and threshold from now on, from outside.
    pub fn set_window(&mut self, window: Window) {
        self.frame.win = window;
        self.frame.clamp();
    }

    fn save(&mut self) {
        *self.saved = Saved {
            win: self.frame.win,
            start: self.frame.start.clone(),
            law: self.law.clone(),
        };
        self.may_undo = true;
    }

    /// What was in flight when the first lost segment of this event left, where that is asked for
    /// and known.
    fn sent_flight(&self, ev: &CongestionEvent) -> Option<u64> {
        let lost = self.lost.filter(|(at, _)| *at == ev.now)?;
        (ev.kind == CongestionKind::Loss).then_some(lost.1)
    }
}

impl<S: StartUp, W: WindowLaw> Controller for Classic<S, W> {
    #[inline]
    fn on_delivery(&mut self, ev: &AckEvent) {
        self.law.on_delivery(ev);
    }

    #[inline]
    fn on_ack(&mut self, ev: &AckEvent) {
        self.law.on_ack(&mut self.frame, ev);
    }

    fn on_congestion(&mut self, ev: &CongestionEvent) {
        // A mark or a local drop is never spurious, and a second loss in the same episode keeps the
        // first snapshot.
        match (ev.kind, ev.first_in_window) {
            (CongestionKind::Loss, true) => self.save(),
            (CongestionKind::Loss, false) => {}
            _ => self.may_undo = false,
        }
        self.by_mark = ev.kind == CongestionKind::Ecn;
        let Window { w, ssth } = self.frame.win;
        let avoidance = w >= ssth;
        let base = self.frame.base(ev.flight);
        let mut ssth = match self.sent_flight(ev).filter(|_| !avoidance) {
            // The head of a burst leaves when little else is out: half is what slow start can tell.
            Some(sent) => {
                let base = base.min((sent as f64).max(0.5 * base));
                self.law.decrease(base, base, ev)
            }
            None => self.law.decrease(w, base, ev),
        };
        let floor = if ev.kind == CongestionKind::Ecn {
            1.0
        } else {
            2.0
        };
        if let (CongestionKind::Ecn, Some(keep), true) = (ev.kind, self.ecn_keep, avoidance) {
            ssth = keep * base;
        }
        let ssth = ssth.max(floor);
        self.frame.win = Window {
            w: ssth.min(w),
            ssth,
        };
        self.frame.start.on_congestion();
        self.frame.clamp();
    }

    fn on_loss_in_reduction(&mut self, ev: &CongestionEvent, _window: f64) {
        // A mark has taken less than a loss does; a local drop has not.
        if !self.law.needs_ecn() || !mem::take(&mut self.by_mark) {
            return;
        }
        let (w, base) = (self.frame.win.w, self.frame.base(ev.flight));
        let ssth = self.law.decrease(w, base, ev).max(2.0);
        self.frame.win = Window {
            w: ssth.min(w),
            ssth,
        };
        self.frame.clamp();
    }

    fn on_lost(&mut self, ev: &LostSegment) {
        if self.reads_rate() && self.lost.is_none_or(|(at, _)| at != ev.now) {
            self.lost = Some((ev.now, ev.tx_in_flight));
        }
    }

    fn on_rto(&mut self, ev: &RtoEvent) {
        if ev.first {
            if !ev.nested {
                self.save();
            }
            let base = self.frame.base(ev.flight);
            self.frame.win.ssth = self.law.on_rto(self.frame.win.w, base, ev).max(2.0);
            self.frame.start.on_congestion();
        }
        self.frame.win.w = (ev.pipe + 1) as f64;
        self.frame.after_rto = true;
        self.frame.clamp();
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.frame.after_rto = false;
        self.law.on_recovery_exit(&mut self.frame.win, now);
        self.frame.clamp();
    }

    fn on_undo(&mut self, now: Time) {
        if mem::take(&mut self.may_undo) {
            let (frame, saved) = (&mut self.frame, &*self.saved);
            frame.win.w = frame.win.w.max(saved.win.w);
            frame.win.ssth = frame.win.ssth.max(saved.win.ssth);
            frame.start = saved.start.clone();
            frame.after_rto = false;
            self.law = saved.law.clone();
            self.law.on_undo(&mut frame.win, now);
            frame.clamp();
        }
    }

    fn on_idle(&mut self, ev: &IdleEvent) {
        self.frame.win = Window {
            w: ev.window,
            ssth: ev.ssthresh,
        };
        self.frame.start.on_idle(ev);
        self.law.on_idle(ev);
        self.frame.clamp();
    }

    fn on_restart(&mut self, ev: &RestartEvent) {
        self.law.on_restart(ev);
    }

    fn exit_start_up(&mut self, _now: Time) {
        let win = &mut self.frame.win;
        win.ssth = win.ssth.min(win.w);
        self.frame.start.on_congestion();
    }

    fn on_mss_change(&mut self, ratio: f64) {
        assert_ratio(ratio);
        self.frame.win.w *= ratio;
        self.frame.win.ssth *= ratio;
        self.frame.start.on_mss_change(ratio);
        self.law.on_mss_change(ratio);
        let saved = &mut self.saved;
        saved.win.w *= ratio;
        saved.win.ssth *= ratio;
        saved.start.on_mss_change(ratio);
        saved.law.on_mss_change(ratio);
        self.frame.clamp();
    }

    fn on_pacing(&mut self) {
        self.frame.start.on_pacing();
        self.saved.start.on_pacing();
    }

    fn cap_window(&mut self, most: f64) {
        self.frame.setup.max_window = most.max(1.0);
        self.frame.clamp();
    }

    fn take_over(&mut self, ev: &TakeOver) {
        let has_slow_start = self.law.has_slow_start();
        self.frame.win = Window {
            w: ev.window,
            ssth: if has_slow_start { ev.ssthresh } else { 1.0 },
        };
        self.frame.after_rto = ev.phase == Phase::Loss;
        self.frame.clamp();
    }

    #[inline]
    fn window(&self) -> f64 {
        self.frame.win.w
    }

    #[inline]
    fn ssthresh(&self) -> f64 {
        self.frame.win.ssth
    }

    fn sets_rate(&self) -> bool {
        false
    }

    /// To be told of each lost segment.
    fn reads_rate(&self) -> bool {
        self.frame.setup.base == Base::Sent
    }

    fn reads_owd(&self) -> bool {
        self.law.reads_owd()
    }

    fn needs_ecn(&self) -> bool {
        self.law.needs_ecn()
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.frame.start.report(visit);
        self.law.report(self.frame.win.w, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gentle::GENTLE;
    use crate::rounds::{ack, loss};
    use crate::startup::limited::LIMITED;

    #[test]
    fn a_set_up_out_of_range_is_not_valid() {
        assert!(Setup::default().is_valid());
        for initial_window in [f64::NAN, f64::INFINITY, -5.0, 0.0] {
            let setup = Setup {
                initial_window,
                ..Setup::default()
            };
            assert!(!setup.is_valid(), "{initial_window}");
        }
        let setup = |max_window, slow_start_limit, mss, hz| Setup {
            max_window,
            slow_start_limit,
            mss,
            hz,
            ..Setup::default()
        };
        assert!(setup(f64::INFINITY, f64::INFINITY, 1, 1).is_valid());
        assert!(!setup(0.5, 2.0, 1448, 250).is_valid());
        assert!(!setup(f64::NAN, 2.0, 1448, 250).is_valid());
        assert!(!setup(100.0, 0.0, 1448, 250).is_valid());
        assert!(!setup(100.0, 2.0, 0, 250).is_valid());
        assert!(!setup(100.0, 2.0, 1448, 0).is_valid());
    }

    /// RFC 9002 section 7.2: ten datagrams, at most 14,720 bytes, never less than two.
    #[test]
    fn the_initial_window_of_quic() {
        for (mss, segments) in [(1200, 10.0), (1472, 10.0), (3680, 4.0), (65_000, 2.0)] {
            let setup = Setup::quic(mss);
            assert!(setup.is_valid());
            assert_eq!(setup.initial_window, segments, "{mss}");
        }
    }

    /// A segment that left as the 120th is lost, and 200 are out when that is found: Reno goes on
    /// with 60. The next loss is not one of slow start. One that left as the first of a burst
    /// counts as half of what is out.
    #[test]
    fn a_decrease_can_answer_what_was_out_when_the_loss_was_sent() {
        let setup = Setup {
            initial_window: 200.0,
            base: Base::Sent,
            ..Setup::default()
        };
        let start = LIMITED.make(&[]).unwrap();
        let law = crate::law::aimd::RENO.make(&[]).unwrap();
        let mut cc = Classic::new(start, law, None, setup);
        assert!(cc.reads_rate());
        let at = Time::from_secs_f64(0.1);
        let mut burst = cc.clone();
        cc.on_lost(&LostSegment::new(at, 7, 120));
        cc.on_lost(&LostSegment::new(at, 9, 122));
        cc.on_congestion(&loss(at, 200));
        assert_eq!((cc.window(), cc.ssthresh()), (60.0, 60.0));
        let at = Time::from_secs_f64(0.2);
        cc.on_lost(&LostSegment::new(at, 300, 30));
        cc.on_congestion(&loss(at, 60));
        assert_eq!(cc.window(), 30.0);
        burst.on_lost(&LostSegment::new(at, 0, 1));
        burst.on_congestion(&loss(at, 200));
        assert_eq!(burst.window(), 50.0);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "segment size changed by a factor of inf")]
    fn a_segment_of_no_bytes_is_a_mistake() {
        let law = GENTLE.make(&[]).unwrap();
        let start = LIMITED.make(&[]).unwrap();
        let mut cc = Classic::new(start, law, None, Setup::default());
        cc.on_mss_change(f64::INFINITY);
    }

    #[test]
    fn any_start_up_runs_with_any_law() {
        let start = LIMITED.make(&[("max_ssthresh", "4")]).unwrap();
        let law = GENTLE.make(&[("increase", "2")]).unwrap();
        let mut cc = Classic::new(start, law, None, Setup::default());
        // Limited Slow-Start: K = floor(10 / 2) = 5, so that two segments add 0.4.
        cc.on_ack(&ack(Time::ZERO, 2));
        assert!((cc.window() - 10.4).abs() < 1e-12, "{}", cc.window());
        cc.on_congestion(&loss(Time::ZERO, 20));
        assert!((cc.window() - 7.8).abs() < 1e-12, "{}", cc.window());
        // a n / w = 2 / 7.8.
        cc.on_ack(&ack(Time::ZERO, 1));
        assert!((cc.window() - (7.8 + 2.0 / 7.8)).abs() < 1e-12);
    }
}
