//! Flow control: a receiver whose host has little room, and a sender before a closed window (RFC
//! 9293 sections 3.8.6.1 and 3.8.6.2).

use fullpipe_flow::{Ack, Preset, Receiver, ReceiverConfig, SenderConfig};
use fullpipe_units::Time;

use crate::host::{Halver, Host, Out, ack, dsack, modern, ms, sack, span_ms};

fn bounded(cum: u64, echo_ms: f64, window_end: u64) -> Ack {
    Ack {
        window_end,
        ..ack(cum, echo_ms)
    }
}

fn receiver(room: u64) -> Receiver {
    let mut receiver = Receiver::new(ReceiverConfig::preset(Preset::Y2026));
    receiver.set_room(room);
    receiver
}

/// A sender whose window of ten segments has closed after all of them were acknowledged at 100 ms.
fn closed(cfg: SenderConfig) -> Host<Halver> {
    let mut h = Host::new(cfg, 10.0);
    assert_eq!(h.log.len(), 10);
    assert_eq!(h.ack_at(100.0, &bounded(10, 0.0, 10)), []);
    h
}

#[test]
fn the_window_ends_with_the_room_and_never_moves_back() {
    let h = Host::new(modern(), 8.0);
    let mut r = receiver(6);
    let segments: Vec<_> = h.log.iter().map(|(_, s)| *s).collect();
    // A hole: what lies above it takes room all the same.
    for (left, i) in (0..6).rev().zip([0, 1, 2, 4, 5]) {
        r.handle_segment(ms(1.0), &segments[i]);
        r.set_room(left);
        assert_eq!(r.window_end(), 6);
    }
    r.set_room(0);
    assert_eq!(r.window_end(), 6, "promised is promised");
    let ack = r.handle_segment(ms(2.0), &segments[3]).unwrap();
    assert_eq!((ack.cum, ack.window_end), (6, 6));
    r.set_room(3);
    assert_eq!(r.window_end(), 9);
}

#[test]
fn an_update_is_sent_once_and_only_if_it_says_something() {
    let mut h = Host::new(modern(), 8.0);
    h.poll();
    let mut r = receiver(8);
    for (_, s) in &h.log {
        r.handle_segment(ms(1.0), s);
    }
    assert_eq!(r.window_known(), 0);
    assert_eq!(r.update_window(ms(2.0), 4), None, "no room");
    r.set_room(3);
    assert_eq!(r.update_window(ms(2.0), 4), None, "too little");
    r.set_room(4);
    let ack = r.update_window(ms(2.0), 4).unwrap();
    assert_eq!((ack.cum, ack.window_end), (8, 12));
    assert_eq!(r.update_window(ms(3.0), 4), None, "told");
    r.set_room(7);
    assert_eq!(r.update_window(ms(3.0), 2), None, "it knows of more");
    r.set_room(8);
    assert_eq!(r.update_window(ms(3.0), 2).unwrap().window_end, 16);
}

#[test]
fn without_a_bound_nothing_is_updated() {
    let mut r = Receiver::new(ReceiverConfig::preset(Preset::Y2026));
    assert_eq!(r.window_end(), u64::MAX);
    let h = Host::new(modern(), 1.0);
    r.handle_segment(ms(1.0), &h.log[0].1);
    r.handle_timeout(r.next_timeout());
    assert_eq!(r.update_window(ms(100.0), 1), None);
}

/// The update is lost: the sender asks after its RTO, then after twice that, and hears of the
/// window at last.
#[test]
fn a_closed_window_is_probed_with_back_off() {
    let mut h = closed(modern());
    let rto = h.s.rtt().rto().as_secs_f64() * 1e3;
    let out = h.wait(100.0 + 8.0 * rto);
    let ask = |after: f64| (100.0 + after * rto, Out::R(9));
    assert_eq!(out, [ask(1.0), ask(3.0), ask(7.0)]);
    let counts = *h.s.counts();
    assert_eq!((counts.window_probes, counts.sent), (3, 13));
    assert_eq!((counts.retransmits, counts.timeouts), (0, 0));
    // Still closed; what answers a question is no sign of anything.
    let closed = Ack {
        window_end: 10,
        ..dsack(10, 9)
    };
    assert_eq!(h.ack(&closed), []);
    let open = Ack {
        window_end: 12,
        ..dsack(10, 9)
    };
    assert_eq!(h.ack(&open), [Out::N(10), Out::N(11)]);
    assert_eq!(h.s.cwnd(), 10.0);
    assert!(h.s.controller().congestions.is_empty() && h.s.controller().rtos.is_empty());
}

/// RFC 9293 section 3.8.6.1 lets the pauses grow exponentially; the bound is that of the
/// retransmission timer.
#[test]
fn questions_are_no_further_apart_than_the_longest_timeout() {
    let mut cfg = modern();
    cfg.rto.max = span_ms(1_000);
    let mut h = closed(cfg);
    let asked: Vec<f64> = h.wait(20_000.0).iter().map(|(at, _)| *at).collect();
    assert!(asked.len() > 15, "{asked:?}");
    let last = &asked[asked.len() - 3..];
    assert_eq!([last[1] - last[0], last[2] - last[1]], [1_000.0; 2]);
}

