//! Which runs there are to be, and the key by which a run is known.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fullpipe_run::Ground;

use super::Hash;
use super::engine;
use super::layout::FORMAT;
use crate::result::VERSION;
use fullpipe_scenario::{Case, Scenario};

/// A run that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Index of the case.
    pub case: usize,
    /// Seed.
    pub seed: u64,
    /// See [`super::ManifestRun::key`].
    pub key: Hash,
}

/// The keys of the runs of a scenario, each made when it is asked for. Runs of another ground, to
/// another host or of other sources have other keys.
pub struct Keys<'a> {
    scenario: &'a Scenario,
    ground: &'a dyn Ground,
    origin: String,
    /// Of each case: how many before it are the same, spelled otherwise.
    twins: Vec<usize>,
    /// The case that was asked for last and its text: one of many seeds is put down once.
    text: Mutex<(usize, Arc<str>)>,
}

impl<'a> Keys<'a> {
    /// Two spellings of one case are two runs, each with its own files.
    pub fn apart(scenario: &'a Scenario, ground: &'a dyn Ground) -> Keys<'a> {
        let mut seen: BTreeMap<Hash, usize> = BTreeMap::new();
        let twin = |case: &Case| {
            let twins = seen.entry(Hash::of(text(case).as_bytes())).or_default();
            *twins += 1;
            *twins - 1
        };
        Keys {
            twins: scenario.cases.iter().map(twin).collect(),
            ..Keys::shared(scenario, ground)
        }
    }

    /// Two spellings of one case are one run, wherever they stand in a matrix.
    pub fn shared(scenario: &'a Scenario, ground: &'a dyn Ground) -> Keys<'a> {
        Keys {
            scenario,
            ground,
            origin: origin(ground),
            twins: vec![0; scenario.cases.len()],
            text: Mutex::new((usize::MAX, "".into())),
        }
    }

    /// The key of a run.
    pub fn of(&self, case: usize, seed: u64) -> Hash {
        let text = {
            let mut last = self.text.lock().unwrap_or_else(PoisonError::into_inner);
            if last.0 != case {
                let of = &self.scenario.cases[case];
                let reads = self.ground.reads(&|| of.run_spec(seed));
                *last = (case, (text(of) + &reads).into());
            }
            Arc::clone(&last.1)
        };
        let (origin, twin) = (&self.origin, self.twins[case]);
        Hash::of(format!("{origin}\nseed {seed}\ntwin {twin}\n{text}").as_bytes())
    }

    /// The run of a case with a seed.
    pub fn unit(&self, case: usize, seed: u64) -> Unit {
        let key = self.of(case, seed);
        Unit { case, seed, key }
    }

    /// The runs of every case with the first `counts[case]` of these seeds.
    pub fn planned(&'a self, seeds: &'a [u64], counts: &'a [usize]) -> Planned<'a> {
        let keys = self;
        Planned {
            keys,
            seeds,
            counts,
        }
    }
}

/// Runs of a scenario: every case with the first `counts[case]` of the seeds. They are named one
/// after the other; a list of them would take more memory than what is kept of finished ones.
#[derive(Clone, Copy)]
pub struct Planned<'a> {
    keys: &'a Keys<'a>,
    pub(super) seeds: &'a [u64],
    counts: &'a [usize],
}

impl<'a> Planned<'a> {
    pub(super) fn len(self) -> usize {
        self.counts.iter().sum()
    }

    /// All of them, by case and seed.
    pub(super) fn each(self) -> impl Iterator<Item = Unit> + 'a {
        let of_case = move |(case, &n): (usize, &usize)| {
            let seeds = self.seeds[..n].iter();
            seeds.map(move |&seed| self.keys.unit(case, seed))
        };
        self.counts.iter().enumerate().flat_map(of_case)
    }

    /// Their keys, in order.
    pub(super) fn sorted_keys(self) -> Vec<Hash> {
        let mut keys = Vec::with_capacity(self.len());
        keys.extend(self.each().map(|unit| unit.key));
        keys.sort_unstable();
        keys
    }
}

fn origin(ground: &dyn Ground) -> String {
    format!(
        "fullpipe {VERSION} {}\nformat {FORMAT}\nground {}",
        engine::of(ground),
        place(ground)
    )
}

/// What decides a run of a case, beside its seed.
fn text(case: &Case) -> String {
    format!("{}\n{:?}\n", case.key_text(), case.flows)
}

/// The name of the ground, and of the other host if there is one.
fn place(ground: &dyn Ground) -> String {
    match ground.peer() {
        None => ground.name().to_owned(),
        Some(peer) => format!("{} to {peer}", ground.name()),
    }
}
