//! Kill at any moment, continue: nothing is run twice, and the result is that of an uninterrupted
//! run.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fullpipe_results::capture::Captures;
use fullpipe_results::run::{Options, Progress, RunError, RunFinished, RunStarted, run_on};
use fullpipe_results::store::Earlier;
use fullpipe_run::{Ground, GroundError, Outcome, RunSpec};

use crate::small::{MATRIX, scenario};
use crate::store_support::{Dice, assert_same, contents, never, run, run_in};

/// Says on stdout what it does, one line at a time.
struct Loud;

impl Progress for Loud {
    fn started(&self, run: &RunStarted<'_>) {
        say(&format!("started {}", run.key));
    }
    fn finished(&self, run: &RunFinished<'_>) {
        say(&format!("finished {}", run.key));
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The reader may be gone: it kills.
    let _ = writeln!(out, "\n@{line}");
    let _ = out.flush();
}

/// Not a test of its own: the process that is killed below.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(CHILD) else {
        return;
    };
    let interrupt = AtomicBool::new(false);
    let options = Options {
        jobs: 2,
        out: Some(Path::new(&dir)),
        earlier: Earlier::Resumed,
        captures: fullpipe_results::capture::Captures::default(),
        cases: None,
        progress: &Loud,
        interrupt: &interrupt,
    };
    match run_on(&scenario(MATRIX), &options, &fullpipe_sim::run) {
        Ok(_) => say("done"),
        Err(error) => say(&format!("error {error}")),
    }
}

const CHILD: &str = "FULLPIPE_TEST_CHILD";

/// Runs the child until it has said `lines` lines, then kills it; what it said, and whether it came
/// to the end.
fn run_and_kill(dir: &Path, lines: usize, spin: usize) -> (Vec<String>, bool) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "resume::child", "--nocapture"])
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    let reader = BufReader::new(child.stdout.take().unwrap());
    let mut reader = reader
        .lines()
        .map_while(Result::ok)
        .filter_map(|l| l.strip_prefix('@').map(str::to_owned));
    while said.len() < lines
        && let Some(line) = reader.next()
    {
        said.push(line);
    }
    for i in 0..spin {
        std::hint::black_box(i);
    }
    child.kill().unwrap(); // SIGKILL
    // What it said between the last line and its end.
    said.extend(reader);
    child.wait().unwrap();
    let done = said.iter().any(|l| l == "done");
    (said, done)
}

#[test]
fn a_killed_run_continues_where_it_was() {
    let root = tempfile::tempdir().unwrap();
    let (whole, killed) = (root.path().join("whole"), root.path().join("killed"));
    run(&scenario(MATRIX), Some(&whole), 2, false).unwrap();

    let mut dice = Dice(2003);
    let mut finished: BTreeSet<String> = BTreeSet::new();
    let mut kills = 0;
    for round in 0..40 {
        let (said, done) = run_and_kill(&killed, 1 + dice.below(4), dice.below(3_000_000));
        for line in &said {
            match line.split_once(' ') {
                Some(("started", key)) => {
                    assert!(!finished.contains(key), "round {round}: run again: {key}");
                }
                Some(("finished", key)) => {
                    finished.insert(key.to_owned());
                }
                Some(("error", what)) => panic!("round {round}: {what}"),
                _ => {}
            }
        }
        if done {
            break;
        }
        kills += 1;
    }
    assert!(kills >= 2, "only {kills} kills hit the run");
    let (ran, log) = run(&scenario(MATRIX), Some(&killed), 1, true).unwrap();
    assert!(log.warnings.lock().unwrap().is_empty());
    assert!(
        ran.reused >= finished.len() && ran.made + ran.reused == 8,
        "{ran:?}"
    );
    assert_same(&contents(&whole), &contents(&killed));
}

