//! One scenario on both grounds, with as many runs as the verdict needs.

use serde::{Deserialize, Serialize};

use super::draft::Draft;
use super::draw::Class;
use super::invariant;
use super::judge::{Difference, Verdict, judge, verdict};
use super::run::{Failure, Seen, by_late_hosts, on_its_hosts, perturbed, resolve, simulate};

/// Runs of the simulator behind a verdict that is not plain agreement.
pub const SIM_RUNS: u32 = 16;
/// Runs of the kernel behind such a verdict.
pub const LINUX_RUNS: u32 = 3;

/// One line of `fuzz.jsonl`: the comparison, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum Trial {
    /// Both grounds ran it.
    Compared(Compared),
    /// A ground cannot do it, and says why.
    Refused {
        /// The refusal, with the key of the scenario.
        reason: String,
    },
    /// A ground failed.
    Fault {
        /// Which, and how.
        what: String,
    },
}

/// What both grounds made of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The worst of the metrics that decide.
    pub verdict: Verdict,
    /// Every metric.
    pub differences: Vec<Difference>,
    /// What must never be, by the ground where it was.
    pub broken: Vec<String>,
    /// Runs of the kernel.
    pub linux: Vec<Seen>,
    /// The simulator's run of the scenario as it stands.
    pub sim: Seen,
}

/// Where the kernel's runs come from: the `n`-th of a scenario, or `None` if there are no more.
pub type LinuxRuns<'a> =
    dyn FnMut(&fullpipe_run::RunSpec, u32) -> Result<Option<Seen>, Failure> + 'a;

/// Runs a scenario on both grounds, with the hosts of the kernel that has this fingerprint.
///
/// # Errors
/// Stopped from outside.
pub fn attempt(
    draft: &Draft,
    class: Class,
    kernel: &str,
    linux: &mut LinuxRuns<'_>,
) -> Result<Trial, Stopped> {
    match compare(draft, class, kernel, linux) {
        Ok(compared) => Ok(Trial::Compared(compared)),
        Err((_, Failure::Refused(reason))) => Ok(Trial::Refused { reason }),
        Err((ground, Failure::Fault(what))) => Ok(Trial::Fault {
            what: format!("{ground}: {what}"),
        }),
        Err((_, Failure::Stopped)) => Err(Stopped),
    }
}

/// A run was stopped from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

fn compare(
    draft: &Draft,
    class: Class,
    fingerprint: &str,
    linux: &mut LinuxRuns<'_>,
) -> Result<Compared, (&'static str, Failure)> {
    let spec = resolve(draft).map_err(|e| ("scenario", Failure::Fault(e)))?;
    let mut kernel = |n: u32| linux(&perturbed(&spec, n), n).map_err(|e| ("linux", e));
    let run = |n: u32| {
        let varied = perturbed(&spec, n);
        // The scenario as it stands first; what ties in it do is chance.
        let varied = match n {
            0 => varied,
            _ => by_late_hosts(varied, n),
        };
        simulate(&on_its_hosts(varied, fingerprint)).map_err(|e| ("sim", e))
    };
    let mut by_linux: Vec<Seen> = kernel(0)?.into_iter().collect();
    let mut by_sim = vec![run(0)?];
    let mut differences = judge(class, &by_linux, &by_sim);
    if verdict(&differences) != Verdict::Agrees {
        for n in 1..SIM_RUNS {
            by_sim.push(run(n)?);
        }
        // The kernel's one run may do where the simulator's own spread is wide.
        differences = judge(class, &by_linux, &by_sim);
    }
    if verdict(&differences) != Verdict::Agrees {
        for n in 1..LINUX_RUNS {
            by_linux.extend(kernel(n)?);
        }
        differences = judge(class, &by_linux, &by_sim);
    }
    let mut broken = Vec::new();
    for (ground, runs) in [("linux", &by_linux), ("sim", &by_sim)] {
        if let Some(first) = runs.first() {
            let found = invariant::broken(&spec, first);
            broken.extend(found.into_iter().map(|b| format!("{ground}: {b}")));
        }
    }
    Ok(Compared {
        verdict: verdict(&differences),
        differences,
        broken,
        linux: by_linux,
        sim: by_sim.swap_remove(0),
    })
}
