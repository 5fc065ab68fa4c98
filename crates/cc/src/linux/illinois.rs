//! Illinois as Linux 6.1 counts it (`net/ipv4/tcp_illinois.c`). What Liu, Basar and Srikant 2008 do not say:
//!
//! - The increase is in 1/128 segments, 38 to 1280 (the smallest is 0.297), the fraction removed in 1/64, 8 to 32; delays are whole
//!   microseconds and every quotient is cut off (`alpha`, `beta`).
//! - Below `win_thresh` segments it is Reno, but the round is not measured: flags and rounds counted towards `theta` stay.
//! - The `theta` short rounds that bring the largest increase back need not follow each other: a long one between does not clear the
//!   count, which has 8 bits.
//! - Without any queueing delay in the flow's life a loss takes an eighth. The largest RTT is never forgotten, the smallest neither.
//! - RTTs above 3.355443 s count as that (`tcp_illinois_acked`). A round's mean divides by a count of 16 bits: 65536 samples are a
//!   round without a sample, a few more than that a round with a huge mean.
//! - The window grows by what the ACK moves the left edge by, segments SACKed before included; by `delta / w` at once when
//!   `delta = count alpha / 128` reaches `w`, and the rest of the count is dropped (`tcp_illinois_cong_avoid`). What slow start leaves
//!   over is dropped too.
//! - A round is judged by the ACK that ends it whether or not the window was the limit, in slow start as well, with its own sample in
//!   the mean.
//! - A timeout makes it Reno until the next round is judged, again at every further expiry (`tcp_illinois_state`).

use super::{AckSample, Module, Socket};
use crate::controller::Phase;
use crate::params::{ParamSpec, Params};
use crate::registry::{Component, Entry, Kind};

/// Illinois.
#[derive(Clone, Debug)]
pub struct Illinois {
    win_thresh: u32,
    theta: u32,
    /// Of the round, microseconds.
    sum_rtt: u64,
    samples: u16,
    /// Of the flow, microseconds.
    base_rtt: u32,
    max_rtt: u32,
    /// The round ends with an ACK beyond this segment.
    end: u64,
    /// Segments per window, 1/128.
    alpha: u32,
    /// Fraction removed, 1/64.
    beta: u32,
    /// Segments that the ACK moved the left edge by.
    acked: u16,
    /// A round's delay has left the lowest zone.
    rtt_above: bool,
    /// Rounds in the lowest zone since.
    rtt_low: u8,
}

impl Illinois {
    fn new(win_thresh: u32, theta: u32) -> Self {
        Self {
            win_thresh,
            theta,
            sum_rtt: 0,
            samples: 0,
            base_rtt: 0x7fff_ffff,
            max_rtt: 0,
            end: 0,
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            acked: 0,
            rtt_above: false,
            rtt_low: 0,
        }
    }

    fn begin_round(&mut self, sk: &Socket) {
        self.end = sk.snd_nxt;
        self.samples = 0;
        self.sum_rtt = 0;
    }

    fn be_reno(&mut self) {
        self.alpha = ALPHA_ONE;
        self.beta = BETA_MAX;
    }

    fn judge_round(&mut self, sk: &Socket) {
        if sk.cwnd < self.win_thresh {
            self.be_reno();
        } else if self.samples > 0 {
            let mean = (self.sum_rtt / u64::from(self.samples)) as u32;
            let delay = mean.wrapping_sub(self.base_rtt);
            let longest = self.max_rtt.wrapping_sub(self.base_rtt);
            self.alpha = self.increase(delay, longest);
            self.beta = decrease(delay, longest);
        }
        self.begin_round(sk);
    }

