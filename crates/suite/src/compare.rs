//! Two results side by side: the same scenario before and after a change, on two grounds, or with two settings.
//!
//! Cases are matched by their parameters, whatever their order, then flows, traffic and links by name. A difference is real when
//! the 95 % interval of `b - a` leaves out zero. Where both sides ran with the same seeds the runs are compared in pairs: with
//! common random numbers the two runs of a pair share their losses and arrivals, and what both have in common does not widen
//! the interval of their difference. Otherwise it is Welch's interval for two independent samples. With a single seed on either
//! side there is no interval: the difference is exact, and the threshold alone judges it.
//!
//! Many numbers are compared at 95 % each: of those that differ by chance alone one in twenty looks real.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::metrics::{self, Scope};
use crate::result::{CaseResult, Estimate, Estimates, Params, RunResult, scalar_text, student_t};
use crate::store::{ResultDir, StoreError, Table};

/// How much may differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Largest accepted relative difference, `|b - a| / |a|`.
    pub threshold: f64,
    /// The same for single metrics, by name.
    pub thresholds: BTreeMap<String, f64>,
    /// Metrics to compare; empty: all of the table.
    pub metrics: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threshold: DEFAULT_THRESHOLD,
            thresholds: BTreeMap::new(),
            metrics: Vec::new(),
        }
    }
}

/// 5 %.
pub const DEFAULT_THRESHOLD: f64 = 0.05;

/// Every compared number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// First result.
    pub a: Side,
    /// Second result.
    pub b: Side,
    /// By case, then flows, links and the case's own metrics.
    pub rows: Vec<Row>,
    /// Cases, flows and links that only one of the two has.
    pub missing: Vec<Missing>,
    /// True if no row is beyond its threshold and nothing is missing.
    pub agree: bool,
}

/// What was compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Version of the program.
    pub fullpipe: String,
    /// Scenario.
    pub scenario: String,
    /// Ground.
    pub ground: String,
}

/// One metric of one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Parameters of the case.
    pub params: Params,
    /// Flow or traffic it is taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Link it is taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Metric.
    pub metric: String,
    /// Its unit.
    pub unit: &'static str,
    /// First value.
    pub a: Number,
    /// Second value.
    pub b: Number,
    /// `b - a`, in pairs the mean of the pairs' differences; `null` if either is undefined.
    pub difference: Option<f64>,
    /// 95 % interval of the difference; with two seeds or more on both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_ci95: Option<[f64; 2]>,
    /// Where the interval comes from.
    pub method: Method,
    /// Pairs, if it is paired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<usize>,
    /// Size of the difference against the spread of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// `difference / |a|`; `null` if undefined or `a` is zero.
    pub relative: Option<f64>,
    /// Largest accepted relative difference.
    pub threshold: f64,
    /// Judgement.
    pub verdict: Verdict,
}

/// A mean with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Number {
    /// Mean over seeds; `null` if undefined.
    pub mean: Option<f64>,
    /// 95 % interval; with two seeds or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Seeds.
    pub seeds: usize,
}

/// How the interval of a difference is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Student's interval of the mean difference of runs with the same seed.
    Paired,
    /// Welch's interval of the difference of two means.
    Welch,
    /// No interval: a single seed on a side, or nothing defined.
    Single,
}

/// Standardised size of a difference (Cohen 1988, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// `d_z`: mean difference of the pairs / their standard deviation; `d`: difference of the means / pooled standard deviation.
    pub measure: &'static str,
    /// Its value.
    pub value: f64,
}

/// Judgement of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Equal.
    Same,
    /// Different, but the interval holds zero: the seeds there are do not tell the two apart. Or undefined in more of the seeds
    /// on one side than on the other.
    Indistinguishable,
    /// A difference (a real one, if there is an interval) within the threshold.
    Within,
    /// A difference (a real one, if there is an interval) beyond the threshold, from or to zero, or between a number and none.
    Beyond,
}

