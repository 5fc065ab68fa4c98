//! Preset `linux`: each switch by what it changes, worked by hand from Linux 6.1
//! (`net/ipv4/tcp_input.c`, `tcp_output.c`, `tcp_recovery.c`, `tcp_timer.c`).

use fullpipe_cc::{Controller as _, Phase, Setup, StackSpec};
use fullpipe_flow::{
    Ack, AckCompression, Detector, LossWindow, Preset, Receiver, ReceiverConfig, Reduction,
    RttSample, Segment, Sender, SenderConfig, SpuriousRule, Validation,
};
use fullpipe_units::{Span, Time};

use crate::host::Out::{self, N, R};
use crate::host::{self, Halver, Host, ack, ms, reduction, sack, syn_ack};

/// The preset without its handshake, with exact timers so that times can be told by hand.
fn linux() -> SenderConfig {
    SenderConfig::preset(Preset::Linux, 1500).with(|c| {
        c.handshake = false;
        c.timers.grain = fullpipe_flow::TimerGrain::Exact;
    })
}

fn data(seq: u64) -> Segment {
    host::data(seq, Time::from_nanos(1000 + seq))
}

/// A receiver whose window is open, so that only the quick ACKs of `quick` are left.
fn receiver(quick: u32) -> Receiver {
    Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
        c.window.first = None;
        c.window.max = None;
        c.acks.quick = quick;
        c.acks.hz = None;
    }))
}

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

