//! What is judged lost and what is sent next: RFC 6675, RFC 6582, RFC 8985.

use fullpipe_cc::{CongestionKind, Phase};
use fullpipe_flow::{
    Ack, Detector, EpisodeKind, LocalDrop, Preset, Reduction, SenderConfig, Validation,
};
use fullpipe_units::Time;

use crate::host::Out::{self, N, R};
use crate::host::{Host, ack, dsack, modern, ms, sack, span_ms};

fn with(detector: Detector) -> SenderConfig {
    modern().with(|c| {
        c.recovery.detector = detector;
        c.recovery.reduction = Reduction::Immediate;
        c.recovery.tlp = false;
        c.window.validation = Validation::None;
    })
}

fn limited_to(detector: Detector, transfer: u64) -> SenderConfig {
    with(detector).with(|c| c.transfer = Some(transfer))
}

/// Duplicate ACKs number 1..=n for `first`, `first+1`, ... above a hole at zero, one millisecond
/// apart from `at`.
fn duplicates<C: fullpipe_cc::Controller>(
    host: &mut Host<C>,
    at: f64,
    first: u64,
    n: u64,
) -> Vec<Vec<Out>> {
    (0..n)
        .map(|i| host.ack_at(at + i as f64, &sack(0, &[(first, first + i + 1)])))
        .collect()
}

/// RFC 6675 IsLost: three SACKed segments above a hole, whether in one block or three.
#[test]
fn a_hole_is_lost_below_three_sacked_segments() {
    let mut h = Host::new(with(Detector::Sack), 10.0);
    assert_eq!(h.ack_at(100.0, &sack(0, &[(2, 4)])), [N(10), N(11)]);
    assert_eq!(h.s.phase(), Phase::Disorder);
    // The third: segments 0 and 1 are lost; the window halves to 5, pipe is 12 - 3 - 2 = 7. The
    // first leaves all the same (RFC 6675 section 5 step 4.3).
    assert_eq!(h.ack_at(101.0, &sack(0, &[(2, 5)])), [R(0)]);
    assert_eq!(h.s.phase(), Phase::Recovery);
    assert_eq!(h.s.flight(), 8);

    let mut h = Host::new(with(Detector::Sack), 10.0);
    h.ack_at(100.0, &sack(0, &[(1, 2)]));
    h.ack_at(101.0, &sack(0, &[(3, 4), (1, 2)]));
    assert_eq!(h.s.phase(), Phase::Disorder);
    h.ack_at(102.0, &sack(0, &[(5, 6), (3, 4), (1, 2)]));
    assert_eq!(h.s.phase(), Phase::Recovery);
    // Holes 2 and 4 have fewer than three above: 12 out, 3 SACKed, one lost and sent again.
    assert_eq!(h.s.flight(), 12 - 3 - 1 + 1);
}

/// Limited Transmit: the first two duplicates release one new segment each, not part of FlightSize;
/// rule 1 before rule 2.
#[test]
fn limited_transmit_then_lost_segments_then_new_data() {
    let mut h = Host::new(with(Detector::Sack), 20.0);
    let out = duplicates(&mut h, 100.0, 1, 14);
    assert_eq!(out[..3], [vec![N(20)], vec![N(21)], vec![R(0)]]);
    assert_eq!(
        h.s.controller().congestions[0].flight,
        20,
        "limited transmit excluded"
    );
    assert_eq!(h.s.controller().ssth, 10.0);
    // The hole leaves at once; pipe is then 22 - 3 - 1 + 1 = 19. It reaches 9 ten duplicates later:
    // new data.
    assert!(out[3..12].iter().all(|o| o.is_empty()), "{out:?}");
    assert_eq!(out[12..], [vec![N(22)], vec![N(23)]]);
    assert_eq!(h.s.controller().congestions.len(), 1);
}

