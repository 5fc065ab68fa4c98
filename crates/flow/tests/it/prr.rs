//! Proportional Rate Reduction: the two figures of RFC 9937, through the sender, for both SACK
//! detectors.

use fullpipe_cc::Phase;
use fullpipe_flow::{Detector, Prr, PrrAck, Reduction};

use crate::host::Out::{self, N, R};
use crate::host::{Host, ack, modern, sack};

fn host(detector: Detector) -> Host {
    let cfg = modern().with(|c| {
        c.recovery.detector = detector;
        c.recovery.tlp = false;
    });
    Host::new(cfg, 20.0)
}

/// One ACK: the window after it was processed, before anything is sent, then what is sent.
fn step(h: &mut Host, at: f64, a: &fullpipe_flow::Ack) -> (u64, Vec<Out>) {
    h.wait(at);
    h.deliver(a);
    let w = h.s.cwnd() as u64;
    (w, h.poll())
}

/// Example 1 (RFC 9937 figure 1): segment 0 of 20 is lost. Figure and pseudo-code differ in the
/// tail; both send 11 segments from the third ACK on, and both are accepted.
#[test]
fn one_loss_in_twenty() {
    for detector in [Detector::Rack, Detector::Sack] {
        let mut h = host(detector);
        let mut windows = Vec::new();
        let mut sends = Vec::new();
        for i in 1..=18 {
            let (w, out) = step(&mut h, 100.0 + i as f64, &sack(0, &[(1, 1 + i)]));
            windows.push(w);
            sends.push(out);
        }
        let expected = [
            20, 20, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11,
        ];
        assert_eq!(windows, expected, "{detector:?}");
        assert_eq!(h.s.controller().ssth, 10.0);
        for (i, out) in sends.iter().enumerate() {
            let expected = match i + 1 {
                1 => vec![N(20)],
                2 => vec![N(21)],
                3 => vec![R(0)],
                n @ (5 | 7 | 9 | 11 | 13 | 15 | 17) => vec![N(22 + (n as u64 - 5) / 2)],
                _ => vec![],
            };
            assert_eq!(*out, expected, "{detector:?} ACK {}", i + 1);
        }
        // The tail: segments 19, 20, 21, then the repaired hole.
        let mut tail = Vec::new();
        for i in 19..=21 {
            tail.push(step(&mut h, 100.0 + i as f64, &sack(0, &[(1, 1 + i)])));
        }
        tail.push(step(&mut h, 203.0, &ack(22, 103.0)));
        let windows: Vec<u64> = tail.iter().map(|t| t.0).collect();
        let counts: Vec<usize> = tail.iter().map(|t| t.1.len()).collect();
        let figure = ([11, 10, 10, 10], [1, 0, 1, 1]);
        let strict = ([10, 10, 10, 10], [0, 1, 1, 1]);
        let got = (windows.as_slice(), counts.as_slice());
        assert!(
            got == (&figure.0[..], &figure.1[..]) || got == (&strict.0[..], &strict.1[..]),
            "{detector:?}: {got:?}"
        );
        let from_third: usize =
            sends[2..].iter().map(Vec::len).sum::<usize>() + counts.iter().sum::<usize>();
        assert_eq!(from_third, 11, "{detector:?}");
        assert_eq!(h.s.phase(), Phase::Open);
        assert_eq!(h.s.cwnd(), 10.0);
        assert_eq!(h.s.flight(), 10);
    }
}

