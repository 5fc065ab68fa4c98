//! Scheduling lateness of an end host's event loop (real-time runs only).

use fullpipe_units::Span;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Distribution of a lateness, in a few numbers of fixed size: they travel between hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Events that it is of. All else is zero if there were none.
    pub count: u64,
    /// Mean.
    pub mean: Span,
    /// Median.
    pub p50: Span,
    /// 99th percentile.
    pub p99: Span,
    /// Largest.
    pub max: Span,
}

/// Lateness of one host. A segment that is handled `arrivals` late and answered by an ACK that
/// leaves `departures` late adds both to the round trip, and so does its ACK at the other end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLateness {
    /// From the kernel's receive stamp of a datagram until it was handled; `None`: there are no
    /// stamps, and it is not known.
    pub arrivals: Option<Lateness>,
    /// From the time that a datagram takes for that of its departure until the operating system had
    /// taken it.
    pub departures: Lateness,
    /// From when a timer was due (pacing, delayed ACKs, timeouts, datagrams of sources) until it
    /// was served.
    pub timers: Lateness,
    /// Batches that the operating system refused to take whole.
    pub local_stalls: u64,
}

impl Lateness {
    /// Summary of a histogram of delays.
    pub fn of(samples: &Histogram) -> Self {
        let quantile = |q| samples.quantile(q).unwrap_or(Span::ZERO);
        Self {
            count: samples.count(),
            mean: Span::from_secs_f64(samples.mean_s().unwrap_or(0.0)),
            p50: quantile(0.5),
            p99: quantile(0.99),
            max: samples.max().unwrap_or(Span::ZERO),
        }
    }
}

impl HostLateness {
    /// What the host adds to a mean round trip: everything between the arrival of a packet and the
    /// departure of its answer that an event in virtual time would not take. `None`: not known.
    pub fn added(&self) -> Option<Span> {
        Some(self.arrivals?.mean + self.departures.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_grows_by_what_an_answer_takes() {
        let mut samples = Histogram::default();
        for us in [100, 200, 600] {
            samples.record(Span::from_micros(us));
        }
        let arrivals = Lateness::of(&samples);
        assert_eq!((arrivals.count, arrivals.mean), (3, Span::from_micros(300)));
        assert_eq!(arrivals.max, Span::from_micros(600));
        let mut host = HostLateness {
            departures: Lateness {
                mean: Span::from_micros(50),
                ..Lateness::default()
            },
            ..HostLateness::default()
        };
        assert_eq!(host.added(), None, "without stamps nobody knows");
        host.arrivals = Some(arrivals);
        assert_eq!(host.added(), Some(Span::from_micros(350)));
        // From another host: nothing overflows.
        host.departures.mean = Span::MAX;
        assert_eq!(host.added(), Some(Span::MAX));
    }
}
