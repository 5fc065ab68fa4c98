//! CUBIC: the window is a cubic function of the time since the last congestion event, flat around
//! the window of that event.
//!
//! Documents: RFC 9438 sections 4.1 to 4.10; Linux `tcp_cubic.c`. What differs:
//!
//! - The RFC adds `(target - cwnd)/cwnd` per ACK; here it is per acknowledged segment, never past
//!   the target.
//! - In the Reno-friendly region the window follows `W_est` upwards only.
//!
//! First ACK in avoidance: an epoch starts. Loss in start-up: `W_max` is the window. A lost
//! retransmission: reduces again, with fast convergence. Timeout: the next epoch is convex from its
//! first window (`K = 0`). Mark: as a loss. Undo: epoch and `W_max` come back. Idle and
//! application-limited time does not count in the epoch. A new segment size starts a new epoch.

use fullpipe_units::{Span, Time};

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, IdleEvent, RestartEvent, RtoEvent};
use crate::entry::Entry;
use crate::params::ParamSpec;

/// Parameters of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicParams {
    /// `C`, segments/s^3.
    pub c: f64,
    /// Fraction kept on loss.
    pub beta: f64,
    /// Give way when the last maximum was not reached.
    pub fast_convergence: bool,
    /// Never slower than a Reno flow with the same decrease.
    pub friendly: bool,
}

impl CubicParams {
    /// RFC 9438 for a given `c` and `beta`.
    pub fn rfc(c: f64, beta: f64) -> Self {
        Self {
            c,
            beta,
            fast_convergence: true,
            friendly: true,
        }
    }

    /// Seconds from `w` segments up to the plateau at `w_max`: `K` of RFC 9438 equation 2.
    pub fn k(&self, w_max: f64, w: f64) -> f64 {
        libm::cbrt((w_max - w) / self.c)
    }

    /// Window `t` seconds into an epoch, segments (RFC 9438 equation 1).
    #[inline]
    pub fn w_cubic(&self, t: f64, k: f64, w_max: f64) -> f64 {
        let d = t - k;
        self.c * d * d * d + w_max
    }

    /// Mean window, segments, at `p` losses per segment and `rtt` seconds (RFC 9438 equation 5):
    /// `(C (3+beta) / (4 (1-beta)))^(1/4) (rtt/p)^(3/4)`.
    pub fn mean_window(&self, rtt: f64, p: f64) -> f64 {
        let factor = self.c * (3.0 + self.beta) / (4.0 * (1.0 - self.beta));
        libm::sqrt(libm::sqrt(factor)) * libm::pow(rtt / p, 0.75)
    }
}

/// Increase that makes AIMD with `beta` kept as fast as Reno: `3 (1-beta)/(1+beta)` (RFC 9438
/// section 4.3).
pub fn alpha_cubic(beta: f64) -> f64 {
    3.0 * (1.0 - beta) / (1.0 + beta)
}

/// CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    params: CubicParams,
    w_max: f64,
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// A timeout came after the last epoch.
    after_rto: bool,
    /// Time of the last ACK.
    last: Time,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    k: f64,
    w_est: f64,
    alpha: f64,
    /// The window that the law set last.
    set: f64,
}

impl Cubic {
    /// CUBIC with `params`.
    pub fn new(params: CubicParams) -> Self {
        Self {
            params,
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            after_rto: false,
            last: Time::ZERO,
        }
    }

    #[cold]
    fn begin(&mut self, w: f64, now: Time) -> Epoch {
        if self.after_rto || w >= self.w_max {
            self.w_max = w;
            self.after_rto = false;
        }
        let k = self.params.k(self.w_max, w);
        Epoch {
            start: now,
            k,
            w_est: w,
            alpha: alpha_cubic(self.params.beta),
            set: w,
        }
    }

    /// Leaves `idle` out of the epoch (RFC 9438 section 5.8).
    #[cold]
    fn pause(&mut self, now: Time, idle: Span) {
        // ACKs and calls that came in during the pause have shifted the epoch already.
        let pause = idle.min(now.saturating_since(self.last));
        if let Some(epoch) = &mut self.epoch {
            epoch.start += pause;
        }
        self.last = now;
    }

