//! Curves and points over a number, a time or names: panels side by side.

use super::{Range, Ranges};

/// A picture of panels that show the same things, one line of the legend each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Headline.
    pub title: String,
    /// Line below the headline, on all panels.
    pub subtitle: String,
    /// Panels, side by side where there is room.
    pub panels: Vec<Panel>,
    /// One below the other, for a common horizontal axis.
    pub stacked: bool,
}

/// A pair of axes and what stands between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Heading.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Lines; those of one group have the same colour in every panel.
    pub lines: Vec<Line>,
    /// Least and most that the quantity can be: intervals end there.
    pub possible: Range,
    /// End of the warm-up on the horizontal axis: what is before it is drawn and not measured.
    pub warmup: f64,
    /// Either axis is that of all panels of the chart which say so and have its label.
    pub common: bool,
    /// Parts of the axes that are drawn, in the numbers of the points.
    pub ranges: Ranges,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Logarithmic, linear or of names.
    pub scale: Scale,
}

/// Scale of an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scale {
    /// Whole decades; what is not positive is left out.
    #[default]
    Log,
    /// From zero, or the smallest value if that is negative.
    Linear,
    /// Names at 0, 1, 2, ...
    Names(Vec<String>),
    /// Numbers that have names, each a mark: the values of an axis of the matrix.
    Values {
        /// Numbers with their names, ascending.
        marks: Vec<(f64, String)>,
        /// Laid out by their logarithms; all are positive.
        log: bool,
    },
}

/// A line or a row of points of a [`Panel`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Name in the legend, once for each.
    pub name: String,
    /// Colour and dash.
    pub group: usize,
    /// Points from left to right or from right to left; those that the axes cannot show are left
    /// out, and at one whose value is NaN the line is interrupted.
    pub points: Vec<(f64, f64)>,
    /// Places on the horizontal axis whose value is not defined: a dash at the foot of the panel.
    pub missing: Vec<f64>,
    /// 95 % intervals of the points, as far as there are any.
    pub intervals: Vec<Option<[f64; 2]>>,
    /// Smallest and largest of what each point is the median of, drawn as a pale band; empty where
    /// the points are all there is.
    pub band: Vec<[f64; 2]>,
    /// Drawn as points.
    pub dots: bool,
    /// Drawn without a line between the points.
    pub loose: bool,
    /// Drawn this far to the right, in units of the drawing, so that intervals of several lines do
    /// not cover one another.
    pub shift: f64,
}

impl Line {
    /// True if a point stands for values that differ.
    pub(super) fn has_band(&self) -> bool {
        self.band.iter().any(|[low, high]| low < high)
    }
}
