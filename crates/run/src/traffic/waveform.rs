//! When the integral of a rate over time reaches a given amount: exact in integers for piecewise
//! constant rates, a bracketed root for the sine. Amounts are in bit/s x ns, so nothing drifts
//! however long a run is.

use std::f64::consts::TAU;

use fullpipe_units::Span;

use crate::rng::ComponentRng;
use crate::spec::Waveform;

/// The integral of one waveform from the start of its source.
#[derive(Clone, Debug)]
pub enum Integral {
    /// Piecewise constant.
    Pieces(Pieces),
    /// A sine around a mean.
    Sine(Sine),
    /// A rate that is always zero.
    Never,
}

/// Amount that a datagram of so many bits adds.
pub fn amount(bits: u64) -> u128 {
    u128::from(bits) * 1_000_000_000
}

impl Integral {
    /// Of `waveform`; `rng` draws its random times, if it has any.
    pub fn new(waveform: &Waveform, rng: ComponentRng) -> Self {
        match waveform {
            Waveform::Steps { steps, period } => {
                let steps: Vec<(u64, u64)> = steps
                    .iter()
                    .map(|(at, rate)| (at.as_nanos(), rate.as_bits_per_sec()))
                    .filter(|(at, _)| period.is_none_or(|p| *at < p.as_nanos()))
                    .collect();
                if steps.iter().all(|(_, rate)| *rate == 0) {
                    return Self::Never;
                }
                Self::Pieces(Pieces::new(Law::Steps {
                    steps,
                    period: period.map(Span::as_nanos),
                    next: 0,
                    from: 0,
                }))
            }
            Waveform::OnOff { rate, on, off } => {
                if rate.as_bits_per_sec() == 0 || *on == Span::ZERO {
                    return Self::Never;
                }
                Self::Pieces(Pieces::new(Law::OnOff {
                    rate: rate.as_bits_per_sec(),
                    on: *on,
                    off: *off,
                    is_on: false,
                    rng,
                }))
            }
            Waveform::Sine {
                mean,
                amplitude,
                period,
            } => {
                if mean.as_bits_per_sec() == 0 || *period == Span::ZERO {
                    return Self::Never;
                }
                Self::Sine(Sine {
                    mean: mean.as_bits_per_sec(),
                    amplitude: amplitude.as_bits_per_sec() as f64,
                    period: period.as_nanos(),
                })
            }
        }
    }

    /// The first nanosecond at which the integral is at least `work`; `None` if that is not before
    /// `limit`. From call to call `work` never falls.
    pub fn reaches(&mut self, work: u128, limit: u64) -> Option<u64> {
        let at = match self {
            Self::Pieces(p) => p.reaches(work, limit)?,
            Self::Sine(s) => s.reaches(work)?,
            Self::Never => return None,
        };
        (at < limit).then_some(at)
    }
}

/// Pieces of constant rate, one after another.
#[derive(Clone, Debug)]
pub struct Pieces {
    law: Law,
    rate: u64,
    from: u64,
    /// [`u64::MAX`]: for ever.
    to: u64,
    /// Integral up to `from`.
    done: u128,
}

/// Generator of the pieces of constant rate.
#[derive(Clone, Debug)]
enum Law {
    /// Begin and rate of each; the next one's index and the begin of the present period.
    Steps {
        steps: Vec<(u64, u64)>,
        period: Option<u64>,
        next: usize,
        from: u64,
    },
    OnOff {
        rate: u64,
        on: Span,
        off: Span,
        is_on: bool,
        rng: ComponentRng,
    },
}

impl Pieces {
    fn new(law: Law) -> Self {
        let mut pieces = Self {
            law,
            rate: 0,
            from: 0,
            to: 0,
            done: 0,
        };
        pieces.advance();
        pieces
    }

    fn advance(&mut self) {
        self.done += self.whole();
        self.from = self.to;
        (self.rate, self.to) = self.law.next(self.from);
    }

    fn whole(&self) -> u128 {
        u128::from(self.rate) * u128::from(self.to - self.from)
    }

    fn reaches(&mut self, work: u128, limit: u64) -> Option<u64> {
        while self.rate == 0 || self.done + self.whole() < work {
            if self.to >= limit {
                return None;
            }
            self.advance();
        }
        let rest = work.saturating_sub(self.done);
        // At most the piece's length, which is a `u64`.
        Some(self.from + rest.div_ceil(u128::from(self.rate)) as u64)
    }
}

impl Law {
    /// Rate and end of the piece that begins at `begin`.
    fn next(&mut self, begin: u64) -> (u64, u64) {
        match self {
            Self::Steps {
                steps,
                period,
                next,
                from,
            } => {
                if *next == steps.len() {
                    *next = 0;
                    *from = begin;
                }
                let rate = steps[*next].1;
                *next += 1;
                let to = match (steps.get(*next), *period) {
                    (Some((at, _)), _) => from.saturating_add(*at),
                    (None, Some(period)) => from.saturating_add(period),
                    (None, None) => u64::MAX,
                };
                (rate, to)
            }
            Self::OnOff {
                rate,
                on,
                off,
                is_on,
                rng,
            } => {
                *is_on = !*is_on;
                let (rate, mean) = if *is_on { (*rate, *on) } else { (0, *off) };
                let lasts = mean.mul_f64(rng.exponential());
                (rate, begin.saturating_add(lasts.as_nanos()))
            }
        }
    }
}

