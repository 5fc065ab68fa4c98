//! H-TCP as Linux has it (`net/ipv4/tcp_htcp.c`, Linux 6.1), where it differs from the paper and
//! the draft:
//!
//! - RTTs, the time since the last event and the throughput are in ticks: with `HZ` 100 a path of
//!   40 ms and a path of 31 ms are the same, and the decrease takes one of few values
//!   (`measure_rtt`, `htcp_beta_update`).
//! - `alpha` is 7-bit fixed point, `f` and its product with the RTT scaling are whole numbers, at
//!   least 1 (`htcp_alpha_update`). RTT scaling is on: whole eighths between 1/2 and 10.
//! - `alpha` is computed when the window grows and when a reduction begins, before the clock is set
//!   back: the first segment of growth after a reduction still comes at the old epoch's `alpha`
//!   (`htcp_cong_avoid`, `htcp_param_update`, `htcp_state`).
//! - An ACK either counts or grows the window, by one segment; what was counted beyond the window
//!   is dropped, and an ACK outside the open state counts as one segment (`htcp_cong_avoid`). Slow
//!   start drops what it has left at the threshold.
//! - The clock starts at the reduction and once more when the state returns to open (`htcp_state`).
//! - A throughput sample needs `window - alpha` segments, in 32 bits without a sign: an `alpha`
//!   above the window wraps and no sample is ever taken (`measure_achieved_throughput`). The
//!   smallest throughput is kept but never used.
//! - The RTT's maximum rises by 20 ms at most per sample, in the open state, with no waiting time
//!   after an event (`measure_rtt`). A reduction leaves 95 % of its excess in whole ticks: an
//!   excess of up to 20 ticks shrinks by one tick, one of a tick vanishes (`htcp_param_update`).
//! - With 10 ms or less, in ticks rounded up, as smallest RTT the decrease is a half
//!   (`htcp_beta_update`).
//! - Undo brings back the clock, and the maxima as the reduction has left them, not as they were
//!   (`htcp_cwnd_undo`, `htcp_reset`).

mod learning;

use crate::controller::Phase;
use crate::entry::Entry;
use crate::linux::module::{AckSample, Module};
use crate::linux::socket::Socket;
use learning::Throughput;

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

/// 1 in the fixed point of `alpha` and `beta` (`ALPHA_BASE`).
const ONE: u32 = 1 << 7;

/// Smallest and largest part kept: 0.5 and 0.797 (`BETA_MIN`, `BETA_MAX`).
const BETA_MIN: u8 = 64;
const BETA_MAX: u8 = 102;

const SOURCE: &str = "Linux 6.1 net/ipv4/tcp_htcp.c";

/// `htcp-linux`.
pub const HTCP_LINUX: Entry<Htcp> = Entry {
    name: "htcp-linux",
    aliases: &[],
    about: "H-TCP to the integer: clocks in ticks, RTT scaling on, alpha in 1/128",
    source: SOURCE,
    params: &[
        param!(use_rtt_scaling: flag = true,
            "divide the increase by 100 ms/RTTmin, between 1/2 and 10", SOURCE),
        param!(use_bandwidth_switch: flag = true,
            "halve when the throughput has changed by more than a fifth between two events",
            SOURCE),
    ],
    build: |p| {
        let module = Htcp::new(p.flag("use_rtt_scaling"), p.flag("use_bandwidth_switch"));
        Ok(module)
    },
};

#[cfg(test)]
mod tests {
    use fullpipe_units::Span;

    use super::*;
    use crate::linux::AnyModule;
    use crate::linux::testing::Bench;

    pub(super) fn bench(hz: u32, w: u32, params: &[(&str, &str)]) -> Bench {
        Bench::avoiding(&HTCP_LINUX, params, hz, w)
    }

    pub(super) fn htcp(b: &mut Bench) -> &mut Htcp {
        match &mut b.module {
            AnyModule::Htcp(m) => m,
            other => panic!("{other:?}"),
        }
    }

    /// Lets one ACK grow the window, so that `alpha` is computed.
    pub(super) fn grow(b: &mut Bench) {
        b.sk.cwnd_cnt = b.sk.cwnd;
        b.ack(1);
        assert_eq!(b.sk.cwnd_cnt, 0);
    }

    pub(super) fn sample(b: &mut Bench, rtt_us: u32) {
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
