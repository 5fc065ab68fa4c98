//! Integration tests.

mod agreement;
mod compare;
mod determinism;
mod expect;
mod metrics;
mod precision;
mod resume;
mod store;
mod store_support;
