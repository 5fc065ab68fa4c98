//! The comparer: how far the simulator is from Linux in each cell, and whether that is within
//! limits.
//!
//! | cells | metric | limit |
//! |---|---|---|
//! | single | goodput | 2 % |
//! | | mean RTT | 4 % |
//! | | window at the first loss | 2 % or 2 segments |
//! | | loss events, retransmissions | 15 % or 2 |
//! | loss | mean window | the 95 % intervals of the repeats overlap |
//! | pair | share of each flow, mean of the runs | 5 percentage points of the link |
//! | | winner | the same |
//! | many | as single, goodput, losses and retransmissions summed, RTT averaged; no first loss | |
//! | queue, ecn, outage, | goodput, mean RTT of each flow | 5 %, or the intervals of the repeats |
//! | reorder, acks, reverse | loss events, retransmissions | 15 % or 2, or the intervals |
//! | transfer | completion time | 2 % |
//! | | retransmissions | 15 % or 2 |
//!
//! Where both sides draw random numbers, or microseconds do, a cell has several runs, and their
//! means may differ by as much as chance explains: the 95 % intervals overlap.
//!
//! A limit belongs to the inside. What has no limit is told all the same.

mod judge;
mod limit;

use std::collections::BTreeMap;

use serde::Serialize;

pub use judge::interval;
pub use limit::{EVENTS, FIRST_LOSS, GOODPUT, Limit, SHARE};

use crate::cell::{Cell, Kind};
use crate::reference::Run;

/// A quantity that is compared between the simulator and the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Goodput, Mbit/s.
    Goodput,
    /// Mean smoothed RTT, ms.
    RttMean,
    /// 95th percentile of the RTT, ms.
    RttP95,
    /// Mean window, segments.
    CwndMean,
    /// Time of the first loss event, s.
    FirstLossTime,
    /// Window just before the first loss event, segments.
    FirstLossWindow,
    /// Fast recoveries and timeouts.
    LossEvents,
    /// Retransmissions.
    Retransmits,
    /// Timeouts.
    Timeouts,
    /// Share of the link that a flow's goodput takes, percent.
    Share,
    /// Number of the flow with the larger goodput.
    Winner,
    /// Time of a finite transfer, s.
    Completion,
}

/// A metric of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// The quantity compared.
    pub metric: Metric,
    /// Of which flow, where flows are compared one by one.
    pub flow: Option<usize>,
    /// Linux; none if it did not happen there.
    pub oracle: Option<f64>,
    /// The simulator; none if it did not happen there.
    pub sim: Option<f64>,
    /// Half the width of the 95 % intervals, where there are several runs: Linux, simulator.
    pub half_widths: Option<(f64, f64)>,
    /// The limit, if there is one.
    pub limit: Option<Limit>,
    /// Whether it is kept; true without a limit.
    pub inside: bool,
}

/// The judgement of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Name of the cell.
    pub cell: String,
    /// Decides which limits hold.
    pub kind: Kind,
    /// Every metric.
    pub deviations: Vec<Deviation>,
    /// Normalised RMSE of the windows after aligning on the first loss, per flow that has curves;
    /// see [`crate::measure::Curve::rmse`].
    pub rmse: Vec<f64>,
    /// All limits are kept.
    pub inside: bool,
}

/// A part of the cells that keeps a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fraction {
    /// Cells that keep it.
    pub inside: usize,
    /// Cells that have it.
    pub of: usize,
}

/// The verdicts of a comparison and what they amount to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// One per cell, in the order of the cells.
    pub verdicts: Vec<Verdict>,
    /// Cells without results on one of the sides.
    pub missing: Vec<String>,
    /// Cells that keep all limits, per kind.
    pub cells: BTreeMap<Kind, Fraction>,
    /// Cells that keep the limit of a metric, per kind and metric.
    pub metrics: Vec<(Kind, Metric, Fraction)>,
}

