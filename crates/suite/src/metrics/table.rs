//! The table of metrics: name, unit, formula and source of each, once. Scenario validation, `fullpipe list metrics`, the
//! reference page and the columns of every result come from here.

/// What a metric is taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// One flow of the scenario; all its streams together.
    Flow,
    /// One link.
    Link,
    /// The whole case.
    Case,
}

/// Which direction is better, for reading a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither.
    Neither,
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name in JSON, columns and expectations; a dot leads into a JSON object.
    pub name: &'static str,
    /// What it is taken of.
    pub scope: Scope,
    /// Unit; `1` for a ratio.
    pub unit: &'static str,
    /// A number of things: printed without decimals.
    pub count: bool,
    /// Direction.
    pub better: Better,
    /// What it says, in one line.
    pub about: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// How the streams of one flow (`streams = n`) are combined; empty where it does not apply.
    pub streams: &'static str,
    /// Document that defines it.
    pub source: &'static str,
}

/// The metric of this name in this scope. Controller variables are not in the table: see [`is_variable`].
pub fn find(scope: Scope, name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|m| m.scope == scope && m.name == name)
}

/// The scope of the name; `var.<name>.last` and `var.<name>.max` belong to flows.
pub fn scope_of(name: &str) -> Option<Scope> {
    if is_variable(name) {
        return Some(Scope::Flow);
    }
    METRICS.iter().find(|m| m.name == name).map(|m| m.scope)
}

/// True for `var.<name>.last` and `var.<name>.max`.
pub fn is_variable(name: &str) -> bool {
    name.strip_prefix("var.")
        .and_then(|rest| {
            rest.strip_suffix(".last")
                .or_else(|| rest.strip_suffix(".max"))
        })
        .is_some_and(|v| !v.is_empty())
}

/// Every name of the table, in its order.
pub fn names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|m| m.name)
}

/// The names of a scope, in the order of the table.
pub fn names_of(scope: Scope) -> impl Iterator<Item = &'static str> {
    METRICS
        .iter()
        .filter(move |m| m.scope == scope)
        .map(|m| m.name)
}

/// The reference page `docs/metrics.md`.
pub fn markdown() -> String {
    let mut out = String::from(PAGE_HEAD);
    for (scope, title) in [
        (Scope::Flow, "Of a flow"),
        (Scope::Link, "Of a link"),
        (Scope::Case, "Of a case"),
    ] {
        out += &format!("\n## {title}\n");
        for m in METRICS.iter().filter(|m| m.scope == scope) {
            out += &format!(
                "\n### `{}`\n\n{}.\n\n- unit: {}\n- formula: {}\n",
                m.name, m.about, m.unit, m.formula
            );
            if !m.streams.is_empty() {
                out += &format!("- several streams: {}\n", m.streams);
            }
            out += &format!("- source: {}\n", m.source);
        }
        if scope == Scope::Flow {
            out += PAGE_VARIABLES;
        }
    }
    out
}

const PAGE_HEAD: &str = "\
# Metrics

<!-- Made from the table in `crates/suite/src/metrics/table.rs`; a test compares the two. -->

A metric has one definition, used by every command. Names are those of the JSON output, of the columns of `runs.parquet`
and of `metric = ...` in an `[[expect]]`; a dot leads into a JSON object (`rtt_ms.p95` is `\"rtt_ms\": {\"p95\": ...}`).

Values over several seeds are means, with the 95 % Student interval beside them as `<name>_ci95`. A metric that is
undefined (no loss, never recovered, one sample only) is `null`; when it is undefined in some of the seeds the mean is
`null` too and `<name>_undefined` says in how many. An expectation on an undefined metric fails.

Words used below:

- measured part of a flow: from the end of the warm-up, or the flow's start if that is later, to the end of the run, the
  flow's `stop` or the completion of its transfer, whichever is first;
- samples: the payload first delivered in each whole interval (`[measure] interval`, counted from time zero) inside the
  measured part, divided by the interval;
- congestion event: a reduction for a loss, a mark or a local stall, or a timeout; at most one per window;
- round: packet-timed, from the ACK of the first segment sent after the previous round's end to the next such ACK;
- full rate: `min(capacity, window_cap * packet / base_rtt)`, with headers; `base_rtt` is the round-trip propagation delay;
- `cwnd` against time is read from the rounds (one row per RTT) and from the time series, whichever shows a crossing
  earlier; between two rows it is taken as linear.
