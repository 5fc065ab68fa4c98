//! Arguments of `fullpipe run`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args as ClapArgs, ValueEnum};
use fullpipe_grounds::{Far, GROUNDS};
use fullpipe_units::Span;

use super::parse::{at_least_one, between_looks, key_value, seed};
use super::{LiveFlags, PeerFlags};

/// `fullpipe run`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    /// Scenario files or names of built-in scenarios; `-` reads one from standard input
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<String>,

    /// Backend ("ground") that executes the runs
    #[arg(long, value_parser = grounds(), default_value = "sim")]
    pub ground: String,

    /// Use this host, which runs `fullpipe serve`, as the far side: HOST, HOST:PORT or [IPV6]:PORT.
    /// The path is the network in between, the ground is udp, or kernel if --ground says so
    #[arg(long, value_name = "HOST")]
    pub peer: Option<String>,

    /// Use IPv6 on the grounds udp and kernel on this machine
    #[arg(long, conflicts_with = "peer")]
    pub ipv6: bool,

    /// On ground kernel hosts hand over single segments, not up to 64 kB at once
    #[arg(long, conflicts_with = "peer")]
    pub no_offload: bool,

    /// On ground kernel packets that arrive together are not merged
    #[arg(long, conflicts_with = "peer")]
    pub no_merge: bool,

    /// On ground kernel read TCP_INFO of the senders so often, 1ms to 100ms [default: 20 times per
    /// round trip, 1ms to 10ms]
    #[arg(long, value_name = "TIME", value_parser = between_looks, conflicts_with = "peer")]
    pub tcp_info_every: Option<Span>,

    /// Kernel of the ground linux, by the name under which `fullpipe linux build` made it
    /// [default: 6.1]
    #[arg(long, value_name = "VERSION")]
    pub kernel: Option<String>,

    /// Compile this congestion module (a C file as in the kernel's net/ipv4/) into the kernel of
    /// the ground linux: flows with `stack = "own-linux"` use it
    #[arg(long, value_name = "FILE")]
    pub kernel_module: Option<PathBuf>,

    /// How datagrams of the ground udp leave, and how to talk to the other host
    #[command(flatten)]
    pub flags: PeerFlags,

    /// Set a key of the scenario, as `path.rtt=200ms` or `flow.main.stack=cubic`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// Give each flow that is named like a path of this policy (docs/policy.md) what the path gives
    /// it: stack, window, rate, initial window; `--set` counts after it
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,

    /// Apply the scenario's [quick] settings: a shorter run of the same kind
    #[arg(long)]
    pub quick: bool,

    /// This one seed, instead of the scenario's; with `--repeat N` the first of N
    #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// Number of seeds, counted up from the first
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>, allow_negative_numbers = true)]
    pub repeat: Option<NonZeroU32>,

    /// Runs at a time; results do not depend on it [default: one per core; on ground kernel one,
    /// and too many flag one another]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>, allow_negative_numbers = true)]
    pub jobs: Option<NonZeroUsize>,

    /// Format of the result on stdout
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Keep results, time series, figures and the report in this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Write the expectations as JUnit's XML into this file, for continuous integration
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// Append results and expectations in markdown to this file, as to $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Skip runs that `--out` already holds; what is made again is captured as the others are
    #[arg(long, requires = "out")]
    pub resume: bool,

    /// Replace what `--out` holds: of its runs those that are asked for again stay, the others go
    #[arg(long, requires = "out", conflicts_with = "resume")]
    pub replace: bool,

    /// Capture the packets of every run for Wireshark, as DIR/captures/*.pcap: one file at the
    /// senders, one at the receivers
    #[arg(long, requires = "out")]
    pub pcap: bool,

    /// Capture the events of every flow for qvis, as DIR/captures/*.sqlog
    #[arg(long, requires = "out")]
    pub qlog: bool,

    /// How runs in real time are watched
    #[command(flatten)]
    pub live: LiveFlags,

    /// How progress is shown on stderr
    #[arg(long, value_enum, default_value_t = ShowProgress::Auto)]
    pub progress: ShowProgress,

    /// No progress and no remarks on stderr; errors and what failed are still printed
    #[arg(long, short)]
    pub quiet: bool,
}

/// Form of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShowProgress {
    /// A bar on a terminal, lines elsewhere
    Auto,
    /// A bar that is drawn again and again
    Bar,
    /// A line every ten seconds
    Lines,
    /// Nothing
    None,
}

impl ShowProgress {
    /// This, or nothing with `--quiet`.
    pub fn unless(self, quiet: bool) -> Self {
        if quiet { Self::None } else { self }
    }
}

/// Every ground that is chosen by name alone.
pub(super) fn grounds() -> PossibleValuesParser {
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
Run scenarios and print the results.

Every point of a scenario's matrix runs with every seed, on all cores. The result goes to stdout in \
the chosen format, progress and remarks go to stderr. Without `--out` nothing is written to \
disk, but that at a terminal the last result of up to 100 runs stays in ~/.cache/fullpipe/last, with \
its report. With `--out` the directory holds manifest.json, runs.parquet, series/ (time series), figures/ (congestion \
window over time, SVG and PNG, one per case and an overview), and captures/ if `--pcap` or `--qlog` \
ask for them, which is meant for short runs. Several scenarios, and those of a study, get a \
subdirectory each. In the table a number has four digits, and a mean over seeds ends where its 95 % \
interval begins: `85.2 ± 1.3`; `-` is no value, as the recovery of a flow that lost nothing. An \
interrupted run (Ctrl-C) prints and keeps what is finished, and `--resume` continues it; \
`interrupted` in JSON and an error in the file of `--junit` say so. Until a run is to be kept, \
`--out` keeps the earlier result that it holds. \
Runs that were not valid are made again by `--resume` and `--replace`. \
The exit code is 1 when an expectation of the scenario failed, and 5 when a run does not count \
because the path or the hosts that fullpipe made were not what the scenario says.";

const RUN_EXAMPLES: &str = "\
Examples:
  fullpipe run first-run
  fullpipe run early-loss --out results/early-loss --resume
  fullpipe run my.toml --set flow.main.stack='highspeed(low_window=31)+limited' --repeat 10
  fullpipe run my.toml --junit report.xml --markdown \"$GITHUB_STEP_SUMMARY\"
  sed s/80ms/160ms/ my.toml | fullpipe run - --quick
  fullpipe run my.toml --format json | jq '.cases[].flows[].goodput_mbps'
  fullpipe run my.toml --ground linux --kernel 6.12
  fullpipe run my.toml --ground linux --kernel-module tcp_mine.c
  fullpipe run my.toml --peer dtn.example.org --key ~/fullpipe.key --out results/real";
