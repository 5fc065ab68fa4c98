//! The real ground against its own rules.

mod dissector;
mod vectors;
mod wire;
