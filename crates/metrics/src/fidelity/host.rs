//! How prompt one of the two hosts of a run was.

use fullpipe_run::{HostLateness, Lateness};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lateness of one host, milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostFidelity {
    /// What it added to a mean round trip: `arrival_mean_ms` and `departure_mean_ms`. Absent where
    /// the kernel says not when it received a datagram: then it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_ms: Option<f64>,
    /// From the kernel's receive stamp of a datagram until it was handled, mean; absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_mean_ms: Option<f64>,
    /// 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_p99_ms: Option<f64>,
    /// Largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_max_ms: Option<f64>,
    /// From the time that a datagram takes for that of its departure until the operating system had
    /// taken it, mean.
    pub departure_mean_ms: f64,
    /// 99th percentile.
    pub departure_p99_ms: f64,
    /// Largest.
    pub departure_max_ms: f64,
    /// From when a timer was due (pacing, delayed ACKs, timeouts, datagrams) until it was served,
    /// mean.
    pub timer_mean_ms: f64,
    /// 99th percentile.
    pub timer_p99_ms: f64,
    /// Largest.
    pub timer_max_ms: f64,
    /// Timers served.
    pub timers: u64,
    /// Sends that the operating system refused.
    pub local_stalls: u64,
}

impl HostFidelity {
    /// From the lateness that a host recorded, milliseconds; `None` if it recorded nothing.
    pub fn of(host: &HostLateness) -> Option<Self> {
        if *host == HostLateness::default() {
            return None;
        }
        let arrivals = |of: fn(&Lateness) -> fullpipe_units::Span| {
            host.arrivals.as_ref().map(|a| of(a).as_millis_f64())
        };
        let HostLateness {
            departures, timers, ..
        } = host;
        Some(Self {
            added_ms: host.added().map(|added| added.as_millis_f64()),
            arrival_mean_ms: arrivals(|a| a.mean),
            arrival_p99_ms: arrivals(|a| a.p99),
            arrival_max_ms: arrivals(|a| a.max),
            departure_mean_ms: departures.mean.as_millis_f64(),
            departure_p99_ms: departures.p99.as_millis_f64(),
            departure_max_ms: departures.max.as_millis_f64(),
            timer_mean_ms: timers.mean.as_millis_f64(),
            timer_p99_ms: timers.p99.as_millis_f64(),
            timer_max_ms: timers.max.as_millis_f64(),
            timers: timers.count,
            local_stalls: host.local_stalls,
        })
    }

    /// The largest of the 99th percentiles: of arrivals, departures and, if they are so many that a
    /// hundredth of them means anything, timers.
    pub fn p99_ms(&self) -> f64 {
        let timers = match self.timers >= MANY {
            true => self.timer_p99_ms,
            false => 0.0,
        };
        let known = self.departure_p99_ms.max(timers);
        self.arrival_p99_ms.map_or(known, |p99| p99.max(known))
    }

    /// The worse of two runs, number by number.
    pub fn worse(self, other: Self) -> Self {
        let (a, b) = (self, other);
        Self {
            added_ms: worst_of(a.added_ms, b.added_ms, f64::max),
            arrival_mean_ms: worst_of(a.arrival_mean_ms, b.arrival_mean_ms, f64::max),
            arrival_p99_ms: worst_of(a.arrival_p99_ms, b.arrival_p99_ms, f64::max),
            arrival_max_ms: worst_of(a.arrival_max_ms, b.arrival_max_ms, f64::max),
            departure_mean_ms: a.departure_mean_ms.max(b.departure_mean_ms),
            departure_p99_ms: a.departure_p99_ms.max(b.departure_p99_ms),
            departure_max_ms: a.departure_max_ms.max(b.departure_max_ms),
            timer_mean_ms: a.timer_mean_ms.max(b.timer_mean_ms),
            timer_p99_ms: a.timer_p99_ms.max(b.timer_p99_ms),
            timer_max_ms: a.timer_max_ms.max(b.timer_max_ms),
            timers: a.timers.max(b.timers),
            local_stalls: a.local_stalls.saturating_add(b.local_stalls),
        }
    }
}

/// The worse of two; the known one where the other is absent.
pub fn worst_of<T>(a: Option<T>, b: Option<T>, worse: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(worse(a, b)),
        (a, b) => a.or(b),
    }
}

/// Timers of which the 99th percentile is more than the one that was latest.
const MANY: u64 = 200;
