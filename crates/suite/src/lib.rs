//! fullpipe-suite

pub mod compare;
pub mod figure;
pub mod label;
pub mod metrics;
pub mod result;
pub mod run;
pub mod scenario;
pub mod store;
