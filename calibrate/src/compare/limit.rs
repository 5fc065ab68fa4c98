//! How far apart two values may be.

use serde::Serialize;

/// How far apart two values may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// This part of the reference, or this much, whichever is larger.
    Near {
        /// Part of the reference.
        relative: f64,
        /// Absolute limit, in the metric's unit.
        absolute: f64,
    },
    /// The same, or the 95 % intervals have a value in common.
    Chance {
        /// Part of the reference.
        relative: f64,
        /// Absolute limit, in the metric's unit.
        absolute: f64,
    },
    /// The 95 % intervals have a value in common.
    Overlap,
    /// No difference.
    Same,
}

/// Limit of goodput.
pub const GOODPUT: Limit = relative(0.02);
/// Limit of the mean RTT.
pub const RTT: Limit = relative(0.04);
/// Limit of the window at the first loss, segments.
pub const FIRST_LOSS: Limit = Limit::Near {
    relative: 0.02,
    absolute: 2.0,
};
/// Limit of loss events and retransmissions.
pub const EVENTS: Limit = Limit::Near {
    relative: 0.15,
    absolute: 2.0,
};
/// Limit of goodput and mean RTT under a condition.
pub const DISTURBED: Limit = Limit::Chance {
    relative: 0.05,
    absolute: 0.0,
};
/// Limit of loss events and retransmissions under a condition.
pub const DISTURBED_EVENTS: Limit = Limit::Chance {
    relative: 0.15,
    absolute: 2.0,
};
/// Limit of the completion time of a transfer.
pub const COMPLETION: Limit = relative(0.02);
/// Limit of a share, percentage points of the link.
pub const SHARE: Limit = Limit::Near {
    relative: 0.0,
    absolute: 5.0,
};

const fn relative(relative: f64) -> Limit {
    Limit::Near {
        relative,
        absolute: 0.0,
    }
}

impl Limit {
    /// True if two values, and for [`Limit::Overlap`] their intervals, are within the limit. What
    /// happened on one side alone is outside.
    pub fn holds(
        self,
        oracle: Option<f64>,
        sim: Option<f64>,
        half_widths: Option<(f64, f64)>,
    ) -> bool {
        let (oracle, sim) = match (oracle, sim) {
            (Some(o), Some(s)) => (o, s),
            (None, None) => return true,
            _ => return false,
        };
        let apart = (sim - oracle).abs();
        match self {
            Self::Near { relative, absolute } => {
                apart <= (relative * oracle.abs()).max(absolute) + ROUNDING * oracle.abs()
            }
            Self::Chance { relative, absolute } => {
                let near = Self::Near { relative, absolute };
                near.holds(Some(oracle), Some(sim), None)
                    || Self::Overlap.holds(Some(oracle), Some(sim), half_widths)
            }
            Self::Overlap => half_widths.is_some_and(|(a, b)| apart <= a + b),
            Self::Same => oracle == sim,
        }
    }
}

/// A value exactly on a limit is inside, whatever the last bit of the product says.
const ROUNDING: f64 = 1e-12;
