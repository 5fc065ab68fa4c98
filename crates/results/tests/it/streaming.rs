//! Cases are handed over one by one, in their order, while later ones are still to be run; and it
//! is the same result whether somebody takes them or not.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fullpipe_results::result::CaseLine;
use fullpipe_results::run::{CaseSink, Keep, Options, RunError, Taken, run_on};
use fullpipe_run::{Outcome, RunSpec, Violation};
use fullpipe_scenario::{Precision, Scenario};
use serde_json::Value;

use crate::small::{MATRIX, scenario};
use crate::store_support::{assert_same, contents, run};

/// The cases that were taken, and how many runs had been made by then.
#[derive(Default)]
struct Taker {
    made: AtomicUsize,
    lines: Mutex<Vec<(usize, usize, Value)>>,
    /// Lines after which there is no room.
    room: Option<usize>,
    /// Lines that found none.
    refused: AtomicUsize,
}

impl CaseSink for Taker {
    fn case(&self, index: usize, line: &CaseLine<'_>) -> io::Result<()> {
        let mut lines = self.lines.lock().unwrap();
        if self.room.is_some_and(|room| lines.len() >= room) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let line = serde_json::to_value(line).unwrap();
        lines.push((index, self.made.load(Ordering::Relaxed), line));
        Ok(())
    }
}

impl Taker {
    fn run(&self, spec: &RunSpec) -> Result<Outcome, Violation> {
        let made = fullpipe_sim::run(spec);
        self.made.fetch_add(1, Ordering::Relaxed);
        made
    }

    fn taken(&self, keep: Keep) -> Option<Taken<'_>> {
        Some(Taken { by: self, keep })
    }

    fn indices(&self) -> Vec<usize> {
        let lines = self.lines.lock().unwrap();
        lines.iter().map(|(index, ..)| *index).collect()
    }

    /// The lines, and that they have wall times, which nothing else does.
    fn lines(&self) -> Vec<Value> {
        let mut lines: Vec<Value> = Vec::new();
        for (.., line) in self.lines.lock().unwrap().iter() {
            let mut line = line.clone();
            let of = line.as_object_mut().unwrap();
            assert!(of.remove("wall_s").is_some() && of.remove("packets_per_s").is_some());
            lines.push(line);
        }
        lines
    }
}

/// What a run that nobody watches says, a line per case.
fn at_the_end(s: &Scenario) -> Vec<Value> {
    let (ran, _) = run(s, None, 2, false).unwrap();
    let result = ran.result.without_times();
    let lines = result.lines();
    lines
        .map(|line| serde_json::to_value(line).unwrap())
        .collect()
}

#[test]
fn a_case_is_handed_over_before_the_next_one_is_run() {
    let s = scenario(MATRIX);
    let taker = Taker::default();
    let options = Options {
        jobs: 1,
        cases: taker.taken(Keep::Remarks),
        ..Options::default()
    };
    run_on(&s, &options, &|spec: &RunSpec| taker.run(spec)).unwrap();
    let lines = taker.lines.lock().unwrap();
    let seen: Vec<(usize, usize)> = lines.iter().map(|(i, made, _)| (*i, *made)).collect();
    assert_eq!(seen, [(0, 2), (1, 4), (2, 6), (3, 8)]);
}

/// The first case is held against the last but one, which has a baseline of its own: both are run
/// before it, and the rest when it is their turn.
const HELD_AGAINST: &str = r#"
[[expect]]
name = "nearer"
metric = "goodput_mbps"
flow = "main"
where = { "flow.main.stack" = "reno" }
ratio_to = { "flow.main.stack" = "highspeed" }
within = [0.001, 0.002]
holds_for = "every seed"
source = "nobody's"

[measure]
interval = "500ms"
warmup = "1s"
baseline = { "path.mtu" = 9000 }
"#;

fn held_against() -> Scenario {
    let measure = "[measure]\ninterval = \"500ms\"\nwarmup = \"1s\"\n";
    let text = MATRIX.replace(measure, "");
    assert_ne!(text, MATRIX);
    scenario(&(text + HELD_AGAINST))
}

#[test]
fn what_a_case_is_held_against_is_run_before_it() {
    let s = held_against();
    let taker = Taker::default();
    let options = Options {
        jobs: 1,
        cases: taker.taken(Keep::Remarks),
        ..Options::default()
    };
    run_on(&s, &options, &|spec: &RunSpec| taker.run(spec)).unwrap();
    let lines = taker.lines.lock().unwrap();
    let seen: Vec<(usize, usize)> = lines.iter().map(|(i, made, _)| (*i, *made)).collect();
    assert_eq!(seen, [(0, 8), (1, 8), (2, 8), (3, 8)]);
    drop(lines);
    assert_eq!(taker.lines(), at_the_end(&s));
}

