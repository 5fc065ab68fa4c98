//! Keys of `[measure]`, `[[expect]]`, `[[negative]]` and `[[report]]`.

use fullpipe_metrics::Metric;
use fullpipe_units::Span;

use crate::scenario::{HoldsFor, TraceMode};
use crate::value::{keys, words};

const GOODPUT: &Metric = Metric::flow("goodput_mbps");

keys! {
    /// `[measure]`.
    Measures {
        interval: moment [shows format!(
                "({:?}, or 1/{INTERVALS} of the duration if that is shorter)",
                INTERVAL.to_string(),
            )], "5s",
            "width of a throughput sample";
        warmup: time [= Span::ZERO], "20s", "means and percentiles count from here";
        recovered_at: table(RecoveredTable) [shows format!("{{ rate = {RECOVERED} }}")],
            { window = "1BDP" }, "when a flow counts as recovered from a loss";
        @fixed trace: word(TraceMode) [= TraceMode::Decimated], "full",
            "time series that are kept";
        @fixed precision: fraction, "2%",
            "further seeds are run until the half width of the 95 % interval is at most this part \
             of the mean; as that stops where the interval happens to be narrow, it covers the mean \
             in only about 90 % of studies";
        @fixed precision_of: many(text) [= vec![GOODPUT.name.to_owned()]],
            ["goodput_mbps", "rtt_ms.p95"],
            "metrics that `precision` asks it of, of every flow or link that has them";
        @fixed max_seeds: whole(2, 1_000_000, "seeds") [= 30], 100,
            "no more seeds than this, precise or not";
        @fixed baseline: free, { "flow.main.stack" = "reno" },
            "keys of [matrix] and values: harm and gain of every case are against the same case \
             with these values, which has none itself";
        @fixed agreement: free, { goodput_mbps = "3%", loss_events = "20%" },
            "metrics, and distances as `cwnd_area` or `loss_time_rtt`, and how far two grounds may \
             be apart in them for `fullpipe agree`; the other metrics that are judged have 5 %";
    }
}

keys! {
    /// `measure.recovered_at`.
    RecoveredTable {
        rate: fraction [= RECOVERED], 0.95,
            "the rate delivered over one RTT reaches this part of the smaller of capacity and \
             window/RTT";
        window: either(window, real(1e-6, 1.0)), "1BDP",
            "the congestion window reaches this size, or this part (a plain number) of the flow's \
             `window`";
        from: time, "40s",
            "counted from this time of the run, at which something else has changed, instead of \
             from the first congestion event; 0 if the flow is there already";
    }
}

words! {
    TraceMode {
        Decimated = "decimated", "about 2000 rows per flow and queue, extremes kept; of more than 500 runs those of the first seeds of \
             each case, and of more than 500 flows fewer rows, at least 500";
        Full = "full", "one row per ACK, 10,000 per queue";
        Off = "off", "none";
    }
}

