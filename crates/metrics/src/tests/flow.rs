//! Metrics of a flow.

use fullpipe_cc::{CongestionKind, StackSpec};
use fullpipe_flow::{
    Episode, EpisodeKind, Limit, LimitTimes, Preset, ReceiverConfig, SenderConfig,
};
use fullpipe_run::{
    Change, Extent, Fidelity, FlowOutcome, FlowSpec, Histogram, LinkSpec, Outcome, RunSpec,
};
use fullpipe_units::{Span, Time};

use crate::testing::{flow, flow_values, group, outcome};
use crate::{Scope, measure, names_of, value};

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
fn fairness_of_streams_is_of_their_rates() {
    let [mut a, mut b] = [flow("a.1"), flow("a.2")];
    (a.totals.delivered_measured, b.totals.delivered_measured) = (1000, 3000);
    let jain = |members: Vec<FlowOutcome>| {
        let g = group("a", 0..members.len());
        value(&flow_values(&g, &outcome(members, 12, 2, 1)), "stream_jain")
    };
    assert!((jain(vec![a.clone(), b.clone()]).unwrap() - 0.8).abs() < 1e-12);
    // As much in a third of the time is three times the rate.
    b.totals.delivered_measured = 1000;
    b.started = Time::from_secs_f64(12.0 - 10.0 / 3.0);
    assert!((jain(vec![a.clone(), b]).unwrap() - 0.8).abs() < 1e-9);
    assert_eq!(jain(vec![a]), None);
}

#[test]
fn a_late_start_and_an_early_completion_shorten_the_measured_part() {
    let mut f = flow("a");
    f.totals.delivered_measured = 1000;
    f.started = Time::from_secs_f64(3.0);
    f.completed = Some(Time::from_secs_f64(7.0));
    let o = outcome(vec![f], 12, 2, 1);
    let mut g = group("a", 0..1);
    let v = flow_values(&g, &o);
    assert!((value(&v, "goodput_mbps").unwrap() - 1000.0 * 1448.0 * 8e-6 / 4.0).abs() < 1e-12);
    assert_eq!(value(&v, "completion_time_s"), None, "nothing to complete");
    g.transfer = Some(1000);
    assert_eq!(value(&flow_values(&g, &o), "completion_time_s"), Some(4.0));
}

/// Stopped, a flow is done with what it had sent, be that its whole transfer or not.
#[test]
fn a_transfer_that_its_stop_cuts_short_does_not_complete() {
    let mut f = flow("a");
    f.completed = Some(Time::from_secs_f64(5.2));
    f.totals.delivered = 999;
    let mut g = group("a", 0..1);
    (g.transfer, g.stop) = (Some(1000), Some(Time::from_secs_f64(5.0)));
    let completion = |f: &FlowOutcome| {
        let o = outcome(vec![f.clone()], 12, 0, 1);
        value(&flow_values(&g, &o), "completion_time_s")
    };
    assert_eq!(completion(&f), None);
    f.totals.delivered = 1000;
    assert_eq!(completion(&f), Some(5.2));
}

