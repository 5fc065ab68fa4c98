//! What the tuner did, and its flows, in Prometheus' text format.

use std::fmt::Write as _;

use crate::kernel::{Counters, Seen};

/// A metric of a flow: name without prefix, kind, help, value.
type Metric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Seen) -> Option<f64>,
);

const METRICS: [Metric; 12] = [
    ("window_segments", "gauge", "Congestion window", |s| {
        Some(s.listing.cwnd.into())
    }),
    ("ssthresh_segments", "gauge", "Slow-start threshold", |s| {
        let threshold = s.listing.ssthresh;
        (threshold < 0x7fff_ffff).then(|| threshold.into())
    }),
    ("rtt_seconds", "gauge", "Smoothed round-trip time", |s| {
        Some(f64::from(s.listing.srtt_us) / 1e6)
    }),
    (
        "increase_segments",
        "gauge",
        "Increase in force, segments per round trip",
        |s| s.listing.a,
    ),
    (
        "decrease_ratio",
        "gauge",
        "Fraction that a loss removes, in force",
        |s| s.listing.b,
    ),
    ("acked_bytes_total", "counter", "Bytes acknowledged", |s| {
        Some(s.listing.bytes_acked as f64)
    }),
    (
        "resent_segments_total",
        "counter",
        "Segments sent again",
        |s| Some(s.listing.retransmitted.into()),
    ),
    (
        "cuts_total",
        "counter",
        "Reductions after a loss or a mark",
        |s| s.listing.flow.as_ref().map(|f| f.cuts.into()),
    ),
    (
        "timeouts_total",
        "counter",
        "Reductions after a timeout",
        |s| s.listing.flow.as_ref().map(|f| f.timeouts.into()),
    ),
    (
        "stalls_total",
        "counter",
        "Reductions after a local stall",
        |s| s.listing.flow.as_ref().map(|f| f.stalls.into()),
    ),
    (
        "stalls_ignored_total",
        "counter",
        "Local stalls without a reduction",
        |s| s.listing.flow.as_ref().map(|f| f.stalls_ignored.into()),
    ),
    (
        "pacing_ceiling_bytes_per_second",
        "gauge",
        "Ceiling of the rate",
        |s| {
            let ceiling = s.listing.max_pacing;
            (ceiling < u64::MAX).then_some(ceiling as f64)
        },
    ),
];

/// All of it.
pub fn page(counters: &Counters, off: bool, flows: &[(Seen, String)]) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "# HELP fullpipe_tuner_off All flows run Reno by order."
    );
    let _ = writeln!(out, "# TYPE fullpipe_tuner_off gauge");
    let _ = writeln!(out, "fullpipe_tuner_off {}", u32::from(off));
    for (name, about, n) in counters.described() {
        let _ = writeln!(out, "# HELP fullpipe_tuner_{name}_total {about}");
        let _ = writeln!(out, "# TYPE fullpipe_tuner_{name}_total counter");
        let _ = writeln!(out, "fullpipe_tuner_{name}_total {n}");
    }
    for (name, kind, help, value) in METRICS {
        let _ = writeln!(out, "# HELP fullpipe_tuner_flow_{name} {help}.");
        let _ = writeln!(out, "# TYPE fullpipe_tuner_flow_{name} {kind}");
        for (seen, path) in flows {
            if let Some(value) = value(seen) {
                let labels = labels(seen, path);
                let _ = writeln!(out, "fullpipe_tuner_flow_{name}{{{labels}}} {value}");
            }
        }
    }
    out
}

/// No value of them holds a quote, a backslash or a line end: names of paths are letters, digits,
/// `-` and `_`, and the kernel's names of algorithms have no others either.
fn labels(seen: &Seen, path: &str) -> String {
    let l = &seen.listing;
    let [local, remote] = [l.local, l.remote].map(std::net::SocketAddr::from);
    let arm = match l.flow.as_ref().is_some_and(|f| f.control) {
        true => "control",
        false => "policy",
    };
    let (namespace, algorithm) = (seen.namespace, &l.algorithm);
    format!(
        "local=\"{local}\",remote=\"{remote}\",namespace=\"{namespace}\",path=\"{path}\",\
         arm=\"{arm}\",congestion_control=\"{algorithm}\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{FlowRecord, Listing, size};

    #[test]
    fn every_line_is_a_comment_or_a_sample() {
        let listing = Listing {
            cwnd: 20,
            ssthresh: 0x7fff_ffff,
            algorithm: "fp_aimd".to_owned(),
            a: Some(4.0),
            max_pacing: u64::MAX,
            flow: Some(FlowRecord {
                cuts: 3,
                ..FlowRecord::default()
            }),
            ..Listing::read(&[0; size::LISTING])
        };
        let seen = Seen {
            namespace: 7,
            default: "reno".to_owned(),
            listing,
        };
        let counters = Counters {
            acks: 5,
            ..Counters::default()
        };
        let page = page(&counters, true, &[(seen, "lab".to_owned())]);
        let labels = "local=\"[::]:0\",remote=\"[::]:0\",namespace=\"7\",path=\"lab\",\
                      arm=\"policy\",congestion_control=\"fp_aimd\"";
        for due in [
            "fullpipe_tuner_off 1".to_owned(),
            "fullpipe_tuner_acks_total 5".to_owned(),
            format!("fullpipe_tuner_flow_window_segments{{{labels}}} 20"),
            format!("fullpipe_tuner_flow_increase_segments{{{labels}}} 4"),
            format!("fullpipe_tuner_flow_cuts_total{{{labels}}} 3"),
        ] {
            assert!(page.lines().any(|line| line == due), "{due} in {page}");
        }
        assert!(!page.contains("_ssthresh_segments{") && !page.contains("decrease_ratio{"));
        for line in page.lines() {
            assert!(
                line.starts_with("# ") || line.starts_with("fullpipe_tuner_"),
                "{line}"
            );
        }
    }
}
