//! Traffic that is not a lasting flow: short flows that come and go, datagrams.
//!
//! A short flow counts where it starts: those that start during the warm-up are left out, with all
//! that becomes of them later. What has not finished at the end of the run has no completion time.

use fullpipe_run::{ArrivalOutcome, CrossOutcome, CrossSpec, FlowSpec, Outcome, RunSpec, Transfer};
use fullpipe_units::{Span, Time};

use super::path::scheduled_s;
use crate::number::ratio;

/// One class of short flows.
pub struct ShortFlowsView<'a> {
    /// Transfers, counters and samples of the class.
    pub class: &'a ArrivalOutcome,
    /// Transfers that started in the measured part.
    pub counted: Vec<&'a Transfer>,
    /// Completion times of those of them that finished, seconds, ascending.
    pub times: Vec<f64>,
    /// The same, each divided by what an empty path without slow start allows.
    pub slowdown: Vec<f64>,
    /// Initial window, segments.
    window: u64,
    outcome: &'a Outcome,
}

impl<'a> ShortFlowsView<'a> {
    /// The class at this place of the outcome; `run` is what was run.
    pub fn new(run: &RunSpec, outcome: &'a Outcome, index: usize) -> Option<ShortFlowsView<'a>> {
        let class = outcome.arrivals.get(index)?;
        let spec = run.arrivals.get(index);
        let counted: Vec<&Transfer> = class
            .transfers
            .iter()
            .filter(|t| t.start >= outcome.measure_from)
            .collect();
        let finished = |t: &&Transfer| Some(t.completion?.as_secs_f64());
        let times = sorted(counted.iter().filter_map(finished).collect());
        let path = spec.map(|s| Path::of(run, &s.template));
        let slowdown = path.map_or(Vec::new(), |path| {
            let of = |t: &&Transfer| {
                let ideal = path.ideal_s(t, class.packet);
                ratio(t.completion?.as_secs_f64(), ideal)
            };
            sorted(counted.iter().filter_map(of).collect())
        });
        let window = spec.map_or(0, |s| {
            s.template
                .stack
                .initial_window()
                .unwrap_or(s.template.sender.window.initial) as u64
        });
        Some(ShortFlowsView {
            class,
            counted,
            times,
            slowdown,
            window,
            outcome,
        })
    }

    /// Segments sent, retransmissions included.
    pub fn sent(&self) -> f64 {
        self.class.totals.sent as f64
    }

    /// From the end of the warm-up to the end of the run.
    pub fn seconds(&self) -> f64 {
        let end = Time::ZERO + self.outcome.duration;
        end.saturating_since(self.outcome.measure_from)
            .as_secs_f64()
    }

    /// Segments delivered in each whole interval of that time.
    pub fn samples(&self) -> Vec<f64> {
        let end = Time::ZERO + self.outcome.duration;
        let counts = &self.class.delivered_per_interval;
        samples(counts, self.outcome, self.outcome.measure_from, end)
    }

    /// Losses of the first transmissions of the initial window.
    pub fn initial_loss(&self) -> InitialLoss {
        InitialLoss::of(&self.counted, self.window)
    }
}

/// One source of datagrams.
pub struct DatagramsView<'a> {
    /// Counters and delay samples of the source.
    pub source: &'a CrossOutcome,
    from: Time,
    to: Time,
    outcome: &'a Outcome,
}