/// 20 in flight, the first lost, `ssthresh` 10: after the n-th delivery of the recovery ceil(10 n /
/// 20) segments may have left. With 15 in flight of a window of 20, Linux divides by 20 and RFC
/// 9937 by 15.
#[test]
fn prr_releases_in_proportion_to_the_window() {
    let sent = |reduction| {
        let mut h = Host::new(linux().with(|c| c.recovery.reduction = reduction), 20.0);
        (1..=16)
            .map(|n| h.ack_at(100.0 + n as f64, &sack(0, &[(1, 1 + n)])).len())
            .collect::<Vec<_>>()
    };
    let out = sent(Reduction::PrrWindow);
    // Two by Limited Transmit, the fast retransmit, then one for every second delivery.
    assert_eq!(out, [1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
    assert_ne!(out, sent(Reduction::Immediate));
    let windows = |reduction| {
        let transfer = Some(15);
        let mut h = Host::new(
            linux().with(|c| {
                c.recovery.reduction = reduction;
                c.transfer = transfer;
            }),
            20.0,
        );
        (1..=6)
            .map(|n| {
                h.ack_at(100.0 + n as f64, &sack(0, &[(1, 1 + n)]));
                h.s.cwnd() as u64
            })
            .collect::<Vec<_>>()
    };
    assert_ne!(windows(Reduction::PrrWindow), windows(Reduction::Prr));
}

/// `tcp_rack_reo_timeout`: the timer that begins a recovery counts as its first delivery, and the
/// divisor is the window, so that the second SACK after it releases a segment. Where it counts as
/// none and 20 are outstanding it is the third.
#[test]
fn the_reordering_timer_counts_as_a_delivery() {
    let released = |reduction| {
        let mut h = Host::new(linux().with(|c| c.recovery.reduction = reduction), 20.0);
        h.ack_at(80.0, &ack(2, 0.0));
        h.ack_at(80.0, &sack(2, &[(3, 4)]));
        assert_eq!(h.wait(100.0), [(100.0, R(2))]);
        (1..=6)
            .map(|n| h.ack_at(100.0 + n as f64, &sack(2, &[(3, 4 + n)])).len())
            .collect::<Vec<_>>()
    };
    assert_eq!(released(Reduction::PrrWindow), [0, 1, 0, 1, 0, 1]);
    assert_eq!(released(Reduction::Prr), [0, 0, 1, 0, 1, 0]);
}

/// Without SACK nothing tells the duplicates of the last recovery from those of a new loss: it is
/// held until something above it is acknowledged (`tcp_is_non_sack_preventing_reopen`).
#[test]
fn a_recovery_without_sack_is_held_beyond_its_point() {
    let ended = |reduction| {
        let cfg = linux().with(|c| {
            c.recovery.detector = Detector::NewReno;
            c.recovery.reduction = reduction;
        });
        let mut h = Host::new(cfg, 20.0);
        for i in 0..17 {
            h.ack_at(100.0 + i as f64, &ack(0, 0.0));
            let delivered = h.s.controller().last.unwrap().delivered;
            assert_eq!(delivered, i + 1, "a duplicate is a delivery");
        }
        // Limited Transmit sent two more before the recovery began.
        h.ack_at(220.0, &ack(22, 110.0));
        let at = h.s.phase();
        if at == Phase::Recovery {
            // Duplicates of what was resent for nothing: nothing is delivered, nothing leaves.
            let delivered = h.s.controller().last.unwrap().delivered;
            for _ in 0..4 {
                assert!(h.ack_at(220.5, &ack(22, 110.0)).is_empty());
            }
            let last = h.s.controller().last.unwrap();
            assert_eq!((last.sacked, last.delivered), (0, delivered));
        }
        h.ack_at(221.0, &ack(23, 120.0));
        (at, h.s.phase())
    };
    assert_eq!(ended(Reduction::PrrWindow), (Phase::Recovery, Phase::Open));
    assert_eq!(ended(Reduction::Prr), (Phase::Open, Phase::Open));
}

/// Without SACK a time stamp gives the window back after a timeout, and the state stays: F-RTO
/// opens it with the next ACK of an original (`tcp_try_undo_loss`), and then three duplicates count
/// though the timeout's point is not reached. Without F-RTO they do not.
#[test]
fn frto_opens_what_a_stamp_has_undone_without_sack() {
    for frto in [true, false] {
        let cfg = linux().with(|c| {
            c.recovery.detector = Detector::NewReno;
            c.recovery.frto = frto;
        });
        let mut h = Host::new(cfg, 20.0);
        h.wait(1000.0);
        assert_eq!((h.s.counts().timeouts, h.s.phase()), (1, Phase::Loss));
        h.ack_at(1001.0, &ack(1, 0.0));
        assert_eq!((h.s.controller().undos, h.s.phase()), (1, Phase::Loss));
        h.ack_at(1002.0, &ack(2, 0.0));
        let open = (h.s.controller().undos, h.s.phase());
        let expected = if frto {
            (2, Phase::Open)
        } else {
            (1, Phase::Loss)
        };
        assert_eq!(open, expected);
        let resent = h.s.counts().retransmits;
        for i in 0..3 {
            h.ack_at(1003.0 + f64::from(i), &ack(2, 0.0));
        }
        assert_eq!(h.s.counts().retransmits - resent, u64::from(frto));
    }
}

/// An ACK for two segments sent 10 ms apart: SRTT takes the older, the controller the newer.
#[test]
fn srtt_counts_the_wait_of_a_delayed_ack() {
    for (sample, last) in [(RttSample::Oldest, 60.0), (RttSample::Newest, 50.0)] {
        let mut cfg = linux();
        cfg.rto.sample = sample;
        let mut h = Host::new(cfg, 2.0);
        // Segments 2 and 3 leave at 40 and 50 ms and are acknowledged together.
        h.ack_at(40.0, &ack(1, 0.0));
        h.ack_at(50.0, &ack(2, 0.0));
        h.ack_at(100.0, &ack(4, 40.0));
        let seen = h.s.controller().last.and_then(|e| e.rtt);
        assert_eq!(seen, Some(Span::from_millis(50)));
        let before = 40.0 + (50.0 - 40.0) / 8.0;
        let expected = before + (last - before) / 8.0;
        let got = h.s.rtt().srtt().as_secs_f64() * 1e3;
        assert!(
            (got - expected).abs() < 2e-3,
            "{sample:?}: {got} {expected}"
        );
    }
}

/// Karn: an ACK that covers a retransmission gives no time of its own, but its time stamp does, in
/// whole milliseconds.
#[test]
fn a_covered_retransmission_is_timed_by_the_stamp_in_milliseconds() {
    let mut h = Host::new(linux(), 4.0);
    h.ack_at(100.0, &sack(0, &[(1, 2)]));
    h.ack_at(101.0, &sack(0, &[(1, 3)]));
    let out = h.ack_at(102.0, &sack(0, &[(1, 4)]));
    assert_eq!(out.first(), Some(&R(0)));
    h.ack_at(202.6, &ack(4, 102.0));
    let seen = h.s.controller().last.and_then(|e| e.rtt);
    assert_eq!(seen, Some(Span::from_millis(100)));
}

/// A timeout leaves alone what was sent less than an RTT ago: the window is that and one more.
#[test]
fn a_timeout_spares_recent_segments() {
    for (loss_window, pipe) in [(LossWindow::FlightPlusOne, 1), (LossWindow::One, 0)] {
        let cfg = linux().with(|c| {
            c.recovery.loss_window = loss_window;
            c.timers.head_restarts_rto = false;
            c.recovery.tlp = false;
        });
        let mut h = Host::new(cfg, 4.0);
        // RTT 100 ms: 4 leaves at 100 ms; the timer goes off at 400 ms, 300 ms after the last ACK
        // that advanced.
        h.ack_at(100.0, &ack(1, 0.0));
        // 1 is lost and resent 30 ms before, 5 follows it; the newest delivery took 270 ms. 2 and 3
        // are as old as 1.
        let out = h.ack_at(370.0, &sack(1, &[(4, 5)]));
        assert_eq!(out, [R(1)]);
        assert_eq!(h.ack_at(371.0, &sack(1, &[(3, 5)])), [R(2)]);
        h.wait(401.0);
        let rto = h.s.controller().rtos.first().copied();
        assert_eq!(rto.map(|r| r.pipe), Some(pipe), "{loss_window:?}");
    }
}

/// The timer runs from the last ACK that advanced, or from when the first outstanding segment was
/// resent.
#[test]
fn resending_the_head_restarts_the_timer() {
    for (head_restarts_timer, timeouts) in [(true, 0), (false, 1)] {
        let cfg = linux().with(|c| {
            c.timers.head_restarts_rto = head_restarts_timer;
            c.recovery.tlp = false;
        });
        let mut h = Host::new(cfg, 4.0);
        h.ack_at(100.0, &ack(1, 0.0));
        assert_eq!(h.ack_at(370.0, &sack(1, &[(4, 5)])), [R(1)]);
        h.wait(401.0);
        assert_eq!(h.s.counts().timeouts, timeouts);
    }
}

/// From recovery a timeout does not reduce again before the recovery's data is acknowledged; RFC
/// 5681 does.
#[test]
fn a_timeout_in_recovery_does_not_reduce_twice() {
    for (reduces, first) in [(false, false), (true, true)] {
        let mut h = Host::new(
            linux().with(|c| {
                c.recovery.timeout_reduces_in_recovery = reduces;
                c.recovery.tlp = false;
            }),
            10.0,
        );
        for n in 1..=3 {
            h.ack_at(99.0 + n as f64, &sack(0, &[(1, 1 + n)]));
        }
        assert_eq!(h.s.controller().congestions.len(), 1);
        h.wait(3000.0);
        assert_eq!(h.s.controller().rtos[0].first, first, "{reduces}");
    }
}

/// A retransmission that is lost after a timeout starts a recovery with a reduction of its own.
#[test]
fn a_retransmission_lost_after_a_timeout_begins_a_recovery() {
    for (recover_from_loss, reductions) in [(true, 1), (false, 0)] {
        let cfg = linux().with(|c| {
            c.recovery.recover_from_loss = recover_from_loss;
            c.recovery.loss_window = LossWindow::One;
            c.transfer = Some(8);
            c.recovery.tlp = false;
            c.recovery.frto = false;
            c.recovery.undo = false;
        });
        let mut grows = Halver::new(8.0);
        grows.slow_start = true;
        let mut h = Host::with(cfg, grows);
        h.wait(1001.0);
        assert_eq!(h.log.last().map(|(_, s)| Out::of(s)), Some(R(0)));
        // 1 and 2 are resent; 1 is lost again, 2 arrives.
        assert_eq!(h.ack_at(1100.0, &ack(1, 1000.0)), [R(1), R(2)]);
        let out = h.ack_at(1201.0, &sack(1, &[(2, 3)]));
        assert!(out.is_empty() || out[0] == R(1), "{out:?}");
        h.wait(1240.0);
        assert_eq!(
            h.s.controller().congestions.len(),
            reductions,
            "{recover_from_loss}"
        );
    }
}

/// What left just before a timeout is not lost by it, and found late by the reordering timer: in
/// Linux that begins a recovery as well (`tcp_rack_reo_timeout` asks for no lost retransmission),
/// elsewhere only a retransmission does.
#[test]
fn the_reordering_timer_begins_a_recovery_after_a_timeout() {
    for (reduction, recoveries) in [(Reduction::PrrWindow, 1), (Reduction::Prr, 0)] {
        let cfg = linux().with(|c| {
            c.recovery.reduction = reduction;
            c.recovery.recover_from_loss = true;
            c.recovery.tlp = false;
            c.recovery.frto = false;
            c.recovery.undo = false;
        });
        let mut grows = Halver::new(8.0);
        grows.slow_start = true;
        let mut h = Host::with(cfg, grows);
        let until = |end, ack: Ack| {
            let window_end = end;
            Ack { window_end, ..ack }
        };
        // Reordering was seen: the timer waits for a quarter of the RTT.
        h.ack_at(100.0, &until(8, sack(0, &[(1, 2)])));
        h.ack_at(101.0, &until(8, ack(2, 0.0)));
        h.wait(390.0);
        assert_eq!(h.ack(&until(10, ack(2, 0.0))), [N(8), N(9)]);
        let resent = h.wait(450.0);
        assert_eq!(resent.iter().map(|r| r.1).collect::<Vec<_>>(), [R(2)]);
        let expiry = resent[0].0;
        h.ack_at(expiry + 100.0, &until(10, ack(3, expiry)));
        assert_eq!(h.s.phase(), Phase::Loss);
        assert!(h.s.controller().congestions.is_empty());
        h.wait(expiry + 140.0);
        assert_eq!(h.s.controller().congestions.len(), recoveries);
    }
}

/// While a hole is open, three ACKs for the same number leave at once and the rest wait 1.1 ms.
#[test]
fn acks_above_a_hole_are_merged() {
    let mut r = receiver(0);
    for seq in [0, 1] {
        r.handle_segment(at_us(0), &data(seq));
    }
    // 2 is lost. 100 us apart.
    let acks: Vec<Option<Ack>> = (3..15)
        .map(|seq| r.handle_segment(at_us(seq * 100), &data(seq)))
        .collect();
    assert!(acks[..3].iter().all(Option::is_some));
    assert!(acks[3..].iter().all(Option::is_none));
    assert_eq!(r.next_timeout(), at_us(6 * 100 + 1000 + 100));
    let merged = r
        .handle_timeout(at_us(1700))
        .map(|a| (a.cum, a.sacks.iter().next()));
    let all = fullpipe_flow::Range { start: 3, end: 15 };
    assert_eq!(merged, Some((2, Some(all))));
    // Filling the hole is not merged.
    assert_eq!(
        r.handle_segment(at_us(1800), &data(2)).map(|a| a.cum),
        Some(15)
    );
}

/// An ACK for an advance beyond a hole is the first of the three that leave at once if what lies in
/// the buffer makes the window shorter than was granted (`__tcp_ack_snd_check`), and none of them
/// with a buffer that has room for it all.
#[test]
fn an_advance_into_a_short_window_counts_as_a_duplicate() {
    for (buffer, at_once) in [(400, 2), (4000, 3)] {
        let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
            c.acks.quick = 0;
            c.acks.hz = None;
            c.window.first = Some(400);
            c.window.max = Some(400);
            c.window.buffer = Some(buffer);
        }));
        for seq in [0, 1, 3, 4, 5, 7, 8, 9] {
            r.handle_segment(at_us(seq * 1000), &data(seq));
        }
        // 2 fills the first hole.
        let advance = r.handle_segment(at_us(60_000), &data(2)).unwrap();
        assert_eq!(advance.cum, 6);
        let acks = (10..16).map(|seq| r.handle_segment(at_us(60_000 + seq), &data(seq)));
        assert_eq!(acks.filter(Option::is_some).count(), at_once, "{buffer}");
    }
}

