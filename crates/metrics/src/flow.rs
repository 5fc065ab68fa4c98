//! Metrics of one flow: rates, RTT, window, counters and samples. What follows a congestion event is in `reopening`.

use std::borrow::Cow;

use fullpipe_run::{FlowOutcome, Histogram, Outcome};
use fullpipe_units::{Span, Time};

use super::{Values, finite, mean, ratio, reopening, synchronization};
use crate::FlowGroup;

/// `members`: the outcomes of the group's streams.
pub(super) fn measure(group: &FlowGroup, members: &[FlowOutcome], outcome: &Outcome) -> Values {
    let mut values = Values::new();
    let mut put = |name: &str, v: Option<f64>| values.insert(name.to_owned(), v);

    let (from, to) = measured_part(group, members, outcome);
    let seconds = delivered_until(members, outcome)
        .saturating_since(from)
        .as_secs_f64();
    let sum = |of: fn(&FlowOutcome) -> f64| members.iter().map(of).sum::<f64>();
    put(
        "goodput_mbps",
        ratio(
            sum(|f| 8e-6 * f64::from(f.mss) * f.totals.delivered_measured as f64),
            seconds,
        ),
    );
    put(
        "throughput_mbps",
        ratio(
            sum(|f| 8e-6 * f64::from(f.packet) * f.totals.arrived_measured as f64),
            seconds,
        ),
    );

    let rtt = pooled(members);
    put("rtt_ms.min", rtt.min().map(Span::as_millis_f64));
    put("rtt_ms.mean", rtt.mean_s().map(|s| s * 1e3));
    put("rtt_ms.p50", rtt.quantile(0.50).map(Span::as_millis_f64));
    put("rtt_ms.p95", rtt.quantile(0.95).map(Span::as_millis_f64));
    put("rtt_ms.p99", rtt.quantile(0.99).map(Span::as_millis_f64));
    put(
        "rtt_inflation",
        rtt.mean_s().and_then(|s| inflation(s, group.base_rtt)),
    );

    put("cwnd_segments.mean", finite(sum(|f| f.cwnd_mean)));
    put("cwnd_segments.max", finite(sum(|f| f.cwnd_max)));
    put(
        "stability",
        stability(&samples(members, outcome, from, to).1),
    );

    let sent = sum(|f| f.totals.sent as f64);
    let retransmits = sum(|f| f.totals.retransmits as f64);
    put("retransmits", Some(retransmits));
    put("loss_events", Some(sum(|f| f.totals.loss_events as f64)));
    put("timeouts", Some(sum(|f| f.totals.timeouts as f64)));
    put("sent_segments", Some(sent));
    put(
        "delivered_segments",
        Some(sum(|f| f.totals.delivered as f64)),
    );
    put("undone", Some(sum(|f| f.totals.undone as f64)));
    put("local_stalls", Some(sum(|f| f.totals.local_stalls as f64)));
    put("retransmit_rate", ratio(retransmits, sent));
    put("loss_rate", ratio(sum(|f| f.totals.dropped as f64), sent));
    put(
        "out_of_order_rate",
        ratio(sum(|f| f.totals.out_of_order as f64), sent),
    );
    put(
        "loss_event_rate",
        ratio(
            sum(|f| f.totals.loss_events_measured as f64),
            sum(|f| f.totals.delivered_measured as f64),
        ),
    );
    put(
        "completion_time_s",
        latest(members, |f| {
            Some(f.completed?.saturating_since(f.started).as_secs_f64())
        }),
    );
    put(
        "climb_time_s",
        latest(members, |f| reopening::climb_time(group, f)),
    );

    let streams: Vec<&FlowOutcome> = members.iter().collect();
    put(
        "stream_synchronization",
        synchronization::index(&streams, group.base_rtt, outcome),
    );

    reopening::measure(group, members, &mut values);
    variables(members, &mut values);
    values
}

/// Beginning and end of the part of the run in which the group is measured.
pub(super) fn measured_part(
    group: &FlowGroup,
    members: &[FlowOutcome],
    outcome: &Outcome,
) -> (Time, Time) {
    let started = members
        .iter()
        .map(|f| f.started)
        .min()
        .unwrap_or(Time::ZERO);
    let to = delivered_until(members, outcome);
    let to = to.min(group.stop.unwrap_or(to));
    (started.max(outcome.measure_from), to)
}

