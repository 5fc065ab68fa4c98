//! Curves over a number that is not time: panels side by side, both axes logarithmic.

/// A picture of panels that show the same things, one line of the legend each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Headline.
    pub title: String,
    /// What all panels have in common.
    pub subtitle: String,
    /// Panels, drawn two to a row.
    pub panels: Vec<Panel>,
}

/// A pair of logarithmic axes and its lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Heading.
    pub title: String,
    /// Quantity and unit of the horizontal axis.
    pub x_label: String,
    /// Quantity and unit of the vertical axis.
    pub y_label: String,
    /// Lines; the same position in every panel has the same colour.
    pub lines: Vec<Line>,
}

/// A line of a [`Panel`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points from left to right or from right to left; those that are not positive are left out.
    pub points: Vec<(f64, f64)>,
}