";

const PAGE_VARIABLES: &str = "
### `var.<name>.last`, `var.<name>.max`

Last and largest value of a variable that the controller reports (`var.w_max.last`, `var.w_gamma.max`).

- unit: the variable's
- formula: over the rows of the time series in which it was reported
- several streams: mean of the last values, largest of the largest
- source: the law's or start-up's file
";

const fn metric(scope: Scope, name: &'static str, unit: &'static str, better: Better) -> Metric {
    Metric {
        name,
        scope,
        unit,
        count: false,
        better,
        about: "",
        formula: "",
        streams: "",
        source: "",
    }
}

impl Metric {
    const fn means(
        mut self,
        about: &'static str,
        formula: &'static str,
        source: &'static str,
    ) -> Metric {
        self.about = about;
        self.formula = formula;
        self.source = source;
        self
    }

    const fn streams(mut self, rule: &'static str) -> Metric {
        self.streams = rule;
        self
    }

    const fn counts(mut self) -> Metric {
        self.count = true;
        self
    }
}

use Better::{Higher, Lower, Neither};
use Scope::{Case, Flow, Link};

const OURS: &str = "definition ours";
const RFC2914: &str = "RFC 5166 section 2.1.1";
const SLAC: &str = "SLAC 2003, spelled out in the algorithm reference, section 5.1";
const NET100: &str = "Net100 2003";