/// Rule 3: no new data is left, so holes that are not yet lost are resent, each once.
#[test]
fn without_new_data_unsacked_holes_follow() {
    let mut h = Host::new(limited_to(Detector::Sack, 10), 10.0);
    h.ack_at(100.0, &sack(0, &[(3, 4)]));
    h.ack_at(101.0, &sack(0, &[(5, 6), (3, 4)]));
    // Holes 0-2 lost (three above); 4 and 6 are not. pipe 10 - 3 - 3 = 4 of 5.
    assert_eq!(h.ack_at(102.0, &sack(0, &[(7, 8), (5, 6), (3, 4)])), [R(0)]);
    // Hole 4 has three above, too: pipe 10 - 4 - 4 + 1 = 3.
    assert_eq!(
        h.ack_at(103.0, &sack(0, &[(7, 9), (5, 6), (3, 4)])),
        [R(1), R(2)]
    );
    assert_eq!(h.ack_at(200.0, &sack(1, &[(7, 9), (5, 6), (3, 4)])), [R(4)]);
    // Hole 6 has two above: rule 3. Then rule 4, the tail.
    assert_eq!(
        h.ack_at(201.0, &sack(2, &[(7, 9), (5, 6), (3, 4)])),
        [R(6), R(9)]
    );
    h.ack_at(300.0, &sack(4, &[(7, 9), (5, 6)]));
    h.ack_at(301.0, &sack(6, &[(7, 9)]));
    assert_eq!(h.s.counts().retransmits, 6, "each once");
}

/// Rule 4: the highest unSACKed segment, once per recovery, and only after the first hole was
/// repaired.
#[test]
fn one_rescue_retransmission_per_recovery() {
    let mut h = Host::new(limited_to(Detector::Sack, 10), 10.0);
    // 0 and the tail 8, 9 are lost.
    duplicates(&mut h, 100.0, 1, 7);
    let resent: Vec<Out> = h
        .log
        .iter()
        .filter(|l| l.1.retransmission)
        .map(|l| Out::of(&l.1))
        .collect();
    assert_eq!(
        resent,
        [R(0)],
        "the hole once, no rescue before it is repaired"
    );
    assert_eq!(h.ack_at(200.0, &ack(8, 106.0)), [R(9)]);
    // 8 is below the highest SACKed segment now: rule 3.
    assert_eq!(h.ack_at(300.0, &sack(8, &[(9, 10)])), [R(8)]);
    h.ack_at(400.0, &ack(10, 300.0));
    assert!(h.s.is_done());
    assert_eq!(h.s.controller().congestions.len(), 1);
}

/// A single loss at the end of the data is repaired with one retransmission.
#[test]
fn a_lone_hole_is_not_rescued_twice() {
    let mut h = Host::new(limited_to(Detector::Sack, 10), 10.0);
    duplicates(&mut h, 100.0, 1, 9);
    assert_eq!(h.s.counts().retransmits, 1);
    h.ack_at(200.0, &ack(10, 105.0));
    assert!(h.s.is_done());
}

/// RFC 6675 cannot detect that a retransmission was lost: the timer must.
#[test]
fn sack_recovery_leaves_a_lost_retransmission_to_the_timer() {
    let mut h = Host::new(with(Detector::Sack), 10.0);
    duplicates(&mut h, 100.0, 1, 9);
    for i in 0..30 {
        h.ack_at(200.0 + i as f64, &sack(0, &[(1, 11 + i)]));
    }
    assert_eq!(h.log.iter().filter(|l| l.1.retransmission).count(), 1);
    let out = h.wait(1400.0);
    assert_eq!(h.s.counts().timeouts, 1);
    assert_eq!(out[0].1, R(0));
}