#[test]
fn a_finished_result_is_resumed_without_a_run() {
    let root = tempfile::tempdir().unwrap();
    let s = scenario(MATRIX);
    let (first, _) = run(&s, Some(root.path()), 2, false).unwrap();
    let before = contents(root.path());
    let (again, log) = run_in(&s, Some(root.path()), 2, true, &never).unwrap();
    assert_eq!((again.made, again.reused), (0, 8));
    assert_eq!(*log.begun.lock().unwrap(), [(8, 8)]);
    assert_eq!(again.result, first.result.without_times());
    assert_same(&before, &contents(root.path()));
}

#[test]
fn what_is_finished_is_not_made_again_without_a_word() {
    /// The simulator, built otherwise.
    struct Rebuilt;
    impl Ground for Rebuilt {
        fn name(&self) -> &str {
            "sim"
        }
        fn fingerprint(&self) -> &str {
            "altered"
        }
        fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
            fullpipe_sim::run.run(spec)
        }
    }
    let root = tempfile::tempdir().unwrap();
    let s = scenario(MATRIX);
    let runs = s.cases.len() * s.seeds.len();
    let told = |resume: bool, ground: &dyn Ground| {
        let (_, log) = run_in(&s, Some(root.path()), 2, resume, ground).unwrap();
        log.outdated.into_inner().unwrap()
    };
    assert_eq!(told(false, &fullpipe_sim::run), []);
    assert_eq!(told(true, &fullpipe_sim::run), []);
    assert_eq!(told(false, &fullpipe_sim::run), [(runs, Earlier::Remade)]);
    assert_eq!(told(true, &Rebuilt), [(runs, Earlier::Resumed)]);
    assert_eq!(told(true, &Rebuilt), []);
    // To resume would not help.
    assert_eq!(told(false, &fullpipe_sim::run), [(runs, Earlier::Resumed)]);
}

/// What a ground reads beside the specification: here the preset, as a kernel does.
#[test]
fn a_run_is_taken_over_only_where_the_ground_was_told_the_same() {
    struct Told;
    impl Ground for Told {
        fn name(&self) -> &str {
            "sim"
        }
        fn fingerprint(&self) -> &str {
            "told"
        }
        fn reads(&self, spec: &dyn Fn() -> RunSpec) -> String {
            let written = |f: &fullpipe_run::FlowSpec| format!("{:?} {:?}", f.preset, f.written);
            spec().flows.iter().map(written).collect()
        }
        fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
            fullpipe_sim::run.run(spec)
        }
    }
    let root = tempfile::tempdir().unwrap();
    let text = "name = \"told\"\nduration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"20ms\"\n\
                [[flow]]\nname = \"main\"\nstack = \"reno\"\npreset = \"2003\"\n";
    let first = run_in(&scenario(text), Some(root.path()), 1, true, &Told).unwrap();
    assert_eq!((first.0.made, first.0.reused), (1, 0));
    let again = run_in(&scenario(text), Some(root.path()), 1, true, &Told).unwrap();
    assert_eq!((again.0.made, again.0.reused), (0, 1));
    // The simulator runs the same either way.
    let written = scenario(&format!("{text}tlp = false\n"));
    let other = run_in(&written, Some(root.path()), 1, true, &Told)
        .err()
        .unwrap();
    assert!(other.to_string().contains("another result"), "{other}");
    let root = tempfile::tempdir().unwrap();
    run(&scenario(text), Some(root.path()), 1, true).unwrap();
    assert_eq!(
        run(&written, Some(root.path()), 1, true).unwrap().0.reused,
        1
    );
}

#[test]
fn more_seeds_run_only_the_new_ones() {
    let root = tempfile::tempdir().unwrap();
    run(&scenario(MATRIX), Some(root.path()), 2, false).unwrap();
    let more = scenario(&MATRIX.replace("seeds = [1, 2]", "seeds = [1, 2, 3]"));
    let (ran, log) = run(&more, Some(root.path()), 2, true).unwrap();
    assert_eq!((ran.made, ran.reused), (4, 8));
    assert!(
        log.started
            .lock()
            .unwrap()
            .iter()
            .all(|(_, seed)| *seed == 3)
    );
    let fresh = tempfile::tempdir().unwrap();
    run(&more, Some(fresh.path()), 1, false).unwrap();
    assert_same(&contents(fresh.path()), &contents(root.path()));
}