/// The timer of delayed ACKs goes on when the next segment makes its ACK leave at once, and sends
/// what is merged by then (`tcp_delack_timer_handler`): 40 ms after segment 2.
#[test]
fn an_old_timer_of_delayed_acks_sends_what_is_merged() {
    // In the second case it goes off before anything waits.
    for (hole_at, due) in [(39_500, 40_000), (39_800, 41_200), (20_000, 21_400)] {
        let mut r = receiver(0);
        for seq in [0, 1, 2] {
            r.handle_segment(at_us(0), &data(seq));
        }
        assert_eq!(r.next_timeout(), at_us(40_000));
        r.handle_segment(at_us(1), &data(3));
        assert_eq!(r.next_timeout(), Time::MAX);
        for n in 0..4 {
            r.handle_segment(at_us(hole_at + n * 100), &data(5 + n));
        }
        assert_eq!(r.next_timeout(), at_us(due), "{hole_at}");
    }
}

/// Three blocks fit into an ACK: what waits goes out before a newer block would push it aside, and
/// no more than 44 wait.
#[test]
fn merged_acks_lose_no_block() {
    let mut r = receiver(0);
    for seq in [0, 1] {
        r.handle_segment(at_us(0), &data(seq));
    }
    // Every second segment is lost: each arrival is a block of its own.
    let mut told = Vec::new();
    for seq in (3..40).step_by(2) {
        if let Some(a) = r.handle_segment(at_us(1000 + seq), &data(seq)) {
            told.extend(a.sacks.iter().map(|b| b.start));
        }
    }
    told.sort_unstable();
    told.dedup();
    assert_eq!(told, (3..38).step_by(2).collect::<Vec<_>>());
    let mut r = receiver(0);
    let answered = (1..60)
        .filter(|&seq| r.handle_segment(at_us(seq), &data(seq)).is_some())
        .collect::<Vec<_>>();
    assert_eq!(answered, [1, 2, 3, 3 + 44 + 1]);
    assert_eq!(AckCompression::LINUX.most, 44);
}

/// On a short path the wait is a twentieth of the RTT that the first data shows, and the slack of
/// the timer more.
#[test]
fn the_wait_is_a_twentieth_of_a_short_round_trip() {
    let mut r = receiver(1);
    r.handle_segment(
        at_us(0),
        &Segment {
            syn: true,
            ..data(0)
        },
    );
    for seq in [0, 2, 3, 4, 5] {
        r.handle_segment(at_us(4000), &data(seq));
    }
    assert_eq!(r.next_timeout(), at_us(4000 + 200 + 100));
}

/// The window grows by two segments per arrival up to its limit, and each arrival is acknowledged
/// at once meanwhile.
#[test]
fn segments_are_acknowledged_at_once_while_the_window_grows() {
    let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
        c.window.first = Some(45);
        c.window.max = Some(60);
        c.acks.quick = 2;
    }));
    let acks: Vec<Option<u64>> = (0..12)
        .map(|seq| {
            r.handle_segment(at_us(seq), &data(seq))
                .map(|a| a.window_end)
        })
        .collect();
    // 45 + 2 (n + 1) segments beyond the n-th, at most 60: eight arrivals open it.
    let open: Vec<u64> = acks.iter().take(8).map(|a| a.unwrap_or(0)).collect();
    assert_eq!(open, [48, 51, 54, 57, 60, 63, 66, 68]);
    // The two of the start are left for afterwards: each step of the window gives one of its own.
    assert_eq!(acks[8..], [Some(69), Some(70), None, Some(72)]);
}

/// Without SACK nothing that is out of order moves the window, so that every ACK counts as a
/// duplicate (`tcp_data_queue_ofo`); what fills the hole does.
#[test]
fn the_window_grows_above_a_hole_only_with_sacks() {
    for (sack, ends) in [(false, [48, 48, 53]), (true, [50, 52, 57])] {
        let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
            c.window.first = Some(45);
            c.window.max = Some(100);
            c.acks.quick = 0;
            c.sack.enabled = sack;
        }));
        let mut end = |seq| {
            let ack = r.handle_segment(at_us(seq), &data(seq));
            ack.map(|a| a.window_end)
        };
        end(0);
        assert_eq!([2, 3, 1].map(|seq| end(seq).unwrap_or(0)), ends, "{sack}");
    }
}

/// Without SACK no ACK is merged: each is a duplicate that counts (`__tcp_ack_snd_check`).
#[test]
fn duplicates_without_sack_are_not_merged() {
    let answered = |sack: bool| {
        let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
            c.window.first = None;
            c.window.max = None;
            c.acks.quick = 0;
            c.sack.enabled = sack;
        }));
        let acked = |seq: &u64| r.handle_segment(at_us(*seq), &data(*seq)).is_some();
        (1..20).filter(acked).count()
    };
    assert_eq!((answered(false), answered(true)), (19, 3));
}

/// The first ACK after the handshake is a window update to Linux, whatever it advertises
/// (`tcp_may_update_window`), and no duplicate: without SACK four repair the first segment. RFC
/// 5681 section 2 compares the windows.
#[test]
fn the_first_ack_is_no_duplicate() {
    for (by, asked) in [(SpuriousRule::Linux, 4), (SpuriousRule::Rfc, 3)] {
        let cfg = linux().with(|c| {
            c.handshake = true;
            c.recovery.detector = Detector::NewReno;
            c.recovery.reordering_by = by;
        });
        let mut h = Host::new(cfg, 10.0);
        h.ack_at(100.0, &syn_ack(45));
        h.wait(200.0);
        let again = Ack {
            window_end: 45,
            ..ack(0, 0.0)
        };
        let resent = (1..=9).find(|_| h.ack(&again).contains(&R(0)));
        assert_eq!(resent, Some(asked), "{by:?}");
    }
}

/// Without SACK more duplicates than segments that can cause one are reordering, and as many are
/// asked for from then on (`tcp_check_reno_reordering`): of two segments outstanding one can, of
/// six five, and one duplicate more came. RFC 5681 asks for three.
#[test]
fn duplicates_beyond_what_is_outstanding_change_how_many_are_asked_for() {
    for (by, sent, asked) in [
        (SpuriousRule::Linux, 2, 2),
        (SpuriousRule::Linux, 6, 6),
        (SpuriousRule::Rfc, 2, 3),
        (SpuriousRule::Rfc, 6, 3),
    ] {
        let cfg = linux().with(|c| {
            c.handshake = true;
            c.recovery.detector = Detector::NewReno;
            c.recovery.reordering_by = by;
        });
        let mut h = Host::new(cfg, 40.0);
        h.ack_at(100.0, &syn_ack(sent));
        let until = |cum, window_end| Ack {
            window_end,
            ..ack(cum, 0.0)
        };
        h.wait(200.0);
        // The first ACK is none to Linux.
        for _ in 0..=sent {
            h.ack(&until(0, sent));
        }
        // What is acknowledged next ends the recovery that three began.
        h.ack_at(201.0, &until(sent, sent + 20));
        h.ack_at(202.0, &until(sent + 1, sent + 20));
        let again = until(sent + 1, sent + 20);
        let resent = (1..=9).find(|_| h.ack(&again).contains(&R(sent + 1)));
        assert_eq!(resent, Some(asked), "{by:?}, {sent}");
    }
}

