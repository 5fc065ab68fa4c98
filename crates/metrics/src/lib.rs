//! One run reduced to numbers. Each metric is one row of [`METRICS`]: its name, unit and direction,
//! what it says and where it is defined, and the function that computes it.
//!
//! What it is: [`measure`] turns the outcome of a run and the description of its flows into values
//! by name. What it is not: it knows no file, no seed and no statistic. The rows are in `rows/`;
//! what several of them need of a run is in `view/`. Adding a metric of numbers that a run already
//! has is one row.
//!
//! Sources: the metrics of SLAC 2003 (Cottrell and Bulot, "Evaluation of Advanced TCP Stacks on
//! Fast Long-Distance Production Networks") and of the Net100 project (2003); names and the choice
//! of metrics after RFC 5166. What these leave open is fixed here and said in the table: population
//! deviation, where a convergence time begins, what a group of streams reports.

mod delivery;
mod expression;
mod fidelity;
mod group;
mod harm;
mod measure;
mod metric;
mod number;
mod page;
mod rows;
mod run_metrics;
mod sharing;
mod synchronization;
mod table;
mod trajectory;
mod values;
mod view;
mod window_recovery;
mod wrapped;

pub use expression::{Expression, ExpressionError, called_otherwise, nearest, range, scope, unit};
pub use fidelity::{Check, Fidelity, HostFidelity};
pub use group::{FlowGroup, RecoveredAt, TrafficGroup, TrafficKind, bdp_packets};
pub use measure::{against, hold_against, measure, needs_baseline};
pub use metric::{Better, Metric, Scope, UNBOUNDED, plain_words};
pub use page::markdown;
pub use run_metrics::{FlowMetrics, LinkMetrics, RunMetrics, SeedRun, TrafficMetrics};
pub use sharing::{asymmetry, jain, rtt_unfairness};
pub use table::{METRICS, find, is_variable, names, names_of, scope_of};
pub use values::{Names, Values, value};
pub use wrapped::wrapped;

/// Relative area between the windows of a flow on two grounds.
pub const CWND_AREA: &str = "cwnd_area";
/// Largest difference of the times of two congestion events, in round trips.
pub const LOSS_TIME: &str = "loss_time_rtt";
/// Relative area between the distributions of completion times.
pub const COMPLETION_AREA: &str = "completion_area";
/// Every measure of two results that is no metric of one.
pub const MEASURES: [&str; 3] = [CWND_AREA, LOSS_TIME, COMPLETION_AREA];

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
#[allow(missing_docs)]
pub mod testing;

#[cfg(test)]
mod tests;
