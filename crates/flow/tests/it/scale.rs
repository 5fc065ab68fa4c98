//! A window of a million segments: it works, and an ACK costs no more than in a small one.

use std::time::Instant;

use fullpipe_cc::Phase;
use fullpipe_flow::{Detector, Preset, Receiver, ReceiverConfig, Reduction, Sender, SenderConfig};
use fullpipe_units::{Span, Time};

use crate::host::{Halver, sack};
use crate::model::{Dice, Pair, Weather};

fn config(detector: Detector, transfer: u64) -> SenderConfig {
    SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
        c.recovery.detector = detector;
        c.handshake = false;
        c.transfer = Some(transfer);
    })
}

/// The transfer of `transfer` segments over a path that loses each packet with `p`, window held at
/// `w`; CPU time per segment.
fn transfer(detector: Detector, w: f64, transfer: u64, p: f64) -> f64 {
    let rtt = Span::from_millis(100);
    let mut cc = Halver::new(w);
    cc.hold = true;
    let mut s = Sender::new(config(detector, transfer), cc, 0);
    let mut r = Receiver::new(ReceiverConfig::preset(Preset::Y2026));
    let mut dice = Dice(7);
    let mut now = Time::ZERO;
    s.start(now);
    // One flight per step: all that is sent arrives a round trip later, in order, holes where
    // packets were lost.
    #[allow(clippy::disallowed_methods)] // the test's subject is time
    let begin = Instant::now();
    let mut rounds = 0;
    while !s.is_done() {
        let mut acks = Vec::new();
        while let Some(segment) = s.poll_transmit(now) {
            if !dice.hits(p) {
                acks.extend(r.handle_segment(now, &segment));
            }
        }
        acks.extend(
            (r.next_timeout() != Time::MAX)
                .then(|| r.handle_timeout(r.next_timeout()))
                .flatten(),
        );
        if acks.is_empty() {
            now = s.next_timeout();
            assert_ne!(now, Time::MAX, "{detector:?}: nothing to wait for");
            s.handle_timeout(now);
        } else {
            now += rtt;
            for ack in &acks {
                s.handle_ack(now, ack);
            }
        }
        rounds += 1;
        assert!(
            rounds < 20_000,
            "{detector:?}: {}..{} in {:?}",
            s.una(),
            s.nxt(),
            s.phase()
        );
    }
    begin.elapsed().as_secs_f64() / transfer as f64
}

#[test]
fn a_million_segments_in_flight_with_one_percent_loss_complete() {
    for detector in [Detector::Rack, Detector::Sack] {
        transfer(detector, 1e6, 2_000_000, 0.01);
    }
}

/// The cost per segment of a window of a million against one of a thousand: cache misses are
/// allowed, a factor of the window is not (it would be a thousand).
#[test]
fn the_cost_of_an_ack_does_not_grow_with_the_window() {
    for detector in [Detector::Rack, Detector::Sack] {
        let small = transfer(detector, 1e3, 500_000, 0.001);
        let large = transfer(detector, 1e6, 2_000_000, 0.001);
        assert!(
            large < 30.0 * small,
            "{detector:?}: {small:e} {large:e} s a segment"
        );
    }
}

/// Worst case of RFC 6675 without new data: every second segment missing in a large window. One
/// retransmission each.
#[test]
fn alternating_holes_in_a_large_window() {
    for detector in [Detector::Rack, Detector::Sack] {
        let n = 200_000u64;
        let mut s = Sender::new(config(detector, n), Halver::new(n as f64), 0);
        s.start(Time::ZERO);
        while s.poll_transmit(Time::ZERO).is_some() {}
        let at = Time::ZERO + Span::from_millis(100);
        for seq in (1..n).step_by(2) {
            s.handle_ack(at, &sack(0, &[(seq, seq + 1)]));
            while s.poll_transmit(at).is_some() {}
        }
        assert_eq!(s.phase(), Phase::Recovery);
        // Repairs arrive one by one.
        let mut t = at;
        for una in (1..n).step_by(2) {
            t += Span::from_micros(1);
            s.handle_ack(t + Span::from_millis(100), &sack(una + 1, &[]));
            while s.poll_transmit(t + Span::from_millis(100)).is_some() {}
        }
        assert!(s.is_done(), "{detector:?}: {}..{}", s.una(), s.nxt());
        let again = s.counts().retransmits;
        assert!((n / 2..n / 2 + 2).contains(&again), "{detector:?}: {again}");
    }
}

/// RFC 6675 rule 3 over a window of holes: each is resent once, and the search for the next goes on
/// where the last ended. Searching from the start each time would take 45 thousand million steps
/// here.
#[test]
fn the_search_for_holes_does_not_start_over() {
    let n = 300_000u64;
    let mut cc = Halver::new(n as f64);
    cc.hold = true;
    let cfg = config(Detector::Sack, n).with(|c| c.recovery.reduction = Reduction::Immediate);
    let mut s = Sender::new(cfg, cc, 0);
    s.start(Time::ZERO);
    while s.poll_transmit(Time::ZERO).is_some() {}
    let at = Time::ZERO + Span::from_millis(100);
    // Only segment 0 has three SACKed segments above it: the other holes are not lost.
    s.handle_ack(at, &sack(0, &[(n - 1, n), (3, 4), (1, 2)]));
    assert_eq!(s.phase(), Phase::Recovery);
    #[allow(clippy::disallowed_methods)] // the test's subject is time
    let begin = Instant::now();
    let mut resent = Vec::new();
    while let Some(segment) = s.poll_transmit(at) {
        assert!(segment.retransmission);
        resent.push(segment.seq);
    }
    let expected: Vec<u64> = (0..n - 1).filter(|s| *s != 1 && *s != 3).collect();
    assert_eq!(resent, expected);
    assert!(begin.elapsed().as_secs_f64() < 5.0, "{:?}", begin.elapsed());
}

/// A network that reorders a large window thoroughly, through a real receiver.
#[test]
fn a_large_window_survives_reordering() {
    let weather = Weather {
        drop: 0.002,
        drop_ack: 0.01,
        duplicate: 0.001,
        jitter_us: 30_000,
        mark: 0.0,
        refuse: 0.0,
        blackout: (0, 0),
        bad_until: Time::ZERO + Span::from_secs(30),
    };
    for detector in [Detector::Rack, Detector::Sack] {
        let mut cfg = config(detector, 60_000);
        cfg.window.initial = 4000.0;
        let rcfg = ReceiverConfig::preset(Preset::Y2026);
        let mut pair =
            Pair::new(cfg, rcfg, "scalable", weather, Span::from_millis(50), 3).unchecked();
        pair.run(Time::ZERO + Span::from_secs(600)).unwrap();
    }
}
