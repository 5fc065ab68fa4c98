//! Which runs there are to be, and the key by which a run is known.

use std::collections::BTreeMap;

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

/// Every run of the cases with these seeds, by case and seed, with its key. `ground` tells results
/// of one place from those of another.
pub fn plan(scenario: &Scenario, ground: &str, seeds: &[u64]) -> Vec<Unit> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut units = Vec::new();
    for case in &scenario.cases {
        let text = case.key_text();
        for &seed in seeds {
            let mut key = key(case, &text, seed, ground, 0);
            // Two spellings of one case are two runs, each with its own files.
            let twins = seen.entry(key.clone()).or_default();
            if *twins > 0 {
                key = self::key(case, &text, seed, ground, *twins);
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

fn key(case: &Case, key_text: &str, seed: u64, ground: &str, twin: usize) -> String {
    let groups = format!("{:?}", case.flows);
    let engine = engine::of(ground);
    let text = format!(
        "fullpipe {VERSION} {engine}\nformat {FORMAT}\nground {ground}\nseed {seed}\ntwin {twin}\n{key_text}\n{groups}\n"
    );
    sha256(text.as_bytes())
}
