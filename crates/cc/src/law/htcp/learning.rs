//! What an epoch teaches: the RTT's range and the throughput, and from them the next decrease.

use fullpipe_units::{Span, Time};

use super::{Htcp, HtcpParams};
use crate::controller::{AckEvent, Phase};

/// Achieved throughput, segments/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Throughput {
    pub(super) now: f64,
    pub(super) max: f64,
    pub(super) old_max: f64,
    pub(super) count: u64,
    pub(super) from: Time,
}

impl Htcp {
    /// More than three RTTs have passed since the last event.
    fn settled(&self, now: Time) -> bool {
        self.min_rtt != Span::MAX && self.delta(now) > self.min_rtt * 3
    }

    pub(super) fn measure_rtt(&mut self, rtt: Span, ev: &AckEvent) {
        self.min_rtt = self.min_rtt.min(rtt);
        if ev.phase == Phase::Open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            if rtt > self.max_rtt && rtt <= self.max_rtt + MAX_RTT_STEP && self.settled(ev.now) {
                self.max_rtt = rtt;
            }
        }
    }

    pub(super) fn measure_throughput(&mut self, w: f64, ev: &AckEvent) {
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
    pub(super) fn learn_beta(&mut self) {
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
}

/// Largest accepted rise of the RTT maximum (Linux `measure_rtt`).
const MAX_RTT_STEP: Span = Span::from_millis(20);

/// Below this RTT the ratio is not trusted (Linux `htcp_beta_update`).
const MIN_RTT_FOR_BETA: Span = Span::from_millis(10);

#[cfg(test)]
mod tests {
    use super::super::tests::{RTT, flow, rounds};
    use super::*;
    use crate::classic::Window;
    use crate::controller::{Controller, IdleEvent};
    use crate::law::WindowLaw;
    use crate::rounds::{ack, loss};

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

    /// A law that has seen throughput `max` in this epoch, 1000 in the last, and RTTs up to 1.5
    /// times `min_rtt`.
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
}
