//! Preset `linux` with segments that arrive late: what the receiver discards, how long RACK waits,
//! and when the window grows on SACKs (`net/ipv4/tcp_recovery.c`, `tcp_input.c` of Linux 6.1).

use fullpipe_flow::{
    Preset, Receiver, ReceiverConfig, Segment, SenderConfig, SpuriousRule, TimerGrain,
};

use crate::host::{self, Host, ack, ms, sack, sack_echo};

/// The preset without its handshake, with exact timers so that times can be told by hand.
fn linux(by: SpuriousRule) -> SenderConfig {
    SenderConfig::preset(Preset::Linux, 1500).with(|c| {
        c.handshake = false;
        c.timers.grain = TimerGrain::Exact;
        c.recovery.reordering_by = by;
    })
}

/// Segment `seq`, sent at `stamp` ms.
fn data(seq: u64, stamp: f64) -> Segment {
    host::data(seq, ms(stamp))
}

/// A window of 20 leaves at 0 ms. At 100 ms an ACK reports 5 and 6, at 101 ms all below 7 have
/// arrived: they were overtaken by seven segments, and nothing was resent.
fn reordered(by: SpuriousRule) -> Host {
    let mut h = Host::new(linux(by), 20.0);
    h.ack_at(100.0, &sack(0, &[(5, 7)]));
    h.ack_at(101.0, &ack(7, 0.0));
    assert_eq!(h.s.counts().retransmits, 0);
    h
}

/// The retransmission of 2 left at 60 ms and fills the hole: ts_recent is 60. Segment 5 left before
/// it and arrives after it. Stamps of one tick less are still good (`TCP_PAWS_WINDOW`).
#[test]
fn a_late_original_behind_a_retransmission_is_discarded() {
    let arrive = |paws: bool, late: f64| {
        let preset = ReceiverConfig::preset(Preset::Linux);
        let mut r = Receiver::new(preset.with(|c| c.paws = paws));
        let mut last = None;
        let stamps = [
            (0, 0.0),
            (1, 0.0),
            (3, 10.0),
            (4, 10.0),
            (2, 60.0),
            (5, late),
        ];
        for (i, (seq, stamp)) in stamps.into_iter().enumerate() {
            let now = ms(100.0 + i as f64);
            last = r.handle_segment(now, &data(seq, stamp)).or(last);
        }
        let counts = r.counts();
        assert_eq!(counts.delivered + counts.discarded, counts.arrived);
        (last.unwrap().cum, counts.discarded)
    };
    assert_eq!(arrive(true, 58.9), (5, 1));
    assert_eq!(arrive(true, 59.0), (6, 0));
    assert_eq!(arrive(false, 58.9), (6, 0));
}

/// `tcp_rack_advance`: the round trip is that of the segment which is processed last, and of an ACK
/// that acknowledges and SACKs at once that is the highest one acknowledged: 161.5 ms old here, so
/// that 20, 81.5 ms old, is no loss yet. By RFC 8985 it is that of the newest: 80.5 ms.
#[test]
fn rack_takes_the_round_trip_of_what_is_processed_last() {
    for (by, resent) in [(SpuriousRule::Linux, false), (SpuriousRule::Rfc, true)] {
        let mut h = Host::new(linux(by), 20.0);
        h.ack_at(80.0, &ack(1, 0.0));
        h.ack_at(81.0, &ack(5, 0.0));
        h.ack_at(161.5, &sack(20, &[(21, 25)]));
        assert_eq!(h.s.counts().retransmits > 0, resent, "{by:?}");
        // The same behind a hole that was resent meanwhile.
        let mut h = Host::new(linux(by), 20.0);
        h.ack_at(80.0, &ack(1, 0.0));
        h.ack_at(81.0, &ack(5, 0.0));
        h.ack_at(81.5, &sack(5, &[(6, 7)]));
        h.ack_at(161.5, &sack(20, &[(21, 25)]));
        let again = h.log.iter().any(|l| l.1.retransmission && l.1.seq == 20);
        assert_eq!(again, resent, "marked, {by:?}");
    }
}