impl<'a> DatagramsView<'a> {
    /// The source at this place of the outcome; `run` is what was run.
    pub fn new(run: &RunSpec, outcome: &'a Outcome, index: usize) -> Option<DatagramsView<'a>> {
        let spec: Option<&CrossSpec> = run.cross.get(index);
        let end = Time::ZERO + outcome.duration;
        let start = spec.map_or(Time::ZERO, |s| s.start);
        Some(DatagramsView {
            source: outcome.cross.get(index)?,
            from: start.max(outcome.measure_from),
            to: spec.and_then(|s| s.stop).unwrap_or(end).min(end),
            outcome,
        })
    }

    /// So many datagrams in Mbit, with headers.
    pub fn mbit(&self, datagrams: u64) -> f64 {
        8e-6 * f64::from(self.source.packet) * datagrams as f64
    }

    /// The measured part of the source.
    pub fn seconds(&self) -> f64 {
        self.to.saturating_since(self.from).as_secs_f64()
    }

    /// The same, until the last datagram has arrived. Over a network the clock of the host at which
    /// they arrive is ahead by an unknown part of a round trip: there the shortest delay, which has
    /// that part, does not count.
    pub fn seconds_of_arrival(&self) -> f64 {
        let shortest = match super::over_a_network(self.outcome) {
            true => self.source.delay.min().unwrap_or_default(),
            false => Span::ZERO,
        };
        let last = self
            .source
            .last_arrival
            .saturating_since(Time::ZERO + shortest);
        let to = self.to.max(Time::ZERO + last);
        to.saturating_since(self.from).as_secs_f64()
    }

    /// Datagrams that arrived in each whole interval of the measured part.
    pub fn samples(&self) -> Vec<f64> {
        let counts = &self.source.arrived_per_interval;
        samples(counts, self.outcome, self.from, self.to)
    }
}

/// One source of pings.
pub struct PingView<'a> {
    /// Counters and delay samples of the source.
    pub source: &'a CrossOutcome,
    /// Round trip of a request and its answer that wait for nothing, in the measured part, seconds.
    pub unloaded_s: f64,
}

impl<'a> PingView<'a> {
    /// The source at this place of the outcome; `run` is what was run.
    pub fn new(run: &RunSpec, outcome: &'a Outcome, index: usize) -> Option<PingView<'a>> {
        let source = outcome.cross.get(index)?;
        let view = DatagramsView::new(run, outcome, index)?;
        let scheduled = run.cross.get(index).map_or(0.0, |spec| {
            scheduled_s(run, spec.routes().flatten(), (view.from, view.to))
        });
        Some(PingView {
            source,
            unloaded_s: source.unloaded.as_secs_f64() + scheduled,
        })
    }
}

/// Losses of first transmissions in the initial window of short flows.
pub struct InitialLoss {
    /// Fraction that was lost.
    pub any: Option<f64>,
    /// Fraction of those whose predecessor was lost, whose last but one, and whose last but two.
    pub given: [Option<f64>; 3],
}

impl InitialLoss {
    /// `window`: segments; only the first 64 of a transfer are known.
    fn of(transfers: &[&Transfer], window: u64) -> InitialLoss {
        let (mut sent, mut lost, mut pairs) = (0u64, 0u64, [(0u64, 0u64); 3]);
        for t in transfers {
            let n = t.size.min(window).min(KNOWN);
            let is_lost = |i: u64| t.lost >> i & 1 == 1;
            sent += n;
            for i in 0..n {
                lost += u64::from(is_lost(i));
                for (later, (followed, both)) in (i + 1..n).zip(&mut pairs) {
                    *followed += u64::from(is_lost(i));
                    *both += u64::from(is_lost(i) && is_lost(later));
                }
            }
        }
        InitialLoss {
            any: ratio(lost as f64, sent as f64),
            given: pairs.map(|(followed, both)| ratio(both as f64, followed as f64)),
        }
    }
}

/// What an empty path allows a short flow.
#[derive(Clone)]
struct Path<'a> {
    run: &'a RunSpec,
    flow: &'a FlowSpec,
    /// Round-trip propagation delay before the schedule changes it, seconds.
    rtt: f64,
    /// Rate of the slowest link on the way out, bit/s; infinite without any.
    rate: f64,
}

impl<'a> Path<'a> {
    fn of(run: &'a RunSpec, flow: &'a FlowSpec) -> Path<'a> {
        let links = |way: &'a [usize]| way.iter().filter_map(|&l| run.links.get(l));
        let (out, back) = (&flow.forward, &flow.back);
        let rates = links(out).filter_map(|l| l.rate);
        Path {
            run,
            flow,
            rtt: (links(out).chain(links(back)))
                .map(|l| (l.delay + l.drawn_spread(run.seed)).as_secs_f64())
                .sum(),
            rate: rates
                .map(|r| r.as_bits_per_sec() as f64)
                .fold(f64::INFINITY, f64::min),
        }
    }

    fn ideal_s(&self, transfer: &Transfer, packet: u32) -> f64 {
        let at = (transfer.start, transfer.start);
        let links = self.flow.forward.iter().chain(&self.flow.back);
        let scheduled = scheduled_s(self.run, links, at);
        let bits = 8.0 * f64::from(packet) * transfer.size as f64;
        self.rtt + scheduled + bits / self.rate
    }
}

