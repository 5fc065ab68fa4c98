//! Metrics of a flow.

use fullpipe_flow::{Limit, LimitTimes};
use fullpipe_run::Extent;
use fullpipe_units::{Span, Time};

use crate::testing::{flow, flow_values, group, outcome};
use crate::{Scope, names_of, value};

#[test]
fn rates_count_the_measured_part() {
    let mut f = flow("a");
    f.totals.delivered_measured = 1000;
    f.totals.arrived_measured = 1100;
    let o = outcome(vec![f], 12, 2, 1);
    let v = flow_values(&group("a", 0..1), &o);
    assert!((value(&v, "goodput_mbps").unwrap() - 1000.0 * 1448.0 * 8e-6 / 10.0).abs() < 1e-12);
    assert!((value(&v, "throughput_mbps").unwrap() - 1100.0 * 1500.0 * 8e-6 / 10.0).abs() < 1e-12);
}

#[test]
fn a_late_start_and_an_early_completion_shorten_the_measured_part() {
    let mut f = flow("a");
    f.totals.delivered_measured = 1000;
    f.started = Time::from_secs_f64(3.0);
    f.completed = Some(Time::from_secs_f64(7.0));
    let o = outcome(vec![f], 12, 2, 1);
    let v = flow_values(&group("a", 0..1), &o);
    assert!((value(&v, "goodput_mbps").unwrap() - 1000.0 * 1448.0 * 8e-6 / 4.0).abs() < 1e-12);
    assert_eq!(value(&v, "completion_time_s"), Some(4.0));
}

/// Stopped after a second; what waited in the queue took three more: 10 Mbit/s, not 40.
#[test]
fn what_arrives_after_the_stop_takes_its_time() {
    let mut f = flow("a");
    f.mss = 1250;
    f.totals.delivered_measured = 4000;
    f.completed = Some(Time::from_secs_f64(6.0));
    f.delivered_per_interval = vec![1000; 6];
    let mut g = group("a", 0..1);
    g.stop = Some(Time::from_secs_f64(3.0));
    let o = outcome(vec![f], 12, 2, 1);
    let v = flow_values(&g, &o);
    assert!((value(&v, "goodput_mbps").unwrap() - 10.0).abs() < 1e-12);
    assert_eq!(v["stability"], None, "one sample until the stop");
}

#[test]
fn nothing_measured_is_undefined_not_zero() {
    let mut f = flow("a");
    f.completed = Some(Time::from_secs_f64(1.0));
    let o = outcome(vec![f], 12, 2, 1);
    let v = flow_values(&group("a", 0..1), &o);
    for name in [
        "goodput_mbps",
        "rtt_ms.mean",
        "rtt_ms.p99",
        "stability",
        "recovery_time_s",
        "retransmit_rate",
    ] {
        assert_eq!(v[name], None, "{name}");
    }
    assert_eq!(v["retransmits"], Some(0.0));
}

#[test]
fn every_flow_metric_of_the_table_is_measured_and_no_other() {
    let o = outcome(vec![flow("a")], 12, 2, 1);
    let v = flow_values(&group("a", 0..1), &o);
    let mut expected: Vec<_> = names_of(Scope::Flow).collect();
    expected.sort_unstable();
    assert_eq!(v.names().iter().collect::<Vec<_>>(), expected);
}

#[test]
fn streams_are_summed_and_their_rtt_samples_pooled() {
    let mut a = flow("a.0");
    let mut b = flow("a.1");
    a.totals.delivered_measured = 100;
    b.totals.delivered_measured = 300;
    a.totals.retransmits = 1;
    b.totals.retransmits = 2;
    a.cwnd_mean = 10.0;
    b.cwnd_mean = 20.0;
    for _ in 0..90 {
        a.rtt.record(Span::from_millis(100));
    }
    for _ in 0..10 {
        b.rtt.record(Span::from_millis(200));
    }
    let o = outcome(vec![a, b], 10, 0, 1);
    let v = flow_values(&group("a", 0..2), &o);
    assert!((value(&v, "goodput_mbps").unwrap() - 400.0 * 1448.0 * 8e-6 / 10.0).abs() < 1e-12);
    assert_eq!(v["retransmits"], Some(3.0));
    assert_eq!(v["cwnd_segments.mean"], Some(30.0));
    assert!((value(&v, "rtt_ms.mean").unwrap() - 110.0).abs() < 1e-9);
    assert!((value(&v, "rtt_inflation").unwrap() - 0.1).abs() < 1e-9);
    assert_eq!(v["rtt_ms.min"], Some(100.0));
    assert!((value(&v, "rtt_ms.p50").unwrap() - 100.0).abs() < 1.7);
    assert!((value(&v, "rtt_ms.p95").unwrap() - 200.0).abs() < 3.3);
}

#[test]
fn variables_skip_what_was_not_reported() {
    let mut f = flow("a");
    let extent = |values: &[f64]| {
        let mut extent = Extent::default();
        for value in values {
            extent.take(*value);
        }
        extent
    };
    f.variables = vec![
        ("w_max", extent(&[f64::NAN, 3.0, 5.0, 4.0, f64::NAN])),
        ("k", extent(&[f64::NAN; 5])),
    ];
    let o = outcome(vec![f], 10, 0, 1);
    let v = flow_values(&group("a", 0..1), &o);
    assert_eq!(
        (v["var.w_max.last"], v["var.w_max.max"]),
        (Some(4.0), Some(5.0))
    );
    assert_eq!((v["var.k.last"], v["var.k.max"]), (None, None));
}

/// Shares of the time of all streams together: 3 s and 1 s of 8 s, and 4 s.
#[test]
fn what_limited_a_flow_adds_up_to_one() {
    let times = |of: &[(Limit, u64)]| {
        let one = |(limit, s): &(Limit, u64)| LimitTimes::one(*limit, Span::from_secs(*s));
        of.iter()
            .map(one)
            .fold(LimitTimes::default(), LimitTimes::plus)
    };
    let mut a = flow("a");
    a.totals.limited = times(&[(Limit::Network, 3), (Limit::LocalQueue, 1)]);
    let mut b = flow("b");
    b.totals.limited = times(&[(Limit::LocalQueue, 4)]);
    let v = flow_values(&group("a", 0..2), &outcome(vec![a, b], 4, 0, 1));
    assert_eq!(value(&v, "limited.network"), Some(0.375));
    assert_eq!(value(&v, "limited.local_queue"), Some(0.625));
    assert_eq!(value(&v, "limited.application"), Some(0.0));
    let names = names_of(Scope::Flow).filter(|name| name.starts_with("limited."));
    let all: f64 = names.map(|name| value(&v, name).unwrap()).sum();
    assert_eq!(all, 1.0);
    let nothing = flow_values(&group("a", 0..1), &outcome(vec![flow("a")], 4, 0, 1));
    assert_eq!(value(&nothing, "limited.network"), None);
}
