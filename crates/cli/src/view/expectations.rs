//! The table of expectations.

use fullpipe_metrics::{Expression, Scope, find};
use fullpipe_results::label;
use fullpipe_results::result::{CaseResult, Estimate, ExpectationResult, RunResult};

use super::params_of;
use super::text::{cut, estimate_text, plain};
use crate::table::{Align, Table};

/// An expectation in one case, as a row of words.
pub(super) struct Judged<'a> {
    pub result: &'a ExpectationResult,
    /// `pass`, `unclear` or `FAIL`.
    pub verdict: &'static str,
    /// `name` in the scenario file.
    pub name: Option<&'a str>,
    /// Metric, and what it is taken from where that is to be told.
    pub metric: String,
    /// The case, by what varies; empty if there is one.
    pub case: String,
    pub observed: String,
    pub accepted: String,
}

/// The expectations of a result, in the order of the file.
pub(super) fn judged(result: &RunResult) -> Vec<Judged<'_>> {
    if result.expectations.is_empty() {
        return Vec::new();
    }
    let flows = result.cases.iter().map(|c| c.flows.len());
    let several = flows.max().unwrap_or(0) > 1;
    let labels = label::labels(&params_of(&result.cases));
    let places = result.places();
    let rows = result.expectations.iter().map(|e| {
        let of = e.flow.as_ref().filter(|_| several).or(e.link.as_ref());
        let case = places.get(&e.params).copied();
        Judged {
            result: e,
            verdict: match (e.pass, e.unclear) {
                (true, false) => "pass",
                (true, true) => "unclear",
                (false, _) => "FAIL",
            },
            // One without a name is called by its metric.
            name: Some(e.name.as_str()).filter(|name| !name.starts_with(&e.metric)),
            metric: {
                let metric = of.map_or(e.metric.clone(), |of| format!("{} of {of}", e.metric));
                match &e.against {
                    Some(against) => format!("{metric}: {against}"),
                    None => metric,
                }
            },
            case: case.map_or_else(String::new, |i| labels[i].clone()),
            observed: observed(e, case.map(|i| &result.cases[i])),
            accepted: accepted(e),
        }
    });
    rows.collect()
}

impl Judged<'_> {
    /// `base, rtt 20ms: utilization of bottleneck is 0.93, accepted: at least 0.99 (RFC 6349)`.
    pub fn sentence(&self, scenario: &str) -> String {
        let comma = if self.case.is_empty() { "" } else { ", " };
        let what = match self.name {
            None => self.metric.clone(),
            Some(name) => format!("{name}: {}", self.metric),
        };
        let source = match self.result.source.as_str() {
            "" => String::new(),
            source => format!(" ({source})"),
        };
        format!(
            "{scenario}{comma}{}: {what} is {}, accepted: {}{source}",
            self.case, self.observed, self.accepted
        )
    }
}

pub(super) fn table(result: &RunResult) -> Table {
    let rows = judged(result);
    let named = rows.iter().any(|row| row.name.is_some());
    let mut table = Table::new();
    table.column(Align::Left, &["expectation"]);
    if named {
        table.column(Align::Left, &["name"]);
    }
    for (align, head) in [
        (Align::Left, "metric"),
        (Align::Left, "case"),
        (Align::Right, "observed"),
        (Align::Left, "accepted"),
        (Align::Left, "source"),
    ] {
        table.column(align, &[head]);
    }
    for row in rows {
        let source = &row.result.source;
        let mut cells = vec![row.verdict.to_owned()];
        cells.extend(named.then(|| row.name.unwrap_or_default().to_owned()));
        cells.extend([
            row.metric,
            row.case,
            row.observed,
            row.accepted,
            match row.result.pass {
                true => cut(source),
                false => source.clone(),
            },
        ]);
        table.row(cells);
    }
    table
}

/// What came of all of them together.
pub(super) fn summary(result: &RunResult) -> String {
    let failed = result.expectations.iter().filter(|e| !e.pass).count();
    let unclear = result.expectations.iter().filter(|e| e.unclear).count();
    let all = result.expectations.len();
    let besides = match unclear {
        0 => String::new(),
        n => format!(", {n} unclear"),
    };
    let mut out = match (failed, unclear, all) {
        (0, 0, 1) => "the expectation passed\n".to_owned(),
        (0, 0, _) => format!("all {all} expectations passed\n"),
        (0, _, _) => format!("{} of {all} expectations passed{besides}\n", all - unclear),
        _ => format!("{failed} of {all} expectations FAILED{besides}\n"),
    };
    if unclear > 0 {
        out += "unclear: an end of what is accepted lies in the 95 % interval, or one seed has \
                none, so these seeds neither show nor contradict it; more seeds narrow the \
                interval (`--repeat`), and `holds_for` in [[expect]] can ask for more: \
                \"interval\", \"every seed\"\n";
    }
    out
}