/// Something only one result has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Missing {
    /// `a` or `b`.
    pub missing_in: &'static str,
    /// Parameters of the case.
    pub params: Params,
    /// Flow, if only that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Link, if only that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// Compares two stored results, run by run where both have the same seeds.
///
/// # Errors
/// If a file is missing or damaged.
pub fn compare_stored(
    a: &ResultDir,
    b: &ResultDir,
    options: &Options,
) -> Result<Comparison, StoreError> {
    let runs = [Runs::of(a)?, Runs::of(b)?];
    Ok(with_runs(&a.result()?, &b.result()?, Some(&runs), options))
}

/// Compares two results by their means and intervals alone.
pub fn compare(a: &RunResult, b: &RunResult, options: &Options) -> Comparison {
    with_runs(a, b, None, options)
}

fn with_runs(
    a: &RunResult,
    b: &RunResult,
    runs: Option<&[Runs; 2]>,
    options: &Options,
) -> Comparison {
    let side = |r: &RunResult| Side {
        fullpipe: r.fullpipe.clone(),
        scenario: r.scenario.clone(),
        ground: r.ground.clone(),
    };
    let mut c = Collector {
        options,
        runs,
        at: [0, 0],
        rows: Vec::new(),
        missing: Vec::new(),
    };
    let in_b: BTreeMap<_, _> = b
        .cases
        .iter()
        .enumerate()
        .rev()
        .map(|(i, case)| (point(case), (i, case)))
        .collect();
    let in_a: BTreeSet<_> = a.cases.iter().map(point).collect();
    for (i, case) in a.cases.iter().enumerate() {
        match in_b.get(&point(case)) {
            Some((j, other)) => {
                c.at = [i, *j];
                c.case(case, other);
            }
            None => c.miss("b", case, None, None),
        }
    }
    for case in b.cases.iter().filter(|case| !in_a.contains(&point(case))) {
        c.miss("a", case, None, None);
    }
    let agree = c.missing.is_empty() && c.rows.iter().all(|r| r.verdict != Verdict::Beyond);
    Comparison {
        a: side(a),
        b: side(b),
        rows: c.rows,
        missing: c.missing,
        agree,
    }
}

/// Parameters without their order.
fn point(case: &CaseResult) -> BTreeMap<&str, String> {
    case.params
        .0
        .iter()
        .map(|(k, v)| (k.as_str(), scalar_text(v)))
        .collect()
}

/// Every run's values, from the tables of a stored result.
struct Runs {
    flows: Table,
    links: Table,
    /// Rows of each case and name: of flows and traffic, and of links.
    rows: [BTreeMap<(i64, String), Vec<usize>>; 2],
}

impl Runs {
    fn of(dir: &ResultDir) -> Result<Runs, StoreError> {
        let (flows, links) = (dir.runs()?, dir.links()?);
        let index = |table: &Table, name: &str| {
            let mut rows: BTreeMap<(i64, String), Vec<usize>> = BTreeMap::new();
            let cases = table.int("case").unwrap_or_default();
            let names = table.text(name).unwrap_or_default();
            for (i, (case, name)) in cases.iter().zip(names).enumerate() {
                rows.entry((*case, name.clone())).or_default().push(i);
            }
            rows
        };
        let rows = [index(&flows, "flow"), index(&links, "link")];
        Ok(Runs { flows, links, rows })
    }

    /// Value of every seed.
    fn values(
        &self,
        case: usize,
        scope: Scope,
        name: Option<&str>,
        metric: &str,
    ) -> Vec<(i64, Option<f64>)> {
        let (table, index) = match scope {
            Scope::Link => (&self.links, &self.rows[1]),
            _ => (&self.flows, &self.rows[0]),
        };
        let (Some(values), Some(seeds)) = (table.float(metric), table.int("seed")) else {
            return Vec::new();
        };
        let case = case as i64;
        let rows = match name {
            Some(name) => index.get(&(case, name.to_owned())),
            // A metric of the case stands in the rows of each of its flows.
            None => index
                .range((case, String::new())..(case + 1, String::new()))
                .next()
                .map(|(_, rows)| rows),
        };
        let rows = rows.map_or(&[][..], Vec::as_slice);
        rows.iter().map(|&i| (seeds[i], values[i])).collect()
    }
}

