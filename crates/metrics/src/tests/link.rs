//! Metrics of links.

use fullpipe_run::{Outcome, RunSpec};
use fullpipe_units::Span;

use crate::testing::{flow, group, link, outcome};
use crate::{Scope, measure, names_of, value};

#[test]
fn links_tell_who_dropped_what_and_how_long_packets_waited() {
    let mut l = link("bottleneck");
    (l.offered, l.buffer_drops, l.random_drops) = (1000, 10, 20);
    (l.policer_drops, l.early_drops, l.marks) = (30, 40, 50);
    for ms in 1..=100 {
        l.queueing_delay.record(Span::from_millis(ms));
    }
    let o = Outcome {
        links: vec![l, link("idle")],
        ..outcome(vec![flow("a")], 10, 0, 1)
    };
    let m = measure(&[group("a", 0..1)], &[], &RunSpec::default(), &o);
    let v = |name| value(&m.links[0].values, name).unwrap();
    assert_eq!((v("drops"), v("drop_rate")), (100.0, 0.1));
    assert_eq!(
        (v("early_drops"), v("policer_drops"), v("marks")),
        (40.0, 30.0, 50.0)
    );
    assert!((v("queueing_delay_ms.mean") - 50.5).abs() < 1e-9);
    assert!((v("queueing_delay_ms.p95") - 95.0).abs() < 0.2);
    assert_eq!(v("queueing_delay_ms.max"), 100.0);
    assert_eq!(m.links[1].values["drop_rate"], None);
    assert_eq!(m.links[1].values["queueing_delay_ms.mean"], None);
}

#[test]
fn every_link_and_case_metric_of_the_table_is_measured_and_no_other() {
    let o = Outcome {
        links: vec![link("l")],
        ..outcome(vec![flow("a")], 10, 0, 1)
    };
    let m = measure(&[group("a", 0..1)], &[], &RunSpec::default(), &o);
    for (scope, values) in [(Scope::Link, &m.links[0].values), (Scope::Case, &m.metrics)] {
        let mut expected: Vec<_> = names_of(scope).collect();
        expected.sort_unstable();
        assert_eq!(values.names().iter().collect::<Vec<_>>(), expected);
    }
}