/// What is finished is never taken away: a narrower scenario needs a directory of its own.
#[test]
fn fewer_runs_are_refused() {
    let root = tempfile::tempdir().unwrap();
    run(&scenario(MATRIX), Some(root.path()), 2, false).unwrap();
    let before = contents(root.path());
    let fewer = scenario(&MATRIX.replace("seeds = [1, 2]", "seeds = [1]"));
    let error = run_in(&fewer, Some(root.path()), 2, true, &never)
        .err()
        .unwrap();
    assert!(error.to_string().contains("another result"), "{error}");
    assert!(error.to_string().contains("with seed 2"), "{error}");
    assert_same(&before, &contents(root.path()));
}

/// A refusal says what the directory holds and what to ask for instead.
#[test]
fn a_refused_directory_says_what_it_holds_and_the_remedy() {
    let root = tempfile::tempdir().unwrap();
    run(&scenario(MATRIX), Some(root.path()), 2, false).unwrap();
    let refused = |seeds: &str, from: &str, to: &str, resume: bool| {
        let text = MATRIX.replace("seeds = [1, 2]", seeds).replace(from, to);
        let ran = run_in(&scenario(&text), Some(root.path()), 2, resume, &never);
        let error = ran.err().unwrap();
        (error.to_string(), error.hint().unwrap())
    };

    let (error, hint) = refused("seeds = [3, 4]", "", "", true);
    assert!(error.ends_with("runs with seeds 1, 2"), "{error}");
    assert!(hint.contains("--seed 1 --repeat 4 --resume"), "{hint}");
    let (error, hint) = refused("seeds = [7]", "", "", true);
    assert!(error.ends_with("runs with seeds 1, 2"), "{error}");
    assert!(
        hint.contains("--resume") && !hint.contains("--seed "),
        "{hint}"
    );
    let (error, hint) = refused("seeds = [1, 2]", "9000]", "3000]", true);
    assert!(error.ends_with("4 finished runs of other cases"), "{error}");
    assert!(hint.contains("their cases too"), "{hint}");
    // Another duration as well: what the cases were comes first.
    let both = MATRIX.replace("9000]", "3000]").replace("\"4s\"", "\"5s\"");
    let ran = run_in(&scenario(&both), Some(root.path()), 2, true, &never);
    let error = ran.err().unwrap().to_string();
    assert!(error.ends_with("8 finished runs of other cases"), "{error}");
    let (error, hint) = refused("seeds = [1, 2]", "\"4s\"", "\"5s\"", true);
    let what = "finished runs with duration: 4s -> 5s";
    assert!(error.ends_with(what), "{error}");
    assert!(
        hint.contains("`--replace`") && !hint.contains("their cases"),
        "{hint}"
    );
    let (error, hint) = refused("seeds = [1, 2, 3]", "", "", false);
    assert!(error.contains("other cases or seeds"), "{error}");
    assert!(hint.contains("add to it with `--resume`"), "{hint}");
    let (error, hint) = refused("seeds = [1, 2]", "\"small\"", "\"other\"", true);
    assert!(error.ends_with("scenario `small`"), "{error}");
    assert!(hint.contains("--out"), "{hint}");
}

