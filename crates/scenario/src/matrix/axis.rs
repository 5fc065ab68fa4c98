//! An axis: a key and the values it takes.

use std::collections::BTreeSet;

use super::address::{Address, Relation};
use crate::document::{Node, Place};
use crate::point::digits_of;
use crate::value::{Field, Key, Reader};

/// A key of `[matrix]` and its values.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// Key of the axis as written.
    pub key: String,
    /// The key it names; `None` for `case`, whose values set several keys each.
    pub names: Option<&'static Key>,
    /// All that any of its values sets.
    pub(super) addresses: Vec<Address>,
    pub values: Vec<AxisValue>,
    /// Values in the file, if `--set` replaced them.
    pub replaced: Vec<AxisValue>,
}

#[derive(Clone, Debug)]
pub(crate) struct AxisValue {
    pub sets: Vec<(Address, Field)>,
    pub at: Place,
    pub plain: String,
    pub json: serde_json::Value,
    pub canonical: String,
    /// `--set` changes a key that it sets: its name no longer says what runs.
    pub overruled: bool,
}

impl Axis {
    /// Other values; the old ones stay known.
    pub(super) fn replace(&mut self, values: Vec<AxisValue>) {
        let old = std::mem::replace(&mut self.values, values);
        let known =
            |value: &AxisValue| self.replaced.iter().any(|v| v.canonical == value.canonical);
        let new: Vec<AxisValue> = old.into_iter().filter(|value| !known(value)).collect();
        self.replaced.extend(new);
    }

    /// Makes values known that this run does not have.
    pub fn remember(&mut self, other: &Axis) {
        for value in &other.values {
            let known = |v: &AxisValue| v.canonical == value.canonical;
            if !self.values.iter().any(known) && !self.replaced.iter().any(known) {
                self.replaced.push(value.clone());
            }
        }
    }
}

impl AxisValue {
    /// A value of the key that `address` names.
    pub fn read(
        reader: &mut Reader<'_>,
        address: &Address,
        node: &Node,
        key: &str,
    ) -> Option<AxisValue> {
        let value = reader.value(&address.key.kind, node, key, address.key.example)?;
        let canonical = value.canonical();
        let plain = node.plain(reader.sources);
        let field = Field { value, at: node.at };
        Some(AxisValue {
            sets: vec![(address.clone(), field)],
            at: node.at,
            plain,
            json: node.json(),
            canonical,
            overruled: false,
        })
    }
}

/// Values of the axes in one case; later axes vary fastest.
pub(crate) fn digits(index: usize, axes: &[Axis]) -> Vec<usize> {
    digits_of(index, axes.iter().map(|axis| axis.values.len()))
}

/// The cases one step before this one along each axis: what does not depend on that axis is the
/// same there, and they have smaller indices.
pub(crate) fn neighbours(index: usize, axes: &[Axis]) -> Vec<usize> {
    let mut stride = 1;
    let mut all = Vec::with_capacity(axes.len());
    for (digit, axis) in digits(index, axes).into_iter().zip(axes).rev() {
        if digit > 0 {
            all.push(index - stride);
        }
        stride *= axis.values.len();
    }
    all
}

/// The case with some axes moved to other values.
pub(crate) fn moved(case: usize, axes: &[Axis], to: &[(usize, usize)]) -> usize {
    let mut digits = digits(case, axes);
    for (axis, value) in to {
        digits[*axis] = *value;
    }
    let place = |index, (digit, axis): (&usize, &Axis)| index * axis.values.len() + digit;
    digits.iter().zip(axes).fold(0, place)
}

/// A later axis may refine an earlier one, and nothing else: otherwise the name of the earlier one,
/// and whether the later one is around it.
pub(super) fn clash<'a>(earlier: &'a Axis, later: &Axis) -> Option<(&'a str, bool)> {
    for a in &earlier.addresses {
        for b in &later.addresses {
            match b.relation(a) {
                Relation::Apart | Relation::Inside => {}
                relation => return Some((&earlier.key, relation == Relation::Around)),
            }
        }
    }
    None
}

/// Refuses values that stand in the list already.
pub(super) fn refuse_twins(reader: &mut Reader<'_>, values: &[AxisValue], key: &str) {
    let mut known = BTreeSet::new();
    for value in values.iter().filter(|v| !known.insert(&v.canonical)) {
        let hint = Some("every value stands once".to_owned());
        reader.refuse(value.at, key, "this value stands twice in the list", hint);
    }
}
