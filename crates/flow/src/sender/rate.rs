//! What was delivered and how fast: the delivered count, packet-timed rounds, and the delivery rate
//! of the newest acknowledged segment's flight (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! The rate is sampled only for a controller that reads it
//! ([`Controller::reads_rate`](fullpipe_cc::Controller::reads_rate)).

use fullpipe_cc::{LostSegment, RateSample};
use fullpipe_units::{Span, Time};

use super::scoreboard::Sent;

/// Deliveries of a connection.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    /// Segments delivered so far.
    delivered: u64,
    /// Deliveries up to this count belong to application-limited flights; 0: none.
    app_limited_until: u64,
    rounds: u64,
    /// The delivered count when the present round began.
    round_began: u64,
    sampler: Option<Box<Sampler>>,
}

/// The delivery-rate estimator.
#[derive(Clone, Debug)]
struct Sampler {
    /// Time of the latest delivery.
    delivered_time: Time,
    /// Start of the present flight.
    first_sent: Time,
    /// Segments marked lost so far.
    lost: u64,
    /// All three when a segment was sent, by its number modulo the length, a power of two.
    stamps: Vec<Stamp>,
}

#[derive(Clone, Copy, Debug)]
struct Stamp {
    delivered_time: Time,
    first_sent: Time,
    /// Low 32 bits of the losses so far.
    lost: u32,
    /// Segments in the network, this one included.
    tx_in_flight: u32,
}

/// What is outstanding when a segment leaves, without that segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outstanding {
    /// First unacknowledged segment, and how many from there on are.
    pub(super) una: u64,
    pub(super) flight: u64,
    /// Segments in the network.
    pub(super) pipe: u64,
}

impl Sampler {
    fn new() -> Self {
        let none = Stamp {
            delivered_time: Time::ZERO,
            first_sent: Time::ZERO,
            lost: 0,
            tx_in_flight: 0,
        };
        Self {
            delivered_time: Time::ZERO,
            first_sent: Time::ZERO,
            lost: 0,
            stamps: vec![none; 64],
        }
    }

    fn slot(&self, seq: u64) -> usize {
        (seq & (self.stamps.len() - 1) as u64) as usize
    }

    /// `seq` leaves. With nothing unacknowledged a new flight begins; what is marked lost counts as
    /// unacknowledged, because the mark may be wrong (Linux `tcp_rate_skb_sent`).
    fn on_sent(&mut self, now: Time, seq: u64, out: Outstanding) {
        if out.flight == 0 {
            self.first_sent = now;
            self.delivered_time = now;
        }
        let una = out.una;
        if seq - una >= self.stamps.len() as u64 {
            self.grow(una, seq);
        }
        let slot = self.slot(seq);
        self.stamps[slot] = Stamp {
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            lost: self.lost as u32,
            tx_in_flight: out.pipe as u32 + 1,
        };
    }

    /// Segments marked lost since `stamp`.
    fn lost_since(&self, stamp: &Stamp) -> u64 {
        u64::from((self.lost as u32).wrapping_sub(stamp.lost))
    }

    #[cold]
    fn grow(&mut self, una: u64, nxt: u64) {
        let old = self.clone();
        self.stamps.resize(old.stamps.len() * 2, old.stamps[0]);
        for seq in una..nxt {
            let slot = self.slot(seq);
            self.stamps[slot] = old.stamps[old.slot(seq)];
        }
    }

    /// The interval of the newest segment's flight, and what its stamp adds to the sample.
    fn sample(&mut self, now: Time, seq: u64, newest: &Sent) -> (Span, Stamp) {
        let stamp = self.stamps[self.slot(seq)];
        self.delivered_time = now;
        self.first_sent = newest.xmit;
        let send = newest.xmit.saturating_since(stamp.first_sent);
        let ack = now.saturating_since(stamp.delivered_time);
        (send.max(ack), stamp)
    }
}

impl Delivery {
    /// At the start of a connection.
    pub(super) fn new(reads_rate: bool) -> Self {
        Self {
            delivered: 0,
            app_limited_until: 0,
            rounds: 0,
            round_began: 0,
            sampler: reads_rate.then(|| Box::new(Sampler::new())),
        }
    }

