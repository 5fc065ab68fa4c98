//! Values of the matrix that a table names: the cases it is about, or the case that each of them is
//! held against.

use fullpipe_cc::registry::nearest;

use super::table::{Known, Referring};
use crate::document::{Data, Entry, Node, shorten};
use crate::keys::{Expect, Measures};
use crate::matrix::{Axis, AxisValue, digits, moved};
use crate::scenario::Against;
use crate::value::{At, Free, Key, Reader, Record};

/// A key whose table names values of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The cases that an expectation is about.
    Where,
    /// What replaces a case's own values in the one it has to agree with.
    AgreesWith,
    /// The same in the one it is divided by.
    RatioTo,
    /// The same in the one its metrics are compared with.
    Baseline,
}

impl Choice {
    /// The peer that an expectation asks for, if it has one.
    pub fn peer(against: Against) -> Option<Choice> {
        match against {
            Against::Bound => None,
            Against::Agreement => Some(Choice::AgreesWith),
            Against::Ratio => Some(Choice::RatioTo),
        }
    }

    /// The key that this choice has in the file.
    pub fn key(self) -> &'static Key {
        match self {
            Choice::Where => &Expect::r#where,
            Choice::AgreesWith => &Expect::agrees_with,
            Choice::RatioTo => &Expect::ratio_to,
            Choice::Baseline => &Measures::baseline,
        }
    }

    /// A list stands for any of its values: where one case is to be found, one value is meant.
    fn takes_lists(self) -> bool {
        self == Choice::Where
    }

    /// What is wrong with a value that no case has.
    fn of_no_case(self) -> &'static str {
        match self {
            Choice::Baseline => "no case has this value",
            Choice::Where | Choice::AgreesWith | Choice::RatioTo => {
                "no case has this value: the expectation could not fail"
            }
        }
    }
}

/// Result of resolving a table of axis values.
pub(super) enum Picked {
    Values(Pick),
    /// `--set` has replaced a value it asks for.
    Gone,
}

/// Values of some axes.
#[derive(Default)]
pub(super) struct Pick {
    /// Key and values as the cases spell them.
    pub spelled: Vec<(String, String)>,
    /// Position of an axis, and of its values.
    values: Vec<(usize, Vec<usize>)>,
}

impl Pick {
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// True of a case with one of the values on each of these axes.
    pub fn holds(&self, case: usize, axes: &[Axis]) -> bool {
        let digits = digits(case, axes);
        let mut values = self.values.iter();
        values.all(|(axis, values)| values.contains(&digits[*axis]))
    }

    /// The case with these values in place of its own.
    pub fn moved(&self, case: usize, axes: &[Axis]) -> usize {
        let first = |(axis, values): &(usize, Vec<usize>)| Some((*axis, *values.first()?));
        let to: Vec<(usize, usize)> = self.values.iter().filter_map(first).collect();
        moved(case, axes, &to)
    }

    /// True if `--set` has replaced values of one of these axes.
    pub fn is_narrowed(&self, axes: &[Axis]) -> bool {
        let mut values = self.values.iter();
        values.any(|(axis, _)| {
            let Axis {
                replaced, values, ..
            } = &axes[*axis];
            !replaced.is_empty() || values.iter().any(|value| value.overruled)
        })
    }
}

/// The case that each of `count` is held against by `measure.baseline`.
pub(crate) fn baselines(
    reader: &mut Reader<'_>,
    measure: &Record,
    known: &Known<'_>,
    count: usize,
) -> Vec<Option<usize>> {
    let at = At::<Measures>::new(measure, "measure");
    let table = Referring { at, known };
    let cases = 0..count;
    match table.picked(Choice::Baseline, reader) {
        Some(Picked::Values(pick)) if !pick.is_empty() => {
            let of = |case| Some(pick.moved(case, known.axes)).filter(|base| *base != case);
            cases.map(of).collect()
        }
        _ => vec![None; cases.len()],
    }
}

impl<T> Referring<'_, T> {
    /// Axis values that a key names; none if it is not given, `None` after a fault.
    pub fn picked(&self, choice: Choice, reader: &mut Reader<'_>) -> Option<Picked> {
        let mut pick = Pick::default();
        if !self.is_given(choice.key()) {
            return Some(Picked::Values(pick));
        }
        let Free(entries) = self.record.get(choice.key())?;
        let before = reader.findings.faults.len();
        let mut gone = false;
        for entry in &entries {
            let (axis, values) = self.on_axis(choice, reader, entry)?;
            if values.is_empty() {
                gone = true;
                continue;
            }
            let known = &self.known.axes[axis];
            let plain: Vec<&str> = values
                .iter()
                .map(|value| known.values[*value].plain.as_str())
                .collect();
            pick.spelled.push((known.key.clone(), plain.join(", ")));
            pick.values.push((axis, values));
        }
        if reader.findings.faults.len() > before {
            return None;
        }
        Some(match gone {
            true => Picked::Gone,
            false => Picked::Values(pick),
        })
    }

    /// Positions of an axis and of the values that an entry names; without values if `--set` has
    /// replaced them.
    fn on_axis(
        &self,
        choice: Choice,
        reader: &mut Reader<'_>,
        entry: &Entry,
    ) -> Option<(usize, Vec<usize>)> {
        let key = format!("{}.\"{}\"", self.key(choice.key()), shorten(&entry.name));
        let axes = self.known.axes;
        let Some(axis) = axes.iter().position(|axis| axis.key == entry.name) else {
            let hint = Some(self.axis_hint(&entry.name));
            let message = "this key is not varied in [matrix]";
            reader.refuse_key(entry.name_at, &key, message, hint);
            return None;
        };
        // A list names several values, except where the key's own values are lists.
        let lists = |value: &AxisValue| value.canonical.starts_with('[');
        let nodes = match &entry.node.data {
            Data::List(nodes) if !axes[axis].values.iter().any(lists) => {
                if nodes.is_empty() || !choice.takes_lists() {
                    reader.refuse(entry.node.at, &key, "one value is meant here", None);
                    return None;
                }
                nodes.as_slice()
            }
            _ => std::slice::from_ref(&entry.node),
        };
        let mut values = Vec::new();
        for node in nodes {
            values.extend(axis_value(choice, &axes[axis], reader, node, &key)?);
        }
        values.sort_unstable();
        values.dedup();
        Some((axis, values))
    }
}

/// Position of a value on an axis; `Some(None)` if `--set` has replaced or overruled it.
fn axis_value(
    choice: Choice,
    axis: &Axis,
    reader: &mut Reader<'_>,
    node: &Node,
    key: &str,
) -> Option<Option<usize>> {
    let canonical = match axis.names {
        Some(named) => reader
            .value(&named.kind, node, key, named.example)?
            .canonical(),
        None => node.plain(reader.sources),
    };
    let at = |values: &[AxisValue]| values.iter().position(|v| v.canonical == canonical);
    if let Some(v) = at(&axis.values) {
        return Some(Some(v).filter(|v| !axis.values[*v].overruled));
    }
    if at(&axis.replaced).is_some() {
        return Some(None);
    }
    let all = || axis.values.iter().chain(&axis.replaced);
    let values = || all().map(|value| value.plain.as_str());
    let written = node.plain(reader.sources);
    let hint = match nearest(&written, values()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!(
            "its values: {}",
            values().take(12).collect::<Vec<_>>().join(", ")
        ),
    };
    reader.refuse(node.at, key, choice.of_no_case(), Some(hint));
    None
}
