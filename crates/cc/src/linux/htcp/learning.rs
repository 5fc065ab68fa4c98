//! What an epoch teaches, in ticks: the RTT's range and the throughput, and from them the next
//! decrease.

use super::{BETA_MAX, BETA_MIN, Htcp};
use crate::controller::Phase;
use crate::linux::socket::Socket;

/// Achieved throughput, segments/s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Throughput {
    pub(super) smoothed: u32,
    pub(super) max: u32,
    /// `max` at the last reduction.
    pub(super) old_max: u32,
    /// Segments acknowledged since tick `since`.
    pub(super) count: u32,
    pub(super) since: u32,
}

impl Htcp {
    pub(super) fn update_beta(&mut self, sk: &Socket) {
        if self.bandwidth_switch {
            let b = &mut self.throughput;
            let (old, max) = (b.old_max, b.max);
            b.old_max = max;
            let above = max.wrapping_mul(5).wrapping_sub(old.wrapping_mul(4));
            if above > old.wrapping_mul(2) {
                self.beta = BETA_MIN;
                self.steady = false;
                return;
            }
        }
        if self.steady && self.min_rtt > sk.msecs_to_jiffies(SHORT_RTT_MS) && self.max_rtt > 0 {
            let ratio = ((self.min_rtt << 7) / self.max_rtt) as u8;
            self.beta = ratio.clamp(BETA_MIN, BETA_MAX);
        } else {
            self.beta = BETA_MIN;
            self.steady = true;
        }
    }

    pub(super) fn measure_rtt(&mut self, sk: &Socket, rtt: u32) {
        if self.min_rtt == 0 || rtt < self.min_rtt {
            self.min_rtt = rtt;
        }
        if sk.state == Phase::Open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            if rtt > self.max_rtt && rtt <= self.max_rtt + sk.msecs_to_jiffies(MAX_RTT_STEP_MS) {
                self.max_rtt = rtt;
            }
        }
    }

    pub(super) fn measure_throughput(&mut self, sk: &Socket, acked: u32) {
        let now = sk.jiffies();
        let elapsed = self.elapsed(sk);
        let b = &mut self.throughput;
        if !matches!(sk.state, Phase::Open | Phase::Disorder) {
            (b.count, b.since) = (0, now);
            return;
        }
        b.count = b.count.wrapping_add(acked);
        let enough = sk.cwnd.wrapping_sub((self.alpha >> 7).max(1));
        let took = now.wrapping_sub(b.since);
        if b.count < enough || took < self.min_rtt || self.min_rtt == 0 {
            return;
        }
        let sample = b.count.wrapping_mul(sk.hz) / took;
        if elapsed / self.min_rtt > SETTLED_RTTS {
            b.smoothed = b.smoothed.wrapping_mul(3).wrapping_add(sample) / 4;
            b.max = b.max.max(b.smoothed);
        } else {
            (b.smoothed, b.max) = (sample, sample);
        }
        (b.count, b.since) = (0, now);
    }
}

/// Up to this smallest RTT its ratio to the largest is not trusted, milliseconds
/// (`htcp_beta_update`).
const SHORT_RTT_MS: u32 = 10;

/// Largest accepted rise of the RTT's maximum, milliseconds (`measure_rtt`).
const MAX_RTT_STEP_MS: u32 = 20;

/// RTTs after an event during which throughput samples replace the filter instead of feeding it
/// (`measure_achieved_throughput`).
const SETTLED_RTTS: u32 = 3;

#[cfg(test)]
mod tests {
    use fullpipe_units::Span;

    use super::super::tests::{bench, grow, htcp, sample};
    use super::*;

    #[test]
    fn ten_milliseconds_rounded_up_are_too_short() {
        for (hz, us, beta) in [
            (1000, 10_000, 64),
            (1000, 10_001, 70), // 11 of 20 ticks
            (100, 10_000, 64),
            (100, 10_001, 128 * 2 / 2),
        ] {
            let mut b = bench(hz, 1000, &[("use_bandwidth_switch", "off")]);
            htcp(&mut b).steady = true;
            sample(&mut b, us);
            sample(&mut b, 20_000);
            b.lose();
            let beta = beta.min(u32::from(BETA_MAX));
            assert_eq!(b.reported("beta"), f64::from(beta) / 128.0, "{hz} {us}");
        }
    }

