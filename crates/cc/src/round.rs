//! Smallest and mean RTT of each round, smallest of the flow: what Vegas, its start-up test, Veno
//! and YeAH measure.
//!
//! Vegas compares the smallest RTT of one round with the smallest ever ("base"); the minimum drops
//! the samples that delayed ACKs stretched. A round ends with the ACK that carries
//! [`AckEvent::round_start`]; that ACK's own sample already belongs to the next round (Linux counts
//! it in the ending one; with more than two samples a round the minimum differs by one packet at
//! most).

use fullpipe_units::Span;

use crate::controller::AckEvent;

/// Minimum filter over the running round and over the flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundMin {
    base: Span,
    min: Span,
    sum: Span,
    samples: u32,
}

impl RoundMin {
    /// Nothing measured yet.
    pub const EMPTY: Self = Self {
        base: Span::MAX,
        min: Span::MAX,
        sum: Span::ZERO,
        samples: 0,
    };

    /// Takes the ACK's sample; if the ACK begins a round, returns what the finished one measured.
    pub fn on_ack(&mut self, ev: &AckEvent) -> Option<RoundEnd> {
        self.take(ev.round_start, ev.rtt)
    }

    /// The same with a sample that the caller has altered (a coarse clock).
    pub fn take(&mut self, round_start: bool, rtt: Option<Span>) -> Option<RoundEnd> {
        let end = round_start.then(|| RoundEnd {
            base: self.base,
            rtt: self.min,
            mean: if self.samples > 0 {
                self.sum / u64::from(self.samples)
            } else {
                self.min
            },
            samples: self.samples,
        });
        if end.is_some() {
            self.forget_round();
        }
        if let Some(rtt) = rtt {
            let rtt = rtt.max(Span::from_nanos(1));
            self.base = self.base.min(rtt);
            self.min = self.min.min(rtt);
            self.sum += rtt;
            self.samples = self.samples.saturating_add(1);
        }
        end
    }

    /// Drops the running round's samples: recovery or idle time has spoilt them.
    pub fn forget_round(&mut self) {
        self.min = Span::MAX;
        self.sum = Span::ZERO;
        self.samples = 0;
    }

    /// Drops the base as well: the path may have changed.
    pub fn relearn(&mut self) {
        *self = Self::EMPTY;
    }

    /// Smallest RTT known; [`Span::MAX`] before the first sample.
    pub fn base(&self) -> Span {
        self.base
    }
}

/// RTT samples of one finished round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundEnd {
    /// Smallest RTT of the flow.
    pub base: Span,
    /// Smallest RTT of the round.
    pub rtt: Span,
    /// Mean RTT of the round (ns-2 Vegas).
    pub mean: Span,
    /// Samples in the round.
    pub samples: u32,
}

impl RoundEnd {
    /// More than two samples: fewer may all be stretched by delayed ACKs (Linux `tcp_vegas.c`, spec
    /// of 1.11).
    pub fn enough(&self) -> bool {
        self.samples > 2
    }

    /// This flow's segments in the queue, `w (rtt - base)/rtt`.
    pub fn queued(&self, w: f64) -> f64 {
        queued(w, self.base.as_secs_f64(), self.rtt.as_secs_f64())
    }

    /// Time the round's quickest segment spent in queues.
    pub fn queue_delay(&self) -> Span {
        self.rtt.saturating_sub(self.base)
    }
}

/// Vegas' estimate of the segments a flow keeps queued: expected minus actual rate, times `base`:
/// `w (rtt - base)/rtt`.
pub fn queued(w: f64, base: f64, rtt: f64) -> f64 {
    w * (rtt - base) / rtt
}

/// The same with the division by `base` (recent Linux): `w (rtt - base)/base`.
pub fn queued_over_base(w: f64, base: f64, rtt: f64) -> f64 {
    w * (rtt - base) / base
}

/// Divisor of Vegas' estimate of the backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// `w (rtt - base)/rtt`: paper, ns-2, Linux 2.6.
    Rtt,
    /// `w (rtt - base)/base`: recent Linux.
    Base,
}

impl Over {
    /// The estimate for a finished round.
    pub fn diff(self, w: f64, end: &RoundEnd) -> f64 {
        let (base, rtt) = (end.base.as_secs_f64(), end.rtt.as_secs_f64());
        match self {
            Over::Rtt => queued(w, base, rtt),
            Over::Base => queued_over_base(w, base, rtt),
        }
    }

    /// From the words `rtt` and `base`.
    pub fn from_word(word: &str) -> Self {
        if word == "base" {
            Over::Base
        } else {
            Over::Rtt
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::{ack, at_ms, ms, near, round_start};

    #[test]
    fn a_round_reports_its_own_minimum_and_the_flows() {
        let mut filter = RoundMin::EMPTY;
        let first = filter.on_ack(&round_start(at_ms(0), 1, ms(100.0))).unwrap();
        assert_eq!(first.samples, 0);
        assert!(!first.enough());
        assert!(filter.on_ack(&ack(at_ms(1), 1, ms(90.0))).is_none());
        filter.on_ack(&ack(at_ms(2), 1, ms(95.0)));
        let end = filter
            .on_ack(&round_start(at_ms(100), 1, ms(120.0)))
            .unwrap();
        assert_eq!((end.base, end.rtt, end.samples), (ms(90.0), ms(90.0), 3));
        assert_eq!(
            end.mean,
            Span::from_nanos((100_000_000 + 90_000_000 + 95_000_000) / 3)
        );
        filter.on_ack(&ack(at_ms(101), 1, ms(110.0)));
        let end = filter
            .on_ack(&round_start(at_ms(200), 1, ms(100.0)))
            .unwrap();
        assert_eq!((end.base, end.rtt, end.samples), (ms(90.0), ms(110.0), 2));
        assert!(!end.enough());
        assert_eq!(end.queue_delay(), ms(20.0));
        near(end.queued(110.0), 20.0, 1e-9);
    }

    #[test]
    fn an_ack_without_a_sample_counts_nothing() {
        let mut filter = RoundMin::EMPTY;
        filter.on_ack(&AckEvent {
            rtt: None,
            ..ack(at_ms(0), 1, ms(1.0))
        });
        assert_eq!(filter, RoundMin::EMPTY);
    }

    #[test]
    fn relearning_forgets_the_base() {
        let mut filter = RoundMin::EMPTY;
        filter.on_ack(&ack(at_ms(0), 1, ms(90.0)));
        filter.forget_round();
        assert_eq!(filter.base(), ms(90.0));
        filter.relearn();
        assert_eq!(filter.base(), Span::MAX);
    }

    #[test]
    fn a_zero_sample_is_one_nanosecond() {
        let mut filter = RoundMin::EMPTY;
        filter.on_ack(&ack(at_ms(0), 1, Span::ZERO));
        let end = filter
            .on_ack(&round_start(at_ms(1), 1, Span::ZERO))
            .unwrap();
        assert_eq!(end.queued(10.0), 0.0);
    }
}
