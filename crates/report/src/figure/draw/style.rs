//! Colours, strokes, margins, and how much is drawn.

use crate::figure::Style;
use crate::figure::picture::LevelKind;

/// How a curve is thinned and stroked: in a picture of its own, or in a panel of the overview.
pub(super) struct Detail {
    /// Pixels per column of the reduced curve.
    pub(super) column: f64,
    /// Columns of all curves together.
    pub(super) budget: f64,
    pub(super) stroke: f64,
    pub(super) ssthresh_up_to: usize,
    pub(super) level_labels: bool,
    pub(super) mark_distance: f64,
    pub(super) mark_size: f64,
}

impl Detail {
    /// Least distance of two marks of a kind where there are so many curves.
    pub(super) fn distance(&self, curves: usize) -> f64 {
        self.mark_distance * (curves as f64 / 6.0).max(1.0)
    }

    /// Style of a picture of one case.
    pub(super) const FULL: Self = Self {
        column: 1.0,
        budget: 3000.0,
        stroke: 1.8,
        ssthresh_up_to: 4,
        level_labels: true,
        mark_distance: 7.0,
        mark_size: 4.5,
    };
    /// On a journal's paper.
    pub(super) const PAPER: Self = Self {
        stroke: 1.3,
        level_labels: false,
        mark_size: 3.4,
        ..Self::FULL
    };
    /// Style of a panel of an overview.
    pub(super) const PANEL: Self = Self {
        stroke: 1.4,
        ssthresh_up_to: 0,
        mark_distance: 6.0,
        mark_size: 3.0,
        ..Self::FULL
    };
}

/// How a group of curves is drawn.
pub(super) struct Look {
    pub(super) colour: &'static str,
    dash: &'static str,
    /// Line of a further round through the greys and their dashes.
    broad: bool,
    /// Of a point, 0 to 7: four shapes, then the same hollow.
    pub(super) shape: usize,
}

impl Look {
    /// Attributes of a curve's line; a band is broad and pale.
    pub(super) fn line(&self, band: bool, width: f64) -> String {
        let width = if self.broad { BROAD * width } else { width };
        let (width, pale) = match band {
            true => (4.0 * width, " stroke-opacity=\".35\""),
            false => (width, ""),
        };
        // A band is told by its breadth.
        let dash = match self.dash {
            dash if band || dash.is_empty() => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        format!("stroke-width=\"{width}\"{pale}{dash}")
    }
}

/// Colour and dashes by group, so that colour is not the only difference: a picture is printed in
/// grey, and lines lie on one another. The first line is solid, and a second round through the
/// palette gives every colour other dashes. In grey each shade has all kinds of dashes.
pub(super) fn look(group: usize, grey: bool) -> Look {
    if grey {
        return Look {
            colour: GREYS[group % GREYS.len()],
            dash: DASHES[group / GREYS.len() % DASHES.len()],
            broad: group / (GREYS.len() * DASHES.len()) % 2 == 1,
            shape: group / GREYS.len() % 8,
        };
    }
    Look {
        colour: PALETTE[group % PALETTE.len()],
        dash: DASHES[(group + group / PALETTE.len()) % DASHES.len()],
        broad: false,
        shape: group % 8,
    }
}

/// Lines that colour and dashes tell apart, and names in a legend.
pub(super) const LOOKS: usize = PALETTE.len() * DASHES.len();

/// Dash patterns, one per colour, as SVG writes them.
const DASHES: [&str; 7] = [
    "",
    "8 3",
    "2 2.5",
    "8 3 2 3",
    "14 3",
    "8 2.5 2 2.5 2 2.5",
    "4 2",
];

/// Breadth of a line beside that of the other rounds.
const BROAD: f64 = 2.0;

/// Greys that paper keeps apart.
const GREYS: [&str; 2] = ["#000000", "#8f8f8f"];

impl Style {
    /// Room for an axis on the left.
    pub(super) fn margin_left(&self) -> f64 {
        if self.is_paper() { 66.0 } else { MARGIN_LEFT }
    }

    /// How far left of its axis a label stands at least, beside the numbers.
    pub(super) fn label_beside(&self) -> f64 {
        if self.is_paper() { 50.0 } else { 58.0 }
    }

    /// Room for half of a number on the right.
    pub(super) fn margin_right(&self) -> f64 {
        if self.is_paper() { 14.0 } else { 28.0 }
    }
}

/// Least height of axes whose picture has a prescribed one.
pub(super) const LEAST_AXES: f64 = 60.0;
pub(super) const MARGIN_LEFT: f64 = 84.0;
/// Behind what is drawn and not measured.
pub(super) const WARMUP: &str = "#f0f0ee";
pub(super) const INK: &str = "#1a1a1a";
pub(super) const GREY: &str = "#444";
pub(super) const AXIS_STROKE: &str = "stroke=\"#1a1a1a\" stroke-width=\"1\"";

/// Okabe and Ito (2008), told apart with every kind of colour vision; without the yellow, too pale
/// on white.
const PALETTE: [&str; 7] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
];

/// A line that says what the path holds, or what a window may not exceed.
pub(super) fn level_stroke(kind: LevelKind) -> &'static str {
    match kind {
        LevelKind::Bdp => "stroke=\"#8a8a8a\" stroke-width=\"1\" stroke-dasharray=\"1 3\"",
        LevelKind::WithBuffer => "stroke=\"#8a8a8a\" stroke-width=\"1\" stroke-dasharray=\"6 3\"",
        LevelKind::Cap => "stroke=\"#8a8a8a\" stroke-width=\"1\" stroke-dasharray=\"8 3 1 3\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups never look alike in colour, and the first seven not even without colour.
    #[test]
    fn dashes_tell_lines_apart_without_their_colours() {
        let of = |group| look(group, false);
        assert_eq!(of(0).dash, "");
        for a in 0..21 {
            for b in 0..a {
                assert_ne!(
                    (of(a).colour, of(a).dash),
                    (of(b).colour, of(b).dash),
                    "{a} {b}"
                );
                assert!(a > 6 || of(a).dash != of(b).dash, "{a} {b}");
            }
        }
        // Points too, as many as a picture has curves, in grey as well.
        for grey in [false, true] {
            let of = |group| look(group, grey);
            let alike = |a, b| (of(a).colour, of(a).shape) == (of(b).colour, of(b).shape);
            assert!(
                (0..16).all(|a| (0..a).all(|b| !alike(a, b))),
                "grey: {grey}"
            );
        }
        // Lines of as many values in grey, too.
        let grey = |group| {
            let look = look(group, true);
            (look.colour, look.line(false, 1.8))
        };
        assert!((0..28).all(|a| (0..a).all(|b| grey(a) != grey(b))));
        assert_eq!(of(1).line(true, 1.0).matches("dasharray").count(), 0);
    }
}
