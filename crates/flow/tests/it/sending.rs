//! What limits a sender and what its receiver answers: the tail, delayed ACKs, validation,
//! artificial loss, the application.

use fullpipe_flow::{
    Ack, ArtificialLoss, Detector, Preset, Receiver, ReceiverConfig, Segment, Validation,
};
use fullpipe_units::{Span, Time};

use crate::host::Out::R;
use crate::host::{Halver, Host, ack, modern, ms, reduction};

/// A full cycle of a finite transfer whose last segments are lost: the timeout brings them.
#[test]
fn a_transfer_whose_tail_is_lost_completes_by_timeout() {
    for detector in [Detector::Rack, Detector::Sack, Detector::NewReno] {
        let cfg = modern().with(|c| {
            c.recovery.detector = detector;
            c.recovery.tlp = false;
            c.transfer = Some(12);
        });
        let mut cc = Halver::new(12.0);
        cc.slow_start = true;
        let mut h = Host::with(cfg, cc);
        h.ack_at(80.0, &ack(9, 0.0));
        let out = h.wait(1080.0);
        assert_eq!(out, [(1080.0, R(9))], "{detector:?}");
        assert_eq!(
            h.ack_at(1160.0, &ack(10, 1080.0)),
            [R(10), R(11)],
            "{detector:?}"
        );
        assert!(!h.s.is_done());
        h.ack_at(1240.0, &ack(12, 1160.0));
        assert!(h.s.is_done());
        assert_eq!(h.s.next_timeout(), Time::MAX);
        assert_eq!(h.s.counts().sent, 15);
    }
}

/// Receiver: one ACK per n segments, the rest by the timer, at once when something is missing.
#[test]
fn delayed_acks_follow_their_two_rules() {
    for every in [1, 2, 4] {
        let mut r =
            Receiver::new(ReceiverConfig::preset(Preset::Y2003).with(|c| c.acks.every = every));
        let data = |seq| Segment {
            seq,
            syn: false,
            retransmission: false,
            stamp: Time::ZERO,
            ect: false,
            ce: false,
            cwr: false,
            push: false,
        };
        let acks: Vec<u64> = (0..10)
            .filter_map(|i| r.handle_segment(ms(i as f64), &data(i)))
            .map(|a| a.cum)
            .collect();
        let expected: Vec<u64> = (1..=10).filter(|n| n % u64::from(every) == 0).collect();
        assert_eq!(acks, expected);
        if 10 % every != 0 {
            // The first segment that is not acknowledged started the clock.
            let started = (10 / every * every) as f64;
            assert_eq!(r.next_timeout(), ms(started + 100.0));
            assert_eq!(r.handle_timeout(ms(started + 100.0)).unwrap().cum, 10);
        }
        assert_eq!(
            r.handle_segment(ms(200.0), &data(12)).unwrap().cum,
            10,
            "a gap: at once"
        );
        assert_eq!(
            r.handle_segment(ms(201.0), &data(10)).unwrap().cum,
            11,
            "filling: at once"
        );
    }
}

/// Idle for 3.5 timeouts after a burst: each mode's window, through the sender.
#[test]
fn validation_after_idle_follows_its_mode() {
    // The application stops at 40, then the host raises the limit by a new transfer: modelled by
    // the peer's window.
    let rows = [
        (Validation::None, 20.0),
        (Validation::Rfc5681, 4.0),
        (Validation::Rfc2861, 4.0), // three halvings of 20 end at the floor min(IW, w)
        (Validation::Rfc7661, 20.0),
    ];
    for (mode, expected) in rows {
        let cfg = modern().with(|c| {
            c.window.validation = mode;
            c.window.initial = 4.0;
            c.recovery.tlp = false;
        });
        let mut h = Host::new(cfg, 20.0);
        let end = |cum, window_end| Ack {
            window_end,
            ..ack(cum, 0.0)
        };
        h.ack_at(100.0, &end(20, 20));
        assert_eq!(h.s.flight(), 0);
        let rto = h.s.rtt().rto().as_secs_f64() * 1e3;
        let out = h.ack_at(rto * 3.5, &end(20, 100));
        assert_eq!(h.s.cwnd(), expected, "{mode:?}");
        assert_eq!(
            out.len(),
            expected as usize,
            "{mode:?}: the window in force at once"
        );
    }
}

