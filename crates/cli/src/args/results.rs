//! What the commands that read results take: `compare`, `report`, `export`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use fullpipe_units::Span;

use super::ShortFormat;
use super::parse::threshold;

/// `fullpipe compare`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct Compare {
    /// Result directory (or that of a study) that serves as the reference
    #[arg(value_name = "A")]
    pub a: PathBuf,

    /// Result directory to compare with it
    #[arg(value_name = "B")]
    pub b: PathBuf,

    /// Largest accepted relative difference, as `0.05` or `5%`, of all metrics or of one
    /// (`goodput_mbps=1%`, `cwnd_area=3%`, `loss_time_rtt=0.5`); may be repeated [default: 5%;
    /// unless they are named, `loss_events` and `timeouts` 0 and `loss_time_rtt` 1]
    #[arg(long, value_name = "[METRIC=]FRACTION", value_parser = threshold)]
    pub threshold: Vec<(Option<String>, f64)>,

    /// Only these metrics (see `fullpipe list metrics`); may be repeated
    #[arg(long = "metric", value_name = "NAME")]
    pub metrics: Vec<String>,

    /// Check agreement of curves and events, as between two grounds, also on one ground
    #[arg(long)]
    pub agreement: bool,

    /// Cases with flagged runs count, too
    #[arg(long)]
    pub with_flagged: bool,

    /// Draw the windows of both over each other, one figure per case, into this directory, and
    /// write a page with them and the numbers that differ, `compare.html`
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,

    /// Format of the result on stdout
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

    /// Format of the export
    #[arg(long, alias = "format", value_enum, value_name = "FORMAT")]
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

    /// At most one row per this time, with the extremes within it; losses, timeouts and other
    /// events are always kept
    #[arg(long, value_name = "SPAN")]
    pub every: Option<Span>,

    /// Instead of the trace every field of TCP_INFO, as `observe` names them (csv; of runs on
    /// ground kernel)
    #[arg(long)]
    pub tcp_info: bool,

    /// Write into this file [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Forms of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// The columns of docs/trace.md, with a header
    Csv,
    /// qlog 0.3 in JSON text sequences, as qvis opens it: window, RTT, phases, losses
    Qlog,
    /// Time-sequence data for xplot, in the idiom of tcptrace; with segments and SACK blocks if the
    /// run has a pcap capture
    Xplot,
}

pub(super) const COMPARE_ABOUT: &str = "\
Compare two result directories.

Cases are matched by their parameters, flows and links by name. A difference counts as real when \
the 95 % interval of B - A excludes zero, and chance does not make one like it among so many \
numbers. The interval is Student's over pairs of runs where both sides have the same seeds, \
Welch's for two independent samples otherwise. One seed on one side is held against \
the interval in which a further run of the other would lie; with one on both every difference \
counts. A count that chance made equal in all seeds is given the spread of what is rounded to it. \
Below 1e-9 of the values there is no difference. Among many numbers one in twenty leaves its \
interval by chance; what is called different is chosen from all of them together, so that of these \
one in twenty is chance (false discovery rate, Benjamini and Hochberg 1995). The spread of few seeds \
may be small by chance: where that of the same metric in other flows and cases would explain a \
difference, its probability is no less than the part of them in which it would, times 2/4^n, that of \
n seeds of two values on each side that fall apart cleanly (3 % for 3, 0.2 % for 5). Two grounds are \
judged number by number. The effect is the difference in standard \
deviations: d_z in those of the pairs' differences, d in the pooled one of both samples (Cohen \
1988). The exit code is 1 when a real difference exceeds its threshold, or when a case, flow or \
link exists on one side only; a link that only delays does not count, and of two grounds no link \
does.

Cases with a run that was not what the scenario says (flagged: NOT VALID) are left out, unless \
--with-flagged. The exit code is 5 if there are such and the others agree.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  fullpipe compare results/before results/after
  fullpipe compare results/before results/after --threshold 10% --threshold goodput_mbps=1%

Two grounds of one study: curves, events and distributions, overlaid in pictures
  fullpipe run grounds --out results/sim
  fullpipe run grounds --ground udp --out results/udp
  fullpipe compare results/sim results/udp --figures results/overlay

As a gate between versions: exit 1 only for a difference that is real and beyond its threshold
  fullpipe run first-run --repeat 5 --out kept
  fullpipe run first-run --repeat 5 --out new && \\
      fullpipe compare kept new --metric goodput_mbps --threshold 2%";

pub(super) const REPORT_ABOUT: &str = "\
Write the HTML report of a result or a study.

The page is `report.html` in the directory. It contains everything it shows and needs no network. \
The curves of up to 3,000 cases take 3 MB at most; tables take about 1 kB per case. `fullpipe run \
--out` writes it too.";

const REPORT_EXAMPLES: &str = "\
Examples:
  fullpipe report results
  fullpipe report results/slac                 one page of all results below";

pub(super) const EXPORT_ABOUT: &str = "\
Write a trace as CSV, qlog or xplot data.

The trace is a file of `series/`, or the densest that a run of a result directory kept: \
`trace = \"full\"` in the scenario's [measure] keeps a row per ACK. The schema is in \
docs/trace.md; it is the same on every ground.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  fullpipe export results --to csv > main.csv
  fullpipe export results --to qlog --case 2 --every 10ms --out main.sqlog
  fullpipe export results/series/case-0000-seed1.full.parquet --to csv --flow main
  fullpipe export results --to xplot --flow main --out main.xpl     then: xplot main.xpl
  fullpipe export results --to csv --tcp-info > tcp_info.csv";
