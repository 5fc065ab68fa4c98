//! TCP flows of this host's kernel.

use fullpipe_observe::tcp_info::{
    BUSY_TIME, BYTES_ACKED, BYTES_RECEIVED, DELIVERY_RATE, MIN_RTT, PACING_RATE, RTT, RWND_LIMITED,
    SND_CWND, SND_SSTHRESH, SNDBUF_LIMITED, TOTAL_RETRANS,
};
use fullpipe_observe::{Field, Observation, Tuned};

use super::{Kind, Page, labels};
use crate::commands::observe::policies::Tunings;

/// A metric: name without prefix, kind, help, field, and its unit in that of the metric.
type Metric = (&'static str, Kind, &'static str, Field, f64);

const METRICS: [Metric; 12] = [
    (
        "window_segments",
        Kind::Gauge,
        "Congestion window",
        SND_CWND,
        1.0,
    ),
    (
        "ssthresh_segments",
        Kind::Gauge,
        "Slow-start threshold",
        SND_SSTHRESH,
        1.0,
    ),
    (
        "rtt_seconds",
        Kind::Gauge,
        "Smoothed round-trip time",
        RTT,
        1e-6,
    ),
    (
        "min_rtt_seconds",
        Kind::Gauge,
        "Smallest round-trip time",
        MIN_RTT,
        1e-6,
    ),
    (
        "pacing_rate_bytes_per_second",
        Kind::Gauge,
        "Pacing rate",
        PACING_RATE,
        1.0,
    ),
    (
        "delivery_rate_bytes_per_second",
        Kind::Gauge,
        "Latest delivery rate",
        DELIVERY_RATE,
        1.0,
    ),
    (
        "acked_bytes_total",
        Kind::Counter,
        "Bytes acknowledged",
        BYTES_ACKED,
        1.0,
    ),
    (
        "received_bytes_total",
        Kind::Counter,
        "Bytes received",
        BYTES_RECEIVED,
        1.0,
    ),
    (
        "resent_segments_total",
        Kind::Counter,
        "Segments sent again",
        TOTAL_RETRANS,
        1.0,
    ),
    (
        "busy_seconds_total",
        Kind::Counter,
        "Time with data to send or in flight",
        BUSY_TIME,
        1e-6,
    ),
    (
        "receive_window_limited_seconds_total",
        Kind::Counter,
        "Time held back by the receive window",
        RWND_LIMITED,
        1e-6,
    ),
    (
        "send_buffer_limited_seconds_total",
        Kind::Counter,
        "Time held back by the send buffer",
        SNDBUF_LIMITED,
        1e-6,
    ),
];

/// What a tuner says: name without prefix, help, value.
type Law = (&'static str, &'static str, fn(&Tuned) -> Option<f64>);

const LAWS: [Law; 2] = [
    (
        "increase_segments",
        "Increase in force by the policy, segments per round trip",
        |t| t.a,
    ),
    (
        "decrease_ratio",
        "Fraction that a loss removes by the policy in force",
        |t| t.b,
    ),
];

/// These flows, and what they have of a policy.
pub fn page(flows: &[Observation], tunings: &Tunings) -> String {
    let mut page = Page::default();
    for (name, kind, help, field, unit) in METRICS {
        let samples = flows.iter().filter_map(|flow| {
            let value = flow.socket.info.get(&field)? as f64 * unit;
            Some((of(flow, tunings, None), value))
        });
        page.family(kind, &format!("tcp_{name}"), help, samples);
    }
    let limited = flows.iter().filter_map(|flow| {
        let limit = flow.limited_by()?;
        Some((of(flow, tunings, Some(limit.word())), 1.0))
    });
    let help = "What limits the flow: 1 for what does";
    page.family(Kind::Gauge, "tcp_limited", help, limited);
    for (name, help, value) in LAWS {
        let samples = flows.iter().filter_map(|flow| {
            let value = value(tunings.get(&flow.socket.cookie)?)?;
            Some((of(flow, tunings, None), value))
        });
        page.family(Kind::Gauge, &format!("tcp_{name}"), help, samples);
    }
    page.text()
}

/// The labels of a flow, and by what it is limited.
fn of(flow: &Observation, tunings: &Tunings, by: Option<&str>) -> String {
    let socket = &flow.socket;
    let (local, remote) = (socket.local.to_string(), socket.remote.to_string());
    let mut all = vec![
        ("local", local.as_str()),
        ("remote", &remote),
        ("congestion_control", &socket.congestion),
    ];
    if let Some(tuned) = tunings.get(&socket.cookie) {
        let arm = if tuned.control { "control" } else { "policy" };
        all.extend([("path", tuned.path.as_str()), ("arm", arm)]);
    }
    all.extend(flow.process.iter().map(|p| ("process", p.name.as_str())));
    all.extend(by.map(|by| ("by", by)));
    labels(&all)
}

#[cfg(test)]
mod tests {
    use fullpipe_observe::{Socket, TcpInfo};

    use super::*;

    #[test]
    fn every_line_is_a_comment_or_a_sample() {
        let mut bytes = vec![0; 248];
        bytes[68..72].copy_from_slice(&20_000u32.to_ne_bytes());
        let flow = Observation {
            socket: Socket {
                congestion: "a\"b".to_owned(),
                info: TcpInfo::new(&bytes),
                ..Socket::default()
            },
            process: None,
            since: None,
        };
        let tuned = Tuned {
            path: "lab".to_owned(),
            a: Some(4.5),
            ..Tuned::default()
        };
        let tunings = Tunings::from([(flow.socket.cookie, tuned)]);
        let page = page(&[flow], &tunings);
        let sample = "fullpipe_tcp_rtt_seconds{local=\"0.0.0.0:0\",remote=\"0.0.0.0:0\",\
                      congestion_control=\"a\\\"b\",path=\"lab\",arm=\"policy\"} 0.02";
        assert!(page.lines().any(|line| line == sample), "{page}");
        let increase = sample.replace("rtt_seconds", "increase_segments");
        let increase = increase.replace("0.02", "4.5");
        assert!(page.lines().any(|line| line == increase), "{page}");
        assert!(!page.contains("fullpipe_tcp_decrease_ratio{"), "{page}");
        super::super::tests::holds(&page);
    }
}
