//! The command line: each flag and its documentation once; help, man pages, completions and `docs/cli.md` come from here.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use fullpipe_units::Span;

pub use crate::commands::send::args::{PING_ABOUT, PeerFlags, Ping, SEND_ABOUT, Send};

/// Try, judge and compare congestion control on long fat paths.
#[derive(Clone, Debug, Parser)]
#[command(name = "fullpipe", version, max_term_width = 100, after_help = EXAMPLES, after_long_help = EXAMPLES_AND_CODES)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run scenarios and print what came out
    #[command(long_about = RUN_ABOUT)]
    Run(Run),
    /// Compare two result directories
    #[command(long_about = COMPARE_ABOUT)]
    Compare(Compare),
    /// Make one HTML page of a result or of a study
    #[command(long_about = REPORT_ABOUT)]
    Report(Report),
    /// Write a trace as CSV, qlog or xplot data
    #[command(long_about = EXPORT_ABOUT)]
    Export(Export),
    /// Serve tests to other hosts
    #[command(long_about = crate::commands::serve::ABOUT)]
    Serve(crate::commands::serve::Serve),
    /// List the names that scenarios can use
    List(List),
    /// Print the JSON Schema of a scenario file or of a result
    Schema(Schema),
    /// Check scenarios without running them
    Check(Check),
    /// Send to a host that runs `fullpipe serve`, or receive from it; copy files
    #[command(long_about = SEND_ABOUT)]
    Send(Box<Send>),
    /// Measure round-trip times to a host that runs `fullpipe serve`
    #[command(long_about = PING_ABOUT)]
    Ping(Ping),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print or install the man pages
    Man(Man),
}

/// The names of [`Command`]; a test compares the two.
pub const COMMANDS: [&str; 12] = [
    "run",
    "compare",
    "report",
    "export",
    "serve",
    "list",
    "schema",
    "check",
    "send",
    "ping",
    "completions",
    "man",
];

/// `fullpipe run`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    /// Scenario files or names of built-in scenarios
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<String>,

    /// Ground to run on
    #[arg(long, value_enum, default_value_t = Ground::Sim)]
    pub ground: Ground,

    /// With a host that runs `fullpipe serve`, as HOST, HOST:PORT or [IPV6]:PORT, as the far side: the path is the one to there,
    /// and the ground is udp
    #[arg(long, value_name = "HOST")]
    pub peer: Option<String>,

    /// The ground udp on this machine over IPv6
    #[arg(long, conflicts_with = "peer")]
    pub ipv6: bool,

    /// How datagrams of the ground udp leave, and how to talk to the other host
    #[command(flatten)]
    pub flags: PeerFlags,

    /// Set a key of the scenario, as `path.rtt=200ms` or `flow.main.stack=cubic`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// With what the scenario's [quick] sets: a shorter run that shows the same
    #[arg(long)]
    pub quick: bool,

    /// First seed, in place of the scenario's
    #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// Number of seeds, counted up from the first
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>, allow_negative_numbers = true)]
    pub repeat: Option<NonZeroU32>,

    /// Runs at a time; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>, allow_negative_numbers = true)]
    pub jobs: Option<NonZeroUsize>,

    /// Form of the result on stdout
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Keep results, time series, figures and the report in this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Do not repeat runs that `--out` already holds
    #[arg(long, requires = "out")]
    pub resume: bool,

    /// Write the packets of every run for Wireshark, as DIR/captures/*.pcap: one file at the senders, one at the receivers
    #[arg(long, requires = "out")]
    pub pcap: bool,

    /// Write the events of every flow for qvis, as DIR/captures/*.sqlog
    #[arg(long, requires = "out")]
    pub qlog: bool,

    /// No progress and no remarks on stderr; errors are still printed
    #[arg(long, short)]
    pub quiet: bool,
}

/// `fullpipe compare`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct Compare {
    /// Result directory that is taken as the reference, or that of a study
    #[arg(value_name = "A")]
    pub a: PathBuf,

    /// Result directory held against it
    #[arg(value_name = "B")]
    pub b: PathBuf,

    /// Largest accepted relative difference, as `0.05` or `5%`, of all metrics or of one (`goodput_mbps=1%`, `cwnd_area=3%`,
    /// `loss_time_rtt=0.5`); may be repeated [default: 5%; `loss_time_rtt` 1, `loss_events` and `timeouts` 0]
    #[arg(long, value_name = "[METRIC=]FRACTION", value_parser = threshold)]
    pub threshold: Vec<(Option<String>, f64)>,

    /// Only these metrics (see `fullpipe list metrics`); may be repeated
    #[arg(long = "metric", value_name = "NAME")]
    pub metrics: Vec<String>,

    /// Judge the agreement of curves and events, as between two grounds, also on one ground
    #[arg(long)]
    pub agreement: bool,

    /// Draw the windows of both over each other, one figure per case, into this directory
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,

    /// Form of the result on stdout
    #[arg(long, value_enum, default_value_t = ShortFormat::Table)]
    pub format: ShortFormat,

    /// Print every metric, not only those that differ
    #[arg(long)]
    pub all: bool,
}

