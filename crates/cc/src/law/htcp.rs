//! H-TCP: the increase grows with the time since the last congestion event, the decrease follows the RTT's range.
//!
//! Documents: Linux `tcp_htcp.c` (2.6.22 and recent), FreeBSD `cc_htcp`, ns-3 `tcp-htcp.cc`. The quadratic coefficient is the
//! 1/4 of all code (`((D - Delta_L)/2)^2`), not the 0.5 of the ns-3 manual. RTT scaling is off by default (as in
//! FreeBSD), the adaptive decrease on (as in Linux and the paper).
//!
//! - First ACK: the clock of the increase starts. A loss in start-up is a loss: it halves, because no throughput was
//!   remembered. A lost retransmission repeats the present decrease and learns nothing. Timeout and mark: as a loss; the RTT
//!   extremes stay. The clock starts again when recovery ends, as in Linux.
//! - Undo brings back the clock, the RTT extremes, the throughput memory and the decrease; `w >= ssth/beta` of Linux is the window
//!   itself here, which the frame restores. Idle time is no time since the last event: the clock is shifted (ours). An
//!   application-limited flow does not grow, but its clock runs. A new segment size scales the throughput memory.

use fullpipe_units::{Span, Time};

use crate::classic::Window;
use crate::controller::{AckEvent, CongestionEvent, IdleEvent, Phase, RtoEvent};
use crate::law::{Law, WindowLaw};
use crate::params::{ParamSpec, Params};
use crate::registry::{Component, Entry, Kind};

/// Parameters of H-TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HtcpParams {
    /// Time after an event during which the increase is Reno's, s (`Delta_L`).
    pub delta_l: f64,
    /// Smallest fraction kept.
    pub beta_min: f64,
    /// Largest fraction kept.
    pub beta_max: f64,
    /// Relative change of the throughput that makes the decrease `beta_min`; 0: not tested.
    pub bandwidth_switch: f64,
    /// Keep `RTTmin/RTTmax` instead of `beta_min`.
    pub adaptive_backoff: bool,
    /// Multiply the increase by `RTTmin/100 ms`, between 0.1 and 2.
    pub rtt_scaling: bool,
}

impl HtcpParams {
    /// The defaults of the registry.
    pub const DEFAULT: Self = Self {
        delta_l: 1.0,
        beta_min: 0.5,
        beta_max: 0.8,
        bandwidth_switch: 0.2,
        adaptive_backoff: true,
        rtt_scaling: false,
    };

    /// Increase factor `delta` seconds after the last event: `1 + 10 (D - D_L) + ((D - D_L)/2)^2`.
    pub fn f(&self, delta: f64) -> f64 {
        if delta <= self.delta_l {
            return 1.0;
        }
        let late = delta - self.delta_l;
        let half = 0.5 * late;
        1.0 + LINEAR * late + half * half
    }

    /// Factor of the RTT scaling.
    pub fn scale(min_rtt: Span) -> f64 {
        min_rtt.ratio(REFERENCE_RTT).clamp(0.1, 2.0)
    }

    /// Increase per RTT, segments: `2 (1 - beta) f(delta)`, scaled.
    pub fn alpha(&self, delta: f64, beta: f64, min_rtt: Span) -> f64 {
        let mut factor = self.f(delta);
        if self.rtt_scaling && min_rtt != Span::MAX {
            factor = (factor * Self::scale(min_rtt)).max(1.0);
        }
        2.0 * (1.0 - beta) * factor
    }

    /// Fraction kept when the RTT ranges from `min_rtt` to `max_rtt`.
    pub fn beta(&self, min_rtt: Span, max_rtt: Span) -> f64 {
        min_rtt.ratio(max_rtt).clamp(self.beta_min, self.beta_max)
    }
}

/// H-TCP.
#[derive(Clone, Debug)]
pub struct Htcp {
    params: HtcpParams,
    /// Start of the increase's clock: last event, or end of its recovery.
    since: Option<Time>,
    min_rtt: Span,
    max_rtt: Span,
    beta: f64,
    /// The throughput was steady over the last two epochs.
    steady: bool,
    throughput: Throughput,
}

/// Achieved throughput, segments/s.
#[derive(Clone, Copy, Debug)]
struct Throughput {
    now: f64,
    max: f64,
    old_max: f64,
    count: u64,
    from: Time,
}

impl Htcp {
    /// H-TCP with `params`.
    pub fn new(params: HtcpParams) -> Self {
        let throughput = Throughput {
            now: 0.0,
            max: 0.0,
            old_max: 0.0,
            count: 0,
            from: Time::ZERO,
        };
        Self {
            params,
            since: None,
            min_rtt: Span::MAX,
            max_rtt: Span::ZERO,
            beta: params.beta_min,
            steady: false,
            throughput,
        }
    }

