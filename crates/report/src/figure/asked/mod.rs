//! Figures and tables of a stored result by name: what `fullpipe figure` draws.
//!
//! The axis whose values compete gives the lines or rows, every combination of the other axes a
//! panel or a column. Each drawing comes with its numbers ([`Rows`]).

mod bars;
mod cdf;
mod choice;
mod distribution;
mod load;
mod matrix;
mod over_time;
mod ranges;
mod response;
mod steps;
mod view;
mod window;

use fullpipe_results::store::{ResultDir, StoreError};

use super::draw::{self, Matrix};
use super::{Chart, Figure, Rows, Style};
use view::View;

pub use choice::chosen;

macro_rules! kinds {
    ($($kind:ident $word:literal $about:literal)*) => {
        /// What can be drawn of a result.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $(#[doc = concat!($about, ".")] $kind,)*
        }

        impl Kind {
            /// Every kind, in the order in which help shows them.
            pub const ALL: &[Kind] = &[$(Kind::$kind),*];

            /// The word by which it is asked for.
            pub fn word(self) -> &'static str {
                match self {
                    $(Kind::$kind => $word,)*
                }
            }

            /// Description for the list of kinds, one line.
            pub fn about(self) -> &'static str {
                match self {
                    $(Kind::$kind => $about,)*
                }
            }
        }
    };
}

kinds! {
    Window "window" "Congestion windows over time, stacks laid over one another"
    Goodput "goodput" "Goodput over time"
    Rtt "rtt" "Round-trip times over time, their median and range"
    Queue "queue" "Queues over time, their median and range"
    Load "load" "Goodput of every flow and pings beside them, one below the other"
    Matrix "matrix" "A metric of every case as a coloured table"
    Bars "bars" "A metric over the values of an axis, with its 95 % interval"
    Distribution "distribution"
        "Completion times of short flows, or with --metric a metric over the seeds"
    Cdf "cdf" "Distribution of round-trip times, of flows (trace = \"full\") and of pings"
    Response "response" "Mean window over the rate of losses, beside each law alone"
}

impl Kind {
    /// True if a key can be chosen whose values are its lines ([`Asked::lines`]).
    pub fn takes_lines(self) -> bool {
        self != Kind::Response
    }

    /// True if it shows a metric that can be chosen ([`Asked::metric`]).
    pub fn takes_a_metric(self) -> bool {
        matches!(self, Kind::Matrix | Kind::Bars | Kind::Distribution)
    }
}

/// Selection from a result; the default takes all of it.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Metric of a matrix, of bars or of a distribution.
    pub metric: Option<String>,
    /// Flow, traffic or link it is taken of.
    pub of: Option<String>,
    /// Key of the matrix whose values are the lines, or the rows of a matrix; what competes by
    /// default.
    pub lines: Option<String>,
    /// Only cases with these parameters.
    pub only: Vec<(String, String)>,
    /// Seed of what is drawn over time; the first by default.
    pub seed: Option<u64>,
}

/// Of several that have the metric, the one that is drawn although nobody chose it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Flow, traffic or link.
    pub of: String,
    /// The others.
    pub others: Vec<String>,
}

/// A drawing and its numbers.
#[derive(Clone, Debug)]
pub struct Drawn {
    drawing: Drawing,
    /// Set if the drawing is of one, others have the metric too, and nobody chose.
    pub taken: Option<Taken>,
    /// What has no place in the drawing and why, in words.
    pub left_out: Option<String>,
    /// The numbers, one row for each point or cell.
    pub tidy: Rows,
    /// The same as it would be printed, where that is a table.
    pub printed: Option<Rows>,
}

#[derive(Clone, Debug)]
enum Drawing {
    Windows {
        title: String,
        subtitle: String,
        figures: Vec<Figure>,
    },
    Chart(Chart),
    Matrix(Matrix),
}

