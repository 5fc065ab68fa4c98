//! Takes back what a daemon that was killed has left.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fullpipe_observe::SocketDiag;

use super::AVAILABLE;
use crate::bpf::{Bpf, Load};
use crate::journal::{Journal, Key};
use crate::kernel::{Kernel, Seen};
use crate::names;
use crate::namespaces::{Scope, within};
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
    /// Flows of the journal in network namespaces that were not looked into, ended ones too.
    pub out_of_reach: usize,
}

/// Gives back what a daemon that was killed has left: flows whose algorithm has a name of ours, and
/// those of its journal; queues of interfaces. What was changed since is left alone. What was done
/// is in `reverted`, whatever failed beside it.
///
/// # Errors
/// A daemon runs, the kernel refuses, or the disk is full.
pub fn revert(
    state: &Path,
    prefix: &str,
    scope: Scope,
    reverted: &mut Reverted,
) -> Result<(), DaemonError> {
    // No daemon was here, or its folder is gone: whether flows have names of ours, which the kernel
    // has no longer than their daemon, is looked at before a folder is made.
    if !state.exists() {
        let there = in_use(&scope).map_err(|e| DaemonError::Io("network namespaces".into(), e))?;
        if !there.iter().any(|name| name.starts_with(prefix)) {
            reverted.others = names::of_others(prefix, there.iter().map(String::as_str));
            return Ok(());
        }
    }
    let _lock = lock(state, DYING)?;
    is_unloaded(prefix)?;
    let queues = state.join(QUEUES);
    let taken_off = spread::take_off(&queues, &scope, &mut reverted.lines);
    let taken_off = taken_off.map_err(|e| DaemonError::Io(queues.display().to_string(), e));
    let given_back = flows(state, prefix, scope, reverted);
    let faults = [taken_off, given_back].into_iter();
    DaemonError::of(faults.filter_map(Result::err).collect())
}

/// Algorithms of the flows that this user can look at.
fn in_use(scope: &Scope) -> io::Result<BTreeSet<String>> {
    let look = || SocketDiag::open()?.connections();
    let mut found = BTreeSet::new();
    for namespace in scope.open()?.values() {
        // Without a privilege the others are not entered.
        let sockets = within(namespace, || look().map_err(io::Error::other)).unwrap_or_default();
        found.extend(sockets.into_iter().map(|socket| socket.congestion));
    }
    Ok(found)
}

/// Waits until the kernel has no algorithm with this prefix: those of a daemon that was killed go
/// with its programs, those of one that runs, with another folder, stay.
fn is_unloaded(prefix: &str) -> Result<(), DaemonError> {
    let begin = Instant::now();
    loop {
        let there = fs::read_to_string(AVAILABLE).unwrap_or_default();
        match there.split_whitespace().find(|n| n.starts_with(prefix)) {
            None => return Ok(()),
            Some(_) if begin.elapsed() < DYING => thread::sleep(Duration::from_millis(100)),
            Some(name) => return Err(DaemonError::Elsewhere(name.to_owned())),
        }
    }
}

fn flows(
    state: &Path,
    prefix: &str,
    scope: Scope,
    reverted: &mut Reverted,
) -> Result<(), DaemonError> {
    let mut journal = Journal::open(&state.join(JOURNAL))?;
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
    reverted.others = names::of_others(prefix, left.map(|s| s.listing.algorithm.as_str()));
    // Whether each of them was written down is of no account: all of it is written anew.
    let back = give_back(&mut bpf, &mut journal, prefix, seen, |_| true)?;
    reverted.lines.extend(back.lines);
    journal.conclude(|key| alive.contains(key), |ns| bpf.sees(ns))?;
    let left = journal.entries().filter(|((ns, _), _)| !bpf.sees(*ns));
    reverted.out_of_reach = left.count();
    Ok(())
}