#[test]
fn nothing_is_asked_without_data_or_with_data_on_its_way() {
    let all_sent = modern().with(|c| c.transfer = Some(10));
    let h = closed(all_sent);
    assert!(h.s.is_done());
    assert_eq!(h.s.next_timeout(), Time::MAX);
    let mut h = closed(modern());
    h.s.stop();
    assert_eq!(h.wait(60_000.0), []);
    assert!(h.s.is_done());
    // One is missing: that is a matter of the retransmission timer.
    let mut h = Host::new(modern(), 10.0);
    h.ack_at(100.0, &bounded(9, 0.0, 10));
    assert_eq!(h.s.flight(), 1);
    h.wait(1_000.0);
    assert_eq!(h.s.counts().window_probes, 0);
}

/// Of two ACKs for the same number the smaller window is the older one.
#[test]
fn an_overtaken_ack_does_not_close_the_window() {
    let mut h = closed(modern());
    h.deliver(&bounded(10, 0.0, 15));
    h.deliver(&bounded(10, 0.0, 10));
    let new: Vec<_> = (10..15).map(Out::N).collect();
    assert_eq!(h.poll(), new);
}

#[test]
fn a_refused_probe_is_sent_later() {
    let mut h = closed(modern());
    h.now = h.s.next_timeout();
    h.s.handle_timeout(h.now);
    let probe = h.s.poll_transmit(h.now).unwrap();
    h.s.refuse(h.now, &probe);
    assert_eq!((h.s.counts().sent, h.s.counts().window_probes), (10, 0));
    h.s.resume();
    let out = h.wait(60_000.0);
    assert_eq!(out[0].1, Out::R(9));
    assert_eq!(h.s.counts().local_stalls, 1);
}

/// The real receiver, whose reader takes a segment every 10 ms; every window update is lost.
#[test]
fn a_transfer_ends_although_no_update_arrives() {
    let cfg = modern().with(|c| c.transfer = Some(60));
    // Its window is wider than the room after the first round.
    let mut h = Host::new(cfg, 8.0);
    let mut r = receiver(8);
    let (mut seen, mut waiting, mut at) = (0, 0u64, 0.0);
    let mut updates = 0;
    while !h.s.is_done() && at < 120_000.0 {
        at += 10.0;
        waiting = waiting.saturating_sub(1);
        h.wait(at);
        while seen < h.log.len() {
            let (_, segment) = h.log[seen];
            seen += 1;
            let room = 8 - waiting;
            r.set_room(room);
            assert!(segment.seq < r.window_end(), "{segment:?}: not admitted");
            let before = r.counts().delivered;
            let ack = r.handle_segment(h.now, &segment);
            waiting += r.counts().delivered - before;
            if let Some(ack) = ack {
                h.ack(&ack);
            }
        }
        if r.next_timeout() <= h.now
            && let Some(ack) = r.handle_timeout(h.now)
        {
            h.ack(&ack);
        }
        r.set_room(8 - waiting);
        updates += u32::from(r.update_window(h.now, 4).is_some());
    }
    assert!(h.s.is_done(), "{} of 60", r.next_expected());
    assert!(h.s.counts().window_probes > 0 && updates > 0);
    assert_eq!(h.s.counts().retransmits, 0);
    assert_eq!(h.s.counts().timeouts, 0);
}

/// The answer to a question reports a duplicate, which no retransmission of the recovery before has
/// caused.
#[test]
fn an_answered_question_undoes_no_reduction() {
    let mut h = Host::new(modern(), 10.0);
    let mut loss = sack(5, &[(6, 10)]);
    loss.window_end = 10;
    h.wait(100.0);
    assert_eq!(h.ack(&loss), [Out::R(5)]);
    h.wait(200.0);
    h.ack(&bounded(10, 1e9, 10));
    let reduced = h.s.cwnd();
    assert_eq!(h.s.controller().congestions.len(), 1);
    let out = h.wait(2_000.0);
    assert_eq!(out[0].1, Out::R(9));
    let answer = Ack {
        window_end: 10,
        ..dsack(10, 9)
    };
    h.ack(&answer);
    assert_eq!((h.s.controller().undos, h.s.cwnd()), (0, reduced));
}

/// The tail was lost and its probe has repaired that; what only opens the window then is no
/// duplicate ACK, which would say that the probe was needless (RFC 8985 section 7.4.2, RFC 5681
/// section 2).
#[test]
fn a_window_update_does_not_hide_a_loss_that_a_probe_repaired() {
    for update in [false, true] {
        let mut h = Host::new(modern(), 10.0);
        h.ack_at(100.0, &bounded(9, 0.0, 10));
        let out = h.wait(h.s.next_timeout().as_secs_f64() * 1e3);
        assert_eq!(out.len(), 1, "{out:?}");
        assert_eq!((out[0].1, h.s.counts().probes), (Out::R(9), 1));
        // The echo is that of the probe.
        let echo = out[0].0;
        match update {
            true => {
                h.ack(&bounded(10, echo, 10));
                h.ack(&bounded(10, echo, 20));
            }
            false => {
                h.ack(&bounded(10, echo, 20));
            }
        }
        let now = h.now.as_secs_f64() * 1e3;
        h.ack_at(now + 90.0, &bounded(12, now, 20));
        assert_eq!(h.s.controller().congestions.len(), 1, "update {update}");
    }
}

/// An application that writes after the window has closed asks for it all the same: the update that
/// opens the window may be lost.
#[test]
fn a_write_before_a_closed_window_asks_for_it() {
    let mut h = closed(modern().with(|c| c.transfer = Some(10)));
    assert_eq!(h.s.next_timeout(), Time::MAX);
    h.s.write_until(20);
    assert_eq!(h.poll(), []);
    assert!(h.s.next_timeout() < Time::MAX);
}
