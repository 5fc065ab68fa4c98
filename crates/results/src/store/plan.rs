//! Which runs there are to be, and the key by which a run is known.

use std::collections::BTreeMap;

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

/// Every run of the cases with these seeds, by case and seed, with its key. Runs of another ground,
/// to another host or of other sources have other keys.
pub fn plan(scenario: &Scenario, ground: &dyn Ground, seeds: &[u64]) -> Vec<Unit> {
    let origin = origin(ground);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut units = Vec::new();
    for case in &scenario.cases {
        let text = case.key_text();
        for &seed in seeds {
            let mut key = key(case, &text, seed, &origin, 0);
            // Two spellings of one case are two runs, each with its own files.
            let twins = seen.entry(key.clone()).or_default();
            if *twins > 0 {
                key = self::key(case, &text, seed, &origin, *twins);
            }
            *twins += 1;
            units.push(Unit {
                case: case.index,
                seed,
                key,
            });
        }
    }
    units
}

/// Key of a run wherever its case stands in a matrix.
pub(crate) fn key_of(case: &Case, seed: u64, ground: &dyn Ground) -> String {
    key(case, &case.key_text(), seed, &origin(ground), 0)
}

fn origin(ground: &dyn Ground) -> String {
    format!(
        "fullpipe {VERSION} {}\nformat {FORMAT}\nground {}",
        engine::of(ground),
        place(ground)
    )
}

fn key(case: &Case, key_text: &str, seed: u64, origin: &str, twin: usize) -> String {
    let groups = format!("{:?}", case.flows);
    let text = format!("{origin}\nseed {seed}\ntwin {twin}\n{key_text}\n{groups}\n");
    sha256(text.as_bytes())
}

/// The name of the ground, and of the other host if there is one.
fn place(ground: &dyn Ground) -> String {
    match ground.peer() {
        None => ground.name().to_owned(),
        Some(peer) => format!("{} to {peer}", ground.name()),
    }
}
