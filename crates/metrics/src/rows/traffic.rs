//! Metrics of what is not a lasting flow: short flows that come and go, datagrams, probes.

use crate::metric::Better::{Higher, Lower, Neither};
use crate::metric::{Metric, traffic};
use crate::number::{mean, mean_millis, millis, quantile, ratio};
use crate::view::{inflation, stability};

const OURS: &str = "definition ours";
const RFC2914: &str = "RFC 5166 section 2.1.1";
const SLAC: &str = "\
SLAC 2003 (Cottrell and Bulot, \"Evaluation of Advanced TCP Stacks on Fast Long-Distance \
Production Networks\")";
const FCT: &str = "RFC 5166 section 2.1.1, Initial Spreading 2014";
const SPREADING: &str = "Initial Spreading 2014";
const RFC7679: &str = "RFC 7679";

/// Metrics of traffic, in the order of columns and JSON keys.
pub const TRAFFIC: &[Metric] = &[
    traffic("arrivals", "flows", Neither)
        .means(
            "Short flows that started in the measured part",
            "count",
            OURS,
        )
        .short_flows(|s| Some(s.counted.len() as f64))
        .counts().column("arrivals"),
    traffic("completed", "flows", Higher)
        .means(
            "Those of them that finished before the end of the run",
            "count",
            OURS,
        )
        .short_flows(|s| Some(s.times.len() as f64))
        .counts().column("completed"),
    traffic("completion_time_s.mean", "s", Lower)
        .means(
            "Mean time from a short flow's start until its last segment was acknowledged",
            "over those that started in the measured part and finished before the end of the run",
            FCT,
        )
        .short_flows(|s| mean(&s.times)).titled("Completion time, mean").column_of_two("complete", "mean s"),
    traffic("completion_time_s.p50", "s", Lower)
        .means(
            "Median of the completion times",
            "smallest value that half of them do not exceed",
            FCT,
        )
        .short_flows(|s| quantile(&s.times, 0.50)).titled("Completion time, median"),
    traffic("completion_time_s.p95", "s", Lower)
        .means(
            "95th percentile of the completion times",
            "smallest value that 95 % of them do not exceed",
            FCT,
        )
        .short_flows(|s| quantile(&s.times, 0.95)).titled("Completion time, 95th percentile").column_of_two("complete", "p95 s"),
    traffic("completion_time_s.p99", "s", Lower)
        .means(
            "99th percentile of the completion times",
            "smallest value that 99 % of them do not exceed",
            FCT,
        )
        .short_flows(|s| quantile(&s.times, 0.99)).titled("Completion time, 99th percentile"),
    traffic("completion_time_s.max", "s", Lower)
        .means("Longest of the completion times", "maximum", FCT)
        .short_flows(|s| s.times.last().copied()).titled("Completion time, longest"),
    traffic("slowdown.mean", "1", Lower)
        .means(
            "Mean of the completion time against that of an empty path without slow start",
            "`completion time / (base RTT + 8 * packet * segments / rate)`, base RTT as scheduled at \
             its start, rate of the slowest link on the way out",
            OURS,
        )
        .short_flows(|s| mean(&s.slowdown)),
    traffic("slowdown.p95", "1", Lower)
        .means(
            "95th percentile of the same",
            "smallest value that 95 % of them do not exceed",
            OURS,
        )
        .short_flows(|s| quantile(&s.slowdown, 0.95)),
    traffic("initial_loss.p", "1", Lower)
        .part().means(
            "Part of the first transmissions of the initial window that was lost",
            "`lost / sent` over the first segments of every short flow, at most the initial \
             window of each",
            SPREADING,
        )
        .short_flows(|s| s.initial_loss().any),
    traffic("initial_loss.given_previous", "1", Lower)
        .part().means(
            "The same for the segments whose predecessor in the initial window was lost; equal to \
             `initial_loss.p` where losses are independent",
            "`P(segment i + 1 lost | segment i lost)`",
            SPREADING,
        )
        .short_flows(|s| s.initial_loss().given[0]),
    traffic("initial_loss.given_second", "1", Lower)
        .part().means(
            "The same for the segments whose last but one in the initial window was lost",
            "`P(segment i + 2 lost | segment i lost)`",
            SPREADING,
        )
        .short_flows(|s| s.initial_loss().given[1]),
    traffic("initial_loss.given_third", "1", Lower)
        .part().means(
            "The same for the segments whose last but two in the initial window was lost",
            "`P(segment i + 3 lost | segment i lost)`",
            SPREADING,
        )
        .short_flows(|s| s.initial_loss().given[2]),
    traffic("goodput_mbps", "Mbit/s", Higher)
        .means(
            "Payload of short flows that reached its receiver for the first time",
            "`8 * mss * delivered / (duration - warm-up)`",
            RFC2914,
        )
        .short_flows(|s| {
            let mbit = 8e-6 * f64::from(s.class.mss) * s.class.totals.delivered_measured as f64;
            ratio(mbit, s.seconds())
        }).titled("Goodput").column("goodput"),
    traffic("sent_mbps", "Mbit/s", Neither)
        .means(
            "Datagrams sent, with headers",
            "`8 * packet * sent / measured part`, which ends with `stop` or with the last byte of \
             `volume`",
            OURS,
        )
        .datagrams(|d| ratio(d.mbit(d.source.sent_measured), d.seconds())).column("sent"),
    traffic("received_mbps", "Mbit/s", Higher)
        .means(
            "Datagrams that arrived, with headers",
            "`8 * packet * arrived / measured part`",
            RFC2914,
        )
        .datagrams(|d| ratio(d.mbit(d.source.arrived_measured), d.seconds_of_arrival())).column("received"),
    traffic("delay_ms.min", "ms", Lower)
        .means(
            "Smallest one-way delay of a datagram of the measured part; like the others below unknown \
             between two hosts, whose clocks differ",
            "minimum",
            RFC7679,
        )
        .datagrams(|d| millis(d.source.delay.min())),
    traffic("delay_ms.mean", "ms", Lower)
        .means("Mean one-way delay", "`sum / count`", RFC7679)
        .datagrams(|d| mean_millis(&d.source.delay)).column("delay mean"),
    traffic("delay_ms.p50", "ms", Lower)
        .means(
            "Median one-way delay",
            "quantile 0.5 of a histogram with 512 buckets per octave (within 0.2 %)",
            RFC7679,
        )
        .datagrams(|d| millis(d.source.delay.quantile(0.50))),
    traffic("delay_ms.p95", "ms", Lower)
        .means(
            "95th percentile of the one-way delay",
            "quantile 0.95 of the same histogram",
            RFC7679,
        )
        .datagrams(|d| millis(d.source.delay.quantile(0.95))).column("delay p95"),
    traffic("delay_ms.p99", "ms", Lower)
        .means(
            "99th percentile of the one-way delay",
            "quantile 0.99 of the same histogram",
            RFC7679,
        )
        .datagrams(|d| millis(d.source.delay.quantile(0.99))),
    traffic("rtt_ms.min", "ms", Lower)
        .means("Smallest RTT sample of the measured part", "minimum", OURS)
        .short_flows(|s| millis(s.class.rtt.min()))
        .probes(|p| millis(p.source.delay.min())).titled("RTT, smallest"),
    traffic("rtt_ms.mean", "ms", Lower)
        .means("Mean RTT sample", "`sum / count`", OURS)
        .short_flows(|s| mean_millis(&s.class.rtt))
        .probes(|p| mean_millis(&p.source.delay)).titled("RTT, mean").column("rtt mean"),
    traffic("rtt_ms.p50", "ms", Lower)
        .means(
            "Median RTT sample",
            "quantile 0.5 of a histogram with 512 buckets per octave (within 0.2 %)",
            OURS,
        )
        .short_flows(|s| millis(s.class.rtt.quantile(0.50)))
        .probes(|p| millis(p.source.delay.quantile(0.50))).titled("RTT, median"),
    traffic("rtt_ms.p95", "ms", Lower)
        .means(
            "95th percentile of the RTT samples",
            "quantile 0.95 of the same histogram",
            OURS,
        )
        .short_flows(|s| millis(s.class.rtt.quantile(0.95)))
        .probes(|p| millis(p.source.delay.quantile(0.95))).titled("RTT, 95th percentile").column("rtt p95"),
    traffic("rtt_ms.p99", "ms", Lower)
        .means(
            "99th percentile of the RTT samples",
            "quantile 0.99 of the same histogram",
            OURS,
        )
        .short_flows(|s| millis(s.class.rtt.quantile(0.99)))
        .probes(|p| millis(p.source.delay.quantile(0.99))).titled("RTT, 99th percentile"),
    traffic("rtt_inflation", "1", Lower).titled("RTT inflation")
        .means(
            "How much load lengthens the path, as pings see it",
            "`(mean RTT - unloaded RTT) / unloaded RTT`; unloaded: delays and transmission times \
             of request and answer; where the delay is scheduled, its mean over the measured part",
            SLAC,
        )
        .probes(|p| inflation(p.source.delay.mean_s()?, p.unloaded_s)).column("inflation"),
    traffic("sent_packets", "packets", Neither)
        .means("Datagrams or requests sent since the start", "count", OURS)
        .datagrams(|d| Some(d.source.sent as f64))
        .probes(|p| Some(p.source.sent as f64))
        .counts(),
    traffic("received_packets", "packets", Higher)
        .means("Datagrams that arrived since the start", "count", OURS)
        .datagrams(|d| Some(d.source.arrived as f64))
        .counts(),
    traffic("loss_rate", "1", Lower)
        .part().means(
            "Part of what was sent that was dropped on the way",
            "`dropped / sent` since the start; of probes: requests or answers lost / requests; of \
             a network that does not say what it drops, `dropped` is what is missing before the \
             last that arrived",
            "RFC 5166 section 2.1.2",
        )
        .short_flows(|s| ratio(s.class.totals.dropped as f64, s.sent()))
        .datagrams(|d| ratio(d.source.dropped as f64, d.source.sent as f64))
        .probes(|p| ratio(p.source.dropped as f64, p.source.sent as f64)).column("loss rate"),
    traffic("retransmits", "segments", Lower)
        .means(
            "Retransmissions of all short flows",
            "count",
            "RFC 5166 section 2.1.2",
        )
        .short_flows(|s| Some(s.class.totals.retransmits as f64))
        .counts().titled("Retransmissions"),
    traffic("retransmit_rate", "1", Lower)
        .part().means(
            "Part of the segments sent that are retransmissions",
            "`retransmits / sent`",
            SLAC,
        )
        .short_flows(|s| ratio(s.class.totals.retransmits as f64, s.sent())),
    traffic("timeouts", "events", Lower)
        .means(
            "Retransmission timeouts of all short flows",
            "count",
            "RFC 6298 section 5",
        )
        .short_flows(|s| Some(s.class.totals.timeouts as f64))
        .counts(),
    traffic("stability", "1", Lower)
        .means(
            "How much the rate varies: coefficient of variation of what arrived per interval",
            "population standard deviation of the samples / their mean; at least two samples",
            SLAC,
        )
        .short_flows(|s| stability(&s.samples()))
        .datagrams(|d| stability(&d.samples())).titled("Stability"),
];
