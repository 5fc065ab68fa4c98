//! RTT estimation and the retransmission timeout: RFC 6298, and Linux's variant of it.
//!
//! Each estimator keeps the names of its document; [`RttEstimator`] is what the sender sees of
//! either.

use fullpipe_units::Span;

use crate::config::{RtoConfig, RtoRule};

/// Smoothed RTT, its variation, its minimum, and the timeout they give.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    rule: Rule,
    estimate: Estimate,
    min: Span,
    latest: Span,
    samples: u64,
    /// Timeouts since the last sample.
    backoff: u32,
    /// The next sample of this segment or a later one adapts the timer to a path that has become
    /// longer; [`u64::MAX`]: none does.
    adapt_from: u64,
    min_rto: Span,
    max_rto: Span,
    /// The timeout is kept in whole ticks of this length, rounded up (Linux `icsk_rto`); zero:
    /// exactly. What is set for it once is rounded by its timer.
    tick: Span,
}

/// The RTT samples of one ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttUpdate {
    /// The segment sampled.
    pub(super) seq: u64,
    /// Feeds SRTT and the timeout.
    pub(super) oldest: Span,
    /// Feeds the minimum: by RFC 6298 beside the other, which SACKs out of order may make smaller.
    pub(super) newest: Span,
    /// First unacknowledged segment, after the ACK.
    pub(super) una: u64,
    /// Next new segment.
    pub(super) nxt: u64,
}

/// What an estimator makes of its samples.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// Zero before the first sample.
    srtt: Span,
    rttvar: Span,
    /// Timeout without bounds and backoff.
    rto: Span,
}

#[derive(Clone, Debug)]
enum Rule {
    Rfc6298(Rfc6298),
    Linux(Linux),
}

/// RFC 6298 section 2, nanoseconds, with a sample per ACK; beside it with one per round trip.
#[derive(Clone, Debug)]
struct Rfc6298 {
    acks: Smoothed,
    /// Zero: not asked for.
    rounds: Smoothed,
    /// The round trip ends with the sample of this segment or a later one; [`u64::MAX`]: none does.
    round_end: u64,
    /// Clock granularity `G`.
    g: u64,
    /// `SRTT_prev` and `RTTVAR_prev` of RFC 4015, of the last timeout and of the spurious one.
    previous: Smoothed,
    spurious: Smoothed,
}

#[derive(Clone, Copy, Debug, Default)]
struct Smoothed {
    srtt: u64,
    rttvar: u64,
}

impl Smoothed {
    /// Section 2.2.
    fn first(r: u64) -> Self {
        Self {
            srtt: r.max(1),
            rttvar: r / 2,
        }
    }

    /// Section 2.3, `alpha` 1/8 and `beta` 1/4.
    #[inline]
    fn next(&mut self, r: u64) {
        self.rttvar = (3 * self.rttvar + self.srtt.abs_diff(r)) >> 2;
        self.srtt = (7 * self.srtt + r) >> 3;
    }

    #[inline]
    fn rto(self, g: u64) -> u64 {
        self.srtt + (4 * self.rttvar).max(g)
    }
}

impl Rfc6298 {
    fn new(g: u64, rounds: bool) -> Self {
        Self {
            acks: Smoothed::default(),
            rounds: Smoothed::default(),
            round_end: if rounds { 0 } else { u64::MAX },
            g,
            previous: Smoothed::default(),
            spurious: Smoothed::default(),
        }
    }

    #[inline(always)]
    fn update(&mut self, sample: RttUpdate) {
        let r = sample.oldest.as_nanos();
        if self.acks.srtt == 0 {
            self.round(sample);
            return self.restart(Smoothed::first(r));
        }
        self.acks.next(r);
        if self.has_rounds() && self.round(sample) {
            self.rounds.next(r);
        }
    }

    #[inline]
    fn has_rounds(&self) -> bool {
        self.round_end != u64::MAX
    }