/// Losses of data sent after the reduction are a new window's: one more reduction when the first
/// recovery ends.
#[test]
fn a_loss_beyond_the_recovery_point_reduces_again() {
    for detector in [Detector::Sack, Detector::Rack] {
        let mut h = Host::new(with(detector), 20.0);
        duplicates(&mut h, 100.0, 1, 19); // recovery point 22, N(22).. follow
        let newest = h.s.nxt();
        assert!(newest > 27, "{newest}");
        // 22, the first segment sent in recovery, is lost too; all others arrive.
        h.ack_at(200.0, &sack(0, &[(1, 22)]));
        h.ack_at(201.0, &sack(22, &[(23, newest)]));
        assert_eq!(h.s.controller().congestions.len(), 2, "{detector:?}");
        assert_eq!(h.s.phase(), Phase::Recovery);
        let resent: Vec<u64> = h
            .log
            .iter()
            .filter(|l| l.1.retransmission)
            .map(|l| l.1.seq)
            .collect();
        assert_eq!(resent, [0, 22], "{detector:?}");
    }
}

/// Two losses of one window are one reduction.
#[test]
fn losses_of_one_window_reduce_once() {
    for detector in [Detector::Sack, Detector::Rack] {
        let mut h = Host::new(with(detector), 20.0);
        h.ack_at(100.0, &sack(0, &[(1, 4)]));
        h.ack_at(101.0, &sack(0, &[(5, 12), (1, 4)]));
        h.ack_at(102.0, &sack(0, &[(13, 20), (5, 12), (1, 4)]));
        assert_eq!(h.s.controller().congestions.len(), 1);
        h.ack_at(202.0, &sack(4, &[(13, 20), (5, 12)]));
        h.ack_at(203.0, &sack(12, &[(13, 20)]));
        h.ack_at(204.0, &ack(22, 103.0));
        assert_eq!(h.s.phase(), Phase::Open);
        assert_eq!(h.s.controller().congestions.len(), 1, "{detector:?}");
        assert_eq!(h.s.counts().retransmits, 3);
    }
}

/// RFC 6582: k losses of one window cost k round trips, each partial ACK naming the next hole.
#[test]
fn newreno_repairs_one_hole_per_round_trip() {
    let mut h = Host::new(with(Detector::NewReno), 20.0);
    // 0, 5 and 10 are lost: 17 duplicates.
    let mut out = Vec::new();
    for i in 0..17 {
        out.push(h.ack_at(100.0 + i as f64, &ack(0, 0.0)));
    }
    assert_eq!(out[..2], [[N(20)], [N(21)]]);
    assert_eq!(h.s.controller().congestions.len(), 1);
    let holes = |h: &Host| -> Vec<(f64, u64)> {
        let again = h.log.iter().filter(|l| l.1.retransmission);
        again.map(|l| (l.0.as_secs_f64() * 1e3, l.1.seq)).collect()
    };
    assert_eq!(holes(&h).iter().map(|x| x.1).collect::<Vec<_>>(), [0]);
    let first = holes(&h)[0].0;
    h.ack_at(220.0, &ack(5, first));
    h.ack_at(320.0, &ack(10, 220.0));
    assert_eq!(
        holes(&h).iter().map(|x| x.1).collect::<Vec<_>>(),
        [0, 5, 10]
    );
    assert_eq!(h.s.phase(), Phase::Recovery);
    let newest = h.s.nxt();
    h.ack_at(420.0, &ack(22, 320.0));
    assert_eq!(h.s.phase(), Phase::Open, "the full ACK ends it");
    assert_eq!(h.s.controller().congestions.len(), 1);
    assert_eq!(h.s.counts().timeouts, 0);
    assert!(newest >= 22);
}

/// RFC 6582 section 4, Impatient: only the first partial ACK restarts the retransmission timer.
#[test]
fn the_first_partial_ack_alone_restarts_the_timer() {
    let mut h = Host::new(with(Detector::NewReno), 20.0);
    for i in 0..10 {
        h.ack_at(100.0 + i as f64, &ack(0, 0.0));
    }
    h.ack_at(200.0, &ack(2, 110.0));
    let due = h.s.next_timeout();
    h.ack_at(300.0, &ack(4, 200.0));
    h.ack_at(400.0, &ack(6, 300.0));
    assert_eq!(h.s.next_timeout(), due);
    h.ack_at(500.0, &ack(h.s.nxt(), 400.0));
    assert!(h.s.next_timeout() > due || h.s.una() == h.s.nxt());
}