/// What a receiver grants itself beyond the widest window shows in its quick ACKs alone.
#[test]
fn no_ack_says_more_than_the_widest_window() {
    let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
        c.window.first = Some(45);
        c.window.max = Some(60);
        c.window.widest = Some(50);
        c.acks.quick = 0;
    }));
    let windows: Vec<Option<u64>> = (0..10)
        .map(|seq| {
            let ack = r.handle_segment(at_us(seq), &data(seq))?;
            Some(ack.window_end - ack.cum)
        })
        .collect();
    let of = |w: u64| Some(w);
    assert_eq!(windows[..4], [of(47), of(49), of(50), of(50)]);
    assert_eq!(windows[4..], [of(50), of(50), of(50), of(50), None, of(50)]);
}

/// Five segments lie unread when the hole below them is filled: six in one packet, 4728 bytes of
/// window, leave 141,520 of 146,248, of which 141,824 are said in units of 512, 97 segments. One of
/// the 101 that the buffer is worth is in reserve. The ACKs that repeat the number take nothing
/// back.
#[test]
fn the_ack_that_fills_a_hole_advertises_what_the_buffer_has_left() {
    let windows = |buffer| {
        let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
            c.window.first = None;
            c.window.max = Some(100);
            c.window.buffer = buffer;
            c.acks.quick = 0;
            c.acks.every = 1;
            c.acks.compression = None;
        }));
        [0, 2, 3, 4, 5, 6, 1, 7, 8].map(|seq| {
            let ack = r.handle_segment(at_us(seq), &data(seq)).unwrap();
            ack.window_end - ack.cum
        })
    };
    let full = [100; 9];
    let mut short = full;
    short[6] = 97;
    assert_eq!(windows(Some(101)), short);
    assert_eq!((windows(None), windows(Some(110))), (full, full));
}

/// What the buffer has beyond the window is in reserve (`tcp_init_buffer_space`).
#[test]
fn a_segment_of_the_buffer_is_never_window() {
    let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
        c.window.first = Some(45);
        c.window.max = Some(48);
        c.window.buffer = Some(48);
        c.acks.quick = 0;
    }));
    let acks = (0..4).filter_map(|seq| r.handle_segment(at_us(seq), &data(seq)));
    let said: Vec<_> = acks
        .map(|ack| (ack.cum, ack.window_end - ack.cum))
        .collect();
    // While it grows every segment is acknowledged.
    assert_eq!(said, [(1, 47), (3, 47)]);
}

/// What arrives in one instant lies in the buffer until somebody reads it, more than is in reserve:
/// the ACK of a window that cannot grow waits for that, and is one for all (`__tcp_ack_snd_check`).
/// One segment fits, and while the window grows each ACK says more than the last.
#[test]
fn what_arrives_together_shares_an_ack() {
    let acks = |first, quick| {
        let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
            c.window.first = first;
            c.window.max = Some(200);
            c.window.buffer = Some(200);
            c.acks.quick = quick;
        }));
        let mut acks = Vec::new();
        for seq in 0..12 {
            let at = at_us(if seq < 4 { seq } else { 10 });
            acks.extend(r.handle_segment(at, &data(seq)).map(|ack| ack.cum));
        }
        let later = r.handle_timeout(at_us(11)).map(|ack| ack.cum);
        (acks, later)
    };
    assert_eq!(acks(None, 1), (vec![1, 3, 5], Some(12)));
    let each = (1..=12).collect::<Vec<_>>();
    assert_eq!(acks(Some(45), 1), (each, None));
}

/// Every third segment arrives, each a block of its own. After three ACKs the others wait, and of
/// four blocks the last must be reported before it makes room: the ACK goes before the new block is
/// there, and the arrival that asked for it waits for none, so that every second one brings an ACK
/// (`tcp_sack_new_ofo_skb`, `tcp_ack_snd_check`).
#[test]
fn an_arrival_that_makes_an_ack_leave_waits_for_none() {
    let acks = |every| {
        let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
            c.window.first = None;
            c.acks.quick = 0;
            c.acks.every = every;
        }));
        let mut acks = Vec::new();
        for seq in [0, 1, 3, 6, 9, 12, 15, 18, 21, 24, 27] {
            let ack = r.handle_segment(at_us(seq), &data(seq));
            acks.extend(ack.map(|ack| (seq, ack.sacks.iter().next().map(|block| block.start))));
        }
        acks
    };
    let two = acks(2);
    let at_once = [(1, None), (3, Some(3)), (6, Some(6)), (9, Some(9))];
    let for_room = [(15, Some(12)), (21, Some(18)), (27, Some(24))];
    assert_eq!(two[..4], at_once);
    assert_eq!(two[4..], for_room);
    // Where the route asks for an ACK for each, none is merged.
    assert_eq!(acks(1).len(), 11);
}

/// The window grows by two segments for each that arrives, as far as those above a hole leave room:
/// 1108 bytes each, 0.765 n segments of the 100. It is 45 + 2 (n + 1) when n lie there, and with 85
/// at n = 19 as large as the room, of which the ACK, with one more in the buffer, says 84. With the
/// hole filled it grows again (`tcp_grow_window`).
#[test]
fn a_window_grows_as_far_as_the_buffer_has_room() {
    // What the blocks tell of those above the hole has no say in it.
    for whole in [false, true] {
        let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
            c.window.first = Some(45);
            c.window.max = Some(100);
            c.window.buffer = Some(100);
            c.acks.quick = 0;
            c.acks.compression = None;
            c.sack.whole = whole;
        }));
        let mut said = |seq| {
            let ack = r.handle_segment(at_us(seq), &data(seq))?;
            Some(ack.window_end - ack.cum)
        };
        let grown = (1..=30).filter_map(&mut said).collect::<Vec<_>>();
        let expected = (0..30).map(|n: u64| (45 + 2 * (n + 1)).min(84));
        assert_eq!(grown, expected.collect::<Vec<_>>());
        // 31 have just come in order, in two packets: half of 46,424 bytes of memory.
        assert_eq!(said(0), Some(84));
        let later = (31..=36).filter_map(&mut said).collect::<Vec<_>>();
        assert_eq!(later, [87, 89, 91, 93, 95, 97]);
    }
}

/// Every second segment is lost, and what is held leaves no room for more: the end of the window
/// stands at segment 31, 44,888 bytes. Each retransmission moves the number by two, 2896 bytes, and
/// the window, in units of 512, is rounded up: its end creeps by 336 bytes (`tcp_select_window`;
/// the first time by 416), and the fifth time by a segment.
#[test]
fn a_window_that_must_not_shrink_creeps_by_what_it_is_rounded_up() {
    let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux).with(|c| {
        c.window.first = None;
        c.window.max = Some(30);
        c.window.buffer = Some(31);
        c.acks.quick = 0;
        c.acks.every = 1;
        c.acks.compression = None;
    }));
    let mut end = |seq| r.handle_segment(at_us(seq), &data(seq)).unwrap().window_end;
    assert_eq!(end(0), 31);
    for held in (2..=48).step_by(2) {
        assert_eq!(end(held), 31);
    }
    let filled = [1, 3, 5, 7, 9].map(&mut end);
    assert_eq!(filled, [31, 31, 31, 31, 32]);
    // One more above the holes finds no more room.
    assert_eq!(end(50), 32);
}

