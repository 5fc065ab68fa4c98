//! Illinois in the kernel's integers (Linux 6.1 `net/ipv4/tcp_illinois.c`).
//!
//! The law of Liu, Basar and Srikant 2006: once per round the mean queueing delay `d_a`, held
//! against the longest one seen, `d_m`, sets the increase `alpha = f1(d_a)` and the fraction
//! removed, `beta = f2(d_a)`. What the integers and the kernel's call sites add to it:
//!
//! - `alpha` is in 1/128 segments, 38 to 1280 (the smallest is 0.297), `beta` in 1/64, 8 to 32;
//!   delays are whole microseconds and every quotient is rounded down.
//! - Below `win_thresh` segments it is Reno, and the round is not judged: the short rounds counted
//!   towards `theta` stay.
//! - The `theta` short rounds that bring the largest increase back need not follow each other: a
//!   long one in between does not clear the count, which has 8 bits.
//! - A flow that never saw a queueing delay loses an eighth. Shortest and longest RTT are those of
//!   the whole connection.
//! - RTTs above 3.355443 s count as that (`tcp_illinois_acked`). The samples of a round are counted
//!   in 16 bits: 65536 of them are a round without a sample, a few more one with a huge mean.
//! - The window grows by the advance of the left edge, segments SACKed earlier included. What
//!   slow start leaves over is dropped, and so is what exceeds a whole number of windows when the
//!   window grows (`tcp_illinois_cong_avoid`).
//! - The ACK that ends a round is part of it, with its sample. Rounds are judged in slow start and
//!   without a full window as well.
//! - A timeout makes it Reno until the next round is judged, again at every further expiry
//!   (`tcp_illinois_state`).

use crate::controller::Phase;
use crate::entry::Entry;
use crate::linux::module::{AckSample, Module};
use crate::linux::socket::Socket;

/// Illinois.
#[derive(Clone, Debug)]
pub struct Illinois {
    /// `W_thresh`: Reno below this window, segments.
    w_thresh: u32,
    /// Short rounds that bring the largest increase back.
    theta: u32,
    rtts: Rtts,
    gains: Gains,
    /// Rounds with `d_a <= d_1` since a longer one; `None` while the largest increase applies.
    short_rounds: Option<u8>,
    /// Advance of the left edge with the last ACK, segments.
    advance: u16,
}

/// What each window is multiplied by: the paper's `alpha` and `beta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gains {
    /// Increase per round, 1/128 segments.
    alpha: u32,
    /// Fraction that a loss removes, 1/64.
    beta: u32,
}

impl Gains {
    const RENO: Self = Self {
        alpha: SEGMENT,
        beta: BETA_MAX,
    };
    /// Before the first round is judged.
    const FIRST: Self = Self {
        alpha: ALPHA_MAX,
        beta: BETA_MAX,
    };
}

/// RTTs of the running round and their extremes over the connection, microseconds.
#[derive(Clone, Copy, Debug)]
struct Rtts {
    shortest: u32,
    longest: u32,
    sum: u64,
    count: u16,
    /// An ACK beyond this segment ends the round.
    round_end: u64,
}

/// Queueing delays of a finished round, microseconds.
#[derive(Clone, Copy, Debug)]
struct Queueing {
    /// `d_a`, the round's mean.
    mean: u32,
    /// `d_m`, the longest of the connection.
    longest: u32,
}

impl Illinois {
    fn new(w_thresh: u32, theta: u32) -> Self {
        Self {
            w_thresh,
            theta,
            rtts: Rtts::NONE,
            gains: Gains::FIRST,
            short_rounds: None,
            advance: 0,
        }
    }

    fn end_round(&mut self, sk: &Socket) {
        let judged = self.rtts.queueing();
        self.rtts.begin_round(sk.snd_nxt);
        if sk.cwnd < self.w_thresh {
            self.gains = Gains::RENO;
        } else if let Some(delay) = judged {
            self.gains = Gains {
                alpha: self.alpha(delay),
                beta: f2(delay.mean, delay.longest),
            };
        }
    }

