//! RTT estimation and the retransmission timeout (RFC 6298).

use fullpipe_units::Span;

use crate::config::RtoConfig;

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
        }
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
        let var = (4 * self.rttvar).max(self.cfg.granularity.as_nanos());
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

    /// Known numbers of RFC 6298's formulas: samples 0.1, 0.1, 0.12, 0.2, 0.1 s, G = 1 ms, no floor.
    #[test]
    fn the_estimator_follows_the_formulas() {
        let ms = Span::from_millis;
        let cfg = RtoConfig {
            min: ms(0),
            max: ms(60_000),
            initial: ms(1000),
            granularity: ms(1),
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
