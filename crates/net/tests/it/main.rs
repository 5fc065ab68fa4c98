//! The real ground against its own rules.

mod amplification;
mod attack;
mod dissector;
mod hostile;
mod moving;
mod narrow;
mod payload;
mod python;
mod reception;
mod seeds;
mod session;
mod spreading;
mod transfer;
mod vectors;
mod wire;