    /// `f1`, whose largest value waits for `theta` short rounds once a longer one has been seen.
    fn alpha(&mut self, delay: Queueing) -> u32 {
        let d_1 = delay.longest / 100;
        let Some(beyond) = delay.mean.checked_sub(d_1).filter(|us| *us > 0) else {
            return self.alpha_of_short_round();
        };
        self.short_rounds.get_or_insert(0);
        f1(beyond, delay.longest - d_1)
    }

    fn alpha_of_short_round(&mut self) -> u32 {
        let rounds = self.short_rounds.map(|rounds| rounds.wrapping_add(1));
        self.short_rounds = rounds.filter(|rounds| u32::from(*rounds) < self.theta);
        match self.short_rounds {
            Some(_) => self.gains.alpha,
            None => ALPHA_MAX,
        }
    }

    /// Congestion avoidance: `alpha` segments per window of segments.
    fn avoid(&mut self, sk: &mut Socket) {
        let advance = core::mem::replace(&mut self.advance, 1);
        let credit = sk.cwnd_cnt.wrapping_add(u32::from(advance));
        let earned = credit.wrapping_mul(self.gains.alpha) / SEGMENT;
        if earned < sk.cwnd {
            sk.cwnd_cnt = credit;
        } else {
            sk.cwnd_cnt = 0;
            sk.cwnd = sk.clamp.min(sk.cwnd + earned / sk.cwnd);
        }
    }
}

impl Rtts {
    const NONE: Self = Self {
        shortest: 0x7fff_ffff,
        longest: 0,
        sum: 0,
        count: 0,
        round_end: 0,
    };

    fn begin_round(&mut self, snd_nxt: u64) {
        (self.sum, self.count, self.round_end) = (0, 0, snd_nxt);
    }

    fn take(&mut self, rtt: u32) {
        let rtt = rtt.min(LONGEST_RTT);
        self.sum += u64::from(rtt);
        self.count = self.count.wrapping_add(1);
        self.shortest = self.shortest.min(rtt);
        self.longest = self.longest.max(rtt);
    }

    /// `None` for a round without a sample.
    fn queueing(&self) -> Option<Queueing> {
        let mean = self.sum.checked_div(u64::from(self.count))? as u32;
        Some(Queueing {
            mean: mean.wrapping_sub(self.shortest),
            longest: self.longest - self.shortest,
        })
    }
}

/// `f1 = kappa_1 / (kappa_2 + d_a)`, both sides times `(alpha_max - alpha_min) / alpha_min`: with
/// `x = d_a - d_1` and `r = d_m - d_1` that is `alpha_max r / (r + x (alpha_max/alpha_min - 1))`.
fn f1(x: u32, r: u32) -> u32 {
    // Only the spoilt mean of more than 65536 samples wraps, which may leave 0 to divide by.
    let steep = x.wrapping_mul(ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN;
    ALPHA_MAX * r / r.wrapping_add(steep).max(1)
}

/// `f2 = kappa_3 + kappa_4 d_a`: `beta_min` up to `d_2 = d_m/10`, `beta_max` from `d_3 = 8 d_m/10`
/// on, and in proportion between the two.
fn f2(d_a: u32, d_m: u32) -> u32 {
    let (d_2, d_3) = (d_m / 10, 8 * d_m / 10);
    if d_a <= d_2 {
        BETA_MIN
    } else if d_a < d_3 {
        BETA_MIN + (BETA_MAX - BETA_MIN) * (d_a - d_2) / (d_3 - d_2)
    } else {
        BETA_MAX
    }
}

impl Module for Illinois {
    fn init(&mut self, sk: &mut Socket) {
        *self = Self::new(self.w_thresh, self.theta);
        self.rtts.begin_round(sk.snd_nxt);
    }

    fn pkts_acked(&mut self, _sk: &mut Socket, sample: &AckSample) {
        if let Some(rtt) = sample.rtt_us {
            self.rtts.take(rtt);
        }
        self.advance = sample.pkts_acked as u16;
    }

    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if sk.snd_una > self.rtts.round_end {
            self.end_round(sk);
        }
        match (sk.is_cwnd_limited(), sk.in_slow_start()) {
            (false, _) => {}
            (true, true) => {
                sk.slow_start(acked);
            }
            (true, false) => self.avoid(sk),
        }
    }

    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        let removed = sk.cwnd.wrapping_mul(self.gains.beta) / WHOLE;
        (sk.cwnd - removed).max(2)
    }

    fn set_state(&mut self, sk: &mut Socket, new: Phase) {
        if new == Phase::Loss {
            self.gains = Gains::RENO;
            self.short_rounds = None;
            self.rtts.begin_round(sk.snd_nxt);
        }
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("alpha", f64::from(self.gains.alpha) / f64::from(SEGMENT));
        visit("beta", f64::from(self.gains.beta) / f64::from(WHOLE));
        visit("base_us", f64::from(self.rtts.shortest));
        visit("max_us", f64::from(self.rtts.longest));
    }
}

