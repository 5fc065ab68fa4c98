//! H-TCP as Linux has it (`net/ipv4/tcp_htcp.c`, Linux 6.1), where it differs from the paper and the draft:
//!
//! - RTTs, the time since the last event and the throughput are in ticks: with `HZ` 100 a path of 40 ms and a path of 31 ms are the same,
//!   and the decrease takes one of few values (`measure_rtt`, `htcp_beta_update`).
//! - `alpha` is 7-bit fixed point, `f` and its product with the RTT scaling are whole numbers, at least 1 (`htcp_alpha_update`). RTT
//!   scaling is on: whole eighths between 1/2 and 10.
//! - `alpha` is computed when the window grows and when a reduction begins, before the clock is set back: the first segment of growth
//!   after a reduction still comes at the old epoch's `alpha` (`htcp_cong_avoid`, `htcp_param_update`, `htcp_state`).
//! - An ACK either counts or grows the window, by one segment; what was counted beyond the window is dropped, and an ACK outside
//!   the open state counts as one segment (`htcp_cong_avoid`). Slow start drops what it has left at the threshold.
//! - The clock starts at the reduction and once more when the state returns to open (`htcp_state`).
//! - A throughput sample needs `window - alpha` segments, in 32 bits without a sign: an `alpha` above the window wraps and no sample is ever
//!   taken (`measure_achieved_throughput`). The smallest throughput is kept but never used.
//! - The RTT's maximum rises by 20 ms at most per sample, in the open state, with no waiting time after an event (`measure_rtt`).
//!   A reduction leaves 95 % of its excess in whole ticks: an excess of up to 20 ticks shrinks by one tick, one of a tick vanishes
//!   (`htcp_param_update`).
//! - With 10 ms or less, in ticks rounded up, as smallest RTT the decrease is a half (`htcp_beta_update`).
//! - Undo brings back the clock, and the maxima as the reduction has left them, not as they were (`htcp_cwnd_undo`, `htcp_reset`).

use super::{AckSample, Module, Socket};
use crate::controller::Phase;
use crate::params::{ParamSpec, Params};
use crate::registry::{Component, Entry, Kind};

/// H-TCP.
#[derive(Clone, Debug)]
pub struct Htcp {
    rtt_scaling: bool,
    bandwidth_switch: bool,
    /// Increase per RTT, 1/128 segments.
    alpha: u32,
    /// Kept on a reduction, 1/128.
    beta: u8,
    /// The last two epochs had about the same throughput.
    steady: bool,
    /// Segments the next ACK counts for.
    counts: u16,
    /// Ticks; 0 before the first sample.
    min_rtt: u32,
    max_rtt: u32,
    /// Start of the increase's clock.
    last_cong: u32,
    undo: Undo,
    throughput: Throughput,
}

/// What an undo restores; nothing while `last_cong` is 0.
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    last_cong: u32,
    max_rtt: u32,
    old_max: u32,
}

/// Achieved throughput, segments/s.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    smoothed: u32,
    max: u32,
    /// `max` at the last reduction.
    old_max: u32,
    /// Segments acknowledged since tick `since`.
    count: u32,
    since: u32,
}

impl Htcp {
    fn new(rtt_scaling: bool, bandwidth_switch: bool) -> Self {
        Self {
            rtt_scaling,
            bandwidth_switch,
            alpha: ONE,
            beta: BETA_MIN,
            steady: false,
            counts: 1,
            min_rtt: 0,
            max_rtt: 0,
            last_cong: 0,
            undo: Undo::default(),
            throughput: Throughput::default(),
        }
    }

    fn elapsed(&self, sk: &Socket) -> u32 {
        sk.jiffies().wrapping_sub(self.last_cong)
    }

    /// `1 + 10 d + (d/2)^2` for `d` seconds beyond the first, in whole numbers of ticks.
    fn factor(&self, sk: &Socket) -> u32 {
        let hz = sk.hz;
        let late = self.elapsed(sk).saturating_sub(hz);
        let half = late / 2;
        let square = half.wrapping_mul(half) / hz;
        1 + late.wrapping_mul(10).wrapping_add(square) / hz
    }

