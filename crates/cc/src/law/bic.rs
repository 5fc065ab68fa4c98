//! BIC: a binary search between the window after the last loss and the window of that loss, linear
//! where they are far apart.
//!
//! Documents: Linux `tcp_bic.c` (2.6.22 and recent); the paper's constants (`bic-paper`) are from
//! secondary texts. What differs: the window is real-valued, and above `low_window` every
//! acknowledged segment counts even where the endpoint counts ACKs, in place of Linux's average of
//! segments per ACK; `rule=linux` rounds the increase as the kernel does.
//! Fast convergence is `w (1+beta)/2`, not the `beta w` of ns-3.
//!
//! First ACK in avoidance and loss in start-up: nothing special; before any loss the window grows
//! by at least 5 % per RTT. A lost retransmission reduces again, with fast convergence. Timeout: as
//! a loss, and the last maximum is forgotten. Mark: as a loss. Undo restores the maximum, a new
//! segment size scales it, idle time leaves it. An application-limited flow does not grow.

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, RtoEvent};
use crate::entry::Entry;
use crate::params::ParamSpec;

/// Parameters of BIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BicParams {
    /// Window up to which the flow is Reno, segments.
    pub low_window: f64,
    /// Largest increase, segments per RTT.
    pub s_max: f64,
    /// Increase close to the last maximum, segments per RTT.
    pub s_min: f64,
    /// Divisor of the search.
    pub b: f64,
    /// Search distance (after the division) up to which the increase is `s_min`, segments.
    pub close: f64,
    /// Fraction kept on loss.
    pub beta: f64,
    /// Give way when the last maximum was not reached.
    pub fast_convergence: bool,
    /// Round as Linux does.
    pub integer: bool,
}

impl BicParams {
    /// Linux's constants: 20 RTTs within `B = 4` of the maximum make 0.2 segments per RTT.
    pub const LINUX: Self = Self {
        low_window: 14.0,
        s_max: 16.0,
        s_min: 0.2,
        b: 4.0,
        close: 1.0,
        beta: 819.0 / 1024.0,
        fast_convergence: true,
        integer: false,
    };

    /// The paper's.
    pub const PAPER: Self = Self {
        s_max: 32.0,
        s_min: 0.01,
        b: 2.0,
        close: 0.01,
        beta: 0.875,
        ..Self::LINUX
    };

    /// Up to `low_window` the flow is Reno; Linux's window has whole segments.
    fn is_low(&self, w: f64) -> bool {
        let w = if self.integer { libm::floor(w) } else { w };
        w <= self.low_window
    }

    /// Increase per RTT at window `w`, segments; `w_max` is 0 before any loss.
    pub fn increase(&self, w: f64, w_max: f64) -> f64 {
        if self.integer {
            let w = libm::floor(w);
            return w / self.count(w, w_max);
        }
        if self.is_low(w) {
            return 1.0;
        }
        let search = (w - w_max).abs() / self.b;
        let inc = if search <= self.close {
            self.s_min
        } else if w < w_max {
            search
        } else {
            (w - w_max) / (self.b - 1.0)
        };
        let inc = inc.min(self.s_max);
        if w_max == 0.0 {
            inc.max(FIRST_GROWTH * w)
        } else {
            inc
        }
    }

    /// Linux's `cnt`: segments to be acknowledged for one segment of growth, all in whole numbers.
    pub fn count(&self, w: f64, w_max: f64) -> f64 {
        let (w, w_max) = (libm::floor(w), libm::floor(w_max));
        if w <= self.low_window {
            return w;
        }
        // w * 20 / 4, whatever 0.2 is in binary.
        let close = libm::floor(w / self.s_min * (1.0 + 1e-12));
        let count = if w < w_max {
            let distance = libm::floor((w_max - w) / self.b);
            if distance > self.s_max {
                libm::floor(w / self.s_max)
            } else if distance <= self.close {
                close
            } else {
                libm::floor(w / distance)
            }
        } else if w < w_max + self.b {
            close
        } else if w < w_max + self.s_max * (self.b - 1.0) {
            libm::floor(w * (self.b - 1.0) / (w - w_max))
        } else {
            libm::floor(w / self.s_max)
        };
        let count = if w_max == 0.0 {
            count.min(1.0 / FIRST_GROWTH)
        } else {
            count
        };
        count.max(1.0)
    }