/// Header prediction: an ACK without blocks or echo, with the window of the last; a duplicate, too.
#[test]
fn an_ack_is_predicted_that_repeats_the_window_of_the_one_before() {
    let mut h = Host::new(linux(), 20.0);
    let plain = |cum, window| Ack {
        window_end: cum + window,
        ..ack(cum, 0.0)
    };
    let marked = Ack {
        ece: true,
        ..plain(5, 300)
    };
    let blocks = Ack {
        window_end: 6 + 300,
        ..sack(6, &[(8, 9)])
    };
    let acks = [
        (plain(1, 100), false),
        (plain(2, 100), true),
        (plain(3, 300), false),
        (plain(4, 300), true),
        (marked, false),
        (blocks, false),
        (plain(6, 300), true),
        (plain(9, 300), true),
        (plain(10, 299), false),
        (plain(11, 300), false),
        (plain(12, 300), true),
        (plain(12, 310), false),
    ];
    for (i, (ack, predicted)) in acks.iter().enumerate() {
        h.ack_at(100.0 + i as f64, ack);
        assert_eq!(h.s.controller().last.unwrap().predicted, *predicted, "{i}");
    }
}

/// A pushed segment is acknowledged at once. A controller that sets the rate, as this one may, gets
/// a buffer of three windows, here 691,200 bytes of memory, 312 segments of 2216: the first write.
/// A write is a third of that at least.
#[test]
fn writes_into_the_send_buffer_are_pushed() {
    let mut r = receiver(0);
    let pushed = Segment {
        push: true,
        ..data(0)
    };
    assert!(r.handle_segment(at_us(0), &pushed).is_some());
    assert!(r.handle_segment(at_us(1), &data(1)).is_none());
    let pushes = |send_buffer| -> Vec<u64> {
        let mut h = Host::new(linux().with(|c| c.host.send_buffer = send_buffer), 100.0);
        for n in 1..=60 {
            h.ack_at(100.0 + n as f64, &ack(10 * n, 0.0));
        }
        let pushed = h.log.iter().filter(|(_, s)| s.push);
        pushed.map(|(_, s)| s.seq).collect()
    };
    let seen = pushes(true);
    assert_eq!(seen[0], 311);
    assert!(
        seen.len() > 1 && seen.windows(2).all(|w| w[1] - w[0] >= 103),
        "{seen:?}"
    );
    assert_eq!(pushes(false), []);
}

/// Segment 0 is missing, everything behind it is SACKed and shares a buffer: 768 bytes for the two
/// ends of what is in it, 1448 for each segment between. Three of the largest window, 2304 bytes
/// for each segment, are less than 2216 bytes of it and more than two thirds, as the application
/// wakes at those. Without SACK each segment keeps its 2216 bytes.
#[test]
fn a_hole_fills_the_send_buffer() {
    let out = |send_buffer, sack_used: bool| {
        let cfg = linux().with(|c| {
            c.host.send_buffer = send_buffer;
            c.recovery.tlp = false;
            if !sack_used {
                c.recovery.detector = Detector::NewReno;
            }
        });
        let mut h = Host::new(cfg, 20.0);
        let mut most = 20.0_f64;
        for n in 1..400 {
            match sack_used {
                true => h.ack_at(100.0 + n as f64, &sack(0, &[(1, 1 + n)])),
                // No more duplicates than segments behind the hole.
                false if n < h.s.nxt() => h.ack_at(100.0 + n as f64, &ack(0, 0.0)),
                false => break,
            };
            most = most.max(h.s.cwnd());
        }
        (h.s.nxt() as f64, 3.0 * 2304.0 * most)
    };
    let (plain, memory) = out(true, false);
    assert!(
        plain * 2216.0 >= memory && plain * 2216.0 < memory + 2216.0,
        "{plain} {memory}"
    );
    let (shared, memory) = out(true, true);
    assert!(shared * 2216.0 > memory, "{shared} {memory}");
    let all_but_hole = shared * 1448.0 + 2.0 * 768.0;
    assert!(all_but_hole > memory * 2.0 / 3.0 && all_but_hole < memory + 2.0 * 2216.0);
    assert!(out(false, true).0 > shared);
}

/// After a silence of an RTT and 200 ms the sender must have timed out: ACKs are quick again.
#[test]
fn acks_are_quick_again_after_a_silence() {
    let mut r = receiver(2);
    r.handle_segment(
        at_us(0),
        &Segment {
            syn: true,
            ..data(0)
        },
    );
    let arrive =
        |r: &mut Receiver, ms: u64, seq| r.handle_segment(at_us(ms * 1000), &data(seq)).is_some();
    assert!(arrive(&mut r, 40, 0) && arrive(&mut r, 41, 1));
    assert!(!arrive(&mut r, 42, 2) && arrive(&mut r, 43, 3));
    assert!(!arrive(&mut r, 280, 4), "237 ms are not enough");
    assert!(arrive(&mut r, 281, 5));
    assert!(arrive(&mut r, 522, 6), "241 ms are");
}

/// A tail loss probe waits 2 ms beyond two SRTT, on the wheel until the tick after.
#[test]
fn timers_end_on_ticks() {
    let mut cfg = linux();
    let mut exact = Host::new(cfg.clone(), 4.0);
    exact.ack_at(100.0, &ack(2, 0.0));
    assert_eq!(exact.s.next_timeout(), ms(302.0));
    cfg.timers.grain = fullpipe_flow::TimerGrain::Wheel;
    cfg.timers.hz = 100;
    let mut wheel = Host::new(cfg, 4.0);
    wheel.ack_at(100.0, &ack(2, 0.0));
    // The probe's 202 ms would be 21 ticks; the timeout of segment 2, which left at 0 ms, is due
    // before (`tcp_rto_delta_us`): 200 ms are 20 ticks, and the present one does not count.
    assert_eq!(wheel.s.next_timeout(), ms(310.0));
}

/// `tcp_schedule_loss_probe` asks for SACK, not for RACK; RFC 8985 section 7.1 wants RACK.
#[test]
fn sack_alone_is_enough_for_a_tail_loss_probe() {
    let tail = |detector, reduction| {
        let mut h = Host::new(
            linux().with(|c| {
                c.transfer = Some(10);
                c.recovery.detector = detector;
                c.recovery.reduction = reduction;
            }),
            10.0,
        );
        h.ack_at(100.0, &ack(9, 0.0));
        h.wait(5000.0);
        (h.s.counts().probes, h.s.counts().timeouts > 0)
    };
    assert_eq!(tail(Detector::Sack, Reduction::PrrWindow).0, 1);
    assert_eq!(tail(Detector::Sack, Reduction::Prr), (0, true));
    assert_eq!(tail(Detector::NewReno, Reduction::PrrWindow), (0, true));
}

/// A probe's timer goes on when something is SACKed that sets no other, and a probe leaves though
/// the last segment is SACKed (`tcp_send_loss_probe`).
#[test]
fn a_probe_leaves_after_sacks() {
    let cfg = linux().with(|c| {
        c.timers.grain = fullpipe_flow::TimerGrain::Wheel;
        c.transfer = Some(7);
        c.recovery.detector = Detector::Sack;
    });
    let mut h = Host::new(cfg, 10.0);
    h.ack_at(50.0, &ack(4, 0.0));
    h.ack_at(51.0, &sack(4, &[(5, 7)]));
    h.wait(170.0);
    assert_eq!((h.s.counts().probes, h.s.counts().timeouts), (1, 0));
    assert_eq!(h.s.flight(), 1, "the probe is not in the network twice");
}

