//! Retransmission timer, tail loss probe, and the ways to find out that a reduction was wrong.

use fullpipe_cc::{CongestionKind, Phase};
use fullpipe_flow::{Detector, EpisodeKind, LocalDrop, Preset, Proof, SenderConfig, SpuriousRule};

use crate::host::Out::{self, N, R};
use crate::host::{Halver, Host, ack, dsack, modern, ms, sack, sack_echo, span_ms};

fn kinds(h: &mut Host) -> Vec<EpisodeKind> {
    h.s.drain_log().map(|e| e.kind).collect()
}

fn undone(by: Proof) -> EpisodeKind {
    EpisodeKind::Undo(Some(by))
}

const LOSS: EpisodeKind = EpisodeKind::Congestion(CongestionKind::Loss);

/// A sender whose SRTT is 80 ms with no variation left, and `n` segments of data outstanding sent
/// at the returned time.
fn settled(mut cfg: SenderConfig, n: u64) -> (Host, f64) {
    cfg.transfer = Some(60 + n);
    let mut h = Host::new(cfg, 1.0);
    let mut t = 0.0;
    for i in 1..=60 {
        t += 80.0;
        if i == 60 {
            h.now = ms(t);
            h.s.handle_ack(ms(t), &ack(60, t - 80.0));
        } else {
            h.ack_at(t, &ack(i, t - 80.0));
        }
    }
    assert_eq!(h.s.rtt().srtt(), span_ms(80));
    (h, t)
}

/// Known numbers: SRTT 80 ms: 160 ms with more than one segment in flight, 360 ms with one.
#[test]
fn the_probe_waits_two_round_trips_and_the_ack_delay_for_a_lone_segment() {
    let (mut h, t) = settled(modern(), 1);
    h.poll();
    assert_eq!(h.s.next_timeout(), ms(t + 360.0));

    let mut h = Host::new(modern(), 10.0);
    h.ack_at(80.0, &ack(10, 0.0));
    assert_eq!(h.s.next_timeout(), ms(80.0 + 160.0));
    assert_eq!(h.wait(240.0), [(240.0, N(20))], "new data is the probe");
    assert_eq!(h.s.flight(), 11, "one beyond the window");
    // Then the timeout starts anew, and there is no second probe.
    let rto = h.s.next_timeout();
    assert_eq!(rto, ms(240.0) + h.s.rtt().rto());
    h.wait(rto.as_secs_f64() * 1e3 - 1.0);
    assert_eq!(h.s.counts().probes, 1);
}

/// Without an RTT sample one second.
#[test]
fn without_a_sample_the_probe_waits_one_second() {
    let mut h = Host::new(modern(), 10.0);
    assert_eq!(h.s.next_timeout(), ms(1000.0));
    assert_eq!(h.wait(1000.0), [(1000.0, N(10))]);
    assert_eq!(
        h.s.counts().timeouts,
        0,
        "not later than the timeout, and in its place"
    );
}

/// Two round trips lie beyond the timeout: the probe takes its place, the timeout follows.
#[test]
fn a_probe_is_never_later_than_the_timeout() {
    let mut cfg = modern();
    cfg.transfer = Some(20);
    let mut h = Host::new(cfg, 1.0);
    let mut t = 0.0;
    for i in 1..=19 {
        t += 800.0;
        h.ack_at(t, &ack(i, t - 800.0));
    }
    let rto = h.s.rtt().rto().as_secs_f64() * 1e3;
    assert!(rto < 1600.0, "{rto}");
    let out = h.wait(t + rto + 1.0);
    assert_eq!(
        (out.len(), h.s.counts().probes, h.s.counts().timeouts),
        (1, 1, 0)
    );
    let rto = h.s.rtt().rto();
    let due = h.s.next_timeout();
    assert_eq!(due, h.log.last().unwrap().0 + rto);
    h.wait(due.as_secs_f64() * 1e3 + 1.0);
    assert_eq!(h.s.counts().timeouts, 1);
}