    /// Fraction kept on loss at window `w`.
    pub fn kept(&self, w: f64) -> f64 {
        if self.is_low(w) { 0.5 } else { self.beta }
    }
}

/// BIC.
#[derive(Clone, Debug)]
pub struct Bic {
    params: BicParams,
    /// Window of the last loss, lowered by fast convergence; 0: none.
    w_max: f64,
}

impl Bic {
    /// BIC with `params`.
    pub fn new(params: BicParams) -> Self {
        Self { params, w_max: 0.0 }
    }

    fn cut(&self, w: f64, base: f64) -> f64 {
        let kept = self.params.kept(w) * base;
        if self.params.integer {
            libm::floor(kept)
        } else {
            kept
        }
    }
}

impl WindowLaw for Bic {
    #[inline]
    fn counts_segments(&self, w: f64) -> bool {
        !self.params.is_low(w)
    }

    #[inline]
    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        win.w += if self.params.integer {
            n / self.params.count(win.w, self.w_max)
        } else {
            self.params.increase(win.w, self.w_max) * n / win.w
        };
    }

    fn decrease(&mut self, w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        let converge = self.params.fast_convergence && w < self.w_max;
        self.w_max = if converge {
            w * (1.0 + self.params.beta) / 2.0
        } else {
            w
        };
        if self.params.integer {
            self.w_max = libm::floor(self.w_max);
        }
        self.cut(w, base)
    }

    fn on_rto(&mut self, w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        self.w_max = 0.0;
        self.cut(w, base)
    }

    fn on_mss_change(&mut self, ratio: f64) {
        self.w_max *= ratio;
    }

    fn report(&self, w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("w_max", self.w_max);
        visit("a", self.params.increase(w, self.w_max));
    }
}

/// Growth per segment before any loss: 5 % per RTT (Linux).
const FIRST_GROWTH: f64 = 1.0 / 20.0;

const LOW_WINDOW: ParamSpec = param!(low_window: number =
    BicParams::LINUX.low_window, 0.0..=1e6, "segments",
    "window up to which the flow is Reno", "Linux tcp_bic.c");
const FAST_CONVERGENCE: ParamSpec = param!(fast_convergence: flag = true,
    "after a loss below the last maximum remember less than the window",
    "Linux tcp_bic.c");

const fn s_max(default: f64, source: &'static str) -> ParamSpec {
    param!(s_max: number = default, 1.0..=1e6, "segments/RTT", "largest increase", source)
}

const fn beta(default: f64, source: &'static str) -> ParamSpec {
    param!(beta: number = default, 0.01..=0.99, "fraction", "fraction kept on loss", source).kept()
}

/// `bic`.
pub const BIC: Entry<Bic> = Entry {
    name: "bic",
    aliases: &[],
    about: "BIC: binary search for the window of the last loss (Linux constants)",
    source: "Linux tcp_bic.c",
    params: &[
        LOW_WINDOW,
        s_max(BicParams::LINUX.s_max, "Linux tcp_bic.c, max_increment"),
        param!(smooth_part: number = 20.0, 1.0..=1e6, "RTT",
            "time to cover the last B = 4 segments below the maximum", "Linux tcp_bic.c"),
        beta(BicParams::LINUX.beta, "Linux tcp_bic.c: 819/1024"),
        FAST_CONVERGENCE,
        param!(rule: choice = &["real", "linux"],
            "real-valued increase, or rounded through whole segments per segment as in Linux",
            "Linux tcp_bic.c"),
    ],
    build: |p| {
        let params = BicParams {
            low_window: p.number("low_window"),
            s_max: p.number("s_max"),
            s_min: BicParams::LINUX.b / p.number("smooth_part"),
            beta: p.number("beta"),
            fast_convergence: p.flag("fast_convergence"),
            integer: p.word("rule") == "linux",
            ..BicParams::LINUX
        };
        Ok(Bic::new(params))
    },
};