impl Deviation {
    fn new(metric: Metric, oracle: Option<f64>, sim: Option<f64>, limit: Option<Limit>) -> Self {
        Self {
            metric,
            flow: None,
            oracle,
            sim,
            half_widths: None,
            limit,
            inside: limit.is_none_or(|l| l.holds(oracle, sim, None)),
        }
    }

    /// Difference as a part of the reference; none where one side has no value or the reference is
    /// zero.
    pub fn relative(&self) -> Option<f64> {
        match (self.oracle, self.sim) {
            (Some(o), Some(s)) if o != 0.0 => Some((s - o) / o),
            _ => None,
        }
    }
}

/// Compares what both sides have of `cells`.
pub fn compare(cells: &[Cell], oracle: &[Run], sim: &[Run]) -> Comparison {
    let (oracle, sim) = (by_cell(oracle), by_cell(sim));
    let (mut verdicts, mut missing) = (Vec::new(), Vec::new());
    for cell in cells {
        let id = cell.id();
        match (oracle.get(id.as_str()), sim.get(id.as_str())) {
            (Some(o), Some(s)) => verdicts.push(judge::judge(cell, o, s)),
            _ => missing.push(id),
        }
    }
    let mut kinds: BTreeMap<Kind, Fraction> = BTreeMap::new();
    let mut metrics: BTreeMap<(Kind, Metric), Fraction> = BTreeMap::new();
    for v in &verdicts {
        kinds.entry(v.kind).or_default().count(v.inside);
        let mut of_cell: BTreeMap<Metric, bool> = BTreeMap::new();
        for d in v.deviations.iter().filter(|d| d.limit.is_some()) {
            *of_cell.entry(d.metric).or_insert(true) &= d.inside;
        }
        for (metric, inside) in of_cell {
            metrics.entry((v.kind, metric)).or_default().count(inside);
        }
    }
    Comparison {
        verdicts,
        missing,
        cells: kinds,
        metrics: metrics.into_iter().map(|((k, m), f)| (k, m, f)).collect(),
    }
}

impl Fraction {
    fn count(&mut self, inside: bool) {
        self.of += 1;
        self.inside += usize::from(inside);
    }

    /// The number itself, without its unit.
    pub fn value(self) -> f64 {
        self.inside as f64 / self.of.max(1) as f64
    }
}

