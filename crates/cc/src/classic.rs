//! Start-up x window law: the frame that every loss-driven and most delay-driven algorithms share.
//!
//! [`Classic`] owns what is the same for all of them: the slow-start test, byte or ACK counting, the base of a decrease,
//! the floors, the undo snapshot, the clamp. A [`WindowLaw`](crate::law::WindowLaw) and a
//! [`StartUp`](crate::startup::StartUp) hold only what their paper says.

use fullpipe_units::Time;

use crate::controller::{
    AckEvent, CongestionEvent, CongestionKind, Controller, Count, IdleEvent, RtoEvent,
};
use crate::law::{Law, WindowLaw};
use crate::startup::{Start, StartUp};

/// Window and threshold, real-valued segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window, segments.
    pub w: f64,
    /// Slow-start threshold, segments; infinite before the first reduction.
    pub ssth: f64,
}

/// Which window a decrease multiplies (RFC 5681 eq. 4 and RFC 9438 4.6: FlightSize; Linux: cwnd).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Base {
    /// `min(w, FlightSize)`.
    #[default]
    MinFlight,
    /// The window itself.
    Cwnd,
}

/// What the endpoint fixes for a controller when the flow is made.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Initial window, segments.
    pub initial_window: f64,
    /// Upper clamp of the window, segments; infinite for none.
    pub max_window: f64,
    /// How ACKs are counted.
    pub count: Count,
    /// `L`: most segments one ACK may add in slow start (RFC 3465 2.2: 2; infinite when paced, RFC 9406 4.2).
    pub slow_start_limit: f64,
    /// What a decrease multiplies.
    pub base: Base,
    /// Segment size, bytes of payload.
    pub mss: u32,
    /// The sender paces.
    pub paced: bool,
    /// Ticks per second of the clock that kernel modules read (Linux `CONFIG_HZ`).
    pub hz: u32,
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
        }
    }
}

/// A start-up and a window law, composed.
#[derive(Clone, Debug)]
pub struct Classic {
    win: Window,
    start: Start,
    law: Law,
    setup: Setup,
    /// Fraction kept on an ECN mark in congestion avoidance (RFC 8511); `None`: as on loss.
    ecn_keep: Option<f64>,
    /// An RTO happened and its data is not yet recovered: `L = 1` (RFC 3465 2.3).
    after_rto: bool,
    saved: Option<Saved>,
}

#[derive(Clone, Debug)]
struct Saved {
    win: Window,
    start: Start,
    law: Law,
}

impl Classic {
    /// A controller at the start of a connection. `ecn_keep` is ABE's kept fraction, if wanted.
    pub fn new(start: Start, law: Law, ecn_keep: Option<f64>, setup: Setup) -> Self {
        let ssth = if law.has_slow_start() {
            f64::INFINITY
        } else {
            1.0
        };
        let w = setup.initial_window.min(setup.max_window);
        Self {
            win: Window { w, ssth },
            start,
            law,
            setup,
            ecn_keep,
            after_rto: false,
            saved: None,
        }
    }

    fn base(&self, flight: u64) -> f64 {
        match self.setup.base {
            Base::MinFlight => self.win.w.min(flight as f64),
            Base::Cwnd => self.win.w,
        }
    }

    fn clamp(&mut self) {
        // As `max` and `min`, which would ask for a second time whether these are numbers.
        let (w, most) = (self.win.w, self.setup.max_window);
        let w = if w > 1.0 { w } else { 1.0 };
        self.win.w = if most < w { most } else { w };
    }

    fn save(&mut self) {
        self.saved = Some(Saved {
            win: self.win,
            start: self.start.clone(),
            law: self.law.clone(),
        });
    }
}

impl Controller for Classic {
    #[inline]
    fn on_ack(&mut self, ev: &AckEvent) {
        self.law.observe(&mut self.win, ev);
        let slow_start = self.win.w < self.win.ssth;
        if slow_start {
            self.start.observe(&mut self.win, ev);
        }
        if ev.may_grow() && !self.law.holds(ev.now) {
            let mut n = self.setup.count.of(ev);
            if n > 0.0 {
                if self.win.w < self.win.ssth {
                    let limit = if self.after_rto {
                        1.0
                    } else {
                        self.setup.slow_start_limit
                    };
                    n = self.start.grow(&mut self.win, n.min(limit), ev);
                }
                if n > 0.0 {
                    self.after_rto = false;
                    let n = n.min(self.win.w);
                    self.law.increase(&mut self.win, n, ev);
                }
            }
        }
        self.clamp();
    }

    fn on_congestion(&mut self, ev: &CongestionEvent) {
        // A mark or a local drop is never spurious, and a second loss in the same episode keeps the first snapshot.
        match (ev.kind, ev.first_in_window) {
            (CongestionKind::Loss, true) => self.save(),
            (CongestionKind::Loss, false) => {}
            _ => self.saved = None,
        }
        let avoidance = self.win.w >= self.win.ssth;
        let base = self.base(ev.flight);
        let mut ssth = self.law.decrease(self.win.w, base, ev);
        let floor = if ev.kind == CongestionKind::Ecn {
            1.0
        } else {
            2.0
        };
        if let (CongestionKind::Ecn, Some(keep), true) = (ev.kind, self.ecn_keep, avoidance) {
            ssth = keep * base;
        }
        self.win.ssth = ssth.max(floor);
        self.win.w = self.win.ssth.min(self.win.w);
        self.start.on_congestion();
        self.clamp();
    }

    fn on_rto(&mut self, ev: &RtoEvent) {
        if ev.first {
            self.save();
            let base = self.base(ev.flight);
            self.win.ssth = self.law.on_rto(self.win.w, base, ev).max(2.0);
            self.start.on_congestion();
        }
        self.win.w = 1.0;
        self.after_rto = true;
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.after_rto = false;
        self.law.on_recovery_exit(&mut self.win, now);
        self.clamp();
    }

    fn on_undo(&mut self, now: Time) {
        if let Some(saved) = self.saved.take() {
            self.win.w = self.win.w.max(saved.win.w);
            self.win.ssth = self.win.ssth.max(saved.win.ssth);
            self.law = saved.law;
            self.start = saved.start;
            self.after_rto = false;
            self.law.on_undo(&mut self.win, now);
            self.clamp();
        }
    }

    fn on_idle(&mut self, ev: &IdleEvent) {
        self.win.w = ev.window;
        self.win.ssth = ev.ssthresh;
        self.start.on_idle(ev);
        self.law.on_idle(ev);
        self.clamp();
    }

    fn exit_start_up(&mut self, _now: Time) {
        self.win.ssth = self.win.ssth.min(self.win.w);
        self.start.on_congestion();
    }

    fn on_mss_change(&mut self, ratio: f64) {
        self.win.w *= ratio;
        self.win.ssth *= ratio;
        self.start.on_mss_change(ratio);
        self.law.on_mss_change(ratio);
        if let Some(saved) = &mut self.saved {
            saved.win.w *= ratio;
            saved.win.ssth *= ratio;
            saved.start.on_mss_change(ratio);
            saved.law.on_mss_change(ratio);
        }
        self.clamp();
    }

    #[inline]
    fn window(&self) -> f64 {
        self.win.w
    }

    #[inline]
    fn ssthresh(&self) -> f64 {
        self.win.ssth
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.start.report(visit);
        self.law.report(self.win.w, visit);
    }
}