    fn update_alpha(&mut self, sk: &Socket) {
        let mut factor = self.factor(sk);
        if self.rtt_scaling && self.min_rtt > 0 {
            // Eighths of 100 ms per smallest RTT.
            let scale = (sk.hz * 8 / (10 * self.min_rtt)).clamp(4, 80);
            factor = (factor.wrapping_mul(8) / scale).max(1);
        }
        self.alpha = (2 * factor).wrapping_mul(ONE - u32::from(self.beta));
        if self.alpha == 0 {
            self.alpha = ONE;
        }
    }

    fn update_beta(&mut self, sk: &Socket) {
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

    fn measure_rtt(&mut self, sk: &Socket, rtt: u32) {
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

    fn measure_throughput(&mut self, sk: &Socket, acked: u32) {
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

impl Module for Htcp {
    fn init(&mut self, sk: &mut Socket) {
        *self = Self::new(self.rtt_scaling, self.bandwidth_switch);
        self.last_cong = sk.jiffies();
    }

    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        self.update_beta(sk);
        self.update_alpha(sk);
        if self.min_rtt > 0 && self.max_rtt > self.min_rtt {
            let excess = self.max_rtt - self.min_rtt;
            self.max_rtt = self.min_rtt + excess.wrapping_mul(95) / 100;
        }
        (sk.cwnd.wrapping_mul(u32::from(self.beta)) >> 7).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if !sk.is_cwnd_limited() {
            return;
        }
        if sk.in_slow_start() {
            sk.slow_start(acked);
            return;
        }
        if sk.cwnd_cnt.wrapping_mul(self.alpha) >> 7 >= sk.cwnd {
            if sk.cwnd < sk.clamp {
                sk.cwnd += 1;
            }
            sk.cwnd_cnt = 0;
            self.update_alpha(sk);
        } else {
            sk.cwnd_cnt += u32::from(self.counts);
        }
        self.counts = 1;
    }

    fn undo_cwnd(&mut self, sk: &mut Socket) -> u32 {
        if self.undo.last_cong != 0 {
            self.last_cong = self.undo.last_cong;
            self.max_rtt = self.undo.max_rtt;
            self.throughput.old_max = self.undo.old_max;
            self.undo.last_cong = 0;
        }
        sk.cwnd.max(sk.prior_cwnd)
    }

    fn set_state(&mut self, sk: &mut Socket, new: Phase) {
        match new {
            Phase::Open if self.undo.last_cong != 0 => {
                self.last_cong = sk.jiffies();
                self.undo.last_cong = 0;
            }
            Phase::Open | Phase::Disorder => {}
            Phase::Cwr | Phase::Recovery | Phase::Loss => {
                self.undo = Undo {
                    last_cong: self.last_cong,
                    max_rtt: self.max_rtt,
                    old_max: self.throughput.old_max,
                };
                self.last_cong = sk.jiffies();
            }
        }
    }

    #[inline]
    fn pkts_acked(&mut self, sk: &mut Socket, sample: &AckSample) {
        if sk.state == Phase::Open {
            self.counts = sample.pkts_acked as u16;
        }
        if let Some(rtt) = sample.rtt_us.filter(|rtt| *rtt > 0) {
            self.measure_rtt(sk, sk.usecs_to_jiffies(rtt));
        }
        if self.bandwidth_switch {
            self.measure_throughput(sk, sample.pkts_acked);
        }
    }

    fn report(&self, sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        let seconds = |ticks| f64::from(ticks) / f64::from(sk.hz);
        visit("alpha", f64::from(self.alpha) / 128.0);
        visit("beta", f64::from(self.beta) / 128.0);
        visit("b_max", f64::from(self.throughput.max));
        visit("min_rtt", seconds(self.min_rtt));
        visit("max_rtt", seconds(self.max_rtt));
    }
}

/// 1 in the fixed point of `alpha` and `beta`.
const ONE: u32 = 1 << 7;

/// Smallest and largest part kept: 0.5 and 0.797.
const BETA_MIN: u8 = 64;
const BETA_MAX: u8 = 102;

/// Up to this smallest RTT its ratio to the largest is not trusted, milliseconds.
const SHORT_RTT_MS: u32 = 10;

/// Largest accepted rise of the RTT's maximum, milliseconds.
const MAX_RTT_STEP_MS: u32 = 20;

/// RTTs after an event during which throughput samples replace the filter instead of feeding it.
const SETTLED_RTTS: u32 = 3;

const SOURCE: &str = "Linux 6.1 net/ipv4/tcp_htcp.c";

/// `htcp-linux`.
pub const HTCP_LINUX: Entry = Entry {
    name: "htcp-linux",
    aliases: &[],
    kind: Kind::Module,
    about: "H-TCP to the integer: clocks in ticks, RTT scaling on, alpha in 1/128",
    source: SOURCE,
    params: &[
        ParamSpec::flag(
            "use_rtt_scaling",
            true,
            "divide the increase by 100 ms/RTTmin, between 1/2 and 10",
            SOURCE,
        ),
        ParamSpec::flag(
            "use_bandwidth_switch",
            true,
            "halve when the throughput has changed by more than a fifth between two events",
            SOURCE,
        ),
    ],
    build: |p: &Params| {
        let module = Htcp::new(p.flag("use_rtt_scaling"), p.flag("use_bandwidth_switch"));
        Ok(Component::Module(module.into()))
    },
};

#[cfg(test)]
mod tests {
    use fullpipe_units::Span;

    use super::*;
    use crate::linux::AnyModule;
    use crate::linux::testing::Bench;

    fn bench(hz: u32, w: u32, params: &[(&str, &str)]) -> Bench {
        Bench::avoiding(&HTCP_LINUX, params, hz, w)
    }

    fn htcp(b: &mut Bench) -> &mut Htcp {
        match &mut b.module {
            AnyModule::Htcp(m) => m,
            other => panic!("{other:?}"),
        }
    }

    /// Lets one ACK grow the window, so that `alpha` is computed.
    fn grow(b: &mut Bench) {
        b.sk.cwnd_cnt = b.sk.cwnd;
        b.ack(1);
        assert_eq!(b.sk.cwnd_cnt, 0);
    }

    fn sample(b: &mut Bench, rtt_us: u32) {
        b.rtt_us = Some(rtt_us);
        b.sk.cwnd_limited = false;
        b.ack(1);
        b.sk.cwnd_limited = true;
        b.rtt_us = None;
    }

    #[test]
    fn an_ack_counts_or_grows() {
        let mut b = bench(100, 10, &[]);
        b.acks(10);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (10, 10));
        b.ack(1);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (11, 0));
        b.ack(50);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (11, 50));
        b.ack(50);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (12, 0), "one segment at most");
        b.state(Phase::Disorder);
        b.ack(5);
        assert_eq!(b.sk.cwnd_cnt, 1, "one, outside the open state");
    }

    #[test]
    fn slow_start_drops_the_rest_and_the_clamp_holds() {
        let mut b = bench(100, 10, &[]);
        b.sk.ssthresh = 12;
        b.ack(22);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (12, 0));
        b.sk.clamp = 12;
        grow(&mut b);
        assert_eq!(b.sk.cwnd, 12);
        b.sk.cwnd_limited = false;
        b.acks(100);
        assert_eq!(b.sk.cwnd_cnt, 0);
    }

    /// The known f(1.5 s) = 6.0625 and f(2 s) = 11.25 are 6 and 11.
    #[test]
    fn the_increase_is_a_whole_number_by_the_tick() {
        for (ms, alpha) in [
            (500, 1),
            (1000, 1),
            (1090, 1),
            (1100, 2),
            (1500, 6),
            (2000, 11),
            (3000, 22),
            (5000, 45),
            (10_000, 111),
            (30_000, 501),
        ] {
            let mut b = bench(100, 1000, &[]);
            b.wait(Span::from_millis(ms));
            grow(&mut b);
            assert_eq!(b.reported("alpha"), f64::from(alpha), "{ms}");
        }
    }

    #[test]
    fn rtt_scaling_is_in_eighths() {
        for (rtt_ms, late, early) in [
            (10, 4, 1),
            (30, 13, 1), // 800/30 = 26 eighths
            (50, 22, 1),
            (100, 45, 1),
            (200, 90, 2),
            (400, 90, 2),
        ] {
            for (ms, alpha) in [(0, early), (5000, late)] {
                let mut b = bench(100, 1000, &[]);
                sample(&mut b, rtt_ms * 1000);
                b.wait(Span::from_millis(ms));
                grow(&mut b);
                assert_eq!(b.reported("alpha"), f64::from(alpha), "{rtt_ms} {ms}");
            }
            let mut b = bench(100, 1000, &[("use_rtt_scaling", "off")]);
            sample(&mut b, rtt_ms * 1000);
            b.wait(Span::from_secs(5));
            grow(&mut b);
            assert_eq!(b.reported("alpha"), 45.0);
        }
    }

    #[test]
    fn the_second_reduction_keeps_what_the_ticks_of_the_rtts_say() {
        for (top_ms, kept) in [(110, 796), (120, 796), (130, 765), (150, 664), (300, 500)] {
            let mut b = bench(100, 1000, &[("use_bandwidth_switch", "off")]);
            sample(&mut b, 100_000);
            b.lose();
            assert_eq!(b.sk.ssthresh, 500, "the first halves");
            b.open();
            for ms in (110..=top_ms).step_by(10) {
                sample(&mut b, ms * 1000);
            }
            b.sk.cwnd = 1000;
            b.lose();
            assert_eq!(b.sk.ssthresh, kept, "{top_ms}");
            // alpha = 2 (1 - beta) f in 1/128.
            let beta = b.reported("beta");
            assert_eq!(b.reported("alpha"), 2.0 * (1.0 - beta));
        }
    }

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
    fn the_excess_fades_by_a_twentieth_in_whole_ticks() {
        for (hz, min_ms, max_ms, left_ms) in [
            (1000, 100, 300, 290),
            (100, 100, 150, 140),
            (100, 100, 110, 100),
            (100, 100, 350, 330), // 25 ticks: 23.75
        ] {
            let mut b = bench(hz, 1000, &[]);
            sample(&mut b, min_ms * 1000);
            for ms in (min_ms..=max_ms).step_by(10) {
                sample(&mut b, ms * 1000);
            }
            b.lose();
            assert_eq!(b.reported("max_rtt"), f64::from(left_ms) / 1000.0);
        }
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

    #[test]
    fn the_first_growth_after_a_reduction_is_at_the_old_pace() {
        let mut b = bench(100, 1000, &[]);
        b.wait(Span::from_secs(5));
        b.lose();
        assert_eq!(b.reported("alpha"), 45.0);
        b.wait(Span::from_secs(2));
        b.open(); // and the clock starts once more
        b.acks(12); // 11 * 45 < 500 <= 12 * 45
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (500, 12));
        b.ack(1);
        assert_eq!((b.sk.cwnd, b.reported("alpha")), (501, 1.0));
    }

    #[test]
    fn undo_brings_back_the_clock_and_the_faded_maximum() {
        let mut b = bench(100, 1000, &[]);
        sample(&mut b, 100_000);
        sample(&mut b, 120_000);
        b.wait(Span::from_secs(5));
        b.lose();
        b.undo();
        assert_eq!(b.sk.cwnd, 1000);
        assert_eq!(b.reported("max_rtt"), 0.11);
        b.state(Phase::Open);
        b.sk.ssthresh = 1;
        grow(&mut b);
        assert_eq!(b.reported("alpha"), 45.0);
        // A timeout in recovery: the recovery's start is all that is left.
        b.lose();
        b.wait(Span::from_secs(2));
        b.time_out();
        b.undo();
        b.sk.ssthresh = 1;
        grow(&mut b);
        assert_eq!(b.reported("alpha"), 2.0 * 11.0 * 26.0 / 128.0); // beta is 102/128 by now
    }
}