impl Drawn {
    /// The picture.
    ///
    /// # Errors
    /// If it has more panels than a picture has room for, or does not fit into the width that the
    /// style prescribes.
    pub fn svg(&self, style: &Style) -> Result<String, AskedError> {
        match &self.drawing {
            Drawing::Windows { figures, .. } if figures.len() == 1 => Ok(figures[0].svg(style)),
            Drawing::Windows {
                title,
                subtitle,
                figures,
            } => Ok(draw::overview_svg((title, subtitle), style, figures)),
            Drawing::Chart(chart) if chart.stacked && chart.panels.len() > PANELS => {
                Err(AskedError::TooTall(chart.panels.len()))
            }
            Drawing::Chart(chart) => Ok(chart.svg(style)),
            Drawing::Matrix(matrix) => matrix.svg(style).map_err(AskedError::TooWide),
        }
    }
}

/// Panels that fit into a picture.
const PANELS: usize = 16;

/// Draws a result.
///
/// # Errors
/// If it cannot be read, if nothing or too much of it fits what is asked for.
pub fn ask(dir: &ResultDir, kind: Kind, asked: &Asked) -> Result<Drawn, AskedError> {
    let view = View::new(dir, asked)?;
    match kind {
        Kind::Window => window::draw(&view, asked),
        Kind::Goodput => over_time::draw(&view, asked, &over_time::GOODPUT),
        Kind::Rtt => over_time::draw(&view, asked, &over_time::RTT),
        Kind::Queue => over_time::draw(&view, asked, &over_time::QUEUE),
        Kind::Load => load::draw(&view, asked),
        Kind::Matrix => matrix::draw(&view, asked),
        Kind::Bars => bars::draw(&view, asked),
        Kind::Distribution => distribution::draw(&view, asked),
        Kind::Cdf => cdf::draw(&view, asked),
        Kind::Response => response::draw(&view, asked),
    }
}

/// Why a result could not be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskedError {
    /// The result could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No case has this parameter.
    #[error("no case has `{key} = {value}`: {known}")]
    NoCase {
        /// Key.
        key: String,
        /// Value that was asked for.
        value: String,
        /// Keys or values of the cases, in words.
        known: String,
    },
    /// There is nothing of the kind in the result.
    #[error("{what}")]
    Nothing {
        /// In words, without the remedy.
        what: String,
        /// The remedy.
        hint: String,
    },
    /// A metric stands for several things.
    #[error("`{metric}` is of several: {of}")]
    Several {
        /// Metric.
        metric: String,
        /// Their names.
        of: String,
    },
    /// More panels than a picture has room for.
    #[error("{count} panels: {axes}")]
    TooMany {
        /// Panels.
        count: usize,
        /// Keys with their values.
        axes: String,
    },
    /// More panels, one below the other, than a picture has room for.
    #[error("{0} panels, one below the other: a picture has room for {PANELS}")]
    TooTall(usize),
    /// An axis cannot be drawn so.
    #[error("--{axis}-range: {what}")]
    Range {
        /// `x` or `y`.
        axis: char,
        /// Why, in words.
        what: String,
        /// The remedy.
        hint: String,
    },
    /// A table is wider than the paper.
    #[error("the table is {0:.0} mm wide at this size of letters")]
    TooWide(f64),
}

impl AskedError {
    /// The remedy.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(_) | Self::NoCase { .. } => None,
            Self::Nothing { hint, .. } | Self::Range { hint, .. } => Some(hint.clone()),
            Self::Several { .. } => Some("name one with `--of NAME`".to_owned()),
            Self::TooMany { .. } => Some("choose with `--where KEY=VALUE`".to_owned()),
            Self::TooTall(_) => {
                let one = "choose one with `--of NAME`; `--out FILE.csv` has the numbers of all";
                Some(one.to_owned())
            }
            Self::TooWide(_) => {
                Some("choose columns with `--where KEY=VALUE`, or a larger `--width`".to_owned())
            }
        }
    }
}