    /// alpha(da, dm), and the memory of rounds that goes with it.
    fn increase(&mut self, da: u32, dm: u32) -> u32 {
        let d1 = dm / 100;
        if da > d1 {
            self.rtt_above = true;
            return alpha(da - d1, dm.wrapping_sub(d1));
        }
        if self.rtt_above {
            self.rtt_low = self.rtt_low.wrapping_add(1);
            if u32::from(self.rtt_low) < self.theta {
                return self.alpha;
            }
            self.rtt_low = 0;
            self.rtt_above = false;
        }
        ALPHA_MAX
    }
}

/// `dm amax / (dm + da (amax - amin) / amin)`, delays beyond the lowest zone.
fn alpha(da: u32, dm: u32) -> u32 {
    let slope = da.wrapping_mul(ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN;
    // 0 only where the product has wrapped, which takes a mean that 65536 samples have spoilt.
    dm.wrapping_mul(ALPHA_MAX) / dm.wrapping_add(slope).max(1)
}

/// beta(da, dm): the least up to a tenth of the longest delay, the most from eight tenths on, linear between.
fn decrease(da: u32, dm: u32) -> u32 {
    let d2 = dm / 10;
    if da <= d2 {
        return BETA_MIN;
    }
    let d3 = dm.wrapping_mul(8) / 10;
    if da >= d3 || d3 <= d2 {
        return BETA_MAX;
    }
    (BETA_MIN * d3 + (BETA_MAX - BETA_MIN) * da - BETA_MAX * d2) / (d3 - d2)
}

impl Module for Illinois {
    fn init(&mut self, sk: &mut Socket) {
        *self = Self::new(self.win_thresh, self.theta);
        self.begin_round(sk);
    }

    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        let cut = sk.cwnd.wrapping_mul(self.beta) >> BETA_SHIFT;
        (sk.cwnd - cut).max(2)
    }

    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if sk.snd_una > self.end {
            self.judge_round(sk);
        }
        if !sk.is_cwnd_limited() {
            return;
        }
        if sk.in_slow_start() {
            sk.slow_start(acked);
            return;
        }
        sk.cwnd_cnt = sk.cwnd_cnt.wrapping_add(u32::from(self.acked));
        self.acked = 1;
        let delta = sk.cwnd_cnt.wrapping_mul(self.alpha) >> ALPHA_SHIFT;
        if delta >= sk.cwnd {
            sk.cwnd = (sk.cwnd + delta / sk.cwnd).min(sk.clamp);
            sk.cwnd_cnt = 0;
        }
    }

    fn set_state(&mut self, sk: &mut Socket, new: Phase) {
        if new == Phase::Loss {
            self.be_reno();
            self.rtt_low = 0;
            self.rtt_above = false;
            self.begin_round(sk);
        }
    }

    fn pkts_acked(&mut self, _sk: &mut Socket, sample: &AckSample) {
        self.acked = sample.pkts_acked as u16;
        let Some(rtt) = sample.rtt_us else { return };
        let rtt = rtt.min(RTT_MAX);
        self.base_rtt = self.base_rtt.min(rtt);
        self.max_rtt = self.max_rtt.max(rtt);
        self.samples = self.samples.wrapping_add(1);
        self.sum_rtt += u64::from(rtt);
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("alpha", f64::from(self.alpha) / f64::from(ALPHA_ONE));
        visit("beta", f64::from(self.beta) / f64::from(1 << BETA_SHIFT));
        visit("base_us", f64::from(self.base_rtt));
        visit("max_us", f64::from(self.max_rtt));
    }
}

/// Fraction bits of `alpha`, and one segment in them (`ALPHA_SHIFT`, `ALPHA_SCALE`).
const ALPHA_SHIFT: u32 = 7;
const ALPHA_ONE: u32 = 1 << ALPHA_SHIFT;
/// Smallest increase, 0.3 segments per round cut off, and the largest.
const ALPHA_MIN: u32 = 3 * ALPHA_ONE / 10;
const ALPHA_MAX: u32 = 10 * ALPHA_ONE;
/// Fraction bits of `beta`, and the smallest and largest fraction removed.
const BETA_SHIFT: u32 = 6;
const BETA_MIN: u32 = (1 << BETA_SHIFT) / 8;
const BETA_MAX: u32 = (1 << BETA_SHIFT) / 2;
/// Longest RTT that keeps the increase within 32 bits, microseconds (`RTT_MAX`).
const RTT_MAX: u32 = u32::MAX / ALPHA_MAX;
const SOURCE: &str = "Linux 6.1 net/ipv4/tcp_illinois.c";

