//! The tuner: congestion control by path, for unmodified programs on an unmodified kernel.
//!
//! Rules of `fullpipe-policy` become maps; BPF programs read them at every ACK. The kernel's own
//! TCP keeps recovery, pacing and everything else; window growth, reductions, slow start and
//! ceilings are what a rule says.
//!
//! - [`layout`], [`image`]: rules as the bytes of the maps.
//! - [`tuner`], [`journal`]: what is done to which flow, and how it is taken back.
//! - [`divide`]: each flow's part of what a path has.
//! - [`plan`]: what a policy would change, before it is applied.
//! - [`probing`]: what is measured of paths.
//! - [`spread`]: initial windows that a packet scheduler spaces.
//! - [`arms`]: what became of flows with a rule, and of those that it left as they were.
//! - [`daemon`], [`guard`], [`folder`], [`control`], [`service`]: the process around it, the one
//!   that looks after it, their folder, what others say to them, and they to a service manager.
//! - [`metrics`]: what it did, for Prometheus.
//! - [`kernel`], [`bpf`], [`namespaces`], [`groups`], [`sockets`]: the kernel side, behind one
//!   trait.
//! - [`names`]: what algorithms are called.
//! - [`laws`]: the same programs for runs on the running kernel.
//! - [`trial`]: what of it this host can do.
//! - [`watch`]: a record of every ACK of chosen flows.
//! - [`inject`]: artificial loss, for a time.
//!
//! The programs are in `bpf/`; `bpf/law.h` is the arithmetic, which tests also run on the host.

#![allow(clippy::disallowed_methods)]

pub mod arms;
pub mod bpf;
pub mod control;
pub mod daemon;
pub mod divide;
#[cfg(test)]
mod fake;
pub mod folder;
pub mod groups;
pub mod guard;
pub mod image;
pub mod inject;
pub mod journal;
pub mod kernel;
pub mod laws;
pub mod layout;
pub mod metrics;
pub mod names;
pub mod namespaces;
pub mod plan;
pub mod probing;
pub mod service;
pub mod sockets;
pub mod spread;
mod state;
#[cfg(test)]
mod testing;
pub mod trial;
pub mod tuner;
pub mod watch;
