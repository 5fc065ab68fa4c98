//! Do two grounds tell the same story? The same scenario ran on both; here are the distances of
//! what they saw.
//!
//! Curves: the relative area between the windows of a flow. Events: how far apart in time, in round
//! trips. Short flows: the area between the distributions of their completion times. With them
//! stand the numbers that a ground must get right ([`is_judged`]), compared like any other metric
//! ([`crate::compare`]). The definitions are in `distance`, and in words in `docs/metrics.md`.
//!
//! Runs are paired by seed (in their order, where the two have none in common). Where chance
//! decides (flows that share a queue: a packet a microsecond later is another loss), no two runs
//! are alike on any ground; so, with several seeds, a distance beyond its threshold is held against
//! that of two seeds of one ground, on the ground where that is larger (a simulator without random
//! losses repeats itself, a running kernel does not): what is no larger does not tell the grounds
//! apart.

mod cause;
mod conclusion;
mod distance;
pub(crate) mod judged;
pub mod study;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::difference::Difference;
use crate::compare::options::Options;
use crate::compare::row::Verdict;
use crate::compare::runs::Runs;
use crate::result::{CaseResult, Estimate, Params, RunResult};
use crate::store::{ResultDir, SeriesKind, StoreError, Table};
pub use judged::{COMPLETION_AREA, CWND_AREA, LOSS_TIME, MEASURES, is_judged};

use distance::{Steps, area_between, area_of_distributions, kolmogorov_smirnov, largest_shift};
use fullpipe_metrics::{Metric, Scope};

const LEAST_RTT: &Metric = Metric::flow("rtt_ms.min");

/// How far apart two grounds are in one respect.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Distance {
    /// Parameters of the case.
    pub params: Params,
    /// Flow or class of short flows.
    pub flow: String,
    /// `cwnd_area`, `loss_time_rtt` or `completion_area`.
    pub measure: &'static str,
    /// Its unit: `1` for a relative area.
    pub unit: &'static str,
    /// Pairs of runs with the same seed.
    pub pairs: usize,
    /// Mean over the pairs; of completion times one number of all runs together.
    pub mean: f64,
    /// Largest of the pairs.
    pub largest: f64,
    /// The mean in milliseconds, of times of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<f64>,
    /// Mean distance of two seeds on one ground, where that is larger; with two seeds or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_seeds: Option<f64>,
    /// Of completion times: largest distance of the two distributions (Kolmogorov and Smirnov), and
    /// what it must exceed to be real at 95 % if the transfers were independent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ks: Option<[f64; 2]>,
    /// Largest accepted mean.
    pub threshold: f64,
    /// Judgement.
    pub verdict: Verdict,
}

/// The distances of all flows and short flows in the cases `same` (indices on both sides).
///
/// # Errors
/// If a series is missing or damaged.
pub(crate) fn distances(
    dirs: [&ResultDir; 2],
    results: &[RunResult; 2],
    runs: &[Runs; 2],
    same: &[[usize; 2]],
    options: &Options,
) -> Result<Vec<Distance>, StoreError> {
    let mut out = Vec::new();
    for at in same {
        let cases = [0, 1].map(|side: usize| &results[side].cases[at[side]]);
        let seeds = paired_seeds(cases);
        let mut seen: [Vec<Seen>; 2] = Default::default();
        for side in [0, 1] {
            for pair in &seeds {
                seen[side].push(Seen::of(dirs[side], at[side], pair[side])?);
            }
        }
        let judge = Judge {
            options,
            params: &cases[0].params,
        };
        for flow in &cases[0].flows {
            let name = flow.name.as_str();
            let of = |seen: &Vec<Seen>| seen.iter().map(|s| s.window(name)).collect();
            let windows: [Vec<Steps>; 2] = [of(&seen[0]), of(&seen[1])];
            if windows.iter().flatten().all(|w| !w.is_empty()) {
                let area = |a: &Steps, b: &Steps| area_between(a, b);
                out.extend(judge.pairs(name, CWND_AREA, "1", &windows, &area));
            }
            let rtt = |side: usize, i: usize| {
                let of = runs[side].values(at[side], Scope::Flow, Some(name), LEAST_RTT.name);
                let found = of.iter().find(|(seed, _)| *seed == seeds[i][side] as i64);
                found.and_then(|(_, rtt)| *rtt)
            };
            let events = |side: usize| {
                let one = |(i, s): (usize, &Seen)| Events {
                    times: s.events(name),
                    rtt_ms: rtt(side, i),
                };
                seen[side].iter().enumerate().map(one).collect()
            };
            let events: [Vec<Events>; 2] = [events(0), events(1)];
            out.extend(judge.events(name, &events));
        }
        for class in &cases[0].traffic {
            let of = |seen: &Vec<Seen>| seen.iter().map(|s| s.completions(&class.name)).collect();
            out.extend(judge.completions(&class.name, &[of(&seen[0]), of(&seen[1])]));
        }
    }
    Ok(out)
}

