//! Arguments of the verbs of `fullpipe tune` that need the kernel. A program that was built without
//! them does not list them, and says how to get them.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::key_value;

/// Subcommands of `fullpipe tune` that need the kernel.
#[derive(Clone, Debug, Subcommand)]
pub enum TunerVerb {
    /// Apply a policy to the kernel's TCP until Ctrl-C or SIGTERM, which take everything back
    #[cfg_attr(not(feature = "tune"), command(hide = true))]
    Run(TunerRun),
    /// Have the daemon read its policy again; one with a mistake changes nothing
    #[cfg_attr(not(feature = "tune"), command(hide = true))]
    Apply(TunerState),
    /// Tell which paths are in force, and what has happened
    #[cfg_attr(not(feature = "tune"), command(hide = true))]
    Status(TunerJson),
    /// List the flows that have a path
    #[cfg_attr(not(feature = "tune"), command(hide = true))]
    Flows(TunerJson),
    /// Tell what would change now, and why
    #[cfg_attr(not(feature = "tune"), command(hide = true))]
    Plan(TunerJson),
    /// Give running flows their path, those too that were released
    #[cfg_attr(not(feature = "tune"), command(hide = true))]
    Adopt(TunerState),
    /// Give flows back what they ran before, until `adopt`
    #[cfg_attr(not(feature = "tune"), command(hide = true))]
    Release(TunerRelease),
    /// Have all flows run Reno, at once, until `on`
    #[cfg_attr(not(feature = "tune"), command(hide = true))]
    Off(TunerState),
    /// Take back `off`
    #[cfg_attr(not(feature = "tune"), command(hide = true))]
    On(TunerState),
    /// Change parameters of a path's stack while its flows run, until `apply`
    #[cfg_attr(not(feature = "tune"), command(hide = true))]
    Set(TunerSet),
    /// Give flows back when the daemon whose pipe is the input hangs or ends; `run` starts it
    #[command(hide = true)]
    Guard(TunerScope),
    /// Take back what a daemon that was killed has left
    #[cfg_attr(not(feature = "tune"), command(hide = true))]
    Revert(TunerScope),
}

/// The daemon that a verb speaks to.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerState {
    /// Folder of the daemon's socket, lock and journal
    #[arg(long, value_name = "DIR", default_value = "/run/fullpipe-tune")]
    pub state: PathBuf,
}

/// `fullpipe tune revert`, and a part of `run`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerScope {
    #[command(flatten)]
    pub state: TunerState,

    /// Only flows of this process's network namespace, not of all that can be found
    #[arg(long)]
    pub own_namespace: bool,
}

/// `fullpipe tune run`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerRun {
    /// Policy; the files of the folder beside it, FILE with .d, belong to it
    #[arg(value_name = "FILE")]
    pub policy: PathBuf,

    #[command(flatten)]
    pub scope: TunerScope,

    /// Control group (v2) whose new flows are given paths, with those below it [default: all]
    #[arg(long, value_name = "DIR")]
    pub cgroup: Option<PathBuf>,

    /// Leave new flows to the look at running flows, which is taken every second
    #[arg(long, conflicts_with = "cgroup")]
    pub no_cgroup: bool,
}

/// A verb that prints something.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerJson {
    #[command(flatten)]
    pub state: TunerState,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `fullpipe tune release`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerRelease {
    /// Cookie of a flow, or both its ends as `flows` lists them [default: all flows]
    #[arg(value_name = "FLOW")]
    pub flow: Option<String>,

    #[command(flatten)]
    pub state: TunerState,
}

/// `fullpipe tune set`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerSet {
    /// Path of the policy
    #[arg(value_name = "PATH")]
    pub path: String,

    /// Parameter of its stack and the new value, such as `a=6` or `max_ssthresh=200`
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = key_value)]
    pub set: Vec<(String, String)>,

    #[command(flatten)]
    pub state: TunerState,
}
