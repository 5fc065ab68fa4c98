//! What a capture at the hosts saw reproduces the counters, packet by packet.

use fullpipe_run::{
    ArrivalSpec, Arrivals, Buffer, CaptureEvent, CaptureRow, Loss, RunSpec, Session, SizeLaw,
};
use fullpipe_sim::run;
use fullpipe_units::{Span, Time};

use crate::build::{dumbbell, flow, ms};

fn spec() -> RunSpec {
    let mut a = flow("a", "reno");
    a.sender.handshake = true;
    a.drops.segments = vec![7];
    let mut b = flow("b", "cubic");
    b.receiver.acks.every = 2;
    b.start = Time::ZERO + ms(300);
    let mut spec = dumbbell(12.0, 40, Buffer::Packets(30), 10.0, vec![a, b]);
    spec.links[0].loss = Loss::Bernoulli { p: 0.01 };
    spec.arrivals = vec![ArrivalSpec {
        template: flow("mice", "reno"),
        arrivals: Arrivals::Poisson { per_second: 5.0 },
        sizes: SizeLaw::Fixed(5),
        session: Session::default(),
        seeded_by: None,
    }];
    spec.capture = true;
    spec
}

#[test]
fn rows_reproduce_the_counters() {
    let o = run(&spec()).unwrap();
    assert!(o.capture.is_sorted_by_key(|r| r.at));
    for (i, f) in o.flows.iter().enumerate() {
        let count = |is: &dyn Fn(&CaptureEvent) -> bool| {
            let rows = o.capture.iter().filter(|r| r.flow == i as u32);
            rows.filter(|r| is(&r.event)).count() as u64
        };
        let t = &f.totals;
        use CaptureEvent::*;
        assert_eq!(count(&|e| matches!(e, SegmentSent(s) if !s.syn)), t.sent);
        assert_eq!(
            count(&|e| matches!(e, SegmentSent(s) if s.retransmission)),
            t.retransmits
        );
        assert_eq!(
            count(&|e| matches!(e, SegmentDropped(s) if !s.syn)),
            t.dropped
        );
        assert!(t.dropped > 0);
        assert_eq!(
            count(&|e| matches!(e, SegmentReceived(s) if !s.syn)),
            t.arrived_measured
        );
        assert_eq!(count(&|e| matches!(e, AckReceived(_))), t.acks);
        let inside = count(&|e| matches!(e, AckSent(_)))
            - count(&|e| matches!(e, AckReceived(_) | AckDropped(_)));
        assert!(inside <= 60, "{inside}");
        let syns = u64::from(i == 0);
        assert_eq!(count(&|e| matches!(e, SegmentSent(s) if s.syn)), syns);
        assert_eq!(count(&|e| matches!(e, AckReceived(a) if a.syn)), syns);
    }
    assert!(o.capture.iter().all(|r| r.flow < 2), "no short flows");
}

/// On the idle path of the first round trip: the SYN, its answer, then segment 0 and its ACK, at
/// their exact times.
#[test]
fn rows_have_their_times() {
    let o = run(&spec()).unwrap();
    let rows: Vec<&CaptureRow> = o.capture.iter().filter(|r| r.flow == 0).collect();
    // 52 B or what the header is: its transmission, rounded down, at 12 Mbit/s.
    let syn = Span::from_nanos(u64::from(spec().flows[0].sender.header) * 8_000 / 12);
    let zero = Time::ZERO;
    let open = zero + ms(40) + syn;
    let first = |is: &dyn Fn(&CaptureEvent) -> bool| {
        rows.iter().find(|r| is(&r.event)).map(|r| r.at).unwrap()
    };
    use CaptureEvent::*;
    assert_eq!(first(&|e| matches!(e, SegmentSent(s) if s.syn)), zero);
    assert_eq!(
        first(&|e| matches!(e, SegmentReceived(s) if s.syn)),
        zero + ms(20) + syn
    );
    assert_eq!(
        first(&|e| matches!(e, AckSent(a) if a.syn)),
        zero + ms(20) + syn
    );
    assert_eq!(first(&|e| matches!(e, AckReceived(a) if a.syn)), open);
    assert_eq!(
        first(&|e| matches!(e, SegmentSent(s) if !s.syn && s.seq == 0)),
        open
    );
    assert_eq!(
        first(&|e| matches!(e, SegmentReceived(s) if !s.syn && s.seq == 0)),
        open + ms(21)
    );
    assert_eq!(
        first(&|e| matches!(e, AckReceived(a) if a.cum == 1)),
        open + ms(41)
    );
    assert_eq!(
        first(&|e| matches!(e, SegmentDropped(s) if s.seq == 7 && !s.retransmission)),
        open
    );
}

#[test]
fn a_capture_changes_nothing_and_is_empty_unless_asked_for() {
    let with = run(&spec()).unwrap();
    let without = run(&RunSpec {
        capture: false,
        ..spec()
    })
    .unwrap();
    assert!(without.capture.is_empty());
    assert_eq!(with.events, without.events);
    for (a, b) in with.flows.iter().zip(&without.flows) {
        assert_eq!(a.totals, b.totals);
    }
}