/// One segment in the unit of `alpha`.
const SEGMENT: u32 = 128;
/// `alpha_min`, 0.3 segments per round rounded down.
const ALPHA_MIN: u32 = 3 * SEGMENT / 10;
/// `alpha_max`, 10 segments per round.
const ALPHA_MAX: u32 = 10 * SEGMENT;
/// The whole window in the unit of `beta`.
const WHOLE: u32 = 64;
/// `beta_min`, an eighth of the window.
const BETA_MIN: u32 = WHOLE / 8;
/// `beta_max`, half of it.
const BETA_MAX: u32 = WHOLE / 2;
/// Longest RTT for which `alpha_max d_m` fits into 32 bits, microseconds.
const LONGEST_RTT: u32 = u32::MAX / ALPHA_MAX;
const SOURCE: &str = "Linux 6.1 net/ipv4/tcp_illinois.c";

/// `illinois-linux`.
pub const ILLINOIS_LINUX: Entry<Illinois> = Entry {
    name: "illinois-linux",
    aliases: &[],
    about: "Illinois in fixed point: increase in 1/128, decrease in 1/64",
    source: SOURCE,
    params: &[
        param!(win_thresh: number = 15.0, 0.0..=2_147_483_647.0, "segments",
            "Reno below this window", SOURCE),
        param!(theta: number = 5.0, 0.0..=2_147_483_647.0, "rounds",
            "short rounds before the largest increase returns; never above 255", SOURCE),
    ],
    build: |p| {
        let illinois = Illinois::new(p.whole("win_thresh")?, p.whole("theta")?);
        Ok(illinois)
    },
};

#[cfg(test)]
mod tests {
    use super::super::AnyModule;
    use super::*;
    use crate::linux::testing::{Bench, built};

    /// A round without any delay on a path that has seen 100 ms of it.
    const SHORT: Queueing = Queueing {
        mean: 0,
        longest: 100_000,
    };

    fn illinois(params: &[(&str, &str)]) -> Illinois {
        match built(&ILLINOIS_LINUX, params) {
            AnyModule::Illinois(illinois) => illinois,
            other => panic!("{other:?}"),
        }
    }

    /// A flow in avoidance with RTTs between 100 and 200 ms behind it, at the end of a round with
    /// this mean delay.
    fn at_round_end(cwnd: u32, delay: u32) -> Bench<Illinois> {
        let mut t = Bench::past_start_up(illinois(&[]), cwnd);
        (t.module.rtts.shortest, t.module.rtts.longest) = (100_000, 200_000);
        finish(&mut t, delay);
        t
    }

