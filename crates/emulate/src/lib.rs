//! A path between two network namespaces: real programs, the running kernel's TCP, the simulator's
//! links.
//!
//! A host is a network namespace with a TUN device; one thread carries packets from one device to
//! the other. What the links do is [`fullpipe_sim::Path`], the simulator's network itself. The
//! kernel hands over large packets (segmentation offload); they are cut to the size of the wire
//! before any link sees them, and merged again, if they leave together, on their way into the other
//! namespace.
//!
//! - [`vnet`], [`packet`], [`cut`], [`merge`]: packets and frames.
//! - [`namespace`], [`netlink`], [`queues`], [`household`], [`privilege`]: hosts and their
//!   processes.
//! - [`ways`], [`emulation`]: the path and its thread.
//! - [`netem`]: a path of the kernel's own queues instead.
//! - [`tap`], [`cross`]: what passes, flow by flow, and traffic that no host sends.
//! - [`stage`], [`signals`]: all of it together, and waiting for its end.
//! - [`truth`], [`probe`], [`witness`]: whether the path is what it was specified to be.

#![allow(clippy::disallowed_methods)]

pub mod cross;
pub mod cut;
pub mod emulation;
pub mod household;
pub mod merge;
pub mod namespace;
pub mod netem;
pub mod netlink;
pub mod packet;
pub mod privilege;
pub mod probe;
pub mod queues;
pub mod signals;
pub mod stage;
pub mod tap;
pub mod truth;
pub mod vnet;
pub mod ways;
pub mod witness;
