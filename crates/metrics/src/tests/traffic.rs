//! Metrics of short flows, datagrams and probes.

use fullpipe_run::{ArrivalOutcome, CrossSpec, Outcome, RunSpec, Waveform};
use fullpipe_units::{Rate, Span, Time};

use crate::testing::{arrivals, outcome, ping, source, traffic_of, transfer};
use crate::{METRICS, Scope, TrafficMetrics, Values, names_of, value};

fn measure(run: &RunSpec, outcome: &Outcome) -> Vec<TrafficMetrics> {
    crate::measure(&[], &traffic_of(outcome), run, outcome).traffic
}

fn close(values: &Values, name: &str, expected: f64) {
    let got = value(values, name).unwrap_or_else(|| panic!("{name} is undefined"));
    assert!(
        (got - expected).abs() < 1e-9,
        "{name}: {got}, not {expected}"
    );
}

fn with(classes: Vec<ArrivalOutcome>) -> Outcome {
    Outcome {
        arrivals: classes,
        ..outcome(vec![], 12, 2, 1)
    }
}

#[test]
fn completion_times_of_those_that_started_after_the_warm_up() {
    let mut class = arrivals("mice");
    class.transfers = (1..=100)
        .map(|i| transfer(2.0 + 0.05 * f64::from(i), 10, Some(0.01 * f64::from(i))))
        .collect();
    class.transfers.insert(0, transfer(1.9, 10, Some(99.0)));
    class.transfers.push(transfer(11.9, 10, None));
    class.totals.delivered_measured = 1000;
    (
        class.totals.sent,
        class.totals.retransmits,
        class.totals.dropped,
    ) = (1100, 55, 44);
    let o = with(vec![class]);
    let v = &measure(&RunSpec::default(), &o)[0].values;
    close(v, "arrivals", 101.0);
    close(v, "completed", 100.0);
    close(v, "completion_time_s.mean", 0.505);
    close(v, "completion_time_s.p50", 0.50);
    close(v, "completion_time_s.p95", 0.95);
    close(v, "completion_time_s.p99", 0.99);
    close(v, "completion_time_s.max", 1.0);
    close(v, "goodput_mbps", 1000.0 * 1448.0 * 8e-6 / 10.0);
    close(v, "retransmit_rate", 0.05);
    close(v, "loss_rate", 0.04);
    assert_eq!(v["slowdown.mean"], None, "no path is known");
}

#[test]
fn rates_and_losses_of_datagrams() {
    let mut s = source("udp");
    (s.sent, s.arrived, s.dropped) = (1200, 1079, 120);
    (s.sent_measured, s.arrived_measured) = (1000, 900);
    s.delay.record(Span::from_millis(40));
    s.delay.record(Span::from_millis(60));
    s.arrived_per_interval = vec![500, 500, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3];
    let o = Outcome {
        cross: vec![s],
        ..outcome(vec![], 12, 2, 1)
    };
    let rows = measure(&RunSpec::default(), &o);
    assert_eq!(rows[0].kind, "udp");
    let v = &rows[0].values;
    close(v, "sent_mbps", 1.2);
    close(v, "received_mbps", 1.08);
    close(v, "loss_rate", 0.1);
    close(v, "delay_ms.mean", 50.0);
    close(v, "delay_ms.min", 40.0);
    close(v, "stability", 0.5);
}

#[test]
fn a_source_is_measured_while_it_sends() {
    let mut s = source("udp");
    s.arrived_measured = 100;
    let sine = Waveform::Sine {
        mean: Rate::from_bits_per_sec(1),
        amplitude: Rate::from_bits_per_sec(1),
        period: Span::from_secs(1),
    };
    let spec = CrossSpec {
        start: Time::from_secs_f64(5.0),
        stop: Some(Time::from_secs_f64(7.0)),
        ..CrossSpec::source("udp", 1500, sine, vec![])
    };
    let run = RunSpec {
        cross: vec![spec],
        ..RunSpec::default()
    };
    let mut o = outcome(vec![], 12, 2, 1);
    o.cross = vec![s];
    close(&measure(&run, &o)[0].values, "received_mbps", 0.6);
    // The last of them waited for a second in a queue.
    o.cross[0].last_arrival = Time::from_secs_f64(8.0);
    close(&measure(&run, &o)[0].values, "received_mbps", 0.4);
}

#[test]
fn pings_see_the_inflation() {
    let mut p = ping("probe");
    (p.sent, p.dropped, p.unloaded) = (100, 3, Span::from_millis(80));
    for _ in 0..50 {
        p.delay.record(Span::from_millis(90));
        p.delay.record(Span::from_millis(110));
    }
    let o = Outcome {
        cross: vec![p],
        ..outcome(vec![], 12, 2, 1)
    };
    let v = &measure(&RunSpec::default(), &o)[0].values;
    close(v, "rtt_inflation", 0.25);
    close(v, "loss_rate", 0.03);
    close(v, "rtt_ms.mean", 100.0);
}

#[test]
fn every_traffic_metric_of_the_table_is_measured_and_no_other() {
    let o = Outcome {
        arrivals: vec![arrivals("a")],
        cross: vec![source("b"), ping("c")],
        ..outcome(vec![], 12, 2, 1)
    };
    let rows = measure(&RunSpec::default(), &o);
    for (row, kind) in rows.iter().zip(["short flows", "datagrams", "probes"]) {
        let mut expected: Vec<_> = METRICS
            .iter()
            .filter(|m| m.scope == Scope::Traffic && m.kinds().contains(kind))
            .map(|m| m.name)
            .collect();
        expected.sort_unstable();
        assert_eq!(
            row.values.names().iter().collect::<Vec<_>>(),
            expected,
            "{kind}"
        );
    }
    for name in names_of(Scope::Traffic) {
        assert!(rows.iter().any(|r| r.values.contains_key(name)), "{name}");
    }
}
