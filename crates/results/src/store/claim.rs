//! Whose a directory is: what an earlier run left there, and whether this one may take it over.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use super::layout::{MANIFEST, run_name};
use super::{Hash, Manifest, Other, Planned, StoreError};
use super::{engine, files};
use crate::result::{Params, VERSION};
use fullpipe_run::Ground;
use fullpipe_scenario::{Scenario, differing_keys};

/// What becomes of an earlier result in the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Earlier {
    /// Made again if it is of the same runs, otherwise refused.
    #[default]
    Remade,
    /// Its finished runs stay; one that is not asked for any more is a refusal.
    Resumed,
    /// Its finished runs that are asked for again stay, everything else of it goes.
    Replaced,
}

impl Earlier {
    /// With `--resume`, or without.
    pub fn resumed(resume: bool) -> Self {
        if resume { Self::Resumed } else { Self::Remade }
    }
}

/// What is to be run into a directory.
pub(super) struct Claim<'a> {
    pub(super) scenario: &'a Scenario,
    /// Parameters of its cases.
    pub(super) cases: &'a [Params],
    pub(super) ground: &'a dyn Ground,
    pub(super) runs: Planned<'a>,
    /// All that a precision may ask for.
    pub(super) possible: Planned<'a>,
    pub(super) earlier: Earlier,
}

impl Claim<'_> {
    /// # Errors
    /// If the directory holds something else, if what it holds cannot be read, or if finished runs
    /// would be taken away.
    pub(super) fn check(&self, dir: &Path) -> Result<(), StoreError> {
        let present = files::names(dir)?;
        if !present.iter().any(|n| n == MANIFEST) {
            let ours = |n: &String| n == files::LOCK || files::is_temporary(n);
            return match present.iter().all(ours) {
                true => Ok(()),
                false => Err(StoreError::Foreign {
                    dir: dir.to_owned(),
                }),
            };
        }
        let earlier = match Manifest::read(dir) {
            // What is left of a damaged manifest does not say whose the directory is.
            Err(StoreError::Damaged { .. }) if self.earlier != Earlier::Remade => return Ok(()),
            other => other?,
        };
        match self.other(dir, &earlier) {
            None => Ok(()),
            Some(_) if self.earlier == Earlier::Replaced => Ok(()),
            Some(other) => Err(StoreError::OtherResult {
                dir: dir.to_owned(),
                other,
            }),
        }
    }

    /// In what an earlier result is not the one that is to be made; `None` if it is.
    fn other(&self, dir: &Path, earlier: &Manifest) -> Option<Other> {
        if earlier.scenario != self.scenario.name {
            return Some(Other::Scenario(earlier.scenario.clone()));
        }
        if earlier.ground != self.ground.name() || earlier.peer.as_deref() != self.ground.peer() {
            return Some(Other::Ground {
                name: earlier.ground.clone(),
                peer: earlier.peer.clone(),
            });
        }
        if self.same_runs(earlier) {
            return None;
        }
        match self.lost(dir, earlier) {
            Some(lost) => Some(lost),
            None if self.earlier == Earlier::Resumed => None,
            None => Some(Other::Unresumed),
        }
    }

    fn same_runs(&self, earlier: &Manifest) -> bool {
        if earlier.engine != engine::of(self.ground) || earlier.fullpipe != VERSION {
            // Another engine gives every run another key: then the scenario's text has to do.
            return earlier.scenario_text == self.scenario.text && earlier.cases == self.cases;
        }
        let possible = self.possible.sorted_keys();
        let mut keys: Vec<Hash> = earlier.runs.iter().map(|r| r.key).collect();
        keys.sort_unstable();
        keys.iter().all(|key| is_among(&possible, *key))
            && self.runs.each().all(|unit| is_among(&keys, unit.key))
    }

    /// The finished runs that are not to be made again. A resumed run may add cases and seeds, but
    /// never take one away.
    fn lost(&self, dir: &Path, earlier: &Manifest) -> Option<Other> {
        if earlier.engine != engine::of(self.ground) {
            return None;
        }
        let possible = self.possible.sorted_keys();
        let other = earlier.runs.iter().filter(|r| !is_among(&possible, r.key));
        let lost = other.filter(|r| dir.join(run_name(r.key)).exists());
        let lost: BTreeSet<(usize, u64)> = lost.map(|r| (r.case, r.seed)).collect();
        if lost.is_empty() {
            return None;
        }
        let wanted: BTreeSet<u64> = self.possible.seeds.iter().copied().collect();
        let theirs: BTreeSet<u64> = lost.iter().map(|(_, seed)| *seed).collect();
        Some(if theirs.is_disjoint(&wanted) {
            Other::Seeds {
                both: wanted.union(&theirs).copied().collect(),
                theirs: theirs.into_iter().collect(),
            }
        } else {
            let cases: BTreeSet<usize> = lost.iter().map(|(case, _)| *case).collect();
            let own: HashSet<&Params> = self.cases.iter().collect();
            let known = |case: &usize| earlier.cases.get(*case).is_some_and(|c| own.contains(c));
            let keys = match cases.iter().all(known) {
                true => self.changed(earlier),
                false => Vec::new(),
            };
            let runs = lost.len();
            match keys.is_empty() {
                true => Other::Cases { runs },
                false => Other::Changed { runs, keys },
            }
        })
    }

    /// What the same cases were made of, and are now: `duration: 60s -> 12s`.
    fn changed(&self, earlier: &Manifest) -> Vec<String> {
        let there = earlier.set.clone().unwrap_or_default();
        let differing = differing_keys(
            (&earlier.scenario_text, &there),
            (&self.scenario.text, &self.scenario.set),
        );
        let value = |value: Option<String>| value.unwrap_or_else(|| "not set".to_owned());
        let rows = differing.into_iter();
        let mut keys: Vec<String> = rows
            .map(|(key, there, here)| format!("{key}: {} -> {}", value(there), value(here)))
            .collect();
        if earlier.quick != self.scenario.quick {
            let word = |quick| if quick { "with" } else { "without" };
            let (there, here) = (word(earlier.quick), word(self.scenario.quick));
            keys.push(format!("--quick: {there} -> {here}"));
        }
        keys
    }
}

fn is_among(sorted: &[Hash], key: Hash) -> bool {
    sorted.binary_search(&key).is_ok()
}