    /// Whether the sample ends a round trip; the next one begins.
    #[inline]
    fn round(&mut self, sample: RttUpdate) -> bool {
        let ends = sample.seq >= self.round_end;
        if ends {
            self.round_end = sample.nxt;
        }
        ends
    }

    /// RFC 4015 section 3.2 step 11, after a sample of `r` nanoseconds.
    ///
    /// Takes what it needs, so that a caller need not have every sample in memory.
    #[cold]
    fn adapt(&mut self, r: u64) {
        self.restart(Smoothed {
            srtt: self.spurious.srtt.max(r),
            rttvar: self.spurious.rttvar.max(r / 2),
        });
    }

    fn restart(&mut self, from: Smoothed) {
        self.acks = from;
        if self.has_rounds() {
            self.rounds = from;
        }
    }

    #[inline]
    fn estimate(&self) -> Estimate {
        let mut rto = self.acks.rto(self.g);
        if self.has_rounds() {
            rto = rto.max(self.rounds.rto(self.g));
        }
        Estimate {
            srtt: Span::from_nanos(self.acks.srtt),
            rttvar: Span::from_nanos(self.acks.rttvar),
            rto: Span::from_nanos(rto),
        }
    }
}

/// Linux `tcp_rtt_estimator` and `tcp_set_rto`, microseconds.
#[derive(Clone, Debug)]
struct Linux {
    /// Eight times SRTT; zero before the first sample.
    srtt_us: u64,
    /// Four times the mean deviation.
    mdev_us: u64,
    /// Largest of it in the present window.
    mdev_max_us: u64,
    /// Variance term of the timeout, microseconds (Linux `rttvar_us`).
    rttvar_us: u64,
    /// The present window ends when this segment is acknowledged.
    rtt_seq: u64,
    /// Least of `rttvar_us` (`tcp_rto_min_us`).
    rto_min_us: u64,
}

impl Linux {
    fn update(&mut self, mrtt_us: u64, una: u64, nxt: u64) -> Estimate {
        if self.srtt_us == 0 {
            self.srtt_us = (8 * mrtt_us).max(1);
            self.mdev_us = 2 * mrtt_us;
            self.rttvar_us = self.mdev_us.max(self.rto_min_us);
            self.mdev_max_us = self.rttvar_us;
            self.rtt_seq = nxt;
        } else {
            self.next(mrtt_us, una, nxt);
        }
        Estimate::of_nanos(self.srtt_us * 125, self.rttvar_us * 1000)
    }

    /// The deviation grows at a quarter, and at a thirty-second when the RTT falls; the variance
    /// takes the window's largest at once and gives back a quarter of the difference per window.
    fn next(&mut self, mrtt_us: u64, una: u64, nxt: u64) {
        let m = mrtt_us as i64 - (self.srtt_us / 8) as i64;
        self.srtt_us = (self.srtt_us as i64 + m).max(1) as u64;
        let mut change = m.abs() - (self.mdev_us / 4) as i64;
        if m < 0 && change > 0 {
            change /= 8;
        }
        self.mdev_us = (self.mdev_us as i64 + change) as u64;
        if self.mdev_us > self.mdev_max_us {
            self.mdev_max_us = self.mdev_us;
            self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
        }
        if una > self.rtt_seq {
            if self.mdev_max_us < self.rttvar_us {
                self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) / 4;
            }
            self.rtt_seq = nxt;
            self.mdev_max_us = self.rto_min_us;
        }
    }
}

impl Estimate {
    /// The timeout is the sum (Linux `__tcp_set_rto`).
    fn of_nanos(srtt: u64, rttvar: u64) -> Self {
        Self {
            srtt: Span::from_nanos(srtt),
            rttvar: Span::from_nanos(rttvar),
            rto: Span::from_nanos(srtt + rttvar),
        }
    }
}

impl RttEstimator {
    /// The timeout is kept in whole ticks, `hz` a second.
    pub(super) fn with_ticks(mut self, hz: u32) -> Self {
        self.tick = Span::from_nanos(1_000_000_000 / u64::from(hz));
        self
    }

