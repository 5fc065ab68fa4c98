//! How late this host's loop is. A packet in virtual time is handled as it arrives and answered at
//! once; here both take what the scheduler takes. Three distributions, of a few instructions per
//! datagram and one look at the clock per batch.

use fullpipe_host::HostCounts;
use fullpipe_run::{Histogram, HostLateness, Lateness};
use fullpipe_units::Time;

/// Arrivals, departures and timers of one event loop: how late each was handled.
#[derive(Debug, Default)]
pub struct LoopLateness {
    arrivals: Histogram,
    departures: Histogram,
    timers: Histogram,
    /// The turn before: what waited then was not due, or not there.
    before: Time,
}

impl LoopLateness {
    /// The timers due by `now` are served.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        self.before = now;
    }

    /// A datagram that the kernel received at `at` is handled.
    #[inline]
    pub fn arrival(&mut self, now: Time, at: Time) {
        self.arrivals.record(now.saturating_since(at));
    }

    /// `left` datagrams that bear the time `now` are with the operating system.
    #[inline]
    pub fn departure(&mut self, gone: Time, now: Time, left: usize) {
        let late = gone.saturating_since(now);
        self.departures
            .record_many(late, u32::try_from(left).unwrap_or(u32::MAX));
    }

    /// A timer is served. One that was set for a time in the past was not late before the turn that
    /// set it.
    #[inline]
    pub fn timer(&mut self, now: Time, due: Time) {
        self.timers
            .record(now.saturating_since(due.max(self.before)));
    }

    /// The run ends. Arrivals are known if some had a stamp, or if there were none at a port that
    /// stamps them (`stamps`): an option that the kernel takes and then ignores does not make a
    /// host prompt.
    pub fn finish(&self, counts: &HostCounts, stamps: bool) -> HostLateness {
        let known = self.arrivals.count() > 0 || (stamps && counts.datagrams_in == 0);
        HostLateness {
            arrivals: known.then(|| Lateness::of(&self.arrivals)),
            departures: Lateness::of(&self.departures),
            timers: Lateness::of(&self.timers),
            local_stalls: counts.local_stalls,
        }
    }
}
