//! Runs of scenarios, and helpers to look at their directories.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use fullpipe_results::run::{Options, Progress, Ran, RunError, RunFinished, RunStarted, run_on};
use fullpipe_results::store::Earlier;
use fullpipe_run::Ground;
use fullpipe_run::{Outcome, RunSpec, Violation};
use fullpipe_scenario::{Overrides, Scenario};

pub fn with(text: &str, overrides: &Overrides) -> Scenario {
    Scenario::parse(text, "small.toml", overrides).unwrap_or_else(|e| panic!("{e}"))
}

/// Remembers what it was told.
#[derive(Default)]
pub struct Log {
    pub begun: Mutex<Vec<(usize, usize)>>,
    pub started: Mutex<Vec<(usize, u64)>>,
    pub finished: Mutex<Vec<(usize, u64)>>,
    /// Bytes so far, and in the end, after each run.
    pub bytes: Mutex<Vec<(u64, u64)>>,
    pub warnings: Mutex<Vec<String>>,
    pub outdated: Mutex<Vec<(usize, Earlier)>>,
}

impl Progress for Log {
    fn outdated(&self, runs: usize, earlier: Earlier) {
        self.outdated.lock().unwrap().push((runs, earlier));
    }
    fn begin(&self, total: usize, reused: usize) {
        self.begun.lock().unwrap().push((total, reused));
    }
    fn started(&self, run: &RunStarted<'_>) {
        self.started.lock().unwrap().push((run.case, run.seed));
    }
    fn finished(&self, run: &RunFinished<'_>) {
        self.finished.lock().unwrap().push((run.case, run.seed));
        let bytes = (run.kept_bytes, run.expected_bytes);
        self.bytes.lock().unwrap().push(bytes);
    }
    fn warn(&self, message: &str) {
        self.warnings.lock().unwrap().push(message.to_owned());
    }
}

pub fn run(
    s: &Scenario,
    out: Option<&Path>,
    jobs: usize,
    resume: bool,
) -> Result<(Ran, Log), RunError> {
    run_in(s, out, jobs, resume, &fullpipe_sim::run)
}

pub fn run_in(
    s: &Scenario,
    out: Option<&Path>,
    jobs: usize,
    resume: bool,
    engine: &dyn Ground,
) -> Result<(Ran, Log), RunError> {
    let log = Log::default();
    let interrupt = AtomicBool::new(false);
    let options = Options {
        jobs,
        out,
        earlier: Earlier::resumed(resume),
        captures: fullpipe_results::capture::Captures::default(),
        cases: None,
        progress: &log,
        interrupt: &interrupt,
    };
    run_on(s, &options, engine).map(|ran| (ran, log))
}

/// Files of a result by path, without the wall times and the lock.
pub fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, dir: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, into);
            } else {
                let name = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                into.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(dir, dir, &mut all);
    assert!(all.remove(".lock").is_some_and(|lock| lock.is_empty()));
    all.remove("timing.json");
    all
}

/// Equal names and bytes, named one by one.
pub fn assert_same(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, bytes) in a {
        assert!(*bytes == b[name], "`{name}` differs");
    }
}

/// An engine that must not be asked.
pub fn never(spec: &RunSpec) -> Result<Outcome, Violation> {
    panic!("run again with seed {}", spec.seed)
}

/// A generator for tests (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}
