//! Congestion window over time: one case as a picture, or all cases of a scenario side by side.
//!
//! The SVG is drawn here, text stays text, and the PNG is the same SVG rasterised with one bundled
//! font, so that a machine without fonts draws the same picture. The same input gives the same
//! bytes. A curve is reduced per column of pixels to its first, smallest, largest and last value
//! (Jugel et al., "M4", VLDB 2014), so no peak of a sawtooth is lost and the file stays small
//! whatever the length of the run.
//!
//! [`write`] draws from a stored result, so a picture can be made again without running anything.

mod draw;
mod folder;
mod overlay;
mod stored;

use std::io;
use std::path::PathBuf;

use fullpipe_results::label;
use fullpipe_results::store::{ResultDir, StoreError};
use fullpipe_scenario::Scenario;

pub use draw::{OVERVIEW_PANELS, overview_svg, png};
pub use folder::Written;
pub use overlay::write_overlay;

/// What stands in one picture: the flows of one case and one seed.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// Headline: the scenario.
    pub title: String,
    /// Second line: the parameters of the case.
    pub subtitle: String,
    /// Length of the time axis, seconds; longer curves are cut.
    pub duration: f64,
    /// Unit of the window axis in words, for example `segments of 1448 B`.
    pub window_unit: String,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Horizontal lines with a label, for example what the path holds.
    pub levels: Vec<Level>,
}

/// The window of one flow over time.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Colour and dash: curves of one group look alike and share one line of the legend.
    pub group: usize,
    /// Drawn as a broad pale line that others can lie on.
    pub band: bool,
    /// Time of each row, seconds, ascending.
    pub time: Vec<f64>,
    /// Window at that time, segments.
    pub window: Vec<f64>,
    /// Smallest since the row before.
    pub low: Vec<f64>,
    /// Largest since the row before.
    pub high: Vec<f64>,
    /// Threshold; not drawn where it is not finite.
    pub ssthresh: Vec<f64>,
    /// Events on the curve, ascending.
    pub marks: Vec<Mark>,
}

/// An event on a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// When, seconds.
    pub time: f64,
    /// Window before the event, segments.
    pub window: f64,
    /// Decides the shape of the mark.
    pub kind: MarkKind,
}

/// Kinds of [`Mark`]; each has its own shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// Start-up left without a reduction.
    StartUpExit,
    /// The window was reduced.
    Congestion,
    /// A retransmission timeout.
    Timeout,
}

/// A horizontal line.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Window, segments.
    pub window: f64,
    /// Label at its right end.
    pub label: String,
}

/// Draws every case of a result as SVG and PNG into `figures/`, with the first seed, and an
/// overview. Pictures that an earlier run left there are removed. Cases without a time series
/// (`trace = "off"`) have no picture.
///
/// # Errors
/// If the result cannot be read or the pictures cannot be written.
pub fn write(scenario: &Scenario, result: &ResultDir) -> Result<Written, FigureError> {
    let params: Vec<_> = scenario.cases.iter().map(|c| c.params.clone()).collect();
    let cases: Vec<(usize, String)> = label::labels(&params).into_iter().enumerate().collect();
    let about = scenario.about.trim_start().lines().next();
    folder::draw_all(
        &result.path().join(FIGURES),
        (&scenario.name, about.unwrap_or_default()),
        &cases,
        |i| Ok(Figure::of(scenario, result, i)?),
    )
}

/// The SVG could not be turned into a PNG.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot rasterise the figure: {0}")]
pub struct RasterError(String);

/// Why the figures of a result could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// The result could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A picture could not be drawn.
    #[error(transparent)]
    Raster(#[from] RasterError),
    /// The system refused.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    Io {
        /// Verb.
        doing: &'static str,
        /// File or directory.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
}

const FIGURES: &str = "figures";