    #[test]
    fn the_largest_rtt_rises_by_twenty_milliseconds_and_only_when_open() {
        let mut b = bench(100, 1000, &[]);
        sample(&mut b, 100_000);
        sample(&mut b, 121_000);
        assert_eq!(b.reported("max_rtt"), 0.1);
        b.state(Phase::Disorder);
        sample(&mut b, 120_000);
        assert_eq!(b.reported("max_rtt"), 0.1);
        b.state(Phase::Open);
        sample(&mut b, 120_000);
        assert_eq!(b.reported("max_rtt"), 0.12);
        sample(&mut b, 0);
        assert_eq!(b.reported("min_rtt"), 0.1, "0 is no sample");
        sample(&mut b, 90_001);
        assert_eq!(b.reported("min_rtt"), 0.1, "rounded up");
    }

    #[test]
    fn throughput_is_replaced_for_three_rtts_and_smoothed_by_quarters_after() {
        let mut b = bench(100, 100, &[]);
        b.sk.cwnd_limited = false;
        b.rtt_us = Some(100_000);
        b.ack(98);
        assert_eq!(b.reported("b_max"), 0.0, "a window less alpha is asked for");
        b.ack(1);
        assert_eq!(b.reported("b_max"), 99.0); // the clock was at 1 s and the last sample at 0
        b.wait(Span::from_millis(90));
        b.ack(99);
        assert_eq!(b.reported("b_max"), 99.0, "not yet an RTT");
        b.wait(Span::from_millis(10));
        b.ack(0);
        assert_eq!(b.reported("b_max"), 990.0);
        b.wait(Span::from_millis(290));
        b.ack(99);
        assert_eq!(b.reported("b_max"), 341.0, "3 RTTs: replaced, though less");
        b.wait(Span::from_millis(100)); // 49 ticks: 4 RTTs
        b.ack(220);
        assert_eq!(b.reported("b_max"), 805.0); // (3 * 341 + 2200) / 4
        b.wait(Span::from_millis(100));
        b.ack(99);
        assert_eq!(b.reported("b_max"), 851.0); // (3 * 805 + 990) / 4
        b.state(Phase::Recovery);
        b.wait(Span::from_millis(100));
        b.ack(9999);
        b.state(Phase::Open);
        b.ack(98);
        assert_eq!(htcp(&mut b).throughput.count, 98, "recovery does not count");
    }

    #[test]
    fn an_alpha_above_the_window_stops_the_measurement() {
        let mut b = bench(100, 1000, &[("use_rtt_scaling", "off")]);
        sample(&mut b, 100_000);
        b.wait(Span::from_secs(5));
        grow(&mut b);
        assert_eq!(b.reported("alpha"), 45.0);
        b.sk.cwnd_limited = false;
        b.sk.cwnd = 44;
        b.ack(4_000_000);
        assert_eq!(b.reported("b_max"), 0.0);
        b.sk.cwnd = 45;
        b.ack(1);
        assert!(b.reported("b_max") > 0.0);
    }

    #[test]
    fn a_fifth_more_or_less_throughput_halves() {
        for (max, beta) in [(799, 64), (800, 85), (1200, 85), (1201, 64)] {
            let mut b = bench(100, 1000, &[]);
            let m = htcp(&mut b);
            (m.steady, m.min_rtt, m.max_rtt) = (true, 10, 15);
            (m.throughput.old_max, m.throughput.max) = (1000, max);
            b.lose();
            let m = htcp(&mut b);
            assert_eq!((m.beta, m.steady), (beta, beta != 64), "{max}");
            assert_eq!(m.throughput.old_max, max);
        }
    }
}