/// Values of the two sides with the same seed; `None` unless all seeds of a side have a partner and there are two.
fn pairs(a: &[(i64, Option<f64>)], b: &[(i64, Option<f64>)]) -> Option<Vec<[f64; 2]>> {
    let of_b: BTreeMap<i64, Option<f64>> = b.iter().copied().collect();
    let common: Vec<_> = a
        .iter()
        .filter_map(|(seed, x)| Some((*x, *of_b.get(seed)?)))
        .collect();
    if common.len() < 2 || (common.len() < a.len() && common.len() < b.len()) {
        return None;
    }
    common.into_iter().map(|(x, y)| Some([x?, y?])).collect()
}

struct Collector<'a> {
    options: &'a Options,
    runs: Option<&'a [Runs; 2]>,
    /// Indices of the cases under comparison.
    at: [usize; 2],
    rows: Vec<Row>,
    missing: Vec<Missing>,
}

impl Collector<'_> {
    fn case(&mut self, a: &CaseResult, b: &CaseResult) {
        for flow in &a.flows {
            match b.flow(&flow.name) {
                Some(other) => {
                    let of = (Scope::Flow, Some(flow.name.as_str()));
                    self.metrics(a, b, of, (&flow.metrics, &other.metrics));
                }
                None => self.miss("b", a, Some(&flow.name), None),
            }
        }
        for flow in b.flows.iter().filter(|f| a.flow(&f.name).is_none()) {
            self.miss("a", b, Some(&flow.name), None);
        }
        for row in &a.traffic {
            match b.traffic(&row.name) {
                Some(other) => {
                    let of = (Scope::Traffic, Some(row.name.as_str()));
                    self.metrics(a, b, of, (&row.metrics, &other.metrics));
                }
                None => self.miss("b", a, Some(&row.name), None),
            }
        }
        for row in b.traffic.iter().filter(|t| a.traffic(&t.name).is_none()) {
            self.miss("a", b, Some(&row.name), None);
        }
        for link in &a.links {
            match b.link(&link.name) {
                Some(other) => {
                    let of = (Scope::Link, Some(link.name.as_str()));
                    self.metrics(a, b, of, (&link.metrics, &other.metrics));
                }
                None => self.miss("b", a, None, Some(&link.name)),
            }
        }
        for link in b.links.iter().filter(|l| a.link(&l.name).is_none()) {
            self.miss("a", b, None, Some(&link.name));
        }
        self.metrics(a, b, (Scope::Case, None), (&a.metrics.0, &b.metrics.0));
    }

    fn metrics(
        &mut self,
        a: &CaseResult,
        b: &CaseResult,
        (scope, name): (Scope, Option<&str>),
        (of_a, of_b): (&Estimates, &Estimates),
    ) {
        let options = self.options;
        let asked = |n: &str| options.metrics.is_empty() || options.metrics.iter().any(|m| m == n);
        let mut names: Vec<&str> = metrics::names_of(scope).filter(|n| asked(n)).collect();
        // A variable of the controller is compared only when asked for by name.
        if scope == Scope::Flow {
            let variables = options.metrics.iter().filter(|m| metrics::is_variable(m));
            names.extend(variables.map(String::as_str));
        }
        for metric in names {
            let (Some(ea), Some(eb)) = (of_a.get(metric), of_b.get(metric)) else {
                continue;
            };
            let threshold = options
                .thresholds
                .get(metric)
                .copied()
                .unwrap_or(options.threshold);
            let (na, nb) = (a.seeds.len(), b.seeds.len());
            let paired = self.runs.and_then(|runs| {
                let of = |side: usize| runs[side].values(self.at[side], scope, name, metric);
                pairs(&of(0), &of(1))
            });
            let seen = match &paired {
                Some(pairs) => Difference::paired(pairs),
                None => Difference::welch(ea, na, eb, nb),
            };
            let difference = seen.mean;
            let relative = difference
                .zip(ea.mean)
                .filter(|(_, a)| *a != 0.0)
                .map(|(d, a)| d / a.abs());
            let named = |wanted: Scope| name.filter(|_| scope == wanted).map(str::to_owned);
            self.rows.push(Row {
                params: a.params.clone(),
                flow: named(Scope::Flow).or_else(|| named(Scope::Traffic)),
                link: named(Scope::Link),
                metric: metric.to_owned(),
                unit: metrics::find(scope, metric).map_or("", |m| m.unit),
                a: Number {
                    mean: ea.mean,
                    ci95: ea.ci95,
                    seeds: na,
                },
                b: Number {
                    mean: eb.mean,
                    ci95: eb.ci95,
                    seeds: nb,
                },
                difference,
                difference_ci95: seen.interval,
                method: seen.method,
                pairs: paired.as_ref().map(Vec::len),
                effect: seen.effect,
                relative,
                threshold,
                verdict: match verdict([ea.mean, eb.mean], &seen, relative, threshold) {
                    Verdict::Same if defined_part(ea, na) != defined_part(eb, nb) => {
                        Verdict::Indistinguishable
                    }
                    verdict => verdict,
                },
            });
        }
    }

    fn miss(
        &mut self,
        missing_in: &'static str,
        case: &CaseResult,
        flow: Option<&str>,
        link: Option<&str>,
    ) {
        self.missing.push(Missing {
            missing_in,
            params: case.params.clone(),
            flow: flow.map(str::to_owned),
            link: link.map(str::to_owned),
        });
    }
}

