//! What leaves and when: handshake, limits, spreading, pacing, the local queue, marks, validation, artificial loss.

use fullpipe_cc::{Base, CongestionKind, InitialSending, PacingGains, Phase, StackSpec};
use fullpipe_flow::{
    Ack, ArtificialLoss, Detector, EpisodeKind, LocalDrop, Preset, Receiver, ReceiverConfig,
    Reduction, SackBlocks, Segment, Sender, SenderConfig, Validation,
};
use fullpipe_units::{Span, Time};

use crate::host::Out::{self, N, R, Syn};
use crate::host::{Halver, Host, ack, modern, ms, sack, span_ms};

fn syn_ack(window_end: u64) -> Ack {
    Ack {
        cum: 0,
        syn: true,
        echo: Time::ZERO,
        stamp_ms: 0,
        sacks: SackBlocks::default(),
        dsack: false,
        ece: false,
        window_end,
    }
}

fn reduction(prr: bool) -> Reduction {
    if prr {
        Reduction::Prr
    } else {
        Reduction::Immediate
    }
}

fn kinds<C: fullpipe_cc::Controller>(h: &mut Host<C>) -> Vec<EpisodeKind> {
    h.s.drain_log().map(|e| e.kind).collect()
}

#[test]
fn the_handshake_takes_one_round_trip_and_gives_a_sample() {
    let cfg = SenderConfig::preset(Preset::Y2026, 1500);
    let mut h = Host::new(cfg, 10.0);
    assert_eq!(
        h.log.iter().map(|l| Out::of(&l.1)).collect::<Vec<_>>(),
        [Syn]
    );
    assert!(h.ack_at(40.0, &ack(0, 0.0)).is_empty(), "not open yet");
    let out = h.ack_at(80.0, &syn_ack(u64::MAX));
    assert_eq!(out, (0..10).map(N).collect::<Vec<_>>());
    assert_eq!(h.s.rtt().srtt(), span_ms(80));
    assert_eq!(h.s.counts().sent, 10, "a SYN is no data");
}

/// RFC 6298 section 5.7, RFC 5681 section 3.1: after a lost SYN one segment and a timeout of three seconds; no sample.
#[test]
fn a_lost_syn_means_one_segment_and_three_seconds() {
    let cfg = SenderConfig {
        tlp: false,
        ..SenderConfig::preset(Preset::Y2026, 1500)
    };
    let mut h = Host::new(cfg, 10.0);
    assert_eq!(h.wait(999.0), []);
    assert_eq!(h.wait(2999.0), [(1000.0, Syn)]);
    assert_eq!(h.wait(3000.0), [(3000.0, Syn)], "backed off to two seconds");
    assert_eq!(h.ack_at(3080.0, &syn_ack(u64::MAX)), [N(0)]);
    assert_eq!(h.s.cwnd(), 1.0);
    assert_eq!(h.s.rtt().samples(), 0, "Karn");
    assert_eq!(h.s.next_timeout(), ms(6080.0));
    // The first sample is the first: SRTT is 80 ms, not a mixture with a guess.
    h.ack_at(3160.0, &ack(1, 3080.0));
    assert_eq!(h.s.rtt().srtt(), span_ms(80));
}

/// A copy of the SYN/ACK that comes late must not move the window back.
#[test]
fn a_late_syn_ack_is_ignored() {
    let cfg = SenderConfig::preset(Preset::Y2026, 1500);
    let mut h = Host::new(cfg, 4.0);
    h.ack_at(80.0, &syn_ack(4));
    let open = |cum| Ack {
        window_end: cum + 100,
        ..ack(cum, 80.0)
    };
    h.ack_at(160.0, &open(4));
    h.deliver(&syn_ack(4));
    assert_eq!(
        h.ack_at(
            240.0,
            &Ack {
                window_end: 108,
                ..open(8)
            }
        )
        .len(),
        4
    );
}