/// "Slow-but-Steady", as Linux does it: every partial ACK restarts it, by the timeout of its RTT.
#[test]
fn every_partial_ack_restarts_the_timer_of_linux() {
    let cfg = with(Detector::NewReno).with(|c| c.recovery.steady_newreno = true);
    let mut h = Host::new(cfg, 20.0);
    for i in 0..10 {
        h.ack_at(100.0 + i as f64, &ack(0, 0.0));
    }
    let mut due = Time::ZERO;
    for n in 1..=3 {
        let at = 200.0 + 100.0 * n as f64;
        h.ack_at(at, &ack(2 * n, at - 100.0));
        assert!(h.s.next_timeout() > due, "{n}");
        assert_eq!(h.s.next_timeout(), ms(at) + h.s.rtt().rto());
        due = h.s.next_timeout();
    }
}

/// Duplicates of the last recovery's data do not start another (RFC 6582 section 3.2 step 1).
#[test]
fn duplicates_below_recover_start_nothing() {
    let mut h = Host::new(with(Detector::NewReno), 10.0);
    h.wait(1000.0); // the timer: everything is resent
    assert_eq!(h.s.counts().timeouts, 1);
    for i in 0..5 {
        h.ack_at(1100.0 + i as f64, &ack(0, 0.0));
    }
    assert!(h.s.controller().congestions.is_empty());
    h.ack_at(1200.0, &ack(4, 1000.0));
    for i in 0..5 {
        h.ack_at(1300.0 + i as f64, &ack(4, 1200.0));
    }
    assert!(h.s.controller().congestions.is_empty());
}

/// More duplicates than segments (a network that duplicates ACKs) must not drive pipe below zero.
#[test]
fn newreno_survives_more_duplicates_than_segments() {
    let mut h = Host::new(limited_to(Detector::NewReno, 3), 10.0);
    for i in 0..9 {
        h.ack_at(100.0 + i as f64, &ack(0, 0.0));
        assert!(h.s.flight() <= 4);
    }
    h.ack_at(200.0, &ack(2, 108.0));
    assert!(h.s.flight() <= 2);
    h.ack_at(300.0, &ack(3, 200.0));
    assert!(h.s.is_done());
}

/// Three duplicates while the window is being reduced for a mark or a local drop still repair the
/// hole.
#[test]
fn newreno_detects_a_loss_during_a_reduction() {
    let cfg = with(Detector::NewReno).with(|c| c.host.local_drop = LocalDrop::React);
    let mut h = Host::new(cfg, 10.0);
    h.wait(100.0);
    h.deliver(&ack(1, 0.0));
    let refused = h.s.poll_transmit(h.now).unwrap();
    h.s.refuse(h.now, &refused);
    assert_eq!(h.s.phase(), Phase::Cwr);
    h.s.resume();
    for i in 0..8 {
        h.ack_at(101.0 + i as f64, &ack(1, 0.0));
    }
    assert!(h.log.iter().any(|l| l.1.retransmission && l.1.seq == 1));
    assert_eq!(h.s.controller().congestions.len(), 1, "answered once");
}

/// Reordering alone: nothing is resent, nothing is reduced, and the window of tolerance opens.
#[test]
fn reordering_within_a_quarter_of_the_round_trip_is_no_loss() {
    let mut h = Host::new(with(Detector::Rack), 20.0);
    h.ack_at(80.0, &ack(2, 0.0));
    // 2 is late: 3 and 4 pass it, then it arrives.
    h.ack_at(81.0, &sack(2, &[(3, 4)]));
    h.ack_at(82.0, &sack(2, &[(3, 5)]));
    h.ack_at(90.0, &ack(20, 0.0));
    // What was sent by 82 ms.
    let first = h.log.iter().filter(|l| l.0 <= ms(82.0)).count() as u64;
    h.ack_at(162.0, &ack(first, 82.0));
    // Once reordering was seen even ten SACKed segments wait for the quarter of the round trip:
    // until 170 + 20.
    h.ack_at(170.0, &sack(first, &[(first + 1, first + 11)]));
    assert_eq!(h.s.phase(), Phase::Disorder);
    assert_eq!(h.s.next_timeout(), ms(190.0));
    h.wait(189.0);
    assert_eq!(h.s.counts().retransmits, 0);
    h.ack(&ack(first + 11, 90.0));
    assert_eq!(h.s.phase(), Phase::Open);
    assert!(h.s.controller().congestions.is_empty());
    assert_eq!(h.s.counts().retransmits, 0);
}

