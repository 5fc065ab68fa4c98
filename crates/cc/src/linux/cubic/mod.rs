//! CUBIC with HyStart as Linux has them (`net/ipv4/tcp_cubic.c`, Linux 6.1), where it differs from
//! RFC 9438 and from the HyStart paper. What differs of the growth is in `curve`, of the slow start
//! in `hystart`; of the rest:
//!
//! - A timeout forgets everything the reduction has just noted, the RTT's minimum included, and
//!   arms HyStart again (`cubictcp_state`). After a loss HyStart stays off for good if it has found
//!   its exit.
//! - RTT samples of the first second of an epoch are not looked at, whoever sent them
//!   (`cubictcp_acked`).
//! - A pause shifts the epoch by the ticks between transmissions, never past now
//!   (`cubictcp_cwnd_event`).
//!
//! Undo gives back the window and nothing else (`tcp_reno_undo_cwnd`).

mod curve;
mod entry;
mod hystart;

pub use entry::CUBIC_LINUX;

use crate::controller::Phase;
use crate::linux::module::{AckSample, Event, Module};
use crate::linux::socket::Socket;
use curve::Curve;
use entry::{SCALE, Settings};
use hystart::HyStart;

/// CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    settings: Settings,
    curve: Curve,
    start: HyStart,
}

impl Cubic {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            curve: Curve::default(),
            start: HyStart::NEW,
        }
    }
}

