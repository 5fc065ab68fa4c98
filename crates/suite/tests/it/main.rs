//! Integration tests.

mod compare;
mod determinism;
mod metrics;
mod resume;
mod scenario;
mod store;
mod store_support;
