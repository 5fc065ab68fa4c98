//! The table of expectations.

use std::fmt::Write as _;

use fullpipe_metrics::{Scope, find};
use fullpipe_results::label;
use fullpipe_results::result::{Estimate, ExpectationResult, RunResult};

use super::params_of;
use super::text::{cut, estimate_text, plain};
use crate::table::{Align, Table};

pub(super) fn table(result: &RunResult) -> String {
    let mut table = Table::new();
    for (align, head) in [
        (Align::Left, "expectation"),
        (Align::Left, "metric"),
        (Align::Left, "case"),
        (Align::Right, "observed"),
        (Align::Left, "accepted"),
        (Align::Left, "source"),
    ] {
        table.column(align, &[head]);
    }
    let flows_per_case = result
        .cases
        .iter()
        .map(|c| c.flows.len())
        .max()
        .unwrap_or(0);
    let labels = label::labels(&params_of(&result.cases));
    for e in &result.expectations {
        let case = result.cases.iter().position(|c| c.params == e.params);
        let label = case.map_or(String::new(), |i| labels[i].clone());
        let of = e
            .flow
            .as_ref()
            .filter(|_| flows_per_case > 1)
            .or(e.link.as_ref());
        let metric = of.map_or(e.metric.clone(), |of| format!("{} of {of}", e.metric));
        let pass = match (e.pass, e.unsure) {
            (true, false) => "pass",
            (true, true) => "pass?",
            (false, _) => "FAIL",
        };
        let source = if e.pass {
            cut(&e.source)
        } else {
            e.source.clone()
        };
        let observed = match e.observed {
            Some(mean) => estimate_text(
                Estimate {
                    mean: Some(mean),
                    // Of a single seed or a quantile the interval says nothing.
                    ci95: e.observed_ci95.filter(|_| of_mean(e)),
                    undefined: 0,
                },
                observed_digits(e, mean),
            ),
            None => "undefined".to_owned(),
        };
        table.row(vec![
            pass.to_owned(),
            metric,
            label,
            observed,
            accepted(e),
            source,
        ]);
    }
    let failed = result.expectations.iter().filter(|e| !e.pass).count();
    let all = result.expectations.len();
    let mut out = table.text();
    // Writing to a string cannot fail.
    let _ = match (failed, all) {
        (0, 1) => writeln!(out, "\nthe expectation passed"),
        (0, _) => writeln!(out, "\nall {all} expectations passed"),
        _ => writeln!(out, "\n{failed} of {all} expectations FAILED"),
    };
    let unsure = result.expectations.iter().filter(|e| e.unsure).count();
    if unsure > 0 {
        let _ = writeln!(
            out,
            "pass?: {unsure} by the mean alone; its 95 % interval reaches beyond the bound: run \
             more seeds, or ask for it with `holds_for = \"interval\"`"
        );
    }
    out
}

fn of_mean(e: &ExpectationResult) -> bool {
    e.holds_for.as_deref().is_none_or(|what| what == "interval")
}

/// The bound, and what must lie in it if that is not the mean.
fn accepted(e: &ExpectationResult) -> String {
    let bound = bound_text(e.bound);
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

pub(super) fn bound_text([low, high]: [f64; 2]) -> String {
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("{} to {}", plain(low), plain(high)),
        (true, false) => format!("at least {}", plain(low)),
        (false, true) => format!("at most {}", plain(high)),
        (false, false) => "anything".to_owned(),
    }
}
