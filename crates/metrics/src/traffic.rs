//! Metrics of what is not a lasting flow: short flows that come and go, datagrams, round-trip probes.
//!
//! A short flow counts where it starts: those that start during the warm-up are left out, with all that becomes of them later.
//! What has not finished at the end of the run has no completion time; `arrivals` and `completed` say how many that are.

use fullpipe_run::{
    ArrivalOutcome, ArrivalSpec, Histogram, Outcome, PingOutcome, RunSpec, SourceOutcome,
    SourceSpec, Transfer, Waveform,
};
use fullpipe_units::{Span, Time};

use super::flow::{inflation, stability};
use super::{TrafficMetrics, Values, finite, mean, ratio};

/// One row per class of short flows, source of datagrams and sequence of probes, in the order of the outcome.
pub(super) fn measure(spec: &RunSpec, outcome: &Outcome) -> Vec<TrafficMetrics> {
    let row = |name: &str, kind: &str, stack: String, values| TrafficMetrics {
        name: name.to_owned(),
        kind: kind.to_owned(),
        stack,
        values,
    };
    let arrivals = outcome.arrivals.iter().enumerate().map(|(i, a)| {
        let spec_of = spec.arrivals.get(i);
        let stack = spec_of.map_or(String::new(), |s| s.template.stack.to_string());
        row(
            &a.name,
            SHORT_FLOWS,
            stack,
            short_flows(spec, spec_of, a, outcome),
        )
    });
    let sources = outcome.sources.iter().enumerate().map(|(i, s)| {
        let spec = spec.sources.get(i);
        let kind = spec.map_or(UDP, |s| kind_of(&s.waveform));
        row(&s.name, kind, String::new(), datagrams(spec, s, outcome))
    });
    let pings = outcome
        .pings
        .iter()
        .map(|p| row(&p.name, PING, String::new(), probes(p)));
    arrivals.chain(sources).chain(pings).collect()
}

fn kind_of(waveform: &Waveform) -> &'static str {
    match waveform {
        Waveform::Steps { steps, .. } if steps.len() < 2 => UDP,
        Waveform::Steps { .. } => "udp-steps",
        Waveform::Sine { .. } => "udp-sine",
        Waveform::OnOff { .. } => "udp-on-off",
    }
}

fn short_flows(
    run: &RunSpec,
    spec: Option<&ArrivalSpec>,
    class: &ArrivalOutcome,
    outcome: &Outcome,
) -> Values {
    let mut values = Values::new();
    let mut put = |name: &str, v: Option<f64>| values.insert(name.to_owned(), v);
    let counted: Vec<&Transfer> = class
        .transfers
        .iter()
        .filter(|t| t.start >= outcome.measure_from)
        .collect();
    let times: Vec<f64> = counted
        .iter()
        .filter_map(|t| Some(t.completion?.as_secs_f64()))
        .collect();
    put("arrivals", Some(counted.len() as f64));
    put("completed", Some(times.len() as f64));
    let times = sorted(times);
    put("completion_time_s.mean", mean(&times));
    put("completion_time_s.p50", quantile(&times, 0.50));
    put("completion_time_s.p95", quantile(&times, 0.95));
    put("completion_time_s.p99", quantile(&times, 0.99));
    put("completion_time_s.max", times.last().copied());

    let path = spec.map(|s| Path::of(run, s));
    let slowdown = path.map_or(Vec::new(), |path| {
        let of = |t: &&Transfer| {
            let ideal = path.ideal_s(t.size, class.packet);
            ratio(t.completion?.as_secs_f64(), ideal)
        };
        sorted(counted.iter().filter_map(of).collect())
    });
    put("slowdown.mean", mean(&slowdown));
    put("slowdown.p95", quantile(&slowdown, 0.95));

    let window = spec.map_or(0, |s| {
        s.template
            .stack
            .initial_window()
            .unwrap_or(s.template.sender.window.initial) as u64
    });
    let loss = initial_loss(&counted, window);
    put("initial_loss.p", loss.0);
    put("initial_loss.given_previous", loss.1);

    let t = &class.totals;
    let end = Time::ZERO + outcome.duration;
    let seconds = end.saturating_since(outcome.measure_from).as_secs_f64();
    put(
        "goodput_mbps",
        ratio(
            8e-6 * f64::from(class.mss) * t.delivered_measured as f64,
            seconds,
        ),
    );
    put("retransmits", Some(t.retransmits as f64));
    put("timeouts", Some(t.timeouts as f64));
    put(
        "retransmit_rate",
        ratio(t.retransmits as f64, t.sent as f64),
    );
    put("loss_rate", ratio(t.dropped as f64, t.sent as f64));
    let samples = samples(
        &class.delivered_per_interval,
        outcome,
        outcome.measure_from,
        end,
    );
    put("stability", stability(&samples));
    distribution(&mut values, "rtt_ms", &class.rtt);
    values
}