/// Seeds of the runs that are held against each other: equal ones; in their order, where the two
/// have none in common.
pub fn paired_seeds(cases: [&CaseResult; 2]) -> Vec<[u64; 2]> {
    let of_b: BTreeSet<u64> = cases[1].seeds.iter().copied().collect();
    let of_a = cases[0].seeds.iter().copied();
    let same: Vec<[u64; 2]> = of_a.filter(|s| of_b.contains(s)).map(|s| [s, s]).collect();
    if !same.is_empty() {
        return same;
    }
    let both = cases[0].seeds.iter().zip(&cases[1].seeds);
    both.map(|(a, b)| [*a, *b]).collect()
}

/// Stored tables of a run.
struct Seen {
    series: Option<Named>,
    events: Option<Named>,
    transfers: Option<Named>,
}

/// A table whose rows are found by the name of a flow or class.
struct Named {
    table: Table,
    rows: BTreeMap<String, Vec<usize>>,
}

impl Seen {
    /// The series with a row per ACK where there is one.
    fn of(dir: &ResultDir, case: usize, seed: u64) -> Result<Seen, StoreError> {
        let full = dir.series(case, seed, SeriesKind::FlowsFull)?;
        Ok(Seen {
            series: match full {
                Some(full) => Some(full),
                None => dir.series(case, seed, SeriesKind::Flows)?,
            }
            .map(|table| Named::new(table, "flow")),
            events: dir
                .series(case, seed, SeriesKind::Events)?
                .map(|table| Named::new(table, "flow")),
            transfers: dir
                .series(case, seed, SeriesKind::Transfers)?
                .map(|table| Named::new(table, "name")),
        })
    }

    fn window(&self, flow: &str) -> Steps {
        self.series
            .as_ref()
            .map_or(Steps::default(), |t| steps(&t.table, &t.streams(flow)))
    }

    /// Times of reductions and timeouts of a flow, ascending.
    fn events(&self, flow: &str) -> Vec<f64> {
        let Some(events) = &self.events else {
            return Vec::new();
        };
        let (Some(kinds), Some(times)) = (events.table.text("kind"), events.table.float("time_s"))
        else {
            return Vec::new();
        };
        let counts = |row: &usize| {
            ["loss", "mark", "local-stall", "timeout"].contains(&kinds[*row].as_str())
        };
        let rows = events.streams(flow).into_iter().filter(counts);
        let mut times: Vec<f64> = rows.filter_map(|row| times[row]).collect();
        times.sort_by(f64::total_cmp);
        times
    }

    /// Completion times of a class of short flows, those that finished.
    fn completions(&self, class: &str) -> Vec<f64> {
        let Some(transfers) = &self.transfers else {
            return Vec::new();
        };
        let Some(times) = transfers.table.float("completion_time_s") else {
            return Vec::new();
        };
        let rows = transfers.rows.get(class).into_iter().flatten();
        rows.filter_map(|row| times[*row]).collect()
    }
}

impl Named {
    fn new(table: Table, column: &str) -> Named {
        let mut rows: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (row, name) in table.text(column).into_iter().flatten().enumerate() {
            match rows.get_mut(name) {
                Some(rows) => rows.push(row),
                None => drop(rows.insert(name.clone(), vec![row])),
            }
        }
        Named { table, rows }
    }

    /// The rows of a flow and of its streams, ascending.
    fn streams(&self, flow: &str) -> Vec<usize> {
        // What follows a full stop; a slash comes next in ASCII.
        let numbered = self.rows.range(format!("{flow}.")..format!("{flow}/"));
        let numbered = numbered.filter(|(name, _)| is_stream(name, flow));
        let all = self.rows.get(flow).into_iter();
        let all = all.chain(numbered.map(|(_, rows)| rows));
        let mut all: Vec<usize> = all.flatten().copied().collect();
        all.sort_unstable();
        all
    }
}

/// Times and windows of a flow in a table of series, the sum of its streams.
pub fn window(series: &Table, flow: &str) -> Vec<(f64, f64)> {
    let names = series.text("flow").into_iter().flatten().enumerate();
    let rows = names.filter(|(_, name)| is_stream(name, flow));
    let rows: Vec<usize> = rows.map(|(row, _)| row).collect();
    steps(series, &rows).into_rows()
}

/// The windows of these rows, the sum of what has different names.
fn steps(table: &Table, rows: &[usize]) -> Steps {
    let (Some(names), Some(times), Some(windows)) = (
        table.text("flow"),
        table.float("time_s"),
        table.float("cwnd"),
    ) else {
        return Steps::default();
    };
    let mut streams: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for &row in rows {
        let name = names[row].as_str();
        let (Some(time), Some(window)) = (times[row], windows[row]) else {
            continue;
        };
        match streams.last_mut().filter(|(last, _)| *last == name) {
            Some((_, rows)) => rows.push((time, window)),
            None => streams.push((name, vec![(time, window)])),
        }
    }
    let parts: Vec<Steps> = streams.into_iter().map(|(_, r)| Steps::new(r)).collect();
    Steps::sum(parts)
}

/// True for `flow` and its streams `flow.1`, `flow.2`, ...
fn is_stream(name: &str, flow: &str) -> bool {
    name.strip_prefix(flow).is_some_and(|rest| {
        let number = rest.strip_prefix('.');
        let digits = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
        rest.is_empty() || number.is_some_and(digits)
    })
}