fn observed(e: &ExpectationResult, case: Option<&CaseResult>) -> String {
    let Some(mean) = e.observed else {
        let why = case.and_then(|case| why_undefined(e, case));
        return why.map_or("undefined".to_owned(), |why| format!("undefined: {why}"));
    };
    let estimate = Estimate {
        mean: Some(mean),
        // Of a single seed or a quantile the interval says nothing.
        ci95: e.observed_ci95.filter(|_| of_mean(e)),
        undefined: 0,
    };
    estimate_text(estimate, observed_digits(e, mean))
}

/// Which metric of an expression may be why it has no value: one without a value, or zero below the
/// line.
fn why_undefined(e: &ExpectationResult, case: &CaseResult) -> Option<String> {
    let expression = Expression::parse(&e.metric).ok()?;
    let metrics = expression.metrics().into_iter();
    let metrics = metrics.filter(|name| *name != e.metric);
    let mean = |name: &str| case.estimate(name, e.flow.as_deref(), e.link.as_deref());
    let why = metrics.filter_map(|name| match mean(name)?.mean {
        None => Some(format!("{name} is undefined")),
        Some(0.0) => Some(format!("{name} is 0")),
        Some(_) => None,
    });
    Some(why.collect::<Vec<_>>().join(", ")).filter(|why| !why.is_empty())
}

fn of_mean(e: &ExpectationResult) -> bool {
    e.holds_for.as_deref().is_none_or(|what| what == "interval")
}

/// The bound, and what must lie in it if that is not the mean.
fn accepted(e: &ExpectationResult) -> String {
    let bound = match e.against {
        // Computed from intervals, not written by anybody.
        Some(_) => bound_text(e.bound.map(four_digits)),
        None => bound_text(e.bound),
    };
    match &e.holds_for {
        None => bound,
        Some(what) => format!("{what}: {bound}"),
    }
}

/// Enough digits to see on which side of the bound a value lies.
fn observed_digits(e: &ExpectationResult, observed: f64) -> usize {
    if find(Scope::Flow, &e.metric).is_some_and(|m| m.count) {
        return 1;
    }
    let apart = e
        .bound
        .iter()
        .filter(|b| b.is_finite())
        .map(|b| (b - observed).abs());
    let nearest = apart
        .fold(f64::INFINITY, f64::min)
        .max(observed.abs() * 1e-9);
    let relative = (observed.abs() / nearest).max(1.0).log10().ceil();
    (relative as usize + 1).clamp(4, 10)
}

/// A computed end of a bound.
fn four_digits(x: f64) -> f64 {
    match x.is_finite() {
        true => format!("{x:.3e}").parse().unwrap_or(x),
        false => x,
    }
}

pub(super) fn bound_text([low, high]: [f64; 2]) -> String {
    match (low.is_finite(), high.is_finite()) {
        (true, true) if low == high => format!("exactly {}", plain(low)),
        (true, true) => format!("{} to {}", plain(low), plain(high)),
        (true, false) => format!("at least {}", plain(low)),
        (false, true) => format!("at most {}", plain(high)),
        // Of a difference whose interval is not known, or not known yet.
        (false, false) => "no difference beyond chance".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::two_cases;
    use super::*;

    #[test]
    fn a_name_tells_two_expectations_on_one_metric_apart() {
        let mut found = two_cases(1);
        let has = |found: &RunResult, word: &str| table(found).text().contains(word);
        found.expectations[0].name = "reno alone".to_owned();
        assert!(has(&found, "reno alone") && has(&found, "name"));
        for e in &mut found.expectations {
            e.name = format!("{} of main", e.metric);
        }
        assert!(!has(&found, "name"));
    }

    #[test]
    fn a_division_by_zero_says_so() {
        let mut found = two_cases(1);
        found.expectations[2].metric = "goodput_mbps / timeouts".to_owned();
        let text = table(&found).text();
        assert!(text.contains("undefined: timeouts is 0"), "{text}");
    }
}
