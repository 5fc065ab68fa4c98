//! RTT estimation and the retransmission timeout: RFC 6298, and Linux' variant of it.

use fullpipe_units::Span;

use crate::config::{RtoConfig, RtoRule};

/// Smoothed RTT, its variation, its minimum, and the timeout they give.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    cfg: RtoConfig,
    srtt: u64,
    rttvar: u64,
    min: Span,
    latest: Span,
    samples: u64,
    backoff: u32,
    deviation: Deviation,
}

/// Linux' state beside SRTT, microseconds (`tcp_rtt_estimator`).
#[derive(Clone, Copy, Debug, Default)]
struct Deviation {
    /// Eight times SRTT.
    srtt: u64,
    /// Four times the mean deviation.
    mean: u64,
    /// Largest of it in the present window.
    most: u64,
    /// What the timeout adds to SRTT.
    var: u64,
    /// The present window ends when this segment is acknowledged.
    until: u64,
}

impl Deviation {
    fn first(&mut self, r: u64, floor: u64, nxt: u64) {
        self.srtt = (8 * r).max(1);
        self.mean = 2 * r;
        self.var = self.mean.max(floor);
        self.most = self.var;
        self.until = nxt;
    }

    /// The deviation grows at a quarter, and at a thirty-second when the RTT falls; the variance takes the window's largest at
    /// once and gives back a quarter of the difference per window.
    fn next(&mut self, r: u64, floor: u64, una: u64, nxt: u64) {
        let error = r as i64 - (self.srtt / 8) as i64;
        self.srtt = (self.srtt as i64 + error).max(1) as u64;
        let mut change = error.abs() - (self.mean / 4) as i64;
        if error < 0 && change > 0 {
            change /= 8;
        }
        self.mean = (self.mean as i64 + change) as u64;
        if self.mean > self.most {
            self.most = self.mean;
            self.var = self.var.max(self.most);
        }
        if una > self.until {
            if self.most < self.var {
                self.var -= (self.var - self.most) / 4;
            }
            self.until = nxt;
            self.most = floor;
        }
    }
}

impl RttEstimator {
    /// Before the first sample.
    pub fn new(cfg: RtoConfig) -> Self {
        Self {
            cfg,
            srtt: 0,
            rttvar: 0,
            min: Span::MAX,
            latest: Span::ZERO,
            samples: 0,
            backoff: 0,
            deviation: Deviation::default(),
        }
    }

    /// One ACK's samples: `oldest` feeds SRTT and the timeout, `newest` the minimum. `una` and `nxt` delimit the window.
    #[inline]
    pub fn take(&mut self, oldest: Span, newest: Span, una: u64, nxt: u64) {
        match self.cfg.rule {
            RtoRule::Rfc6298 => {
                self.sample(oldest);
                self.latest = newest;
                self.min = self.min.min(newest);
            }
            RtoRule::Linux => self.sample_window(oldest, newest, una, nxt),
        }
    }

    /// One ACK's samples under Linux' rules: as [`RttEstimator::take`].
    fn sample_window(&mut self, oldest: Span, newest: Span, una: u64, nxt: u64) {
        let floor = self.cfg.min.as_nanos() / 1000;
        let r = oldest.as_nanos() / 1000;
        if self.samples == 0 {
            self.deviation.first(r, floor, nxt);
        } else {
            self.deviation.next(r, floor, una, nxt);
        }
        self.samples += 1;
        self.latest = newest;
        self.min = self.min.min(newest);
        self.srtt = self.deviation.srtt * 125;
        self.rttvar = self.deviation.var * 1000;
        self.backoff = 0;
    }

    /// Section 2: one sample; clears the timer's backoff.
    #[inline]
    pub fn sample(&mut self, rtt: Span) {
        let r = rtt.as_nanos();
        self.latest = rtt;
        self.samples += 1;
        self.min = self.min.min(rtt);
        if self.srtt == 0 {
            self.srtt = r.max(1);
            self.rttvar = r / 2;
        } else {
            self.rttvar = (3 * self.rttvar + self.srtt.abs_diff(r)) >> 2;
            self.srtt = (7 * self.srtt + r) >> 3;
        }
        self.backoff = 0;
    }

    /// Timeout before the first sample, if the connection opened late (RFC 6298 section 5.7).
    pub fn start_from(&mut self, rto: Span) {
        self.cfg.initial = self.cfg.initial.max(rto);
        self.backoff = 0;
    }

