//! Integration tests.

mod scenario;
