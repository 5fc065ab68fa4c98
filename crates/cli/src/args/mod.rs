//! The command line: each flag and its documentation once; help, man pages, completions and
//! `docs/cli.md` come from here. One file per group of commands.

mod agree;
mod doctor;
mod emulate;
mod falsify;
mod figure;
mod history;
mod law;
mod linux;
mod live;
mod lookup;
mod observe;
mod parse;
mod probe;
mod results;
mod run;
pub mod send;
mod serve;
mod set;
mod sweep;
mod tune;
#[cfg_attr(not(feature = "tune"), allow(dead_code))]
mod tuner;

use clap::{Parser, Subcommand, ValueEnum};

pub use agree::Agree;
pub use doctor::{Doctor, Examined};
pub use emulate::{Carrier, Emulate, EmulateFormat};
pub use falsify::Falsify;
pub use figure::{Drawn, Figure, TableKind};
pub use history::{History, HistoryFormat};
pub use law::{Law, LawFormat, LawPanel};
pub use linux::{Linux, LinuxAction, LinuxBuild};
pub use live::LiveFlags;
use lookup::CONFIG_ABOUT;
pub use lookup::{Check, Completions, ConfigFlags, Described, List, Listed, Man, Schema};
pub use observe::{Observe, ObserveFormat, Top, TopOrder};
pub use parse::{at_least_one, key_value, seed};
pub use probe::TunerProbe;
use results::{COMPARE_ABOUT, EXPORT_ABOUT, REPORT_ABOUT};
pub use results::{Compare, Export, ExportFormat, Report};
use run::RUN_ABOUT;
pub use run::{Format, Run, ShowProgress};
pub use send::{Mode, PeerFlags, Ping, Send};
use send::{PING_ABOUT, SEND_ABOUT};
pub use serve::{LogForm, Serve};
pub use set::Set;
pub use sweep::Sweep;
pub use tune::{Opened, Tune, TuneCheck, TuneExplain, TuneVerb};
#[cfg(feature = "tune")]
pub use tuner::{
    Injected, TunerAnswer, TunerInject, TunerPlan, TunerRun, TunerScope, TunerWatch, WatchFormat,
};
pub use tuner::{TunerJson, TunerState, TunerVerb};

/// Evaluate TCP congestion control on fast, long paths.
#[derive(Clone, Debug, Parser)]
#[command(name = "fullpipe", version, max_term_width = 100, after_help = EXAMPLES, after_long_help = EXAMPLES_AND_CODES)]
pub struct Args {
    /// Colour on stderr; `auto`: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    pub color: Colour,

    /// Say more on stderr: each run, and which defaults are not the built-in ones
    #[arg(long, short, global = true)]
    pub verbose: bool,

    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// When messages on stderr have colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    Auto,
    Always,
    Never,
}

/// Subcommands, in the order of `fullpipe --help`.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run scenarios and print the results
    #[command(long_about = RUN_ABOUT)]
    Run(Run),
    /// Compare two result directories
    #[command(long_about = COMPARE_ABOUT)]
    Compare(Compare),
    /// Run a scenario on several grounds, and tell where and why they part
    #[command(long_about = agree::ABOUT)]
    Agree(Agree),
    /// Write the HTML report of a result or a study
    #[command(long_about = REPORT_ABOUT)]
    Report(Report),
    /// Draw a figure or a table of a result, for a paper or a page
    #[command(long_about = figure::ABOUT)]
    Figure(Figure),
    /// Write a trace as CSV, qlog or xplot data
    #[command(long_about = EXPORT_ABOUT)]
    Export(Export),
    /// Serve tests to other hosts
    #[command(long_about = serve::ABOUT)]
    Serve(Serve),
    /// List the names that scenarios can use
    List(List),
    /// Print the JSON Schema of a scenario file or of a result
    Schema(Schema),
    /// Check scenarios without running them
    Check(Check),
    /// Tell which expectations of a scenario could fail at all
    #[command(long_about = falsify::ABOUT)]
    Falsify(Falsify),
    /// Run a scenario over the product of axes, here or on a Dask cluster
    #[command(long_about = sweep::ABOUT)]
    Sweep(Sweep),
    /// Print what a stack does with a loss: a(w), b(w), response function
    #[command(long_about = law::ABOUT)]
    Law(Law),
    /// Send to a host that runs `fullpipe serve`, or receive from it; copy files
    #[command(long_about = SEND_ABOUT)]
    Send(Box<Send>),
    /// List, draw and compare the runs that `send --history` has kept
    #[command(long_about = history::ABOUT)]
    History(History),
    /// Change parameters of flows that run
    #[command(long_about = set::ABOUT)]
    Set(Set),
    /// Measure round-trip times to a host that runs `fullpipe serve`
    #[command(long_about = PING_ABOUT)]
    Ping(Ping),
    /// Watch the TCP flows of this host, and what limits each
    #[command(long_about = observe::ABOUT)]
    Observe(Observe),
    /// Show the TCP flows of this host in a table that renews itself
    #[command(long_about = observe::TOP_ABOUT)]
    Top(Top),
    /// Tell what this host can do, each thing tried, and how to mend what it cannot
    #[command(long_about = doctor::ABOUT)]
    Doctor(Doctor),
    /// Run real programs over an emulated path
    #[command(long_about = emulate::ABOUT)]
    Emulate(Box<Emulate>),
    /// Give the flows of a path another congestion control, by a policy
    #[command(long_about = tune::ABOUT)]
    Tune(Tune),
    /// Build the kernels of the ground linux, and list them
    #[command(long_about = linux::ABOUT)]
    Linux(Linux),
    /// Print the defaults that a file or the environment sets, and where each comes from
    #[command(long_about = CONFIG_ABOUT)]
    Config(ConfigFlags),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print or install the man pages
    Man(Man),
}