    /// After a spurious timeout the sample that caused it must count (RFC 4015 section 3.2).
    pub fn widen(&mut self, srtt: Span, rttvar: Span) {
        self.srtt = self.srtt.max(srtt.as_nanos());
        self.rttvar = self.rttvar.max(rttvar.as_nanos());
    }

    /// Smoothed RTT; zero before the first sample.
    #[inline]
    pub fn srtt(&self) -> Span {
        Span::from_nanos(self.srtt)
    }

    /// RTT variation.
    pub fn rttvar(&self) -> Span {
        Span::from_nanos(self.rttvar)
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
    pub fn has_sample(&self) -> bool {
        self.srtt > 0
    }

    /// Timeout with its backoff applied.
    #[inline]
    pub fn rto(&self) -> Span {
        if self.backoff == 0 {
            return self.base_rto();
        }
        let doubled = self
            .base_rto()
            .as_nanos()
            .saturating_mul(1 << self.backoff.min(32));
        Span::from_nanos(doubled).min(self.cfg.max)
    }

    /// Timeout without backoff.
    #[inline]
    pub fn base_rto(&self) -> Span {
        if self.srtt == 0 {
            return self.cfg.initial;
        }
        let var = match self.cfg.rule {
            RtoRule::Rfc6298 => (4 * self.rttvar).max(self.cfg.granularity.as_nanos()),
            RtoRule::Linux => self.rttvar,
        };
        Span::from_nanos(self.srtt + var)
            .max(self.cfg.min)
            .min(self.cfg.max)
    }

    /// The timer expired: double it (section 5.5).
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RttSample;

    fn linux() -> RttEstimator {
        let ms = Span::from_millis;
        RttEstimator::new(RtoConfig {
            min: ms(200),
            max: ms(120_000),
            initial: ms(1000),
            granularity: ms(1),
            rule: RtoRule::Linux,
            sample: RttSample::Oldest,
        })
    }

    /// Samples of 100, 100, 500, 100 ms, worked by hand: the variance is never below 200 ms, a rise counts a quarter at once
    /// (mean deviation 4x: 200, 150, 512.5 ms), a fall an eighth of that.
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
            e.sample_window(ms(sample), ms(sample), 0, 100);
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
        // The window has ended: the variance gives back a quarter of what its largest deviation leaves, twice.
        e.sample_window(ms(100), ms(100), 101, 200);
        assert!((e.rttvar().as_secs_f64() * 1e3 - 512.5).abs() < 2e-3);
        e.sample_window(ms(100), ms(100), 201, 300);
        assert!(e.rttvar() < ms(512), "{:?}", e.rttvar());
    }

    /// SRTT 500 ms with a mean deviation of 250: a sample of 100 ms is 150 ms more than expected, of which an eighth counts.
    #[test]
    fn a_fall_counts_an_eighth_of_a_rise() {
        let mut d = Deviation {
            srtt: 8 * 500_000,
            mean: 4 * 250_000,
            most: 2_000_000,
            var: 2_000_000,
            until: 100,
        };
        d.next(100_000, 200_000, 0, 100);
        assert_eq!(d.mean, 1_000_000 + 150_000 / 8);
        d.mean = 1_000_000;
        d.srtt = 8 * 500_000;
        d.next(900_000, 200_000, 0, 100);
        assert_eq!(d.mean, 1_000_000 + 150_000);
    }

    #[test]
    fn the_minimum_follows_the_newest_sample() {
        let ms = Span::from_millis;
        let mut e = linux();
        e.sample_window(ms(60), ms(20), 0, 10);
        assert_eq!((e.min(), e.srtt()), (ms(20), ms(60)));
    }

    /// Known numbers of RFC 6298's formulas: samples 0.1, 0.1, 0.12, 0.2, 0.1 s, G = 1 ms, no floor.
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
            e.sample(Span::from_secs_f64(sample));
            assert!((e.srtt().as_secs_f64() - srtt).abs() < 2e-9, "{sample}");
            assert!((e.rttvar().as_secs_f64() - rttvar).abs() < 2e-9, "{sample}");
            assert!((e.rto().as_secs_f64() - rto).abs() < 1e-8, "{sample}");
        }
        e.back_off();
        e.back_off();
        assert!((e.rto().as_secs_f64() - 4.0 * 0.275195313).abs() < 1e-7);
        assert_eq!(e.min(), ms(100));
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
        e.sample(ms(1));
        assert_eq!(e.rto(), ms(200));
        for _ in 0..10 {
            e.back_off();
        }
        assert_eq!(e.rto(), ms(900));
    }
}
