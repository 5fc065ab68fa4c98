//! Where an exact loss happens, on the way into the path or at the receiver's host, and what the
//! answer to the loss of a slow start multiplies.

use fullpipe_cc::Base;
use fullpipe_run::{Buffer, Drops};
use fullpipe_sim::run;

use crate::build::{dumbbell, flow};

/// The same segment is lost once either way; at the receiver it has crossed the bottleneck before.
#[test]
fn a_loss_at_the_receiver_has_crossed_the_path() {
    let drops = Drops {
        segments: vec![400],
        ..Drops::default()
    };
    let mut on_path = flow("main", "reno");
    on_path.sender.transfer = Some(1000);
    let mut at_receiver = on_path.clone();
    on_path.drops = drops.clone();
    at_receiver.arrival_drops = drops;
    let delivered = |flow| {
        let outcome = run(&dumbbell(50.0, 40, Buffer::Packets(1000), 20.0, vec![flow])).unwrap();
        let totals = outcome.flows[0].totals;
        assert_eq!(
            (totals.dropped, totals.retransmits, totals.loss_events),
            (1, 1, 1)
        );
        assert_eq!((totals.sent, totals.delivered), (1001, 1000));
        outcome.links[0].delivered
    };
    assert_eq!(delivered(on_path), 1000);
    assert_eq!(delivered(at_receiver), 1001);
}

/// Ten packets per ms, 40 ms and a buffer of 400: the path holds 800, and slow start overflows it
/// when 800 are out. A round trip later, when that is found, the window has doubled. Reno goes on
/// with half of the one or of the other.
#[test]
fn a_slow_start_can_end_by_what_was_out_when_the_loss_was_sent() {
    let left = |base| {
        let mut main = flow("main", "reno");
        main.sender.window.decrease_base = base;
        let outcome = run(&dumbbell(120.0, 40, Buffer::Packets(400), 2.0, vec![main])).unwrap();
        outcome.flows[0].episodes[0].after
    };
    for (base, expected) in [(Base::Sent, 400.0), (Base::MinFlight, 800.0)] {
        let after = left(base);
        assert!((after / expected - 1.0).abs() < 0.02, "{base:?}: {after}");
    }
}