    /// Before the first sample.
    pub fn new(cfg: RtoConfig) -> Self {
        let rule = match cfg.rule {
            RtoRule::Rfc6298 | RtoRule::Rounds => {
                let rounds = cfg.rule == RtoRule::Rounds;
                Rule::Rfc6298(Rfc6298::new(cfg.granularity.as_nanos(), rounds))
            }
            RtoRule::Linux => Rule::Linux(Linux {
                srtt_us: 0,
                mdev_us: 0,
                mdev_max_us: 0,
                rttvar_us: 0,
                rtt_seq: 0,
                rto_min_us: cfg.min.as_nanos() / 1000,
            }),
        };
        Self {
            rule,
            estimate: Estimate {
                srtt: Span::ZERO,
                rttvar: Span::ZERO,
                rto: cfg.initial,
            },
            min: Span::MAX,
            latest: Span::ZERO,
            samples: 0,
            backoff: 0,
            adapt_from: u64::MAX,
            min_rto: cfg.min,
            max_rto: cfg.max,
            tick: Span::ZERO,
        }
    }

    /// One ACK's samples; they clear the timer's backoff.
    #[inline(always)]
    pub(super) fn update(&mut self, sample: RttUpdate) {
        match &mut self.rule {
            Rule::Rfc6298(e) => {
                self.min = self.min.min(sample.oldest);
                if sample.seq >= self.adapt_from {
                    self.adapt_from = u64::MAX;
                    e.round(sample);
                    e.adapt(sample.oldest.as_nanos());
                } else {
                    e.update(sample);
                }
                self.estimate = e.estimate();
            }
            Rule::Linux(e) => {
                let us = sample.oldest.as_nanos() / 1000;
                self.estimate = e.update(us, sample.una, sample.nxt);
            }
        }
        self.latest = sample.newest;
        self.min = self.min.min(sample.newest);
        self.samples += 1;
        self.backoff = 0;
    }

    /// Least timeout before the first sample, if the connection opened late (RFC 6298 section 5.7).
    pub(super) fn start_from(&mut self, rto: Span) {
        if !self.has_sample() {
            self.estimate.rto = self.estimate.rto.max(rto);
        }
        self.backoff = 0;
    }

    /// A timeout that may prove spurious: remembers the estimate (RFC 4015 section 3.2 step 2).
    pub(super) fn remember(&mut self) {
        if let Rule::Rfc6298(e) = &mut self.rule {
            e.previous = Smoothed {
                srtt: e.acks.srtt + 2 * e.g,
                ..e.acks
            };
        }
    }

    /// It was: the first sample of data from `nxt` on counts in full (step 11). What was
    /// outstanding may have been held up by an outage that is over.
    pub(super) fn adapt_from(&mut self, nxt: u64) {
        self.adapt_from = nxt;
        if let Rule::Rfc6298(e) = &mut self.rule {
            e.spurious = e.previous;
        }
    }

    /// Smoothed RTT; zero before the first sample.
    #[inline]
    pub fn srtt(&self) -> Span {
        self.estimate.srtt
    }

    /// RTT variation.
    pub fn rttvar(&self) -> Span {
        self.estimate.rttvar
    }

    /// Smallest sample; [`Span::MAX`] before the first.
    #[inline]
    pub fn min(&self) -> Span {
        self.min
    }

    /// Latest sample.
    #[inline]
    pub fn latest(&self) -> Span {
        self.latest
    }

    /// Number of samples so far.
    #[inline]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// True once there is a sample.
    #[inline]
    pub fn has_sample(&self) -> bool {
        self.estimate.srtt > Span::ZERO
    }

    /// Timeout with its backoff applied.
    #[inline(always)]
    pub fn rto(&self) -> Span {
        match self.backoff {
            0 => self.base_rto(),
            _ => self.backed_off(),
        }
    }

    #[cold]
    fn backed_off(&self) -> Span {
        let tick = self.tick.as_nanos().max(1);
        let base = self.base_rto().as_nanos().div_ceil(tick) * tick;
        let doubled = base.saturating_mul(1 << self.backoff.min(32));
        Span::from_nanos(doubled).min(self.max_rto)
    }

