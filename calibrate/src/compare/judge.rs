//! What is compared in a cell of each kind, and whether it is within its limit.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::limit::{
    COMPLETION, DISTURBED, DISTURBED_EVENTS, EVENTS, FIRST_LOSS, GOODPUT, Limit, RTT, SHARE,
};
use super::{Deviation, Metric, Verdict};
use crate::cell::{Cell, Kind};
use crate::measure::{Measure, mean};
use crate::reference::Run;

pub(super) fn judge(cell: &Cell, oracle: &[&Run], sim: &[&Run]) -> Verdict {
    let deviations = match cell.kind {
        Kind::Single => single(&oracle[0].flows[0].measure, &sim[0].flows[0].measure),
        Kind::Many => {
            let mut all = single(&sum(oracle[0]), &sum(sim[0]));
            all.retain(|d| !matches!(d.metric, Metric::FirstLossTime | Metric::FirstLossWindow));
            all
        }
        Kind::Pair => pair(cell, oracle, sim),
        Kind::Loss => means(oracle, sim, 0, &random_loss),
        Kind::Transfer => transfer(&oracle[0].flows[0].measure, &sim[0].flows[0].measure),
        _ => disturbed(cell, oracle, sim),
    };
    let rmse = match cell.kind {
        // Two lives under different losses do not resemble each other.
        _ if cell.repeats > 1 && cell.kind != Kind::Pair => Vec::new(),
        _ => oracle[0]
            .flows
            .iter()
            .zip(&sim[0].flows)
            .filter_map(|(o, s)| {
                let first = |m: &Measure| m.first_loss_s;
                let shift = first(&s.measure).zip(first(&o.measure));
                let shift_ms = shift.map_or(0.0, |(s, o)| (s - o) * 1e3);
                o.curve.as_ref()?.rmse(s.curve.as_ref()?, shift_ms)
            })
            .collect(),
    };
    Verdict {
        cell: cell.id(),
        kind: cell.kind,
        inside: deviations.iter().all(|d| d.inside),
        deviations,
        rmse,
    }
}

fn single(o: &Measure, s: &Measure) -> Vec<Deviation> {
    let all = |metric, of: &dyn Fn(&Measure) -> Option<f64>, limit| {
        Deviation::new(metric, of(o), of(s), limit)
    };
    vec![
        all(Metric::Goodput, &|m| Some(m.goodput_mbit), Some(GOODPUT)),
        all(Metric::RttMean, &|m| Some(m.rtt_mean_ms), Some(RTT)),
        all(Metric::RttP95, &|m| Some(m.rtt_p95_ms), None),
        all(Metric::CwndMean, &|m| Some(m.cwnd_mean), None),
        all(Metric::FirstLossTime, &|m| m.first_loss_s, None),
        all(
            Metric::FirstLossWindow,
            &|m| m.first_loss_cwnd,
            Some(FIRST_LOSS),
        ),
        all(
            Metric::LossEvents,
            &|m| Some(m.loss_events as f64),
            Some(EVENTS),
        ),
        all(
            Metric::Retransmits,
            &|m| Some(m.retransmits as f64),
            Some(EVENTS),
        ),
        all(Metric::Timeouts, &|m| Some(m.timeouts as f64), None),
    ]
}

/// All flows as one: sums, and the mean of the RTTs.
fn sum(run: &Run) -> Measure {
    let flows = || run.flows.iter().map(|f| &f.measure);
    let n = run.flows.len() as f64;
    Measure {
        goodput_mbit: flows().map(|m| m.goodput_mbit).sum(),
        cwnd_mean: flows().map(|m| m.cwnd_mean).sum(),
        rtt_mean_ms: flows().map(|m| m.rtt_mean_ms).sum::<f64>() / n,
        rtt_p95_ms: flows().map(|m| m.rtt_p95_ms).sum::<f64>() / n,
        loss_events: flows().map(|m| m.loss_events).sum(),
        retransmits: flows().map(|m| m.retransmits).sum(),
        timeouts: flows().map(|m| m.timeouts).sum(),
        first_loss_s: None,
        first_loss_cwnd: None,
        completed_s: None,
    }
}