/// The last stream completes 5 s after the first has started, and after 3 s of its own; the first
/// event is that of the earliest stream.
#[test]
fn streams_count_from_the_start_of_the_first() {
    let at = Time::from_secs_f64;
    let [mut a, mut b] = [flow("a.1"), flow("a.2")];
    (a.started, a.completed) = (at(1.0), Some(at(4.5)));
    (b.started, b.completed) = (at(3.0), Some(at(6.0)));
    let loss = |s| Episode {
        at: at(s),
        kind: EpisodeKind::Congestion(CongestionKind::Loss),
        before: 20.0,
        after: 10.0,
    };
    (a.episodes, b.episodes) = (vec![loss(4.0)], vec![loss(3.5)]);
    let mut g = group("a", 0..2);
    g.transfer = Some(1000);
    let v = flow_values(&g, &outcome(vec![a, b], 12, 0, 1));
    assert_eq!(value(&v, "completion_time_s"), Some(5.0));
    assert_eq!(value(&v, "first_loss_s"), Some(2.5));
    assert_eq!(value(&v, "startup_exit_s"), Some(2.5));
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

/// Nothing of a stream whose handshake had no answer until the stop can arrive after it.
#[test]
fn a_stream_that_never_opened_takes_no_time_after_the_stop() {
    let [mut a, mut b] = [flow("a.1"), flow("a.2")];
    a.mss = 1250;
    a.totals.sent = 4000;
    a.totals.delivered_measured = 4000;
    a.completed = Some(Time::from_secs_f64(6.0));
    let mut g = group("a", 0..2);
    g.stop = Some(Time::from_secs_f64(3.0));
    let goodput = |b: &FlowOutcome| {
        let o = outcome(vec![a.clone(), b.clone()], 12, 2, 1);
        value(&flow_values(&g, &o), "goodput_mbps").unwrap()
    };
    assert!((goodput(&b) - 10.0).abs() < 1e-12, "{}", goodput(&b));
    b.totals.sent = 1; // on the way until the end of the run
    assert!((goodput(&b) - 4.0).abs() < 1e-12, "{}", goodput(&b));
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

/// A flow that is over before the measured part has no window in it, and shares nothing with those
/// that are there.
#[test]
fn what_is_over_counts_in_nothing_of_the_measured_part() {
    let [mut a, mut b] = [flow("a"), flow("b")];
    (a.completed, a.cwnd_mean, a.cwnd_max) = (Some(Time::from_secs_f64(1.0)), 10.0, 10.0);
    b.totals.delivered_measured = 1000;
    let o = outcome(vec![a, b], 12, 2, 1);
    let groups = [group("a", 0..1), group("b", 1..2)];
    let run = measure(&groups, &[], &RunSpec::default(), &o);
    let of = |i: usize, name: &str| run.flows[i].values[name];
    assert_eq!((of(0, "cwnd_segments.mean"), of(0, "share")), (None, None));
    assert_eq!(
        (of(1, "share"), run.metrics["jain"]),
        (Some(1.0), Some(1.0))
    );
    assert_eq!(run.metrics["asymmetry"], None);
}

/// The path is idle: what chance adds to each stream's delay, and what the schedule adds in the
/// measured part, is no load. Twice as many samples weigh twice as much.
#[test]
fn the_base_rtt_is_that_of_the_streams_and_of_the_measured_part() {
    let ms = Span::from_millis;
    let mut main = LinkSpec::pure_delay("main", ms(100));
    main.schedule = vec![Change {
        at: Time::from_secs_f64(7.0),
        rate: None,
        delay: Some(ms(140)),
        loss: None,
    }];
    let mut back = LinkSpec::pure_delay("spread-a.2", ms(0));
    back.delay_spread = ms(80);
    let mut run = RunSpec {
        links: vec![main, back],
        seed: 7,
        ..RunSpec::default()
    };
    let drawn = run.links[1].drawn_spread(7);
    assert!(drawn > ms(1));
    // 5 s of 10 at 100 ms and 5 s at 140 ms.
    let [mut a, mut b] = [flow("a.1"), flow("a.2")];
    for (f, rtt, samples) in [(&mut a, ms(120), 1), (&mut b, ms(120) + drawn, 2)] {
        f.rtt = Histogram::default();
        (0..samples).for_each(|_| f.rtt.record(rtt));
    }
    for back in [vec![], vec![1]] {
        run.flows.push(FlowSpec::new(
            "a",
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Y2026, 1500),
            ReceiverConfig::preset(Preset::Y2026),
            vec![0],
            back,
        ));
    }
    let o = outcome(vec![a, b], 12, 2, 1);
    let groups = [group("a", 0..2)];
    let seen = measure(&groups, &[], &run, &o);
    let inflation = seen.flows[0].values["rtt_inflation"].unwrap();
    assert!(inflation.abs() < 1e-9, "{inflation}");
    let unknown = measure(&groups, &[], &RunSpec::default(), &o);
    assert!(unknown.flows[0].values["rtt_inflation"].unwrap() > 0.2);
}

/// Over the network to another host rate and delays of the scenario are nobody's: what is held
/// against them is undefined.
#[test]
fn nothing_is_held_against_a_path_that_is_another() {
    let groups = [group("a", 0..1), group("b", 1..2)];
    let ran = |fidelity| {
        let mut flows = [flow("a"), flow("b")];
        for f in &mut flows {
            f.rtt.record(Span::from_millis(130));
            f.totals.delivered_measured = 1000;
        }
        let o = Outcome {
            fidelity,
            ..outcome(flows.into(), 12, 2, 1)
        };
        let mut groups = groups.clone();
        groups[1].base_rtt = Span::from_millis(200);
        measure(&groups, &[], &RunSpec::default(), &o)
    };
    let own = Fidelity {
        path_added: Some(Span::ZERO),
        ..Fidelity::default()
    };
    for (fidelity, known) in [
        (None, true),
        (Some(own), true),
        (Some(Fidelity::default()), false),
    ] {
        let run = ran(fidelity);
        let flow = &run.flows[0].values;
        assert_eq!(flow["rtt_inflation"].is_some(), known);
        assert_eq!(run.metrics["rtt_unfairness"].is_some(), known);
        assert!(flow["rtt_ms.mean"].is_some());
    }
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