/// Completion of the last member, or the end of the run. What a flow had sent before its stop arrives after it, from a long
/// queue much later: a rate counts it, so its time counts too.
fn delivered_until(members: &[FlowOutcome], outcome: &Outcome) -> Time {
    let end = Time::ZERO + outcome.duration;
    let completed = members
        .iter()
        .map(|f| f.completed)
        .collect::<Option<Vec<Time>>>();
    let completed = completed.and_then(|all| all.into_iter().max());
    end.min(completed.unwrap_or(end))
}

/// Goodput samples, Mbit/s, of the whole intervals between two times, all members together, and the index of the first.
pub(super) fn samples(
    members: &[FlowOutcome],
    outcome: &Outcome,
    from: Time,
    to: Time,
) -> (u64, Vec<f64>) {
    let width = outcome.interval.as_nanos().max(1);
    let first = from.as_nanos().div_ceil(width);
    let end = to.as_nanos() / width;
    let mbit = |i: u64| {
        let of = |f: &FlowOutcome| {
            let segments = f
                .delivered_per_interval
                .get(i as usize)
                .copied()
                .unwrap_or(0);
            8e-6 * f64::from(f.mss) * segments as f64
        };
        members.iter().map(of).sum::<f64>() / outcome.interval.as_secs_f64()
    };
    (first, (first..end).map(mbit).collect())
}

/// Population standard deviation over mean; `None` below two samples or without anything delivered.
pub(super) fn stability(samples: &[f64]) -> Option<f64> {
    let m = mean(samples).filter(|_| samples.len() >= 2)?;
    let squares: f64 = samples.iter().map(|x| (x - m) * (x - m)).sum();
    ratio((squares / samples.len() as f64).sqrt(), m)
}

pub(super) fn inflation(mean_rtt_s: f64, base: Span) -> Option<f64> {
    ratio(mean_rtt_s - base.as_secs_f64(), base.as_secs_f64())
}

/// The largest of a value that every member must have.
pub(super) fn latest(
    members: &[FlowOutcome],
    of: impl Fn(&FlowOutcome) -> Option<f64>,
) -> Option<f64> {
    members
        .iter()
        .map(of)
        .collect::<Option<Vec<f64>>>()?
        .into_iter()
        .reduce(f64::max)
}

/// RTT samples of all members.
fn pooled(members: &[FlowOutcome]) -> Cow<'_, Histogram> {
    if let [one] = members {
        return Cow::Borrowed(&one.rtt);
    }
    let mut all = Histogram::default();
    members.iter().for_each(|f| all.merge(&f.rtt));
    Cow::Owned(all)
}