    /// Timeout without backoff.
    #[inline]
    pub fn base_rto(&self) -> Span {
        if !self.has_sample() {
            return self.estimate.rto;
        }
        self.estimate.rto.max(self.min_rto).min(self.max_rto)
    }

    /// The timer expired: double it (section 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RttSample;

    fn linux_config() -> RtoConfig {
        let ms = Span::from_millis;
        RtoConfig {
            min: ms(200),
            max: ms(120_000),
            initial: ms(1000),
            granularity: ms(1),
            rule: RtoRule::Linux,
            sample: RttSample::Oldest,
        }
    }

    fn linux() -> RttEstimator {
        RttEstimator::new(linux_config())
    }

    /// A sample for segments that end at `una`, with `nxt` the next new one.
    fn update(e: &mut RttEstimator, oldest: Span, newest: Span, una: u64, nxt: u64) {
        e.update(RttUpdate {
            seq: una,
            oldest,
            newest,
            una,
            nxt,
        });
    }

    /// Samples of 100, 100, 500, 100 ms, worked by hand: the variance is never below 200 ms, a rise
    /// counts a quarter at once (mean deviation 4x: 200, 150, 512.5 ms), a fall an eighth of that.
    #[test]
    fn linux_raises_the_variance_fast_and_lowers_it_slowly() {
        let ms = Span::from_millis;
        let mut e = linux();
        let rows = [
            (100, 100.0, 200.0),
            (100, 100.0, 200.0),
            (500, 150.0, 512.5),
            (100, 143.75, 512.5),
        ];
        for (sample, srtt, var) in rows {
            update(&mut e, ms(sample), ms(sample), 0, 100);
            assert!(
                (e.srtt().as_secs_f64() * 1e3 - srtt).abs() < 2e-3,
                "{sample}"
            );
            assert!(
                (e.rttvar().as_secs_f64() * 1e3 - var).abs() < 2e-3,
                "{sample}"
            );
        }
        assert!((e.rto().as_secs_f64() * 1e3 - 656.25).abs() < 2e-3);
        // The window has ended: the variance gives back a quarter of what its largest deviation
        // leaves, twice.
        update(&mut e, ms(100), ms(100), 101, 200);
        assert!((e.rttvar().as_secs_f64() * 1e3 - 512.5).abs() < 2e-3);
        update(&mut e, ms(100), ms(100), 201, 300);
        assert!(e.rttvar() < ms(512), "{:?}", e.rttvar());
    }

    /// A first sample of 101 ms: 101 and 202 make 303 ms. Linux keeps 31 ticks of 10 ms and doubles
    /// those (`__tcp_set_rto`, `tcp_retransmit_timer`).
    #[test]
    fn linux_doubles_whole_ticks() {
        let ms = Span::from_millis;
        let doubled = |mut e: RttEstimator| {
            update(&mut e, ms(101), ms(101), 0, 10);
            e.back_off();
            let once = e.rto();
            e.back_off();
            (once, e.rto())
        };
        assert_eq!(doubled(linux()), (ms(606), ms(1212)));
        assert_eq!(doubled(linux().with_ticks(100)), (ms(620), ms(1240)));
    }

    /// SRTT 500 ms with a mean deviation of 250: a sample of 100 ms is 150 ms more than expected,
    /// of which an eighth counts.
    #[test]
    fn a_fall_counts_an_eighth_of_a_rise() {
        let start = Linux {
            srtt_us: 8 * 500_000,
            mdev_us: 4 * 250_000,
            mdev_max_us: 2_000_000,
            rttvar_us: 2_000_000,
            rtt_seq: 100,
            rto_min_us: 200_000,
        };
        let mut fall = start.clone();
        fall.next(100_000, 0, 100);
        assert_eq!(fall.mdev_us, 1_000_000 + 150_000 / 8);
        let mut rise = start;
        rise.next(900_000, 0, 100);
        assert_eq!(rise.mdev_us, 1_000_000 + 150_000);
    }

