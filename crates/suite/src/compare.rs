//! Two results side by side: the same scenario before and after a change, on two grounds, or with two settings.
//!
//! Cases are matched by their parameters, whatever their order, then flows and links by name. A difference counts as seen when
//! the 95 % Welch interval of `b - a` leaves out zero; with a single seed on either side there is no interval and every
//! difference counts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::metrics::{self, Scope};
use crate::result::{CaseResult, Estimate, Estimates, Params, RunResult, scalar_text, student_t};

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
    /// Flow it is taken from.
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
    /// `b - a`; `null` if either is undefined.
    pub difference: Option<f64>,
    /// 95 % Welch interval of the difference; with two seeds or more on both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_ci95: Option<[f64; 2]>,
    /// `(b - a) / |a|`; `null` if undefined or `a` is zero.
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

/// Judgement of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Equal, or not told apart by the seeds there are.
    Same,
    /// A difference within the threshold.
    Different,
    /// A difference beyond the threshold, from or to zero, or between a number and none.
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

/// Compares two results.
pub fn compare(a: &RunResult, b: &RunResult, options: &Options) -> Comparison {
    let side = |r: &RunResult| Side {
        fullpipe: r.fullpipe.clone(),
        scenario: r.scenario.clone(),
        ground: r.ground.clone(),
    };
    let mut c = Collector {
        options,
        rows: Vec::new(),
        missing: Vec::new(),
    };
    let in_b: BTreeMap<_, _> = b
        .cases
        .iter()
        .rev()
        .map(|case| (point(case), case))
        .collect();
    let in_a: BTreeSet<_> = a.cases.iter().map(point).collect();
    for case in &a.cases {
        match in_b.get(&point(case)) {
            Some(other) => c.case(case, other),
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

struct Collector<'a> {
    options: &'a Options,
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
            let difference = ea.mean.zip(eb.mean).map(|(a, b)| b - a);
            let interval = welch(ea, na, eb, nb);
            let relative = difference
                .zip(ea.mean)
                .filter(|(_, a)| *a != 0.0)
                .map(|(d, a)| d / a.abs());
            let named = |wanted: Scope| name.filter(|_| scope == wanted).map(str::to_owned);
            self.rows.push(Row {
                params: a.params.clone(),
                flow: named(Scope::Flow),
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
                difference_ci95: interval,
                relative,
                threshold,
                verdict: verdict(ea.mean, eb.mean, interval, relative, threshold),
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

fn verdict(
    a: Option<f64>,
    b: Option<f64>,
    interval: Option<[f64; 2]>,
    relative: Option<f64>,
    threshold: f64,
) -> Verdict {
    let within_noise = interval.is_some_and(|[low, high]| low <= 0.0 && 0.0 <= high);
    if a == b || within_noise {
        Verdict::Same
    } else if relative.is_some_and(|r| r.abs() <= threshold) {
        Verdict::Different
    } else {
        Verdict::Beyond
    }
}

/// 95 % interval of `b - a` for unequal variances (Welch 1947), degrees of freedom after Satterthwaite.
fn welch(a: &Estimate, na: usize, b: &Estimate, nb: usize) -> Option<[f64; 2]> {
    let (va, vb) = (error_variance(a, na)?, error_variance(b, nb)?);
    let difference = b.mean? - a.mean?;
    let sum = va + vb;
    if sum == 0.0 {
        return Some([difference, difference]);
    }
    let degrees = sum * sum / (va * va / (na as f64 - 1.0) + vb * vb / (nb as f64 - 1.0));
    let half = student_t(degrees) * sum.sqrt();
    Some([difference - half, difference + half])
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
            (104.0, Verdict::Different),
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
        assert_eq!(row.verdict, Verdict::Same);
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
        assert_eq!(goodput(&exact, "1500").verdict, Verdict::Different);
    }

    #[test]
    fn undefined_against_a_number_is_beyond() {
        assert_eq!(verdict(None, None, None, None, 0.05), Verdict::Same);
        assert_eq!(verdict(None, Some(1.0), None, None, 0.05), Verdict::Beyond);
        assert_eq!(
            verdict(Some(0.0), Some(1.0), None, None, 0.05),
            Verdict::Beyond
        );
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