/// `fullpipe report`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct Report {
    /// Result directory, or a directory with one result per subdirectory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// `fullpipe export`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct Export {
    /// Result directory, or a trace (a file of `series/`)
    #[arg(value_name = "RESULT_OR_TRACE")]
    pub source: PathBuf,

    /// Form of the export
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: ExportFormat,

    /// Only this flow; qlog and xplot hold one
    #[arg(long, value_name = "NAME")]
    pub flow: Option<String>,

    /// Case of the result [default: the first]
    #[arg(long, value_name = "N")]
    pub case: Option<usize>,

    /// Seed of the result [default: the case's first]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// At most one row per so much time, with the extremes in it; losses, timeouts and the like always stay
    #[arg(long, value_name = "SPAN")]
    pub every: Option<Span>,

    /// Write into this file [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `fullpipe list`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    /// What to list
    #[arg(value_enum)]
    pub what: Listed,

    /// Only this entry, with everything that is known about it
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// Form of the list on stdout
    #[arg(long, value_enum, default_value_t = ShortFormat::Table)]
    pub format: ShortFormat,
}

/// `fullpipe schema`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub struct Schema {
    /// Of what
    #[arg(value_enum)]
    pub what: Described,
}

/// `fullpipe check`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct Check {
    /// Scenario files or names of built-in scenarios
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<String>,

    /// Set a key of the scenario before checking it; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// With what the scenario's [quick] sets
    #[arg(long)]
    pub quick: bool,

    /// List the cases
    #[arg(long)]
    pub cases: bool,
}

/// `fullpipe completions`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct Completions {
    /// Shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `fullpipe man`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = MAN_EXAMPLES)]
pub struct Man {
    /// Write one page per command into this directory; without it fullpipe(1) goes to stdout
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Print the whole reference as Markdown instead
    #[arg(long, conflicts_with = "dir")]
    pub markdown: bool,
}

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ground {
    /// Simulator, in virtual time
    Sim,
    /// Real UDP sockets on this machine, the path between them in real time
    Udp,
    /// The Linux TCP stack in virtual time (not in this version)
    Linux,
    /// TCP of the running kernel (not in this version)
    Kernel,
}

/// Form of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One object (an array of objects for several scenarios)
    Json,
    /// One case per line
    Ndjson,
    /// Tidy rows: one per flow and case, with a header
    Csv,
}

/// Form of lists and comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShortFormat {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Forms of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// The columns of docs/trace.md, with a header
    Csv,
    /// qlog 0.3 in JSON text sequences, as qvis opens it: window, RTT, phases, losses
    Qlog,
    /// Time-sequence data for xplot, in the idiom of tcptrace; with segments and SACK blocks if the run has a pcap capture
    Xplot,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Window laws, start-ups and ways of sending, with their parameters
    Stacks,
    /// Built-in scenarios
    Scenarios,
    /// Metrics with unit, formula and source
    Metrics,
}

/// What has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Described {
    /// A scenario file
    Scenario,
    /// What `run --format json` prints
    Result,
}

/// A seed.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

pub fn at_least_one<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "expected a whole number, at least 1".to_owned())
}

/// `KEY=VALUE`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected `key=value`, for example `path.rtt=80ms`".to_owned()),
    }
}

fn threshold(text: &str) -> Result<(Option<String>, f64), String> {
    match text.split_once('=') {
        Some((metric, text)) => Ok((Some(metric.trim().to_owned()), fraction(text)?)),
        None => Ok((None, fraction(text)?)),
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(x) if x >= 0.0 && x.is_finite() => Ok(x / scale),
        _ => Err("expected a fraction such as `0.05`, or a percentage such as `5%`".to_owned()),
    }
}

const EXAMPLES: &str = "\
Examples:
  fullpipe run first-run --out results         run a built-in scenario, keep results and figures
  fullpipe run my.toml --set path.rtt=200ms    run a file with one key changed
  fullpipe list stacks                         what a `stack = ...` can be made of
  fullpipe check my.toml                       find every mistake before anything runs";

const EXAMPLES_AND_CODES: &str = "\
Examples:
  fullpipe run first-run --out results         run a built-in scenario, keep results and figures
  fullpipe run my.toml --set path.rtt=200ms    run a file with one key changed
  fullpipe list stacks                         what a `stack = ...` can be made of
  fullpipe check my.toml                       find every mistake before anything runs

