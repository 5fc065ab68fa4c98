#![doc = include_str!("../README.md")]
// Examples compile as printed, without a warning.
#![doc(test(attr(deny(unused))))]
#![cfg_attr(not(test), no_std)]

#[macro_use]
extern crate alloc;
#[cfg(feature = "guests")]
extern crate std;

// Unit tests share the round-based driver of the integration tests. `gentle.rs` is the law that
// CONTRIBUTING.md prints.
#[cfg(test)]
extern crate self as fullpipe_cc;
#[cfg(test)]
#[path = "../tests/it/rounds.rs"]
mod rounds;

#[macro_use]
pub mod params;
#[macro_use]
pub mod entry;

#[cfg(test)]
#[path = "../tests/it/gentle.rs"]
pub mod gentle;

pub mod classic;
pub mod controller;
mod draws;
pub mod law;
#[cfg(feature = "linux")]
pub mod linux;
mod max_filter;
pub mod model;
#[cfg(feature = "registry")]
pub mod registry;
#[cfg(feature = "registry")]
pub mod response;
pub mod round;
pub mod sending;
pub mod startup;

pub use classic::{Base, Classic, Frame, Setup, StartUp, Window, WindowLaw};
pub use controller::{
    AckEvent, CongestionEvent, CongestionKind, Controller, Count, IdleEvent, LostSegment,
    MOST_VARIABLES, Phase, RateSample, RestartEvent, RtoEvent, Stamps, TakeOver,
};
pub use entry::Entry;
#[cfg(feature = "registry")]
pub use registry::{Kind, Stack, StackError, StackSpec};
pub use sending::{InitialSending, PacingGains};