/// The last segment of a transfer is lost: the probe repairs it, and later data proves the loss:
/// one reduction.
#[test]
fn a_probe_that_repairs_the_tail_reduces_once() {
    let mut cfg = modern();
    cfg.transfer = Some(10);
    let mut h = Host::new(cfg, 10.0);
    h.ack_at(80.0, &ack(9, 0.0));
    let out = h.wait(600.0);
    assert_eq!(out, [(80.0 + 360.0, R(9))]);
    h.ack_at(600.0, &ack(10, 440.0));
    assert!(h.s.is_done());
    assert!(kinds(&mut h).is_empty(), "nothing can be concluded yet");

    // With data that follows: the ACK beyond the probe is the proof.
    let cfg = modern().with(|c| c.transfer = None);
    let mut h = Host::new(cfg, 10.0);
    h.s.stop();
    h.ack_at(80.0, &ack(9, 0.0));
    h.wait(440.0);
    assert_eq!(h.s.counts().probes, 1);
}

/// Several segments at the tail are lost: the probe's SACK starts recovery, and that is the only
/// reduction.
#[test]
fn a_lost_tail_found_by_a_probe_reduces_once() {
    let mut h = Host::new(modern(), 10.0);
    // The peer's window holds the sender at ten.
    let limited = |cum: u64, blocks: &[(u64, u64)], end: u64| fullpipe_flow::Ack {
        window_end: end,
        ..sack(cum, blocks)
    };
    h.deliver(&limited(0, &[], 10));
    h.ack_at(80.0, &limited(5, &[], 10)); // 5..10 are lost
    let out = h.wait(300.0);
    assert_eq!(out, [(240.0, R(9))]);
    let out = h.ack_at(320.0, &limited(5, &[(9, 10)], 10));
    assert_eq!(h.s.phase(), Phase::Recovery);
    assert_eq!(out, [R(5)]);
    let mut una = 5;
    for i in 0..40 {
        let t = 400.0 + 80.0 * f64::from(i);
        una = (una + 1).min(9);
        let cum = if una == 9 { 10 } else { una };
        h.ack_at(
            t,
            &limited(cum, if cum < 10 { &[(9, 10)] } else { &[] }, 40),
        );
        if cum == 10 {
            break;
        }
    }
    assert_eq!(h.s.una(), 10);
    let now = h.now.as_secs_f64() * 1e3;
    // New data beyond the probe is acknowledged: no second reduction for the same loss.
    let nxt = h.s.nxt();
    assert!(nxt > 10);
    h.ack_at(now + 80.0, &limited(nxt, &[], 400));
    assert_eq!(kinds(&mut h), [LOSS]);
}

/// The probe was not needed: its DSACK says so, and nothing is reduced, not even by the ACK of
/// later data.
#[test]
fn a_probe_reported_as_duplicate_reduces_nothing() {
    for duplicate in [true, false] {
        let mut h = Host::new(modern(), 10.0);
        let end = |cum: u64, end: u64| fullpipe_flow::Ack {
            window_end: end,
            ..ack(cum, 1e9)
        };
        h.deliver(&end(0, 10));
        h.ack_at(80.0, &end(9, 10));
        assert_eq!(h.wait(450.0), [(440.0, R(9))]);
        // The original's ACK, delayed, then the duplicate's.
        h.ack_at(455.0, &end(10, 30));
        if duplicate {
            let a = fullpipe_flow::Ack {
                window_end: 30,
                ..dsack(10, 9)
            };
            h.ack_at(520.0, &a);
        }
        h.ack_at(535.0, &end(14, 30));
        let expected: &[EpisodeKind] = if duplicate { &[] } else { &[LOSS] };
        assert_eq!(kinds(&mut h), expected);
    }
}

