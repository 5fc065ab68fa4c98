//! H-TCP: the increase grows with the time since the last congestion event, the decrease follows
//! the RTT's range.
//!
//! Documents: Linux `tcp_htcp.c` (2.6.22 and recent), FreeBSD `cc_htcp`, ns-3 `tcp-htcp.cc`. The
//! quadratic coefficient is the 1/4 of all code (`((D - Delta_L)/2)^2`), not the 0.5 of the ns-3
//! manual. RTT scaling is off by default (as in FreeBSD), the adaptive decrease on (as in Linux and
//! the paper).
//!
//! - First ACK: the clock of the increase starts. A loss in start-up is a loss: it halves, because
//!   no throughput was remembered. A lost retransmission repeats the present decrease and learns
//!   nothing. Timeout and mark: as a loss; the RTT extremes stay. The clock starts again when
//!   recovery ends, as in Linux.
//! - Undo brings back the clock, the RTT extremes, the throughput memory and the decrease;
//!   `w >= ssth/beta` of Linux is the window itself here, which the frame restores. Idle time is no
//!   time since the last event: the clock is shifted (ours). An application-limited flow does not
//!   grow, but its clock runs. A new segment size scales the throughput memory.

mod learning;
mod params;

use fullpipe_units::{Span, Time};

pub use params::{HTCP, HtcpParams};

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, IdleEvent, RestartEvent, RtoEvent};
use learning::Throughput;

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
    /// Pauses up to here are out of the clock.
    paused: Time,
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
            paused: Time::ZERO,
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

    /// Leaves `idle` out of the increase's clock, and what the flow did not use of the path out of
    /// its throughput.
    #[cold]
    fn pause(&mut self, now: Time, idle: Span) {
        let pause = idle.min(now.saturating_since(self.paused));
        if let Some(since) = &mut self.since {
            *since = (*since + pause).min(now);
        }
        self.paused = now;
        (self.throughput.count, self.throughput.from) = (0, now);
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
        self.pause(ev.now, ev.idle);
    }

    fn on_restart(&mut self, ev: &RestartEvent) {
        // A window of one segment leaves nothing in flight either, and is no pause.
        if ev.app_limited {
            self.pause(ev.now, ev.idle);
        }
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

/// Fraction of the RTT maximum's excess that an event leaves (Linux `htcp_param_update`).
const MAX_RTT_MEMORY: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{CongestionKind, Controller};
    use crate::rounds::{Rounds, ack, loss};

    pub(super) const RTT: Span = Span::from_millis(100);

    pub(super) fn flow(spelling: &str, w: f64) -> Rounds {
        Rounds::avoiding(spelling, RTT, w)
    }

    pub(super) fn rounds(flow: &mut Rounds, n: usize) {
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
}
