//! Two cases held against each other, row by row.

use statrs::distribution::{Discrete, Hypergeometric};

use super::difference::{Difference, NOISE, pairs, size};
use super::options::{Options, View};
use super::row::{Chance, FALSE, Missing, Number, Row, Verdict};
use super::runs::Runs;
use crate::agreement::judged::{is_judged, is_judged_of_one_run};
use crate::result::{CaseResult, Estimate, Estimates, LinkResult};
use fullpipe_metrics as metrics;
use fullpipe_metrics::Scope;

/// Rows of a comparison, collected case by case.
pub(super) struct Collector<'a> {
    pub(super) options: &'a Options,
    pub(super) runs: Option<&'a [Runs; 2]>,
    pub(super) view: View,
    /// See [`super::Comparison::single`].
    pub(super) single: bool,
    /// Indices of the cases under comparison.
    pub(super) at: [usize; 2],
    pub(super) rows: Vec<Row>,
    pub(super) missing: Vec<Missing>,
}

impl Collector<'_> {
    pub(super) fn case(&mut self, a: &CaseResult, b: &CaseResult) {
        for flow in &a.flows {
            match b.flow(&flow.name) {
                Some(other) => {
                    let of = (Scope::Flow, Some(flow.name.as_str()));
                    self.metrics(a, b, of, (&flow.metrics, &other.metrics));
                }
                None => self.miss("b", a, Some(&flow.name)),
            }
        }
        for flow in b.flows.iter().filter(|f| a.flow(&f.name).is_none()) {
            self.miss("a", b, Some(&flow.name));
        }
        for row in &a.traffic {
            match b.traffic(&row.name) {
                Some(other) => {
                    let of = (Scope::Traffic, Some(row.name.as_str()));
                    self.metrics(a, b, of, (&row.metrics, &other.metrics));
                }
                None => self.miss("b", a, Some(&row.name)),
            }
        }
        for row in b.traffic.iter().filter(|t| a.traffic(&t.name).is_none()) {
            self.miss("a", b, Some(&row.name));
        }
        for link in &a.links {
            match b.link(&link.name) {
                Some(other) => {
                    let of = (Scope::Link, Some(link.name.as_str()));
                    self.metrics(a, b, of, (&link.metrics, &other.metrics));
                }
                None => self.miss_link("b", a, link),
            }
        }
        for link in b.links.iter().filter(|l| a.link(&l.name).is_none()) {
            self.miss_link("a", b, link);
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
        let own = options
            .metrics
            .iter()
            .filter(|m| metrics::scope_of(m).is_none() && metrics::scope(m) == Some(scope));
        names.extend(own.map(String::as_str));
        let by_chance = !(a.seeds_repeat && b.seeds_repeat);
        for metric in names {
            let stored = |of: &Estimates, side: usize| match of.get(metric) {
                Some(estimate) => Some(*estimate),
                None => self.computed(side, scope, name, metric),
            };
            // Who asks for what one side does not have is told so.
            let by_name = options.metrics.iter().any(|m| m == metric);
            let found_in = [stored(of_a, 0), stored(of_b, 1)];
            let (ea, eb) = match found_in {
                [Some(ea), Some(eb)] => (ea, eb),
                [Some(ea), None] if by_name => (ea, Estimate::default()),
                [None, Some(eb)] if by_name => (Estimate::default(), eb),
                _ => continue,
            };
            let (ea, eb) = (&ea, &eb);
            let asked_for = !options.metrics.is_empty() || options.thresholds.contains_key(metric);
            let judged = asked_for
                || match (self.view, self.single) {
                    (_, true) => is_judged_of_one_run(scope, metric),
                    (View::Metrics, false) => true,
                    _ => is_judged(scope, metric),
                };
            let threshold = options.threshold_of(metric);
            let (na, nb) = (a.seeds.len(), b.seeds.len());
            let paired = self.runs.and_then(|runs| {
                let of = |side: usize| runs[side].values(self.at[side], scope, name, metric);
                pairs(&of(0), &of(1))
            });
            let mut seen = match &paired {
                Some(pairs) => Difference::paired(pairs),
                None => Difference::of_samples(ea, na, eb, nb),
            };
            let found = metrics::find(scope, metric);
            if found.is_some_and(|m| m.count) && by_chance {
                let pairs = paired.as_ref().map(Vec::len);
                seen = seen.of_counts(pairs.unwrap_or(na), pairs.unwrap_or(nb));
            }
            let difference = seen.mean;
            let relative = difference
                .zip(ea.mean)
                .filter(|(_, a)| *a != 0.0)
                .map(|(d, a)| d / a.abs());
            let partly = [(ea, na), (eb, nb)]
                .iter()
                .any(|(e, n)| (1..*n).contains(&(e.undefined as usize)));
            // Two grounds of which one has a number in all its seeds and the other in none part,
            // however few seeds there are.
            let may_be = by_chance
                && found_in.iter().all(Option::is_some)
                && (partly || self.view == View::Metrics);
            let undefined = may_be.then(|| undefined_by_chance([(ea, na), (eb, nb)]));
            let undefined = undefined.flatten();
            let chance = match (undefined, seen.spread) {
                (Some(p), _) => Some(Chance::Undefined(p)),
                // Where seeds repeat themselves what differs does so every time.
                (None, Some(spread)) if by_chance => Some(Chance::Spread(spread)),
                _ => None,
            };
            let named = |wanted: Scope| name.filter(|_| scope == wanted).map(str::to_owned);
            self.rows.push(Row {
                params: a.params.clone(),
                flow: named(Scope::Flow).or_else(|| named(Scope::Traffic)),
                link: named(Scope::Link),
                metric: metric.to_owned(),
                unit: found.map_or("", |m| m.unit),
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
                p: None,
                p_adjusted: None,
                chance,
                method: seen.method,
                pairs: paired.as_ref().map(Vec::len),
                effect: seen.effect,
                relative,
                threshold,
                verdict: match verdict([ea.mean, eb.mean], &seen, relative, threshold) {
                    Verdict::Same if defined_part(ea, na) != defined_part(eb, nb) => {
                        Verdict::Indistinguishable
                    }
                    Verdict::Beyond if undefined.is_some_and(|p| p > FALSE) => {
                        Verdict::Indistinguishable
                    }
                    verdict => verdict,
                },
                judged,
            });
        }
    }

    /// An expression over metrics, from the runs.
    fn computed(
        &self,
        side: usize,
        scope: Scope,
        name: Option<&str>,
        metric: &str,
    ) -> Option<Estimate> {
        let is_own = metrics::scope_of(metric).is_none();
        let runs = &self.runs.filter(|_| is_own)?[side];
        let values = runs.values(self.at[side], scope, name, metric);
        let values: Vec<Option<f64>> = values.into_iter().map(|(_, value)| value).collect();
        (!values.is_empty()).then(|| Estimate::of(&values))
    }

    pub(super) fn miss(&mut self, missing_in: &'static str, case: &CaseResult, flow: Option<&str>) {
        self.missing.push(Missing {
            missing_in,
            params: case.params.clone(),
            flow: flow.map(str::to_owned),
            link: None,
            judged: true,
        });
    }

    /// What a link that only delays does, flows show, whatever metric is asked for.
    fn miss_link(&mut self, missing_in: &'static str, case: &CaseResult, link: &LinkResult) {
        let mut asked = self.options.metrics.iter();
        let of_links = asked.any(|m| metrics::scope(m) == Some(Scope::Link));
        self.missing.push(Missing {
            missing_in,
            params: case.params.clone(),
            flow: None,
            link: Some(link.name.clone()),
            judged: !link.only_delays() && (of_links || self.view == View::Metrics),
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

/// One side is undefined in more of its seeds than the other, so that one has a mean and the other
/// has none: the part of the draws in which chance puts as few or fewer on one side (Fisher's exact
/// test). One seed on each side tells nothing.
fn undefined_by_chance([(a, na), (b, nb)]: [(&Estimate, usize); 2]) -> Option<f64> {
    if a.mean.is_some() == b.mean.is_some() || na + nb < 3 {
        return None;
    }
    let undefined = |e: &Estimate, n: usize| match (e.mean, e.undefined) {
        (Some(_), _) => 0,
        (None, 0) => n as u64,
        (None, some) => u64::from(some),
    };
    let (of_a, of_b) = (undefined(a, na), undefined(b, nb));
    let draws = Hypergeometric::new((na + nb) as u64, of_a + of_b, na as u64).ok()?;
    let seen = draws.pmf(of_a) * (1.0 + 1e-9);
    let as_rare = (0..=of_a + of_b)
        .map(|k| draws.pmf(k))
        .filter(|p| *p <= seen);
    Some(as_rare.sum::<f64>().min(1.0))
}

pub(super) fn verdict(
    [a, b]: [Option<f64>; 2],
    seen: &Difference,
    relative: Option<f64>,
    threshold: f64,
) -> Verdict {
    let holds_zero = seen
        .interval
        .is_some_and(|[low, high]| low <= 0.0 && 0.0 <= high);
    let size = size(a.iter().chain(&b));
    if seen.mean.is_some_and(|d| d.abs() <= NOISE * size) || (a.is_none() && b.is_none()) {
        Verdict::Same
    } else if holds_zero {
        Verdict::Indistinguishable
    } else if relative.is_some_and(|r| r.abs() <= threshold) {
        Verdict::Within
    } else {
        Verdict::Beyond
    }
}
