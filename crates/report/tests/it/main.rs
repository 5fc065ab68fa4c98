//! Integration tests.

mod overlay;
mod page_types;
mod report;
mod support;
