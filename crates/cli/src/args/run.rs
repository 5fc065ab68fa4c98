//! Arguments of `fullpipe run`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args as ClapArgs, ValueEnum};
use fullpipe_grounds::{Far, GROUNDS};

use super::PeerFlags;
use super::parse::{at_least_one, key_value, seed};

/// `fullpipe run`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    /// Scenario files or names of built-in scenarios
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<String>,

    /// Ground to run on
    #[arg(long, value_parser = grounds(), default_value = "sim")]
    pub ground: String,

    /// With a host that runs `fullpipe serve`, as HOST, HOST:PORT or [IPV6]:PORT, as the far side:
    /// the path is the one to there, and the ground is udp
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

    /// Write the packets of every run for Wireshark, as DIR/captures/*.pcap: one file at the
    /// senders, one at the receivers
    #[arg(long, requires = "out")]
    pub pcap: bool,

    /// Write the events of every flow for qvis, as DIR/captures/*.sqlog
    #[arg(long, requires = "out")]
    pub qlog: bool,

    /// No progress and no remarks on stderr; errors are still printed
    #[arg(long, short)]
    pub quiet: bool,
}

/// Every ground that is chosen by name alone.
fn grounds() -> PossibleValuesParser {
    let here = GROUNDS.iter().filter(|g| g.far == Far::Here);
    here.map(|g| PossibleValue::new(g.name).help(g.about))
        .collect::<Vec<_>>()
        .into()
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

pub(super) const RUN_ABOUT: &str = "\
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
