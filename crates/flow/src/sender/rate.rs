//! Delivery-rate estimation (draft-cheng-iccrg-delivery-rate-estimation): how fast the network delivered the flight of the
//! newest acknowledged segment.

use fullpipe_cc::RateSample;
use fullpipe_units::{Span, Time};

use super::scoreboard::Sent;

/// Connection state of the estimator.
#[derive(Clone, Debug)]
pub struct RateEstimator {
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    /// Deliveries up to this count belong to application-limited flights; 0: none.
    app_limited_until: u64,
}

impl RateEstimator {
    /// At the start of a connection.
    pub fn new() -> Self {
        Self {
            delivered: 0,
            delivered_time: Time::ZERO,
            first_sent: Time::ZERO,
            app_limited_until: 0,
        }
    }

    /// Segments delivered so far.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Time of the latest delivery.
    #[inline]
    pub fn delivered_time(&self) -> Time {
        self.delivered_time
    }

    /// Start of the present flight.
    #[inline]
    pub fn first_sent(&self) -> Time {
        self.first_sent
    }

    /// A segment is about to leave; an empty network starts a new flight.
    #[inline]
    pub fn before_send(&mut self, now: Time, pipe: u64) {
        if pipe == 0 {
            self.first_sent = now;
            self.delivered_time = now;
        }
    }

    /// The application had nothing to send while `pipe` segments were out.
    pub fn app_limited(&mut self, pipe: u64) {
        self.app_limited_until = (self.delivered + pipe).max(1);
    }

    /// True while samples are application-limited.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// `n` segments were delivered now; `newest` is the most recently sent of them.
    #[inline]
    pub fn on_delivered(
        &mut self,
        now: Time,
        n: u64,
        newest: &Sent,
        min_rtt: Span,
    ) -> Option<RateSample> {
        self.delivered += n;
        self.delivered_time = now;
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let send = newest.xmit.saturating_since(newest.first_sent);
        let ack = now.saturating_since(newest.delivered_time);
        self.first_sent = newest.xmit;
        let interval = send.max(ack);
        // Low 32 bits suffice: fewer than 2^32 segments are ever outstanding.
        let since = u64::from((self.delivered as u32).wrapping_sub(newest.delivered));
        if interval < min_rtt || interval == Span::ZERO {
            return None;
        }
        Some(RateSample {
            delivered: since,
            interval,
            prior_delivered: self.delivered - since,
            app_limited: newest.app_limited(),
        })
    }
}
