//! The real ground against its own rules.

mod dissector;
mod payload;
mod vectors;
mod wire;
