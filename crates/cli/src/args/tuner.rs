//! Arguments of the verbs of `fullpipe tune` that need the kernel. A program that was built without
//! them says how to get them.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::key_value;

/// Subcommands of `fullpipe tune` that need the kernel.
#[derive(Clone, Debug, Subcommand)]
pub enum TunerVerb {
    /// Apply a policy to the kernel's TCP until Ctrl-C or SIGTERM, which take everything back
    Run(TunerRun),
    /// Have the daemon read its policy again; one with a mistake changes nothing
    Apply(TunerState),
    /// Tell which paths are in force, and what has happened
    Status(TunerJson),
    /// List the flows that have a path
    Flows(TunerJson),
    /// Tell what would change now, and why
    Plan(TunerJson),
    /// Compare the flows of a path with those that its `share` left as they were
    #[command(after_help = COMPARE)]
    Compare(TunerCompare),
    /// Give running flows their path, those too that were released
    Adopt(TunerState),
    /// Give flows back what they ran before, until `adopt`
    Release(TunerRelease),
    /// Have all flows run Reno, at once, until `on`
    Off(TunerState),
    /// Take back `off`
    On(TunerState),
    /// Change parameters of a path's stack while its flows run, until `apply`
    Set(TunerSet),
    /// Give flows back when the daemon whose pipe is the input hangs or ends; `run` starts it
    #[command(hide = true)]
    Guard(TunerScope),
    /// Answer probes of paths as long as the input is open; `run --answer-probes` starts it
    #[command(hide = true)]
    Answer(TunerAnswer),
    /// Take back what a daemon that was killed has left
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

    /// Answer the probes of tuners at other hosts, at this address; with the key in the variable
    /// FULLPIPE_KEY, or without a key
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub answer_probes: Option<String>,
}

/// `fullpipe tune answer`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerAnswer {
    /// As of `fullpipe serve --listen`
    #[arg(value_name = "ADDRESS[:PORT]")]
    pub listen: String,

    #[command(flatten)]
    pub state: TunerState,
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

/// `fullpipe tune compare`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerCompare {
    /// Path of the policy [default: all that have a `share`]
    #[arg(value_name = "PATH")]
    pub path: Option<String>,

    #[command(flatten)]
    pub json: TunerJson,
}

const COMPARE: &str = "\
A path with `share = \"50%\"` is an experiment: chance decides which of its flows get the policy. Each
flow counts once, with its rate while it had data on the way, from the first look of the daemon on.
Both arms use the same links: what one of them takes, the other lacks.

Examples:
  fullpipe tune compare             all paths with a share
  fullpipe tune compare lab --json  one path, the rate of every flow";

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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;

    #[test]
    fn the_service_s_commands_are_understood() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd");
        let unit = std::fs::read_to_string(folder.join("fullpipe-tune.service")).unwrap();
        let commands = unit.lines().filter_map(|line| {
            let (key, command) = line.split_once('=')?;
            key.starts_with("Exec").then_some(command)
        });
        let commands: Vec<&str> = commands.collect();
        assert_eq!(commands.len(), 3, "{commands:?}");
        for command in commands {
            let parsed = Args::try_parse_from(command.split_whitespace());
            assert!(parsed.is_ok(), "{command}: {parsed:?}");
        }
    }
}