    fn delta(&self, now: Time) -> Span {
        self.since
            .map_or(Span::ZERO, |since| now.saturating_since(since))
    }

    /// Increase per RTT at `now`, segments.
    #[inline]
    fn alpha(&self, now: Time) -> f64 {
        self.params
            .alpha(self.delta(now).as_secs_f64(), self.beta, self.min_rtt)
    }

    /// More than three RTTs have passed since the last event.
    fn settled(&self, now: Time) -> bool {
        self.min_rtt != Span::MAX && self.delta(now) > self.min_rtt * 3
    }

    fn measure_rtt(&mut self, rtt: Span, ev: &AckEvent) {
        self.min_rtt = self.min_rtt.min(rtt);
        if ev.phase == Phase::Open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            if rtt > self.max_rtt && rtt <= self.max_rtt + MAX_RTT_STEP && self.settled(ev.now) {
                self.max_rtt = rtt;
            }
        }
    }

    fn measure_throughput(&mut self, w: f64, ev: &AckEvent) {
        let b = &mut self.throughput;
        if !matches!(ev.phase, Phase::Open | Phase::Disorder) {
            (b.count, b.from) = (0, ev.now);
            return;
        }
        b.count += ev.delivered_now();
        let span = ev.now.saturating_since(b.from);
        if span < self.min_rtt || span == Span::ZERO {
            return;
        }
        let (alpha, settled) = (self.alpha(ev.now), self.settled(ev.now));
        let b = &mut self.throughput;
        if b.count as f64 >= w - alpha {
            let current = b.count as f64 / span.as_secs_f64();
            if settled {
                b.now = (3.0 * b.now + current) / 4.0;
                b.max = b.max.max(b.now);
            } else {
                (b.now, b.max) = (current, current);
            }
            (b.count, b.from) = (0, ev.now);
        }
    }

    /// Fraction to keep at an event, learnt from the epoch that it ends.
    fn learn_beta(&mut self) {
        let HtcpParams {
            beta_min,
            bandwidth_switch,
            adaptive_backoff,
            ..
        } = self.params;
        let b = &mut self.throughput;
        let changed = (b.max - b.old_max).abs() > bandwidth_switch * b.old_max;
        b.old_max = b.max;
        self.beta = beta_min;
        if bandwidth_switch > 0.0 && changed {
            self.steady = false;
        } else if !self.steady {
            self.steady = true;
        } else if adaptive_backoff && self.min_rtt > MIN_RTT_FOR_BETA && self.max_rtt > Span::ZERO {
            self.beta = self.params.beta(self.min_rtt, self.max_rtt);
        }
    }

    fn reduce(&mut self, base: f64, now: Time) -> f64 {
        self.learn_beta();
        if self.max_rtt > self.min_rtt {
            self.max_rtt = self.min_rtt + (self.max_rtt - self.min_rtt).mul_f64(MAX_RTT_MEMORY);
        }
        self.since = Some(now);
        self.beta * base
    }
}

impl WindowLaw for Htcp {
    #[inline]
    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        if self.since.is_none() {
            self.since = Some(ev.now);
            self.throughput.from = ev.now;
        }
        if let Some(rtt) = ev.rtt {
            self.measure_rtt(rtt, ev);
        }
        self.measure_throughput(win.w, ev);
    }

    #[inline]
    fn increase(&mut self, win: &mut Window, n: f64, ev: &AckEvent) {
        win.w += self.alpha(ev.now) * n / win.w;
    }

    fn decrease(&mut self, _w: f64, base: f64, ev: &CongestionEvent) -> f64 {
        if ev.first_in_window {
            self.reduce(base, ev.now)
        } else {
            self.beta * base
        }
    }

    fn on_rto(&mut self, _w: f64, base: f64, ev: &RtoEvent) -> f64 {
        self.reduce(base, ev.now)
    }

    fn on_recovery_exit(&mut self, _win: &mut Window, now: Time) {
        self.since = Some(now);
    }

    fn on_undo(&mut self, _win: &mut Window, now: Time) {
        // The sample that the restored memory had begun is too old to be finished.
        (self.throughput.count, self.throughput.from) = (0, now);
    }

    fn on_idle(&mut self, ev: &IdleEvent) {
        if let Some(since) = &mut self.since {
            *since = (*since + ev.idle).min(ev.now);
        }
        (self.throughput.count, self.throughput.from) = (0, ev.now);
    }

    fn on_mss_change(&mut self, ratio: f64) {
        let b = &mut self.throughput;
        (b.now, b.max, b.old_max) = (b.now * ratio, b.max * ratio, b.old_max * ratio);
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("beta", self.beta);
        visit("b_max", self.throughput.max);
        visit("max_rtt", self.max_rtt.as_secs_f64());
    }
}