/// RFC 6298 section 5: backoff doubles up to the maximum, a sample ends it; both presets' bounds.
#[test]
fn the_timeout_doubles_up_to_its_maximum() {
    for (preset, min) in [(Preset::Y2003, 200.0), (Preset::Y2026, 1000.0)] {
        let mut cfg = SenderConfig::preset(preset, 1500);
        cfg.handshake = false;
        cfg.recovery.tlp = false;
        cfg.transfer = Some(70);
        let mut h = Host::new(cfg, 2.0);
        let mut t = 0.0;
        for i in 1..=30 {
            t += 10.0;
            h.ack_at(t, &ack(2 * i, t - 10.0));
        }
        h.wait(t + 300_000.0);
        let times: Vec<f64> = h
            .log
            .iter()
            .filter(|l| l.1.retransmission)
            .map(|l| l.0.as_secs_f64() * 1e3)
            .collect();
        let mut wait = min;
        let mut due = t;
        for at in &times {
            due += wait;
            assert!((at - due).abs() < 1e-3, "{preset:?}: {at} {due}");
            wait = f64::min(wait * 2.0, 60_000.0);
        }
        assert!(times.len() >= 8, "{preset:?}");
        assert_eq!(wait, 60_000.0);
        // Karn: the ACK of a retransmission with an old echo is no sample, with the right echo it
        // is.
        let samples = h.s.rtt().samples();
        let una = h.s.una();
        let now = h.now.as_secs_f64() * 1e3;
        h.ack_at(now + 5.0, &ack(una + 1, t));
        assert_eq!(h.s.rtt().samples(), samples);
        assert_eq!(h.s.rtt().rto(), span_ms(60_000), "still backed off");
    }
}

/// An echo that proves which copy was acknowledged gives a sample and ends the backoff.
#[test]
fn an_unambiguous_retransmission_is_a_sample() {
    let mut cfg = modern();
    cfg.recovery.tlp = false;
    cfg.recovery.frto = false;
    cfg.recovery.undo = false;
    let mut h = Host::new(cfg, 10.0);
    h.wait(1000.0);
    assert_eq!(h.s.counts().timeouts, 1);
    h.ack_at(1080.0, &ack(1, 1000.0));
    assert_eq!(h.s.rtt().samples(), 1);
    assert_eq!(h.s.rtt().latest(), span_ms(80));
    assert_eq!(h.s.rtt().rto(), span_ms(1000));
}

/// Section 5.3: every ACK of new data restarts the timer; duplicates do not.
#[test]
fn new_data_restarts_the_timer_duplicates_do_not() {
    let cfg = modern().with(|c| c.recovery.detector = Detector::Sack);
    let mut h = Host::new(cfg, 10.0);
    h.ack_at(100.0, &ack(1, 0.0));
    let due = h.s.next_timeout();
    assert_eq!(due, ms(100.0) + h.s.rtt().rto());
    h.ack_at(150.0, &sack(1, &[(2, 3)]));
    assert_eq!(h.s.next_timeout(), due);
    h.ack_at(160.0, &ack(3, 0.0));
    assert_eq!(h.s.next_timeout(), ms(160.0) + h.s.rtt().rto());
    let all = h.s.nxt();
    h.s.stop();
    h.ack_at(200.0, &ack(all, 0.0));
    assert_eq!(
        h.s.next_timeout(),
        fullpipe_units::Time::MAX,
        "nothing outstanding"
    );
}