fn datagrams(spec: Option<&SourceSpec>, source: &SourceOutcome, outcome: &Outcome) -> Values {
    let mut values = Values::new();
    let mut put = |name: &str, v: Option<f64>| values.insert(name.to_owned(), v);
    let end = Time::ZERO + outcome.duration;
    let from = spec
        .map_or(Time::ZERO, |s| s.start)
        .max(outcome.measure_from);
    let to = spec.and_then(|s| s.stop).unwrap_or(end).min(end);
    let seconds = to.saturating_since(from).as_secs_f64();
    let bits = 8e-6 * f64::from(source.packet);
    put(
        "sent_mbps",
        ratio(bits * source.sent_measured as f64, seconds),
    );
    put(
        "received_mbps",
        ratio(
            bits * source.arrived_measured as f64,
            to.max(source.last_arrival)
                .saturating_since(from)
                .as_secs_f64(),
        ),
    );
    put("sent_packets", Some(source.sent as f64));
    put("received_packets", Some(source.arrived as f64));
    put(
        "loss_rate",
        ratio(source.dropped as f64, source.sent as f64),
    );
    put(
        "stability",
        stability(&samples(&source.arrived_per_interval, outcome, from, to)),
    );
    distribution(&mut values, "delay_ms", &source.delay);
    values
}

fn probes(ping: &PingOutcome) -> Values {
    let mut values = Values::new();
    distribution(&mut values, "rtt_ms", &ping.rtt);
    let inflation = ping.rtt.mean_s().and_then(|s| inflation(s, ping.unloaded));
    values.insert("rtt_inflation".into(), inflation);
    values.insert("sent_packets".into(), Some(ping.sent as f64));
    values.insert(
        "loss_rate".into(),
        ratio(ping.lost as f64, ping.sent as f64),
    );
    values
}

/// Part of the first transmissions of the initial window that was lost, and the part of those whose predecessor was lost.
/// `window`: segments; only the first 64 of a transfer are known.
fn initial_loss(transfers: &[&Transfer], window: u64) -> (Option<f64>, Option<f64>) {
    let (mut sent, mut lost, mut followed, mut both) = (0u64, 0u64, 0u64, 0u64);
    for t in transfers {
        let n = t.size.min(window).min(KNOWN);
        let is_lost = |i: u64| t.lost >> i & 1 == 1;
        sent += n;
        for i in 0..n {
            lost += u64::from(is_lost(i));
            if i + 1 < n && is_lost(i) {
                followed += 1;
                both += u64::from(is_lost(i + 1));
            }
        }
    }
    (
        ratio(lost as f64, sent as f64),
        ratio(both as f64, followed as f64),
    )
}

/// What an empty path allows a short flow.
#[derive(Clone, Copy)]
struct Path {
    /// Round-trip propagation delay, seconds.
    rtt: f64,
    /// Rate of the slowest link on the way out, bit/s; infinite without any.
    rate: f64,
}

impl Path {
    fn of(run: &RunSpec, class: &ArrivalSpec) -> Path {
        let crossed = |links: &[usize]| {
            let known = links.iter().filter_map(|&l| run.links.get(l));
            known.cloned().collect::<Vec<_>>()
        };
        let (out, back) = (
            crossed(&class.template.forward),
            crossed(&class.template.back),
        );
        Path {
            rtt: out.iter().chain(&back).map(|l| l.delay.as_secs_f64()).sum(),
            rate: out
                .iter()
                .filter_map(|l| l.rate)
                .map(|r| r.as_bits_per_sec() as f64)
                .fold(f64::INFINITY, f64::min),
        }
    }

    fn ideal_s(&self, segments: u64, packet: u32) -> f64 {
        self.rtt + 8.0 * f64::from(packet) * segments as f64 / self.rate
    }
}

/// Counts of the whole intervals between two times.
fn samples(per_interval: &[u64], outcome: &Outcome, from: Time, to: Time) -> Vec<f64> {
    let width = outcome.interval.as_nanos().max(1);
    let first = from.as_nanos().div_ceil(width) as usize;
    let end = (to.as_nanos() / width) as usize;
    (first..end)
        .map(|i| per_interval.get(i).copied().unwrap_or(0) as f64)
        .collect()
}

/// `<name>.min`, `.mean`, `.p50`, `.p95`, `.p99` in milliseconds.
pub(super) fn distribution(values: &mut Values, name: &str, h: &Histogram) {
    let mut put =
        |part: &str, v: Option<f64>| values.insert(format!("{name}.{part}"), v.and_then(finite));
    put("min", h.min().map(Span::as_millis_f64));
    put("mean", h.mean_s().map(|s| s * 1e3));
    put("p50", h.quantile(0.50).map(Span::as_millis_f64));
    put("p95", h.quantile(0.95).map(Span::as_millis_f64));
    put("p99", h.quantile(0.99).map(Span::as_millis_f64));
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The smallest value that at least a part `q` of the sorted ones does not exceed.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied()
}