/// `tcp_sacktag_one` asks no time stamp: an ACK that advances by one retransmission and SACKs a
/// later one echoes the stamp of the first, and proves the second all the same, so that the
/// retransmission between them is lost. By RFC 8985 section 6.2 it may be an original.
#[test]
fn a_stamp_says_nothing_of_what_is_sacked() {
    for (by, again) in [(SpuriousRule::Linux, 2), (SpuriousRule::Rfc, 1)] {
        let mut h = Host::new(linux(by), 20.0);
        h.ack_at(100.0, &sack(0, &[(10, 14)]));
        for (at, end) in [(101.0, 16), (102.0, 18)] {
            h.ack_at(at, &sack(0, &[(10, end)]));
        }
        let left = |h: &Host, seq| {
            let all = h.log.iter().filter(|(_, s)| s.retransmission);
            all.filter(|(_, s)| s.seq == seq).count()
        };
        // 0 was resent at 100 ms, 4 at 101, 6 at 102.
        assert_eq!([0, 4, 6].map(|seq| left(&h, seq)), [1, 1, 1]);
        h.ack_at(204.0, &sack_echo(1, &[(6, 7), (10, 18)], 100.0));
        h.wait(210.0);
        assert_eq!(left(&h, 4), again, "{by:?}");
    }
}

/// RFC 7323 section 4.3: a stamp older than the one of an earlier arrival is not echoed.
#[test]
fn the_echo_never_goes_back() {
    let preset = ReceiverConfig::preset(Preset::Linux);
    let mut r = Receiver::new(preset);
    let echoes = [(0, 10.0), (1, 9.0), (2, 11.0)].map(|(seq, stamp)| {
        let ack = r.handle_segment(ms(50.0 + seq as f64), &data(seq, stamp));
        ack.unwrap().echo
    });
    assert_eq!(echoes, [ms(10.0), ms(10.0), ms(11.0)]);
}

/// On the wire stamps are 32 bits of microseconds: after 71.6 minutes they begin anew, and are
/// neither stale nor older.
#[test]
fn stamps_that_begin_anew_are_taken() {
    let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux));
    let last = 4_294_967.0; // ms
    let echoes = [(0, last), (1, 1.0), (2, 2.0)].map(|(seq, stamp)| {
        let ack = r.handle_segment(ms(last + 10.0 + seq as f64), &data(seq, stamp));
        ack.unwrap().echo
    });
    assert_eq!(echoes, [ms(last), ms(1.0), ms(2.0)]);
    assert_eq!(r.counts().discarded, 0);
}

/// `tcp_may_raise_cwnd`: seven segments are more than `tcp_reordering`, three.
#[test]
fn the_window_may_grow_on_sacks_once_reordering_is_high() {
    for (by, grows) in [(SpuriousRule::Linux, true), (SpuriousRule::Rfc, false)] {
        let mut h = reordered(by);
        h.ack_at(102.0, &sack(7, &[(8, 9)]));
        let event = h.s.controller().last.unwrap();
        assert_eq!((event.sacked, event.grows_out_of_order), (1, grows));
    }
    let mut h = Host::new(linux(SpuriousRule::Linux), 20.0);
    h.ack_at(100.0, &sack(0, &[(1, 3)]));
    h.ack_at(101.0, &ack(3, 0.0));
    h.ack_at(102.0, &sack(3, &[(4, 5)]));
    assert!(!h.s.controller().last.unwrap().grows_out_of_order);
}

/// 20 and 21 left at 100 ms, 22 and 23 at 101 ms. When 23 arrives after 100 ms they are late, and
/// may be by min RTT / 4: the first until 225 ms, the last until 226 ms (RFC 8985 section 6.2 step
/// 5, `tcp_rack_detect_loss`: the longest wait).
#[test]
fn the_reordering_timer_waits_for_the_last_suspect() {
    for by in [SpuriousRule::Linux, SpuriousRule::Rfc] {
        let mut h = reordered(by);
        h.ack_at(150.0, &ack(20, 0.0));
        h.ack_at(201.0, &sack(20, &[(23, 24)]));
        assert_eq!(h.s.next_timeout(), ms(226.0), "{by:?}");
    }
}

/// A duplicate that a retransmission explains counts as delivered (`tcp_dsack_seen`); one more does
/// not.
#[test]
fn a_duplicate_counts_as_delivered() {
    for (by, counted) in [(SpuriousRule::Linux, 1), (SpuriousRule::Rfc, 0)] {
        let mut h = Host::new(linux(by), 20.0);
        for n in 1..=3 {
            h.ack_at(100.0 + n as f64, &sack(0, &[(1, 1 + n)]));
        }
        assert_eq!(h.s.counts().retransmits, 1);
        h.ack_at(110.0, &ack(4, 0.0));
        let mut seen = Vec::new();
        for at in [210.0, 211.0] {
            h.ack_at(at, &crate::host::dsack(4, 0));
            seen.push(h.s.controller().last.unwrap().duplicates);
        }
        assert_eq!(seen, [counted, 0], "{by:?}");
    }
}