/// Part of the seeds in which a metric is defined.
fn defined_part(e: &Estimate, seeds: usize) -> f64 {
    match (e.mean, e.undefined) {
        (Some(_), _) => 1.0,
        (None, 0) => 0.0,
        (None, n) => 1.0 - f64::from(n) / seeds as f64,
    }
}

fn verdict(
    [a, b]: [Option<f64>; 2],
    seen: &Difference,
    relative: Option<f64>,
    threshold: f64,
) -> Verdict {
    let holds_zero = seen
        .interval
        .is_some_and(|[low, high]| low <= 0.0 && 0.0 <= high);
    if seen.mean == Some(0.0) || (a.is_none() && b.is_none()) {
        Verdict::Same
    } else if holds_zero {
        Verdict::Indistinguishable
    } else if relative.is_some_and(|r| r.abs() <= threshold) {
        Verdict::Within
    } else {
        Verdict::Beyond
    }
}

/// `b - a` with its interval.
struct Difference {
    mean: Option<f64>,
    interval: Option<[f64; 2]>,
    effect: Option<Effect>,
    method: Method,
}

impl Difference {
    /// Of two runs or more with their partners: Student's interval of the mean of `b - a`.
    fn paired(pairs: &[[f64; 2]]) -> Difference {
        let differences: Vec<Option<f64>> = pairs.iter().map(|[a, b]| Some(b - a)).collect();
        let e = Estimate::of(&differences);
        let deviation = error_variance(&e, pairs.len()).map(|v| (v * pairs.len() as f64).sqrt());
        Difference {
            mean: e.mean,
            interval: e.ci95,
            effect: effect("d_z", e.mean, deviation),
            method: Method::Paired,
        }
    }

    /// For unequal variances (Welch 1947), degrees of freedom after Satterthwaite.
    fn welch(a: &Estimate, na: usize, b: &Estimate, nb: usize) -> Difference {
        let mean = a.mean.zip(b.mean).map(|(a, b)| b - a);
        let errors = error_variance(a, na).zip(error_variance(b, nb));
        let (Some(difference), Some((va, vb))) = (mean, errors) else {
            return Difference {
                mean,
                interval: None,
                effect: None,
                method: Method::Single,
            };
        };
        let (fa, fb) = (na as f64 - 1.0, nb as f64 - 1.0);
        let sum = va + vb;
        let half = if sum == 0.0 {
            0.0
        } else {
            student_t(sum * sum / (va * va / fa + vb * vb / fb)) * sum.sqrt()
        };
        let pooled = (fa * va * na as f64 + fb * vb * nb as f64) / (fa + fb);
        Difference {
            mean,
            interval: Some([difference - half, difference + half]),
            effect: effect("d", mean, Some(pooled.sqrt())),
            method: Method::Welch,
        }
    }
}

