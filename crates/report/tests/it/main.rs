//! Integration tests.

mod overlay;
mod report;
mod support;
