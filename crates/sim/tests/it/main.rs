//! Integration tests of the simulator.

mod any_link;
mod bbr;
mod bbr3_kernel;
mod bbr_kernels;
mod bbr_timelines;
mod build;
mod capture;
mod conservation;
mod controls;
mod determinism;
mod elements;
mod links;
mod losses;
mod mdone;
mod path;
mod pings;
mod queues;
mod schedule;
mod series;
mod short_flows;
mod sources;