/// The first timeout of the data reduces, the next ones leave ssthresh alone (RFC 5681 section
/// 3.1); go-back-N in slow start.
#[test]
fn a_genuine_timeout_goes_back_and_reduces_once() {
    let mut cfg = modern();
    cfg.recovery.tlp = false;
    cfg.transfer = Some(10);
    let mut cc = Halver::new(10.0);
    cc.slow_start = true;
    let mut h = Host::with(cfg, cc);
    assert_eq!(h.wait(1000.0), [(1000.0, R(0))]);
    assert_eq!((h.s.cwnd(), h.s.controller().ssth), (1.0, 5.0));
    assert_eq!(h.wait(3000.0), [(3000.0, R(0))], "twice the time");
    let firsts: Vec<bool> = h.s.controller().rtos.iter().map(|r| r.first).collect();
    assert_eq!(firsts, [true, false]);
    assert_eq!(h.s.controller().ssth, 5.0);
    let mut t = 3080.0;
    assert_eq!(h.ack_at(t, &ack(1, 3000.0)), [R(1), R(2)]);
    for una in [3, 5, 7, 9] {
        t += 80.0;
        h.ack_at(t, &ack(una, t - 80.0));
    }
    h.ack_at(t + 80.0, &ack(10, t));
    assert!(h.s.is_done());
    assert_eq!(h.s.controller().undos, 0);
    assert_eq!(h.s.counts().retransmits, 11);
}

/// RFC 5682, SACK version: the original arrives late; after one ACK two new segments leave, the
/// next ACK is the verdict.
#[test]
fn a_spurious_timeout_is_undone_by_frto() {
    let mut cfg = modern();
    cfg.recovery.tlp = false;
    cfg.recovery.detector = Detector::Sack;
    let mut cc = Halver::new(10.0);
    cc.slow_start = true;
    let mut h = Host::with(cfg, cc);
    h.wait(1000.0);
    assert_eq!(h.s.controller().rtos.len(), 1);
    // No time stamp helps: the echo is that of the retransmission.
    let out = h.ack_at(1005.0, &ack(1, 1000.0));
    assert_eq!(out, [N(10), N(11)], "new data instead of retransmissions");
    h.ack_at(1010.0, &ack(2, 1000.0));
    assert_eq!(h.s.controller().undos, 1);
    assert_eq!(h.s.phase(), Phase::Open);
    assert_eq!(h.s.cwnd(), 11.0, "back to ten, and this ACK's growth");
    assert_eq!(h.s.counts().retransmits, 1, "the rest was never resent");
    h.ack_at(1020.0, &ack(10, 1000.0));
    assert_eq!(h.s.counts().retransmits, 1);
    assert_eq!(
        kinds(&mut h),
        [EpisodeKind::Timeout, undone(Proof::Forward)]
    );
}

/// Step 2b: the host let the retransmission out only after the ACK that decides; it is not made up
/// for beside the two new segments.
#[test]
fn frto_resends_nothing_once_it_sends_new_data() {
    let cfg = modern().with(|c| {
        c.recovery.tlp = false;
        c.recovery.detector = Detector::Sack;
        c.host.local_drop = LocalDrop::Ignore;
    });
    let mut cc = Halver::new(10.0);
    cc.slow_start = true;
    let mut h = Host::with(cfg, cc);
    h.wait(10.0);
    h.deliver(&ack(1, 0.0));
    let refused = h.s.poll_transmit(h.now).unwrap();
    h.s.refuse(h.now, &refused);
    h.wait(1020.0);
    assert_eq!((h.s.counts().timeouts, h.s.counts().retransmits), (1, 0));
    h.deliver(&ack(2, 1020.0));
    h.s.resume();
    assert_eq!(h.poll(), [N(10), N(11)]);
}

/// The same with honest time stamps under RACK: the first ACK's echo is enough, and nothing else is
/// resent.
#[test]
fn a_delay_spike_costs_one_retransmission() {
    let mut cfg = modern();
    cfg.recovery.tlp = false;
    cfg.transfer = Some(10);
    let mut h = Host::new(cfg, 10.0);
    h.wait(1000.0);
    for cum in 1..=10 {
        h.ack_at(1500.0 + cum as f64, &ack(cum, 0.0));
    }
    assert_eq!(h.s.controller().undos, 1);
    assert_eq!(h.s.cwnd(), 10.0);
    assert_eq!(h.s.counts().retransmits, 1);
    assert_eq!(kinds(&mut h), [EpisodeKind::Timeout, undone(Proof::Stamp)]);
}