    /// Segments delivered so far.
    #[inline]
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Packet-timed rounds so far.
    #[inline]
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Segment `seq` leaves.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, seq: u64, out: Outstanding) {
        if let Some(sampler) = &mut self.sampler {
            sampler.on_sent(now, seq, out);
        }
    }

    /// Rates are sampled.
    #[inline]
    pub(super) fn samples(&self) -> bool {
        self.sampler.is_some()
    }

    /// Segment `seq`, last sent as `sent`, was marked lost; `None` where rates are not sampled.
    pub(super) fn on_lost(&mut self, now: Time, seq: u64, sent: &Sent) -> Option<LostSegment> {
        let sampler = self.sampler.as_mut()?;
        sampler.lost += 1;
        let stamp = &sampler.stamps[sampler.slot(seq)];
        let mut lost = LostSegment::new(now, seq, u64::from(stamp.tx_in_flight));
        lost.lost = sampler.lost_since(stamp);
        lost.delivered = self.delivered;
        lost.app_limited = sent.app_limited();
        Some(lost)
    }

    /// The application had nothing to send while `pipe` segments were out.
    pub(super) fn app_limited(&mut self, pipe: u64) {
        self.app_limited_until = (self.delivered + pipe).max(1);
    }

    /// True while samples are application-limited.
    #[inline]
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// `n` segments were delivered, nobody knows which: duplicates without SACK (Linux
    /// `tcp_add_reno_sack`, `tcp_rate_gen`).
    pub(super) fn on_unknown_delivered(&mut self, now: Time, n: u64) {
        self.count(n);
        if let Some(sampler) = self.sampler.as_mut().filter(|_| n > 0) {
            sampler.delivered_time = now;
        }
    }

    #[inline]
    fn count(&mut self, n: u64) {
        self.delivered += n;
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
    }

    /// `n` segments were delivered; returns how many since `newest`, the most recently sent of
    /// them, left. Low 32 bits of the count suffice: fewer than 2^32 segments are ever outstanding.
    #[inline]
    pub(super) fn on_delivered(&mut self, n: u64, newest: &Sent) -> u64 {
        self.count(n);
        u64::from((self.delivered as u32).wrapping_sub(newest.delivered))
    }

    /// The rate sample of `newest`, segment `seq`, since whose departure `since` segments were
    /// delivered; `None` where the interval is too short to be one, and where nobody asks.
    #[inline]
    pub(super) fn sample(
        &mut self,
        now: Time,
        (seq, newest): (u64, Sent),
        since: u64,
        min_rtt: Span,
    ) -> Option<RateSample> {
        let sampler = self.sampler.as_mut()?;
        let (interval, stamp) = sampler.sample(now, seq, &newest);
        if interval < min_rtt || interval == Span::ZERO {
            return None;
        }
        let mut sample = RateSample::new(since, interval);
        sample.prior_delivered = self.delivered - since;
        sample.app_limited = newest.app_limited();
        sample.tx_in_flight = u64::from(stamp.tx_in_flight);
        sample.lost = sampler.lost_since(&stamp);
        Some(sample)
    }

    /// A delivery whose newest segment left `since` deliveries ago: begins a round if that was
    /// after the last one began, and returns what the ended round delivered, segments.
    #[inline]
    pub(super) fn next_round(&mut self, since: u64) -> Option<u64> {
        if self.delivered - since < self.round_began {
            return None;
        }
        let volume = self.delivered - self.round_began;
        self.rounds += 1;
        self.round_began = self.delivered;
        Some(volume)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    fn out(flight: u64) -> Outstanding {
        Outstanding {
            una: 0,
            flight,
            pipe: flight,
        }
    }

    /// 200 segments, one a millisecond, and an ACK for each 300 ms after it left: the ring of
    /// stamps grows twice meanwhile. One flight begins with segment 0, the other with segment 50,
    /// as if the network were empty then. The ACK interval of segment k goes from the start of its
    /// flight to its ACK.
    #[test]
    fn stamps_outlive_the_growth_of_their_ring() {
        let mut d = Delivery::new(true);
        for seq in 0..200 {
            let flight = if seq == 0 || seq == 50 { 0 } else { 1 };
            d.on_sent(ms(seq), seq, out(flight));
        }
        for seq in 0..200 {
            let newest = Sent::new(ms(seq), 0);
            let since = d.on_delivered(1, &newest);
            let rate = d.sample(ms(300 + seq), (seq, newest), since, Span::ZERO);
            let rate = rate.unwrap();
            assert_eq!((rate.delivered, rate.prior_delivered), (seq + 1, 0));
            let flight = if seq < 50 { 0 } else { 50 };
            assert_eq!(rate.interval, ms(300 + seq) - ms(flight), "{seq}");
        }
    }

    /// Duplicates without SACK count, and begin the interval of what is sent after them.
    #[test]
    fn what_nobody_can_name_was_delivered_too() {
        let mut d = Delivery::new(true);
        d.on_sent(ms(0), 0, out(0));
        d.on_unknown_delivered(ms(50), 3);
        d.on_sent(ms(60), 1, out(1));
        let newest = Sent::new(ms(60), 3);
        let since = d.on_delivered(1, &newest);
        assert_eq!((since, d.delivered()), (1, 4));
        let rate = d.sample(ms(160), (1, newest), since, Span::ZERO);
        assert_eq!(rate.unwrap().interval, ms(160) - ms(50));
    }

    #[test]
    fn nothing_is_sampled_for_a_controller_that_does_not_ask() {
        let mut d = Delivery::new(false);
        d.on_sent(ms(0), 0, out(0));
        let newest = Sent::new(ms(0), 0);
        let since = d.on_delivered(1, &newest);
        assert_eq!((since, d.delivered()), (1, 1));
        let rate = d.sample(ms(80), (0, newest), since, Span::ZERO);
        assert!(rate.is_none());
    }
}