keys! {
    /// `[[expect]]`.
    Expect {
        @fixed metric: text ~ r#""goodput_mbps""# [!], "goodput_mbps",
            "metric, see `fullpipe list metrics`, or an expression over metrics, as \
             `utilization - 0.1 * rtt_inflation`";
        @fixed flow: text [or "the only flow"], "main", "flow it is taken from";
        @fixed link: text [= "bottleneck".to_owned()], "bottleneck",
            "link it is taken from, for metrics of links";
        @fixed r#where: free [or "every case"], { "path.mtu" = 1500 },
            "keys of [matrix] and one of their values, or a list of them: the cases it applies to";
        @fixed within: bounds, [252, 312], "smallest and largest accepted value";
        @fixed agrees_with: free, { "flow.main.drop.where" = "sender" },
            "keys of [matrix] and values: the 95 % interval of the difference from the same case \
             with these values must hold zero, seed by seed where both ran with the same; one seed \
             alone leaves it `unclear`";
        @fixed ratio_to: free, { "flow.main.stack" = "reno" },
            "keys of [matrix] and values: the bound is one on the quotient of the value and that \
             of the same case with these values";
        @fixed at_least: number, 100, "smallest accepted value";
        @fixed at_most: number, 0.05, "largest accepted value";
        @fixed equals: number, 0.329878, "expected value, with `tolerance`";
        @fixed tolerance: tolerance ~ r#""1%", or tolerance = 0"#, "10%",
            "accepted distance from `equals`: a number, or a percentage of it";
        @fixed holds_for: parsed(HoldsFor) [= HoldsFor::Overlap], "every seed",
            "`overlap`: the 95 % interval of the mean over the seeds must not contradict the \
             bound, so one that lies outside as a whole is a FAIL, one that reaches across an end \
             is `unclear`, and with one seed its value decides; or what must lie in the bound: the \
             `mean` whatever its interval, the `interval` as a whole (`unclear` with one seed), the \
             value of `every seed`, or a quantile of the seeds' values, `p5` to `p95`";
        @fixed name: text [or "metric, flow or link, and where"], "Reno, 1500 B",
            "name in the result; tables leave out the default, which their other columns say";
        @fixed source: text [= String::new()], "RFC 3649 appendix B",
            "where the bound comes from";
        @fixed quick: flag [or "with and without `--quick`"], false,
            "false: not with `--quick`; true: only with it";
        @fixed toothless: text, "a closed form that holds for any law: checks the path",
            "why no world is known in which it fails; `fullpipe falsify` then accepts that";
    }
}

keys! {
    /// `[[negative]]`.
    Negative {
        @fixed about: text ~ r#""no loss: nothing to recover from""# [!],
            "the traffic is switched off",
            "what is wrong with this world";
        @fixed set: free ~ r#"{ "path.loss" = 0 }"# [!], { "traffic.blast.enabled" = false },
            "dotted keys and their values there, whatever [matrix] says";
        @fixed inert: text, "the losses are those that the file orders, and no queue overflows",
            "why no number changes in this world; `fullpipe falsify` then fails if one does, and \
             asks no expectation to notice it";
        @fixed quick: flag [or "with and without `--quick`"], false,
            "false: not with `--quick`; true: only with it";
    }
}

keys! {
    /// `[[report]]`.
    Figures {
        @fixed figure: word(Figure) [= Figure::Cwnd], "cwnd", "what is drawn";
        @fixed flow: text [or "all"], "main",
            "what is drawn alone: a flow; of `queue`: a link; of `completion`: traffic; of `metric` \
             and `matrix`: any of these";
        @fixed x: text ~ r#""flow.a.stack""#, "path.mtu",
            "`metric`, `matrix`, which need it: key of [matrix] along the horizontal axis";
        @fixed y: text, "recovery_time_s",
            "`metric`: the metric; `matrix`: key of [matrix] along the vertical axis";
        @fixed metric: text, "asymmetry", "`matrix`: the metric";
        @fixed title: text, "Window after one loss", "heading";
    }
}

words! {
    /// Quantity on a figure's vertical axis.
    enum Figure {
        Cwnd = "cwnd", "congestion window over time";
        Rtt = "rtt", "round-trip time over time";
        Goodput = "goodput", "goodput over time";
        Queue = "queue", "queue of the bottleneck over time";
        Metric = "metric", "a metric over the cases";
        Matrix = "matrix", "a metric over two keys of [matrix], as a coloured table";
        Completion = "completion", "distribution of the completion times of short flows";
    }
}

/// Part of the attainable rate at which a flow counts as recovered.
pub(crate) const RECOVERED: f64 = 0.95;

/// Width of a throughput sample, unless the run has fewer than [`INTERVALS`] of it.
pub(crate) const INTERVAL: Span = Span::from_secs(5);
/// Samples of a run at least.
pub(crate) const INTERVALS: u64 = 20;
