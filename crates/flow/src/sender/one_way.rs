//! One-way delay, from two clocks that need not agree: as the receiver has measured it, from the
//! time stamp of an ACK and how long the receiver held it, or from the time stamps of the two hosts
//! alone (RFC 7323).
//!
//! Either is the delay and an unknown offset. As RFC 6817 section 2.2 does, only its growth over
//! the smallest difference is believed; the smallest stands for half of the smallest RTT, so that
//! the delay is one of plausible size. The stamps have whole milliseconds, and the receiver's is of
//! the ACK: where nobody says how long it was held they contain the wait of a delayed one.

use fullpipe_units::{Span, Time};

use crate::segment::Ack;

/// The smallest difference so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OneWay {
    /// Receiver's stamp less the sender's, milliseconds modulo 2^32.
    least: Option<u32>,
    /// Least of the delays that the receiver has measured itself.
    least_measured: Option<Span>,
    /// Arrival by the receiver's clock less departure by the sender's, microseconds modulo
    /// [`WRAP`].
    least_arrival: Option<u64>,
    /// What the receiver says of the ACK that comes next: so long ago came the newest segment.
    held: Option<Span>,
}

impl OneWay {
    /// The receiver held the ACK that comes next for so long, since its latest arrival.
    pub(super) fn note_held(&mut self, held: Span) {
        self.held = Some(held);
    }

    /// The delay of the segment whose stamp the ACK echoes or, if it is known how long the ACK was
    /// held, of the newest that it covers, which left at `newest`.
    #[inline]
    pub(super) fn sample(&mut self, ack: &Ack, newest: Time, min_rtt: Span) -> Span {
        self.sample_of(ack.one_way, ack.stamp_ms, ack.echo, newest, min_rtt)
    }

    /// Gets values, so that a caller need not have the ACK in memory.
    fn sample_of(
        &mut self,
        measured: Option<Span>,
        stamp_ms: u32,
        echo: Time,
        newest: Time,
        min_rtt: Span,
    ) -> Span {
        let base = if min_rtt == Span::MAX {
            Span::ZERO
        } else {
            min_rtt / 2
        };
        let growth = match (measured, self.held.take()) {
            (Some(measured), _) => self.growth_measured(measured),
            (None, Some(held)) => self.growth_of_arrivals(stamp_ms, held, newest),
            (None, None) => self.growth_of_stamps(stamp_ms, echo),
        };
        base + growth
    }

    fn growth_measured(&mut self, measured: Span) -> Span {
        let least = self.least_measured.map_or(measured, |l| l.min(measured));
        self.least_measured = Some(least);
        measured - least
    }

    fn growth_of_arrivals(&mut self, stamp_ms: u32, held: Span, sent: Time) -> Span {
        let us = |nanos: u64| nanos / 1000 % WRAP;
        let before = us(held.as_nanos()) + us(sent.as_nanos());
        let difference = (u64::from(stamp_ms) * 1000 + 2 * WRAP - before) % WRAP;
        let least = *self.least_arrival.get_or_insert(difference);
        let growth = (difference + WRAP - least) % WRAP;
        if growth > WRAP / 2 {
            self.least_arrival = Some(difference);
            return Span::ZERO;
        }
        Span::from_micros(growth)
    }

    fn growth_of_stamps(&mut self, stamp_ms: u32, echo: Time) -> Span {
        let sent_ms = (echo.as_nanos() / 1_000_000) as u32;
        let difference = stamp_ms.wrapping_sub(sent_ms);
        let least = *self.least.get_or_insert(difference);
        let growth = difference.wrapping_sub(least).cast_signed();
        if growth < 0 {
            self.least = Some(difference);
        }
        Span::from_millis(growth.max(0).cast_unsigned().into())
    }
}

/// When the receiver's stamp wraps: 2^32 ms, in microseconds.
const WRAP: u64 = (1 << 32) * 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::SackBlocks;

    fn ack(echo: Time, stamp_ms: u32) -> Ack {
        Ack {
            cum: 0,
            syn: false,
            echo,
            stamp_ms,
            one_way: None,
            sacks: SackBlocks::default(),
            dsack: false,
            ece: false,
            window_end: u64::MAX,
        }
    }

    const OFFSETS_MS: [u32; 3] = [0, 3_600_000, u32::MAX - 1000];

    /// Clocks an hour apart, a base delay of 30 ms and a queue of 0 to 25 ms: with an RTT of 60 ms
    /// the delay is the true one, whatever the offset, over the wrap of the stamps as well.
    #[test]
    fn the_offset_of_the_clocks_does_not_matter() {
        for offset in OFFSETS_MS {
            let mut one_way = OneWay::default();
            for (i, queue) in [0, 10, 25, 3, 0].into_iter().enumerate() {
                let sent = Time::ZERO + Span::from_millis(500 * i as u64);
                let stamp = (500 * i as u32 + 30 + queue).wrapping_add(offset);
                let delay = one_way.sample(&ack(sent, stamp), sent, Span::from_millis(60));
                assert_eq!(delay, Span::from_millis(30 + u64::from(queue)), "{offset}");
            }
        }
    }

    /// The same path and a receiver that holds ACKs for up to 40 ms: the wait is not the way's. The
    /// echo of a group is that of its first segment, 7 ms older.
    #[test]
    fn the_wait_of_a_delayed_ack_is_no_delay_of_the_way() {
        let ms = Span::from_millis;
        for offset in OFFSETS_MS {
            let (mut told, mut untold) = (OneWay::default(), OneWay::default());
            let waits = [(0, 0), (10, 40), (25, 1), (3, 40), (0, 25), (0, 40)];
            for (i, (queue, wait)) in waits.into_iter().enumerate() {
                let sent = Time::ZERO + ms(500 * i as u64);
                let stamp = (500 * i as u32 + 30 + queue + wait).wrapping_add(offset);
                let ack = ack(sent.max(Time::ZERO + ms(7)) - ms(7), stamp);
                told.note_held(ms(wait.into()));
                let delay = told.sample(&ack, sent, ms(60));
                assert_eq!(delay, ms(30 + u64::from(queue)), "{offset}, {i}");
                let stamps = untold.sample(&ack, sent, ms(60));
                assert!(stamps >= ms(30 + u64::from(queue + wait)), "{offset}, {i}");
            }
        }
    }

    /// A receiver's clock that runs slow shows ever smaller differences, each the new smallest; one
    /// that runs fast shows a delay that grows by its drift (RFC 6817 appendix A.2): 100 ppm here.
    #[test]
    fn drift_shows_as_it_is() {
        let us = Span::from_micros;
        for (gain, most) in [(-1_i64, 0), (1, 10_000)] {
            let mut one_way = OneWay::default();
            let mut delay = Span::ZERO;
            for second in 0..=100_i64 {
                let sent = Time::ZERO + us(1_000_000 * second as u64);
                // Arrival after 30 ms, by a clock that gains or loses 100 us a second.
                let arrival = 1_000_000 * second + 30_000 + 100 * gain * second;
                let stamp = arrival.div_euclid(1000) + 1;
                one_way.note_held(us((1000 * stamp - arrival) as u64));
                delay = one_way.sample(&ack(sent, stamp as u32), sent, us(60_000));
            }
            assert_eq!(delay, us(30_000 + most), "{gain}");
        }
    }
}
