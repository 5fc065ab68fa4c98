//! What an expectation holds a value against: a bound, and perhaps a peer.

use super::table::Referring;
use crate::keys::Expect;
use crate::scenario::Against;
use crate::value::{Bounds, Key, Reader, Tolerance};

/// Reads whether the bound is of the value, or of its relation to a peer.
pub(super) fn against(reader: &mut Reader<'_>, table: &Referring<'_, Expect>) -> Against {
    match (
        table.is_given(&Expect::agrees_with),
        table.is_given(&Expect::ratio_to),
    ) {
        (true, true) => {
            let message = "contradicts `agrees_with`";
            table.refuse(reader, &Expect::ratio_to, message, "keep one of them");
            Against::Agreement
        }
        (true, false) => Against::Agreement,
        (false, true) => Against::Ratio,
        (false, false) => Against::Bound,
    }
}

/// The smallest and the largest value that is accepted.
pub(super) fn bound(reader: &mut Reader<'_>, table: &Referring<'_, Expect>) -> Option<(f64, f64)> {
    let forms = [
        Expect::within,
        Expect::at_least,
        Expect::at_most,
        Expect::equals,
    ];
    let given: Vec<&Key> = forms.iter().filter(|form| table.is_given(form)).collect();
    let names: Vec<&str> = given.iter().map(|key| key.name).collect();
    if table.is_given(&Expect::tolerance) && !table.is_given(&Expect::equals) {
        let message = "a tolerance belongs to `equals`";
        let hint = "write `equals` beside it, or `within = [low, high]`";
        table.refuse(reader, &Expect::tolerance, message, hint);
    }
    let given_as = |keys: &[Key]| keys.iter().map(|key| key.name).eq(names.iter().copied());
    if given_as(&[Expect::within]) {
        return table.within.map(|Bounds(low, high)| (low, high));
    }
    if given_as(&[Expect::at_least]) {
        return Some((table.at_least?, f64::INFINITY));
    }
    if given_as(&[Expect::at_most]) {
        return Some((f64::NEG_INFINITY, table.at_most?));
    }
    if given_as(&[Expect::at_least, Expect::at_most]) {
        let (low, high) = (table.at_least?, table.at_most?);
        if low > high {
            let message = format!("the lower bound {low} is above the upper one");
            let hint = format!("write within = [{high}, {low}]");
            table.refuse(reader, &Expect::at_most, message, hint);
        }
        return Some((low, high));
    }
    if given_as(&[Expect::equals]) {
        let value = table.equals?;
        if !table.is_given(&Expect::tolerance) {
            table.missing(&Expect::tolerance, &mut reader.findings);
        }
        return match table.tolerance? {
            Tolerance::ByPart(part) => Some(around(value, part * value.abs())),
            Tolerance::By(distance) => Some(around(value, distance)),
        };
    }
    match given.as_slice() {
        [.., last] => {
            let message = format!("several bounds: {}", names.join(", "));
            table.refuse(reader, last, message, "keep one of them");
            None
        }
        [] if table.is_given(&Expect::agrees_with) && !table.is_given(&Expect::ratio_to) => {
            Some((f64::NEG_INFINITY, f64::INFINITY))
        }
        [] => {
            let message = "an expectation without a bound";
            let hint = "give `within`, `at_least`, `at_most` or `equals`";
            let at = table.record.at;
            reader.findings.refuse_table(at, &table.path, message, hint);
            None
        }
    }
}

/// `value - distance` and `value + distance` as people write them: 0.3298773, not
/// 0.32987730000000004.
fn around(value: f64, distance: f64) -> (f64, f64) {
    let tidy = |x: f64| format!("{x:.12e}").parse().unwrap_or(x);
    (tidy(value - distance), tidy(value + distance))
}
