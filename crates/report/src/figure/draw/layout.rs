//! An axis of a chart: where a value lies on it, and which values are marked.

use super::axes::{stepped, ticks, ticks_between};
use super::text::{text_width, thousands};
use crate::figure::Range;
use crate::figure::chart::{Axis, Scale};

/// An axis with its ends.
pub(super) enum Layout {
    /// Whole powers of ten.
    Decades { from: i32, to: i32 },
    /// Between two positive numbers, laid out by their logarithms, which these are.
    Powers { from: f64, to: f64, wanted: f64 },
    /// Between two numbers, with a tick at every step.
    Even { from: f64, to: f64, step: f64 },
    /// Names, each in the middle of its part.
    Names(Vec<String>),
    /// Numbers with names, the outermost away from the edges.
    Values {
        marks: Vec<(f64, String)>,
        log: bool,
        from: f64,
        to: f64,
    },
}

impl Layout {
    /// Around all values of a part of the axis, with about `wanted` ticks.
    pub(super) fn of(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        wanted: f64,
        part: Range,
    ) -> Self {
        let finite = values.filter(|x| x.is_finite() && part.has(*x));
        match &axis.scale {
            Scale::Names(names) => Self::Names(names.clone()),
            Scale::Values { marks, log } => Self::values(marks, *log, wanted, part),
            Scale::Log => {
                let decades = Self::decades(finite.filter(|x| *x > 0.0));
                match decades {
                    Self::Decades { from, to } if !part.is_all() => {
                        let (from, to) = part.log10().ends(f64::from(from), f64::from(to));
                        Self::Powers { from, to, wanted }
                    }
                    whole => whole,
                }
            }
            Scale::Linear => Self::even(finite, wanted, part),
        }
    }

    fn even(values: impl Iterator<Item = f64>, wanted: f64, part: Range) -> Self {
        // Zero belongs to an axis that nobody cut.
        let zero = part.has(0.0).then_some(0.0);
        let (low, high) = zero
            .into_iter()
            .chain(values)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| {
                (l.min(x), h.max(x))
            });
        let (low, high) = part.ends(low, high);
        let marks = ticks(high - low, wanted.max(2.0) as usize);
        let step = marks.get(1).copied().unwrap_or(high - low);
        let from = part.from.unwrap_or((low / step + 1e-9).floor() * step);
        // The highest point does not touch the edge.
        let beyond = || (high + 0.03 * (high - from)).max(from + step);
        Self::Even {
            from,
            to: part.to.unwrap_or_else(beyond),
            step,
        }
    }

    /// Names that would cover the one before are left out, their marks stay.
    fn values(marks: &[(f64, String)], log: bool, wanted: f64, part: Range) -> Self {
        let at = |x: f64| if log { x.log10() } else { x };
        let (all, marks) = (marks, marks.iter().filter(|m| part.has(m.0)));
        let marks: Vec<_> = marks.cloned().collect();
        let (first, last) = match all {
            [first, .., last] => (at(first.0), at(last.0)),
            [only] => (at(only.0) - 0.5, at(only.0) + 0.5),
            [] => (0.0, 1.0),
        };
        let gaps = all.windows(2).map(|pair| at(pair[1].0) - at(pair[0].0));
        // What is set beside an outermost value stays within the axis.
        let edge =
            (0.5 * gaps.fold(f64::INFINITY, f64::min)).clamp(0.05 * (last - first), last - first);
        let scaled = if log { part.log10() } else { part };
        let (from, to) = scaled.ends(first - edge, last + edge);
        let unit = wanted.max(1.0) * TICK / (to - from);
        let mut free = f64::NEG_INFINITY;
        let mut shown = marks;
        for (x, name) in &mut shown {
            let (middle, half) = (at(*x) * unit, text_width(name, 12.0) / 2.0);
            match middle - half >= free {
                true => free = middle + half + 8.0,
                false => name.clear(),
            }
        }
        Self::Values {
            marks: shown,
            log,
            from,
            to,
        }
    }

    fn decades(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(l, h), x| (l.min(x), h.max(x)));
        if low > high {
            return Self::Decades { from: 0, to: 1 };
        }
        // A value that is a power of ten but for rounding needs no decade of its own.
        let from = (low.log10() + 1e-9).floor() as i32;
        let to = (high.log10() - 1e-9).ceil() as i32;
        Self::Decades {
            from,
            to: to.max(from + 1),
        }
    }

    /// True for what has a place on the axis.
    pub(super) fn shows(&self, x: f64) -> bool {
        let by_logarithm = match self {
            Self::Decades { .. } | Self::Powers { .. } => true,
            Self::Values { log, .. } => *log,
            Self::Even { .. } | Self::Names(_) => false,
        };
        x.is_finite() && (x > 0.0 || !by_logarithm)
    }

    /// Value at the beginning of the axis.
    pub(super) fn lowest(&self) -> f64 {
        match self {
            Self::Even { from, .. } => *from,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Position on the axis, 0 to 1.
    pub(super) fn part(&self, x: f64) -> f64 {
        match self {
            Self::Decades { from, to } => (x.log10() - f64::from(*from)) / f64::from(to - from),
            Self::Powers { from, to, .. } => (x.log10() - from) / (to - from),
            Self::Even { from, to, .. } => (x - from) / (to - from),
            Self::Names(names) => (x + 0.5) / names.len().max(1) as f64,
            Self::Values { log, from, to, .. } => {
                let at = if *log { x.log10() } else { x };
                (at - from) / (to - from)
            }
        }
    }

    /// Values with a mark, and what stands at them; at most eight powers of ten.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Self::Decades { from, to } => {
                let step = (to - from) / 8 + 1;
                let powers = (*from..=*to).step_by(step as usize);
                powers
                    .map(|e| 10_f64.powi(e))
                    .map(|x| (x, number(x)))
                    .collect()
            }
            Self::Powers { from, to, wanted } => powers((*from, *to), *wanted),
            Self::Even { from, to, step } => stepped((*from, *to), *step),
            Self::Names(names) => {
                let ticks = names.iter().enumerate();
                ticks.map(|(i, name)| (i as f64, name.clone())).collect()
            }
            Self::Values { marks, .. } => marks.clone(),
        }
    }

    /// Values between the marks of an axis of logarithms, by which it is known as one: 2 to 9 times
    /// each power of ten, where these are few enough to be told apart.
    pub(super) fn minor(&self) -> Vec<f64> {
        let (from, to) = match self {
            Self::Decades { from, to } => (f64::from(*from), f64::from(*to)),
            Self::Powers { from, to, .. } => (*from, *to),
            _ => return Vec::new(),
        };
        if to - from > 6.0 {
            return Vec::new();
        }
        let decades = from.floor() as i32..=to.ceil() as i32;
        let between = |e: i32| (2..10).map(move |m| f64::from(m) * 10_f64.powi(e));
        let within = |x: &f64| (from..=to).contains(&x.log10());
        decades.flat_map(between).filter(within).collect()
    }
}