    fn remember(&mut self, w: f64) {
        let converge = self.params.fast_convergence && w < self.w_max;
        self.w_max = if converge {
            w * (1.0 + self.params.beta) / 2.0
        } else {
            w
        };
        self.cwnd_prior = w;
        self.epoch = None;
    }
}

impl WindowLaw for Cubic {
    #[inline]
    fn observe(&mut self, _win: &mut Window, ev: &AckEvent) {
        if !ev.cwnd_limited
            && let Some(epoch) = &mut self.epoch
        {
            epoch.start += ev.now.saturating_since(self.last);
        }
        self.last = ev.now;
    }

    #[inline]
    fn increase(&mut self, win: &mut Window, n: f64, ev: &AckEvent) {
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(win.w, ev.now),
        };
        let params = &self.params;
        let t = ev.now.saturating_since(epoch.start).as_secs_f64();
        let share = n / win.w;
        // A cap took back what the law gave: the Reno flow beside it has that cap as well.
        if win.w < epoch.set {
            epoch.w_est = epoch.w_est.min(win.w);
        }
        epoch.w_est += epoch.alpha * share;
        if epoch.w_est >= self.cwnd_prior {
            epoch.alpha = RENO_INCREASE;
        }
        win.w = if params.friendly && params.w_cubic(t, epoch.k, self.w_max) < epoch.w_est {
            epoch.w_est.max(win.w)
        } else {
            let target = params.w_cubic(t + ev.srtt.as_secs_f64(), epoch.k, self.w_max);
            win.w + (target - win.w).clamp(0.0, 0.5 * win.w) * share
        };
        epoch.set = win.w;
        self.epoch = Some(epoch);
    }

    fn decrease(&mut self, w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        self.remember(w);
        self.after_rto = false;
        self.params.beta * base
    }

    fn on_rto(&mut self, w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        self.remember(w);
        self.after_rto = true;
        self.params.beta * base
    }

    fn on_idle(&mut self, ev: &IdleEvent) {
        self.pause(ev.now, ev.idle);
    }

    fn on_restart(&mut self, ev: &RestartEvent) {
        // A window of one segment leaves nothing in flight either, and is no pause.
        if ev.app_limited {
            self.pause(ev.now, ev.idle);
        }
    }

    fn on_mss_change(&mut self, ratio: f64) {
        self.w_max *= ratio;
        self.cwnd_prior *= ratio;
        self.epoch = None;
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("w_max", self.w_max);
        // Always the same names: a trace knows its columns before the first epoch.
        visit("k", self.epoch.map_or(f64::NAN, |e| e.k));
        visit("w_est", self.epoch.map_or(f64::NAN, |e| e.w_est));
    }
}

/// Increase of the Reno flow from the window of the last event on (RFC 9438 section 4.3).
const RENO_INCREASE: f64 = 1.0;

const FAST_CONVERGENCE: ParamSpec = param!(fast_convergence: flag = true,
    "after a loss below the last maximum remember less than the window",
    "RFC 9438 section 4.7");
const FRIENDLINESS: ParamSpec = param!(tcp_friendliness: flag = true,
    "never slower than a Reno flow with the same decrease",
    "RFC 9438 section 4.3");

/// `cubic`.
pub const CUBIC: Entry<Cubic> = Entry {
    name: "cubic",
    aliases: &[],
    about: "CUBIC: window as a cubic function of the time since the last congestion event",
    source: "RFC 9438",
    params: &[
        param!(c: number = 0.4, 1e-4..=100.0, "segments/s^3",
            "aggressiveness of the cubic", "RFC 9438 section 4.1"),
        param!(beta: number = 0.7, 0.01..=0.99, "fraction",
            "fraction kept on loss", "RFC 9438 section 4.6")
        .kept(),
        FAST_CONVERGENCE,
        FRIENDLINESS,
    ],
    build: |p| {
        let params = CubicParams {
            fast_convergence: p.flag("fast_convergence"),
            friendly: p.flag("tcp_friendliness"),
            ..CubicParams::rfc(p.number("c"), p.number("beta"))
        };
        Ok(Cubic::new(params))
    },
};

#[cfg(test)]
mod tests {
    use fullpipe_units::Span;

    use super::*;
    use crate::controller::{CongestionKind, Controller};
    use crate::rounds::{Rounds, ack, loss};

    const RTT: Span = Span::from_millis(100);