fn effect(measure: &'static str, mean: Option<f64>, deviation: Option<f64>) -> Option<Effect> {
    let value = mean? / deviation.filter(|d| *d > 0.0)?;
    value.is_finite().then_some(Effect { measure, value })
}

/// Squared standard error of a mean, read back from its interval.
fn error_variance(e: &Estimate, n: usize) -> Option<f64> {
    let [low, high] = e.ci95?;
    let error = 0.5 * (high - low) / student_t(n as f64 - 1.0);
    Some(error * error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{CaseMetrics, FlowResult, LinkResult};

    fn estimate(samples: &[f64]) -> Estimate {
        Estimate::of(&samples.iter().map(|&v| Some(v)).collect::<Vec<_>>())
    }

    fn case(mtu: i64, goodput: &[f64]) -> CaseResult {
        let of = |name: &str, e| Estimates::from([(name.to_owned(), e)]);
        let mut flow = of("goodput_mbps", estimate(goodput));
        flow.insert("recovery_time_s".into(), Estimate::default());
        flow.insert("var.k.last".into(), estimate(goodput));
        CaseResult {
            params: Params(vec![
                ("path.mtu".into(), mtu.into()),
                ("flow.main.stack".into(), "reno".into()),
            ]),
            seeds: (1..=goodput.len() as u64).collect(),
            flows: vec![FlowResult {
                name: "main".into(),
                stack: "reno".into(),
                metrics: flow,
            }],
            traffic: vec![],
            links: vec![LinkResult {
                name: "bottleneck".into(),
                metrics: of("drops", estimate(&[0.0])),
            }],
            metrics: CaseMetrics(of("jain", estimate(&[1.0]))),
            precision: None,
            simulated_s: 1.0,
            delivered_packets: 1,
            wall_s: None,
            packets_per_s: None,
        }
    }

    fn result(cases: Vec<CaseResult>) -> RunResult {
        RunResult {
            fullpipe: "0".into(),
            scenario: "s".into(),
            ground: "sim".into(),
            quick: false,
            cases,
            expectations: vec![],
        }
    }

    fn goodput<'a>(c: &'a Comparison, mtu: &str) -> &'a Row {
        let wanted = |r: &&Row| {
            r.metric == "goodput_mbps" && r.params.text("path.mtu").as_deref() == Some(mtu)
        };
        c.rows.iter().find(wanted).unwrap()
    }

    #[test]
    fn a_result_agrees_with_itself() {
        let r = result(vec![case(1500, &[1.0, 2.0]), case(9000, &[3.0])]);
        let c = compare(&r, &r, &Options::default());
        assert!(c.agree && c.missing.is_empty());
        assert_eq!(c.rows.len(), 2 * 4);
        assert!(
            c.rows
                .iter()
                .all(|r| r.verdict == Verdict::Same && r.metric != "var.k.last")
        );
    }

    #[test]
    fn one_seed_is_judged_by_the_threshold() {
        let a = result(vec![case(1500, &[100.0])]);
        for (b, verdict) in [
            (104.0, Verdict::Within),
            (106.0, Verdict::Beyond),
            (94.0, Verdict::Beyond),
        ] {
            let c = compare(&a, &result(vec![case(1500, &[b])]), &Options::default());
            assert_eq!(goodput(&c, "1500").verdict, verdict);
            assert_eq!(c.agree, verdict != Verdict::Beyond);
        }
        let loose = Options {
            thresholds: BTreeMap::from([("goodput_mbps".to_owned(), 0.10)]),
            ..Options::default()
        };
        assert!(compare(&a, &result(vec![case(1500, &[106.0])]), &loose).agree);
    }

    #[test]
    fn seeds_tell_noise_from_change() {
        let a = result(vec![case(1500, &[90.0, 100.0, 110.0])]);
        let noisy = compare(
            &a,
            &result(vec![case(1500, &[97.0, 107.0, 117.0])]),
            &Options::default(),
        );
        let row = goodput(&noisy, "1500");
        assert_eq!(row.verdict, Verdict::Indistinguishable);
        assert_eq!(row.method, Method::Welch);
        // Both have the deviation 10.
        assert!((row.effect.unwrap().value - 0.7).abs() < 1e-8);
        // Equal variances of 100 over 3 seeds: se = sqrt(200/3), 4 degrees, t = 2.776445.
        let half = 2.776_445_105 * (200.0f64 / 3.0).sqrt();
        let [low, high] = row.difference_ci95.unwrap();
        assert!((low - (7.0 - half)).abs() < 1e-6 && (high - (7.0 + half)).abs() < 1e-6);
        assert!((row.relative.unwrap() - 0.07).abs() < 1e-12);
        let change = compare(
            &a,
            &result(vec![case(1500, &[149.0, 150.0, 151.0])]),
            &Options::default(),
        );
        assert_eq!(goodput(&change, "1500").verdict, Verdict::Beyond);
        let exact = compare(
            &result(vec![case(1500, &[100.0, 100.0])]),
            &result(vec![case(1500, &[101.0, 101.0])]),
            &Options::default(),
        );
        assert_eq!(goodput(&exact, "1500").verdict, Verdict::Within);
    }

    #[test]
    fn undefined_against_a_number_is_beyond() {
        let one = |a: Option<f64>, b: Option<f64>| {
            let e = |mean| Estimate {
                mean,
                ..Estimate::default()
            };
            let relative = a
                .zip(b)
                .filter(|(a, _)| *a != 0.0)
                .map(|(a, b)| (b - a) / a.abs());
            verdict(
                [a, b],
                &Difference::welch(&e(a), 1, &e(b), 1),
                relative,
                0.05,
            )
        };
        assert_eq!(one(None, None), Verdict::Same);
        assert_eq!(one(None, Some(1.0)), Verdict::Beyond);
        assert_eq!(one(Some(0.0), Some(1.0)), Verdict::Beyond);
        assert_eq!(one(Some(0.0), Some(0.0)), Verdict::Same);
    }

    /// Student 1908, "The probable error of a mean": additional hours of sleep of ten patients with two drugs. In pairs the
    /// difference is 1.58 with t(9) = 4.0621; as independent samples t = 1.8608 with 17.776 degrees.
    const SLEEP: [[f64; 2]; 10] = [
        [0.7, 1.9],
        [-1.6, 0.8],
        [-0.2, 1.1],
        [-1.2, 0.1],
        [-0.1, -0.1],
        [3.4, 4.4],
        [3.7, 5.5],
        [0.8, 1.6],
        [0.0, 4.6],
        [2.0, 3.4],
    ];

    #[test]
    fn pairs_see_what_two_samples_do_not() {
        let paired = Difference::paired(&SLEEP);
        let [low, high] = paired.interval.unwrap();
        // Published interval of R's `t.test(extra ~ group, paired = TRUE)`: 0.7001142 to 2.4598858.
        assert!((low - 0.7001142).abs() < 1e-6 && (high - 2.4598858).abs() < 1e-6);
        assert!((paired.mean.unwrap() - 1.58).abs() < 1e-12);
        // d_z = t / sqrt(n).
        let d_z = paired.effect.unwrap();
        assert_eq!(d_z.measure, "d_z");
        assert!((d_z.value - 4.0621 / 10f64.sqrt()).abs() < 1e-4);

        let side = |i: usize| estimate(&SLEEP.map(|p| p[i]));
        let apart = Difference::welch(&side(0), 10, &side(1), 10);
        let [low, high] = apart.interval.unwrap();
        // `t.test(extra ~ group)` with the sign turned: -0.2054832 to 3.3654832.
        assert!((low + 0.2054832).abs() < 1e-5 && (high - 3.3654832).abs() < 1e-5);
        // d = t sqrt(2/n) for equal sizes.
        assert!((apart.effect.unwrap().value - 1.8608 * 0.2f64.sqrt()).abs() < 1e-4);
    }

    #[test]
    fn pairs_need_a_partner_for_every_seed_of_a_side() {
        let of = |seeds: &[i64]| {
            seeds
                .iter()
                .map(|s| (*s, Some(*s as f64)))
                .collect::<Vec<_>>()
        };
        assert_eq!(pairs(&of(&[1, 2, 3]), &of(&[3, 2, 1])).unwrap().len(), 3);
        // More seeds on one side, as a precision may ask for.
        assert_eq!(
            pairs(&of(&[1, 2, 3]), &of(&[1, 2, 3, 4, 5])).unwrap().len(),
            3
        );
        assert_eq!(pairs(&of(&[1, 2, 3]), &of(&[2, 3, 4])), None);
        assert_eq!(pairs(&of(&[1]), &of(&[1])), None);
        assert_eq!(pairs(&of(&[]), &of(&[])), None);
        assert_eq!(pairs(&[(1, None), (2, Some(1.0))], &of(&[1, 2])), None);
    }

    #[test]
    fn what_only_one_has_is_listed() {
        let a = result(vec![case(1500, &[1.0]), case(9000, &[1.0])]);
        let mut other = case(1500, &[1.0]);
        other.flows[0].name = "late".into();
        // Parameters in another order are the same case.
        other.params.0.reverse();
        let b = result(vec![other, case(576, &[1.0])]);
        let c = compare(&a, &b, &Options::default());
        let text: Vec<String> = c
            .missing
            .iter()
            .map(|m| {
                format!(
                    "{} {} {:?}",
                    m.missing_in,
                    m.params.text("path.mtu").unwrap(),
                    m.flow
                )
            })
            .collect();
        assert_eq!(
            text,
            [
                "b 1500 Some(\"main\")",
                "a 1500 Some(\"late\")",
                "b 9000 None",
                "a 576 None"
            ]
        );
        assert!(!c.agree);
    }

    /// Both means are undefined, but not because of the same number of seeds.
    #[test]
    fn undefined_in_more_seeds_is_not_the_same() {
        let with = |samples: &[Option<f64>]| {
            let mut c = case(1500, &[1.0, 1.0, 1.0]);
            let metrics = &mut c.flows[0].metrics;
            metrics.insert("recovery_time_s".into(), Estimate::of(samples));
            result(vec![c])
        };
        let (none, one, two) = (
            with(&[None, None, None]),
            with(&[Some(1.0), None, None]),
            with(&[Some(1.0), Some(1.0), None]),
        );
        let seen = |a: &RunResult, b: &RunResult| {
            let c = compare(a, b, &Options::default());
            let row = c.rows.iter().find(|r| r.metric == "recovery_time_s");
            row.unwrap().verdict
        };
        assert_eq!(seen(&one, &one), Verdict::Same);
        assert_eq!(seen(&none, &none), Verdict::Same);
        assert_eq!(seen(&one, &two), Verdict::Indistinguishable);
        assert_eq!(seen(&none, &one), Verdict::Indistinguishable);
    }

    #[test]
    fn metrics_can_be_chosen_variables_by_name_only() {
        let r = result(vec![case(1500, &[1.0])]);
        let options = Options {
            metrics: vec!["jain".into(), "var.k.last".into()],
            ..Options::default()
        };
        let c = compare(&r, &r, &options);
        assert_eq!(
            c.rows.iter().map(|r| r.metric.as_str()).collect::<Vec<_>>(),
            ["var.k.last", "jain"]
        );
    }
}
