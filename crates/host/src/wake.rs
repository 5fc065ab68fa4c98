//! Timers of a host: what each entry wakes, and which one a flow waits for.

use fullpipe_units::Time;

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
    /// A session of a class goes on with its next short flow.
    Session(u32),
    /// A sender whose segment was refused by its interface tries again.
    Resume(u32),
    /// The network's own.
    Network(E),
}

/// The timer entry that an end of a flow waits for; [`Time::MAX`]: none. Entries are not removed:
/// one that it no longer waits for finds nobody.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Pending(Time);

impl Pending {
    pub(crate) const NONE: Self = Self(Time::MAX);

    /// When to set an entry for something that is wanted at `wants`, if the pending one is too
    /// late.
    #[inline(always)]
    pub(crate) fn arm(&mut self, wants: Time) -> Option<Time> {
        let earlier = wants < self.0;
        if earlier {
            self.0 = wants;
        }
        earlier.then_some(wants)
    }

    /// The entry that was set for `at` has come. False: it is not the one that is waited for.
    #[inline(always)]
    pub(crate) fn take(&mut self, at: Time) -> bool {
        let current = self.0 == at;
        if current {
            *self = Self::NONE;
        }
        current
    }
}
