use super::*;
use crate::config::Preset;
use fullpipe_units::Span;

fn data(seq: u64) -> Segment {
    let stamp = Time::from_nanos(1000 + seq);
    Segment {
        seq,
        syn: false,
        retransmission: false,
        stamp,
        ect: false,
        ce: false,
        cwr: false,
        push: false,
    }
}

fn receiver() -> Receiver {
    Receiver::new(ReceiverConfig::preset(Preset::Y2026))
}

fn blocks(ack: &Ack) -> Vec<(u64, u64)> {
    ack.sacks.iter().map(|r| (r.start, r.end)).collect()
}

#[test]
fn every_second_segment_is_acknowledged_with_the_first_stamp() {
    let mut r = receiver();
    assert_eq!(r.handle_segment(Time::ZERO, &data(0)), None);
    let ack = r.handle_segment(Time::ZERO, &data(1)).unwrap();
    assert_eq!((ack.cum, ack.echo), (2, Time::from_nanos(1000)));
}

/// A reader says that a window of two segments is free again when one has come; of three when
/// two have, which are acknowledged anyway.
#[test]
fn a_window_that_would_double_is_said_at_once() {
    let acked = |preset, window| {
        let cfg = ReceiverConfig::preset(preset).with(|c| c.window.max = Some(window));
        let mut r = Receiver::new(cfg);
        // The quick ACKs of the start are over.
        for seq in 0..20 {
            r.handle_segment(Time::ZERO, &data(seq));
        }
        r.handle_timeout(r.next_timeout());
        r.handle_segment(Time::ZERO, &data(20)).is_some()
    };
    assert!(acked(Preset::Linux, 1) && acked(Preset::Linux, 2));
    assert!(!acked(Preset::Linux, 3) && !acked(Preset::Y2026, 2));
}

/// Linux 6.1, window of four segments: the first two are acknowledged at once, of eight four;
/// the next one waits.
#[test]
fn a_small_window_has_fewer_quick_acks() {
    let quick = |window| {
        let cfg = ReceiverConfig::preset(Preset::Linux).with(|c| {
            c.window.max = Some(window);
        });
        let mut r = Receiver::new(cfg);
        let acked = |seq: &u64| r.handle_segment(Time::ZERO, &data(*seq)).is_some();
        (0..40).take_while(acked).count()
    };
    assert_eq!([3, 4, 8, 12, 32].map(quick), [1, 2, 4, 6, 16]);
}

#[test]
fn the_timer_acknowledges_a_lone_segment() {
    let mut r = receiver();
    r.handle_segment(Time::ZERO, &data(0));
    let due = r.next_timeout();
    assert_eq!(due, Time::ZERO + Span::from_millis(40));
    assert_eq!(r.handle_timeout(due).unwrap().cum, 1);
    assert_eq!(r.next_timeout(), Time::MAX);
}

/// RFC 2018 section 4: the block with the newest segment first, then the most recently reported
/// ones.
#[test]
fn the_most_recent_block_comes_first() {
    let mut r = receiver();
    for seq in [0, 1] {
        r.handle_segment(Time::ZERO, &data(seq));
    }
    r.handle_segment(Time::ZERO, &data(3));
    r.handle_segment(Time::ZERO, &data(5));
    let ack = r.handle_segment(Time::ZERO, &data(7)).unwrap();
    assert_eq!(blocks(&ack), [(7, 8), (5, 6), (3, 4)]);
    let ack = r.handle_segment(Time::ZERO, &data(4)).unwrap();
    assert_eq!(blocks(&ack), [(3, 6), (7, 8)]);
    let ack = r.handle_segment(Time::ZERO, &data(9)).unwrap();
    assert_eq!(blocks(&ack), [(9, 10), (3, 6), (7, 8)]);
    let ack = r.handle_segment(Time::ZERO, &data(2)).unwrap();
    assert_eq!((ack.cum, blocks(&ack)), (6, vec![(9, 10), (7, 8)]));
    assert_eq!(r.counts().out_of_order, 2);
}

#[test]
fn a_duplicate_is_reported_as_dsack() {
    let mut r = receiver();
    for seq in [0, 1] {
        r.handle_segment(Time::ZERO, &data(seq));
    }
    let ack = r.handle_segment(Time::ZERO, &data(0)).unwrap();
    assert!(ack.dsack);
    assert_eq!(blocks(&ack), [(0, 1)]);
    assert_eq!(r.counts().duplicates, 1);
    // Above a hole, too: neither is late, they are there already.
    r.handle_segment(Time::ZERO, &data(5));
    r.handle_segment(Time::ZERO, &data(3));
    for seq in [3, 5, 1] {
        r.handle_segment(Time::ZERO, &data(seq));
    }
    let counts = r.counts();
    assert_eq!((counts.duplicates, counts.out_of_order), (4, 1));
}

