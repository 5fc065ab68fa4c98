//! Contents of a picture, apart from how it is drawn.

use super::Ranges;

/// What stands in one picture: the flows of one case and one seed.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// Headline: the scenario.
    pub title: String,
    /// Second line: the parameters of the case.
    pub subtitle: String,
    /// Length of the time axis, seconds; longer curves are cut.
    pub duration: f64,
    /// End of the warm-up, seconds: what is before it is drawn and not measured.
    pub warmup: f64,
    /// Unit of the window axis in words, for example `segments of 1448 B`.
    pub window_unit: String,
    /// Size of a segment, bytes, where all curves have the same.
    pub mss: Option<f64>,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Horizontal lines with a label, for example what the path holds.
    pub levels: Vec<Level>,
    /// Parts of the axes that are drawn: seconds, and windows in the unit of their axis.
    pub ranges: Ranges,
}

impl Figure {
    /// The same with windows in megabytes, where the size of a segment is known.
    pub fn in_megabytes(mut self) -> Figure {
        let Some(mss) = self.mss else {
            return self;
        };
        let unit = mss / 1e6;
        for c in &mut self.curves {
            let columns = [&mut c.window, &mut c.low, &mut c.high, &mut c.ssthresh];
            columns.into_iter().flatten().for_each(|w| *w *= unit);
            c.marks.iter_mut().for_each(|m| m.window *= unit);
        }
        self.levels.iter_mut().for_each(|l| l.window *= unit);
        self.window_unit = "MB".to_owned();
        self
    }
}

/// The window of one flow over time.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Colour and dash: curves of one group look alike and share one line of the legend, but for
    /// those that are bands.
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
    /// Parameters of the flow were changed.
    Change,
}

/// A horizontal line.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Window, segments.
    pub window: f64,
    /// Decides its dashes and its name in the legend.
    pub kind: LevelKind,
    /// Label at its right end.
    pub label: String,
}

/// Kinds of [`Level`]; each has its own dashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelKind {
    /// What the path holds without a queue.
    Bdp,
    /// What it holds with a full one.
    WithBuffer,
    /// What the flow's window may not exceed.
    Cap,
}

impl LevelKind {
    /// Every kind, in the order of the legend.
    pub const ALL: [Self; 3] = [Self::Bdp, Self::WithBuffer, Self::Cap];

    /// Name in the legend.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bdp => "BDP",
            Self::WithBuffer => "BDP + buffer",
            Self::Cap => "cap of the window",
        }
    }
}