Exit codes:
  0    done, and every expectation came true
  1    an expectation or a threshold failed
  2    the command line or the scenario is wrong
  3    the environment lacks something
  4    a fault of fullpipe itself
  130  interrupted; finished runs are kept

Environment:
  NO_COLOR  no colour on stderr when set and not empty";

const RUN_ABOUT: &str = "\
Run scenarios and print what came out.

Every point of a scenario's matrix is run with every seed, on all cores. The result goes to stdout in the chosen format, \
progress and remarks go to stderr. Without `--out` nothing is written to disk. With it the directory holds manifest.json, \
runs.parquet, series/ (time series) and figures/ (congestion window over time, SVG and PNG, one per case and one overview), \
and captures/ where `--pcap` or `--qlog` ask for it, which is for short runs; \
several scenarios, and those of a study, get one subdirectory each, named after them. An interrupted run (Ctrl-C) keeps what is finished there, \
and `--resume` continues it. The exit code is 1 when an expectation of the scenario failed.";

const RUN_EXAMPLES: &str = "\
Examples:
  fullpipe run first-run
  fullpipe run early-loss --out results/early-loss --resume
  fullpipe run my.toml --set flow.main.stack='highspeed(low_window=31)+limited' --repeat 10
  fullpipe run my.toml --format json | jq '.cases[].flows[].goodput_mbps'
  fullpipe run my.toml --peer dtn.example.org --key ~/fullpipe.key --out results/real";

const COMPARE_ABOUT: &str = "\
Compare two result directories.

Cases are matched by their parameters, flows and links by name. A difference is seen when the 95 % Welch interval of B - A \
leaves out zero; with one seed on either side every difference is. The exit code is 1 when a difference is seen that is \
larger than its threshold, or when a case, flow or link is on one side only.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  fullpipe compare results/before results/after
  fullpipe compare results/before results/after --threshold 10% --threshold goodput_mbps=1%

Two grounds of one study: curves, events and distributions, overlaid in pictures
  fullpipe run grounds --out results/sim
  fullpipe run grounds --ground udp --out results/udp
  fullpipe compare results/sim results/udp --figures results/overlay

As a gate between versions: exit 1 only for a difference that is real and beyond its threshold
  fullpipe run early-loss --repeat 5 --out kept
  fullpipe run early-loss --repeat 5 --out new && fullpipe compare kept new --metric goodput_mbps --threshold 2%";

const REPORT_ABOUT: &str = "\
Make one HTML page of a result or of a study.

The page is written as `report.html` into the directory. It holds everything it shows, needs no network, and stays below 5 MB \
whatever the matrix. `fullpipe run --out` writes it by itself.";

const REPORT_EXAMPLES: &str = "\
Examples:
  fullpipe report results
  fullpipe report results/slac                 one page of all results below";

const EXPORT_ABOUT: &str = "\
Write a trace as CSV, qlog or xplot data.

The trace is a file of `series/`, or the densest that a run of a result directory kept: `trace = \"full\"` in the scenario's \
[measure] keeps a row per ACK. The schema is in docs/trace.md; it is the same on every ground.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  fullpipe export results --to csv > main.csv
  fullpipe export results --to qlog --case 2 --every 10ms --out main.sqlog
  fullpipe export results/series/case-0000-seed1.full.parquet --to csv --flow main
  fullpipe export results --to xplot --flow main --out main.xpl     then: xplot main.xpl";

const LIST_EXAMPLES: &str = "\
Examples:
  fullpipe list stacks
  fullpipe list stacks highspeed
  fullpipe list metrics --format json";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  fullpipe schema scenario > scenario.schema.json
  fullpipe schema result";

const CHECK_EXAMPLES: &str = "\
Examples:
  fullpipe check my.toml
  fullpipe check scenarios/*.toml
  fullpipe check early-loss --cases";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  fullpipe completions bash > ~/.local/share/bash-completion/completions/fullpipe
  fullpipe completions zsh > ~/.zfunc/_fullpipe
  fullpipe completions fish > ~/.config/fish/completions/fullpipe.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  fullpipe man | man -l -
  fullpipe man ~/.local/share/man/man1";

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

    #[test]
    fn fractions_and_percentages() {
        assert_eq!(fraction("0.05"), Ok(0.05));
        assert_eq!(fraction("5%"), Ok(0.05));
        assert_eq!(threshold("jain=1%"), Ok((Some("jain".to_owned()), 0.01)));
        assert!(fraction("-1").is_err() && fraction("x%").is_err() && fraction("inf").is_err());
    }
}
