//! Timers of a host: what each entry wakes.

/// What a timer of a host, or of the network that it is attached to, wakes. Flows are numbered by
/// slot, the rest by index of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake<E> {
    /// The measured part of the run begins.
    Measure,
    /// A flow starts.
    Start(u32),
    /// A flow has no new data from now on.
    Stop(u32),
    /// A flow's parameters change.
    Change(u32),
    /// A sender's timer: retransmission, pacing, persist.
    Sender(u32),
    /// A receiver's timer: delayed ACK.
    Receiver(u32),
    /// A datagram of cross traffic leaves.
    Cross(u32),
    /// The next short flow of a class arrives.
    Class(u32),
    /// A sender whose segment was refused by its interface tries again.
    Resume(u32),
    /// The network's own.
    Network(E),
}
