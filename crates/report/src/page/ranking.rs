//! Who came out ahead: the competitors of a scenario in order, over cases that all of them have.
//!
//! A mean over fewer cases than another's says nothing beside it, since what is left out is seldom
//! like the rest: who never recovers has no time of recovery. So the means of all that have a rank
//! are over the same cases, and who has no value in half of the cases has no rank.

use std::collections::{BTreeMap, BTreeSet};

use super::data::{Axis, CasePart, Figure, Rank, Ranking};
use fullpipe_metrics::{self as metrics, Better, Expression, Metric, Scope};
use fullpipe_results::compare::Runs;
use fullpipe_results::result::{Estimate, LinkResult, RunResult};

/// What is shown beside the metric by which is ranked, where the scenario has it.
const BESIDE: [&str; 5] = [
    ASYMMETRY,
    Metric::link("utilization").name,
    Metric::flow("stability").name,
    Metric::flow("rtt_ms.p95").name,
    Metric::flow("loss_events").name,
];
const ASYMMETRY: &str = Metric::case("asymmetry").name;

/// Every metric that [`ranking`] may ask for.
pub(super) fn metrics<'a>(axes: &[Axis], figures: &'a [Figure]) -> Vec<&'a str> {
    if competing(axes).is_none() {
        return Vec::new();
    }
    let times = figures.iter().filter_map(time_of);
    times.chain(BESIDE).chain([TIMES]).chain(GOODPUT).collect()
}

/// The axis whose values compete.
fn competing(axes: &[Axis]) -> Option<usize> {
    let axis = axes.iter().position(|a| a.competes)?;
    (axes[axis].values.len() >= 2).then_some(axis)
}

/// The time that a figure asks for.
fn time_of(figure: &Figure) -> Option<&str> {
    let is_time = |y: &&str| figure.figure == "metric" && y.contains("_time_s");
    figure.y.as_deref().filter(is_time)
}

