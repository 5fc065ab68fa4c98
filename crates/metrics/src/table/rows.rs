//! Every metric: what it says, its formula, its source.

use super::Better::{Higher, Lower, Neither};
use super::Scope::{Case, Flow, Link, Traffic};
use super::{Metric, metric};

const OURS: &str = "definition ours";
const RFC2914: &str = "RFC 5166 section 2.1.1";
const SLAC: &str = "SLAC 2003, spelled out in the algorithm reference, section 5.1";
const NET100: &str = "Net100 2003";

const FCT: &str = "RFC 5166 section 2.1.1, Initial Spreading 2014";
const SPREADING: &str = "Initial Spreading 2014";
const RFC7679: &str = "RFC 7679";
const WUSTL: &str = "\
definition of an epoch ours; after \"Loss Synchronization of TCP Connections at a Shared Bottleneck Link\", Washington University 2006";
const TCPEVAL: &str = "draft-irtf-iccrg-tcpeval, impact on standard traffic";
const WARE: &str = "Ware et al. 2019, taken against a baseline case instead of the others alone";

const SHORT: &str = "short flows";
const DATAGRAMS: &str = "datagrams";
const PROBES: &str = "probes";
const RTT: &str = "short flows, probes";
const PACKETS: &str = "datagrams, probes";
const CARRIERS: &str = "short flows, datagrams";
const ALL: &str = "short flows, datagrams, probes";

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
    metric(Flow, "loss_rate", "1", Lower)
        .means(
            "Part of the segments sent that the path dropped",
            "`dropped / sent`, retransmissions included in both, since the flow's start; of a network that does not say what it drops, `dropped` is retransmissions - duplicates at the receiver",
            "RFC 5166 section 2.1.2",
        )
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
    metric(Flow, "stream_synchronization", "1", Lower)
        .means(
            "Whether the streams of the flow lose together: the mean part of them that takes part in a congestion epoch, `1/n` to 1; `null` \
             with one stream or without an event",
            "like `synchronization`, over the streams of the flow",
            WUSTL,
        )
        .streams("over all streams"),
    metric(Traffic, "arrivals", "flows", Neither)
        .means("Short flows that started in the measured part", "count", OURS)
        .kinds(SHORT)
        .counts(),
    metric(Traffic, "completed", "flows", Higher)
        .means("Those of them that finished before the end of the run", "count", OURS)
        .kinds(SHORT)
        .counts(),
    metric(Traffic, "completion_time_s.mean", "s", Lower)
        .means(
            "Mean time from a short flow's start until its last segment was acknowledged",
            "over those that started in the measured part and finished before the end of the run",
            FCT,
        )
        .kinds(SHORT),
    metric(Traffic, "completion_time_s.p50", "s", Lower)
        .means("Median of the completion times", "smallest value that half of them do not exceed", FCT)
        .kinds(SHORT),
    metric(Traffic, "completion_time_s.p95", "s", Lower)
        .means("95th percentile of the completion times", "smallest value that 95 % of them do not exceed", FCT)
        .kinds(SHORT),
    metric(Traffic, "completion_time_s.p99", "s", Lower)
        .means("99th percentile of the completion times", "smallest value that 99 % of them do not exceed", FCT)
        .kinds(SHORT),
    metric(Traffic, "completion_time_s.max", "s", Lower)
        .means("Longest of the completion times", "maximum", FCT)
        .kinds(SHORT),
    metric(Traffic, "slowdown.mean", "1", Lower)
        .means(
            "Mean of the completion time against that of an empty path without slow start",
            "`completion time / (base RTT + 8 * packet * segments / rate)`, rate of the slowest link on the way out",
            OURS,
        )
        .kinds(SHORT),
    metric(Traffic, "slowdown.p95", "1", Lower)
        .means("95th percentile of the same", "smallest value that 95 % of them do not exceed", OURS)
        .kinds(SHORT),
    metric(Traffic, "initial_loss.p", "1", Lower)
        .means(
            "Part of the first transmissions of the initial window that was lost",
            "`lost / sent` over the first segments of every short flow, at most the initial window of each",
            SPREADING,
        )
        .kinds(SHORT),
    metric(Traffic, "initial_loss.given_previous", "1", Lower)
        .means(
            "The same for the segments whose predecessor in the initial window was lost; equal to `initial_loss.p` where losses are independent",
            "`P(segment i + 1 lost | segment i lost)`",
            SPREADING,
        )
        .kinds(SHORT),
    metric(Traffic, "goodput_mbps", "Mbit/s", Higher)
        .means(
            "Payload of short flows that reached its receiver for the first time",
            "`8 * mss * delivered / (duration - warm-up)`",
            RFC2914,
        )
        .kinds(SHORT),
    metric(Traffic, "sent_mbps", "Mbit/s", Neither)
        .means("Datagrams sent, with headers", "`8 * packet * sent / measured part`", OURS)
        .kinds(DATAGRAMS),
    metric(Traffic, "received_mbps", "Mbit/s", Higher)
        .means("Datagrams that arrived, with headers", "`8 * packet * arrived / measured part`", RFC2914)
        .kinds(DATAGRAMS),
    metric(Traffic, "delay_ms.min", "ms", Lower)
        .means("Smallest one-way delay of a datagram of the measured part", "minimum", RFC7679)
        .kinds(DATAGRAMS),
    metric(Traffic, "delay_ms.mean", "ms", Lower)
        .means("Mean one-way delay", "`sum / count`", RFC7679)
        .kinds(DATAGRAMS),
    metric(Traffic, "delay_ms.p50", "ms", Lower)
        .means("Median one-way delay", "quantile 0.5 of a histogram with 512 buckets per octave (within 0.2 %)", RFC7679)
        .kinds(DATAGRAMS),
    metric(Traffic, "delay_ms.p95", "ms", Lower)
        .means("95th percentile of the one-way delay", "quantile 0.95 of the same histogram", RFC7679)
        .kinds(DATAGRAMS),
    metric(Traffic, "delay_ms.p99", "ms", Lower)
        .means("99th percentile of the one-way delay", "quantile 0.99 of the same histogram", RFC7679)
        .kinds(DATAGRAMS),
    metric(Traffic, "rtt_ms.min", "ms", Lower)
        .means("Smallest RTT sample of the measured part", "minimum", OURS)
        .kinds(RTT),
    metric(Traffic, "rtt_ms.mean", "ms", Lower)
        .means("Mean RTT sample", "`sum / count`", OURS)
        .kinds(RTT),
    metric(Traffic, "rtt_ms.p50", "ms", Lower)
        .means("Median RTT sample", "quantile 0.5 of a histogram with 512 buckets per octave (within 0.2 %)", OURS)
        .kinds(RTT),
    metric(Traffic, "rtt_ms.p95", "ms", Lower)
        .means("95th percentile of the RTT samples", "quantile 0.95 of the same histogram", OURS)
        .kinds(RTT),
    metric(Traffic, "rtt_ms.p99", "ms", Lower)
        .means("99th percentile of the RTT samples", "quantile 0.99 of the same histogram", OURS)
        .kinds(RTT),
    metric(Traffic, "rtt_inflation", "1", Lower)
        .means(
            "How much load lengthens the path, as pings see it",
            "`(mean RTT - unloaded RTT) / unloaded RTT`; unloaded: delays and transmission times of request and answer",
            SLAC,
        )
        .kinds(PROBES),
    metric(Traffic, "sent_packets", "packets", Neither)
        .means("Datagrams or requests sent since the start", "count", OURS)
        .kinds(PACKETS)
        .counts(),
    metric(Traffic, "received_packets", "packets", Higher)
        .means("Datagrams that arrived since the start", "count", OURS)
        .kinds(DATAGRAMS)
        .counts(),
    metric(Traffic, "loss_rate", "1", Lower)
        .means(
            "Part of what was sent that was dropped on the way",
            "`dropped / sent` since the start; of probes: requests or answers lost / requests; of a network that does not say what it drops, `dropped` is what is missing before the last that arrived",
            "RFC 5166 section 2.1.2",
        )
        .kinds(ALL),
    metric(Traffic, "retransmits", "segments", Lower)
        .means("Retransmissions of all short flows", "count", "RFC 5166 section 2.1.2")
        .kinds(SHORT)
        .counts(),
    metric(Traffic, "retransmit_rate", "1", Lower)
        .means("Part of the segments sent that are retransmissions", "`retransmits / sent`", SLAC)
        .kinds(SHORT),
    metric(Traffic, "timeouts", "events", Lower)
        .means("Retransmission timeouts of all short flows", "count", "RFC 6298 section 5")
        .kinds(SHORT)
        .counts(),
    metric(Traffic, "stability", "1", Lower)
        .means(
            "How much the rate varies: coefficient of variation of what arrived per interval",
            "population standard deviation of the samples / their mean; at least two samples",
            SLAC,
        )
        .kinds(CARRIERS),
    metric(Link, "utilization", "1", Higher).means(
        "Part of the capacity used",
        "bytes that left since the end of the warm-up / (capacity * time); 0 for a pure delay",
        "RFC 5166 section 2.1.1",
    ),
    metric(Link, "drops", "packets", Lower)
        .means("Packets lost at the link since time zero", "buffer drops + random drops + policer drops + early drops", "RFC 5166 section 2.1.2")
        .counts(),
    metric(Link, "buffer_drops", "packets", Lower)
        .means("Packets lost to a full buffer since time zero", "count", "RFC 5166 section 2.1.2")
        .counts(),
    metric(Link, "random_drops", "packets", Neither)
        .means("Packets lost at random since time zero", "count", OURS)
        .counts(),
    metric(Link, "policer_drops", "packets", Neither)
        .means("Packets that exceeded the policer's bucket since time zero", "count", "RFC 2475 section 2.3.3.3")
        .counts(),
    metric(Link, "early_drops", "packets", Neither)
        .means("Packets that the queue discipline dropped before the buffer was full, since time zero", "count", "RFC 7567 section 4")
        .counts(),
    metric(Link, "marks", "packets", Neither)
        .means("Packets that the queue discipline marked instead, since time zero", "count", "RFC 3168 section 5")
        .counts(),
    metric(Link, "drop_rate", "1", Lower).means(
        "Part of the packets that came to the link which it dropped, since time zero",
        "`drops / offered`",
        "RFC 5166 section 2.1.2",
    ),
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
    metric(Link, "queueing_delay_ms.min", "ms", Lower).means(
        "Shortest wait of a packet that left in the measured part, from its entry to the begin of its transmission; `null` for a \
         link whose waits are not recorded",
        "minimum",
        "RFC 5166 section 2.2",
    ),
    metric(Link, "queueing_delay_ms.mean", "ms", Lower).means("Mean wait", "`sum / count`", "RFC 5166 section 2.2"),
    metric(Link, "queueing_delay_ms.p50", "ms", Lower).means(
        "Median wait",
        "quantile 0.5 of a histogram with 512 buckets per octave (within 0.2 %)",
        "RFC 5166 section 2.2",
    ),
    metric(Link, "queueing_delay_ms.p95", "ms", Lower).means(
        "95th percentile of the waits",
        "quantile 0.95 of the same histogram",
        "RFC 5166 section 2.2",
    ),
    metric(Link, "queueing_delay_ms.p99", "ms", Lower).means(
        "99th percentile of the waits",
        "quantile 0.99 of the same histogram",
        "RFC 5166 section 2.2",
    ),
    metric(Link, "queueing_delay_ms.max", "ms", Lower).means("Longest wait", "maximum", "RFC 5166 section 2.2"),
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
    metric(Case, "rtt_unfairness", "1", Neither).means(
        "How the shares of the first two flows follow their RTTs: 0 equal shares, 1 inverse to the RTT; `null` for equal base RTTs",
        "exponent `a` of `x1 / x2 = (R2 / R1)^a`: `ln(x1 / x2) / ln(R2 / R1)`, x = goodput, R = base RTT",
        "Lakshman and Madhow 1997",
    ),
    metric(Case, "synchronization", "1", Lower).means(
        "Whether flows lose together: the mean part of all streams that takes part in a congestion epoch, `1/n` to 1; `null` with \
         one stream or without an event",
        "an epoch begins with a congestion event and takes in those of the next longest base RTT; part: streams with an event in \
         it / streams present; mean over the epochs that begin in the measured part",
        WUSTL,
    ),
    metric(Case, "gain", "1", Higher).means(
        "What the first flow gets against the baseline case; `null` without one",
        "`x_first / x_first of the baseline`, seed by seed, x = goodput; the baseline is the case that `[measure] baseline` names",
        TCPEVAL,
    ),
    metric(Case, "loss", "1", Higher).means(
        "What is left to the other flows against the baseline case: 1 is no loss",
        "`x_others / x_others of the baseline`, x = sum of the goodput of all flows but the first",
        TCPEVAL,
    ),
    metric(Case, "harm.throughput", "1", Lower).means(
        "Harm to the goodput of the other flows beyond that of the baseline; negative if they fare better",
        "`(b - x) / b`, x = sum of the goodput of all flows but the first, b = the same of the baseline",
        WARE,
    ),
    metric(Case, "harm.rtt", "1", Lower).means(
        "Harm to the delay of the other flows",
        "`(x - b) / x`, x = mean over all flows but the first of their mean RTT, b = the same of the baseline",
        WARE,
    ),
    metric(Case, "harm.completion_time", "1", Lower).means(
        "Harm to the completion time of short flows",
        "`(x - b) / x`, x = mean completion time of all short flows, b = the same of the baseline",
        WARE,
    ),
];
