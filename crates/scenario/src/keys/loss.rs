//! Random loss.

use super::super::value::{keys, kinds};

keys! {
    /// `loss` as a table.
    LossTable {
        model: word(LossModel), "gilbert-elliott", "loss process";
        probability: fraction, 1e-4, "bernoulli: probability of loss of each packet";
        to_bad: fraction, 1e-4, "gilbert-elliott: from the good to the bad state, per packet";
        to_good: fraction ~ "1e-4", 0.1,
            "gilbert-elliott: from the bad to the good state, per packet";
        good: fraction [= 0.0], 0, "gilbert-elliott: probability of loss in the good state";
        bad: fraction [= 1.0], 0.5, "gilbert-elliott: probability of loss in the bad state";
    }
}

kinds! {
    /// A loss process.
    Losses of LossTable,
    /// Word of a loss process.
    by LossModel {
        Bernoulli = "bernoulli", "each packet independently" { probability: f64 [!] };
        GilbertElliott = "gilbert-elliott", "two states, one step per packet" {
            to_bad: f64 [!], to_good: f64 [!], good: f64, bad: f64,
        };
    }
}