/// `bic-paper`.
pub const BIC_PAPER: Entry<Bic> = Entry {
    name: "bic-paper",
    aliases: &[],
    about: "BIC with the constants of its paper: midpoint search, 32 and 0.01 segments per RTT, \
        1/8 less on loss",
    source: "paper of 2004, from secondary texts",
    params: &[
        LOW_WINDOW,
        s_max(BicParams::PAPER.s_max, "paper, unverified"),
        param!(s_min: number = BicParams::PAPER.s_min, 1e-6..=1.0, "segments/RTT",
            "smallest increase", "paper, unverified"),
        beta(BicParams::PAPER.beta, "paper, unverified"),
        FAST_CONVERGENCE,
    ],
    build: |p| {
        let s_min = p.number("s_min");
        let params = BicParams {
            low_window: p.number("low_window"),
            s_max: p.number("s_max"),
            s_min,
            close: s_min,
            beta: p.number("beta"),
            fast_convergence: p.flag("fast_convergence"),
            ..BicParams::PAPER
        };
        Ok(Bic::new(params))
    },
};

#[cfg(test)]
mod tests {
    use fullpipe_units::{Span, Time};

    use super::*;
    use crate::controller::{CongestionKind, Controller, IdleEvent};
    use crate::rounds::{Rounds, loss};

    const RTT: Span = Span::from_millis(100);

    fn flow(spelling: &str, w: f64) -> Rounds {
        Rounds::avoiding(spelling, RTT, w)
    }

    #[test]
    fn before_any_loss_it_grows_by_five_percent_or_sixteen_segments() {
        let mut large = flow("bic", 1000.0);
        large.acks(1);
        assert!((large.w() - 1000.05).abs() < 1e-12);
        let mut small = flow("bic", 100.0);
        small.acks(1);
        assert!((small.w() - 100.16).abs() < 1e-12);
    }

    #[test]
    fn up_to_low_window_it_is_reno() {
        let mut flow = flow("bic", 14.0);
        flow.acks(1);
        assert_eq!(flow.w(), 14.0 + 1.0 / 14.0);
        let mut flow = super::tests::flow("bic", 14.0);
        flow.lose();
        assert_eq!(flow.w(), 7.0);
        let mut flow = super::tests::flow("bic", 14.5);
        flow.acks(1);
        assert!((flow.w() - 14.5 - 14.5 / 3.0 / 14.5).abs() < 1e-12);
        // Linux's window is 14 then.
        let mut flow = super::tests::flow("bic(rule=linux)", 14.5);
        flow.acks(1);
        assert_eq!(flow.w(), 14.5 + 1.0 / 14.0);
        flow.lose();
        assert_eq!(flow.w(), 7.0);
        let bic = |rule| {
            Bic::new(BicParams {
                integer: rule == "linux",
                ..BicParams::LINUX
            })
        };
        assert!(bic("real").counts_segments(14.5) && !bic("linux").counts_segments(14.5));
        assert!(bic("linux").counts_segments(15.0) && !bic("real").counts_segments(14.0));
    }

    #[test]
    fn the_search_slows_down_towards_the_maximum_and_speeds_up_behind_it() {
        let bic = BicParams::LINUX;
        for (w, inc) in [
            (800.0, 16.0),
            (935.0, 16.0),
            (940.0, 15.0),
            (990.0, 2.5),
            (996.5, 0.2),
            (1000.0, 0.2),
            (1003.9, 0.2),
            (1004.5, 1.5),
            (1030.0, 10.0),
            (1048.0, 16.0),
            (2000.0, 16.0),
        ] {
            assert!((bic.increase(w, 1000.0) - inc).abs() < 1e-12, "{w}");
        }
        let paper = BicParams::PAPER;
        for (w, inc) in [
            (900.0, 32.0),
            (960.0, 20.0),
            (999.0, 0.5),
            (999.99, 0.01),
            (1000.0, 0.01),
            (1010.0, 10.0),
            (1100.0, 32.0),
        ] {
            assert!((paper.increase(w, 1000.0) - inc).abs() < 1e-12, "{w}");
        }
    }

