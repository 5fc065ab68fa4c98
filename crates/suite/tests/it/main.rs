//! Integration tests.

mod compare;
mod determinism;
mod metrics;
mod resume;
mod bad_input;
mod scenario;
mod store;
mod store_support;
