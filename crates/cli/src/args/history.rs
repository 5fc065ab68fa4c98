//! Arguments of `fullpipe history`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::at_least_one;
use super::figure::Print;

/// `fullpipe history`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct History {
    /// Directory that `fullpipe send --history DIR` has filled
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Metric, or an expression over metrics (see `fullpipe list metrics`); may be repeated
    /// [default: goodput_mbps, rtt_ms.p50 and rtt_ms.p95; in the table retransmits, too]
    #[arg(long = "metric", value_name = "NAME")]
    pub metrics: Vec<String>,

    /// Only kinds of runs whose heading contains this text
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,

    /// Only the newest N runs of each kind
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>, allow_negative_numbers = true)]
    pub last: Option<NonZeroUsize>,

    /// Hold the newest run of each kind against those before it; exit code 1 if one is worse,
    /// 5 if one was cut short or is not valid
    #[arg(long)]
    pub compare: bool,

    /// Draw the metrics over time into this file: SVG, PDF or PNG
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,

    /// Size, font and colours of `--figure`
    #[command(flatten)]
    pub print: Print,

    /// Format on stdout
    #[arg(long, value_enum, default_value_t = HistoryFormat::Table)]
    pub format: HistoryFormat,
}

/// Format of `fullpipe history`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HistoryFormat {
    /// For people
    Table,
    /// For programs: one object, with every run's result
    Json,
    /// Tidy rows: one per run, flow and metric, with a header
    Csv,
}

/// Description of `fullpipe history`.
pub(super) const ABOUT: &str = "\
List, draw and compare the runs that `fullpipe send --history DIR` has kept.

A history holds a result directory for each run, named after the moment of UTC at which it began: \
every command that takes a result directory takes it, as `fullpipe compare DIR/A DIR/B`. Runs are of \
one kind when host, test and settings are the same; a heading names the settings in which kinds \
differ. A run that is damaged is named and left out, and the exit code is 3.

`--compare` computes from the earlier runs of a kind, at least three, where one more run is with a \
probability of 95 % (a Student prediction interval; runs are taken to be independent and normally \
distributed). Runs that were cut short or are not valid do not count; if the newest is one of them, \
the exit code is 5. The newest run is `worse` or `better` when it lies outside and differs from \
their mean by more than 2 %. An expression has no better side: it is `different`, which is no \
failure. Of many numbers compared in this way one in twenty lies outside by chance.";

const EXAMPLES: &str = "\
Examples:
  fullpipe send dtn.example.org --history dtn               once an hour, from cron
  fullpipe history dtn
  fullpipe history dtn --last 24 --metric goodput_mbps --metric rtt_ms.p99
  fullpipe history dtn --figure dtn.svg
  fullpipe history dtn --compare || mail -s 'slower than usual' noc@example.org
  fullpipe history dtn --format csv > dtn.csv";