/// The verdict is a duplicate: conventional recovery, retransmissions resume.
#[test]
fn a_genuine_timeout_is_not_undone_by_frto() {
    let mut cfg = modern();
    cfg.recovery.tlp = false;
    let mut cc = Halver::new(10.0);
    cc.slow_start = true;
    let mut h = Host::with(cfg, cc);
    h.wait(1000.0);
    assert_eq!(h.ack_at(1080.0, &ack(1, 1000.0)), [N(10), N(11)]);
    let out = h.ack_at(1160.0, &sack(1, &[(10, 11)]));
    assert_eq!(h.s.controller().undos, 0);
    assert_eq!(h.s.phase(), Phase::Loss);
    assert_eq!(out.first(), Some(&R(1)));
}

/// RFC 5682 section 3.1 step 2: SACKs before the ACK of the retransmission only tell the
/// scoreboard, and an ACK of all that was sent before the timeout says nothing. Linux takes the
/// first SACK.
#[test]
fn a_sack_under_way_when_the_timer_goes_off_proves_nothing() {
    for (by, undos) in [(SpuriousRule::Rfc, 0), (SpuriousRule::Linux, 1)] {
        let cfg = modern().with(|c| {
            c.recovery.tlp = false;
            c.recovery.frto_by = by;
        });
        let mut h = Host::new(cfg, 10.0);
        h.wait(1000.0);
        h.ack_at(1001.0, &sack(0, &[(5, 6)]));
        assert_eq!(h.s.controller().undos, undos, "{by:?}");
        h.ack_at(1080.0, &ack(10, 1000.0));
        assert_eq!(h.s.controller().undos, undos, "{by:?}");
        assert_eq!(h.s.phase(), Phase::Open);
    }
}

/// RFC 5682 section 3.1 step 1: a timeout inside a recovery starts no test, one that repeats the
/// timeout before any ACK does.
#[test]
fn frto_begins_outside_of_recoveries_alone() {
    let cfg = modern().with(|c| c.recovery.tlp = false);
    let mut h = Host::new(cfg.clone(), 10.0);
    for i in 0..3 {
        h.ack_at(80.0 + i as f64, &sack(0, &[(1, 2 + i)]));
    }
    assert_eq!(h.s.phase(), Phase::Recovery);
    h.wait(1200.0);
    h.ack_at(1280.0, &sack(1, &[(2, 4)]));
    h.ack_at(1281.0, &sack(1, &[(2, 6)]));
    assert_eq!((h.s.counts().timeouts, h.s.controller().undos), (1, 0));

    let mut h = Host::new(cfg, 10.0);
    h.wait(3000.0);
    assert_eq!(h.s.counts().timeouts, 2);
    assert_eq!(h.ack_at(3001.0, &ack(1, 1000.0)), [N(10)]);
    h.ack_at(3002.0, &ack(2, 1000.0));
    assert_eq!(h.s.controller().undos, 1);
}

/// Step 3: an ACK that only moves the window is none of those that decide.
#[test]
fn a_window_update_does_not_end_frto() {
    let cfg = modern().with(|c| c.recovery.tlp = false);
    let mut cc = Halver::new(10.0);
    cc.slow_start = true;
    let mut h = Host::with(cfg, cc);
    h.wait(1000.0);
    assert_eq!(h.ack_at(1005.0, &ack(1, 1000.0)), [N(10), N(11)]);
    let update = fullpipe_flow::Ack {
        window_end: 1000,
        ..ack(1, 1000.0)
    };
    assert_eq!(h.ack_at(1006.0, &update), []);
    let news = fullpipe_flow::Ack {
        window_end: 1000,
        ..ack(2, 1000.0)
    };
    h.ack_at(1010.0, &news);
    assert_eq!(h.s.controller().undos, 1);
    assert_eq!(h.s.counts().retransmits, 1);
}