    #[test]
    fn the_minimum_follows_the_newest_sample() {
        let ms = Span::from_millis;
        let mut e = linux();
        update(&mut e, ms(60), ms(20), 0, 10);
        assert_eq!((e.min(), e.srtt()), (ms(20), ms(60)));
    }

    /// Known numbers of RFC 6298's formulas: samples 0.1, 0.1, 0.12, 0.2, 0.1 s, G = 1 ms, no
    /// floor.
    #[test]
    fn the_estimator_follows_the_formulas() {
        let ms = Span::from_millis;
        let cfg = RtoConfig {
            min: ms(0),
            max: ms(60_000),
            initial: ms(1000),
            granularity: ms(1),
            rule: RtoRule::Rfc6298,
            sample: RttSample::Newest,
        };
        let mut e = RttEstimator::new(cfg);
        assert_eq!(e.rto(), ms(1000));
        let rows = [
            (0.1, 0.1, 0.05, 0.3),
            (0.1, 0.1, 0.0375, 0.25),
            (0.12, 0.1025, 0.033125, 0.235),
            (0.2, 0.1146875, 0.04921875, 0.3115625),
            (0.1, 0.112851562, 0.040585938, 0.275195313),
        ];
        for (sample, srtt, rttvar, rto) in rows {
            let rtt = Span::from_secs_f64(sample);
            update(&mut e, rtt, rtt, 0, 0);
            assert!((e.srtt().as_secs_f64() - srtt).abs() < 2e-9, "{sample}");
            assert!((e.rttvar().as_secs_f64() - rttvar).abs() < 2e-9, "{sample}");
            assert!((e.rto().as_secs_f64() - rto).abs() < 1e-8, "{sample}");
        }
        e.back_off();
        e.back_off();
        assert!((e.rto().as_secs_f64() - 4.0 * 0.275195313).abs() < 1e-7);
        assert_eq!(e.min(), ms(100));
    }

    /// RFC 6298's formulas by hand, with a window of ten segments: a round trip of 200 ms, which
    /// ends with segment 10, then ACKs of 240 ms. Each counts in SRTT and RTTVAR; in the second
    /// estimator the first of every ten: 200, 100 ms; 205, 85; 209.375, 72.5.
    #[test]
    fn one_sample_per_round_trip_keeps_a_longer_history() {
        let ms = Span::from_millis;
        let cfg = RtoConfig {
            min: ms(0),
            rule: RtoRule::Rounds,
            sample: RttSample::Newest,
            ..linux_config()
        };
        let mut e = RttEstimator::new(cfg);
        update(&mut e, ms(200), ms(200), 0, 10);
        for n in 10..30 {
            update(&mut e, ms(240), ms(240), n, n + 10);
        }
        assert!(e.srtt() > ms(237) && e.rttvar() < ms(6), "{e:?}");
        assert_eq!(e.rto(), Span::from_micros(209_375 + 4 * 72_500));
        // Alone the samples of every ACK have forgotten the 200 ms.
        let mut e = RttEstimator::new(RtoConfig {
            rule: RtoRule::Rfc6298,
            ..cfg
        });
        update(&mut e, ms(200), ms(200), 0, 10);
        for n in 10..30 {
            update(&mut e, ms(240), ms(240), n, n + 10);
        }
        assert!(e.rto() < ms(260), "{e:?}");
    }

    #[test]
    fn floor_and_ceiling_hold() {
        let ms = Span::from_millis;
        let cfg = RtoConfig {
            min: ms(200),
            max: ms(900),
            initial: ms(1000),
            granularity: ms(1),
            rule: RtoRule::Rfc6298,
            sample: RttSample::Newest,
        };
        let mut e = RttEstimator::new(cfg);
        update(&mut e, ms(1), ms(1), 0, 0);
        assert_eq!(e.rto(), ms(200));
        for _ in 0..10 {
            e.back_off();
        }
        assert_eq!(e.rto(), ms(900));
    }
}