    /// Another round with this mean delay is about to end.
    fn finish(t: &mut Bench<Illinois>, delay: u32) {
        t.module.rtts.count = 4;
        t.module.rtts.sum = 4 * u64::from(100_000 + delay);
        t.module.rtts.round_end = t.sk.snd_una;
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
            (t.module.gains.alpha, t.module.gains.beta)
        };
        assert_eq!(zones(1001).0, 1279); // 99 000 x 1280 / (99 000 + 32)
        assert_eq!(zones(10_001).1, 8); // (8 x 80 000 + 24 x 10 001 - 32 x 10 000) / 70 000
        assert_eq!((zones(12_916).1, zones(12_917).1), (8, 9));
        assert_eq!(zones(79_999).1, 31);
        // A longest delay too short for two zones.
        assert_eq!((f2(1, 1), f2(0, 1), f2(1, 9)), (32, 8, 11));
    }

    #[test]
    fn a_path_that_never_queues_grows_by_ten_and_loses_an_eighth() {
        let mut t = Bench::past_start_up(illinois(&[]), 100);
        t.acks_rtt(3, 50_000);
        assert_eq!((t.module.gains.alpha, t.module.gains.beta), (1280, 8));
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
            t.module.gains.beta = beta;
            assert_eq!(t.ssthresh(), left);
        }
    }

    #[test]
    fn the_count_towards_the_next_segments_is_dropped_whole() {
        let mut t = Bench::past_start_up(illinois(&[]), 100);
        t.module.rtts.round_end = u64::MAX;
        t.acks_rtt(9, 50_000); // 90 of 100
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (100, 9));
        t.ack_rtt(1, 50_000);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (101, 0));
        t.ack_rtt(25, 50_000); // 250 of 101: two, and 48 lost
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (103, 0));
        t.module.gains.alpha = ALPHA_MIN;
        t.acks_rtt(346, 50_000); // 346 x 38 / 128 = 102.7
        assert_eq!(t.sk.cwnd, 103);
        t.ack_rtt(1, 50_000); // 103.02
        assert_eq!(t.sk.cwnd, 104);
    }

    #[test]
    fn segments_sacked_before_count_again_in_avoidance() {
        let mut t = Bench::past_start_up(illinois(&[]), 100);
        t.module.rtts.round_end = u64::MAX;
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
        assert_eq!(t.module.advance, 2); // 16 bits
    }

    #[test]
    fn below_fifteen_segments_it_is_reno_and_the_round_unmeasured() {
        for (w, alpha) in [(14, 128), (15, 1280)] {
            let mut t = at_round_end(w, 0);
            t.ack_rtt(1, None);
            assert_eq!(t.module.gains.alpha, alpha);
        }
        let mut t = at_round_end(14, 100_000);
        t.ack_rtt(1, None);
        assert!(t.module.short_rounds.is_none());
        assert_eq!((t.module.gains.beta, t.module.rtts.count), (32, 0));
        let mut t = at_round_end(14, 0);
        t.module.w_thresh = illinois(&[("win_thresh", "0")]).w_thresh;
        t.ack_rtt(1, None);
        assert_eq!(t.module.gains.alpha, 1280);
    }

    #[test]
    fn five_short_rounds_bring_the_largest_increase_back_whatever_lies_between() {
        let mut t = at_round_end(1000, 50_000);
        let mut alphas = Vec::new();
        for delay in [50_000, 0, 0, 0, 0, 50_000, 0] {
            finish(&mut t, delay);
            t.ack_rtt(1, None);
            alphas.push(t.module.gains.alpha);
        }
        assert_eq!(alphas, [74, 74, 74, 74, 74, 74, 1280]);
        assert!(t.module.short_rounds.is_none());
    }

    #[test]
    fn a_theta_beyond_its_count_never_comes() {
        let mut t = Bench::past_start_up(illinois(&[("theta", "256")]), 1000);
        t.module.short_rounds = Some(0);
        t.module.gains.alpha = 74;
        for _ in 0..600 {
            assert_eq!(t.module.alpha(SHORT), 74);
        }
        let mut t = Bench::past_start_up(illinois(&[("theta", "255")]), 1000);
        t.module.short_rounds = Some(0);
        let short: Vec<u32> = (0..255).map(|_| t.module.alpha(SHORT)).collect();
        assert_eq!(short[254], 1280);
    }

    #[test]
    fn long_rtts_are_cut_off() {
        let mut t = Bench::past_start_up(illinois(&[]), 100);
        t.ack_rtt(1, 4_000_000);
        assert_eq!(
            (t.module.rtts.longest, t.module.rtts.shortest),
            (3_355_443, 3_355_443)
        );
    }

    #[test]
    fn a_count_of_samples_that_wraps_spoils_the_mean() {
        let mut t = at_round_end(1000, 0);
        t.module.rtts.count = u16::MAX;
        t.module.rtts.sum = 65_535 * 100_000;
        let before = t.module.gains.alpha;
        t.ack_rtt(1, 100_000);
        assert_eq!(t.module.gains.alpha, before); // no sample: nothing learnt
        finish(&mut t, 0);
        t.module.rtts.count = u16::MAX;
        t.module.rtts.sum = 65_535 * 100_000;
        t.ack_rtt(1, 100_000);
        t.module.rtts.count = 1;
        t.module.rtts.sum = 65_537 * 100_000;
        t.module.rtts.round_end = t.sk.snd_una;
        t.ack_rtt(1, None);
        // 6 553 700 000 in 32 bits is 2 258 732 704; minus the base; the product with 1242 wraps
        // again.
        let da = 2_258_732_704_u32 - 100_000 - 1000;
        assert_eq!(
            t.module.gains.alpha,
            99_000 * 1280 / (99_000 + da.wrapping_mul(1242) / 38)
        );
        assert_eq!(t.module.gains.beta, 32);
    }

    #[test]
    fn rounds_are_judged_without_a_full_window_and_in_slow_start() {
        let mut t = at_round_end(1000, 50_000);
        t.sk.cwnd_limited = false;
        t.ack_rtt(1, None);
        assert_eq!((t.module.gains.alpha, t.sk.cwnd_cnt), (74, 0));
        let mut t = at_round_end(1000, 50_000);
        t.sk.ssthresh = 1001;
        t.ack_rtt(5, None);
        // Four segments are dropped.
        assert_eq!(
            (t.module.gains.alpha, t.sk.cwnd, t.sk.cwnd_cnt),
            (74, 1001, 0)
        );
    }

    #[test]
    fn the_ending_acks_sample_counts() {
        let mut t = Bench::past_start_up(illinois(&[]), 100);
        (t.module.rtts.shortest, t.module.rtts.longest) = (100_000, 200_000);
        t.module.rtts.round_end = t.sk.snd_una;
        t.ack_rtt(1, 150_000);
        assert_eq!(t.module.gains.alpha, 74);
        assert_eq!(t.module.rtts.round_end, t.sk.snd_nxt);
        t.ack_rtt(1, 150_000); // inside the round
        assert_eq!(t.module.rtts.count, 1);
    }

    #[test]
    fn a_timeout_is_reno_until_the_next_round() {
        let mut t = at_round_end(1000, 50_000);
        t.ack_rtt(1, None);
        t.module.short_rounds = Some(3);
        for state in [Phase::Recovery, Phase::Cwr, Phase::Disorder, Phase::Open] {
            t.module.set_state(&mut t.sk, state);
            assert_eq!(t.module.gains.alpha, 74);
        }
        t.ack_rtt(1, 150_000);
        t.module.set_state(&mut t.sk, Phase::Loss);
        assert_eq!((t.module.gains.alpha, t.module.gains.beta), (128, 32));
        assert_eq!(t.module.short_rounds, None);
        assert_eq!((t.module.rtts.count, t.module.rtts.sum), (0, 0));
        assert_eq!(
            (t.module.rtts.shortest, t.module.rtts.longest),
            (100_000, 200_000)
        );
    }
}