/// Linear coefficient of `f`, 1/s.
const LINEAR: f64 = 10.0;

/// RTT at which scaling changes nothing.
const REFERENCE_RTT: Span = Span::from_millis(100);

/// Largest accepted rise of the RTT maximum.
const MAX_RTT_STEP: Span = Span::from_millis(20);

/// Fraction of the RTT maximum's excess that an event leaves.
const MAX_RTT_MEMORY: f64 = 0.95;

/// Below this RTT the ratio is not trusted.
const MIN_RTT_FOR_BETA: Span = Span::from_millis(10);

/// `htcp`.
pub const HTCP: Entry = Entry {
    name: "htcp",
    aliases: &["h-tcp"],
    kind: Kind::Law,
    about: "H-TCP: increase grows with the time since the last congestion event",
    source: "Linux tcp_htcp.c; FreeBSD cc_htcp",
    params: &[
        ParamSpec::time(
            "delta_l",
            Span::from_secs(1),
            Span::ZERO..=Span::from_secs(60),
            "time after an event during which the increase is Reno's",
            "Linux tcp_htcp.c; FreeBSD cc_htcp",
        ),
        ParamSpec::number(
            "beta_min",
            HtcpParams::DEFAULT.beta_min,
            0.01..=0.99,
            "fraction",
            "smallest fraction kept on loss",
            "Linux tcp_htcp.c; FreeBSD cc_htcp",
        ),
        ParamSpec::number(
            "beta_max",
            HtcpParams::DEFAULT.beta_max,
            0.01..=0.99,
            "fraction",
            "largest fraction kept on loss",
            "Linux tcp_htcp.c; FreeBSD cc_htcp",
        ),
        ParamSpec::number(
            "bandwidth_switch",
            HtcpParams::DEFAULT.bandwidth_switch,
            0.0..=10.0,
            "fraction",
            "relative change of the throughput between two events that resets the decrease; 0: never",
            "Linux tcp_htcp.c: 4/5 to 6/5",
        ),
        ParamSpec::flag(
            "adaptive_backoff",
            true,
            "keep RTTmin/RTTmax when the throughput is steady, not always beta_min",
            "Linux tcp_htcp.c (on); FreeBSD cc_htcp (off)",
        ),
        ParamSpec::flag(
            "rtt_scaling",
            false,
            "multiply the increase by RTTmin/100 ms, between 0.1 and 2",
            "FreeBSD cc_htcp (off); Linux tcp_htcp.c (on)",
        ),
    ],
    build: |p: &Params| {
        let params = HtcpParams {
            delta_l: p.time("delta_l").as_secs_f64(),
            beta_min: p.number("beta_min"),
            beta_max: p.number("beta_max"),
            bandwidth_switch: p.number("bandwidth_switch"),
            adaptive_backoff: p.flag("adaptive_backoff"),
            rtt_scaling: p.flag("rtt_scaling"),
        };
        if params.beta_min > params.beta_max {
            return Err(format!(
                "beta_min ({}) must not be above beta_max ({})",
                params.beta_min, params.beta_max
            ));
        }
        Ok(Component::Law(Law::Htcp(Htcp::new(params)), None))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{CongestionKind, Controller};
    use crate::rounds::{Rounds, ack, loss};

    const RTT: Span = Span::from_millis(100);

    fn flow(spelling: &str, w: f64) -> Rounds {
        let mut flow = Rounds::starting(spelling, RTT, w);
        flow.stack.exit_start_up(Time::ZERO);
        flow
    }

    fn rounds(flow: &mut Rounds, n: usize) {
        for _ in 0..n {
            flow.round();
        }
    }

    #[test]
    fn the_first_ack_starts_the_clock() {
        let mut law = Htcp::new(HtcpParams::DEFAULT);
        let mut win = Window {
            w: 1000.0,
            ssth: 1.0,
        };
        let at = |ms| ack(Time::ZERO + Span::from_millis(ms), 1);
        for (ms, alpha) in [(7000, 1.0), (8000, 1.0), (8500, 6.0625), (9000, 11.25)] {
            let before = win.w;
            law.observe(&mut win, &at(ms));
            law.increase(&mut win, 1.0, &at(ms));
            assert!((win.w - before - alpha / before).abs() < 1e-12, "{ms}");
        }
    }

    #[test]
    fn a_loss_in_start_up_halves() {
        let mut flow = Rounds::starting("htcp", RTT, 500.0);
        flow.round();
        flow.lose();
        assert_eq!(flow.w(), 500.0);
    }

    #[test]
    fn a_steady_path_learns_its_decrease_from_the_rtts_range() {
        for (max, kept) in [(110, 0.8), (125, 0.8), (150, 1.0 / 1.5), (300, 0.5)] {
            let mut flow = flow("htcp(bandwidth_switch=0)", 1000.0);
            flow.lose(); // steady from here on
            assert_eq!(flow.w(), 500.0);
            rounds(&mut flow, 5);
            for ms in (100..=max).step_by(10).chain([max]) {
                flow.rtt = Span::from_millis(ms);
                flow.round();
            }
            let w = flow.w();
            flow.lose();
            assert!(
                (flow.w() / w - kept).abs() < 1e-9,
                "{max}: {}",
                flow.w() / w
            );
        }
    }

    #[test]
    fn a_changed_throughput_resets_the_decrease() {
        let mut flow = flow("htcp", 1000.0);
        let mut kept = Vec::new();
        for _ in 0..5 {
            flow.rtt = RTT;
            rounds(&mut flow, 6);
            flow.rtt = Span::from_millis(120);
            rounds(&mut flow, 4);
            let w = flow.w();
            flow.lose();
            kept.push((flow.w() / w * 100.0).round());
            // The window is put back: only the throughput's memory is under test.
            flow.stack.on_idle(&IdleEvent {
                now: flow.now,
                idle: Span::ZERO,
                window: 1000.0,
                ssthresh: 10.0,
            });
        }
        // No memory; memory but not steady twice; then 100/120 clamped to 0.8.
        assert_eq!(kept, [50.0, 50.0, 80.0, 80.0, 80.0]);
        flow.stack.on_idle(&IdleEvent {
            now: flow.now,
            idle: Span::ZERO,
            window: 500.0,
            ssthresh: 10.0,
        });
        rounds(&mut flow, 8);
        let w = flow.w();
        flow.lose();
        assert!((flow.w() / w - 0.5).abs() < 1e-9, "half the throughput");
    }

    #[test]
    fn a_jump_of_the_rtt_is_not_its_maximum() {
        let mut flow = flow("htcp(bandwidth_switch=0)", 1000.0);
        flow.lose();
        rounds(&mut flow, 5);
        flow.rtt = Span::from_millis(121); // more than 20 ms above the maximum so far
        rounds(&mut flow, 5);
        assert_eq!(flow.reported("max_rtt"), Some(0.1));
        flow.rtt = Span::from_millis(120);
        flow.round();
        assert_eq!(flow.reported("max_rtt"), Some(0.12));
        flow.lose();
        assert!(
            (flow.reported("max_rtt").unwrap() - 0.119).abs() < 1e-9,
            "5 % of the excess fades"
        );
    }

    #[test]
    fn the_maximum_waits_three_rtts_after_an_event() {
        let mut flow = flow("htcp", 1000.0);
        flow.round();
        flow.lose();
        flow.rtt = Span::from_millis(115);
        flow.round();
        flow.round();
        assert_eq!(flow.reported("max_rtt"), Some(0.1));
        flow.round(); // 345 ms after the event
        assert_eq!(flow.reported("max_rtt"), Some(0.115));
    }

    /// A law that has seen throughput `max` in this epoch, 1000 in the last, and RTTs up to 1.5 times `min_rtt`.
    fn experienced(max: f64, min_rtt: Span) -> Htcp {
        let mut law = Htcp::new(HtcpParams::DEFAULT);
        (law.throughput.max, law.throughput.old_max) = (max, 1000.0);
        (law.min_rtt, law.max_rtt) = (min_rtt, min_rtt + min_rtt / 2);
        law.steady = true;
        law
    }

    #[test]
    fn a_fifth_more_or_less_throughput_is_a_change() {
        for (max, kept) in [
            (790.0, 0.5),
            (810.0, 2.0 / 3.0),
            (1190.0, 2.0 / 3.0),
            (1210.0, 0.5),
        ] {
            let mut law = experienced(max, RTT);
            let ssth = law.decrease(1000.0, 1000.0, &loss(Time::ZERO, 1000));
            assert!((ssth / 1000.0 - kept).abs() < 1e-9, "{max}");
            assert_eq!(law.steady, kept != 0.5);
            assert_eq!(law.throughput.old_max, max);
        }
    }

    #[test]
    fn an_rtt_of_ten_milliseconds_is_too_short_to_compare() {
        for (us, kept) in [(10_000, 0.5), (10_500, 2.0 / 3.0)] {
            let mut law = experienced(1000.0, Span::from_micros(us));
            let ssth = law.decrease(1000.0, 1000.0, &loss(Time::ZERO, 1000));
            assert!((ssth / 1000.0 - kept).abs() < 1e-9, "{us}");
        }
    }

    #[test]
    fn the_throughput_is_smoothed_by_quarters_once_settled() {
        let mut law = experienced(1000.0, RTT);
        law.throughput.now = 1000.0;
        law.since = Some(Time::ZERO);
        law.throughput.from = Time::from_secs_f64(0.5);
        let mut win = Window {
            w: 200.0,
            ssth: 1.0,
        };
        law.observe(&mut win, &ack(Time::from_secs_f64(0.6), 200)); // 2000 segments/s
        assert_eq!((law.throughput.now, law.throughput.max), (1250.0, 1250.0));
        law.since = Some(Time::from_secs_f64(0.45));
        law.observe(&mut win, &ack(Time::from_secs_f64(0.7), 200)); // too soon after an event
        assert!((law.throughput.max - 2000.0).abs() < 1e-6);
        law.observe(&mut win, &ack(Time::from_secs_f64(0.8), 150)); // not a window's worth
        assert_eq!(law.throughput.count, 150);
    }

    #[test]
    fn a_lost_retransmission_repeats_the_cut_and_learns_nothing() {
        let mut flow = flow("htcp", 1000.0);
        flow.round();
        let w = flow.w();
        flow.stack.on_congestion(&loss(flow.now, 2000));
        flow.stack.on_congestion(&CongestionEvent {
            first_in_window: false,
            ..loss(flow.now, 2000)
        });
        assert_eq!(flow.w(), w / 4.0);
    }

    #[test]
    fn timeout_and_mark_start_the_clock_as_a_loss_does() {
        for which in 0..3 {
            let mut flow = flow("htcp", 1000.0);
            rounds(&mut flow, 20);
            match which {
                0 => flow.lose(),
                1 => flow.congest(CongestionKind::Ecn),
                _ => {
                    flow.time_out();
                    flow.stack.on_recovery_exit(flow.now);
                    let (now, window) = (flow.now, flow.stack.ssthresh());
                    flow.stack.on_idle(&IdleEvent {
                        now,
                        idle: Span::ZERO,
                        window,
                        ssthresh: window,
                    });
                }
            }
            let w = flow.w();
            rounds(&mut flow, 5);
            assert!(
                (flow.w() - w - 5.0).abs() < 0.1,
                "one segment per RTT: {which} {w} {}",
                flow.w()
            );
        }
    }

    #[test]
    fn undo_brings_the_clock_back() {
        let mut flow = flow("htcp", 1000.0);
        rounds(&mut flow, 20);
        let w = flow.w();
        flow.stack.on_congestion(&loss(flow.now, 2000));
        flow.stack.on_undo(flow.now);
        assert_eq!(flow.w(), w);
        flow.acks(1);
        assert!(((flow.w() - w) * w - HtcpParams::DEFAULT.f(1.995)).abs() < 0.2);
    }

    #[test]
    fn idle_time_earns_nothing_and_an_unfilled_window_does_not_grow() {
        let mut flow = flow("htcp", 1000.0);
        flow.round();
        flow.now += Span::from_secs(10);
        let (now, window) = (flow.now, flow.w());
        flow.stack.on_idle(&IdleEvent {
            now,
            idle: Span::from_secs(10),
            window,
            ssthresh: 10.0,
        });
        flow.round();
        assert!((flow.w() - window - 1.0).abs() < 0.01);
        flow.cwnd_limited = false;
        let w = flow.w();
        rounds(&mut flow, 20);
        assert_eq!(flow.w(), w);
    }

    #[test]
    fn a_new_segment_size_is_no_change_of_throughput() {
        let mut flow = flow("htcp", 1000.0);
        for _ in 0..2 {
            rounds(&mut flow, 6);
            flow.lose();
        }
        flow.stack.on_mss_change(2.0);
        rounds(&mut flow, 6);
        let w = flow.w();
        flow.lose();
        assert!(flow.w() / w > 0.45, "{}", flow.w() / w);
        assert!(flow.reported("b_max").unwrap() > 4000.0);
    }

    #[test]
    fn betas_out_of_order_are_refused() {
        let why = crate::rounds::try_law("htcp", &[("beta_min", "0.9")]).unwrap_err();
        assert!(why.contains("must not be above"), "{why}");
    }
}