/// Counts of the whole intervals between two times.
fn samples(per_interval: &[u64], outcome: &Outcome, from: Time, to: Time) -> Vec<f64> {
    let width = outcome.interval.as_nanos().max(1);
    let first = from.as_nanos().div_ceil(width) as usize;
    let end = (to.as_nanos() / width) as usize;
    (first..end)
        .map(|i| per_interval.get(i).copied().unwrap_or(0) as f64)
        .collect()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Segments of a transfer whose loss is known.
const KNOWN: u64 = 64;

#[cfg(test)]
mod tests {
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
    use fullpipe_run::{Buffer, Change, LinkSpec};
    use fullpipe_units::Rate;

    use super::*;
    use crate::testing::transfer;

    fn loss(transfers: &[&Transfer], window: u64) -> (Option<f64>, Option<f64>) {
        let found = InitialLoss::of(transfers, window);
        (found.any, found.given[0])
    }

    #[test]
    fn slowdown_is_against_one_rtt_and_the_transmission() {
        let rate = Some(Rate::from_bits_per_sec(12_000_000));
        let mut link = LinkSpec::new("main", rate, Span::from_millis(100), Buffer::Unlimited);
        link.schedule = vec![Change {
            at: Time::from_secs_f64(5.0),
            rate: None,
            delay: Some(Span::from_millis(300)),
            loss: None,
        }];
        let run = RunSpec {
            links: vec![link],
            ..RunSpec::default()
        };
        let flow = FlowSpec::new(
            "a",
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Y2026, 1500),
            ReceiverConfig::preset(Preset::Y2026),
            vec![0],
            Vec::new(),
        );
        let path = Path::of(&run, &flow);
        // 100 packets of 12000 bits at 12 Mbit/s take 0.1 s.
        for (start, ideal) in [(0.0, 0.2), (5.0, 0.4)] {
            let took = path.ideal_s(&transfer(start, 100, None), 1500);
            assert!((took - ideal).abs() < 1e-12, "{took}");
        }
    }

    #[test]
    fn loss_within_the_first_window_alone_and_after_a_loss() {
        let mut a = transfer(0.0, 30, Some(1.0));
        // Segments 2, 3, 4 and 9 are lost; 10 is outside a window of ten.
        a.lost = 0b110_0001_1100;
        a.lost |= 1 << 9;
        let mut b = transfer(0.0, 4, Some(1.0));
        b.lost = 0b1000;
        let (p, given) = loss(&[&a, &b], 10);
        // 14 segments, 5 lost. Followed within the window: 2, 3, 4; the follower of 2 and of 3 is
        // lost too.
        assert_eq!(p, Some(5.0 / 14.0));
        assert_eq!(given, Some(2.0 / 3.0));
        // Of the next but one only that of 2, which is 4; of the next but two none.
        let further = InitialLoss::of(&[&a, &b], 10).given;
        assert_eq!(further[1..], [Some(1.0 / 3.0), Some(0.0)]);
        assert_eq!(loss(&[&transfer(0.0, 9, None)], 10), (Some(0.0), None));
        assert_eq!(loss(&[], 10), (None, None));
    }

    #[test]
    fn independent_losses_are_as_likely_after_a_loss_as_anywhere() {
        // Every pattern of 8 segments once: each segment lost in half of them, whatever its
        // predecessor.
        let all: Vec<Transfer> = (0..256)
            .map(|lost| Transfer {
                lost,
                ..transfer(0.0, 8, Some(1.0))
            })
            .collect();
        let (p, given) = loss(&all.iter().collect::<Vec<_>>(), 8);
        assert_eq!((p, given), (Some(0.5), Some(0.5)));
        // A burst that is lost whole: certain after a loss.
        let bursts: Vec<Transfer> = (0..256)
            .map(|i| Transfer {
                lost: if i % 4 == 0 { 0xff } else { 0 },
                ..transfer(0.0, 8, Some(1.0))
            })
            .collect();
        let (p, given) = loss(&bursts.iter().collect::<Vec<_>>(), 8);
        assert_eq!((p, given), (Some(0.25), Some(1.0)));
    }
}
