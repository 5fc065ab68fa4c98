//! Explicit congestion notification (RFC 3168) and the answer to a mark (RFC 8511).

use fullpipe_cc::{Base, CongestionKind, StackSpec};
use fullpipe_flow::{Ack, Reduction, Segment, Validation};

use crate::host::{Host, ack, modern, reduction, sack};

/// RFC 3168: one reduction per window of data however many marks; CWR on the first new segment, no
/// ECT on retransmissions; the echo of the same mark that ends the window does not reduce again.
#[test]
fn marks_reduce_once_per_window() {
    for prr in [false, true] {
        let cfg = modern().with(|c| {
            c.ecn = true;
            c.recovery.reduction = reduction(prr);
            c.window.validation = Validation::None;
        });
        let mut h = Host::new(cfg, 20.0);
        assert!(h.log.iter().all(|l| l.1.ect && !l.1.cwr));
        let echo = |cum: u64| Ack {
            ece: true,
            ..ack(cum, 1e9)
        };
        h.ack_at(80.0, &ack(2, 0.0));
        let point = h.s.nxt();
        for cum in (4..=point).step_by(2) {
            h.ack_at(80.0 + cum as f64, &echo(cum));
        }
        assert_eq!(h.s.una(), point);
        assert_eq!(h.s.controller().congestions.len(), 1, "prr {prr}");
        let c = h.s.controller().congestions[0];
        assert_eq!(
            (c.kind, c.flight),
            (CongestionKind::Ecn, 20),
            "FlightSize as the ACK came"
        );
        assert_eq!(h.s.controller().ssth, 10.0);
        let first_new = h.log.iter().position(|l| l.1.seq == point).unwrap();
        assert!(h.log[first_new].1.cwr);
        assert_eq!(h.log.iter().filter(|l| l.1.cwr).count(), 1);
        assert_eq!(h.s.counts().retransmits, 0);
        // A new mark in the next window.
        h.ack_at(200.0, &ack(point + 2, 1e9));
        h.ack_at(201.0, &echo(point + 4));
        assert_eq!(h.s.controller().congestions.len(), 2);
    }
}

/// A retransmission carries neither ECT nor CWR; CWR waits for new data.
#[test]
fn retransmissions_carry_neither_ect_nor_cwr() {
    let cfg = modern().with(|c| c.ecn = true);
    let mut h = Host::new(cfg, 20.0);
    for i in 1..=8 {
        h.ack_at(80.0 + i as f64, &sack(0, &[(1, 1 + i)]));
    }
    let again = h.log.iter().find(|l| l.1.retransmission).unwrap().1;
    assert!(!again.ect && !again.cwr);
    let cwr: Vec<&Segment> = h.log.iter().map(|l| &l.1).filter(|s| s.cwr).collect();
    assert_eq!(cwr.len(), 1);
    assert!(!cwr[0].retransmission);
}

/// A controller that lives on marks has queues that drop what is not ECN-capable.
#[test]
fn retransmissions_are_ecn_capable_where_the_controller_needs_it() {
    let run = |stack: &str| {
        let spec = StackSpec::parse(stack).unwrap();
        let (cfg, setup) = modern().with(|c| c.ecn = true).with_stack(&spec);
        let mut h = Host::with(cfg, spec.controller(setup));
        h.ack_at(80.0, &sack(0, &[(1, 9)]));
        h.log.iter().find(|l| l.1.retransmission).unwrap().1.ect
    };
    assert!(run("dctcp") && run("dctcp-linux"));
    assert!(!run("reno") && !run("reno-linux"));
}

/// RFC 8257 section 3.5: a loss halves the window, in the window of data of a mark that has taken
/// less, too. Other laws take one thing or the other (RFC 3168 section 6.1.2).
#[test]
fn a_loss_behind_a_mark_halves_where_the_mark_took_less() {
    let run = |stack: &str| {
        let spec = StackSpec::parse(stack).unwrap();
        let (cfg, setup) = modern().with(|c| c.ecn = true).with_stack(&spec);
        let mut h = Host::with(cfg, spec.controller(setup));
        let ssth = |h: &Host<_>| fullpipe_cc::Controller::ssthresh(h.s.controller());
        let mark = Ack {
            ece: true,
            ..ack(2, 0.0)
        };
        h.ack_at(80.0, &mark);
        let marked = ssth(&h);
        let una = h.s.una();
        h.ack_at(81.0, &sack(una, &[(una + 1, una + 7)]));
        (marked, ssth(&h))
    };
    let (marked, lost) = run("dctcp(alpha=0.2)");
    assert_eq!(marked, 8.75); // Alpha is 0.25 by then
    assert!(lost <= 0.5 * marked + 0.5, "{lost}");
    let (marked, lost) = run("reno(ecn_keep=0.9)");
    assert_eq!(marked, lost);
}

/// ABE (RFC 8511): on a mark in congestion avoidance the fraction kept is the parameter; on loss
/// nothing changes.
#[test]
fn abe_keeps_more_on_a_mark_than_on_a_loss() {
    let run = |stack: &str, marked: bool| {
        let cfg = modern().with(|c| {
            c.ecn = true;
            c.recovery.reduction = Reduction::Immediate;
            c.window.decrease_base = Base::Cwnd;
        });
        let spec = StackSpec::parse(stack).unwrap();
        let (cfg, setup) = cfg.with_stack(&spec);
        let mut h = Host::with(cfg, spec.controller(setup));
        // Into congestion avoidance by a first loss.
        h.ack_at(80.0, &sack(0, &[(1, 10)]));
        h.ack_at(160.0, &ack(10, 80.0));
        let nxt = h.s.nxt();
        h.ack_at(240.0, &ack(nxt, 160.0));
        let w = h.s.cwnd();
        assert!(w >= fullpipe_cc::Controller::ssthresh(h.s.controller()));
        let una = h.s.una();
        if marked {
            h.ack_at(
                320.0,
                &Ack {
                    ece: true,
                    ..ack(una + 1, 240.0)
                },
            );
        } else {
            h.ack_at(320.0, &sack(una, &[(una + 1, una + 4)]));
        }
        let ssth = fullpipe_cc::Controller::ssthresh(h.s.controller());
        ssth / w
    };
    let keep = run("reno(ecn_keep=0.8)", true);
    assert!((keep - 0.8).abs() < 0.01, "{keep}");
    let keep = run("reno(ecn_keep=0.8)", false);
    assert!((keep - 0.5).abs() < 0.01, "{keep}");
    let keep = run("reno", true);
    assert!((keep - 0.5).abs() < 0.01, "{keep}");
}
