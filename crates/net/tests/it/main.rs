//! The real ground against its own rules.

mod attack;
mod dissector;
mod payload;
mod spreading;
mod session;
mod vectors;
mod wire;
