//! The opening: SYN, its copies and losses, and the peer's window.

use fullpipe_flow::{Ack, Preset, Receiver, ReceiverConfig, Segment, SenderConfig};

use crate::host::Out::{self, N, Syn};
use crate::host::{Host, ack, data, ms, span_ms, syn_ack};

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

/// Linux acknowledges the SYN/ACK before it sends data, also when the host's queue refuses that at
/// first; the receiver does not answer.
#[test]
fn the_third_packet_leaves_before_the_data() {
    let cfg = SenderConfig::preset(Preset::Linux, 1500);
    let mut h = Host::new(cfg, 10.0);
    h.wait(80.0);
    h.deliver(&syn_ack(u64::MAX));
    let third = h.s.poll_transmit(ms(80.0)).unwrap();
    assert!(third.ends_handshake() && !third.retransmission);
    h.s.refuse(ms(80.0), &third);
    assert_eq!(h.s.poll_transmit(ms(80.0)), None);
    h.s.resume();
    let out = h.poll();
    let data = (0..10).map(N).collect::<Vec<_>>();
    assert_eq!((out[0], &out[1..]), (Syn, &data[..]));
    assert_eq!(h.s.counts().sent, 10, "it is no data");
    let mut r = Receiver::new(ReceiverConfig::preset(Preset::Linux));
    assert_eq!(r.handle_segment(ms(120.0), &third), None);
    assert_eq!(r.counts().acks, 0);
}

/// RFC 6298 section 5.7, RFC 5681 section 3.1: after a lost SYN one segment and a timeout of three
/// seconds; no sample.
#[test]
fn a_lost_syn_means_one_segment_and_three_seconds() {
    let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| c.recovery.tlp = false);
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

/// Linux `tcp_init_transfer`: one SYN sent again costs nothing, and the stamp gives a sample; two
/// cost the window unless the first one is what was answered (`tcp_try_undo_spurious_syn`).
#[test]
fn linux_forgives_one_lost_syn_and_a_late_answer() {
    let cfg = SenderConfig::preset(Preset::Linux, 1500);
    let answered = |at: f64, echo: f64| {
        let mut h = Host::new(cfg.clone(), 10.0);
        h.wait(at - 1.0);
        let echo = ms(echo);
        h.ack_at(
            at,
            &Ack {
                echo,
                ..syn_ack(u64::MAX)
            },
        );
        (h.s.cwnd(), h.s.rtt().srtt())
    };
    // SYNs leave at 0, about 1 and 3 s.
    assert_eq!(answered(1500.0, 0.0), (10.0, span_ms(1500)));
    assert_eq!(answered(1500.0, 1008.0), (10.0, span_ms(492)));
    assert_eq!(answered(3200.0, 0.0), (10.0, span_ms(3200)));
    assert_eq!(answered(3200.0, 3010.0), (1.0, span_ms(190)));
    let without = cfg.with(|c| c.timestamps = false);
    let mut h = Host::new(without, 10.0);
    h.wait(3199.0);
    h.ack_at(3200.0, &syn_ack(u64::MAX));
    assert_eq!((h.s.cwnd(), h.s.rtt().samples()), (1.0, 0));
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

/// A late copy of the SYN neither acknowledges nor disturbs what is pending.
#[test]
fn a_late_syn_leaves_the_delayed_ack_alone() {
    let mut r = Receiver::new(ReceiverConfig::preset(Preset::Y2026));
    let segment = |seq, syn, stamp| Segment {
        syn,
        ..data(seq, ms(stamp))
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
