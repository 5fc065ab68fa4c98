//! Where an exact loss happens: on the way into the path, or at the receiver's host.

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