fn by_cell(runs: &[Run]) -> BTreeMap<&str, Vec<&Run>> {
    let mut map: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        map.entry(&run.cell).or_default().push(run);
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell;
    use crate::measure::{Curve, Measure};
    use crate::reference::{Counters, FlowResult};

    fn measured() -> Measure {
        Measure {
            goodput_mbit: 90.0,
            cwnd_mean: 400.0,
            rtt_mean_ms: 50.0,
            rtt_p95_ms: 70.0,
            loss_events: 100,
            retransmits: 200,
            timeouts: 0,
            first_loss_s: Some(1.0),
            first_loss_cwnd: Some(500.0),
            completed_s: Some(2.0),
        }
    }

    fn run(cell: &str, measures: &[Measure]) -> Run {
        Run {
            cell: cell.to_owned(),
            repeat: 0,
            kernel: String::new(),
            hz: 250,
            command: String::new(),
            counters: Counters::new(),
            flows: measures
                .iter()
                .map(|m| FlowResult {
                    module: "reno".to_owned(),
                    measure: *m,
                    curve: None,
                })
                .collect(),
        }
    }

    fn cell_of(kind: Kind) -> Cell {
        cell::all().into_iter().find(|c| c.kind == kind).unwrap()
    }

    /// Verdict of a single cell whose simulated side is changed.
    fn single_with(change: impl Fn(&mut Measure)) -> Verdict {
        let cell = cell_of(Kind::Single);
        let mut s = measured();
        change(&mut s);
        let (o, s) = (run(&cell.id(), &[measured()]), run(&cell.id(), &[s]));
        compare(&[cell], &[o], &[s]).verdicts.remove(0)
    }

    #[test]
    fn every_limit_holds_at_its_edge_and_not_beyond() {
        type Change = fn(&mut Measure, f64);
        let cases: [(Change, f64, f64); 6] = [
            (|m, v| m.goodput_mbit = v, 90.0 * 1.02, 90.0 * 0.9799),
            (|m, v| m.rtt_mean_ms = v, 48.0, 52.01),
            (|m, v| m.first_loss_cwnd = Some(v), 510.0, 510.1),
            (|m, v| m.first_loss_cwnd = Some(v), 490.0, 489.9),
            (|m, v| m.loss_events = v as u64, 115.0, 116.0),
            (|m, v| m.retransmits = v as u64, 170.0, 169.0),
        ];
        assert!(single_with(|_| ()).inside);
        for (i, (change, edge, beyond)) in cases.into_iter().enumerate() {
            assert!(single_with(|m| change(m, edge)).inside, "{i}");
            let v = single_with(|m| change(m, beyond));
            assert!(!v.inside, "{i}");
            assert_eq!(v.deviations.iter().filter(|d| !d.inside).count(), 1, "{i}");
        }
    }

    #[test]
    fn small_numbers_have_absolute_limits() {
        let near = |limit: Limit, o: f64, s: f64| limit.holds(Some(o), Some(s), None);
        assert!(near(EVENTS, 1.0, 3.0) && !near(EVENTS, 1.0, 4.0));
        assert!(near(EVENTS, 0.0, 2.0) && !near(EVENTS, 0.0, 3.0));
        assert!(near(FIRST_LOSS, 50.0, 52.0) && !near(FIRST_LOSS, 50.0, 52.1));
        assert!(!EVENTS.holds(None, Some(1.0), None));
        assert!(EVENTS.holds(None, None, None));
    }

    #[test]
    fn what_has_no_limit_does_not_count() {
        let v = single_with(|m| {
            m.cwnd_mean = 1.0;
            m.timeouts = 50;
            m.rtt_p95_ms = 1.0;
            m.first_loss_s = Some(99.0);
        });
        assert!(v.inside);
        assert!(!single_with(|m| m.first_loss_cwnd = None).inside);
    }

    #[test]
    fn pairs_are_judged_by_shares_and_winner() {
        let cell = cell_of(Kind::Pair);
        let pair = |a: f64, b: f64| {
            let of = |goodput_mbit| Measure {
                goodput_mbit,
                ..measured()
            };
            run(&cell.id(), &[of(a), of(b)])
        };
        let inside = |o: Run, s: Run| {
            let cells = [cell.clone()];
            compare(&cells, &[o], &[s]).verdicts[0].inside
        };
        assert!(inside(pair(60.0, 30.0), pair(55.0, 35.0)));
        assert!(!inside(pair(60.0, 30.0), pair(60.0, 35.5)));
        // Within the points, but another one wins.
        assert!(!inside(pair(46.0, 44.0), pair(44.0, 46.0)));
    }

    #[test]
    fn random_losses_are_judged_by_intervals() {
        // Four degrees of freedom: t = 2.776; the variance of 8..12 is 2.5.
        let (m, half) = interval(&[8.0, 9.0, 10.0, 11.0, 12.0]);
        assert_eq!(m, 10.0);
        assert!((half - 2.7764 * (2.5f64 / 5.0).sqrt()).abs() < 1e-3);
        assert_eq!(interval(&[3.0]), (3.0, 0.0));
        let cell = cell_of(Kind::Loss);
        let runs = |shift: f64| -> Vec<Run> {
            (0..5)
                .map(|k| {
                    let cwnd_mean = 8.0 + f64::from(k) + shift;
                    let m = Measure {
                        cwnd_mean,
                        ..measured()
                    };
                    run(&cell.id(), &[m])
                })
                .collect()
        };
        let inside = |shift| {
            compare(std::slice::from_ref(&cell), &runs(0.0), &runs(shift)).verdicts[0].inside
        };
        assert!(inside(2.0 * half - 1e-9));
        assert!(!inside(2.0 * half + 1e-9));
    }

    #[test]
    fn a_condition_allows_five_percent_or_what_chance_explains() {
        let verdict = |id: &str, goodputs: &[f64], sims: &[f64]| {
            let cell = cell::of(id).unwrap();
            let runs = |values: &[f64]| -> Vec<Run> {
                let of = |goodput_mbit: &f64| Measure {
                    goodput_mbit: *goodput_mbit,
                    ..measured()
                };
                values.iter().map(|v| run(id, &[of(v)])).collect()
            };
            compare(&[cell], &runs(goodputs), &runs(sims)).verdicts[0].inside
        };
        let codel = "cubic-20x30-b4-codel@6.1";
        assert!(verdict(codel, &[100.0], &[105.0]));
        assert!(!verdict(codel, &[100.0], &[105.1]));
        let red = "cubic-20x30-b4-red@6.1";
        let (low, high) = ([90.0, 100.0, 110.0], [100.0, 110.0, 120.0]);
        assert!(verdict(red, &low, &high));
        assert!(!verdict(red, &[99.9, 100.0, 100.1], &[105.9, 106.0, 106.1]));
    }

    #[test]
    fn transfers_are_judged_by_their_time() {
        let cell = cell_of(Kind::Transfer);
        let inside = |completed_s: Option<f64>| {
            let m = Measure {
                completed_s,
                ..measured()
            };
            let (o, s) = (run(&cell.id(), &[measured()]), run(&cell.id(), &[m]));
            compare(std::slice::from_ref(&cell), &[o], &[s]).verdicts[0].inside
        };
        assert!(inside(Some(2.04)) && !inside(Some(2.05)) && !inside(None));
    }

    #[test]
    fn many_flows_are_summed() {
        let cell = cell_of(Kind::Many);
        let of = |goodput_mbit| Measure {
            goodput_mbit,
            ..measured()
        };
        // Each flow differs by half, the sum does not.
        let o = run(&cell.id(), &[of(3.0), of(6.0)]);
        let s = run(&cell.id(), &[of(6.0), of(3.0)]);
        let v = compare(&[cell], &[o], &[s]).verdicts.remove(0);
        assert!(v.inside);
        let goodput = v.deviations.iter().find(|d| d.metric == Metric::Goodput);
        assert_eq!(goodput.unwrap().sim, Some(9.0));
    }

    #[test]
    fn fractions_and_missing_cells() {
        let cells: Vec<Cell> = cell::all().into_iter().take(3).collect();
        let far = Measure {
            goodput_mbit: 1.0,
            ..measured()
        };
        let o: Vec<Run> = cells.iter().map(|c| run(&c.id(), &[measured()])).collect();
        let s = [
            run(&cells[0].id(), &[measured()]),
            run(&cells[1].id(), &[far]),
        ];
        let c = compare(&cells, &o, &s);
        assert_eq!(c.missing, [cells[2].id()]);
        assert_eq!(c.cells[&Kind::Single], Fraction { inside: 1, of: 2 });
        let of = |metric| c.metrics.iter().find(|m| m.1 == metric).unwrap().2;
        assert_eq!(of(Metric::Goodput), Fraction { inside: 1, of: 2 });
        assert_eq!(of(Metric::RttMean), Fraction { inside: 2, of: 2 });
        assert!(c.metrics.iter().all(|m| m.1 != Metric::CwndMean));
    }

    #[test]
    fn curves_are_aligned_on_the_first_loss() {
        let cell = cell_of(Kind::Single);
        let curve = |from: usize| {
            let cwnd = (from..from + 50).map(|k| ((k % 9) + 1) as f64).collect();
            Some(Curve {
                start_ms: 0,
                step_ms: 100,
                cwnd,
            })
        };
        let side = |first: f64, from| {
            let m = Measure {
                first_loss_s: Some(first),
                ..measured()
            };
            let mut run = run(&cell.id(), &[m]);
            run.flows[0].curve = curve(from);
            run
        };
        // The simulator is 0.3 s late and shows it in the curve.
        let v = compare(
            std::slice::from_ref(&cell),
            &[side(1.0, 3)],
            &[side(1.3, 0)],
        );
        assert_eq!(v.verdicts[0].rmse, [0.0]);
    }
}