/// The same while the window comes down for a mark, with a SACK on an ACK that sets the timers anew
/// (`tcp_schedule_loss_probe` asks for the state alone). A timeout came instead.
#[test]
fn a_probe_leaves_after_sacks_behind_a_mark() {
    let cfg = linux().with(|c| {
        c.ecn = true;
        c.timers.grain = fullpipe_flow::TimerGrain::Wheel;
        c.transfer = Some(9);
        c.recovery.detector = Detector::Sack;
    });
    let mut h = Host::new(cfg, 10.0);
    let marked = Ack {
        ece: true,
        ..ack(4, 0.0)
    };
    h.ack_at(50.0, &marked);
    h.ack_at(51.0, &sack(5, &[(6, 7)]));
    h.wait(170.0);
    assert_eq!((h.s.counts().probes, h.s.counts().timeouts), (1, 0));
}

/// With SACK and without RACK a hole is lost when as many segments above it are SACKed as one was
/// overtaken by before (`tcp_check_sack_reordering`, `tcp_update_scoreboard`): segment 0 arrives
/// behind the ninth after it. RFC 6675 asks for three.
#[test]
fn reordering_changes_how_many_sacked_segments_are_asked_for() {
    for (by, asked) in [(SpuriousRule::Linux, 10), (SpuriousRule::Rfc, 3)] {
        let cfg = linux().with(|c| {
            c.recovery.detector = Detector::Sack;
            c.recovery.reordering_by = by;
            c.recovery.tlp = false;
        });
        let mut h = Host::new(cfg, 40.0);
        h.ack_at(100.0, &sack(0, &[(9, 10)]));
        h.ack_at(101.0, &sack(1, &[(9, 10)]));
        h.ack_at(102.0, &ack(10, 0.0));
        assert_eq!(h.s.counts().retransmits, 0);
        let resent = (1..=20).find(|n| h.ack(&sack(10, &[(11, 11 + n)])).contains(&R(10)));
        assert_eq!(resent, Some(asked), "{by:?}");
    }
}

/// In a recovery with nothing else to send RFC 6675 resends a hole that too few SACKed segments
/// stand above (NextSeg, rule 3), Linux what is marked lost alone (`tcp_xmit_retransmit_queue`).
#[test]
fn only_what_is_marked_lost_is_resent() {
    for (by, again) in [
        (SpuriousRule::Linux, vec![]),
        (SpuriousRule::Rfc, vec![R(18)]),
    ] {
        let cfg = linux().with(|c| {
            c.transfer = Some(20);
            c.recovery.detector = Detector::Sack;
            c.recovery.reordering_by = by;
            c.recovery.tlp = false;
        });
        let mut h = Host::new(cfg, 40.0);
        assert_eq!(h.ack_at(100.0, &sack(10, &[(11, 18)])), [R(10)]);
        assert_eq!(h.ack(&sack(10, &[(19, 20), (11, 18)])), again, "{by:?}");
    }
}

/// The preset leaves a plain transfer as it is: everything arrives in order and nothing is sent
/// twice.
#[test]
fn nothing_is_resent_without_a_loss() {
    let mut h = Host::new(linux(), 10.0);
    assert_eq!(h.log.len(), 10);
    for i in 0..50 {
        let una = h.s.una();
        let out = h.ack_at(100.0 + 10.0 * f64::from(i), &ack(una + 2, 0.0));
        assert_eq!(out, [N(una + 10), N(una + 11)]);
    }
    assert_eq!(h.s.counts().retransmits, 0);
}

/// A mark on the ACK that ends a recovery. Linux has left the recovery by then and reduces once
/// more (`tcp_try_to_open`, `tcp_enter_cwr`): 20, 10, 5. To RFC 3168 section 6.1.2 it may be the
/// echo of a mark of the window that has been answered.
#[test]
fn a_mark_at_the_end_of_a_recovery_reduces_again() {
    for (reduction, expected) in [(Reduction::PrrWindow, 5.0), (Reduction::Prr, 10.0)] {
        let cfg = linux().with(|c| {
            c.ecn = true;
            c.recovery.reduction = reduction;
        });
        let mut h = Host::new(cfg, 20.0);
        let point = h.s.nxt();
        for n in 10..=19 {
            h.ack_at(90.0 + n as f64, &sack(0, &[(1, 1 + n)]));
        }
        let end = Ack {
            ece: true,
            ..ack(point, 100.0)
        };
        h.ack_at(200.0, &end);
        assert!(h.s.una() == point && h.s.nxt() > point + 2, "{}", h.s.nxt());
        assert_eq!(h.s.controller().ssth, expected, "{reduction:?}");
        // Of later data it is a mark of its own to the RFC, and inside of a reduction to Linux.
        h.ack_at(
            201.0,
            &Ack {
                cum: point + 1,
                ..end
            },
        );
        assert_eq!(h.s.controller().ssth, 5.0, "{reduction:?}");
    }
}

/// Losses on both sides of the point to which a mark has reduced the window. Linux ends there the
/// recovery that the first one begins (`tcp_enter_recovery` leaves `high_seq` alone), and the
/// second one reduces once more; by RFC 6675 section 5 the recovery is over when all is repaired
/// that was out when it began.
#[test]
fn a_recovery_within_a_reduction_ends_where_that_would_have() {
    for (reduction, expected) in [(Reduction::PrrWindow, 2), (Reduction::Prr, 1)] {
        let cfg = linux().with(|c| {
            c.ecn = true;
            c.recovery.reduction = reduction;
        });
        let mut h = Host::new(cfg, 20.0);
        let mark = Ack {
            ece: true,
            ..ack(2, 1e9)
        };
        h.ack_at(80.0, &mark);
        let point = h.s.nxt();
        for cum in 3..=10 {
            h.ack_at(80.0 + cum as f64, &ack(cum, 1e9));
        }
        // Segment 10 is lost, and the first beyond the point.
        assert!(h.s.phase() == Phase::Cwr && h.s.nxt() > point + 3);
        for seq in 12..=point {
            h.ack_at(90.0 + seq as f64, &sack(10, &[(11, seq)]));
        }
        assert_eq!(h.s.phase(), Phase::Recovery, "{reduction:?}");
        let end = h.s.nxt();
        h.ack_at(180.0, &sack(10, &[(point + 1, end), (11, point)]));
        h.ack_at(200.0, &sack(point, &[(point + 1, end)]));
        assert_eq!(h.s.phase(), Phase::Recovery);
        let answered = h.s.controller().congestions.len();
        assert_eq!(answered, expected, "{reduction:?}");
    }
}

/// A hole in a window that a mark has reduced turns out to be a late segment: the recovery ends,
/// as the window on the way down stays and is not given back (`tcp_init_undo`,
/// `tcp_undo_cwnd_reduction` without `prior_ssthresh`). So does one that a mark has justified. With
/// the stamp of the retransmission nothing is undone.
#[test]
fn a_late_segment_ends_a_recovery_that_a_mark_has_justified() {
    let marked = |cum| Ack {
        ece: true,
        ..ack(cum, 1e9)
    };
    for before in [true, false] {
        for (stamp, undone) in [(0.0, true), (1e9, false)] {
            let mut h = Host::new(linux().with(|c| c.ecn = true), 20.0);
            let una = if before { 2 } else { 0 };
            if before {
                h.ack_at(80.0, &marked(2));
            }
            for end in una + 2..=una + 8 {
                h.ack_at(80.0 + end as f64, &sack(una, &[(una + 1, end)]));
            }
            assert_eq!(h.s.phase(), Phase::Recovery);
            if !before {
                let sack = sack(una, &[(una + 1, una + 9)]);
                h.ack_at(89.5, &Ack { ece: true, ..sack });
            }
            let down = h.s.cwnd();
            assert!(down > 10.0, "{down}");
            // All that was out when the reduction began.
            h.ack_at(170.0, &ack(20, stamp));
            let cc = h.s.controller();
            assert_eq!((cc.undos, cc.congestions.len()), (0, 1));
            assert_eq!(cc.cut_short.len(), usize::from(undone), "{before} {stamp}");
            assert!(cc.cut_short.iter().all(|w| *w >= 10.0));
        }
    }
}

