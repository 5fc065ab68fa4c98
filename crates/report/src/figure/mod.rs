//! Congestion window over time: one case as a picture, or all cases of a scenario side by side;
//! and [`Chart`]s of other curves.
//!
//! The SVG is drawn here, text stays text, and the PNG (feature `png`) is the same SVG rasterised
//! with one bundled font, so that a machine without fonts draws the same picture. The same input
//! gives the same bytes. A curve is reduced per column of pixels to its first, smallest, largest
//! and last value (Jugel et al., "M4", VLDB 2014), so no peak of a sawtooth is lost and the file
//! stays small whatever the length of the run.
//!
//! [`write`] draws from a stored result, so a picture can be made again without running anything.

pub mod asked;
mod chart;
mod draw;
mod folder;
mod font;
mod overlay;
mod picture;
mod range;
mod rows;
mod stored;
mod style;

use std::io;
use std::path::PathBuf;

use fullpipe_results::label;
use fullpipe_results::result::Params;
use fullpipe_results::store::{ResultDir, StoreError};
use fullpipe_scenario::Scenario;

pub use chart::{Axis, Chart, Line, Panel, Scale};
#[cfg(feature = "pdf")]
pub use draw::pdf;
#[cfg(feature = "png")]
pub use draw::{FontError, RasterError, png};
pub use draw::{OVERVIEW_PANELS, described, overview_svg};
pub use folder::Written;
pub use font::Font;
pub(crate) use overlay::sides;
pub use overlay::write_overlay;
pub use picture::{Curve, Figure, Level, LevelKind, Mark, MarkKind};
pub use range::{Range, Ranges};
pub use rows::Rows;
use stored::as_it_is;
pub(crate) use stored::has_threshold;
pub use style::Style;

/// Draws every case of a result as SVG, and as PNG with the feature `png`, into `figures/`, with
/// the first seed, and an overview. Pictures that an earlier run left there are removed. Cases
/// without a time series (`trace = "off"`) have no picture.
///
/// # Errors
/// If the result cannot be read or the pictures cannot be written.
pub fn write(scenario: &Scenario, result: &ResultDir) -> Result<Written, FigureError> {
    let params: Vec<Params> = scenario.cases.iter().map(Params::of).collect();
    let texts = label::texts(&params);
    let cases: Vec<(usize, String)> = label::labels(&texts).into_iter().enumerate().collect();
    let about = scenario.about.trim_start().lines().next();
    let path = result.manifest().peer.as_deref().map(as_it_is);
    let about = about.filter(|about| !about.is_empty()).map(str::to_owned);
    let subtitle: Vec<String> = about.into_iter().chain(path).collect();
    folder::draw_all(
        &result.path().join(FIGURES),
        (&scenario.name, &subtitle.join("; ")),
        &cases,
        |i| Ok(Figure::of(scenario, result, i, &texts[i])?),
    )
}

/// Why the figures of a result could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// The result could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A picture could not be drawn.
    #[cfg(feature = "png")]
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