/// Powers of ten between two, given by their logarithms; where there are fewer than three, twos and
/// fives between them, and where these are too few, even steps.
fn powers((from, to): (f64, f64), wanted: f64) -> Vec<(f64, String)> {
    let within = |x: f64| (from - 1e-9..=to + 1e-9).contains(&x.log10());
    let all = |of_a_decade: &[f64]| -> Vec<(f64, String)> {
        let decades = from.floor() as i32..=to.ceil() as i32;
        let marks = decades.flat_map(|e| of_a_decade.iter().map(move |m| m * 10_f64.powi(e)));
        let marks = marks.filter(|x| within(*x));
        marks.map(|x| (x, number(x))).collect()
    };
    let tens = all(&[1.0]);
    if tens.len() >= 3 {
        let step = tens.len().div_ceil(8);
        return tens.into_iter().step_by(step).collect();
    }
    match all(&[1.0, 2.0, 5.0]) {
        marks if marks.len() >= 3 => marks,
        _ => ticks_between(
            (10_f64.powf(from), 10_f64.powf(to)),
            wanted.max(2.0) as usize,
        ),
    }
}

/// One, two or five times a power of ten: in digits where they are few.
fn number(x: f64) -> String {
    match (1e-3..1e7).contains(&x) {
        true => thousands(x),
        false => format!("{x:.0e}"),
    }
}

