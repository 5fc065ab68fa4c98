//! The rate of datagrams over time.

use fullpipe_run::{Departures, Waveform};
use fullpipe_units::{Rate, Span};

use super::TrafficResolver;
use crate::keys::{TrafficKeys, TrafficKinds};
use crate::value::Findings;

impl TrafficResolver<'_> {
    /// What the keys of the kind say of the times at which datagrams leave; `None` of kinds that
    /// are no datagrams.
    pub(super) fn departures(
        &self,
        kind: &TrafficKinds,
        findings: &mut Findings,
    ) -> Option<Departures> {
        let waveform = self.waveform(kind, findings)?;
        Some(Departures::Rate(waveform, self.at.own.spacing))
    }

    fn waveform(&self, kind: &TrafficKinds, findings: &mut Findings) -> Option<Waveform> {
        match *kind {
            TrafficKinds::Udp { rate } | TrafficKinds::Blast { rate, .. } => {
                let steps = vec![(Span::ZERO, rate)];
                Some(Waveform::Steps {
                    steps,
                    period: None,
                })
            }
            TrafficKinds::OnOff { rate, on, off } => Some(Waveform::OnOff { rate, on, off }),
            TrafficKinds::Sine {
                mean,
                amplitude,
                period,
            } => {
                if amplitude > mean {
                    let message = format!("the rate would fall below zero: the mean is {mean}");
                    let key = &TrafficKeys::amplitude;
                    self.at.refuse(findings, key, message, "at most the mean");
                }
                Some(Waveform::Sine {
                    mean,
                    amplitude,
                    period,
                })
            }
            TrafficKinds::Staircase {
                from,
                to,
                step,
                every,
                period,
            } => {
                let rates = self.stairs(from, to, step, findings)?;
                let steps = (0..).map(|i| every * i).zip(rates).collect();
                self.steps(steps, period, every, findings)
            }
            TrafficKinds::File { ref file, period } => {
                let beside = self.at.record.place(&TrafficKeys::file).is_in_file();
                match self.input.files.rates(file, beside) {
                    Ok(steps) => self.steps(steps.as_ref().clone(), period, Span::ZERO, findings),
                    Err((message, hint)) => {
                        self.at.refuse(findings, &TrafficKeys::file, message, hint);
                        None
                    }
                }
            }
            TrafficKinds::ShortFlows {} | TrafficKinds::Ping {} => None,
        }
    }

    /// The rates from the first to the last.
    fn stairs(
        &self,
        from: Rate,
        to: Rate,
        step: Rate,
        findings: &mut Findings,
    ) -> Option<Vec<Rate>> {
        let [from, to, step] = [from, to, step].map(Rate::as_bits_per_sec);
        let stairs = from.abs_diff(to) / step;
        if stairs == 0 {
            let message = "there is no step between `from` and `to`";
            self.at
                .refuse(findings, &TrafficKeys::step, message, "lower it");
            return None;
        }
        if stairs > MAX_STEPS {
            let message = format!("{stairs} steps, at most {MAX_STEPS} are allowed");
            self.at
                .refuse(findings, &TrafficKeys::step, message, "raise it");
            return None;
        }
        let rate = |i: u64| match to > from {
            true => from + i * step,
            false => from - i * step,
        };
        // The last step may be a smaller one.
        let last = (rate(stairs) != to).then_some(to);
        let rates = (0..=stairs).map(rate).chain(last);
        Some(rates.map(Rate::from_bits_per_sec).collect())
    }

    /// Steps that perhaps repeat, the last of them after `lasts` at the earliest.
    fn steps(
        &self,
        steps: Vec<(Span, Rate)>,
        period: Option<Span>,
        lasts: Span,
        findings: &mut Findings,
    ) -> Option<Waveform> {
        let last = steps.last().map_or(Span::ZERO, |(at, _)| *at);
        let least = last + lasts;
        if period.is_some_and(|period| period <= last || period < least) {
            let message = format!("the sequence lasts longer, {least}");
            self.at
                .refuse(findings, &TrafficKeys::period, message, "lengthen it");
            return None;
        }
        Some(Waveform::Steps { steps, period })
    }
}

const MAX_STEPS: u64 = 100_000;
