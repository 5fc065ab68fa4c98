//! Which runs there are to be, and the key by which a run is known.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fullpipe_run::Ground;

use super::engine;
use super::files::sha256;
use super::layout::FORMAT;
use crate::result::VERSION;
use fullpipe_scenario::{Case, Scenario};

/// A run that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Index of the case.
    pub case: usize,
    /// Seed.
    pub seed: u64,
    /// See [`super::ManifestRun::key`].
    pub key: String,
}

/// The keys of the runs of a scenario, each made when it is asked for. Runs of another ground, to
/// another host or of other sources have other keys.
pub struct Keys<'a> {
    scenario: &'a Scenario,
    origin: String,
    /// Of each case: how many before it are the same, spelled otherwise.
    twins: Vec<usize>,
    /// The case that was asked for last and its text: one of many seeds is put down once.
    text: Mutex<(usize, Arc<str>)>,
}

impl<'a> Keys<'a> {
    /// Two spellings of one case are two runs, each with its own files.
    pub fn apart(scenario: &'a Scenario, ground: &dyn Ground) -> Keys<'a> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let twin = |case: &Case| {
            let twins = seen.entry(sha256(text(case).as_bytes())).or_default();
            *twins += 1;
            *twins - 1
        };
        Keys {
            twins: scenario.cases.iter().map(twin).collect(),
            ..Keys::shared(scenario, ground)
        }
    }

    /// Two spellings of one case are one run, wherever they stand in a matrix.
    pub fn shared(scenario: &'a Scenario, ground: &dyn Ground) -> Keys<'a> {
        Keys {
            scenario,
            origin: origin(ground),
            twins: vec![0; scenario.cases.len()],
            text: Mutex::new((usize::MAX, "".into())),
        }
    }

    /// The key of a run.
    pub fn of(&self, case: usize, seed: u64) -> String {
        let text = {
            let mut last = self.text.lock().unwrap_or_else(PoisonError::into_inner);
            if last.0 != case {
                *last = (case, text(&self.scenario.cases[case]).into());
            }
            Arc::clone(&last.1)
        };
        let (origin, twin) = (&self.origin, self.twins[case]);
        sha256(format!("{origin}\nseed {seed}\ntwin {twin}\n{text}").as_bytes())
    }

    /// The runs of every case with the first `counts[case]` of these seeds, by case and seed.
    pub fn units(&self, seeds: &[u64], counts: &[usize]) -> Vec<Unit> {
        let unit = |case: usize, seed: u64| Unit {
            case,
            seed,
            key: self.of(case, seed),
        };
        let cases = counts.iter().enumerate();
        cases
            .flat_map(|(case, &n)| seeds[..n].iter().map(move |&seed| (case, seed)))
            .map(|(case, seed)| unit(case, seed))
            .collect()
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
