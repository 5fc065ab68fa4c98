//! `precision` and what belongs to it.

use super::table::{Known, Referring};
use crate::keys::Measures;
use crate::scenario::Precision;
use crate::value::{At, Reader, Record};

/// Reads how sure the means of `[measure]` are to be.
pub(crate) fn precision(
    reader: &mut Reader<'_>,
    measure: &Record,
    known: &Known<'_>,
) -> Option<Precision> {
    let at = At::<Measures>::new(measure, "measure");
    let table = Referring { at, known };
    if !table.is_given(&Measures::precision) {
        for key in [&Measures::precision_of, &Measures::max_seeds] {
            if table.is_given(key) && !table.is_attempted(&Measures::precision) {
                let message = "nothing is repeated without `precision`";
                table.refuse(reader, key, message, "write precision = \"2%\"");
            }
        }
        return None;
    }
    let target = table.precision?;
    if target <= 0.0 {
        let message = "no number of seeds is so precise";
        table.refuse(
            reader,
            &Measures::precision,
            message,
            "write for example \"2%\"",
        );
        return None;
    }
    if table.is_given(&Measures::precision_of) {
        for name in &table.precision_of {
            table.metric(reader, &Measures::precision_of, name);
        }
    }
    Some(Precision {
        target,
        of: table.precision_of.clone(),
        max_seeds: table.max_seeds,
    })
}
