//! Congestion controllers for fast, long paths: pure functions of events, composed of start-up x window law.
//!
//! What it is: the algorithms, their parameters and provenance, and the registry that turns a spelling such as
//! `highspeed(low_window=31)+limited(max_ssthresh=100)` into a running controller. What it is not: it knows no packets,
//! clocks, sockets or generators; the sender in `fullpipe-flow` digests those into the events of [`controller`].
//!
//! ```
//! use fullpipe_cc::{Controller, Setup, StackSpec};
//!
//! let spec = StackSpec::parse("aimd(increase=15,decrease=0.3)").unwrap();
//! let stack = spec.controller(Setup { initial_window: 2.0, ..Setup::default() });
//! assert_eq!(stack.window(), 2.0);
//! assert!(stack.in_start_up());
//! ```

#![cfg_attr(not(test), no_std)]

#[macro_use]
extern crate alloc;

// Unit tests share the round-based driver and the rate-based controller of the integration tests.
#[cfg(test)]
extern crate self as fullpipe_cc;
#[cfg(test)]
#[path = "../tests/it/fixed_share.rs"]
mod fixed_share;
#[cfg(test)]
#[path = "../tests/it/rounds.rs"]
mod rounds;

#[macro_use]
pub mod params;
#[macro_use]
pub mod entry;

pub mod classic;
pub mod controller;
pub mod law;
#[cfg(feature = "linux")]
pub mod linux;
pub mod model;
#[cfg(feature = "registry")]
pub mod registry;
pub mod round;
pub mod sending;
pub mod startup;

pub use classic::{Base, Classic, Setup, StartUp, Window, WindowLaw};
pub use controller::{
    AckEvent, CongestionEvent, CongestionKind, Controller, Count, IdleEvent, MOST_VARIABLES, Phase,
    RateSample, RestartEvent, RtoEvent, Stamps,
};
pub use entry::Entry;
#[cfg(feature = "registry")]
pub use registry::{Kind, Stack, StackError, StackSpec};
pub use sending::{InitialSending, PacingGains};