/// Width for a number below an axis.
pub(super) const TICK: f64 = 66.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_marks_between_the_edges() {
        let marks = [10.0, 20.0, 50.0, 100.0, 200.0].map(|x| (x, format!("{x} ms")));
        let axis = Layout::values(&marks, true, 16.0, Range::default());
        let parts: Vec<f64> = axis.ticks().iter().map(|t| axis.part(t.0)).collect();
        assert!(parts[0] > 0.04 && parts[4] < 0.96, "{parts:?}");
        // A factor of two is as wide everywhere.
        assert!((parts[1] - parts[0] - (parts[4] - parts[3])).abs() < 1e-12);
        assert!(axis.ticks().iter().all(|t| !t.1.is_empty()));
        // Names that do not fit are left out, their marks are not.
        let few = Layout::values(&marks, false, 5.0, Range::default()).ticks();
        let names: Vec<&str> = few.iter().map(|t| t.1.as_str()).collect();
        assert_eq!(names, ["10 ms", "", "50 ms", "100 ms", "200 ms"]);
        let only = Layout::values(&marks[..1], true, 16.0, Range::default());
        assert!((only.part(10.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn axes_cover_whole_decades() {
        let axis = Layout::decades([12.0, 5_000.0].into_iter());
        let at: Vec<f64> = axis.ticks().iter().map(|t| t.0).collect();
        assert_eq!(at, [10.0, 100.0, 1_000.0, 10_000.0]);
        assert!((axis.part(100.0) - 1.0 / 3.0).abs() < 1e-12);
        let minor = axis.minor();
        assert_eq!((minor.len(), minor[0], minor[23]), (24, 20.0, 9_000.0));
        // One value, a power of ten, has room.
        let one = Layout::decades([0.5].into_iter());
        assert_eq!(one.ticks().len(), 2);
        assert_eq!(Layout::decades([1e-12, 1.0].into_iter()).ticks().len(), 7);
        assert!(Layout::decades([1e-12, 1.0].into_iter()).minor().is_empty());
    }

    #[test]
    fn a_linear_axis_begins_at_zero_or_below() {
        let axis = |values: &[f64]| {
            let axis = Axis {
                scale: Scale::Linear,
                ..Axis::default()
            };
            let layout = Layout::of(&axis, values.iter().copied(), 5.0, Range::default());
            layout.ticks().into_iter().map(|t| t.1).collect::<Vec<_>>()
        };
        assert_eq!(axis(&[3.0, 97.0]), ["0", "20", "40", "60", "80"]);
        assert_eq!(
            axis(&[-0.5, 0.5]),
            ["-0.6", "-0.4", "-0.2", "0", "0.2", "0.4"]
        );
        assert_eq!(axis(&[]), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
    }

    /// Ticks are those of the part, and an end that is open is that of what is seen.
    #[test]
    fn a_part_of_an_axis_has_its_own_ticks() {
        let part = |text: &str| text.parse::<Range>().unwrap();
        let ticks = |scale: Scale, values: &[f64], text: &str| -> Vec<String> {
            let axis = Axis {
                label: String::new(),
                scale,
            };
            let layout = Layout::of(&axis, values.iter().copied(), 5.0, part(text));
            let parts = layout.ticks();
            for (tick, text) in &parts {
                let at = layout.part(*tick);
                assert!((-1e-6..=1.0 + 1e-6).contains(&at), "{text} at {at}");
            }
            parts.into_iter().map(|(_, text)| text).collect()
        };
        let values = [0.5, 3.0, 60.0];
        assert_eq!(
            ticks(Scale::Linear, &values, "10:20"),
            ["10", "12", "14", "16", "18", "20"]
        );
        assert_eq!(
            ticks(Scale::Linear, &values, ":4"),
            ["0", "1", "2", "3", "4"]
        );
        assert_eq!(
            ticks(Scale::Linear, &values, "2:"),
            ["10", "20", "30", "40", "50", "60"]
        );
        assert_eq!(ticks(Scale::Linear, &values, "-3:-1")[0], "-3");
        assert_eq!(
            ticks(Scale::Linear, &values, "0.0001:0.0003"),
            ["0.00010", "0.00015", "0.00020", "0.00025", "0.00030"]
        );
        assert_eq!(
            ticks(Scale::Log, &values, "0.1:1000"),
            ["0.1", "1", "10", "100", "1,000"]
        );
        assert_eq!(
            ticks(Scale::Log, &values, "2e-5:2e-4"),
            ["2e-5", "5e-5", "1e-4", "2e-4"]
        );
        assert_eq!(
            ticks(Scale::Log, &values, "20:30"),
            ["20", "22", "24", "26", "28", "30"]
        );
        assert_eq!(
            ticks(Scale::Log, &values, "2:"),
            ["2", "5", "10", "20", "50", "100"]
        );
    }
}
