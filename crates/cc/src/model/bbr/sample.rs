//! What an ACK says, in the draft's terms (RS, section 2.3). Volumes in segments, rates in segments
//! per second.

use fullpipe_units::{Span, Time};

use crate::controller::AckEvent;

/// RS and the parts of C that an ACK changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) now: Time,
    /// C.delivered, this ACK included.
    pub(super) c_delivered: u64,
    /// C.inflight after this ACK.
    pub(super) inflight: f64,
    /// Until pacing lets the next segment leave.
    pub(super) wait: Span,
    /// C.inflight before it: what it has reached.
    pub(super) prior_inflight: f64,
    /// C.is_cwnd_limited.
    pub(super) cwnd_limited: bool,
    /// RS.newly_acked.
    pub(super) newly_acked: f64,
    /// RS.rtt.
    pub(super) rtt: Option<Span>,
    /// RS.delivery_rate; 0 without a sample.
    pub(super) delivery_rate: f64,
    /// RS.delivered; 0 without a sample.
    pub(super) delivered: f64,
    /// RS.prior_delivered; `None` without a sample.
    pub(super) prior_delivered: Option<u64>,
    /// RS.is_app_limited.
    pub(super) app_limited: bool,
    /// RS.tx_in_flight.
    pub(super) tx_in_flight: f64,
    /// RS.lost.
    pub(super) lost: f64,
}

impl Sample {
    #[inline]
    pub(super) fn of(ev: &AckEvent) -> Self {
        let rate = ev.rate.filter(|rate| rate.interval > Span::ZERO);
        Self {
            now: ev.now,
            c_delivered: ev.delivered,
            wait: ev.next_send.saturating_since(ev.now),
            inflight: ev.flight as f64,
            prior_inflight: ev.prior_flight as f64,
            cwnd_limited: ev.cwnd_limited,
            newly_acked: ev.delivered_now() as f64,
            rtt: ev.rtt,
            delivery_rate: rate.map_or(0.0, |rate| rate.per_second()),
            delivered: rate.map_or(0.0, |rate| rate.delivered as f64),
            prior_delivered: rate.map(|rate| rate.prior_delivered),
            app_limited: rate.map_or(ev.app_limited, |rate| rate.app_limited),
            tx_in_flight: rate.map_or(0.0, |rate| rate.tx_in_flight as f64),
            lost: rate.map_or(0.0, |rate| rate.lost as f64),
        }
    }
}
