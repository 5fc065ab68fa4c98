//! A model-based controller for tests: a fixed share of the largest delivery rate seen, and a
//! window of two bandwidth-delay products.
//!
//! As BBR's start-up it paces at [`START_UP_GAIN`] times the largest rate until three rounds in a
//! row bring less than a quarter more, and then at `share` of it. A round that loses or marks more
//! than [`TOLERATED`] of what it delivers lowers the estimate by a tenth. There is no probing: on a
//! path whose capacity grows later it stays behind.
#![allow(dead_code)] // shared by test crates that use different parts

use fullpipe_cc::{AckEvent, CongestionEvent, Controller, Entry, IdleEvent, RtoEvent, param};
use fullpipe_units::{Rate, Span, Time};

/// Growth of the sending rate per round while the capacity is unknown: 2/ln 2 (BBR, CACM 2017).
const START_UP_GAIN: f64 = 2.89;
/// Lost or marked fraction of a round that the path may show without congestion (BBRv2's 2 %).
const TOLERATED: f64 = 0.02;
/// Segments per window before the first sample (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;
/// Payload of a segment, bytes, of the flows in these tests.
pub const MSS: u32 = 1448;

/// Paces at a fixed share of the largest delivery rate.
#[derive(Clone, Copy, Debug)]
pub struct FixedShare {
    share: f64,
    /// Largest delivery rate, segments/s; zero before the first sample.
    rate: f64,
    min_rtt: Span,
    /// The rate at the last round that grew by a quarter, and rounds since then.
    full_rate: f64,
    full_rounds: u32,
    /// Deliveries at the start of this round; lost and marked segments in it.
    delivered: u64,
    lost: u64,
    /// Delivery-rate samples taken.
    samples: u64,
}

impl FixedShare {
    /// A controller that paces at `share` of the path's capacity.
    pub fn new(share: f64) -> Self {
        Self {
            share,
            rate: 0.0,
            min_rtt: Span::MAX,
            full_rate: 0.0,
            full_rounds: 0,
            delivered: 0,
            lost: 0,
            samples: 0,
        }
    }

    fn starting(&self) -> bool {
        self.full_rounds < 3
    }

    fn end_of_round(&mut self, delivered: u64) {
        let volume = delivered - self.delivered;
        if self.lost as f64 > TOLERATED * volume as f64 {
            self.rate *= 0.9;
            self.full_rounds = 3;
        } else if self.rate >= 1.25 * self.full_rate {
            (self.full_rate, self.full_rounds) = (self.rate, 0);
        } else {
            self.full_rounds += 1;
        }
        (self.delivered, self.lost) = (delivered, 0);
    }
}

impl Controller for FixedShare {
    fn on_delivery(&mut self, ev: &AckEvent) {
        self.min_rtt = ev.min_rtt;
        if let Some(sample) = ev.rate {
            self.samples += 1;
            // The application's rate says nothing about the path, unless it is the larger one.
            if !sample.app_limited || sample.per_second() > self.rate {
                self.rate = self.rate.max(sample.per_second());
            }
        }
        if ev.round_start {
            self.end_of_round(ev.delivered);
        }
    }

    fn on_ack(&mut self, ev: &AckEvent) {
        self.lost += ev.lost;
    }

    fn on_congestion(&mut self, _ev: &CongestionEvent) {}
    fn on_rto(&mut self, _ev: &RtoEvent) {}
    fn on_recovery_exit(&mut self, _now: Time) {}
    fn on_undo(&mut self, _now: Time) {}
    fn on_idle(&mut self, _ev: &IdleEvent) {}
    fn on_mss_change(&mut self, ratio: f64) {
        self.rate *= ratio;
    }
    fn exit_start_up(&mut self, _now: Time) {
        self.full_rounds = 3;
    }

    fn window(&self) -> f64 {
        if self.rate == 0.0 {
            return INITIAL_WINDOW;
        }
        let gain = if self.starting() { START_UP_GAIN } else { 2.0 };
        (gain * self.rate * self.min_rtt.as_secs_f64()).max(INITIAL_WINDOW)
    }

    fn ssthresh(&self) -> f64 {
        if self.starting() { f64::INFINITY } else { 1.0 }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let gain = if self.starting() {
            START_UP_GAIN
        } else {
            self.share
        };
        let bits = gain * self.rate * 8.0 * f64::from(MSS);
        (self.rate > 0.0).then(|| Rate::from_bits_per_sec(bits as u64))
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("rate", self.rate);
        visit("samples", self.samples as f64);
    }
}

/// `fixed-share(share)`, where a test registers it.
pub const FIXED_SHARE: Entry<FixedShare> = Entry {
    name: "fixed-share",
    aliases: &[],
    about: "paces at a fixed share of the largest delivery rate",
    source: "for tests",
    params: &[param!(share: number = 0.9, 0.1..=1.0, "fraction", "share of the rate", "for tests")],
    build: |p| Ok(FixedShare::new(p.number("share"))),
};