/// Nothing new to send: F-RTO cannot decide and must not wait (RFC 5682 section 2.1 step 2b).
#[test]
fn frto_without_new_data_is_conventional() {
    let mut cfg = modern();
    cfg.recovery.tlp = false;
    cfg.transfer = Some(10);
    let mut cc = Halver::new(10.0);
    cc.slow_start = true;
    let mut h = Host::with(cfg, cc);
    h.wait(1000.0);
    assert_eq!(h.ack_at(1080.0, &ack(1, 1000.0)), [R(1), R(2)]);
}

/// Without SACK an ACK over the retransmission and what had arrived before is no proof of anything.
#[test]
fn newreno_frto_is_not_fooled_by_a_cumulative_jump() {
    let mut cfg = modern();
    cfg.recovery.detector = Detector::NewReno;
    let mut cc = Halver::new(10.0);
    cc.slow_start = true;
    let mut h = Host::with(cfg, cc);
    // 0 is lost, 1 and 2 arrive, the rest is lost as well: two duplicates only.
    h.ack_at(80.0, &ack(0, 0.0));
    h.ack_at(81.0, &ack(0, 0.0));
    h.wait(1000.0);
    assert_eq!(h.s.counts().timeouts, 1);
    h.ack_at(1080.0, &ack(3, 1000.0));
    assert_eq!(h.s.controller().undos, 0);
    assert_eq!(h.s.phase(), Phase::Loss);
}

/// Eifel (RFC 3522): the ACK that ends recovery echoes a stamp from before the retransmission.
#[test]
fn an_old_echo_undoes_the_reduction() {
    for (echo, undos) in [(0.0, 1), (82.0, 0)] {
        let mut h = Host::new(modern(), 20.0);
        for i in 0..3 {
            h.ack_at(80.0 + i as f64, &sack(0, &[(1, 2 + i)]));
        }
        assert_eq!(h.s.counts().retransmits, 1);
        assert_eq!(h.s.controller().ssth, 10.0);
        // The original arrives after all, or the retransmission does.
        h.ack_at(95.0, &ack(21, echo));
        assert_eq!(h.s.controller().undos, undos, "echo {echo}");
        h.ack_at(96.0, &ack(22, 1e9));
        assert_eq!(h.s.phase(), Phase::Open);
        assert_eq!(h.s.cwnd(), if undos == 1 { 20.0 } else { 10.0 });
    }
}

/// RFC 8985 section 6.2 step 5 judges every outstanding segment by its last transmission: an undo
/// must not leave a retransmission that the timeout gave up outside of that.
#[test]
fn an_undo_leaves_no_hole_that_nobody_looks_at() {
    for detector in [Detector::Rack, Detector::Sack] {
        let cfg = modern().with(|c| c.recovery.detector = detector);
        let mut h = Host::new(cfg, 20.0);
        // 0 is late, 10 is lost; both are resent, and 10 is lost again.
        h.ack_at(80.0, &sack(0, &[(1, 10)]));
        for i in 1..=9 {
            h.ack_at(80.0 + i as f64, &sack(0, &[(11, 11 + i), (1, 10)]));
        }
        assert_eq!(h.s.counts().retransmits, 2, "{detector:?}");
        h.wait(1200.0);
        assert_eq!(h.s.counts().timeouts, 1);
        let before = h.s.counts().retransmits;
        h.ack_at(1201.0, &sack_echo(10, &[(11, 22)], 0.0));
        assert_eq!(h.s.controller().undos, 1, "{detector:?}");
        // What is sent now arrives a round trip later, 10 does not.
        let nxt = h.s.nxt();
        assert!(nxt >= 25, "{nxt}");
        for i in 0..4 {
            h.ack_at(1281.0 + 30.0 * i as f64, &sack(10, &[(11, nxt - 3 + i)]));
        }
        let again = h.log.iter().rev().find(|l| l.1.retransmission).unwrap();
        assert_eq!(
            (again.1.seq, h.s.counts().timeouts),
            (10, 1),
            "{detector:?}"
        );
        assert_eq!(h.s.counts().retransmits, before + 1, "{detector:?}");
    }
}

