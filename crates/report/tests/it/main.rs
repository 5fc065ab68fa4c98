//! Integration tests.

mod overlay;
mod page_types;
mod report;
#[path = "../../../results/tests/it/small.rs"]
mod small;
mod support;
