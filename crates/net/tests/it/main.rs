//! The real ground against its own rules.

mod amplification;
mod attack;
mod crowd;
mod dissector;
mod hostile;
mod kernel_tcp;
mod malformed;
mod messages;
mod moving;
mod narrow;
mod page;
mod payload;
mod python;
mod reception;
mod seeds;
mod session;
mod spreading;
mod transfer;
mod vanishing;
mod vectors;
mod wire;
