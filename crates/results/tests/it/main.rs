//! Integration tests.

mod agreement;
mod built_in;
mod compare;
mod determinism;
mod expect;
mod falsify;
mod history;
mod metrics;
mod precision;
mod qlog;
#[path = "../../../scenario/tests/it/ratios.rs"]
mod ratios;
mod resume;
mod small;
mod store;
mod store_support;
mod streaming;
mod trace_setting;