/// One value of an axis is another one: the runs of the others stay, and nothing else does.
#[test]
fn a_replaced_result_keeps_what_is_asked_for_again() {
    let root = tempfile::tempdir().unwrap();
    run(&scenario(MATRIX), Some(root.path()), 2, false).unwrap();
    let other = scenario(&MATRIX.replace("9000]", "3000]"));
    let replace = |s: &_| {
        let options = Options {
            out: Some(root.path()),
            earlier: Earlier::Replaced,
            ..Options::default()
        };
        run_on(s, &options, &fullpipe_sim::run).unwrap()
    };
    let ran = replace(&other);
    assert_eq!((ran.made, ran.reused), (4, 4));
    let fresh = tempfile::tempdir().unwrap();
    run(&other, Some(fresh.path()), 2, false).unwrap();
    assert_same(&contents(fresh.path()), &contents(root.path()));
    // Another scenario takes the directory, too.
    let ran = replace(&scenario(&MATRIX.replace("\"small\"", "\"other\"")));
    assert_eq!(ran.reused, 4);
    // What somebody else put there stays.
    let own = root.path().join("series/own.pcap");
    std::fs::write(&own, "x").unwrap();
    let old = root.path().join("series/case-0077-seed1-flows.parquet");
    std::fs::write(&old, "x").unwrap();
    replace(&other);
    assert!(own.exists() && !old.exists());
    // What is no result stays where it is.
    let foreign = tempfile::tempdir().unwrap();
    std::fs::write(foreign.path().join("thesis.tex"), "x").unwrap();
    let options = Options {
        out: Some(foreign.path()),
        earlier: Earlier::Replaced,
        ..Options::default()
    };
    assert!(run_on(&other, &options, &fullpipe_sim::run).is_err());
}

/// Whether the ground is asked or tried: what is there stays, and nothing is left where nothing
/// was.
#[test]
fn what_makes_no_run_changes_no_directory() {
    struct Useless {
        when_asked: bool,
    }
    impl Useless {
        fn refusal(&self, spec: &RunSpec) -> GroundError {
            let (what, hint) = ("nothing works".to_owned(), "take another".to_owned());
            match self.when_asked || spec.capture {
                true => GroundError::Unable {
                    key: None,
                    what,
                    hint,
                },
                false => GroundError::Environment { what, hint },
            }
        }
    }
    impl Ground for Useless {
        fn name(&self) -> &str {
            "useless"
        }
        fn fingerprint(&self) -> &str {
            "none"
        }
        fn check(&self, spec: &RunSpec) -> Result<(), GroundError> {
            match self.when_asked || spec.capture {
                true => Err(self.refusal(spec)),
                false => Ok(()),
            }
        }
        fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
            Err(self.refusal(spec))
        }
    }
    let root = tempfile::tempdir().unwrap();
    let there = root.path().join("there");
    let s = scenario(MATRIX);
    run(&s, Some(&there), 2, false).unwrap();
    let before = contents(&there);
    let pcap = Captures {
        pcap: true,
        qlog: false,
    };
    for (when_asked, captures, code) in [
        (true, Captures::default(), 2),
        (false, pcap, 2),
        (false, Captures::default(), 3),
    ] {
        for (out, earlier) in [
            (there.clone(), Earlier::Replaced),
            (root.path().join("new/one"), Earlier::Remade),
        ] {
            let options = Options {
                out: Some(&out),
                earlier,
                captures,
                ..Options::default()
            };
            let error = run_on(&s, &options, &Useless { when_asked }).unwrap_err();
            assert_eq!(error.exit_code(), code, "{error}");
            assert_same(&before, &contents(&there));
            assert!(!root.path().join("new").exists());
        }
    }
    assert!(!there.join("captures").exists());
    let (ran, _) = run(&s, Some(&there), 2, true).unwrap();
    assert_eq!((ran.made, ran.reused), (0, 8));
}

/// A copy without its series: resuming makes exactly these runs again.
#[test]
fn a_result_without_its_series_is_made_whole_by_resuming() {
    let root = tempfile::tempdir().unwrap();
    let s = scenario(MATRIX);
    run(&s, Some(root.path()), 2, false).unwrap();
    let before = contents(root.path());
    std::fs::remove_dir_all(root.path().join("series")).unwrap();

    let (ran, _) = run(&s, Some(root.path()), 2, true).unwrap();
    assert_eq!((ran.made, ran.reused), (8, 0));
    assert_same(&before, &contents(root.path()));
}