    fn flow(spelling: &str, w: f64) -> Rounds {
        Rounds::avoiding(spelling, RTT, w)
    }

    fn seconds(flow: &mut Rounds, s: u64) {
        for _ in 0..10 * s {
            flow.round();
        }
    }

    fn w_cubic(t: f64, from: f64, w_max: f64) -> f64 {
        let params = CubicParams::rfc(0.4, 0.7);
        params.w_cubic(t, params.k(w_max, from), w_max)
    }

    #[test]
    fn the_first_ack_starts_an_epoch_on_the_plateau() {
        let mut flow = flow("cubic", 1000.0);
        flow.acks(1);
        assert_eq!(
            (flow.reported("k"), flow.reported("w_max")),
            (Some(0.0), Some(1000.0))
        );
        seconds(&mut flow, 5);
        let want = w_cubic(5.0, 1000.0, 1000.0);
        assert!(
            (flow.w() - want).abs() < 0.05 * (want - 1000.0),
            "{}",
            flow.w()
        );
    }

    #[test]
    fn after_a_loss_the_window_follows_the_curve_back() {
        let mut early = Rounds::starting("cubic", RTT, 1000.0); // in start-up
        early.lose();
        assert_eq!(early.w(), 700.0);
        for s in 1..=12 {
            seconds(&mut early, 1);
            // The target is one RTT ahead and approached by 1/RTT: within 1.5 % of the curve here.
            let want = w_cubic(f64::from(s), 700.0, 1000.0);
            assert!(
                (early.w() - want).abs() < 0.015 * want,
                "{s} s: {} {want}",
                early.w()
            );
        }
    }

    /// Under a cap the Reno flow beside it has the cap as well: when the cap ends, the window grows
    /// by half of itself a round trip at most, as it does towards the curve (RFC 9438 section 4.4).
    #[test]
    fn the_end_of_a_cap_lets_no_burst_out() {
        let mut flow = Rounds::starting("cubic", Span::from_millis(2), 50.0);
        flow.lose();
        flow.stack.cap_window(50.0);
        for _ in 0..15_000 {
            flow.round();
        }
        assert_eq!(flow.w(), 50.0);
        flow.stack.cap_window(f64::INFINITY);
        let mut before = flow.w();
        for _ in 0..10 {
            flow.round();
            assert!(flow.w() <= 1.65 * before, "{before} {}", flow.w());
            before = flow.w();
        }
    }

    #[test]
    fn a_stretch_ack_never_passes_the_target_nor_half_the_window() {
        let mut law = Cubic::new(CubicParams::rfc(0.4, 0.7));
        law.remember(1000.0);
        let mut win = Window {
            w: 700.0,
            ssth: 1.0,
        };
        law.increase(&mut win, 0.0, &ack(Time::ZERO, 1));
        law.increase(&mut win, 700.0, &ack(Time::from_secs_f64(3.0), 700));
        assert!((win.w - w_cubic(3.1, 700.0, 1000.0)).abs() < 1e-9);
        let w = win.w;
        law.increase(&mut win, w, &ack(Time::from_secs_f64(60.0), 700));
        assert!((win.w - 1.5 * w).abs() < 1e-9);
    }

    #[test]
    fn in_the_reno_friendly_region_it_keeps_up_with_reno() {
        let rtt = Span::from_millis(10);
        let mut cubic = Rounds::starting("cubic", rtt, 40.0);
        cubic.lose();
        for _ in 0..20 {
            cubic.round();
        }
        let w_est = cubic.reported("w_est").unwrap();
        assert!(
            (w_est - 28.0 - 20.0 * alpha_cubic(0.7)).abs() < 0.4,
            "{w_est}"
        );
        assert!((cubic.w() - w_est).abs() < 0.1);
        for _ in 0..20 {
            cubic.round();
        }
        // From the window of the loss on one segment per RTT: 12 / 0.529 = 22.7 rounds below it,
        // the rest above.
        let w_est = cubic.reported("w_est").unwrap();
        assert!((w_est - 40.0 - (40.0 - 22.67)).abs() < 1.2, "{w_est}"); // whole segments cost 0.9
        let mut without = Rounds::starting("cubic(tcp_friendliness=off)", rtt, 40.0);
        without.lose();
        for _ in 0..40 {
            without.round();
        }
        assert!(without.w() < 36.0, "{}", without.w());
    }

