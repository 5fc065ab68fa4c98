//! What a scenario file says: cases, what is measured of them, what is expected and drawn.

use std::num::NonZeroU32;

use crate::case::Case;
use crate::diagnostic::Diagnostic;
use crate::places::Places;
use crate::value::{Parsed, Typed, Value, Written, parsed};

/// A scenario: what is run, and what is expected of it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name, from the file.
    pub name: String,
    /// One sentence or more.
    pub about: String,
    /// The file's text as it was read.
    pub text: String,
    /// Path of the file, or `built-in:<name>`.
    pub origin: String,
    /// Read with `--quick`.
    pub quick: bool,
    /// The file has a `[quick]`.
    pub has_quick: bool,
    /// What `--set` changed in it: keys and values, in order.
    pub set: Vec<(String, String)>,
    /// Seeds of the runs of every case.
    pub seeds: Vec<u64>,
    /// The points of the matrix; later keys of `[matrix]` vary fastest.
    pub cases: Vec<Case>,
    /// Bounds on the results.
    pub expectations: Vec<Expectation>,
    /// Lines of the `[[expect]]` that are not among them: `--set` or `--quick` has left no case of
    /// theirs, or their `quick` says that they are judged at other times.
    pub left_out: Vec<usize>,
    /// Those that are invalid in the world that is looked at; empty where none is.
    pub inapplicable: Vec<Inapplicable>,
    /// Wrong worlds, in which an expectation must fail.
    pub negatives: Vec<Negative>,
    /// Measurement settings.
    pub measure: Measure,
    /// Figures asked for.
    pub reports: Vec<Report>,
    /// Files that the cases refer to: path and text.
    pub files: Vec<(String, String)>,
    /// Things that are allowed but probably not meant.
    pub warnings: Vec<Diagnostic>,
    /// Line and text of every key, for faults that a ground finds.
    pub places: Places,
}

/// What the command line changes in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--set key=value`, in order.
    pub set: Vec<(String, String)>,
    /// `--seed`: this one seed (with `repeat`: this and the following ones).
    pub seed: Option<u64>,
    /// `--repeat`: number of seeds.
    pub repeat: Option<NonZeroU32>,
    /// `--quick`: with what `[quick]` sets.
    pub quick: bool,
    /// What differs in the world that is looked at, put in after the values of the matrix.
    pub world: Vec<WorldKey>,
}

/// What is measured, as far as it does not differ between cases; the times are in [`Case`].
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Time series.
    pub trace: TraceMode,
    /// Seeds are added until the means are this sure.
    pub precision: Option<Precision>,
    /// `[measure] agreement`: names of metrics and distances, and how far two grounds may be apart
    /// in them, as a part of the first's value, or in the distance's own unit.
    pub agreement: Vec<(String, f64)>,
}

/// `[measure] precision`: how sure a mean must be, and how far to go for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// Largest half width of the 95 % interval as a part of the mean: 0.02 for `"2%"`.
    pub target: f64,
    /// Metrics it is asked of, each of every row that has it; `["goodput_mbps"]` by default.
    pub of: Vec<String>,
    /// Seeds per case at most, those of `seeds` included.
    pub max_seeds: u32,
}

/// Amount of time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceMode {
    /// None.
    Off,
    /// About 2000 rows per flow, extremes kept.
    Decimated,
    /// One row per ACK.
    Full,
}

/// A bound on a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// Name, from the file or made of metric, flow or link, and `where`.
    pub name: String,
    /// Metric; see `fullpipe list metrics`.
    pub metric: String,
    /// Flow it is taken from; `None` for a metric of the case or of a link.
    pub flow: Option<String>,
    /// Link it is taken from.
    pub link: Option<String>,
    /// Matrix keys and values, spelled as in [`Case::params`]; empty: every case.
    pub where_: Vec<(String, String)>,
    /// Smallest and largest accepted value, either may be infinite.
    pub bound: (f64, f64),
    /// Document or reason of the bound, as the file says it.
    pub source: String,
    /// Line in the file.
    pub line: usize,
    /// Indices of the cases it applies to; never empty.
    pub cases: Vec<usize>,
    /// Each of these cases with its peer; empty: none is asked for.
    pub pairs: Vec<(usize, usize)>,
    /// The bound itself, or a peer: its value or the ratio to it.
    pub against: Against,
    /// Statistic of the seeds that must lie in the bound.
    pub holds_for: HoldsFor,
    /// Why no world is known in which it fails.
    pub toothless: Option<String>,
}

