//! Metrics of one flow, all its streams together.

use fullpipe_flow::Limit;
use fullpipe_run::FlowOutcome;

use crate::RecoveredAt;
use crate::delivery::delivery_time;
use crate::metric::Better::{Higher, Lower, Neither};
use crate::metric::{Metric, UNBOUNDED, flow};
use crate::number::{finite, mean_millis, millis, ratio};
use crate::sharing::jain;
use crate::synchronization::synchronization;
use crate::view::{goodput, inflation, stability};
use crate::window_recovery::{
    climb_time, decrease, first_event, growth_per_round, recovery_time, reopen_time, startup_exit,
    time_from,
};

const OURS: &str = "definition ours";
const RFC2914: &str = "RFC 5166 section 2.1.1";
const SLAC: &str = "\
SLAC 2003 (Cottrell and Bulot, \"Evaluation of Advanced TCP Stacks on Fast Long-Distance \
Production Networks\")";
const LINUX: &str = "\
words ours; after Linux `tcp_chrono_start`, `net/ipv4/tcp_output.c` (`TCP_INFO`: busy, rwnd-limited and \
sndbuf-limited time)";
const NET100: &str = "Net100 2003";
const WUSTL: &str = "\
definition of an epoch ours; after \"Loss Synchronization of TCP Connections at a Shared \
Bottleneck Link\", Washington University 2006";

/// The time until so many bytes of a flow, `1500 * 10^n`, have been delivered.
macro_rules! delivered {
    ($name:literal, $bytes:literal) => {
        flow($name, "s", Lower, |f| {
            f.latest(|m| delivery_time(m, $bytes))
        })
        .means(
            concat!(
                "Time from the flow's start until ",
                stringify!($bytes),
                " bytes of its payload have been acknowledged: how fast those that are there make \
                 room; `null` if the run ends before, or within the round trip in which it is"
            ),
            "first time `acknowledged >= ceil(bytes / mss)`, linear within a round trip",
            "draft-irtf-iccrg-tcpeval-01 section 5.2.3, which counts from the receiver's side: \
             half an RTT less",
        )
        .streams("the last stream")
    };
}

