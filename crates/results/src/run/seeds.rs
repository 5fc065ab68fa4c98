//! How many seeds each case gets where a precision is asked for.

use std::collections::BTreeMap;

use super::work::{CaseSeed, Done};
use crate::precision::{self, Judgement};
use crate::result::CaseResult;
use crate::store::Unit;
use fullpipe_metrics as metrics;
use fullpipe_metrics::SeedRun;
use fullpipe_scenario::{Precision, Scenario};

/// The first `counts[i]` of the `each` units of case `i`.
pub(super) fn chosen(possible: &[Unit], each: usize, counts: &[usize]) -> Vec<Unit> {
    let cases = possible.chunks(each.max(1)).zip(counts);
    cases
        .flat_map(|(of_case, n)| of_case[..*n].to_vec())
        .collect()
}

/// The runs so far, with what needs two cases filled in.
pub(super) fn by_case(scenario: &Scenario, done: &BTreeMap<CaseSeed, Done>) -> Vec<Vec<SeedRun>> {
    let mut runs: Vec<Vec<SeedRun>> = scenario.cases.iter().map(|_| Vec::new()).collect();
    for (&(case, _), done) in done {
        runs[case].push(done.run.clone());
    }
    let baselines: Vec<Option<usize>> = scenario.cases.iter().map(|c| c.baseline).collect();
    metrics::against_baselines(&baselines, &mut runs);
    runs
}

/// Judges the cases that are not settled and gives them, and the baselines they are judged by,
/// their next batch; false if none gets one.
pub(super) fn grow(
    scenario: &Scenario,
    wanted: &Precision,
    runs: &[Vec<SeedRun>],
    judged: &mut [Option<Judgement>],
    counts: &mut [usize],
    most: usize,
) -> bool {
    let mut grown = false;
    for (i, case) in scenario.cases.iter().enumerate() {
        if judged[i].as_ref().is_some_and(|j| !j.more) {
            continue;
        }
        // A baseline has none of the metrics against it: it follows those that do.
        let held_against = || scenario.cases.iter().any(|c| c.baseline == Some(i));
        if wanted.of.iter().all(|m| metrics::needs_baseline(m)) && held_against() {
            continue;
        }
        let mut judgement = precision::judge(&CaseResult::new(case, &runs[i]), wanted);
        match precision::next(counts[i], wanted).map(|n| n.min(most)) {
            Some(more) if judgement.more && more > counts[i] => {
                counts[i] = more;
                grown = true;
            }
            _ => judgement.more = false,
        }
        judged[i] = Some(judgement);
    }
    // A run says something against its baseline only if that ran with the same seed.
    if wanted.of.iter().any(|m| metrics::needs_baseline(m)) {
        for (i, case) in scenario.cases.iter().enumerate() {
            if let Some(base) = case.baseline
                && counts[base] < counts[i]
            {
                counts[base] = counts[i];
                judged[base] = None;
                grown = true;
            }
        }
    }
    grown
}
