//! Integration tests.

mod bad_input;
mod defaults;
mod every_key;
mod inert;
mod network;
mod ratios;
mod recovery;
mod scenario;
mod scenario_text;
mod short_buffer;