/// Metrics of a flow, in the order of columns and JSON keys.
pub const FLOW: &[Metric] = &[
    flow("goodput_mbps", "Mbit/s", Higher, |f| {
        goodput(f.group, f.members, f.case.outcome)
    })
    .means(
        "Payload that reached the receiver for the first time",
        "`8 * mss * delivered / measured part`",
        RFC2914,
    )
    .streams("sum of the segments over the measured part of the flow").titled("Goodput").column("goodput"),
    flow("throughput_mbps", "Mbit/s", Higher, |f| {
        let mbit = f.sum(|m| 8e-6 * f64::from(m.packet) * m.totals.arrived_measured as f64);
        ratio(mbit, f.seconds())
    })
    .means(
        "Everything of the flow that reached the receiver: IP packets with headers, \
             retransmissions and duplicates included, a `drop` at the receiver not",
        "`8 * packet * arrived / measured part`",
        RFC2914,
    )
    .streams("sum").titled("Throughput"),
    flow("rtt_ms.min", "ms", Lower, |f| millis(f.rtt.min()))
        .means(
            "Smallest RTT sample of the measured part; in preset `linux` and on the ground linux up \
             to 1 ms below what the path did, as an ACK for retransmissions alone is timed by its \
             stamp in whole milliseconds (`tcp_ack_update_rtt`)",
            "minimum",
            "RFC 6298 section 3",
        )
        .streams("over the samples of all streams").titled("RTT, smallest"),
    flow("rtt_ms.mean", "ms", Lower, |f| mean_millis(&f.rtt))
        .means(
            "Mean RTT sample of the measured part",
            "`sum / count`",
            "RFC 6298 section 3",
        )
        .streams("over the samples of all streams").titled("RTT, mean").column("rtt mean"),
    flow("rtt_ms.p50", "ms", Lower, |f| millis(f.rtt.quantile(0.50)))
        .means(
            "Median RTT sample",
            "quantile 0.5 of a histogram with 512 buckets per octave (within 0.2 %)",
            OURS,
        )
        .streams("over the samples of all streams").titled("RTT, median"),
    flow("rtt_ms.p95", "ms", Lower, |f| millis(f.rtt.quantile(0.95)))
        .means(
            "95th percentile of the RTT samples",
            "quantile 0.95 of the same histogram",
            OURS,
        )
        .streams("over the samples of all streams").titled("RTT, 95th percentile").column("rtt p95"),
    flow("rtt_ms.p99", "ms", Lower, |f| millis(f.rtt.quantile(0.99)))
        .means(
            "99th percentile of the RTT samples",
            "quantile 0.99 of the same histogram",
            OURS,
        )
        .streams("over the samples of all streams").titled("RTT, 99th percentile"),
    flow("cwnd_segments.mean", "segments", Neither, |f| {
        (f.seconds() > 0.0).then(|| finite(f.sum(|m| m.cwnd_mean)))?
    })
    .means(
        "Mean congestion window of the measured part",
        "integral of `cwnd` over time / time",
        "RFC 3649 section 5",
    )
    .streams("sum of the means").titled("Window, mean").column("cwnd mean"),
    flow("cwnd_segments.max", "segments", Neither, |f| {
        (f.seconds() > 0.0).then(|| finite(f.sum(|m| m.cwnd_max)))?
    })
    .means(
        "Largest congestion window of the measured part",
        "maximum",
        OURS,
    )
    .streams("sum of the maxima, an upper bound of the largest sum").titled("Window, largest").column("cwnd max"),
    flow("retransmits", "segments", Lower, |f| Some(f.retransmits()))
        .means(
            "Retransmissions since the flow's start",
            "count",
            "RFC 5166 section 2.1.2",
        )
        .streams("sum")
        .counts().titled("Retransmissions").column("rexmit"),
    flow("loss_events", "events", Lower, |f| {
        Some(f.sum(|m| m.totals.loss_events as f64))
    })
    .means(
        "Congestion events since the flow's start, for a loss, a mark or a local stall, at most \
             one per window; timeouts are counted by `timeouts`",
        "count",
        "RFC 5348 section 5.2",
    )
    .streams("sum")
    .counts().titled("Loss events").column("events"),
    flow("timeouts", "events", Lower, |f| {
        Some(f.sum(|m| m.totals.timeouts as f64))
    })
    .means(
        "Retransmission timeouts of segments since the flow's start; a SYN that is lost shows in \
         times alone (`completion_time_s`)",
        "count",
        "RFC 6298 section 5",
    )
    .streams("sum")
    .counts().column("timeouts"),
    flow("stability", "1", Lower, |f| stability(&f.samples()))
        .means(
            "How much the rate varies: coefficient of variation of the goodput samples",
            "population standard deviation of the samples / their mean; at least two samples",
            SLAC,
        )
        .streams("of the sum of the streams' samples").titled("Stability"),
    flow("recovery_time_s", "s", Lower, |f| {
        let of_rate = matches!(f.group.recovered_at, RecoveredAt::Rate(_));
        if of_rate && !f.case.path_is_known() {
            return None;
        }
        match f.group.recovered_from {
            Some(from) => f.latest(|m| time_from(f.group, m, from)),
            None => f.longest(|m, event| recovery_time(f.group, m, event)),
        }
    })
    .means(
        "Time from the first congestion event until the flow is back at full rate; 0 if the \
             event did not take it there, `null` without an event, if it does not return, and on a \
             real path, whose full rate nobody knows",
        "`recovered_at = { rate = x }` (default, x = 0.95): end of the first round after the \
             event in which `packets delivered * packet / round` is at least `x` of the full \
             rate, once a round below it has been seen; packets beyond the round's window \
             arrived before it and are left out; rounds that are over before the path's RTT are \
             taken together until it has passed; reductions that follow one another within 3 \
             rounds are one episode, which ends with the last; a fall that begins more than 3 \
             rounds after it is not the event's; `recovered_at = { window = x }`: first time \
             `cwnd >= x`, once it was below; with `from` the first time at or after it that this \
             holds, whether it was below or not",
        NET100,
    )
    .streams("the longest; `null` if a stream that had an event does not return").titled("Recovery time").column_of_two("recovery", "1st, s"),
    flow("reopen_time_s", "s", Lower, |f| f.longest(reopen_time))
        .means(
            "Time from the first congestion event until the window is back at its value before it",
            "first time `cwnd >= cwnd before the event`, once the reduction has shown",
            NET100,
        )
        .streams("the longest; `null` if a stream that had an event does not return"),
    flow("decrease_fraction", "1", Neither, |f| {
        f.average(|_, event| decrease(event))
    })
    .part().means(
        "Part of the window removed by the first congestion event (`b`)",
        "`1 - after / before`, `after` being the window the controller set",
        "RFC 3649 section 5",
    )
    .streams("mean over the streams that had an event"),
    flow("increase_per_rtt_first", "segments", Neither, |f| {
        f.average(|m, event| Some(growth_per_round(m, event)?.first))
    })
    .between(UNBOUNDED).means(
        "Growth of the window per RTT (`a`) where it starts to reopen after the first \
             congestion event",
        "`cwnd` at the end minus `cwnd` at the start of the first round that begins after the \
             window has started to grow again; `null` if another reduction, a timeout or an undo \
             comes before its end, and after a timeout",
        "RFC 3649 section 5",
    )
    .streams("mean over the streams that had an event"),
    flow("increase_per_rtt_last", "segments", Neither, |f| {
        f.average(|m, event| Some(growth_per_round(m, event)?.last))
    })
    .between(UNBOUNDED).means(
        "Growth of the window per RTT just before it is back at its value before the first \
             congestion event",
        "the same for the last round that ends below that value, before another reduction, a \
             timeout or an undo",
        "RFC 3649 section 5",
    )
    .streams("mean over the streams that had an event"),
    flow("climb_time_s", "s", Lower, |f| {
        f.latest(|m| climb_time(f.group, m))
    })
    .means(
        "Time from the flow's start until the window reaches its cap, the smaller of `window` and \
             `receive_window`; `null` without a cap",
        "first time `cwnd >= window_cap`",
        "RFC 3742 section 2, Net100 2003",
    )
    .streams("the longest, each from its own start"),
    flow("completion_time_s", "s", Lower, |f| {
        let all = f.group.transfer?;
        // Cut short by its stop, a flow is done when what it had sent is acknowledged.
        let whole = |m: &FlowOutcome| f.group.stop.is_none() || m.totals.delivered >= all;
        f.latest(|m| whole(m).then_some(f.since_start(m.completed?)))
    })
    .means(
        "Time from the flow's start until the last segment of a finite transfer is \
             acknowledged; `null` without a `size`, and where its `stop` cuts it short",
        "`completed - start`",
        "RFC 5166 section 2.1.1",
    )
    .streams("the last stream").titled("Completion time").column("complete"),
    delivered!("delivery_time_s.15k", 15_000),
    delivered!("delivery_time_s.150k", 150_000),
    delivered!("delivery_time_s.1500k", 1_500_000),
    delivered!("delivery_time_s.15m", 15_000_000),
    delivered!("delivery_time_s.150m", 150_000_000),
    delivered!("delivery_time_s.1500m", 1_500_000_000),
    flow("share", "1", Neither, |f| {
        ratio(f.case.goodput[f.index]?, f.case.goodputs().iter().sum())
    })
    .part().means("Part of the goodput of all flows", "`x_i / sum x`", SLAC).titled("Share"),
    flow("rtt_inflation", "1", Lower, |f| {
        let base = f.case.path_is_known().then(|| f.case.base_rtt_s(f.group))?;
        inflation(f.rtt.mean_s()?, base)
    })
    .titled("RTT inflation")
    .means(
        "How much the flow's load lengthens the path; `null` on a real path, whose base RTT nobody \
             knows",
        "`(mean RTT - base RTT) / base RTT`, of the flow's own samples; base RTT: the round-trip \
             propagation delay, with the stream's part of `rtt_spread` and, where it is scheduled, \
             its mean over the measured part",
        SLAC,
    )
    .streams("over the samples of all streams"),
    flow("retransmit_rate", "1", Lower, |f| {
        ratio(f.retransmits(), f.sent())
    })
    .part().means(
        "Part of the segments sent that are retransmissions",
        "`retransmits / sent`",
        SLAC,
    )
    .streams("of the sums"),
    flow("loss_rate", "1", Lower, |f| {
        ratio(f.sum(|m| m.totals.dropped as f64), f.sent())
    })
    .part().means(
        "Part of the segments sent that were dropped, on the path or by a `drop`",
        "`dropped / sent`, retransmissions included in both, since the flow's start; of a \
             network that does not say what it drops, `dropped` is retransmissions - duplicates \
             at the receiver",
        "RFC 5166 section 2.1.2",
    )
    .streams("of the sums"),
    flow("out_of_order_rate", "1", Lower, |f| {
        ratio(f.sum(|m| m.totals.out_of_order as f64), f.sent())
    })
    .part().means(
        "Part of the segments sent that arrive below the highest sequence seen without being \
             retransmissions or copies of what is there",
        "`out of order / sent`",
        SLAC,
    )
    .streams("of the sums"),
    flow("loss_event_rate", "1", Neither, |f| {
        let delivered = f.sum(|m| m.totals.delivered_measured as f64);
        ratio(f.sum(|m| m.totals.loss_events_measured as f64), delivered)
    })
    .means(
        "Congestion events per delivered segment of the measured part (`p` of a response \
             function); timeouts, which no response function of a law knows, are left out",
        "`loss events / delivered`, both from the end of the warm-up",
        "RFC 3649 section 5, RFC 5348 section 5",
    )
    .streams("of the sums"),
    flow("first_loss_s", "s", Neither, |f| {
        Some(f.since_start(f.earliest(first_event)?.1.at))
    })
    .means(
        "Time from the flow's start to its first congestion event",
        "`at - start`",
        OURS,
    )
    .streams("the earliest"),
    flow("first_loss_cwnd", "segments", Neither, |f| {
        Some(f.earliest(first_event)?.1.before)
    })
    .means(
        "Window just before the first congestion event",
        "`before`",
        OURS,
    )
    .streams("of the earliest"),
    flow("startup_exit_s", "s", Neither, |f| {
        Some(f.since_start(f.earliest(startup_exit)?.1.at))
    })
    .means(
        "Time from the flow's start until start-up was left, by a reduction or by itself",
        "first congestion event or start-up exit",
        OURS,
    )
    .streams("the earliest"),
    flow("startup_exit_cwnd", "segments", Neither, |f| {
        Some(f.earliest(startup_exit)?.1.before)
    })
    .means(
        "Window when start-up was left",
        "`before` of the same",
        OURS,
    )
    .streams("of the earliest"),
    flow("sent_segments", "segments", Neither, |f| Some(f.sent()))
        .means(
            "Data segments sent since the flow's start, retransmissions included",
            "count",
            OURS,
        )
        .streams("sum")
        .counts(),
    flow("delivered_segments", "segments", Higher, |f| {
        Some(f.sum(|m| m.totals.delivered as f64))
    })
    .means(
        "Segments that reached the receiver for the first time, since the flow's start",
        "count",
        OURS,
    )
    .streams("sum")
    .counts(),
    flow("undone", "events", Neither, |f| {
        Some(f.sum(|m| m.totals.undone as f64))
    })
    .means(
        "Reductions undone as spurious since the flow's start",
        "count",
        "RFC 5682, RFC 3708",
    )
    .streams("sum")
    .counts(),
    flow("local_stalls", "segments", Lower, |f| {
        Some(f.sum(|m| m.totals.local_stalls as f64))
    })
    .means(
        "Segments refused by the sender's own interface queue since the flow's start",
        "count",
        NET100,
    )
    .streams("sum")
    .counts().titled("Stalls").column("stalls"),
    flow("limited.network", "1", Neither, |f| f.limited(Limit::Network))
        .part().means(
            "Part of the time in which the sender was held back by the congestion window, which the path sets",
            "time in which this held it back / measured time of the flow",
            LINUX,
        )
        .streams("over the times of all streams").titled("Limited by the network"),
    flow("limited.window_cap", "1", Neither, |f| f.limited(Limit::WindowCap))
        .part().means(
            "Part of the time in which the sender was held back by the congestion window at its cap (`window`)",
            "like `limited.network`",
            LINUX,
        )
        .streams("over the times of all streams").titled("Limited by the window's cap"),
    flow("limited.receive_window", "1", Neither, |f| f.limited(Limit::ReceiveWindow))
        .part().means(
            "Part of the time in which the sender was held back by the receiver's advertised window",
            "like `limited.network`",
            LINUX,
        )
        .streams("over the times of all streams").titled("Limited by the receive window"),
    flow("limited.local_queue", "1", Neither, |f| f.limited(Limit::LocalQueue))
        .part().means(
            "Part of the time in which the sender was held back by the queue of its own host, which was full or as full as small queues let it be",
            "like `limited.network`",
            LINUX,
        )
        .streams("over the times of all streams").titled("Limited by the host's queue"),
    flow("limited.rate", "1", Neither, |f| f.limited(Limit::Rate))
        .part().means(
            "Part of the time in which the sender was held back by its own ceiling (`rate`)",
            "like `limited.network`",
            LINUX,
        )
        .streams("over the times of all streams").titled("Limited by its ceiling"),
    flow("limited.pacing", "1", Neither, |f| f.limited(Limit::Pacing))
        .part().means(
            "Part of the time in which the sender was held back by pacing at the rate of window and RTT, or of the controller's model",
            "like `limited.network`",
            LINUX,
        )
        .streams("over the times of all streams").titled("Limited by pacing"),
    flow("limited.application", "1", Neither, |f| f.limited(Limit::Application))
        .part().means(
            "Part of the time in which the sender was held back by the application, which had nothing to send",
            "like `limited.network`",
            LINUX,
        )
        .streams("over the times of all streams").titled("Limited by the application"),
    flow("stream_jain", "1", Higher, |f| {
        let rate = |m: &FlowOutcome| goodput(f.group, std::slice::from_ref(m), f.case.outcome);
        let rates = f.members.iter().map(rate).collect::<Option<Vec<f64>>>()?;
        (rates.len() > 1).then(|| jain(&rates))?
    })
    .part().means(
        "Jain's fairness of the streams' goodput; `null` with one",
        "`(sum x)^2 / (n * sum x^2)`, x = goodput of a stream over its own measured part",
        "Jain 1984, RFC 5166 section 2.3.1",
    )
    .streams("over all of them").titled("Fairness of the streams (Jain)"),
    flow("stream_synchronization", "1", Lower, |f| {
        let longest = f.case.longest_base_rtt(std::slice::from_ref(f.group))?;
        synchronization(f.members.iter(), longest, f.case.outcome)
    })
    .part().means(
        "Whether the streams of the flow lose together: the mean part of them that takes part \
             in a congestion epoch, `1/n` to 1; `null` with one stream or without an event",
        "like `synchronization`, over the streams of the flow",
        WUSTL,
    )
    .streams("over all streams"),
];
