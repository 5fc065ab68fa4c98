//! The rate of datagrams over time.

use fullpipe_run::Waveform;
use fullpipe_units::{Rate, Span};

use super::{Judge, rate_of};
use crate::resolve::{Findings, required};

impl Judge<'_> {
    /// What the keys of the kind say of the rate.
    pub(super) fn waveform(&self, findings: &mut Findings) -> Option<Waveform> {
        let r = self.record;
        let mut all = true;
        for (key, line) in self.kind.needs {
            all &= required(findings, r, key, self.path, line);
        }
        if !all {
            return None;
        }
        let constant = |rate| Waveform::Steps {
            steps: vec![(Span::ZERO, rate)],
            period: None,
        };
        match self.kind.word {
            "udp" | "udp-blast" => r.rate("rate").map(constant),
            "udp-on-off" => Some(Waveform::OnOff {
                rate: r.rate("rate")?,
                on: r.span("on")?,
                off: r.span("off")?,
            }),
            "udp-sine" => {
                let (mean, amplitude) = (r.rate("mean")?, r.rate("amplitude")?);
                if amplitude > mean {
                    let message = format!("the rate would fall below zero: the mean is {mean}");
                    self.refuse(findings, "amplitude", message, "at most the mean");
                }
                let period = r.span("period")?;
                Some(Waveform::Sine {
                    mean,
                    amplitude,
                    period,
                })
            }
            "udp-staircase" => self.staircase(findings),
            _ => {
                let files = self.input.files;
                let beside = r.place("file").is_in_file();
                match files.rates(&r.text("file")?, beside) {
                    Ok(steps) => self.steps(steps.as_ref().clone(), false, findings),
                    Err((message, hint)) => {
                        self.refuse(findings, "file", message, &hint);
                        None
                    }
                }
            }
        }
    }

    fn staircase(&self, findings: &mut Findings) -> Option<Waveform> {
        let r = self.record;
        let bits = |key| r.rate(key).map(Rate::as_bits_per_sec);
        let (from, to, step) = (bits("from")?, bits("to")?, bits("step")?);
        let every = r.span("every")?;
        let stairs = from.abs_diff(to) / step;
        if stairs == 0 {
            let message = "there is no step between `from` and `to`";
            self.refuse(findings, "step", message, "lower it");
            return None;
        }
        if stairs > MAX_STEPS {
            let message = format!("{stairs} steps, at most {MAX_STEPS} are allowed");
            self.refuse(findings, "step", message, "raise it");
            return None;
        }
        let rate = |i: u64| {
            let bits = if to > from {
                from + i * step
            } else {
                from - i * step
            };
            Rate::from_bits_per_sec(bits)
        };
        let steps = (0..=stairs).map(|i| (every * i, rate(i))).collect();
        self.steps(steps, true, findings)
    }

    /// Steps with the `period` that the table gives; `with_end`: the last one lasts as long as the others.
    fn steps(
        &self,
        steps: Vec<(Span, Rate)>,
        with_end: bool,
        findings: &mut Findings,
    ) -> Option<Waveform> {
        let period = self.record.span("period");
        let last = steps.last().map_or(Span::ZERO, |(at, _)| *at);
        let every = self.record.span("every").filter(|_| with_end);
        let least = last + every.unwrap_or(Span::ZERO);
        let short = |period: &Span| *period <= last || *period < least;
        if period.as_ref().is_some_and(short) {
            let message = format!("the sequence lasts longer, {least}");
            self.refuse(findings, "period", message, "lengthen it");
            return None;
        }
        Some(Waveform::Steps { steps, period })
    }
}

/// Mean rate while the source runs; `None` for steps that do not repeat.
pub(super) fn mean_rate(waveform: &Waveform) -> Option<Rate> {
    match waveform {
        Waveform::Sine { mean, .. } => Some(*mean),
        Waveform::OnOff { rate, on, off } => {
            let part = on.as_secs_f64() / (*on + *off).as_secs_f64();
            Some(rate_of(rate.as_bits_per_sec() as f64 * part))
        }
        Waveform::Steps { steps, .. } if steps.len() == 1 => Some(steps[0].1),
        Waveform::Steps { period: None, .. } => None,
        Waveform::Steps {
            steps,
            period: Some(period),
        } => {
            let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([*period]);
            let bits = steps
                .iter()
                .zip(ends)
                .map(|((at, rate), end)| rate.as_bits_per_sec() as f64 * (end - *at).as_secs_f64());
            Some(rate_of(bits.sum::<f64>() / period.as_secs_f64()))
        }
    }
}

const MAX_STEPS: u64 = 100_000;
