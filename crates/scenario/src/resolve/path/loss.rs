//! Random loss.

use fullpipe_run::Loss;

use super::super::super::keys::{LossTable, Losses};
use super::super::super::value::{At, Either, Findings, Key, Sub, Words};

/// What a key of a table says: a probability, or a process with its keys.
pub(in crate::resolve) fn loss<T>(
    at: &At<'_, T>,
    key: &Key,
    value: &Either<f64, Sub<LossTable>>,
    findings: &mut Findings,
) -> Loss {
    let table = match value {
        Either::First(p) if *p > 0.0 => return Loss::Bernoulli { p: *p },
        Either::First(_) => return Loss::None,
        Either::Second(table) => at.inside(key, table),
    };
    table.required(&LossTable::model, findings);
    let Some(model) = table.model else {
        return Loss::None;
    };
    let common = |key: &Key| key.name == LossTable::model.name;
    let what = format!("model `{}`", model.word());
    table.required_of(model.own(), findings);
    table.refuse_foreign(&what, model.own(), common, findings);
    match model.with(&table) {
        None => Loss::None,
        Some(Losses::Bernoulli { probability }) => Loss::Bernoulli { p: probability },
        Some(Losses::GilbertElliott {
            to_bad,
            to_good,
            good,
            bad,
        }) => Loss::GilbertElliott {
            to_bad,
            to_good,
            good,
            bad,
        },
    }
}
