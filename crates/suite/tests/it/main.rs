//! Integration tests.

mod agreement;
mod bad_input;
mod compare;
mod determinism;
mod metrics;
mod network;
mod precision;
mod report;
mod resume;
mod scenario;
mod scenario_text;
mod store;
mod store_support;