#[test]
fn the_peers_window_limits_the_sender() {
    let cfg = SenderConfig::preset(Preset::Y2026, 1500);
    let mut h = Host::new(cfg, 100.0);
    assert_eq!(h.ack_at(80.0, &syn_ack(7)).len(), 7);
    let limited = |cum, window_end| Ack {
        window_end,
        ..ack(cum, 80.0)
    };
    assert_eq!(h.ack_at(160.0, &limited(3, 10)), [N(7), N(8), N(9)]);
    // An old ACK that arrives late does not shrink it.
    h.ack(&limited(1, 5));
    assert_eq!(h.ack_at(200.0, &limited(5, 12)), [N(10), N(11)]);
    assert!(
        !h.s.controller().last.unwrap().cwnd_limited,
        "the window was not the limit"
    );
}

/// A full cycle of a finite transfer whose last segments are lost: the timeout brings them.
#[test]
fn a_transfer_whose_tail_is_lost_completes_by_timeout() {
    for detector in [Detector::Rack, Detector::Sack, Detector::NewReno] {
        let cfg = SenderConfig {
            detector,
            tlp: false,
            transfer: Some(12),
            ..modern()
        };
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

/// Section 3.2: segment i of the initial window leaves at t0 + i T; (RTT, jiffy, IW, T bounded, T variable), ms.
#[test]
fn the_initial_window_leaves_at_the_times_of_the_table() {
    let rows = [
        (8, 1, 10, 0.0, 0.0),
        (8, 10, 10, 0.0, 0.0),
        (20, 1, 10, 2.0, 2.0),
        (20, 4, 10, 0.0, 0.0),
        (40, 1, 10, 4.0, 4.0),
        (40, 4, 10, 4.0, 4.0),
        (40, 10, 10, 0.0, 0.0),
        (80, 1, 10, 4.0, 8.0),
        (80, 4, 10, 4.0, 8.0),
        (250, 4, 10, 4.0, 25.0),
        (500, 1, 10, 4.0, 50.0),
        (600, 4, 10, 4.0, 60.0),
        (20, 4, 3, 4.0, 20.0 / 3.0),
    ];
    for (rtt, jiffy, iw, bounded, variable) in rows {
        for (t_max, gap) in [(Some(span_ms(4)), bounded), (None, variable)] {
            let cfg = SenderConfig {
                sending: InitialSending::Spread {
                    t_max,
                    jiffy: span_ms(jiffy),
                },
                tlp: false,
                ..SenderConfig::preset(Preset::Y2026, 1500)
            };
            let mut h = Host::new(cfg, f64::from(iw));
            let rtt = f64::from(rtt);
            h.ack_at(rtt, &syn_ack(u64::MAX));
            h.wait(rtt * 2.0 - 0.001);
            let times: Vec<f64> = h.log[1..]
                .iter()
                .map(|l| l.0.as_secs_f64() * 1e3 - rtt)
                .collect();
            assert_eq!(times.len(), iw as usize, "RTT {rtt} jiffy {jiffy}");
            for (i, t) in times.iter().enumerate() {
                let expected = gap * i as f64;
                assert!(
                    (t - expected).abs() < 1e-4,
                    "RTT {rtt} jiffy {jiffy}: {i} at {t}, not {expected}"
                );
            }
        }
    }
}

fn spread(rtt_ms: f64, w: f64) -> Host {
    let cfg = SenderConfig {
        sending: InitialSending::Spread {
            t_max: Some(span_ms(4)),
            jiffy: span_ms(1),
        },
        ecn: true,
        ..SenderConfig::preset(Preset::Y2026, 1500)
    };
    let mut h = Host::new(cfg, w);
    h.ack_at(rtt_ms, &syn_ack(u64::MAX));
    h
}

/// Spreading ends at the first loss, and after the initial window: then the rest is ACK-clocked.
#[test]
fn spreading_ends_on_loss_on_a_mark_and_after_the_initial_window() {
    // IW 40 at RTT 160: the last would leave at 156.
    for marked in [false, true] {
        let mut h = spread(160.0, 40.0);
        h.wait(319.0);
        assert_eq!(h.log.len(), 1 + 40);
        let mut h = spread(20.0, 10.0); // gap 2: 18 ms
        h.wait(34.0);
        assert_eq!(h.log.len(), 1 + 8);
        let before = h.log.len();
        let out = if marked {
            h.ack(&Ack {
                ece: true,
                ..ack(2, 20.0)
            })
        } else {
            h.ack(&sack(0, &[(1, 6)]))
        };
        assert_eq!(h.s.controller().congestions.len(), 1);
        // Whatever the window allows leaves at once; nothing waits for a pacer.
        let cwnd = h.s.cwnd() as u64;
        assert!(h.s.flight() >= cwnd, "{} {cwnd} {out:?}", h.s.flight());
        let left = h.wait(39.0).len();
        assert_eq!(left, 0, "{before}");
    }
    // After the initial window: bursts of what an ACK releases.
    let mut h = spread(20.0, 10.0);
    h.wait(39.9);
    assert_eq!(h.ack_at(40.0, &ack(2, 20.0)), [N(10), N(11)]);
}

/// Section 3.3, known number: w 1000, 1448 B, SRTT 87 ms, gain 1.2: 159.779310 Mbit/s, one segment every 72.5 us.
#[test]
fn pacing_spaces_segments_by_the_published_gap() {
    for (ssth, gain) in [(1000.0, 1.2), (f64::INFINITY, 2.0)] {
        let cfg = SenderConfig {
            pacing: Some(PacingGains::default()),
            validation: Validation::None,
            ..SenderConfig::preset(Preset::Y2026, 1500)
        };
        let mut cc = Halver::new(1000.0);
        cc.ssth = ssth;
        let mut h = Host::with(cfg, cc);
        h.ack_at(87.0, &syn_ack(u64::MAX));
        let rate = h.s.pacing_rate().unwrap() / 1e6;
        assert!((rate - 159.779310 * gain / 1.2).abs() < 1e-6, "{rate}");
        h.wait(87.0 + 30.0);
        let times: Vec<f64> = h.log[1..].iter().map(|l| l.0.as_secs_f64() * 1e6).collect();
        let gap = 72.5 * 1.2 / gain;
        // The start: at most a millisecond's worth at once.
        let burst = times.iter().filter(|t| **t < 87_000.5).count();
        let credit = (1000.0 / gap).max(2.0);
        assert!(burst as f64 <= credit + 1.0, "{burst} at once, gap {gap}");
        for pair in times[burst..].windows(2) {
            assert!((pair[1] - pair[0] - gap).abs() < 0.002, "{pair:?} {gap}");
        }
        let expected = burst as f64 + 30_000.0 / gap;
        assert!(
            (times.len() as f64 - expected).abs() <= 1.0,
            "{} {expected}",
            times.len()
        );
    }
}

/// Retransmissions are paced like the rest.
#[test]
fn retransmissions_are_paced() {
    let cfg = SenderConfig {
        pacing: Some(PacingGains::default()),
        ..SenderConfig::preset(Preset::Y2026, 1500)
    };
    let mut h = Host::new(cfg, 40.0);
    h.ack_at(100.0, &syn_ack(u64::MAX));
    h.wait(200.0);
    h.ack(&sack(0, &[(30, 33)]));
    h.wait(290.0);
    let times: Vec<Time> = h
        .log
        .iter()
        .filter(|l| l.1.retransmission)
        .map(|l| l.0)
        .collect();
    assert!(times.len() >= 3);
    assert!(times.windows(2).skip(2).all(|w| w[1] > w[0]), "{times:?}");
}

fn stalled(policy: LocalDrop, prr: bool) -> (Host, Segment) {
    let cfg = SenderConfig {
        local_drop: policy,
        reduction: reduction(prr),
        ecn: true,
        tlp: false,
        ..modern()
    };
    let mut h = Host::new(cfg, 20.0);
    h.wait(100.0);
    h.deliver(&ack(4, 0.0));
    let refused = h.s.poll_transmit(h.now).unwrap();
    assert_eq!(Out::of(&refused), N(20));
    h.s.refuse(h.now, &refused);
    h.s.audit().unwrap();
    (h, refused)
}

/// Section 4.8: `react` reduces once per window, kind local drop, no undo; the segment is sent after all.
#[test]
fn a_local_drop_reduces_once_per_window() {
    for prr in [false, true] {
        let (mut h, _) = stalled(LocalDrop::React, prr);
        assert!(h.s.is_stalled());
        assert_eq!(h.s.nxt(), 20, "taken back");
        assert_eq!(h.poll(), [], "nothing leaves before the queue drains");
        assert_eq!(h.s.controller().congestions.len(), 1);
        assert_eq!(
            h.s.controller().congestions[0].kind,
            CongestionKind::LocalDrop
        );
        assert_eq!(h.s.phase(), Phase::Cwr);
        h.s.resume();
        // The window slides down (PRR) or dropped at once; new refusals in the same window change nothing.
        let mut una = 4;
        while una < 18 {
            una += 2;
            h.now += span_ms(2);
            h.deliver(&ack(una, 0.0));
            if let Some(s) = h.s.poll_transmit(h.now) {
                h.s.refuse(h.now, &s);
                h.s.resume();
            }
            assert_eq!(h.s.controller().congestions.len(), 1);
        }
        h.ack(&ack(20, 0.0));
        assert_eq!(h.s.phase(), Phase::Open);
        // Nothing was skipped: new data continues at 20, and the first of it carries CWR.
        let new: Vec<&Segment> = h.log[20..].iter().map(|l| &l.1).collect();
        assert_eq!(new[0].seq, 20);
        assert!(new[0].cwr, "CWR survives the refusal");
        assert!(
            new.iter()
                .enumerate()
                .all(|(i, s)| s.seq == 20 + i as u64 && s.cwr == (i == 0))
        );
        assert_eq!(h.s.counts().sent, h.log.len() as u64);
        assert_eq!(h.s.controller().undos, 0);
    }
}

/// A socket refuses what is left of a batch, newest first: all of it is taken back, one reduction.
#[test]
fn a_refused_batch_reduces_once() {
    for policy in [LocalDrop::React, LocalDrop::Ignore] {
        for prr in [false, true] {
            let cfg = SenderConfig {
                local_drop: policy,
                reduction: reduction(prr),
                tlp: false,
                ..modern()
            };
            let mut h = Host::new(cfg, 20.0);
            h.wait(100.0);
            h.deliver(&ack(4, 0.0));
            let mut batch = Vec::new();
            while let Some(s) = h.s.poll_transmit(h.now) {
                batch.push(s);
            }
            assert_eq!(batch.len(), 4);
            for segment in batch.iter().rev() {
                h.s.refuse(h.now, segment);
                h.s.audit().unwrap();
            }
            assert_eq!((h.s.nxt(), h.s.counts().sent), (20, 20));
            let reductions = usize::from(policy == LocalDrop::React);
            assert_eq!(h.s.controller().congestions.len(), reductions);
            h.s.resume();
            h.now += span_ms(100);
            h.ack(&ack(20, 0.0));
            assert_eq!(h.s.nxt(), 20 + h.s.flight());
            assert!(h.s.flight() > 0, "it goes on");
            h.now += span_ms(100);
            h.ack(&ack(h.s.nxt(), 0.0));
            assert_eq!(h.s.phase(), Phase::Open);
        }
    }
}

/// `ignore` touches nothing; `exit-slow-start` moves the threshold to the window.
#[test]
fn ignore_waits_and_exit_leaves_slow_start() {
    for policy in [LocalDrop::Ignore, LocalDrop::ExitSlowStart] {
        let (mut h, _) = stalled(policy, true);
        assert_eq!(h.s.cwnd(), 20.0);
        assert_eq!(h.s.phase(), Phase::Open);
        let exited = policy == LocalDrop::ExitSlowStart;
        assert_eq!(
            h.s.controller().ssth,
            if exited { 20.0 } else { f64::INFINITY }
        );
        assert_eq!(
            kinds(&mut h),
            if exited {
                vec![EpisodeKind::StartUpExit]
            } else {
                vec![]
            }
        );
        h.s.resume();
        assert_eq!(h.poll(), [N(20), N(21), N(22), N(23)]);
        assert_eq!(h.s.counts().local_stalls, 1);
    }
}

/// The very first segment is refused: nothing is outstanding, no ACK will come, the sender must still go on.
#[test]
fn a_refusal_with_nothing_outstanding_is_no_deadlock() {
    for policy in [
        LocalDrop::React,
        LocalDrop::Ignore,
        LocalDrop::ExitSlowStart,
    ] {
        for prr in [false, true] {
            let cfg = SenderConfig {
                local_drop: policy,
                reduction: reduction(prr),
                handshake: false,
                ..modern()
            };
            let mut s = Sender::new(cfg, Halver::new(10.0), 0);
            s.start(Time::ZERO);
            let first = s.poll_transmit(Time::ZERO).unwrap();
            s.refuse(Time::ZERO, &first);
            s.audit().unwrap();
            assert_eq!(s.next_timeout(), Time::MAX, "nothing is outstanding");
            s.resume();
            let again = s.poll_transmit(ms(5.0)).expect("a segment");
            assert_eq!((again.seq, again.retransmission), (0, false));
            assert_eq!(s.counts().sent, 1);
        }
    }
}

/// A refused retransmission is sent when the queue has room, and counts once.
#[test]
fn a_refused_retransmission_is_not_lost() {
    let cfg = SenderConfig {
        local_drop: LocalDrop::React,
        ..modern()
    };
    let mut h = Host::new(cfg, 20.0);
    h.ack_at(80.0, &sack(0, &[(1, 2)]));
    h.ack_at(81.0, &sack(0, &[(1, 3)]));
    h.wait(82.0);
    h.deliver(&sack(0, &[(1, 4)]));
    let r = h.s.poll_transmit(h.now).unwrap();
    assert_eq!(Out::of(&r), R(0));
    h.s.refuse(h.now, &r);
    h.s.audit().unwrap();
    assert_eq!(h.s.counts().retransmits, 0);
    h.s.resume();
    h.now = ms(90.0);
    assert_eq!(h.poll(), [R(0)]);
    assert_eq!(h.s.counts().retransmits, 1);
    assert_eq!(
        h.s.controller().congestions.len(),
        1,
        "one reduction for loss and stall"
    );
}

#[test]
fn a_refused_syn_is_sent_again() {
    let cfg = SenderConfig::preset(Preset::Y2026, 1500);
    let mut s = Sender::new(cfg, Halver::new(10.0), 0);
    s.start(Time::ZERO);
    let syn = s.poll_transmit(Time::ZERO).unwrap();
    s.refuse(Time::ZERO, &syn);
    assert_eq!(s.poll_transmit(Time::ZERO), None);
    s.resume();
    assert!(s.poll_transmit(ms(3.0)).unwrap().syn);
    s.handle_ack(ms(83.0), &syn_ack(u64::MAX));
    assert_eq!(s.rtt().srtt(), span_ms(80));
}

/// RFC 3168: one reduction per window of data however many marks; CWR on the first new segment, no ECT on retransmissions;
/// the echo of the same mark that ends the window does not reduce again.
#[test]
fn marks_reduce_once_per_window() {
    for prr in [false, true] {
        let cfg = SenderConfig {
            ecn: true,
            reduction: reduction(prr),
            validation: Validation::None,
            ..modern()
        };
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
    let cfg = SenderConfig {
        ecn: true,
        ..modern()
    };
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

/// ABE (RFC 8511): on a mark in congestion avoidance the fraction kept is the parameter; on loss nothing changes.
#[test]
fn abe_keeps_more_on_a_mark_than_on_a_loss() {
    let run = |stack: &str, marked: bool| {
        let cfg = SenderConfig {
            ecn: true,
            reduction: Reduction::Immediate,
            base: Base::Cwnd,
            ..modern()
        };
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

/// Receiver: one ACK per n segments, the rest by the timer, at once when something is missing.
#[test]
fn delayed_acks_follow_their_two_rules() {
    for every in [1, 2, 4] {
        let mut r = Receiver::new(ReceiverConfig {
            ack_every: every,
            ..ReceiverConfig::preset(Preset::Y2003)
        });
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

/// A late copy of the SYN neither acknowledges nor disturbs what is pending.
#[test]
fn a_late_syn_leaves_the_delayed_ack_alone() {
    let mut r = Receiver::new(ReceiverConfig::preset(Preset::Y2026));
    let segment = |seq, syn, stamp| Segment {
        seq,
        syn,
        retransmission: false,
        stamp: ms(stamp),
        ect: false,
        ce: false,
        cwr: false,
        push: false,
    };
    assert!(
        r.handle_segment(ms(0.0), &segment(0, true, 0.0))
            .unwrap()
            .syn
    );
    assert!(
        r.handle_segment(ms(10.0), &segment(0, false, 5.0))
            .is_none()
    );
    assert!(
        r.handle_segment(ms(20.0), &segment(0, true, 1.0))
            .unwrap()
            .syn
    );
    assert_eq!(r.next_timeout(), ms(50.0));
    let a = r.handle_timeout(ms(50.0)).unwrap();
    assert_eq!((a.cum, a.echo), (1, ms(5.0)));
}

/// Idle for 3.5 timeouts after a burst: each mode's window, through the sender.
#[test]
fn validation_after_idle_follows_its_mode() {
    // The application stops at 40, then the host raises the limit by a new transfer: modelled by the peer's window.
    let rows = [
        (Validation::None, 20.0),
        (Validation::Rfc5681, 4.0),
        (Validation::Rfc2861, 4.0), // three halvings of 20 end at the floor min(IW, w)
        (Validation::Rfc7661, 20.0),
    ];
    for (mode, expected) in rows {
        let cfg = SenderConfig {
            validation: mode,
            initial_window: 4.0,
            tlp: false,
            ..modern()
        };
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

/// Sender-side artificial loss: nothing is resent, one reduction per window; base is the flight as the ACK came.
#[test]
fn artificial_losses_reduce_without_retransmission() {
    for prr in [false, true] {
        let cfg = SenderConfig {
            reduction: reduction(prr),
            validation: Validation::None,
            artificial_loss: ArtificialLoss {
                segments: vec![21, 23, 60],
                ..ArtificialLoss::default()
            },
            ..modern()
        };
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
    let cfg = SenderConfig {
        artificial_loss: ArtificialLoss {
            every: Some(50),
            ..ArtificialLoss::default()
        },
        ..modern()
    };
    let mut h = Host::new(cfg, 8.0);
    for cum in 1..=400u64 {
        h.ack_at(80.0 + 10.0 * cum as f64, &ack(cum, 10.0 * cum as f64));
        h.s.drain_log().for_each(drop);
    }
    assert_eq!(h.s.counts().loss_events, 8);
}

/// C-GATE: an application-limited sender reports that the window was not the limit.
#[test]
fn an_application_limit_is_reported() {
    let cfg = SenderConfig {
        transfer: Some(60),
        ..modern()
    };
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

/// Linux `tcp_tso_should_defer`: trains of the offload's size, or of a third of the window where that is less.
#[test]
fn segmentation_offload_waits_for_a_train() {
    for (window, tso, train) in [(24.0, 8, 8), (24.0, 44, 8), (90.0, 44, 30), (60.0, 10, 10)] {
        let cfg = SenderConfig {
            tso_segments: tso,
            ..modern()
        };
        let mut h = Host::new(cfg, window);
        assert!(h.log.len() + train > window as usize, "{}", h.log.len());
        let mut sizes = Vec::new();
        for cum in (2..=240).step_by(2) {
            let out = h.ack_at(cum as f64, &ack(cum, 0.0));
            if !out.is_empty() {
                sizes.push(out.len());
            }
        }
        assert!(
            sizes.len() > 3 && sizes.iter().all(|n| *n == train),
            "window {window}, offload {tso}: {sizes:?}"
        );
    }
}

/// The last segments of a transfer do not wait, and neither does a sender with nothing in flight.
#[test]
fn segmentation_offload_holds_nothing_back_at_the_end() {
    let cfg = SenderConfig {
        tso_segments: 44,
        transfer: Some(31),
        ..modern()
    };
    let mut h = Host::new(cfg, 30.0);
    assert_eq!(h.log.len(), 30);
    assert_eq!(h.ack_at(80.0, &ack(1, 0.0)), [N(30)], "one is all there is");
    h.ack_at(81.0, &ack(31, 0.0));
    assert!(h.s.is_done());
}

/// Initial Spreading wants no offload for the first window: trains come after it.
#[test]
fn segmentation_offload_leaves_a_spread_initial_window_alone() {
    let cfg = SenderConfig {
        sending: InitialSending::Spread {
            t_max: Some(span_ms(4)),
            jiffy: span_ms(1),
        },
        tso_segments: 44,
        ..SenderConfig::preset(Preset::Y2026, 1500)
    };
    let mut h = Host::new(cfg, 10.0);
    h.ack_at(100.0, &syn_ack(u64::MAX));
    h.wait(199.0);
    let times: Vec<f64> = h.log[1..]
        .iter()
        .map(|(t, _)| t.as_secs_f64() * 1e3)
        .collect();
    let expected: Vec<f64> = (0..10).map(|i| 100.0 + 4.0 * f64::from(i)).collect();
    assert_eq!(times, expected);
    assert_eq!(h.ack_at(200.0, &ack(2, 100.0)).len(), 0, "a third waits");
    assert_eq!(h.ack_at(204.0, &ack(3, 104.0)).len(), 3);
}

/// A pacer lets a train pass as one and charges it whole; at a low rate it is two segments long, at a high one a millisecond.
#[test]
fn segmentation_offload_paces_trains() {
    let cfg = SenderConfig {
        tso_segments: 4,
        pacing: Some(PacingGains {
            slow_start: 1.0,
            avoidance: 1.0,
        }),
        ..modern()
    };
    let mut h = Host::new(cfg, 20.0);
    h.s.drain_log().count();
    h.ack_at(100.0, &ack(20, 0.0));
    h.wait(199.0);
    let times: Vec<f64> = h.log[20..]
        .iter()
        .map(|(t, _)| t.as_secs_f64() * 1e3)
        .collect();
    assert_eq!(times.len(), 20);
    for train in times.chunks(2) {
        assert!(train.iter().all(|t| *t == train[0]), "{times:?}");
    }
    // 20 segments per 100 ms: a train of two every 10 ms, less what the pacer's credit of a burst advances the first.
    for pair in times.chunks(2).collect::<Vec<_>>().windows(2) {
        assert!((pair[1][0] - pair[0][0] - 10.0).abs() < 10.1, "{times:?}");
    }
    let span = times[19] - times[0];
    assert!((80.0..=90.0).contains(&span), "{span}");
}