/// `illinois-linux`.
pub const ILLINOIS_LINUX: Entry = Entry {
    name: "illinois-linux",
    aliases: &[],
    kind: Kind::Module,
    about: "Illinois in fixed point: increase in 1/128, decrease in 1/64",
    source: SOURCE,
    params: &[
        ParamSpec::number(
            "win_thresh",
            15.0,
            0.0..=2_147_483_647.0,
            "segments",
            "Reno below this window",
            SOURCE,
        ),
        ParamSpec::number(
            "theta",
            5.0,
            0.0..=2_147_483_647.0,
            "rounds",
            "short rounds before the largest increase returns; never above 255",
            SOURCE,
        ),
    ],
    build: |p: &Params| {
        let illinois = Illinois::new(p.whole("win_thresh")?, p.whole("theta")?);
        Ok(Component::Module(illinois.into()))
    },
};

#[cfg(test)]
mod tests {
    use super::super::AnyModule;
    use super::*;
    use crate::linux::testing::{Bench, built};

    fn illinois(params: &[(&str, &str)]) -> Illinois {
        match built(&ILLINOIS_LINUX, params) {
            AnyModule::Illinois(illinois) => illinois,
            other => panic!("{other:?}"),
        }
    }

    /// A flow in avoidance with RTTs between 100 and 200 ms behind it, at the end of a round with this mean delay.
    fn at_round_end(cwnd: u32, delay: u32) -> Bench<Illinois> {
        let mut t = Bench::past_start_up(illinois(&[]), cwnd);
        (t.module.base_rtt, t.module.max_rtt) = (100_000, 200_000);
        finish(&mut t, delay);
        t
    }

    /// Another round with this mean delay is about to end.
    fn finish(t: &mut Bench<Illinois>, delay: u32) {
        t.module.samples = 4;
        t.module.sum_rtt = 4 * u64::from(100_000 + delay);
        t.module.end = t.sk.snd_una;
    }

    #[test]
    fn published_increases_and_decreases() {
        for (delay, alpha, beta) in [
            (0, 10.0, 0.125),
            (1000, 10.0, 0.125),
            (2000, 7.515625, 0.125),
            (5000, 4.304688, 0.125),
            (10_000, 2.515625, 0.125),
            (20_000, 1.375, 0.171875),
            (50_000, 0.578125, 0.328125),
            (80_000, 0.367188, 0.5),
            (100_000, 0.296875, 0.5),
        ] {
            let mut t = at_round_end(1000, delay);
            t.ack_rtt(1, None);
            assert!((t.reported("alpha") - alpha).abs() < 1e-6, "{delay}");
            assert_eq!(t.reported("beta"), beta, "{delay}");
        }
    }

    #[test]
    fn edges_of_the_zones() {
        let zones = |delay| {
            let mut t = at_round_end(1000, delay);
            t.ack_rtt(1, None);
            (t.module.alpha, t.module.beta)
        };
        assert_eq!(zones(1001).0, 1279); // 99 000 x 1280 / (99 000 + 32)
        assert_eq!(zones(10_001).1, 8); // (8 x 80 000 + 24 x 10 001 - 32 x 10 000) / 70 000
        assert_eq!((zones(12_916).1, zones(12_917).1), (8, 9));
        assert_eq!(zones(79_999).1, 31);
        // A longest delay too short for two zones.
        assert_eq!(
            (decrease(1, 1), decrease(0, 1), decrease(1, 9)),
            (32, 8, 11)
        );
    }

