//! The real ground against its own rules.

mod wire;