#[test]
fn ece_is_echoed_until_cwr() {
    let mut r = receiver();
    let mut marked = data(0);
    marked.ce = true;
    r.handle_segment(Time::ZERO, &marked);
    assert!(r.handle_segment(Time::ZERO, &data(1)).unwrap().ece);
    let mut cwr = data(2);
    cwr.cwr = true;
    r.handle_segment(Time::ZERO, &cwr);
    assert!(!r.handle_segment(Time::ZERO, &data(3)).unwrap().ece);
}

/// Numbers and echoes of the ACKs for segments that come one after the other; `c`: marked, `.`:
/// not, `r`: no longer ECN-capable, `w`: says that the window was reduced.
fn echoes(cfg: ReceiverConfig, segments: &str) -> Vec<(u64, bool)> {
    let mut r = Receiver::new(cfg);
    let mut acks = Vec::new();
    for (seq, sign) in segments.chars().enumerate() {
        let mut segment = data(seq as u64);
        segment.ect = sign != 'r';
        segment.ce = sign == 'c';
        segment.cwr = sign == 'w';
        let now = Time::from_nanos(1000 * seq as u64);
        acks.extend(r.ack_before(now, &segment));
        acks.extend(r.handle_segment(now, &segment));
    }
    acks.iter().map(|ack| (ack.cum, ack.ece)).collect()
}

/// RFC 8257 section 3.2: what waits is acknowledged before a change, with the mark that it had.
#[test]
fn each_change_of_the_marks_is_echoed_exactly() {
    let cfg = || ReceiverConfig::preset(Preset::Y2026).with(|c| c.ce_echo = CeEcho::EachChange);
    let acks = echoes(cfg(), "...ccc..cc");
    let expected = [
        (2, false),
        (3, false),
        (5, true),
        (6, true),
        (8, false),
        (10, true),
    ];
    assert_eq!(acks, expected);
    // What the sender says of its window is no mark.
    assert_eq!(echoes(cfg(), "cwcc"), [(1, true), (2, false), (4, true)]);
    let classic = ReceiverConfig::preset(Preset::Y2026);
    assert_eq!(
        echoes(classic, "...ccc"),
        [(2, false), (4, true), (6, true)]
    );
    let deaf = cfg().with(|c| c.ecn = false);
    assert_eq!(echoes(deaf, "..cc"), [(2, false), (4, false)]);
}

/// Linux 6.1 acknowledges the first marked segment and the next at once, one that says that the
/// window was reduced, one that is not ECN-capable, and the first after a change where each is
/// echoed.
#[test]
fn linux_acknowledges_at_once_what_ecn_says() {
    let cfg = |echo| {
        ReceiverConfig::preset(Preset::Linux).with(|c| {
            c.acks.quick = 1;
            c.window.first = c.window.max;
            c.ce_echo = echo;
        })
    };
    // The one quick ACK of the start, and then every second segment.
    let classic = |segments| echoes(cfg(CeEcho::UntilCwr), segments);
    assert_eq!(classic("....."), [(1, false), (3, false), (5, false)]);
    let acks = classic("..cc..");
    assert_eq!(acks, [(1, false), (3, true), (4, true), (6, true)]);
    assert_eq!(classic(".w.."), [(1, false), (2, false), (4, false)]);
    assert_eq!(classic(".r.."), [(1, false), (2, false), (3, false)]);
    let exact = echoes(cfg(CeEcho::EachChange), "...ccccc");
    let expected = [(1, false), (3, false), (4, true), (6, true), (8, true)];
    assert_eq!(exact, expected);
}

/// Its answer to the first SYN was lost. A second connection would have another receiver.
#[test]
fn linux_echoes_the_first_syn_to_those_that_follow() {
    let echoed = |preset| {
        let mut r = Receiver::new(ReceiverConfig::preset(preset));
        [7, 1007].map(|ms| {
            let at = Time::ZERO + Span::from_millis(ms);
            let (syn, stamp) = (true, at);
            let segment = Segment {
                syn,
                stamp,
                ..data(0)
            };
            let later = at + Span::from_millis(40);
            let ack = r.handle_segment(later, &segment).unwrap();
            ack.echo.saturating_since(Time::ZERO).as_millis_f64()
        })
    };
    assert_eq!(echoed(Preset::Linux), [7.0, 7.0]);
    assert_eq!(echoed(Preset::Y2026), [7.0, 1007.0]);
}
