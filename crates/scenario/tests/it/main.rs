//! Integration tests.

mod bad_input;
mod network;
mod scenario;
mod scenario_text;