/// The same gap that is not filled: lost exactly a quarter of the minimum RTT later, by the timer.
#[test]
fn the_reordering_timer_fires_at_a_quarter_of_the_round_trip() {
    let mut h = Host::new(with(Detector::Rack), 20.0);
    h.ack_at(80.0, &ack(2, 0.0));
    h.ack_at(80.0, &sack(2, &[(3, 4)])); // a lone SACK: below three, the window is min RTT / 4
    assert_eq!(h.s.next_timeout(), ms(100.0));
    let out = h.wait(99.999);
    assert!(out.is_empty(), "{out:?}");
    h.wait(100.0);
    assert_eq!(h.s.phase(), Phase::Recovery);
    assert_eq!(h.s.controller().congestions.len(), 1);
}

/// RFC 8985 section 6.2 step 4: each round with a DSACK adds a quarter; SRTT is the cap.
#[test]
fn dsacks_widen_the_window_once_per_round() {
    let mut h = Host::new(with(Detector::Rack), 20.0);
    h.ack_at(80.0, &ack(2, 0.0));
    h.ack_at(80.0, &dsack(2, 0));
    h.ack_at(80.0, &dsack(2, 1)); // same round: no effect
    h.ack_at(80.0, &sack(2, &[(3, 4)]));
    assert_eq!(h.s.next_timeout(), ms(80.0 + 40.0));
}

/// RACK finds a lost retransmission when something sent later is delivered; RFC 5681 section 4.3
/// wants a second reduction.
#[test]
fn a_lost_retransmission_reduces_once_more_unless_switched_off() {
    for again in [true, false] {
        let cfg = with(Detector::Rack).with(|c| c.recovery.reduce_on_lost_retransmission = again);
        let mut h = Host::new(cfg, 20.0);
        // 0 is lost; its retransmission leaves and is lost as well.
        duplicates(&mut h, 100.0, 1, 19);
        let first = h.log.iter().position(|l| l.1.retransmission).unwrap();
        assert!(first + 3 < h.log.len(), "new data follows it");
        let at = h.log[first].0.as_secs_f64() * 1e3;
        let nxt = h.s.nxt();
        // Everything else arrives one round trip later.
        h.ack_at(at + 100.0, &sack(0, &[(1, 22)]));
        assert_eq!(h.s.counts().retransmits, 1);
        h.ack_at(at + 120.0, &sack(0, &[(1, nxt)]));
        assert_eq!(h.s.counts().retransmits, 2);
        let kinds: Vec<EpisodeKind> = h.s.drain_log().map(|e| e.kind).collect();
        let loss = EpisodeKind::Congestion(CongestionKind::Loss);
        if again {
            assert_eq!(kinds, [loss, EpisodeKind::LostRetransmission]);
            assert_eq!(h.s.controller().ssth, 5.0);
        } else {
            assert_eq!(kinds, [loss]);
            assert_eq!(h.s.controller().ssth, 10.0);
        }
    }
}

/// A cumulative ACK for a retransmission condemns the tail that was sent before it, with nothing
/// SACKed any more.
#[test]
fn rack_judges_a_lost_tail_by_the_retransmission_that_was_delivered() {
    let cfg = limited_to(Detector::Rack, 10).with(|c| c.recovery.reduction = Reduction::Prr);
    let mut h = Host::new(cfg, 10.0);
    // 0 and the tail 5..10 are lost.
    let out = duplicates(&mut h, 100.0, 1, 4);
    assert_eq!(out[2], [R(0)]);
    let out = h.ack_at(202.0, &ack(5, 102.0));
    assert_eq!(out.first(), Some(&R(5)), "no timer needed");
    assert_eq!(h.s.controller().congestions.len(), 1);
    assert_eq!(h.s.counts().timeouts, 0);
}

