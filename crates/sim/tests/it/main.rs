//! Integration tests of the simulator.

mod build;
mod conservation;
mod controls;
mod determinism;
mod links;
mod mdone;
mod pings;
mod sources;
