//! What runs in real time are doing while they do it: in lines, on a dashboard, for Prometheus.
//!
//! All of it is made by threads of its own, from numbers that hosts publish ten times a second
//! whether anybody reads them or not: watching a run does not change it.

pub mod dashboard;
pub mod lines;
pub mod prometheus;