/// Shares are means over the runs; the other metrics are those of the first.
fn pair(cell: &Cell, oracle: &[&Run], sim: &[&Run]) -> Vec<Deviation> {
    let rate = f64::from(cell.path.rate_mbit);
    let shares = |runs: &[&Run], i: usize| -> Vec<f64> {
        let of = |r: &&Run| 100.0 * r.flows[i].measure.goodput_mbit / rate;
        runs.iter().map(of).collect()
    };
    let share = |runs: &[&Run], i: usize| mean(&shares(runs, i));
    let winner = |runs: &[&Run]| f64::from(u8::from(share(runs, 1) > share(runs, 0)));
    let mut all = vec![Deviation::new(
        Metric::Winner,
        Some(winner(oracle)),
        Some(winner(sim)),
        Some(Limit::Same),
    )];
    for flow in 0..cell.flows.len() {
        let (o, s) = (
            interval(&shares(oracle, flow)),
            interval(&shares(sim, flow)),
        );
        all.push(Deviation {
            flow: Some(flow),
            half_widths: Some((o.1, s.1)),
            ..Deviation::new(Metric::Share, Some(o.0), Some(s.0), Some(SHARE))
        });
        let (o, s) = (&oracle[0].flows[flow].measure, &sim[0].flows[flow].measure);
        all.extend(single(o, s).into_iter().map(|d| Deviation {
            flow: Some(flow),
            limit: None,
            inside: true,
            ..d
        }));
    }
    all
}

/// A limit under random loss: the mean window alone has one.
fn random_loss(metric: Metric) -> Option<Limit> {
    (metric == Metric::CwndMean).then_some(Limit::Overlap)
}

/// Every flow under a condition.
fn disturbed(cell: &Cell, oracle: &[&Run], sim: &[&Run]) -> Vec<Deviation> {
    let limit = |metric| match metric {
        Metric::Goodput | Metric::RttMean => Some(DISTURBED),
        Metric::LossEvents | Metric::Retransmits => Some(DISTURBED_EVENTS),
        _ => None,
    };
    let several = cell.flows.len() > 1;
    let flow = |i: usize| {
        let all = means(oracle, sim, i, &limit).into_iter();
        all.map(move |d| Deviation {
            flow: several.then_some(i),
            ..d
        })
    };
    (0..cell.flows.len()).flat_map(flow).collect()
}

/// A transfer that ends.
fn transfer(o: &Measure, s: &Measure) -> Vec<Deviation> {
    let count = |of: &dyn Fn(&Measure) -> u64| (Some(of(o) as f64), Some(of(s) as f64));
    let (o_retransmits, s_retransmits) = count(&|m| m.retransmits);
    let (o_timeouts, s_timeouts) = count(&|m| m.timeouts);
    vec![
        Deviation::new(
            Metric::Completion,
            o.completed_s,
            s.completed_s,
            Some(COMPLETION),
        ),
        Deviation::new(
            Metric::Retransmits,
            o_retransmits,
            s_retransmits,
            Some(EVENTS),
        ),
        Deviation::new(Metric::Timeouts, o_timeouts, s_timeouts, None),
    ]
}

/// The means of a flow over the runs, with their intervals.
fn means(
    oracle: &[&Run],
    sim: &[&Run],
    flow: usize,
    limit: &dyn Fn(Metric) -> Option<Limit>,
) -> Vec<Deviation> {
    type Column = (Metric, fn(&Measure) -> f64);
    let columns: [Column; 6] = [
        (Metric::CwndMean, |m| m.cwnd_mean),
        (Metric::Goodput, |m| m.goodput_mbit),
        (Metric::RttMean, |m| m.rtt_mean_ms),
        (Metric::LossEvents, |m| m.loss_events as f64),
        (Metric::Retransmits, |m| m.retransmits as f64),
        (Metric::Timeouts, |m| m.timeouts as f64),
    ];
    let columns = columns.into_iter().map(|(metric, of)| {
        let values = |runs: &[&Run]| -> Vec<f64> {
            runs.iter().map(|r| of(&r.flows[flow].measure)).collect()
        };
        let (o, s) = (values(oracle), values(sim));
        let several = o.len().max(s.len()) > 1;
        let (o, s) = (interval(&o), interval(&s));
        let half_widths = several.then_some((o.1, s.1));
        let limit = limit(metric);
        Deviation {
            metric,
            flow: None,
            oracle: Some(o.0),
            sim: Some(s.0),
            half_widths,
            limit,
            inside: limit.is_none_or(|l| l.holds(Some(o.0), Some(s.0), half_widths)),
        }
    });
    columns.collect()
}

/// Mean and half the width of Student's 95 % interval; the width of fewer than two values is zero.
pub fn interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let m = mean(values);
    if values.len() < 2 {
        return (m, 0.0);
    }
    let variance = values.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / (n - 1.0);
    let t = StudentsT::new(0.0, 1.0, n - 1.0).map_or(f64::INFINITY, |d| d.inverse_cdf(0.975));
    (m, t * (variance / n).sqrt())
}