/// What of the seeds' values must lie in a bound (`holds_for`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum HoldsFor {
    /// Some of the 95 % interval of their mean: only one that lies outside contradicts the bound.
    #[default]
    Overlap,
    /// Their mean.
    Mean,
    /// The 95 % interval of their mean, as a whole.
    Interval,
    /// Each of them.
    EverySeed,
    /// Their quantile of this probability.
    Quantile(f64),
}

impl HoldsFor {
    /// Those that are words, and how the file spells them.
    const WORDS: [(&str, HoldsFor); 4] = [
        ("overlap", HoldsFor::Overlap),
        ("mean", HoldsFor::Mean),
        ("interval", HoldsFor::Interval),
        ("every seed", HoldsFor::EverySeed),
    ];

    /// True if the values of the single seeds are needed.
    pub fn asks_seeds(self) -> bool {
        matches!(self, HoldsFor::EverySeed | HoldsFor::Quantile(_))
    }
}

impl std::fmt::Display for HoldsFor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HoldsFor::Quantile(p) => write!(f, "p{:.0}", 100.0 * p),
            word => {
                let known = HoldsFor::WORDS.iter().find(|(_, of)| of == word);
                f.write_str(known.map_or("", |(word, _)| word))
            }
        }
    }
}

impl Parsed for HoldsFor {
    const WHAT: &'static str =
        "`\"overlap\"`, `\"mean\"`, `\"interval\"`, `\"every seed\"`, or `\"p5\"` to `\"p95\"`";

    fn parse(text: &str) -> Result<Self, (String, String)> {
        let word = HoldsFor::WORDS.iter().find(|(word, _)| *word == text);
        let percent = text.strip_prefix('p').and_then(|n| n.parse().ok());
        match (word, percent) {
            (Some((_, of)), _) => Ok(*of),
            (None, Some(percent @ 5..=95)) => Ok(HoldsFor::Quantile(f64::from(percent) / 100.0)),
            _ => Err((
                "no such part of the seeds".to_owned(),
                format!("write {}", Self::WHAT.replace('`', "")),
            )),
        }
    }
}

impl Typed for HoldsFor {
    fn of(value: &Value) -> Option<Self> {
        parsed(value)
    }
}

impl Written for HoldsFor {
    fn written(&self) -> String {
        format!("\"{self}\"")
    }
}

/// What the value of a case is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The bound.
    Bound,
    /// The peer: the 95 % interval of the difference must hold zero (`agrees_with`).
    Agreement,
    /// The bound, after division by the value of the peer (`ratio_to`).
    Ratio,
}

/// A wrong world that the file names: `[[negative]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negative {
    /// Description: the change that makes it wrong.
    pub about: String,
    /// Dotted keys and their values as TOML.
    pub set: Vec<(String, String)>,
    /// Reason for which no number changes in it, if the file gives one.
    pub inert: Option<String>,
    /// Line in the file.
    pub line: usize,
}

/// An expectation that is invalid in a wrong world, as the fairness of two flows where one is
/// switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inapplicable {
    /// Line of its `[[expect]]`.
    pub line: usize,
    /// Message, without file and line.
    pub why: String,
}

/// A key that has another value in a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldKey {
    /// Index of the case in which it has; `None`: in every case.
    pub case: Option<usize>,
    /// Dotted key.
    pub key: String,
    /// Value as TOML, or a bare word.
    pub value: String,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// `cwnd`, `rtt`, `goodput`, `queue`, `metric`, `matrix`, or `completion`.
    pub figure: String,
    /// Flow or traffic, if not all.
    pub flow: Option<String>,
    /// Matrix key along the horizontal axis.
    pub x: Option<String>,
    /// Metric along the vertical axis; of a `matrix` the matrix key along it.
    pub y: Option<String>,
    /// Metric of a `matrix`.
    pub metric: Option<String>,
    /// Heading.
    pub title: Option<String>,
}