#[test]
fn an_interrupt_keeps_what_is_finished() {
    struct StopAfter<'a>(&'a AtomicBool, AtomicUsize);
    impl Progress for StopAfter<'_> {
        fn finished(&self, _: &RunFinished<'_>) {
            if self.1.fetch_add(1, Ordering::Relaxed) + 1 == 3 {
                self.0.store(true, Ordering::Relaxed);
            }
        }
    }
    let root = tempfile::tempdir().unwrap();
    let s = scenario(MATRIX);
    let interrupt = AtomicBool::new(false);
    let progress = StopAfter(&interrupt, AtomicUsize::new(0));
    let options = Options {
        jobs: 1,
        out: Some(root.path()),
        earlier: Earlier::Remade,
        captures: fullpipe_results::capture::Captures::default(),
        cases: None,
        progress: &progress,
        interrupt: &interrupt,
    };
    let error = run_on(&s, &options, &fullpipe_sim::run).unwrap_err();
    assert!(
        matches!(
            error,
            RunError::Interrupted {
                done: 3,
                total: 8,
                kept: true,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.exit_code(), 130);
    assert!(error.hint().unwrap().contains("--resume"));
    let (ran, _) = run(&s, Some(root.path()), 2, true).unwrap();
    assert_eq!((ran.made, ran.reused), (5, 3));
    let fresh = tempfile::tempdir().unwrap();
    run(&s, Some(fresh.path()), 1, false).unwrap();
    assert_same(&contents(fresh.path()), &contents(root.path()));
}

/// A machine that was late may have peace now: what does not count is made again, and it alone.
#[test]
fn what_was_not_valid_is_made_again() {
    let late = |seeds: &'static [u64]| {
        move |spec: &RunSpec| {
            let mut outcome = fullpipe_sim::run(spec)?;
            outcome.fidelity = Some(fullpipe_run::Fidelity {
                unplanned_drops: u64::from(seeds.contains(&spec.seed)),
                ..fullpipe_run::Fidelity::default()
            });
            Ok::<_, fullpipe_run::Violation>(outcome)
        }
    };
    let s = scenario(MATRIX);
    let first = s.seeds[0];
    let late_once: &'static [u64] = Box::leak(Box::new([first]));
    for earlier in [Earlier::Resumed, Earlier::Replaced] {
        let root = tempfile::tempdir().unwrap();
        let (ran, _) = run_in(&s, Some(root.path()), 1, false, &late(late_once)).unwrap();
        assert!(ran.result.untrue().is_some());
        assert_eq!((ran.made, ran.reused, ran.remade), (8, 0, 0));
        let options = Options {
            out: Some(root.path()),
            earlier,
            ..Options::default()
        };
        let again = run_on(&s, &options, &late(&[])).unwrap();
        assert_eq!((again.made, again.reused, again.remade), (4, 4, 4));
        assert_eq!(again.result.untrue(), None);
        assert_eq!(again.counts(), "4 runs and 4 taken over");
        let said = again.again().unwrap();
        assert_eq!(said, "4 runs made again: they were not valid");
        let last = run_on(&s, &options, &never).unwrap();
        assert_eq!((last.made, last.reused, last.again()), (0, 8, None));
    }
}

/// Of 600 runs the first 500 seeds have series: what the first runs take is not what all take.
#[test]
fn what_a_result_will_take_is_known_after_some_runs() {
    let root = tempfile::tempdir().unwrap();
    let mut s = scenario(MATRIX);
    s.cases.truncate(1);
    s.seeds = (1..=600).collect();
    let (_, log) = run(&s, Some(root.path()), 2, false).unwrap();
    let bytes = log.bytes.lock().unwrap();
    let (all, of_all) = *bytes.last().unwrap();
    assert_eq!(all, of_all);
    let (soon, expected) = bytes[20];
    let there: u64 = (["runs", "series"].iter())
        .flat_map(|dir| std::fs::read_dir(root.path().join(dir)).unwrap())
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert_eq!(there, all);
    let plain = soon as f64 / 21.0 * 600.0;
    let ratio = |x: f64| x / all as f64;
    assert!(
        (0.9..1.1).contains(&ratio(expected as f64)),
        "{expected} {all}"
    );
    assert!(
        ratio(plain) > 1.1,
        "series of the first seeds: {plain} {all}"
    );
}