    #[test]
    fn a_path_that_never_queues_grows_by_ten_and_loses_an_eighth() {
        let mut t = Bench::past_start_up(illinois(&[]), 100);
        t.acks_rtt(3, 50_000);
        assert_eq!((t.module.alpha, t.module.beta), (1280, 8));
        assert_eq!(t.ssthresh(), 88); // 100 - 800/64
    }

    #[test]
    fn reductions_cut_off_in_64ths() {
        for (w, beta, left) in [
            (1000, 21, 672),
            (7, 8, 7),
            (8, 8, 7),
            (3, 32, 2),
            (2, 32, 2),
        ] {
            let mut t = Bench::past_start_up(illinois(&[]), w);
            t.module.beta = beta;
            assert_eq!(t.ssthresh(), left);
        }
    }

    #[test]
    fn the_count_towards_the_next_segments_is_dropped_whole() {
        let mut t = Bench::past_start_up(illinois(&[]), 100);
        t.module.end = u64::MAX;
        t.acks_rtt(9, 50_000); // 90 of 100
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (100, 9));
        t.ack_rtt(1, 50_000);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (101, 0));
        t.ack_rtt(25, 50_000); // 250 of 101: two, and 48 lost
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (103, 0));
        t.module.alpha = ALPHA_MIN;
        t.acks_rtt(346, 50_000); // 346 x 38 / 128 = 102.7
        assert_eq!(t.sk.cwnd, 103);
        t.ack_rtt(1, 50_000); // 103.02
        assert_eq!(t.sk.cwnd, 104);
    }

    #[test]
    fn segments_sacked_before_count_again_in_avoidance() {
        let mut t = Bench::past_start_up(illinois(&[]), 100);
        t.module.end = u64::MAX;
        let sample = AckSample {
            pkts_acked: 8,
            rtt_us: None,
        };
        t.module.pkts_acked(&mut t.sk, &sample);
        t.module.cong_avoid(&mut t.sk, 1);
        assert_eq!(t.sk.cwnd_cnt, 8);
        t.module.cong_avoid(&mut t.sk, 1);
        assert_eq!(t.sk.cwnd_cnt, 9);
        let many = AckSample {
            pkts_acked: 65_538,
            rtt_us: None,
        };
        t.module.pkts_acked(&mut t.sk, &many);
        assert_eq!(t.module.acked, 2); // 16 bits
    }

    #[test]
    fn below_fifteen_segments_it_is_reno_and_the_round_unmeasured() {
        for (w, alpha) in [(14, 128), (15, 1280)] {
            let mut t = at_round_end(w, 0);
            t.ack_rtt(1, None);
            assert_eq!(t.module.alpha, alpha);
        }
        let mut t = at_round_end(14, 100_000);
        t.ack_rtt(1, None);
        assert!(!t.module.rtt_above);
        assert_eq!((t.module.beta, t.module.samples), (32, 0));
        let mut t = at_round_end(14, 0);
        t.module.win_thresh = illinois(&[("win_thresh", "0")]).win_thresh;
        t.ack_rtt(1, None);
        assert_eq!(t.module.alpha, 1280);
    }

    #[test]
    fn five_short_rounds_bring_the_largest_increase_back_whatever_lies_between() {
        let mut t = at_round_end(1000, 50_000);
        let mut alphas = Vec::new();
        for delay in [50_000, 0, 0, 0, 0, 50_000, 0] {
            finish(&mut t, delay);
            t.ack_rtt(1, None);
            alphas.push(t.module.alpha);
        }
        assert_eq!(alphas, [74, 74, 74, 74, 74, 74, 1280]);
        assert!(!t.module.rtt_above);
    }

    #[test]
    fn a_theta_beyond_its_count_never_comes() {
        let mut t = Bench::past_start_up(illinois(&[("theta", "256")]), 1000);
        t.module.rtt_above = true;
        t.module.alpha = 74;
        for _ in 0..600 {
            assert_eq!(t.module.increase(0, 100_000), 74);
        }
        let mut t = Bench::past_start_up(illinois(&[("theta", "255")]), 1000);
        t.module.rtt_above = true;
        let short: Vec<u32> = (0..255).map(|_| t.module.increase(0, 100_000)).collect();
        assert_eq!(short[254], 1280);
    }

    #[test]
    fn long_rtts_are_cut_off() {
        let mut t = Bench::past_start_up(illinois(&[]), 100);
        t.ack_rtt(1, 4_000_000);
        assert_eq!(
            (t.module.max_rtt, t.module.base_rtt),
            (3_355_443, 3_355_443)
        );
    }

    #[test]
    fn a_count_of_samples_that_wraps_spoils_the_mean() {
        let mut t = at_round_end(1000, 0);
        t.module.samples = u16::MAX;
        t.module.sum_rtt = 65_535 * 100_000;
        let before = t.module.alpha;
        t.ack_rtt(1, 100_000);
        assert_eq!(t.module.alpha, before); // no sample: nothing learnt
        finish(&mut t, 0);
        t.module.samples = u16::MAX;
        t.module.sum_rtt = 65_535 * 100_000;
        t.ack_rtt(1, 100_000);
        t.module.samples = 1;
        t.module.sum_rtt = 65_537 * 100_000;
        t.module.end = t.sk.snd_una;
        t.ack_rtt(1, None);
        // 6 553 700 000 in 32 bits is 2 258 732 704; minus the base; the product with 1242 wraps again.
        let da = 2_258_732_704_u32 - 100_000 - 1000;
        assert_eq!(
            t.module.alpha,
            99_000 * 1280 / (99_000 + da.wrapping_mul(1242) / 38)
        );
        assert_eq!(t.module.beta, 32);
    }

    #[test]
    fn rounds_are_judged_without_a_full_window_and_in_slow_start() {
        let mut t = at_round_end(1000, 50_000);
        t.sk.cwnd_limited = false;
        t.ack_rtt(1, None);
        assert_eq!((t.module.alpha, t.sk.cwnd_cnt), (74, 0));
        let mut t = at_round_end(1000, 50_000);
        t.sk.ssthresh = 1001;
        t.ack_rtt(5, None);
        assert_eq!((t.module.alpha, t.sk.cwnd, t.sk.cwnd_cnt), (74, 1001, 0)); // four segments are dropped
    }

    #[test]
    fn the_ending_acks_sample_counts() {
        let mut t = Bench::past_start_up(illinois(&[]), 100);
        (t.module.base_rtt, t.module.max_rtt) = (100_000, 200_000);
        t.module.end = t.sk.snd_una;
        t.ack_rtt(1, 150_000);
        assert_eq!(t.module.alpha, 74);
        assert_eq!(t.module.end, t.sk.snd_nxt);
        t.ack_rtt(1, 150_000); // inside the round
        assert_eq!(t.module.samples, 1);
    }

    #[test]
    fn a_timeout_is_reno_until_the_next_round() {
        let mut t = at_round_end(1000, 50_000);
        t.ack_rtt(1, None);
        t.module.rtt_low = 3;
        for state in [Phase::Recovery, Phase::Cwr, Phase::Disorder, Phase::Open] {
            t.module.set_state(&mut t.sk, state);
            assert_eq!(t.module.alpha, 74);
        }
        t.ack_rtt(1, 150_000);
        t.module.set_state(&mut t.sk, Phase::Loss);
        assert_eq!((t.module.alpha, t.module.beta), (128, 32));
        assert_eq!((t.module.rtt_low, t.module.rtt_above), (0, false));
        assert_eq!((t.module.samples, t.module.sum_rtt), (0, 0));
        assert_eq!((t.module.base_rtt, t.module.max_rtt), (100_000, 200_000));
    }
}