    #[test]
    fn fast_convergence_gives_way_below_the_last_maximum() {
        for (spelling, w_max) in [("cubic", 595.0), ("cubic(fast_convergence=off)", 700.0)] {
            let mut flow = Rounds::starting(spelling, RTT, 1000.0);
            flow.lose();
            flow.lose();
            assert_eq!(flow.reported("w_max"), Some(w_max), "{spelling}");
        }
    }

    #[test]
    fn a_lost_retransmission_reduces_again() {
        let mut flow = flow("cubic", 1000.0);
        flow.stack.on_congestion(&loss(Time::ZERO, 1000));
        flow.stack.on_congestion(&CongestionEvent {
            first_in_window: false,
            ..loss(Time::ZERO, 1000)
        });
        assert!((flow.w() - 490.0).abs() < 1e-9);
    }

    #[test]
    fn after_a_timeout_the_epoch_is_convex_from_its_first_window() {
        let mut flow = flow("cubic", 1000.0);
        flow.time_out();
        assert_eq!((flow.w(), flow.stack.ssthresh()), (1.0, 700.0));
        while flow.stack.in_start_up() {
            flow.round();
        }
        flow.round();
        assert_eq!(flow.reported("k"), Some(0.0));
        let w_max = flow.reported("w_max").unwrap();
        assert!((700.0..705.0).contains(&w_max), "{w_max}");
    }

    #[test]
    fn a_mark_is_a_loss_and_abe_keeps_more() {
        for (spelling, kept) in [("cubic", 700.0), ("cubic(ecn_keep=0.85)", 850.0)] {
            let mut flow = flow(spelling, 1000.0);
            flow.congest(CongestionKind::Ecn);
            assert!((flow.w() - kept).abs() < 1e-9);
            assert_eq!(flow.reported("w_max"), Some(1000.0));
        }
    }

    #[test]
    fn undo_restores_the_epoch() {
        let mut flow = Rounds::starting("cubic", RTT, 1000.0);
        flow.lose();
        seconds(&mut flow, 4);
        let (w, k, w_est) = (flow.w(), flow.reported("k"), flow.reported("w_est"));
        flow.stack.on_congestion(&loss(flow.now, 1000));
        assert_eq!(flow.reported("k"), None);
        flow.stack.on_undo(flow.now);
        assert_eq!(
            (flow.w(), flow.reported("k"), flow.reported("w_est")),
            (w, k, w_est)
        );
        assert_eq!(flow.reported("w_max"), Some(1000.0));
    }

    #[test]
    fn pauses_do_not_count_in_the_epoch() {
        let mut steady = Rounds::starting("cubic", RTT, 1000.0);
        steady.lose();
        seconds(&mut steady, 2);
        let mut limited = steady.stack.clone();
        let mut idle = steady.stack.clone();
        let window = idle.window();
        let pause = Span::from_secs(60);
        for i in 1..=600 {
            let now = steady.now + RTT * i;
            limited.on_ack(&crate::AckEvent {
                cwnd_limited: false,
                ..ack(now, 5)
            });
        }
        assert_eq!(limited.window(), window);
        let now = steady.now + pause;
        idle.on_idle(&IdleEvent {
            now,
            idle: pause,
            window,
            ssthresh: 700.0,
        });
        let ms = Span::from_millis(1);
        steady.stack.on_ack(&ack(steady.now + ms, 1));
        limited.on_ack(&ack(now + ms, 1));
        idle.on_ack(&ack(now + ms, 1));
        assert!((limited.window() - steady.w()).abs() < 1e-9);
        assert!((idle.window() - steady.w()).abs() < 1e-9);
    }

    #[test]
    fn a_new_segment_size_starts_a_new_epoch_at_the_same_place() {
        let mut flow = Rounds::starting("cubic", RTT, 1000.0);
        flow.lose();
        seconds(&mut flow, 2);
        let w = flow.w();
        flow.stack.on_mss_change(2.0);
        flow.acks(1);
        assert_eq!(flow.reported("w_max"), Some(2000.0));
        let k = libm::cbrt((2000.0 - 2.0 * w) / 0.4);
        assert!((flow.reported("k").unwrap() - k).abs() < 1e-9);
    }
}