    #[test]
    fn the_papers_constants_are_the_defaults_of_its_entry() {
        let mut flow = flow("bic-paper", 1000.0);
        flow.lose();
        assert_eq!(flow.w(), 875.0);
        flow.acks(1);
        assert!((flow.w() - 875.0 - 32.0 / 875.0).abs() < 1e-12);
        flow.stack.on_undo(Time::ZERO);
        flow.lose();
        flow.stack.on_idle(&IdleEvent {
            now: Time::ZERO,
            idle: Span::ZERO,
            window: 1000.0,
            ssthresh: 2.0,
        });
        flow.acks(1);
        assert!(
            (flow.w() - 1000.0 - 0.01 / 1000.0).abs() < 1e-12,
            "{}",
            flow.w()
        );
    }

    #[test]
    fn a_loss_in_start_up_sets_the_maximum() {
        let mut flow = Rounds::starting("bic", RTT, 1000.0);
        flow.lose();
        assert!((flow.w() - 1000.0 * 819.0 / 1024.0).abs() < 1e-9);
        assert_eq!(flow.reported("w_max"), Some(1000.0));
    }

    #[test]
    fn fast_convergence_and_a_lost_retransmission() {
        let kept = 819.0 / 1024.0;
        let mut flow = flow("bic", 1000.0);
        flow.stack.on_congestion(&loss(Time::ZERO, 1000));
        flow.stack.on_congestion(&CongestionEvent {
            first_in_window: false,
            ..loss(Time::ZERO, 1000)
        });
        assert!((flow.w() - 1000.0 * kept * kept).abs() < 1e-9);
        let w_max = flow.reported("w_max").unwrap();
        assert!((w_max - 1000.0 * kept * (1.0 + kept) / 2.0).abs() < 1e-9);
        let mut without = super::tests::flow("bic(fast_convergence=off)", 1000.0);
        without.lose();
        without.lose();
        assert!((without.reported("w_max").unwrap() - 1000.0 * kept).abs() < 1e-9);
    }

    #[test]
    fn a_timeout_forgets_the_maximum_and_a_mark_is_a_loss() {
        let mut late = flow("bic", 1000.0);
        late.lose();
        late.time_out();
        assert_eq!((late.w(), late.reported("w_max")), (1.0, Some(0.0)));
        assert!((late.stack.ssthresh() - 1000.0 * (819.0f64 / 1024.0).powi(2)).abs() < 1e-9);
        let mut marked = flow("bic", 1000.0);
        marked.congest(CongestionKind::Ecn);
        assert!((marked.w() - 799.8046875).abs() < 1e-9);
        assert_eq!(marked.reported("w_max"), Some(1000.0));
    }

    #[test]
    fn undo_restores_and_a_new_segment_size_scales_the_maximum() {
        let mut flow = flow("bic", 1000.0);
        flow.lose();
        flow.round();
        let w = flow.w();
        flow.stack.on_congestion(&loss(flow.now, 2000));
        flow.stack.on_mss_change(0.5);
        flow.stack.on_undo(flow.now);
        assert_eq!((flow.w(), flow.reported("w_max")), (w / 2.0, Some(500.0)));
    }

    #[test]
    fn an_unfilled_window_does_not_grow() {
        let mut flow = flow("bic", 1000.0);
        flow.cwnd_limited = false;
        flow.round();
        assert_eq!(flow.w(), 1000.0);
    }

    #[test]
    fn linux_rounds_growth_and_cut_to_whole_numbers() {
        let mut flow = flow("bic(rule=linux)", 1000.0);
        flow.lose();
        assert_eq!((flow.w(), flow.reported("w_max")), (799.0, Some(1000.0)));
        flow.acks(1);
        assert!((flow.w() - 799.0 - 1.0 / 49.0).abs() < 1e-12);
    }
}