/// The competitors in order; `None` where nothing competes, or nobody says which value of the
/// figure's expression is the better one.
pub(super) fn ranking(
    result: &RunResult,
    runs: &Runs,
    axes: &[Axis],
    cases: &[CasePart],
    figures: &[Figure],
) -> Option<Ranking> {
    let field = Field::of(result, runs, axes, cases)?;
    let (metric, of) = field.judged_by(figures)?;
    let own = of.as_deref().or(field.own.as_deref());
    let better = better(&metric)?;
    let beside: Vec<&str> = BESIDE
        .into_iter()
        .filter(|m| *m != metric && (*m != ASYMMETRY || field.pair.is_some()))
        .filter(|m| field.has(m, own))
        .collect();
    let all: Vec<BTreeMap<Spot, Place<'_>>> =
        (0..field.names()).map(|at| field.places(at, own)).collect();
    let valued: Vec<BTreeSet<&Spot>> = all
        .iter()
        .map(|places| {
            let has = |(_, place): &(&Spot, &Place<'_>)| field.mean(place, &metric).is_some();
            places.iter().filter(has).map(|(spot, _)| spot).collect()
        })
        .collect();
    let spots: BTreeSet<&Spot> = all.iter().flat_map(BTreeMap::keys).collect();
    let (ranked, common) = comparable(&valued, spots.len());
    if ranked.is_empty() {
        return None;
    }
    let row = |at: usize| {
        let places: Vec<&Place<'_>> = match ranked.contains(&at) {
            true => common.iter().filter_map(|spot| all[at].get(spot)).collect(),
            false => Vec::new(),
        };
        let means: Vec<f64> = places
            .iter()
            .filter_map(|p| field.mean(p, &metric))
            .collect();
        Rank {
            at,
            cases: valued[at].len(),
            mean: mean(&means),
            half: field.half(&places, &metric),
            least: means.iter().copied().reduce(f64::min),
            most: means.iter().copied().reduce(f64::max),
            beside: beside
                .iter()
                .map(|m| {
                    let values = places.iter().map(|p| field.mean(p, m));
                    mean(&values.collect::<Option<Vec<f64>>>()?)
                })
                .collect(),
        }
    };
    let mut rows: Vec<Rank> = (0..field.names()).map(row).collect();
    rows.sort_by(|a, b| match (a.mean, b.mean) {
        (Some(a), Some(b)) if better == "higher" => b.total_cmp(&a),
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    Some(Ranking {
        metric,
        of: of.clone(),
        better,
        cases: common.len(),
        of_cases: spots.len(),
        beside: beside.into_iter().map(str::to_owned).collect(),
        rows,
    })
}

/// Which of two values is the better one: as the metric's entry says, or that of the only metric
/// with which an expression rises; `None` where nobody says.
fn better(metric: &str) -> Option<&'static str> {
    let entry = |name: &str| metrics::find(metrics::scope(name)?, name);
    let entry = match entry(metric) {
        Some(entry) => entry,
        None => entry(Expression::parse(metric).ok()?.rises_with()?)?,
    };
    match entry.better {
        Better::Higher => Some("higher"),
        Better::Lower => Some("lower"),
        Better::Neither => None,
    }
}

/// Who can be ranked, and the spots where all of them have a value: not who has one in less than
/// half of all spots, nor, while that leaves none, who has the fewest.
fn comparable<'a>(
    valued: &[BTreeSet<&'a Spot>],
    all: usize,
) -> (BTreeSet<usize>, BTreeSet<&'a Spot>) {
    let with = |least: usize| -> BTreeSet<usize> {
        let enough = |at: &usize| valued[*at].len() >= least.max(1);
        (0..valued.len()).filter(enough).collect()
    };
    let mut ranked = with(all.div_ceil(2));
    if ranked.is_empty() {
        ranked = with(1);
    }
    loop {
        let sets = ranked.iter().map(|&at| valued[at].clone());
        let common = sets.reduce(|a, b| &a & &b).unwrap_or_default();
        if !common.is_empty() || ranked.is_empty() {
            return (ranked, common);
        }
        let fewest = ranked.iter().min_by_key(|&&at| valued[at].len()).copied();
        ranked.remove(&fewest.expect("not empty"));
    }
}

/// Where competitors meet: the flow that stands for them, first or second, and the values of all
/// other axes.
type Spot = (usize, Vec<usize>);

/// A competitor's case: which one, the flow or traffic that stands for it, and the sign of what is
/// told of first against second.
struct Place<'a> {
    case: usize,
    of: Option<&'a str>,
    sign: f64,
}

/// The competitors and where they stand.
struct Field<'a> {
    result: &'a RunResult,
    runs: &'a Runs,
    axes: &'a [Axis],
    cases: &'a [CasePart],
    /// Index of the axis whose values compete.
    axis: usize,
    flows: Vec<&'a str>,
    /// The second axis of a matrix of pairs.
    pair: Option<usize>,
    /// The flow whose keys the axis sets.
    own: Option<String>,
}