/// The mark may come with the very ACK that disproves the recovery (`tcp_fastretrans_alert`, point
/// A): nothing is given back, and the mark begins the next reduction where the window is.
#[test]
fn a_mark_keeps_down_what_its_own_ack_disproves() {
    for (ece, undos) in [(false, 1), (true, 0)] {
        let mut h = Host::new(linux().with(|c| c.ecn = true), 20.0);
        for end in 2..=8 {
            h.ack_at(80.0 + end as f64, &sack(0, &[(1, end)]));
        }
        assert_eq!(h.s.phase(), Phase::Recovery);
        let late = ack(20, 0.0);
        h.ack_at(170.0, &Ack { ece, ..late });
        let cc = h.s.controller();
        assert_eq!((cc.undos, cc.cut_short.len()), (undos, 1 - undos));
        assert_eq!(cc.congestions.len(), 2 - undos);
    }
}

/// A recovery may be undone by the ACK that ends it, whether it gives the window back or not: that
/// it ends, a module hears as ever (`tcp_end_cwnd_reduction`); not of one that is undone before
/// (`tcp_try_undo_partial`), or of one that is not.
#[test]
fn a_recovery_that_is_undone_where_it_ends_has_an_end() {
    for ece in [false, true] {
        for (cum, stamp, ends) in [(20, 0.0, 1), (9, 0.0, 0), (20, 1e9, 0)] {
            let mut h = Host::new(linux().with(|c| c.ecn = true), 20.0);
            for end in 2..=8 {
                h.ack_at(80.0 + end as f64, &sack(0, &[(1, end)]));
            }
            let point = h.s.counts().sent - h.s.counts().retransmits;
            let cum = if cum == 20 { point } else { cum };
            let late = ack(cum, stamp);
            h.ack_at(170.0, &Ack { ece, ..late });
            assert_eq!(h.s.controller().undone_at_end, ends, "{ece} {cum} {stamp}");
        }
    }
}

/// Without SACK a timeout is undone twice, by a stamp and by F-RTO: a mark before the first, or
/// with the second, leaves what follows nothing to give back.
#[test]
fn a_mark_keeps_down_what_is_undone_twice() {
    for (marked, undos) in [(None, 2), (Some(0), 0), (Some(2), 1)] {
        let cfg = linux().with(|c| {
            c.recovery.detector = Detector::NewReno;
            c.ecn = true;
        });
        let mut h = Host::new(cfg, 20.0);
        h.wait(1000.0);
        for cum in 0..=2 {
            assert_eq!(h.s.phase(), Phase::Loss);
            let ece = marked == Some(cum);
            if cum > 0 || ece {
                let late = ack(cum, 0.0);
                h.ack_at(1000.0 + cum as f64, &Ack { ece, ..late });
            }
        }
        let cc = h.s.controller();
        assert_eq!(cc.undos, undos);
        assert_eq!(cc.cut_short.len(), usize::from(undos < 2));
        assert_ne!(h.s.phase(), Phase::Loss);
    }
}

/// What a timeout began ends where F-RTO disproves it, though a mark has justified it: from there
/// on slow start is that of an open window.
#[test]
fn slow_start_goes_on_where_a_justified_timeout_is_disproved() {
    let grown = |ece| {
        let setup = Setup {
            initial_window: 20.0,
            ..Setup::default()
        };
        let cc = StackSpec::parse("reno").unwrap().controller(setup);
        let mut s = Sender::new(linux().with(|c| c.ecn = true), cc, 0);
        let send = |s: &mut Sender<_>, ms: u64| {
            while s.poll_transmit(at_us(1000 * ms)).is_some() {}
        };
        s.start(Time::ZERO);
        send(&mut s, 0);
        while s.counts().timeouts == 0 {
            let at = s.next_timeout();
            s.handle_timeout(at);
            while s.poll_transmit(at).is_some() {}
        }
        let mut at = s.next_timeout().as_nanos() / 1_000_000;
        // A duplicate, which may be marked; then everything arrives that left before the timeout.
        for (cum, ece) in [(0, ece), (20, false)] {
            at += 1;
            s.handle_ack(
                at_us(1000 * at),
                &Ack {
                    ece,
                    ..ack(cum, 0.0)
                },
            );
            send(&mut s, at);
        }
        assert_eq!(s.phase(), Phase::Open);
        let before = s.controller().window();
        s.handle_ack(at_us(1000 * (at + 50)), &ack(22, at as f64));
        s.controller().window() - before
    };
    assert_eq!((grown(false), grown(true)), (2.0, 2.0));
}

/// An application that keeps the sender waiting: RTT 100 ms, RTO 300 ms, window 41, initial window
/// 10. Three segments, all acknowledged at 200 ms; one leaves at 395 ms, before the restart after
/// idle time, and one at 510 ms, a timeout after the last ACK and before the next:
/// `tcp_cwnd_application_limited` takes half of what is above the initial window, (41 + 10) / 2,
/// and remembers 3/4 of 41. Not so where the receiver is the limit, where another ACK comes in
/// between, or by RFC 7661, which waits for five minutes.
#[test]
fn a_window_that_the_application_does_not_use_falls() {
    for (mode, receiver, silent, expected) in [
        (Validation::Rfc2861, false, true, 25.0),
        (Validation::Rfc2861, false, false, 41.0),
        (Validation::Rfc2861, true, true, 41.0),
        (Validation::Rfc7661, false, true, 41.0),
    ] {
        let cfg = linux().with(|c| {
            c.window.validation = mode;
            c.window.initial = 10.0;
            c.recovery.tlp = false;
            c.transfer = (!receiver).then_some(41);
        });
        let mut cc = Halver::new(41.0);
        cc.ssth = 20.0;
        let mut h = Host::with(cfg, cc);
        // The application's data, or the receiver's window, ends at `end` from now on.
        let mut go = |at: f64, cum: u64, end: u64| {
            h.wait(at);
            if !receiver {
                h.s.write_until(end);
            }
            let window_end = if receiver { end } else { u64::MAX };
            h.ack(&Ack {
                window_end,
                ..ack(cum, at - 100.0)
            });
            (h.s.cwnd(), h.s.controller().ssth)
        };
        go(100.0, 41, 44);
        assert_eq!(go(200.0, 44, 44), (41.0, 20.0));
        assert_eq!(go(395.0, 44, 45), (41.0, 20.0));
        let cum = if silent { 44 } else { 45 };
        if !silent {
            go(500.0, cum, 45);
        }
        let remembered = if expected > 40.0 { 20.0 } else { 30.75 };
        let case = format!("{mode:?}, receiver {receiver}, silent {silent}");
        assert_eq!(go(510.0, cum, 46), (expected, remembered), "{case}");
    }
}