/// `mean + amplitude sin(2 pi t / period)`, integrated: `mean t + amplitude period / (2 pi) (1 -
/// cos(2 pi t / period))`.
#[derive(Clone, Copy, Debug)]
pub struct Sine {
    mean: u64,
    amplitude: f64,
    period: u64,
}

impl Sine {
    /// A whole period adds `mean x period`, whatever the amplitude: the root is sought within one.
    fn reaches(&self, work: u128) -> Option<u64> {
        let whole = u128::from(self.mean) * u128::from(self.period);
        let periods = u64::try_from(work / whole).ok()?;
        let phase = self.root((work % whole) as f64);
        periods.checked_mul(self.period)?.checked_add(phase)
    }

    /// Newton's method, kept inside a bracket that halves when a step leaves it; the integral never
    /// falls.
    fn root(&self, rest: f64) -> u64 {
        let (mean, period) = (self.mean as f64, self.period as f64);
        let (mut low, mut high) = (0.0, period);
        let mut t = rest / mean;
        for _ in 0..ITERATIONS {
            let angle = TAU * t / period;
            let value = mean * t + self.amplitude * period / TAU * (1.0 - libm::cos(angle));
            if value < rest {
                low = t;
            } else {
                high = t;
            }
            let slope = mean + self.amplitude * libm::sin(angle);
            let newton = t - (value - rest) / slope;
            let next = if newton >= low && newton <= high {
                newton
            } else {
                0.5 * (low + high)
            };
            let moved = libm::fabs(next - t);
            t = next;
            if moved < TOLERANCE {
                break;
            }
        }
        libm::ceil(t) as u64
    }
}

const ITERATIONS: u32 = 100;
/// Nanoseconds.
const TOLERANCE: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::Rate;

    fn rng() -> ComponentRng {
        ComponentRng::new(1, "x")
    }

    #[test]
    fn steps_are_integrated_over_zero_stretches_and_periods() {
        let steps = vec![
            (Span::ZERO, Rate::from_bits_per_sec(3)),
            (Span::from_nanos(10), Rate::from_bits_per_sec(0)),
            (Span::from_nanos(20), Rate::from_bits_per_sec(5)),
        ];
        let waveform = |period| Waveform::Steps {
            steps: steps.clone(),
            period,
        };
        let mut once = Integral::new(&waveform(None), rng());
        let at = |i: &mut Integral, w| i.reaches(w, u64::MAX).unwrap();
        assert_eq!(
            [1, 3, 4, 30, 31, 35, 36, 1035].map(|w| at(&mut once, w)),
            [1, 1, 2, 10, 21, 21, 22, 221]
        );
        // 30 + 5 x 5 = 55 per period of 25.
        let mut again = Integral::new(&waveform(Some(Span::from_nanos(25))), rng());
        assert_eq!(
            [30, 31, 55, 56, 110, 55_000_001].map(|w| at(&mut again, w)),
            [10, 21, 25, 26, 50, 25_000_001]
        );
        assert_eq!(again.reaches(55_000_002, 25_000_001), None);
        let zero = vec![(Span::ZERO, Rate::from_bits_per_sec(0))];
        let mut never = Integral::new(
            &Waveform::Steps {
                steps: zero,
                period: Some(Span::from_nanos(5)),
            },
            rng(),
        );
        assert_eq!(never.reaches(1, u64::MAX), None);
    }

    /// Against the closed form evaluated at the root, to the amount of two nanoseconds; the
    /// amplitude equals the mean, so the rate touches zero.
    #[test]
    fn a_sine_is_inverted() {
        let (mean, period) = (1e9, 1e10);
        for amplitude in [0.0, 3e8, 1e9] {
            let mut sine = Integral::new(
                &Waveform::Sine {
                    mean: Rate::from_bits_per_sec(mean as u64),
                    amplitude: Rate::from_bits_per_sec(amplitude as u64),
                    period: Span::from_nanos(period as u64),
                },
                rng(),
            );
            let mut last = 0;
            for n in 1..5000u64 {
                let work = u128::from(n) * 7_654_321_000_000_000;
                let t = sine.reaches(work, u64::MAX).unwrap();
                let got = |t: f64| {
                    mean * t + amplitude * period / TAU * (1.0 - libm::cos(TAU * t / period))
                };
                let tolerance = 2.0 * (mean + amplitude);
                assert!(
                    (got(t as f64) - work as f64).abs() <= tolerance,
                    "{amplitude} {n}"
                );
                assert!(t >= last);
                last = t;
            }
        }
    }

    #[test]
    fn on_and_off_have_their_means() {
        let mut i = Integral::new(
            &Waveform::OnOff {
                rate: Rate::from_bits_per_sec(1_000_000),
                on: Span::from_millis(10),
                off: Span::from_millis(30),
            },
            rng(),
        );
        // A quarter of the time on: 10^9 bit of 10^6 bit/s take 4000 s. 10^5 periods: a standard
        // error of 0.4 %.
        let t = i.reaches(amount(1_000_000_000), u64::MAX).unwrap() as f64 * 1e-9;
        assert!((t / 4000.0 - 1.0).abs() < 0.015, "{t}");
    }
}