impl Module for Cubic {
    fn init(&mut self, sk: &mut Socket) {
        self.curve = Curve::default();
        self.start.found = false;
        if self.settings.hystart {
            self.start.next_round(sk);
        } else if self.settings.initial_ssthresh > 0 {
            sk.ssthresh = self.settings.initial_ssthresh;
        }
    }

    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        let beta = self.settings.beta;
        let c = &mut self.curve;
        c.epoch = 0;
        c.w_max = if sk.cwnd < c.w_max && self.settings.fast_convergence {
            sk.cwnd.wrapping_mul(SCALE + beta) / (2 * SCALE)
        } else {
            sk.cwnd
        };
        (sk.cwnd.wrapping_mul(beta) / SCALE).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if !sk.is_cwnd_limited() {
            return;
        }
        let Some(left) = sk.past_slow_start(acked) else {
            return;
        };
        self.update(sk, left);
        sk.cong_avoid_ai(self.curve.cnt, left);
    }

    fn set_state(&mut self, sk: &mut Socket, new: Phase) {
        if new == Phase::Loss {
            self.curve = Curve::default();
            self.start.found = false;
            self.start.next_round(sk);
        }
    }

    fn on_event(&mut self, sk: &mut Socket, event: Event) {
        if event == Event::TxStart && self.curve.epoch != 0 {
            let now = sk.jiffies();
            let shifted = self.curve.epoch.wrapping_add(sk.idle_jiffies());
            self.curve.epoch = if now.wrapping_sub(shifted) as i32 >= 0 {
                shifted
            } else {
                now
            };
        }
    }

    #[inline]
    fn pkts_acked(&mut self, sk: &mut Socket, sample: &AckSample) {
        let Some(rtt) = sample.rtt_us else { return };
        let c = &mut self.curve;
        if c.epoch != 0 && (sk.jiffies().wrapping_sub(c.epoch) as i32) < sk.hz as i32 {
            return;
        }
        let rtt = rtt.max(1);
        if c.delay_min == 0 || rtt < c.delay_min {
            c.delay_min = rtt;
        }
        if self.settings.hystart && !self.start.found && sk.in_slow_start() {
            self.look_for_exit(sk, rtt);
        }
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("w_max", f64::from(self.curve.w_max));
        visit("k", f64::from(self.curve.k) / 1024.0);
        visit("w_est", f64::from(self.curve.w_est));
        visit("cnt", f64::from(self.curve.cnt));
        visit("delay_min", f64::from(self.curve.delay_min) / 1e6);
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Span;

    use super::*;
    use crate::linux::testing::Bench;

    pub(super) fn bench(hz: u32, w: u32, params: &[(&str, &str)]) -> Bench {
        Bench::avoiding(&CUBIC_LINUX, params, hz, w)
    }

    #[test]
    fn a_reduction_keeps_717_of_1024_and_at_least_two() {
        for (w, kept) in [(1000, 700), (10, 7), (3, 2), (2, 2), (1, 2)] {
            let mut b = bench(100, w, &[]);
            b.lose();
            assert_eq!(b.sk.ssthresh, kept, "{w}");
            assert_eq!(b.reported("w_max"), f64::from(w));
        }
        let mut b = bench(100, 1000, &[("beta", "819")]);
        b.lose();
        assert_eq!(b.sk.ssthresh, 799);
    }

    #[test]
    fn fast_convergence_remembers_1741_of_2048() {
        for (params, w_max) in [(&[][..], 680.0), (&[("fast_convergence", "off")], 800.0)] {
            let mut b = bench(100, 1000, params);
            b.lose();
            b.sk.cwnd = 800;
            b.lose();
            assert_eq!(b.reported("w_max"), w_max);
        }
    }

    #[test]
    fn a_timeout_forgets_the_maximum_and_the_rtt_and_starts_over() {
        let mut b = bench(100, 1000, &[]);
        b.rtt_us = Some(50_000);
        b.acks(1);
        assert_eq!(b.reported("delay_min"), 0.05);
        b.time_out();
        assert_eq!(b.sk.ssthresh, 700);
        assert_eq!((b.reported("w_max"), b.reported("delay_min")), (0.0, 0.0));
        b.open();
        b.sk.cwnd = 700;
        b.acks(1);
        assert_eq!(b.reported("cnt"), 20.0, "as before the first loss");
    }

    #[test]
    fn for_a_second_after_an_epoch_begins_rtts_are_not_seen() {
        let mut b = bench(100, 1000, &[]);
        b.rtt_us = Some(50_000);
        b.acks(1);
        b.rtt_us = Some(40_000);
        b.wait(Span::from_millis(990));
        b.acks(1);
        assert_eq!(b.reported("delay_min"), 0.05);
        b.wait(Span::from_millis(10));
        b.acks(1);
        assert_eq!(b.reported("delay_min"), 0.04);
        b.rtt_us = Some(0);
        b.acks(1);
        assert_eq!(b.reported("delay_min"), 1e-6);
    }

    #[test]
    fn a_pause_shifts_the_epoch_but_not_past_now() {
        let mut b = bench(100, 1000, &[("tcp_friendliness", "off")]);
        b.lose();
        b.open();
        b.acks(1);
        b.wait(Span::from_millis(2_000));
        b.restart(Span::from_millis(1_500));
        b.acks(1);
        assert_eq!(b.reported("cnt"), 14.0); // 50 ticks
        b.restart(Span::from_millis(2_000));
        b.wait(Span::from_millis(100));
        b.sk.cwnd = 700;
        b.acks(1);
        assert_eq!(b.reported("cnt"), 63.0); // 10 ticks
    }

    #[test]
    fn undo_gives_back_the_window_alone() {
        let mut b = bench(100, 1000, &[]);
        b.lose();
        b.undo();
        assert_eq!(b.sk.cwnd, 1000);
        assert_eq!(b.reported("w_max"), 1000.0);
    }

    #[test]
    fn slow_start_hands_the_rest_on_and_an_unused_window_stays() {
        let mut b = bench(100, 10, &[]);
        b.sk.ssthresh = 12;
        b.ack(25);
        // 2 to the threshold; 23 more than 22 = 12 * 15 / 8 make `cnt` 12.
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (13, 11));
        b.sk.cwnd_limited = false;
        b.acks(100);
        assert_eq!(b.sk.cwnd, 13);
    }
}