/// DSACK (RFC 3708): every retransmission was reported as a duplicate.
#[test]
fn duplicates_of_every_retransmission_undo_the_reduction() {
    let mut h = Host::new(modern(), 20.0);
    // 0 and 5 look lost.
    h.ack_at(80.0, &sack(0, &[(1, 5)]));
    h.ack_at(81.0, &sack(0, &[(6, 12), (1, 5)]));
    h.ack_at(82.0, &sack(0, &[(6, 20), (1, 5)]));
    assert_eq!(h.s.counts().retransmits, 2);
    h.ack_at(90.0, &sack(5, &[(6, 20)]));
    h.ack_at(91.0, &ack(22, 1e9));
    assert_eq!(h.s.cwnd(), 10.0, "recovered, reduced");
    h.ack_at(160.0, &dsack(22, 0));
    assert_eq!(h.s.controller().undos, 0, "one of two");
    h.ack_at(161.0, &dsack(22, 5));
    assert_eq!(h.s.controller().undos, 1);
    assert_eq!(h.s.cwnd(), 20.0);
    assert_eq!(kinds(&mut h), [LOSS, undone(Proof::Duplicates)]);
}

/// RFC 3522 section 3.2 step 5: an old echo beside a DSACK means that ACKs were lost; RFC 3708
/// section 3: so does a DSACK for the first outstanding segment with nothing SACKed (A), a segment
/// resent twice tells nothing (C), and a duplicate of a segment never resent ends it all (D).
#[test]
fn duplicates_after_lost_acks_undo_nothing() {
    let mut cfg = modern();
    cfg.recovery.tlp = false;
    cfg.transfer = Some(100);
    let lost_acks = |dsack: bool| {
        let mut h = Host::new(cfg.clone(), 10.0);
        h.wait(1000.0);
        assert_eq!(h.s.counts().timeouts, 1);
        let mut all = ack(10, 0.0);
        if dsack {
            all = fullpipe_flow::Ack {
                echo: ms(0.0),
                ..fullpipe_flow::Ack {
                    cum: 10,
                    ..crate::host::dsack(10, 0)
                }
            };
        }
        h.ack_at(1080.0, &all);
        assert_eq!(h.s.rtt().srtt(), span_ms(0), "no sample of a second");
        h.s.controller().undos
    };
    assert_eq!((lost_acks(true), lost_acks(false)), (0, 0));

    // C: resent by the recovery, then by the timer.
    let mut h = Host::new(cfg.clone(), 20.0);
    for i in 0..3 {
        h.ack_at(80.0 + i as f64, &sack(0, &[(1, 2 + i)]));
    }
    h.wait(1500.0);
    assert_eq!((h.s.counts().timeouts, h.s.counts().retransmits), (1, 2));
    h.ack_at(1501.0, &sack(1, &[(2, 4)]));
    h.ack_at(1502.0, &crate::host::dsack(4, 0));
    h.ack_at(1503.0, &crate::host::dsack(4, 0));
    assert_eq!(h.s.controller().undos, 0);

    // D: the network made a copy of 30.
    let mut h = Host::new(cfg, 20.0);
    h.ack_at(80.0, &ack(15, 0.0));
    h.ack_at(81.0, &dsack(15, 13));
    let una = h.s.una();
    for i in 0..3 {
        h.ack_at(160.0 + i as f64, &sack(una, &[(una + 1, una + 2 + i)]));
    }
    assert_eq!(h.s.counts().retransmits, 1);
    h.ack_at(170.0, &ack(una + 4, 1e9));
    h.ack_at(240.0, &dsack(una + 4, una));
    assert_eq!(h.s.controller().undos, 0);
}

