//! `precision` and what belongs to it.

use super::super::value::{Reader, Record, Value};
use super::table::{Known, Table};
use crate::Precision;

/// Reads how sure the means of `[measure]` are to be.
pub(crate) fn precision(
    reader: &mut Reader<'_>,
    measure: &Record,
    known: &Known<'_>,
) -> Option<Precision> {
    let table = Table::new(measure, "measure", known);
    if !measure.is_given("precision") {
        for key in ["precision_of", "max_seeds"] {
            if measure.is_given(key) && !measure.is_attempted("precision") {
                let message = "nothing is repeated without `precision`";
                table.refuse(reader, key, message, "write precision = \"2%\"");
            }
        }
        return None;
    }
    let target = measure.real("precision")?;
    if target <= 0.0 {
        let message = "no number of seeds is so precise";
        table.refuse(reader, "precision", message, "write for example \"2%\"");
        return None;
    }
    let mut of = Vec::new();
    for value in measure.many("precision_of") {
        if let Value::Text(name) = value {
            table.metric(reader, "precision_of", name);
            of.push(name.clone());
        }
    }
    if of.is_empty() {
        of.push("goodput_mbps".to_owned());
    }
    let most = measure
        .whole("max_seeds")
        .and_then(|n| u32::try_from(n).ok());
    Some(Precision {
        target,
        of,
        max_seeds: most.unwrap_or(DEFAULT_MAX_SEEDS),
    })
}

const DEFAULT_MAX_SEEDS: u32 = 30;
