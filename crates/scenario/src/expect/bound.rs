//! What an expectation holds a value against: a bound, and perhaps a peer.

use super::super::value::{Reader, Value};
use super::table::Table;
use crate::Against;

/// What the bound is about.
pub(super) fn against(reader: &mut Reader<'_>, table: &Table<'_>) -> Against {
    let given = |key| table.record.is_given(key);
    match (given("agrees_with"), given("ratio_to")) {
        (true, true) => {
            let message = "contradicts `agrees_with`";
            table.refuse(reader, "ratio_to", message, "keep one of them");
            Against::Agreement
        }
        (true, false) => Against::Agreement,
        (false, true) => Against::Ratio,
        (false, false) => Against::Bound,
    }
}

/// The smallest and the largest value that is accepted.
pub(super) fn bound(reader: &mut Reader<'_>, table: &Table<'_>) -> Option<(f64, f64)> {
    let r = table.record;
    let forms = ["within", "at_least", "at_most", "equals"];
    let given: Vec<&str> = forms.into_iter().filter(|form| r.is_given(form)).collect();
    if r.is_given("tolerance") && !r.is_given("equals") {
        let hint = "write `equals` beside it, or `within = [low, high]`";
        table.refuse(reader, "tolerance", "a tolerance belongs to `equals`", hint);
    }
    match given.as_slice() {
        ["within"] => match r.field("within").map(|field| &field.value) {
            Some(Value::Bounds(low, high)) => Some((*low, *high)),
            _ => None,
        },
        ["at_least"] => Some((r.real("at_least")?, f64::INFINITY)),
        ["at_most"] => Some((f64::NEG_INFINITY, r.real("at_most")?)),
        ["at_least", "at_most"] => {
            let (low, high) = (r.real("at_least")?, r.real("at_most")?);
            if low > high {
                let message = format!("the lower bound {low} is above the upper one");
                let hint = format!("write within = [{high}, {low}]");
                table.refuse(reader, "at_most", message, hint);
            }
            Some((low, high))
        }
        ["equals"] => {
            let value = r.real("equals")?;
            match r.field("tolerance").map(|field| &field.value) {
                Some(Value::Tolerance(part, true)) => Some(around(value, part * value.abs())),
                Some(Value::Tolerance(distance, false)) => Some(around(value, *distance)),
                Some(_) => None,
                None => {
                    table.missing(reader, "tolerance", "tolerance = \"1%\", or tolerance = 0");
                    None
                }
            }
        }
        [] if r.is_given("agrees_with") && !r.is_given("ratio_to") => {
            Some((f64::NEG_INFINITY, f64::INFINITY))
        }
        [] => {
            let message = "an expectation without a bound";
            let hint = "give `within`, `at_least`, `at_most` or `equals`".to_owned();
            reader.refuse_key(r.at, &table.path, message, Some(hint));
            None
        }
        [.., last] => {
            let message = format!("several bounds: {}", given.join(", "));
            table.refuse(reader, last, message, "keep one of them");
            None
        }
    }
}

/// `value - distance` and `value + distance` as people write them: 0.3298773, not 0.32987730000000004.
fn around(value: f64, distance: f64) -> (f64, f64) {
    let tidy = |x: f64| format!("{x:.12e}").parse().unwrap_or(x);
    (tidy(value - distance), tidy(value + distance))
}