struct Events {
    times: Vec<f64>,
    rtt_ms: Option<f64>,
}

struct Judge<'a> {
    options: &'a Options,
    params: &'a Params,
}

impl Judge<'_> {
    /// A distance of two runs, over the pairs with the same seed, and over neighbouring seeds of
    /// one side. `None` if it is not defined for every pair.
    fn pairs<T>(
        &self,
        flow: &str,
        measure: &'static str,
        unit: &'static str,
        runs: &[Vec<T>; 2],
        between: &dyn Fn(&T, &T) -> Option<f64>,
    ) -> Option<Distance> {
        let pairs = runs[0].iter().zip(&runs[1]);
        let apart: Vec<Option<f64>> = pairs.map(|(a, b)| between(a, b)).collect();
        let seen = Estimate::of(&apart);
        let mean = seen.mean?;
        let of_seeds = |side: &Vec<T>| {
            let pairs = side.windows(2);
            let apart: Vec<Option<f64>> = pairs.map(|p| between(&p[0], &p[1])).collect();
            (Estimate::of(&apart), apart.len())
        };
        let by_mean = |e: &(Estimate, usize)| e.0.mean.unwrap_or(0.0);
        let (one, other) = (of_seeds(&runs[0]), of_seeds(&runs[1]));
        let (seeds, n) = match by_mean(&one) >= by_mean(&other) {
            true => one,
            false => other,
        };
        let threshold = self.options.threshold_of(measure);
        let no_larger = || {
            let difference = Difference::welch(&seeds, n, &seen, apart.len());
            let least = difference.interval.map(|[low, _]| low);
            seeds.mean.is_some_and(|s| mean <= s) || least.is_some_and(|low| low <= 0.0)
        };
        let verdict = if mean == 0.0 {
            Verdict::Same
        } else if mean <= threshold {
            Verdict::Within
        } else if seeds.mean.is_some_and(|s| s > 0.0) && no_larger() {
            Verdict::Indistinguishable
        } else {
            Verdict::Beyond
        };
        Some(Distance {
            params: self.params.clone(),
            flow: flow.to_owned(),
            measure,
            unit,
            pairs: apart.len(),
            mean,
            largest: apart.iter().flatten().copied().fold(0.0, f64::max),
            mean_ms: None,
            between_seeds: seeds.mean,
            ks: None,
            threshold,
            verdict,
        })
    }

    /// Times of events, in round trips of an empty path: the smallest RTT of the first side. Runs
    /// without events on both sides are no distance apart; where only one side has some, their
    /// number tells.
    fn events(&self, flow: &str, runs: &[Vec<Events>; 2]) -> Option<Distance> {
        if runs.iter().flatten().all(|e| e.times.is_empty()) {
            return None;
        }
        let shift = |a: &Events, b: &Events| match (a.times.is_empty(), b.times.is_empty()) {
            (false, false) => largest_shift(&a.times, &b.times),
            _ => Some(0.0),
        };
        let in_rtt = |a: &Events, b: &Events| Some(1e3 * shift(a, b)? / a.rtt_ms.or(b.rtt_ms)?);
        let mut distance = self.pairs(flow, LOSS_TIME, "RTT", runs, &in_rtt)?;
        let both = runs[0].iter().zip(&runs[1]);
        let ms: Vec<Option<f64>> = both.map(|(a, b)| shift(a, b).map(|s| 1e3 * s)).collect();
        distance.mean_ms = Estimate::of(&ms).mean;
        Some(distance)
    }

    /// Completion times of all runs together. Those of one run share its queues: whether a distance
    /// is more than chance is asked of the runs, and of the single transfers only where there is
    /// one run.
    fn completions(&self, class: &str, runs: &[Vec<Vec<f64>>; 2]) -> Option<Distance> {
        let [a, b] = [0, 1].map(|side: usize| runs[side].concat());
        let area = area_of_distributions(&a, &b)?;
        let (step, real) = kolmogorov_smirnov(&a, &b)?;
        let apart = |a: &Vec<f64>, b: &Vec<f64>| area_of_distributions(a, b);
        let by_run = self.pairs(class, COMPLETION_AREA, "1", runs, &apart);
        let threshold = self.options.threshold_of(COMPLETION_AREA);
        let chance = match &by_run {
            Some(d) if d.between_seeds.is_some() => d.verdict != Verdict::Beyond,
            _ => step <= real,
        };
        Some(Distance {
            params: self.params.clone(),
            flow: class.to_owned(),
            measure: COMPLETION_AREA,
            unit: "1",
            pairs: runs[0].len(),
            mean: area,
            largest: by_run.as_ref().map_or(area, |d| d.largest),
            mean_ms: None,
            between_seeds: by_run.and_then(|d| d.between_seeds),
            ks: Some([step, real]),
            threshold,
            verdict: if area == 0.0 {
                Verdict::Same
            } else if area <= threshold {
                Verdict::Within
            } else if chance {
                Verdict::Indistinguishable
            } else {
                Verdict::Beyond
            },
        })
    }
}