/// Kinds of rows, as in the scenario.
pub(crate) const SHORT_FLOWS: &str = "short-flows";
const UDP: &str = "udp";
pub(crate) const PING: &str = "ping";
/// Segments of a transfer whose loss is known.
const KNOWN: u64 = 64;

#[cfg(test)]
mod tests {
    use super::super::testing::{arrivals, outcome, ping, source, transfer};
    use super::super::{Scope, names_of, value};
    use super::*;
    use fullpipe_units::Rate;

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
    fn slowdown_is_against_one_rtt_and_the_transmission() {
        let path = Path {
            rtt: 0.1,
            rate: Rate::from_bits_per_sec(12_000_000).as_bits_per_sec() as f64,
        };
        // 100 packets of 12000 bits at 12 Mbit/s take 0.1 s.
        assert!((path.ideal_s(100, 1500) - 0.2).abs() < 1e-12);
    }

    #[test]
    fn loss_within_the_first_window_alone_and_after_a_loss() {
        let mut a = transfer(0.0, 30, Some(1.0));
        // Segments 2, 3, 4 and 9 are lost; 10 is outside a window of ten.
        a.lost = 0b110_0001_1100;
        a.lost |= 1 << 9;
        let mut b = transfer(0.0, 4, Some(1.0));
        b.lost = 0b1000;
        let (p, given) = initial_loss(&[&a, &b], 10);
        // 14 segments, 5 lost. Followed within the window: 2, 3, 4; the follower of 2 and of 3 is lost too.
        assert_eq!(p, Some(5.0 / 14.0));
        assert_eq!(given, Some(2.0 / 3.0));
        assert_eq!(
            initial_loss(&[&transfer(0.0, 9, None)], 10),
            (Some(0.0), None)
        );
        assert_eq!(initial_loss(&[], 10), (None, None));
    }

    #[test]
    fn independent_losses_are_as_likely_after_a_loss_as_anywhere() {
        // Every pattern of 8 segments once: each segment lost in half of them, whatever its predecessor.
        let all: Vec<Transfer> = (0..256)
            .map(|lost| Transfer {
                lost,
                ..transfer(0.0, 8, Some(1.0))
            })
            .collect();
        let (p, given) = initial_loss(&all.iter().collect::<Vec<_>>(), 8);
        assert_eq!((p, given), (Some(0.5), Some(0.5)));
        // A burst that is lost whole: certain after a loss.
        let bursts: Vec<Transfer> = (0..256)
            .map(|i| Transfer {
                lost: if i % 4 == 0 { 0xff } else { 0 },
                ..transfer(0.0, 8, Some(1.0))
            })
            .collect();
        let (p, given) = initial_loss(&bursts.iter().collect::<Vec<_>>(), 8);
        assert_eq!((p, given), (Some(0.25), Some(1.0)));
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
            sources: vec![s],
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
        let spec = SourceSpec {
            name: "udp".into(),
            packet: 1500,
            waveform: Waveform::Sine {
                mean: Rate::from_bits_per_sec(1),
                amplitude: Rate::from_bits_per_sec(1),
                period: Span::from_secs(1),
            },
            spacing: fullpipe_run::Spacing::Even,
            forward: vec![],
            start: Time::from_secs_f64(5.0),
            stop: Some(Time::from_secs_f64(7.0)),
        };
        let o = outcome(vec![], 12, 2, 1);
        close(&datagrams(Some(&spec), &s, &o), "received_mbps", 0.6);
        // The last of them waited for a second in a queue.
        s.last_arrival = Time::from_secs_f64(8.0);
        close(&datagrams(Some(&spec), &s, &o), "received_mbps", 0.4);
        assert_eq!(kind_of(&spec.waveform), "udp-sine");
    }

    #[test]
    fn pings_see_the_inflation() {
        let mut p = ping("probe");
        (p.sent, p.lost, p.unloaded) = (100, 3, Span::from_millis(80));
        for _ in 0..50 {
            p.rtt.record(Span::from_millis(90));
            p.rtt.record(Span::from_millis(110));
        }
        let o = Outcome {
            pings: vec![p],
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
            sources: vec![source("b")],
            pings: vec![ping("c")],
            ..outcome(vec![], 12, 2, 1)
        };
        let rows = measure(&RunSpec::default(), &o);
        for (row, kind) in rows.iter().zip(["short flows", "datagrams", "probes"]) {
            let mut expected: Vec<_> = super::super::METRICS
                .iter()
                .filter(|m| m.scope == Scope::Traffic && m.kinds.contains(kind))
                .map(|m| m.name)
                .collect();
            expected.sort_unstable();
            assert_eq!(
                row.values.keys().map(String::as_str).collect::<Vec<_>>(),
                expected,
                "{kind}"
            );
        }
        for name in names_of(Scope::Traffic) {
            assert!(rows.iter().any(|r| r.values.contains_key(name)), "{name}");
        }
    }
}
