//! A row of the trace for every ACK, where somebody can record them in the kernel
//! ([`Laws::record`](crate::laws::Laws::record)). Without, rows are samples.

use std::fmt;
use std::time::Instant;

use fullpipe_observe::tcp_info::TcpInfo;
use fullpipe_units::Span;

/// A record of every ACK of some flows. Dropped, nothing of it is left in the kernel.
pub trait Record: fmt::Debug {
    /// ACKs since the last call, in their order. To be called every few milliseconds: what the
    /// kernel side has no room for is missed.
    ///
    /// # Errors
    /// The kernel refuses, in a sentence.
    fn acks(&mut self) -> Result<Vec<Ack>, String>;

    /// ACKs that were missed so far.
    fn missed(&self) -> u64;
}

/// A sender as an ACK finds it.
#[derive(Clone, Debug)]
pub struct Ack {
    /// Time of the ACK, by the clock of `Instant` (CLOCK_MONOTONIC).
    pub at: Instant,
    /// Index of the flow among those that are recorded.
    pub flow: usize,
    /// What `TCP_INFO` says, as far as it concerns windows, losses and counters.
    pub info: TcpInfo,
    /// Part of a segment that the window has beyond the whole ones, of laws of our own.
    pub fraction: f64,
    /// Round-trip time of what was delivered last.
    pub rtt: Span,
}
