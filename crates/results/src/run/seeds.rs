//! How many seeds each case gets where a precision is asked for.

use std::collections::{BTreeSet, HashSet};

use super::kept::Kept;
use crate::precision::{self, Judgement};
use crate::result::CaseResult;
use crate::store::StoreError;
use fullpipe_metrics as metrics;
use fullpipe_scenario::{Precision, Scenario};

/// Judges the cases that are not settled and gives them, and the baselines they are judged by,
/// their next batch; false if none gets one.
pub(super) fn grow(
    scenario: &Scenario,
    wanted: &Precision,
    kept: &Kept<'_>,
    judged: &mut [Option<Judgement>],
    counts: &mut [usize],
    most: usize,
) -> Result<bool, StoreError> {
    let mut grown = false;
    let baselines: HashSet<usize> = scenario.cases.iter().filter_map(|c| c.baseline).collect();
    for (i, case) in scenario.cases.iter().enumerate() {
        if judged[i].as_ref().is_some_and(|j| !j.more) {
            continue;
        }
        // A baseline has none of the metrics against it: it follows those that do.
        if wanted.of.iter().all(|m| metrics::needs_baseline(m)) && baselines.contains(&i) {
            continue;
        }
        let mut judgement = precision::judge(
            &CaseResult::new(case, &kept.case(i), &BTreeSet::new())?,
            wanted,
        );
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
    Ok(grown)
}