/// RFC 2018 section 8: a receiver that forgets what it had SACKed gets it again.
#[test]
fn a_reneging_receiver_gets_everything() {
    for detector in [Detector::Rack, Detector::Sack] {
        let mut h = Host::new(limited_to(detector, 6), 10.0);
        h.ack_at(100.0, &sack(0, &[(1, 6)]));
        h.ack_at(101.0, &sack(0, &[(1, 6)]));
        h.ack_at(200.0, &ack(2, 101.0)); // 1 was kept, 2..6 thrown away
        let mut una = 2;
        while una < 6 {
            let sent = h.log.len();
            h.wait(h.now.as_secs_f64() * 1e3 + 5000.0);
            assert!(h.log.len() > sent, "{detector:?}");
            una += 1;
            h.ack(&ack(una, h.now.as_secs_f64() * 1e3));
        }
        assert!(h.s.is_done());
    }
}

/// Persistent reordering must not wear FlightSize down to nothing.
#[test]
fn flight_size_survives_long_disorder() {
    let mut h = Host::new(with(Detector::Rack), 20.0);
    // Ten pairs, ten milliseconds apart: a steady clock.
    for i in 1..=10 {
        h.ack_at(90.0 + 10.0 * i as f64, &ack(2 * i, 0.0));
    }
    let mut una = 20;
    // One segment is always missing for a moment: disorder without end.
    for i in 0..200 {
        let t = 200.0 + 10.0 * f64::from(i);
        h.ack_at(t, &sack(una, &[(una + 1, una + 2), (una + 3, una + 4)]));
        una += 2;
        h.ack_at(t + 1.0, &sack(una, &[(una + 1, una + 2)]));
        assert_eq!(h.s.phase(), Phase::Disorder);
    }
    assert!(h.s.controller().congestions.is_empty());
    let recent = h.now.as_secs_f64() * 1e3;
    h.ack_at(recent + 30.0, &sack(una, &[(una + 1, una + 12)]));
    h.wait(recent + 200.0);
    let seen = h.s.controller().congestions.first().map(|c| c.flight);
    assert!(seen.is_some_and(|f| (18..=24).contains(&f)), "{seen:?}");
}

/// Preset 2003: the numbers that name it.
#[test]
fn presets_differ_where_the_reference_says() {
    let old = SenderConfig::preset(Preset::Y2003, 1500);
    let new = SenderConfig::preset(Preset::Y2026, 1500);
    assert_eq!((old.rto.min, new.rto.min), (span_ms(200), span_ms(1000)));
    assert_eq!(
        (old.recovery.detector, new.recovery.detector),
        (Detector::Sack, Detector::Rack)
    );
    assert_eq!((old.window.initial, new.window.initial), (2.0, 10.0));
    assert!(
        old.recovery.reduction == Reduction::Immediate
            && new.recovery.reduction == Reduction::Prr
            && !old.recovery.tlp
            && new.recovery.tlp
            && !old.recovery.frto
            && new.recovery.frto
    );
    let _ = Time::ZERO;
}

/// Segments that were late, not lost: what the undone recovery has resent begins no other.
#[test]
fn an_undo_is_not_followed_by_the_same_reduction() {
    let mut h = Host::new(modern(), 20.0);
    for i in 0..8 {
        h.ack_at(100.0 + 0.1 * i as f64, &sack(0, &[(3, 4 + i)]));
    }
    assert_eq!(h.s.controller().congestions.len(), 1);
    // The original of segment 0 arrives: its stamp is that of the first transmission.
    let late = Ack {
        echo: ms(0.0),
        ..sack(1, &[(3, 11)])
    };
    h.ack_at(101.5, &late);
    assert_eq!(h.s.controller().undos, 1);
    assert_eq!(h.s.controller().congestions.len(), 1);
}