impl<'a> Field<'a> {
    fn of(
        result: &'a RunResult,
        runs: &'a Runs,
        axes: &'a [Axis],
        cases: &'a [CasePart],
    ) -> Option<Field<'a>> {
        let axis = competing(axes)?;
        let mut flows: Vec<&str> = Vec::new();
        for flow in result.cases.iter().flat_map(|c| &c.flows) {
            if !flows.contains(&flow.name.as_str()) {
                flows.push(&flow.name);
            }
        }
        let values = |i: usize| axes[i].values.iter().collect::<BTreeSet<_>>();
        let second = |i: &usize| values(*i) == values(axis);
        let pair = (axis + 1..axes.len()).find(second);
        let pair = pair.filter(|_| flows.len() >= 2);
        let own = axes[axis].flow.clone();
        let own = own.filter(|own| flows.contains(&own.as_str()));
        Some(Field {
            result,
            runs,
            axes,
            cases,
            axis,
            flows,
            pair,
            own,
        })
    }

    fn names(&self) -> usize {
        self.axes[self.axis].values.len()
    }

    /// What the ranking is by: a time that a figure asks for, completion times where short flows
    /// compete, goodput otherwise; and of whom, if not of the flow that competes.
    fn judged_by(&self, figures: &[Figure]) -> Option<(String, Option<String>)> {
        let times = figures.iter().filter_map(|f| Some((time_of(f)?, &f.flow)));
        if let Some((y, flow)) = { times }.find(|(y, flow)| self.has(y, flow.as_deref())) {
            return Some((y.to_owned(), flow.clone()));
        }
        let of_axis = &self.axes[self.axis].traffic;
        let classes = self.result.cases.iter().flat_map(|c| &c.traffic);
        let mut mice = classes
            .map(|t| &t.name)
            .filter(|name| self.has(TIMES, Some(name)));
        let chosen = match of_axis {
            Some(own) => mice.find(|name| *name == own),
            None if self.own.is_none() => mice.next(),
            None => None,
        };
        if let Some(name) = chosen {
            return Some((TIMES.to_owned(), Some(name.clone())));
        }
        // Where only one flow competes it is judged by its own goodput, otherwise by what all
        // flows get together.
        let alone = self.flows.len() == 1 || self.pair.is_some() || self.own.is_some();
        let mut goodput = GOODPUT.into_iter().skip(usize::from(!alone));
        let metric = goodput.find(|m| self.has(m, None))?;
        Some((metric.to_owned(), None))
    }

    /// Whether any case has a value of this metric.
    fn has(&self, metric: &str, of: Option<&str>) -> bool {
        let of = of.or(self.own.as_deref()).or(self.flows.first().copied());
        (0..self.cases.len()).any(|case| {
            self.mean(
                &Place {
                    case,
                    of,
                    sign: 1.0,
                },
                metric,
            )
            .is_some()
        })
    }

    /// The places of one competitor. In a matrix of pairs it stands on either side.
    fn places<'b>(&'b self, at: usize, own: Option<&'b str>) -> BTreeMap<Spot, Place<'b>> {
        let first = own.or(self.flows.first().copied());
        let name = &self.axes[self.axis].values[at];
        let mut places = BTreeMap::new();
        let mut add = |side: usize, axis: usize, of, sign| {
            let value = self.axes[axis].values.iter().position(|v| v == name);
            for (case, part) in self.cases.iter().enumerate() {
                if Some(part.at[axis]) == value {
                    let mut others = part.at.clone();
                    others.remove(axis);
                    places.insert((side, others), Place { case, of, sign });
                }
            }
        };
        add(0, self.axis, first, 1.0);
        if let Some(second) = self.pair {
            add(1, second, self.flows.get(1).copied(), -1.0);
        }
        places
    }

    /// Seed and value of each run of a place.
    fn values(&self, place: &Place<'_>, metric: &str) -> Vec<(i64, Option<f64>)> {
        let Some(scope) = metrics::scope(metric) else {
            return Vec::new();
        };
        let of = match scope {
            Scope::Flow | Scope::Traffic => place.of,
            Scope::Case => None,
            Scope::Link => match the_link(&self.result.cases[place.case].links) {
                None => return Vec::new(),
                link => link,
            },
        };
        let entry = metrics::find(scope, metric);
        let sign = match entry.is_some_and(|entry| entry.signed) {
            true => place.sign,
            false => 1.0,
        };
        let values = self.runs.values(place.case, scope, of, metric).into_iter();
        values
            .map(|(seed, v)| (seed, v.map(|v| sign * v)))
            .collect()
    }

    fn mean(&self, place: &Place<'_>, metric: &str) -> Option<f64> {
        let values = self.values(place, metric).into_iter();
        Estimate::of(&values.map(|(_, v)| v).collect::<Vec<_>>()).mean
    }

    /// Half the 95 % interval of the mean over places, from the means of each seed that all of
    /// them have: the same seed does the same to every case.
    fn half(&self, places: &[&Place<'_>], metric: &str) -> Option<f64> {
        let mut seeds: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (seed, value) in places.iter().flat_map(|p| self.values(p, metric)) {
            seeds.entry(seed).or_default().extend(value);
        }
        let whole = seeds.values().filter(|values| values.len() == places.len());
        let [low, high] = Estimate::of(&whole.map(|v| mean(v)).collect::<Vec<_>>()).ci95?;
        Some((high - low) / 2.0)
    }
}