fn variables(members: &[FlowOutcome], values: &mut Values) {
    let mut names: Vec<&'static str> = members
        .iter()
        .flat_map(|f| f.series.variables.iter().map(|(name, _)| *name))
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let columns = || {
            members
                .iter()
                .flat_map(|f| &f.series.variables)
                .filter(|(n, _)| *n == name)
                .map(|(_, c)| c)
        };
        let reported = |c: &Vec<f64>| c.iter().rev().copied().find(|v| v.is_finite());
        let last: Vec<f64> = columns().filter_map(reported).collect();
        let max = columns()
            .flatten()
            .copied()
            .filter(|v| v.is_finite())
            .reduce(f64::max);
        values.insert(format!("var.{name}.last"), mean(&last));
        values.insert(format!("var.{name}.max"), max);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{flow, group, outcome};
    use super::super::value;
    use super::*;

    #[test]
    fn rates_count_the_measured_part() {
        let mut f = flow("a");
        f.totals.delivered_measured = 1000;
        f.totals.arrived_measured = 1100;
        let o = outcome(vec![f], 12, 2, 1);
        let v = measure(&group("a", 0..1), &o.flows, &o);
        assert!((value(&v, "goodput_mbps").unwrap() - 1000.0 * 1448.0 * 8e-6 / 10.0).abs() < 1e-12);
        assert!(
            (value(&v, "throughput_mbps").unwrap() - 1100.0 * 1500.0 * 8e-6 / 10.0).abs() < 1e-12
        );
    }

    #[test]
    fn a_late_start_and_an_early_completion_shorten_the_measured_part() {
        let mut f = flow("a");
        f.totals.delivered_measured = 1000;
        f.started = Time::from_secs_f64(3.0);
        f.completed = Some(Time::from_secs_f64(7.0));
        let o = outcome(vec![f], 12, 2, 1);
        let v = measure(&group("a", 0..1), &o.flows, &o);
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
        let v = measure(&g, &o.flows, &o);
        assert!((value(&v, "goodput_mbps").unwrap() - 10.0).abs() < 1e-12);
        assert_eq!(v["stability"], None, "one sample until the stop");
    }

    #[test]
    fn nothing_measured_is_undefined_not_zero() {
        let mut f = flow("a");
        f.completed = Some(Time::from_secs_f64(1.0));
        let o = outcome(vec![f], 12, 2, 1);
        let v = measure(&group("a", 0..1), &o.flows, &o);
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
        let mut v = measure(&group("a", 0..1), &o.flows, &o);
        v.insert("share".into(), None);
        let mut expected: Vec<_> = super::super::names_of(super::super::Scope::Flow).collect();
        expected.sort_unstable();
        assert_eq!(v.keys().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn samples_are_whole_intervals_of_the_measured_part() {
        let mut f = flow("a");
        f.mss = 125_000; // 1 Mbit
        f.delivered_per_interval = vec![9, 1, 2, 3, 4, 99];
        let o = outcome(vec![f], 11, 1, 2);
        // Warm-up 1 s: the interval 0-2 s is cut, 10-11 s is not whole.
        let (first, s) = samples(&o.flows, &o, o.measure_from, Time::ZERO + o.duration);
        assert_eq!((first, s), (1, vec![0.5, 1.0, 1.5, 2.0]));
    }

    #[test]
    fn stability_of_the_ideal_sawtooth() {
        // Algorithm reference, section 5.1: b/(sqrt(12)(1 - b/2)).
        for (b, expected) in [(0.5, 0.192450), (0.3, 0.101885), (0.125, 0.038490)] {
            let n = 100_000;
            let s: Vec<f64> = (0..n)
                .map(|i| 1.0 - b + b * (f64::from(i) + 0.5) / f64::from(n))
                .collect();
            let got = stability(&s).unwrap();
            assert!((got - expected).abs() < 1e-6, "{b}: {got}");
        }
        assert_eq!(stability(&[3.0]), None);
        assert_eq!(stability(&[0.0, 0.0]), None);
        assert_eq!(stability(&[2.0, 2.0]), Some(0.0));
        // Population, not sample deviation: std of (1, 3) is 1.
        assert_eq!(stability(&[1.0, 3.0]), Some(0.5));
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
        let v = measure(&group("a", 0..2), &o.flows, &o);
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
    fn pooled_quantiles_of_one_member_are_its_own() {
        let mut f = flow("a");
        for i in 0..5000u64 {
            f.rtt
                .record(Span::from_micros(80_000 + (i * 7919) % 40_000));
        }
        let pair = [f.clone(), flow("b")];
        let rtt = pooled(&pair);
        for q in [0.001, 0.05, 0.5, 0.95, 0.99, 1.0] {
            assert_eq!(rtt.quantile(q), f.rtt.quantile(q), "{q}");
        }
        assert_eq!(rtt.count(), 5000);
    }

    #[test]
    fn variables_skip_rows_without_a_report() {
        let mut f = flow("a");
        f.series.variables = vec![
            ("w_max", vec![f64::NAN, 3.0, 5.0, 4.0, f64::NAN]),
            ("k", vec![f64::NAN; 5]),
        ];
        let o = outcome(vec![f], 10, 0, 1);
        let v = measure(&group("a", 0..1), &o.flows, &o);
        assert_eq!(
            (v["var.w_max.last"], v["var.w_max.max"]),
            (Some(4.0), Some(5.0))
        );
        assert_eq!((v["var.k.last"], v["var.k.max"]), (None, None));
    }
}
