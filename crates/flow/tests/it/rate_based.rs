//! A model-based controller drives the sender: it lives on delivery-rate samples, and its pacing
//! rate is what leaves.
//!
//! The path is a FIFO without loss that acknowledges every segment one round trip after it left the
//! queue. Two bandwidth-delay products of window never bind, so that only pacing keeps the sender
//! below the capacity.

use std::collections::VecDeque;

use fullpipe_cc::{AckEvent, CongestionEvent, Controller, IdleEvent, RtoEvent, Stack, StackSpec};
use fullpipe_flow::{Ack, Sender};
use fullpipe_units::{Rate, Span, Time};

use crate::fixed_share::{FixedShare, MSS};
use crate::host::{modern, syn_ack};

const RTT: Span = Span::from_millis(40);
const CAPACITY: f64 = 100e6;

/// The second half of ten seconds over the path.
#[derive(Debug)]
struct Measured {
    /// bit/s.
    goodput: f64,
    /// bit/s, at the end.
    pacing: Option<f64>,
    /// Most segments queued.
    queue: f64,
    /// Least and most time between two departures of segments.
    gaps: (Span, Span),
}

fn ten_seconds(cc: impl Controller) -> Measured {
    let cfg = modern();
    assert_eq!(cfg.mss, MSS);
    let mut s = Sender::new(cfg, cc, 1);
    let bits = f64::from(MSS) * 8.0;
    let transmission = Span::from_secs_f64(bits / CAPACITY);
    let (half, end) = (Time::from_secs_f64(5.0), Time::from_secs_f64(10.0));
    let mut acks: VecDeque<(Time, Ack)> = VecDeque::new();
    let (mut now, mut free, mut last) = (Time::ZERO, Time::ZERO, None);
    let (mut acked, mut at_half, mut queue) = (0, 0, 0.0_f64);
    let mut gaps = (Span::MAX, Span::ZERO);
    s.start(now);
    while now < end {
        while let Some(segment) = s.poll_transmit(now) {
            free = free.max(now) + transmission;
            let ack = Ack {
                cum: segment.seq + 1,
                syn: false,
                echo: now,
                ..syn_ack(u64::MAX)
            };
            acks.push_back((free + RTT, ack));
            if now >= half {
                queue = queue.max(free.saturating_since(now).ratio(transmission) - 1.0);
                let gap = last.map_or(Span::MAX, |last| now - last);
                gaps = (gaps.0.min(gap), gaps.1.max(gap));
            }
            last = Some(now);
        }
        let arrival = acks.front().map_or(Time::MAX, |(at, _)| *at);
        let due = s.next_timeout();
        now = arrival.min(due);
        if arrival <= due {
            let (_, ack) = acks.pop_front().unwrap();
            acked = ack.cum;
            s.handle_ack(now, &ack);
        } else {
            s.handle_timeout(now);
        }
        if now <= half {
            at_half = acked;
        }
    }
    Measured {
        goodput: (acked - at_half) as f64 * bits / 5.0,
        pacing: s.pacing_rate(),
        queue,
        gaps,
    }
}

#[track_caller]
fn near(value: f64, expected: f64) {
    let error = (value / expected - 1.0).abs();
    assert!(error < 0.01, "{value} is not {expected}");
}

#[test]
fn a_share_of_the_capacity_arrives_evenly_spaced() {
    for share in [0.5, 0.8, 0.95] {
        let measured = ten_seconds(FixedShare::new(share));
        near(measured.pacing.unwrap(), share * CAPACITY);
        near(measured.goodput, share * CAPACITY);
        assert!(measured.queue < 0.01, "{measured:?}");
        let gap = Span::from_secs_f64(f64::from(MSS) * 8.0 / (share * CAPACITY));
        near(measured.gaps.0.as_secs_f64(), gap.as_secs_f64());
        near(measured.gaps.1.as_secs_f64(), gap.as_secs_f64());
    }
}

/// The registry's enum hands every event on: the run is the same in every number.
#[test]
fn inside_a_stack_it_is_the_same_controller() {
    let alone = ten_seconds(FixedShare::new(0.8));
    let inside = ten_seconds(Stack::Model(FixedShare::new(0.8)));
    assert_eq!(format!("{alone:?}"), format!("{inside:?}"));
}

/// [`FixedShare`] that never hears of a sample: what a dispatch that swallows them would make of
/// it.
#[derive(Clone)]
struct Deaf(FixedShare);

impl Controller for Deaf {
    fn on_ack(&mut self, ev: &AckEvent) {
        self.0.on_ack(ev);
    }
    fn on_congestion(&mut self, ev: &CongestionEvent) {
        self.0.on_congestion(ev);
    }
    fn on_rto(&mut self, ev: &RtoEvent) {
        self.0.on_rto(ev);
    }
    fn on_recovery_exit(&mut self, now: Time) {
        self.0.on_recovery_exit(now);
    }
    fn on_undo(&mut self, now: Time) {
        self.0.on_undo(now);
    }
    fn on_idle(&mut self, ev: &IdleEvent) {
        self.0.on_idle(ev);
    }
    fn exit_start_up(&mut self, now: Time) {
        self.0.exit_start_up(now);
    }
    fn on_mss_change(&mut self, ratio: f64) {
        self.0.on_mss_change(ratio);
    }
    fn window(&self) -> f64 {
        self.0.window()
    }
    fn ssthresh(&self) -> f64 {
        self.0.ssthresh()
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.0.pacing_rate()
    }
    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.0.report(visit);
    }
}

#[test]
fn without_its_samples_it_stays_at_the_initial_window() {
    let measured = ten_seconds(Deaf(FixedShare::new(0.8)));
    assert_eq!(measured.pacing, None);
    let initial = 10.0 * f64::from(MSS) * 8.0 / RTT.as_secs_f64();
    near(measured.goodput, initial);
}

/// Window controllers leave the pacing rate to the sender.
#[test]
fn a_window_controller_names_no_pacing_rate() {
    let cubic = StackSpec::parse("cubic").unwrap();
    let measured = ten_seconds(cubic.controller(Default::default()));
    assert_eq!(measured.pacing, None);
    near(measured.goodput, CAPACITY);
}