/// Without time stamps an echo says nothing: no Eifel detection (RFC 3522 section 3.1), no RTT
/// sample of what was resent (RFC 6298 section 3).
#[test]
fn without_time_stamps_no_echo_is_read() {
    for preset in [Preset::Y2026, Preset::Linux] {
        for stamps in [true, false] {
            let cfg = SenderConfig::preset(preset, 1500).with(|c| {
                c.handshake = false;
                c.timestamps = stamps;
            });
            let mut h = Host::new(cfg, 20.0);
            for i in 0..3 {
                h.ack_at(80.0 + i as f64, &sack(0, &[(1, 2 + i)]));
            }
            let samples = h.s.rtt().samples();
            // The hole is filled: the echo would be the original's.
            let filled = fullpipe_flow::Ack {
                stamp_ms: 7,
                ..ack(4, 0.0)
            };
            h.ack_at(180.0, &filled);
            assert_eq!(h.s.controller().undos > 0, stamps, "{preset:?}");
            let stamped = h.s.controller().last.unwrap().stamps;
            assert_eq!(stamped == Default::default(), !stamps);
            if preset == Preset::Linux {
                let more = h.s.rtt().samples() - samples;
                assert_eq!(more, u64::from(stamps));
            }
        }
    }
}

/// The switch.
#[test]
fn without_undo_nothing_is_undone() {
    let cfg = modern().with(|c| c.recovery.undo = false);
    let mut h = Host::new(cfg, 20.0);
    for i in 0..3 {
        h.ack_at(80.0 + i as f64, &sack(0, &[(1, 2 + i)]));
    }
    h.ack_at(95.0, &ack(22, 0.0));
    h.ack_at(180.0, &dsack(22, 0));
    assert_eq!(h.s.controller().undos, 0);
    assert_eq!(h.s.cwnd(), 10.0);
}

/// A reduction that a mark also justified stays (RFC 3522 section 3.2).
#[test]
fn a_mark_during_recovery_forbids_the_undo() {
    let cfg = modern().with(|c| c.ecn = true);
    let mut h = Host::new(cfg, 20.0);
    for i in 0..3 {
        h.ack_at(80.0 + i as f64, &sack(0, &[(1, 2 + i)]));
    }
    let marked = fullpipe_flow::Ack {
        ece: true,
        ..sack(0, &[(1, 6)])
    };
    h.ack_at(84.0, &marked);
    h.ack_at(95.0, &ack(22, 0.0));
    assert_eq!(h.s.controller().undos, 0);
    assert_eq!(h.s.controller().congestions.len(), 1);
}

/// RFC 4015 section 3.2: after a spurious timeout the first sample of new data counts in full, not
/// the time that what was outstanding was held up.
#[test]
fn new_data_tells_how_long_the_path_has_become() {
    let mut cfg = modern();
    cfg.recovery.tlp = false;
    let mut h = Host::new(cfg, 10.0);
    h.ack_at(80.0, &ack(2, 0.0));
    let out: Vec<Out> = h.wait(1100.0).into_iter().map(|o| o.1).collect();
    assert_eq!(out, [R(2)]);
    // The original of 2, 3 and 4, sent at zero, arrives now.
    h.ack_at(1500.0, &ack(5, 0.0));
    assert_eq!(h.s.controller().undos, 1);
    let nxt = h.s.nxt();
    h.ack_at(1501.0, &ack(12, 80.0));
    assert!(h.s.rtt().srtt() < span_ms(800), "{:?}", h.s.rtt().srtt());
    // What leaves now takes a second.
    h.ack_at(2501.0, &ack(nxt + 1, 1501.0));
    let (srtt, rttvar) = (h.s.rtt().srtt(), h.s.rtt().rttvar());
    assert!(
        srtt >= span_ms(999) && rttvar >= span_ms(499),
        "{srtt} {rttvar}"
    );
}