/// Example 2 (RFC 9937 figure 2): the first 15 of 20 are lost.
#[test]
fn fifteen_losses_in_twenty() {
    for detector in [Detector::Rack, Detector::Sack] {
        let mut h = host(detector);
        let mut windows = Vec::new();
        let mut sends = Vec::new();
        for i in 1..=7 {
            let (w, out) = step(&mut h, 100.0 + i as f64, &sack(0, &[(15, 15 + i)]));
            windows.push(w);
            sends.push(out);
        }
        assert_eq!(windows, [20, 20, 5, 5, 5, 5, 5], "{detector:?}");
        let expected: Vec<Vec<Out>> = vec![
            vec![N(20)],
            vec![N(21)],
            vec![R(0)],
            vec![R(1)],
            vec![R(2)],
            vec![R(3)],
            vec![R(4)],
        ];
        assert_eq!(sends, expected, "{detector:?}");
        // Each repaired hole advances the cumulative number: two retransmissions per ACK until all
        // 15 are out.
        let mut windows = Vec::new();
        let mut next = 5;
        for i in 1..=7u64 {
            let (w, out) = step(&mut h, 202.0 + i as f64, &sack(i, &[(15, 22)]));
            windows.push(w);
            if next < 15 {
                assert_eq!(out, [R(next), R(next + 1)], "{detector:?} ACK {i}");
                next += 2;
            }
        }
        assert_eq!(windows[..6], [6, 7, 8, 9, 10, 10], "{detector:?}");
        assert_eq!(h.s.controller().congestions.len(), 1);
    }
}

/// What RFC 6675 without PRR does in example 2: the whole quota at the third ACK.
#[test]
fn without_prr_the_quota_leaves_at_once() {
    let cfg = modern().with(|c| c.recovery.reduction = Reduction::Immediate);
    for detector in [Detector::Rack, Detector::Sack] {
        let cfg = cfg.clone().with(|c| c.recovery.detector = detector);
        let mut h = Host::new(cfg, 20.0);
        h.ack_at(101.0, &sack(0, &[(15, 16)]));
        h.ack_at(102.0, &sack(0, &[(15, 17)]));
        let out = h.ack_at(103.0, &sack(0, &[(15, 18)]));
        assert_eq!(out, (0..6).map(R).collect::<Vec<_>>(), "{detector:?}");
    }
}

/// The formula alone: above ssthresh in proportion, below it slow start, the fast retransmit
/// forced.
#[test]
fn the_quota_of_one_ack() {
    let ack = |delivered, inflight, good| PrrAck {
        delivered,
        inflight,
        good,
    };
    let mut p = Prr::new(10, 20, 20);
    p.on_ack(ack(1, 18, false));
    assert_eq!(p.cwnd(), 19);
    p.on_sent();
    p.on_ack(ack(2, 17, false)); // ceil(3 * 10 / 20) - 1 = 1
    assert_eq!(p.cwnd(), 18);
    // Nothing delivered: no change.
    p.on_ack(ack(0, 3, true));
    assert_eq!(p.cwnd(), 18);
    // Below ssthresh: what was delivered and not sent, at most up to ssthresh.
    let mut p = Prr::new(10, 20, 20);
    p.on_ack(ack(4, 9, true));
    assert_eq!(p.cwnd(), 10);
    let mut p = Prr::new(10, 20, 20);
    p.on_ack(ack(2, 4, true));
    assert_eq!(p.cwnd(), 7);
    let mut p = Prr::new(10, 20, 20);
    p.on_ack(ack(2, 4, false));
    assert_eq!(p.cwnd(), 6);
    // At ssthresh exactly the quota is zero, but the first retransmission leaves.
    let mut p = Prr::new(10, 20, 20);
    p.on_ack(ack(1, 10, false));
    assert_eq!(p.cwnd(), 11);
}

/// The slow-start part never exceeds what the network delivered: sent in recovery is at most what
/// was delivered (plus one).
#[test]
fn conservation_bound_under_heavy_loss() {
    let mut h = host(Detector::Rack);
    h.ack_at(100.0, &sack(0, &[(12, 13)]));
    h.ack_at(101.0, &sack(0, &[(12, 14)]));
    h.ack_at(102.0, &sack(0, &[(12, 15)]));
    let start = h.log.len() - 1;
    for i in 0..5 {
        h.ack_at(103.0 + i as f64, &sack(0, &[(12, 16 + i)]));
    }
    let delivered = 6;
    assert!(
        h.log.len() - start <= delivered + 1,
        "{}",
        h.log.len() - start
    );
}