/// The names of [`Command`]; a test compares the two.
pub const COMMANDS: [&str; 26] = [
    "run",
    "compare",
    "agree",
    "report",
    "figure",
    "export",
    "serve",
    "list",
    "schema",
    "check",
    "falsify",
    "sweep",
    "law",
    "send",
    "history",
    "set",
    "ping",
    "observe",
    "top",
    "doctor",
    "emulate",
    "tune",
    "linux",
    "config",
    "completions",
    "man",
];

/// Form of lists and comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShortFormat {
    /// For people
    Table,
    /// For programs
    Json,
}

const EXAMPLES: &str = "\
Examples:
  fullpipe run first-run --out results         run a built-in scenario, keep results and figures
  fullpipe run my.toml --set path.rtt=200ms    run a file with one key changed
  fullpipe list stacks                         what a `stack = ...` can be made of
  fullpipe check my.toml                       find mistakes before anything runs";

const EXAMPLES_AND_CODES: &str = "\
Examples:
  fullpipe run first-run --out results         run a built-in scenario, keep results and figures
  fullpipe run my.toml --set path.rtt=200ms    run a file with one key changed
  fullpipe list stacks                         what a `stack = ...` can be made of
  fullpipe check my.toml                       find mistakes before anything runs

Exit codes:
  0    done, and no expectation failed
  1    an expectation or a threshold failed
  2    the command line or the scenario is wrong
  3    the environment lacks something
  4    a fault of fullpipe itself
  5    a run does not count: the test bed was not what the scenario says
  130  interrupted; what was measured is printed and kept

Environment:
  NO_COLOR               no colour on stderr when set and not empty
  FULLPIPE_COMMAND_FLAG  default of a flag, as FULLPIPE_SEND_STACK=bbr; see `fullpipe config --help`
  FULLPIPE_CONFIG        file of defaults; empty: none
  FULLPIPE_KEY           the key of `serve` and of its clients";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Args::command().debug_assert();
        let names: Vec<String> = Args::command()
            .get_subcommands()
            .map(|c| c.get_name().to_owned())
            .collect();
        assert_eq!(names, COMMANDS);
    }

    /// What is wider is wrapped inside a command, which nobody can paste then.
    #[test]
    fn examples_fit_the_width_of_the_help() {
        let mut waiting = vec![Args::command()];
        while let Some(command) = waiting.pop() {
            waiting.extend(command.get_subcommands().cloned());
            let after = [command.get_after_help(), command.get_after_long_help()];
            for text in after.into_iter().flatten().map(ToString::to_string) {
                let indented = text.lines().filter(|line| line.starts_with(' '));
                for line in indented {
                    assert!(
                        line.chars().count() <= 100,
                        "{}: {line}",
                        command.get_name()
                    );
                }
            }
        }
    }
}