/// The link that a case is about: its bottleneck, or the only one at which anything waits; of
/// several none is.
fn the_link(links: &[LinkResult]) -> Option<&str> {
    let bottleneck = links.iter().find(|l| l.name == "bottleneck");
    let mut waits = links.iter().filter(|l| !l.only_delays());
    let only = bottleneck.or(waits.next().filter(|_| waits.next().is_none()));
    only.map(|link| link.name.as_str())
}

const TIMES: &str = Metric::traffic("completion_time_s.mean").name;

/// Of one flow, and of all together.
const GOODPUT: [&str; 2] = [
    Metric::flow("goodput_mbps").name,
    Metric::case("aggregate_goodput_mbps").name,
];

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The competitors with a rank and the spots that they share, of those that have a value at
    /// the spots of each row.
    fn found(valued: &[&[usize]], all: usize) -> (Vec<usize>, Vec<usize>) {
        let spots: Vec<Spot> = (0..all).map(|i| (0, vec![i])).collect();
        let valued: Vec<BTreeSet<&Spot>> = valued
            .iter()
            .map(|of| of.iter().map(|&i| &spots[i]).collect())
            .collect();
        let (ranked, common) = comparable(&valued, all);
        let common = common.iter().map(|spot| spot.1[0]).collect();
        (ranked.into_iter().collect(), common)
    }

    #[test]
    fn an_expression_is_judged_as_the_metric_with_which_it_rises() {
        for (metric, wanted) in [
            ("completion_time_s.mean", Some("lower")),
            ("goodput_mbps", Some("higher")),
            ("completion_time_s.mean * 1000", Some("lower")),
            ("(convergence_time_s + 1) / 60", Some("lower")),
            ("-recovery_time_s", None),
            ("60 / completion_time_s", None),
            ("recovery_time_s + reopen_time_s", None),
        ] {
            assert_eq!(better(metric), wanted, "{metric}");
        }
    }

    /// The number of one of several links beside a rank would be taken for that of the path.
    #[test]
    fn of_several_links_none_stands_beside_a_rank() {
        let link = |name: &str, utilization: f64| {
            let of = ["utilization", "drops", "marks", "queue_packets.max"];
            let values = [utilization, 0.0, 0.0, utilization];
            let metrics = of.into_iter().zip(values);
            let metrics = metrics.map(|(m, x)| (m, Estimate::of(&[Some(x)])));
            LinkResult {
                name: name.to_owned(),
                metrics: metrics.collect(),
            }
        };
        let (access, core, back) = (link("access", 0.3), link("core", 0.9), link("back", 0.0));
        let bottleneck = link("bottleneck", 0.5);
        assert_eq!(the_link(&[access.clone(), core.clone()]), None);
        assert_eq!(the_link(&[back.clone(), core.clone()]), Some("core"));
        assert_eq!(the_link(&[access, bottleneck, core]), Some("bottleneck"));
        assert_eq!(the_link(&[back]), None);
    }

    #[test]
    fn all_that_have_a_rank_are_compared_where_all_have_a_value() {
        let whole = (vec![0, 1], vec![0, 1]);
        assert_eq!(found(&[&[0, 1], &[0, 1]], 2), whole);
        assert_eq!(found(&[&[0], &[0, 1]], 2), (vec![0, 1], vec![0]));
        // A value in one of three is too few, and none is none.
        assert_eq!(found(&[&[0], &[0, 1, 2], &[]], 3), (vec![1], vec![0, 1, 2]));
        // Nothing in common: who has the fewest goes.
        assert_eq!(found(&[&[0, 1], &[2, 3, 4]], 5), (vec![1], vec![2, 3, 4]));
        assert_eq!(found(&[&[0, 1, 2], &[3, 4]], 5), (vec![0], vec![0, 1, 2]));
        assert_eq!(found(&[&[], &[]], 3), (vec![], vec![]));
        assert_eq!(found(&[&[0], &[1]], 9).0.len(), 1);
    }
}