/// Every metric, in the order of columns and JSON keys.
pub const METRICS: &[Metric] = &[
    metric(Flow, "goodput_mbps", "Mbit/s", Higher)
        .means(
            "Payload that reached the receiver for the first time",
            "`8 * mss * delivered / measured part`",
            RFC2914,
        )
        .streams("sum of the segments over the measured part of the flow"),
    metric(Flow, "throughput_mbps", "Mbit/s", Higher)
        .means(
            "Everything of the flow that reached the receiver: IP packets with headers, retransmissions and duplicates included",
            "`8 * packet * arrived / measured part`",
            RFC2914,
        )
        .streams("sum"),
    metric(Flow, "rtt_ms.min", "ms", Lower)
        .means("Smallest RTT sample of the measured part", "minimum", "RFC 6298 section 3")
        .streams("over the samples of all streams"),
    metric(Flow, "rtt_ms.mean", "ms", Lower)
        .means("Mean RTT sample of the measured part", "`sum / count`", "RFC 6298 section 3")
        .streams("over the samples of all streams"),
    metric(Flow, "rtt_ms.p50", "ms", Lower)
        .means("Median RTT sample", "quantile 0.5 of a histogram with 512 buckets per octave (within 0.2 %)", OURS)
        .streams("over the samples of all streams"),
    metric(Flow, "rtt_ms.p95", "ms", Lower)
        .means("95th percentile of the RTT samples", "quantile 0.95 of the same histogram", OURS)
        .streams("over the samples of all streams"),
    metric(Flow, "rtt_ms.p99", "ms", Lower)
        .means("99th percentile of the RTT samples", "quantile 0.99 of the same histogram", OURS)
        .streams("over the samples of all streams"),
    metric(Flow, "cwnd_segments.mean", "segments", Neither)
        .means("Mean congestion window of the measured part", "integral of `cwnd` over time / time", "algorithm reference, section 5.2")
        .streams("sum of the means"),
    metric(Flow, "cwnd_segments.max", "segments", Neither)
        .means("Largest congestion window of the measured part", "maximum", OURS)
        .streams("sum of the maxima, an upper bound of the largest sum"),
    metric(Flow, "retransmits", "segments", Lower)
        .means("Retransmissions since the flow's start", "count", "RFC 5166 section 2.1.2")
        .streams("sum")
        .counts(),
    metric(Flow, "loss_events", "events", Lower)
        .means(
            "Congestion events that reduced the window since the flow's start, at most one per window",
            "count",
            "RFC 5348 section 5.2",
        )
        .streams("sum")
        .counts(),
    metric(Flow, "timeouts", "events", Lower)
        .means("Retransmission timeouts since the flow's start", "count", "RFC 6298 section 5")
        .streams("sum")
        .counts(),
    metric(Flow, "stability", "1", Lower)
        .means(
            "How much the rate varies: coefficient of variation of the goodput samples",
            "population standard deviation of the samples / their mean; at least two samples",
            SLAC,
        )
        .streams("of the sum of the streams' samples"),
    metric(Flow, "recovery_time_s", "s", Lower)
        .means(
            "Time from the first congestion event until the flow is back at full rate; 0 if it never left it, `null` without an event or \
             if it does not return",
            "`recovered_at = { rate = x }` (default, x = 0.95): end of the first round after the event in which \
             `packets delivered * packet / round` is at least `x` of the full rate, once a round below it has been seen; \
             `recovered_at = { window = x }`: first time `cwnd >= x`, once it was below",
            NET100,
        )
        .streams("the longest; `null` if a stream that had an event does not return"),
    metric(Flow, "reopen_time_s", "s", Lower)
        .means(
            "Time from the first congestion event until the window is back at its value before it",
            "first time `cwnd >= cwnd before the event`, once the reduction has shown",
            NET100,
        )
        .streams("the longest; `null` if a stream that had an event does not return"),
    metric(Flow, "decrease_fraction", "1", Neither)
        .means(
            "Part of the window removed by the first congestion event (`b`)",
            "`1 - after / before`, `after` being the window the controller set",
            "RFC 3649 section 5",
        )
        .streams("mean over the streams that had an event"),
    metric(Flow, "increase_per_rtt_first", "segments", Neither)
        .means(
            "Growth of the window per RTT (`a`) where it starts to reopen after the first congestion event",
            "`cwnd` at the end minus `cwnd` at the start of the first round that begins after the window has started to grow again",
            "RFC 3649 section 5",
        )
        .streams("mean over the streams that had an event"),
    metric(Flow, "increase_per_rtt_last", "segments", Neither)
        .means(
            "Growth of the window per RTT just before it is back at its value before the first congestion event",
            "the same for the last round that ends below that value",
            "RFC 3649 section 5",
        )
        .streams("mean over the streams that had an event"),
    metric(Flow, "climb_time_s", "s", Lower)
        .means(
            "Time from the flow's start until the window reaches its cap; `null` without a cap",
            "first time `cwnd >= window_cap`",
            "RFC 3742 section 2, Net100 2003",
        )
        .streams("the longest"),
    metric(Flow, "completion_time_s", "s", Lower)
        .means(
            "Time from the flow's start until the last segment of a finite transfer is acknowledged",
            "`completed - start`",
            "RFC 5166 section 2.1.1",
        )
        .streams("the last stream"),
    metric(Flow, "share", "1", Neither)
        .means("Part of the goodput of all flows", "`x_i / sum x`", SLAC),
    metric(Flow, "rtt_inflation", "1", Lower)
        .means(
            "How much the flow's load lengthens the path",
            "`(mean RTT - base_rtt) / base_rtt`, of the flow's own samples",
            SLAC,
        )
        .streams("over the samples of all streams"),
    metric(Flow, "retransmit_rate", "1", Lower)
        .means("Part of the segments sent that are retransmissions", "`retransmits / sent`", SLAC)
        .streams("of the sums"),
    metric(Flow, "out_of_order_rate", "1", Lower)
        .means(
            "Part of the segments sent that arrive below the highest sequence seen without being retransmissions",
            "`out of order / sent`",
            SLAC,
        )
        .streams("of the sums"),
    metric(Flow, "loss_event_rate", "1", Neither)
        .means(
            "Congestion events per delivered segment of the measured part (`p` of a response function)",
            "`loss events / delivered`, both from the end of the warm-up",
            "RFC 3649 section 5, RFC 5348 section 5",
        )
        .streams("of the sums"),
    metric(Flow, "first_loss_s", "s", Neither)
        .means("Time from the flow's start to its first congestion event", "`at - start`", OURS)
        .streams("the earliest"),
    metric(Flow, "first_loss_cwnd", "segments", Neither)
        .means("Window just before the first congestion event", "`before`", OURS)
        .streams("of the earliest"),
    metric(Flow, "startup_exit_s", "s", Neither)
        .means(
            "Time from the flow's start until start-up was left, by a reduction or by itself",
            "first congestion event or start-up exit",
            OURS,
        )
        .streams("the earliest"),
    metric(Flow, "startup_exit_cwnd", "segments", Neither)
        .means("Window when start-up was left", "`before` of the same", OURS)
        .streams("of the earliest"),
    metric(Flow, "sent_segments", "segments", Neither)
        .means("Data segments sent since the flow's start, retransmissions included", "count", OURS)
        .streams("sum")
        .counts(),
    metric(Flow, "delivered_segments", "segments", Higher)
        .means("Segments that reached the receiver for the first time, since the flow's start", "count", OURS)
        .streams("sum")
        .counts(),
    metric(Flow, "undone", "events", Neither)
        .means("Reductions undone as spurious since the flow's start", "count", "RFC 5682, RFC 3708")
        .streams("sum")
        .counts(),
    metric(Flow, "local_stalls", "segments", Lower)
        .means("Segments refused by the sender's own interface queue since the flow's start", "count", NET100)
        .streams("sum")
        .counts(),
    metric(Link, "utilization", "1", Higher).means(
        "Part of the capacity used",
        "bytes that left since the end of the warm-up / (capacity * time); 0 for a pure delay",
        "RFC 5166 section 2.1.1",
    ),
    metric(Link, "drops", "packets", Lower)
        .means("Packets lost at the link since time zero", "buffer drops + random drops", "RFC 5166 section 2.1.2")
        .counts(),
    metric(Link, "buffer_drops", "packets", Lower)
        .means("Packets lost to a full buffer since time zero", "count", "RFC 5166 section 2.1.2")
        .counts(),
    metric(Link, "random_drops", "packets", Neither)
        .means("Packets lost at random since time zero", "count", OURS)
        .counts(),
    metric(Link, "delivered_packets", "packets", Higher)
        .means("Packets that left the transmitter since time zero", "count", OURS)
        .counts(),
    metric(Link, "queue_packets.mean", "packets", Lower).means(
        "Mean queue of the measured part, the packet in transmission included",
        "integral of the queue over time / time",
        OURS,
    ),
    metric(Link, "queue_packets.max", "packets", Lower)
        .means("Largest queue of the measured part", "maximum", OURS)
        .counts(),
    metric(Case, "jain", "1", Higher).means(
        "Jain's fairness of the flows' goodput; 1 when all are equal, `1/n` when one has everything",
        "`(sum x)^2 / (n * sum x^2)`, x = goodput of a flow (all its streams); `null` when nothing was delivered",
        "Jain 1984, RFC 5166 section 2.3.1, SLAC 2003",
    ),
    metric(Case, "asymmetry", "1", Neither).means(
        "Who gets more of the first two flows; `null` with one flow",
        "`(x1 - x2) / (x1 + x2)` in the order of the scenario",
        SLAC,
    ),
    metric(Case, "aggregate_goodput_mbps", "Mbit/s", Higher).means(
        "Payload first delivered by all flows",
        "`sum of 8 * mss * delivered / (duration - warm-up)`",
        "RFC 5166 section 2.1.1",
    ),
    metric(Case, "convergence_time_s", "s", Lower).means(
        "Time from the start of the last flow until the flows share fairly; `null` with one flow or if they never do",
        "beginning of the first of 3 consecutive samples with Jain's fairness >= 0.95, counted from that start",
        SLAC,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_is_described_and_named_once() {
        let mut seen = BTreeSet::new();
        for m in METRICS {
            assert!(seen.insert(m.name), "{} twice", m.name);
            assert!(
                !m.unit.is_empty()
                    && !m.about.is_empty()
                    && !m.formula.is_empty()
                    && !m.source.is_empty(),
                "{}",
                m.name
            );
            assert!(!m.about.ends_with('.'), "{}", m.name);
            assert!(!is_variable(m.name));
        }
    }

    #[test]
    fn names_that_share_an_object_stand_together() {
        let heads: Vec<_> = METRICS
            .iter()
            .map(|m| (m.scope, m.name.split('.').next().unwrap()))
            .collect();
        let mut seen = BTreeSet::new();
        for pair in heads.windows(2) {
            if pair[0] != pair[1] {
                assert!(seen.insert(pair[0]), "{:?} in two places", pair[0]);
            }
        }
    }

    #[test]
    fn variables_are_recognised() {
        assert!(is_variable("var.w_max.last") && is_variable("var.w_gamma.max"));
        assert!(
            !is_variable("var..max") && !is_variable("var.w_max") && !is_variable("w_max.last")
        );
        assert_eq!(scope_of("jain"), Some(Scope::Case));
        assert_eq!(scope_of("var.k.last"), Some(Scope::Flow));
        assert_eq!(scope_of("nope"), None);
    }
}
