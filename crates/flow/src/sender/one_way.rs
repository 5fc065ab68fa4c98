//! One-way delay, from two clocks that need not agree: as the receiver has measured it, or from the
//! time stamps of the two hosts (RFC 7323).
//!
//! Either is the delay and an unknown offset. As RFC 6817 section 2.2 does, only its growth over
//! the smallest difference is believed; the smallest stands for half of the smallest RTT, so that
//! the delay is one of plausible size. The stamps have whole milliseconds, and the receiver's is of
//! the ACK: they contain the wait of a delayed one.

use fullpipe_units::{Span, Time};

use crate::segment::Ack;

/// The smallest difference so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OneWay {
    /// Receiver's stamp less the sender's, milliseconds modulo 2^32.
    least: Option<u32>,
    /// As the receiver has measured it.
    least_measured: Option<Span>,
}

impl OneWay {
    /// The delay of the segment whose stamp `echo` an ACK carries back.
    pub(super) fn sample(&mut self, ack: &Ack, echo: Time, min_rtt: Span) -> Span {
        let base = if min_rtt == Span::MAX {
            Span::ZERO
        } else {
            min_rtt / 2
        };
        let growth = match ack.one_way {
            Some(measured) => self.growth_measured(measured),
            None => self.growth_of_stamps(ack, echo),
        };
        base + growth
    }

    fn growth_measured(&mut self, measured: Span) -> Span {
        let least = self.least_measured.map_or(measured, |l| l.min(measured));
        self.least_measured = Some(least);
        measured - least
    }

    fn growth_of_stamps(&mut self, ack: &Ack, echo: Time) -> Span {
        let sent_ms = (echo.as_nanos() / 1_000_000) as u32;
        let difference = ack.stamp_ms.wrapping_sub(sent_ms);
        let least = *self.least.get_or_insert(difference);
        let growth = difference.wrapping_sub(least).cast_signed();
        if growth < 0 {
            self.least = Some(difference);
        }
        Span::from_millis(growth.max(0).cast_unsigned().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::SackBlocks;

    /// Clocks an hour apart, a base delay of 30 ms and a queue of 0 to 25 ms: with an RTT of 60 ms
    /// the delay is the true one, whatever the offset, over the wrap of the stamps as well.
    #[test]
    fn the_offset_of_the_clocks_does_not_matter() {
        for offset in [0, 3_600_000, u32::MAX - 1000] {
            let mut one_way = OneWay::default();
            for (i, queue) in [0, 10, 25, 3, 0].into_iter().enumerate() {
                let sent = Time::ZERO + Span::from_millis(500 * i as u64);
                let ack = Ack {
                    cum: 0,
                    syn: false,
                    echo: sent,
                    stamp_ms: (500 * i as u32 + 30 + queue).wrapping_add(offset),
                    one_way: None,
                    sacks: SackBlocks::default(),
                    dsack: false,
                    ece: false,
                    window_end: u64::MAX,
                };
                let delay = one_way.sample(&ack, sent, Span::from_millis(60));
                assert_eq!(delay, Span::from_millis(30 + u64::from(queue)), "{offset}");
            }
        }
    }
}
