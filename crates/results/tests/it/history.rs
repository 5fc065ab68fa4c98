//! Runs of a history that say nothing of the path.

use std::fs;
use std::path::Path;

use fullpipe_results::history::{History, Moment, Verdict};
use fullpipe_run::{Fidelity, Outcome, RunSpec, Violation};

use crate::small::MATRIX;
use crate::store_support::{run_in, with};

/// The simulator, on a test bed that dropped a packet of its own.
fn untrue(spec: &RunSpec) -> Result<Outcome, Violation> {
    let mut outcome = fullpipe_sim::run(spec)?;
    outcome.fidelity = Some(Fidelity {
        real_time: true,
        unplanned_drops: 1,
        ..Fidelity::default()
    });
    Ok(outcome)
}

/// After these runs, valid or not: how many count, and how many of them the newest is held against,
/// with which verdict.
fn judged(dir: &Path, runs: &[bool]) -> (usize, usize, Verdict) {
    let scenario = with(MATRIX, &Default::default());
    for &is_valid in runs {
        let run = History::begin(dir, Moment(1_795_526_405_123)).unwrap();
        let ran = match is_valid {
            true => run_in(&scenario, Some(&run), 1, false, &fullpipe_sim::run),
            false => run_in(&scenario, Some(&run), 1, false, &untrue),
        };
        ran.unwrap();
    }
    let history = History::open(dir).unwrap();
    let judged = history.judged(&["goodput_mbps".to_owned()]);
    let counting = history.runs.iter().filter(|r| r.counts()).count();
    let main = judged.iter().find(|j| j.of == "main").unwrap();
    (counting, main.earlier, main.verdict)
}

#[test]
fn a_run_that_is_not_valid_is_judged_by_none_and_judges_none() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // Three valid runs make an expectation; the two others are listed and count for nothing,
    // neither before the newest nor as the newest.
    assert_eq!(judged(dir, &[true, false, true]), (2, 1, Verdict::TooFew));
    assert_eq!(judged(dir, &[true, true, false]), (4, 3, Verdict::AsBefore));
    assert_eq!(History::open(dir).unwrap().runs.len(), 6);
}

#[test]
fn a_damaged_run_takes_no_other_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let before = judged(dir, &[true, true, true, true]);
    assert_eq!(before, (4, 3, Verdict::AsBefore));
    for (i, run) in History::open(dir).unwrap().runs.iter().enumerate().take(2) {
        let file = run.dir.join(["manifest.json", "result.json"][i]);
        let half = fs::read(&file).unwrap().len() / 2;
        fs::OpenOptions::new()
            .write(true)
            .open(&file)
            .and_then(|f| f.set_len(half as u64))
            .unwrap();
    }
    let history = History::open(dir).unwrap();
    assert_eq!((history.runs.len(), history.unfinished), (2, 0));
    let named = |file: &str| history.unreadable.iter().any(|why| why.contains(file));
    assert!(
        named("manifest.json") && named("result.json"),
        "{history:?}"
    );
}
