//! Runs over UDP: the sender and receiver of `fullpipe-flow`, unchanged, between any two hosts,
//! without privilege.
//!
//! - [`wire`]: what a datagram looks like.
//! - [`io`]: sockets in batches, one datagram at a time or with segmentation offload; waiting that
//!   is precise.
//! - [`endpoint`]: one thread that hosts the senders, or the receivers, of a run.
//! - [`emulator`]: the path of a scenario (rates, delays, queues, losses) between two sockets of
//!   one process, in real time.
//! - [`ground`]: a run with both hosts on this machine.
//! - [`session`]: how two hosts agree on a run: handshake, keys, limits, results.
//! - [`shown`]: what people are shown of others.
//! - [`headers`]: what IP and UDP put in front of a datagram.
//! - [`lender`]: memory that is borrowed as it is used.
//! - [`payload`]: what a flow carries, asked for and handed over by segment number.
//! - [`file`]: a file as the data of a flow.
//! - [`content`]: how two hosts agree on what flows carry, and whether it arrived.
//! - [`tcp`]: flows over the kernels' own TCP, beside a session.

pub mod content;
pub mod emulator;
pub mod endpoint;
pub mod file;
pub mod ground;
pub mod headers;
pub mod io;
pub mod lender;
pub mod orders;
pub mod payload;
pub mod session;
pub mod shown;
pub mod tcp;
mod too_many;
pub mod wire;
