//! Options of a comparison: metrics, thresholds, view.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::agreement::judged;

/// What is compared, and the largest difference that counts as equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Largest accepted relative difference, `|b - a| / |a|`, of what has no threshold of its own:
    /// `loss_events` and `timeouts` are to be equal, `loss_time_rtt` within one round trip.
    pub threshold: f64,
    /// The same for single metrics, by name, those with a threshold of their own included.
    pub thresholds: BTreeMap<String, f64>,
    /// Metrics to compare; empty: all of the table.
    pub metrics: Vec<String>,
    /// Metrics, agreement of grounds, or whichever fits the two results.
    pub view: View,
    /// Cases with runs that were not what the scenario says count, too.
    pub with_flagged: bool,
}

/// Rows that decide whether two results agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// The agreement, if the two are results of different grounds or kernels; the metrics
    /// otherwise.
    #[default]
    Auto,
    /// Every metric.
    Metrics,
    /// The agreement: see [`crate::agreement`].
    Agreement,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threshold: DEFAULT_THRESHOLD,
            thresholds: BTreeMap::new(),
            metrics: Vec::new(),
            view: View::Auto,
            with_flagged: false,
        }
    }
}

impl Options {
    pub(crate) fn threshold_of(&self, metric: &str) -> f64 {
        let named = self.thresholds.get(metric).copied();
        let own = named.or_else(|| judged::threshold(metric));
        own.unwrap_or(self.threshold)
    }
}

/// 5 %.
pub const DEFAULT_THRESHOLD: f64 = 0.05;
