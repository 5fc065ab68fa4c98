//! Takes back what a daemon that was killed has left.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::AVAILABLE;
use crate::bpf::{Bpf, Load};
use crate::journal::{Journal, Key};
use crate::kernel::{Kernel, Seen};
use crate::names;
use crate::namespaces::Scope;
use crate::spread;
use crate::state::{DYING, DaemonError, JOURNAL, QUEUES, lock};
use crate::tuner::give_back;

/// What was given back, and what is not ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reverted {
    /// A line for each flow and queue.
    pub lines: Vec<String>,
    /// Prefixes of other tuners, which run or have left flows with algorithms of theirs.
    pub others: BTreeSet<String>,
}

/// Gives back what a daemon that was killed has left: flows whose algorithm has a name of ours, and
/// those of its journal; queues of interfaces. What was changed since is left alone.
///
/// # Errors
/// A daemon runs, or the kernel refuses.
pub fn revert(state: &Path, prefix: &str, scope: Scope) -> Result<Reverted, DaemonError> {
    // The kernel has a name as long as a flow runs it. No daemon was here, or its folder is gone:
    // whether flows have names of ours is looked at before one is made.
    let there = fs::read_to_string(AVAILABLE).unwrap_or_default();
    if !state.exists()
        && !there
            .split_whitespace()
            .any(|name| name.starts_with(prefix))
    {
        return Ok(Reverted {
            others: names::of_others(prefix, there.split_whitespace()),
            ..Reverted::default()
        });
    }
    let _lock = lock(state, DYING)?;
    let queues = state.join(QUEUES);
    let mut lines = spread::take_off(&queues, &scope)
        .map_err(|e| DaemonError::Io(queues.display().to_string(), e))?;
    let mut journal = Journal::open(&state.join(JOURNAL))?;
    let looked_at = match &scope {
        Scope::All => None,
        some => Some(
            some.open()
                .map_err(|e| DaemonError::Io("namespaces".to_owned(), e))?,
        ),
    };
    let mut bpf = Bpf::load(Load {
        prefix,
        cgroup: None,
        scope,
        register: false,
    })?;
    let seen = bpf.flows(&[])?;
    let alive: BTreeSet<Key> = seen.iter().map(Seen::key).collect();
    // Those of the journal are given back whatever their names.
    let left = seen.iter().filter(|s| !journal.knows(s.key()));
    let others = names::of_others(prefix, left.map(|s| s.listing.algorithm.as_str()));
    lines.extend(give_back(&mut bpf, &mut journal, prefix, seen, |_| true)?);
    // Of namespaces that nobody looked into nothing is known.
    let unseen = |ns: &u64| looked_at.as_ref().is_some_and(|all| !all.contains_key(ns));
    journal.strike(|key| alive.contains(key) || unseen(&key.0))?;
    Ok(Reverted { lines, others })
}