/// Lengths as Linux's are on a wire: a SYN 60 bytes, an ACK 52, with one SACK block 64, with three
/// 80; without time stamps 52, 40, 52 and 68 (`tcp_syn_options`, `tcp_established_options`).
#[test]
fn a_packet_is_as_long_as_its_options_make_it() {
    let syn = |seq| Segment {
        syn: true,
        ..data(seq)
    };
    let answer = Ack {
        syn: true,
        ..ack(0, 0.0)
    };
    let lengths = |cfg: &SenderConfig| {
        let l = cfg.lengths();
        let segments = [syn(0), syn(1), data(0)].map(|s| l.segment(&s));
        let acks = [answer, ack(9, 0.0), sack(9, &[(11, 12)])].map(|a| l.ack(&a));
        let most = l.ack(&sack(9, &[(11, 12), (14, 15), (17, 18)]));
        (segments, acks, most)
    };
    let linux = SenderConfig::preset(Preset::Linux, 1500);
    assert_eq!(lengths(&linux), ([60, 52, 1500], [60, 52, 64], 80));
    let plain = linux
        .clone()
        .with(|c| (c.timestamps, c.header) = (false, 40));
    assert_eq!(lengths(&plain), ([52, 40, 1488], [52, 40, 52], 68));
    let four = sack(9, &[(11, 12), (14, 15), (17, 18), (20, 21)]);
    assert_eq!(plain.lengths().ack(&four), 76);
    // A duplicate is reported in a block as well.
    let duplicate = Ack {
        dsack: true,
        ..sack(9, &[(5, 6), (11, 12)])
    };
    assert_eq!(linux.lengths().ack(&duplicate), 72);
    let bare = plain
        .clone()
        .with(|c| c.recovery.detector = Detector::NewReno);
    assert_eq!(lengths(&bare).0, [48, 40, 1488]);
    let modern = SenderConfig::preset(Preset::Y2026, 1500);
    assert_eq!(lengths(&modern), ([52, 52, 1500], [52, 52, 52], 52));
}

/// `tcp_sack_new_ofo_skb`: what arrives joins the four blocks reported last. Segment 5 has fallen
/// out of them when 6 comes, and a duplicate above a hole counts as new. RFC 2018 section 4 reports
/// all that was received around it.
#[test]
fn a_block_is_what_was_reported_last() {
    let blocks = |whole: bool| {
        let preset = ReceiverConfig::preset(Preset::Linux);
        let mut r = Receiver::new(preset.with(|c| {
            c.acks.compression = None;
            c.sack.whole = whole;
        }));
        let mut first = |seq| {
            let ack = r.handle_segment(at_us(1000 * seq), &data(seq)).unwrap();
            let all: Vec<_> = ack.sacks.iter().map(|b| (b.start, b.end)).collect();
            (all[0], all.get(usize::from(ack.dsack)).copied())
        };
        for seq in [5, 7, 9, 11, 13] {
            first(seq);
        }
        [first(6), first(11)]
    };
    let newest = |block| (block, Some(block));
    assert_eq!(blocks(false), [newest((6, 8)), newest((11, 12))]);
    assert_eq!(blocks(true), [newest((5, 8)), ((11, 12), Some((5, 8)))]);
}

/// What has been acknowledged takes none of the four places (`tcp_sack_remove`): 5 is remembered
/// when 6 comes, though 3 was reported after it and 11 later still.
#[test]
fn an_acknowledged_block_frees_its_place() {
    let preset = ReceiverConfig::preset(Preset::Linux);
    let mut r = Receiver::new(preset.with(|c| c.acks.compression = None));
    for seq in [0, 1, 5, 7, 9, 3, 2, 11] {
        r.handle_segment(at_us(1000), &data(seq));
    }
    let ack = r.handle_segment(at_us(2000), &data(6)).unwrap();
    let first = ack.sacks.iter().next().map(|b| (b.start, b.end));
    assert_eq!((ack.cum, first), (4, Some((5, 8))));
}

/// A duplicate above a hole makes no ACK quick and waits with what is merged
/// (`tcp_data_queue_ofo`); one below is answered at once (`tcp_enter_quickack_mode`).
#[test]
fn a_duplicate_above_a_hole_waits() {
    let told = |a: &Ack| {
        let blocks: Vec<_> = a.sacks.iter().map(|b| (b.start, b.end)).collect();
        (a.dsack, blocks)
    };
    let mut r = receiver(1);
    for seq in [0, 1, 2, 4, 5, 6, 7] {
        r.handle_segment(at_us(1000), &data(seq));
    }
    assert_eq!(r.handle_segment(at_us(1100), &data(5)), None);
    assert_eq!(r.handle_segment(at_us(1200), &data(8)), None);
    let merged = r.handle_timeout(r.next_timeout()).unwrap();
    assert_eq!(told(&merged), (true, vec![(5, 6), (4, 9)]));
    // Each duplicate is reported once (RFC 2883 section 4).
    assert_eq!(r.handle_segment(at_us(4000), &data(9)), None);
    let merged = r.handle_timeout(r.next_timeout()).unwrap();
    assert_eq!(told(&merged), (false, vec![(4, 10)]));
    let below = r.handle_segment(at_us(6000), &data(1)).unwrap();
    assert_eq!(told(&below), (true, vec![(1, 2), (4, 10)]));
}

/// Duplicates of the segment just below what was last acknowledged and of the next one, which has
/// come and is not acknowledged yet, are within the window, and their stamp is echoed from then on;
/// that of an older segment is not (`tcp_sequence`, `tcp_replace_ts_recent`).
#[test]
fn the_last_acknowledged_segment_brings_its_stamp_again() {
    for (seq, echo) in [(3, 9000), (2, 9000), (1, 1003)] {
        let mut r = receiver(3);
        for seq in 0..4 {
            let answered = r.handle_segment(at_us(1000), &data(seq)).is_some();
            assert_eq!(answered, seq < 3);
        }
        let again = host::data(seq, Time::from_nanos(9000));
        let ack = r.handle_segment(at_us(2000), &again).unwrap();
        assert_eq!(ack.echo, Time::from_nanos(echo), "{seq}");
    }
}

/// A DSACK of a segment that is SACKed and was resent shows reordering (`tcp_sacktag_one`): the
/// first transmission was late. RACK then waits for a quarter of the RTT where it waited not at
/// all, and the next hole is not resent with the first SACK above it.
#[test]
fn a_duplicate_of_what_is_sacked_shows_reordering() {
    let resent = |duplicate: bool| {
        let cfg = linux().with(|c| {
            c.recovery.tlp = false;
            c.recovery.undo = false;
            c.recovery.reduction = reduction(false);
        });
        let mut keeps = Halver::new(30.0);
        keeps.hold = true;
        let mut h = Host::with(cfg, keeps);
        h.ack_at(100.0, &sack(0, &[(1, 3), (4, 12)]));
        h.ack_at(150.0, &sack(0, &[(1, 12)]));
        if duplicate {
            let again = Ack {
                dsack: true,
                ..sack(0, &[(3, 4), (1, 12)])
            };
            h.ack_at(199.0, &again);
        }
        h.ack_at(200.0, &sack(0, &[(1, 12), (13, 14)]))
            .contains(&R(12))
    };
    assert_eq!((resent(true), resent(false)), (false, true));
}

/// A duplicate in the third of the blocks reported last moves that one to the front, so that what
/// is merged goes out before it (`tcp_sack_new_ofo_skb`), and tells it; in the first it waits.
#[test]
fn a_duplicate_in_an_old_block_sends_what_is_merged() {
    for (again, told) in [(3, true), (7, false)] {
        let mut r = receiver(0);
        for seq in [0, 1, 3, 5, 7, 8] {
            r.handle_segment(at_us(1000), &data(seq));
        }
        let ack = r.handle_segment(at_us(1100), &data(again));
        let blocks = ack.map(|a| a.sacks.iter().map(|b| b.start).collect::<Vec<_>>());
        assert_eq!(blocks, told.then(|| vec![3, 7, 5]));
    }
}
