//! No number of a run depends on how much of its trace is kept.

use fullpipe_results::result::{CaseResult, Estimates};
use fullpipe_scenario::{Overrides, Scenario, builtin};

use crate::store_support::run;

/// Cases of a built-in scenario with a setting of the trace.
fn cases(name: &str, set: &[(&str, &str)], trace: &str) -> Vec<CaseResult> {
    let set = set.iter().copied().chain([("measure.trace", trace)]);
    let overrides = Overrides {
        set: set.map(|(k, v)| (k.into(), v.into())).collect(),
        quick: true,
        ..Overrides::default()
    };
    let text = builtin::find(name).unwrap();
    let s = Scenario::parse(text, name, &overrides).unwrap_or_else(|e| panic!("{e}"));
    run(&s, None, 1, false).unwrap().0.result.cases
}

fn groups(case: &CaseResult) -> Vec<(&str, &Estimates)> {
    let flows = case.flows.iter().map(|f| (f.name.as_str(), &f.metrics));
    let traffic = case.traffic.iter().map(|t| (t.name.as_str(), &t.metrics));
    let links = case.links.iter().map(|l| (l.name.as_str(), &l.metrics));
    flows.chain(traffic).chain(links).collect()
}

#[track_caller]
fn same_metrics(name: &str, set: &[(&str, &str)], shown: &[&str]) {
    let full = cases(name, set, "full");
    for metric in shown {
        let defined = |c: &CaseResult| c.flows.iter().any(|f| f.value(metric).is_some());
        assert!(full.iter().any(defined), "{name}: nothing has {metric}");
    }
    for trace in ["decimated", "off"] {
        let other = cases(name, set, trace);
        for (a, b) in full.iter().zip(&other) {
            assert_eq!(a.metrics, b.metrics, "{name}, {:?}", a.params);
            for ((of, a_values), (_, b_values)) in groups(a).into_iter().zip(groups(b)) {
                assert!(a_values.keys().eq(b_values.keys()), "{name}, {of}, {trace}");
                for (metric, value) in a_values {
                    let place = format!("{name}, {of}, {:?}: {metric}, {trace}", a.params);
                    assert_eq!(Some(value), b_values.get(metric), "{place}");
                }
            }
        }
        assert_eq!(full.len(), other.len());
    }
}

#[test]
fn no_metric_depends_on_the_trace() {
    let short = [("duration", "15s")];
    same_metrics("blast", &short, &["reopen_time_s", "var.w_max.max"]);
    let short = [("duration", "12s")];
    same_metrics("slow-start-cap", &short, &["climb_time_s", "first_loss_s"]);
    same_metrics("gamma-window", &short, &["var.w_gamma.max"]);
    let short = [("duration", "40s")];
    same_metrics("bbr", &short, &["var.state.last"]);
    same_metrics("random-loss", &short, &["recovery_time_s"]);
}
