//! Random loss: its keys, and what the simulator makes of them.

use fullpipe_run::Loss;

use crate::value::{At, Either, Findings, Key, Kinds, Sub, Words, keys, kinds};

keys! {
    /// `loss` as a table.
    LossTable by LossModel {
        model: word(LossModel) [!], "gilbert-elliott", "loss process";
        probability: fraction, 1e-4, "probability of loss of each packet";
        to_bad: fraction, 1e-4, "from the good to the bad state, per packet";
        to_good: fraction ~ "1e-4", 0.1,
            "from the bad to the good state, per packet";
        good: fraction [= 0.0], 0, "probability of loss in the good state";
        bad: fraction [= 1.0], 0.5, "probability of loss in the bad state";
    }
}

kinds! {
    /// A loss process.
    Losses of LossTable,
    /// Word of a loss process.
    by LossModel {
        Bernoulli = "bernoulli", "each packet independently" => { probability: f64 [!] };
        GilbertElliott = "gilbert-elliott", "two states, one step per packet" => {
            to_bad: f64 [!], to_good: f64 [!], good: f64, bad: f64,
        };
    }
}

/// The same as [`loss`], for a whole run: a path that carries nothing is most often a slip.
pub(crate) fn lasting<T>(
    at: &At<'_, T>,
    key: &Key,
    value: &Either<f64, Sub<LossTable>>,
    findings: &mut Findings,
) -> Loss {
    let loss = loss(at, key, value, findings);
    if matches!(loss, Loss::Bernoulli { p } if p >= 1.0) {
        let message = "every packet is lost; one of a hundred is \"1%\" or 0.01";
        at.warn(findings, key, message);
    }
    loss
}

/// What a key of a table says: a probability, or a process with its keys.
pub(crate) fn loss<T>(
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
    table.required_keys(findings);
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
