//! Metrics of one link.

use fullpipe_run::LinkOutcome;

use crate::metric::Better::{Higher, Lower, Neither};
use crate::metric::{Metric, link};
use crate::number::{finite, mean_millis, millis, ratio};

const OURS: &str = "definition ours";

/// Metrics of a link, in the order of columns and JSON keys.
pub const LINK: &[Metric] = &[
    link("utilization", "1", Higher, |l| finite(l.utilization)).part().means(
        "Part of the capacity used",
        "bytes that left since the end of the warm-up / what could have: the capacity as the schedule \
             or trace has it, none during an outage; 0 for a pure delay",
        "RFC 5166 section 2.1.1",
    ).titled("Utilisation").column("utilization"),
    link("drops", "packets", Lower, |l| Some(drops(l)))
        .means(
            "Packets lost at the link since time zero",
            "buffer drops + random drops + policer drops + early drops",
            "RFC 5166 section 2.1.2",
        )
        .counts().titled("Drops").column("drops"),
    link("buffer_drops", "packets", Lower, |l| {
        Some(l.buffer_drops as f64)
    })
    .means(
        "Packets lost to a full buffer since time zero",
        "count",
        "RFC 5166 section 2.1.2",
    )
    .counts(),
    link("random_drops", "packets", Neither, |l| {
        Some(l.random_drops as f64)
    })
    .means("Packets lost at random since time zero", "count", OURS)
    .counts(),
    link("policer_drops", "packets", Neither, |l| {
        Some(l.policer_drops as f64)
    })
    .means(
        "Packets that exceeded the policer's bucket since time zero",
        "count",
        "RFC 2475 section 2.3.3.3",
    )
    .counts(),
    link("early_drops", "packets", Neither, |l| {
        Some(l.early_drops as f64)
    })
    .means(
        "Packets that the queue discipline dropped before the buffer was full, since time \
             zero",
        "count",
        "RFC 7567 section 4",
    )
    .counts(),
    link("marks", "packets", Neither, |l| Some(l.marks as f64))
        .means(
            "Packets that the queue discipline marked instead, since time zero",
            "count",
            "RFC 3168 section 5",
        )
        .counts().column("marks"),
    link("ties", "packets", Neither, |l| l.ties.map(|n| n as f64))
        .means(
            "Packets lost to a full buffer in the very nanosecond in which another one left, because \
             one of another flow came then, too, and took its place, since time zero: where they \
             are many of the drops, who loses is a matter of phase. `null` but for first-in, \
             first-out links of the simulator without jitter, `schedule`, `policer` and `reorder`, with a \
             buffer in packets or bytes",
            "count",
            "Floyd and Jacobson, On Traffic Phase Effects in Packet-Switched Gateways, 1992",
        )
        .counts(),
    link("drop_rate", "1", Lower, |l| {
        ratio(drops(l), l.offered as f64)
    })
    .part().means(
        "Part of the packets that came to the link which it dropped, since time zero",
        "`drops / offered`",
        "RFC 5166 section 2.1.2",
    ).column("drop rate"),
    link("delivered_packets", "packets", Higher, |l| {
        Some(l.delivered as f64)
    })
    .means(
        "Packets that left the transmitter since time zero",
        "count",
        OURS,
    )
    .counts(),
    link("queue_packets.mean", "packets", Lower, |l| {
        finite(l.queue_mean)
    })
    .means(
        "Mean queue of the measured part, the packet in transmission included",
        "integral of the queue over time / time",
        OURS,
    ).titled("Queue, mean").column("queue mean"),
    link("queue_packets.max", "packets", Lower, |l| {
        Some(l.queue_max as f64)
    })
    .means("Largest queue of the measured part", "maximum", OURS)
    .counts().titled("Queue, largest").column("queue max"),
    link("queueing_delay_ms.min", "ms", Lower, |l| {
        millis(l.queueing_delay.min())
    })
    .means(
        "Shortest wait of a packet that left in the measured part, from its entry to the \
             begin of its transmission; `null` for a link whose waits are not recorded",
        "minimum",
        "RFC 5166 section 2.2",
    ),
    link("queueing_delay_ms.mean", "ms", Lower, |l| {
        mean_millis(&l.queueing_delay)
    })
    .means("Mean wait", "`sum / count`", "RFC 5166 section 2.2").column("wait mean"),
    link("queueing_delay_ms.p50", "ms", Lower, |l| {
        millis(l.queueing_delay.quantile(0.50))
    })
    .means(
        "Median wait",
        "quantile 0.5 of a histogram with 512 buckets per octave (within 0.2 %)",
        "RFC 5166 section 2.2",
    ),
    link("queueing_delay_ms.p95", "ms", Lower, |l| {
        millis(l.queueing_delay.quantile(0.95))
    })
    .means(
        "95th percentile of the waits",
        "quantile 0.95 of the same histogram",
        "RFC 5166 section 2.2",
    ).column("wait p95"),
    link("queueing_delay_ms.p99", "ms", Lower, |l| {
        millis(l.queueing_delay.quantile(0.99))
    })
    .means(
        "99th percentile of the waits",
        "quantile 0.99 of the same histogram",
        "RFC 5166 section 2.2",
    ),
    link("queueing_delay_ms.max", "ms", Lower, |l| {
        millis(l.queueing_delay.max())
    })
    .means("Longest wait", "maximum", "RFC 5166 section 2.2"),
];

/// Packets lost at the link, whatever the reason.
fn drops(l: &LinkOutcome) -> f64 {
    (l.buffer_drops + l.random_drops + l.policer_drops + l.early_drops) as f64
}