/// Sender-side artificial loss: nothing is resent, one reduction per window; base is the flight as
/// the ACK came.
#[test]
fn artificial_losses_reduce_without_retransmission() {
    for prr in [false, true] {
        let cfg = modern().with(|c| {
            c.recovery.reduction = reduction(prr);
            c.window.validation = Validation::None;
            c.artificial_loss = ArtificialLoss {
                segments: vec![21, 23, 60],
                ..ArtificialLoss::default()
            };
        });
        let mut h = Host::new(cfg, 20.0);
        let mut t = 80.0;
        for cum in (2..=200).step_by(2) {
            t += 8.0;
            h.ack_at(t, &ack(cum, t - 80.0));
        }
        let flights: Vec<u64> =
            h.s.controller()
                .congestions
                .iter()
                .map(|c| c.flight)
                .collect();
        assert_eq!(flights.len(), 2, "21 and 23 are one window, prr {prr}");
        assert_eq!(flights[0], 20);
        assert_eq!(h.s.counts().retransmits, 0);
        assert_eq!(h.s.cwnd(), 5.0);
    }
}

/// Every k-th delivery, by the count of what was delivered.
#[test]
fn every_kth_delivery_counts_as_lost() {
    let cfg = modern().with(|c| {
        c.artificial_loss = ArtificialLoss {
            every: Some(50),
            ..ArtificialLoss::default()
        }
    });
    let mut h = Host::new(cfg, 8.0);
    for cum in 1..=400u64 {
        h.ack_at(80.0 + 10.0 * cum as f64, &ack(cum, 10.0 * cum as f64));
        h.s.drain_log().for_each(drop);
    }
    assert_eq!(h.s.counts().loss_events, 8);
}

/// An application-limited sender reports that the window was not the limit.
#[test]
fn an_application_limit_is_reported() {
    let cfg = modern().with(|c| c.transfer = Some(60));
    let mut cc = Halver::new(20.0);
    cc.ssth = 10.0;
    let mut h = Host::with(cfg, cc);
    h.ack_at(80.0, &ack(20, 0.0));
    assert!(h.s.controller().last.unwrap().cwnd_limited);
    h.ack_at(160.0, &ack(40, 80.0));
    h.ack_at(240.0, &ack(50, 160.0));
    h.ack_at(250.0, &ack(55, 160.0));
    h.ack_at(260.0, &ack(60, 160.0));
    assert!(h.s.is_done());
    let _ = Span::ZERO;
}

/// A host that takes a few segments and then serves others: if it never gets to the end of the
/// window, the window is not the limit; if it goes on before anything is acknowledged, it is.
#[test]
fn a_window_that_the_host_does_not_use_is_not_the_limit() {
    let mut cc = Halver::new(100.0);
    cc.ssth = 1.0;
    let mut h = Host::with(modern(), cc);
    h.now = ms(100.0);
    h.deliver(&ack(100, 0.0));
    assert!(h.s.controller().last.unwrap().cwnd_limited);
    let takes_ten = |h: &mut Host<Halver>| {
        for _ in 0..10 {
            h.s.poll_transmit(h.now).unwrap();
        }
        h.s.yielded(h.now);
    };
    takes_ten(&mut h);
    h.now = ms(200.0);
    h.deliver(&ack(105, 100.0));
    assert!(!h.s.controller().last.unwrap().cwnd_limited);
    h.deliver(&ack(110, 100.0));
    takes_ten(&mut h);
    assert_eq!(h.poll().len(), 90);
    // One window on, it yields in the middle of what the window allows: that alone says nothing.
    h.now = ms(300.0);
    h.deliver(&ack(160, 200.0));
    takes_ten(&mut h);
    h.deliver(&ack(161, 200.0));
    assert!(h.s.controller().last.unwrap().cwnd_limited);
}