#[test]
fn lines_are_those_of_the_result_for_any_number_of_threads() {
    let mut sure = scenario(MATRIX);
    sure.measure.precision = Some(Precision {
        target: 0.05,
        of: vec!["goodput_mbps".into()],
        max_seeds: 6,
    });
    let mut surer = held_against();
    surer.measure.precision = Some(Precision {
        target: 0.05,
        of: vec!["gain".into()],
        max_seeds: 5,
    });
    for (s, name) in [
        (scenario(MATRIX), "plain"),
        (held_against(), "held against"),
        (sure, "sure"),
        (surer, "sure of a gain"),
    ] {
        let expected = at_the_end(&s);
        for (jobs, keep) in [(1, Keep::All), (2, Keep::Remarks), (3, Keep::Remarks)] {
            let taker = Taker::default();
            let options = Options {
                jobs,
                cases: taker.taken(keep),
                ..Options::default()
            };
            let ran = run_on(&s, &options, &|spec: &RunSpec| taker.run(spec)).unwrap();
            assert_eq!(taker.indices(), [0, 1, 2, 3], "{name}");
            assert_eq!(taker.lines(), expected, "{name}, {jobs} threads, {keep:?}");
            let (whole, _) = run(&s, None, 2, false).unwrap();
            let (result, whole) = (ran.result.without_times(), whole.result.without_times());
            if keep == Keep::All {
                assert_eq!(result, whole, "{name}");
                continue;
            }
            // What is to be said at the end needs no number.
            assert_eq!(result.passed(), whole.passed());
            assert_eq!(result.unsure(), whole.unsure());
            assert_eq!(result.repeated(), whole.repeated());
            let told = whole.expectations.iter().filter(|e| !e.pass || e.unclear);
            assert!(told.eq(&result.expectations), "{name}");
            for (case, whole) in result.cases.iter().zip(&whole.cases) {
                assert_eq!((&case.params, &case.seeds), (&whole.params, &whole.seeds));
                assert!(case.metrics.0.is_empty() && case.links.is_empty());
                assert!(case.flows.iter().all(|flow| flow.metrics.is_empty()));
            }
        }
    }
}

#[test]
fn a_directory_has_everything_whoever_takes_the_cases() {
    let root = tempfile::tempdir().unwrap();
    for (s, name) in [(scenario(MATRIX), "plain"), (held_against(), "held")] {
        let dirs = ["whole", "taken"].map(|which| root.path().join(format!("{name}-{which}")));
        run(&s, Some(&dirs[0]), 2, false).unwrap();
        let taker = Taker::default();
        let options = Options {
            jobs: 2,
            out: Some(&dirs[1]),
            cases: taker.taken(Keep::Remarks),
            ..Options::default()
        };
        run_on(&s, &options, &|spec: &RunSpec| taker.run(spec)).unwrap();
        assert_eq!(taker.indices(), [0, 1, 2, 3]);
        let [whole, taken] = dirs.map(|dir| contents(&dir));
        assert_same(&whole, &taken);
    }
}

#[test]
fn runs_end_when_nobody_can_be_given_a_case() {
    let s = scenario(MATRIX);
    let taker = Taker {
        room: Some(1),
        ..Taker::default()
    };
    let options = Options {
        jobs: 1,
        cases: taker.taken(Keep::Remarks),
        ..Options::default()
    };
    let error = run_on(&s, &options, &|spec: &RunSpec| taker.run(spec)).unwrap_err();
    assert!(matches!(error, RunError::Output(_)), "{error}");
    assert_eq!(error.exit_code(), 3);
    assert_eq!((taker.indices(), taker.made.into_inner()), (vec![0], 4));
}

/// Half of a row may be out, and the runs that are under way must not write it again.
#[test]
fn a_case_that_nobody_could_take_is_not_given_again() {
    let s = scenario(MATRIX);
    for _ in 0..10 {
        let taker = Taker {
            room: Some(0),
            ..Taker::default()
        };
        let options = Options {
            jobs: 4,
            cases: taker.taken(Keep::Remarks),
            ..Options::default()
        };
        let error = run_on(&s, &options, &|spec: &RunSpec| taker.run(spec)).unwrap_err();
        assert!(matches!(error, RunError::Output(_)), "{error}");
        assert_eq!(taker.refused.into_inner(), 1);
    }
}

/// Five of eight runs: two whole cases, and one that lacks a seed.
#[test]
fn after_an_interrupt_the_rest_is_handed_over() {
    let s = scenario(MATRIX);
    let taker = Taker::default();
    let interrupt = AtomicBool::new(false);
    let options = Options {
        jobs: 1,
        cases: taker.taken(Keep::Remarks),
        interrupt: &interrupt,
        ..Options::default()
    };
    let ground = |spec: &RunSpec| {
        let made = taker.run(spec);
        interrupt.store(taker.made.load(Ordering::Relaxed) >= 5, Ordering::Relaxed);
        made
    };
    let error = run_on(&s, &options, &ground).unwrap_err();
    let RunError::Interrupted {
        done: 5,
        total: 8,
        result: Some(result),
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(taker.indices(), [0, 1, 2]);
    let seeds: Vec<usize> = result.cases.iter().map(|case| case.seeds.len()).collect();
    assert_eq!(seeds, [2, 2, 1]);
    let lines = taker.lines.lock().unwrap();
    assert_eq!(lines[2].2["expectations"], Value::Array(Vec::new()));
    assert_eq!(lines[2].2["seeds"], serde_json::json!([1]));
    let interrupted = serde_json::json!({ "done": 5, "total": 8 });
    assert_eq!(lines[1].2.get("interrupted"), None);
    assert_eq!(lines[2].2["interrupted"], interrupted);
    assert_eq!(
        serde_json::to_value(&*result).unwrap()["interrupted"],
        interrupted
    );
    assert!(!result.passed());
}
