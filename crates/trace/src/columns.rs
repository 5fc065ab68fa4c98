//! The schema of a trace: names, units, meaning, and what the same thing is called by Web100 (RFC 4898) and by Linux.
//!
//! Numbers that are not counts are decimals over 64-bit integers: with delta encoding a row of a trace costs two to three bytes,
//! where floating point costs twenty. Where a file holds few rows the same columns are doubles ([`Numbers`](crate::Numbers)).

use fullpipe_flow::TraceRow;
use fullpipe_units::{Span, Time};

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSpec {
    /// Its name, with the unit where it is not segments.
    pub name: &'static str,
    /// Unit for people.
    pub unit: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Name in Web100 and RFC 4898; empty without one.
    pub web100: &'static str,
    /// Name in Linux' `TCP_INFO` or `ss`; empty without one.
    pub linux: &'static str,
    pub(crate) value: Value,
}

/// How a column's value is taken from a row and put back into one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// Name of the flow.
    Flow,
    /// See [`TraceRow::phase_name`].
    Phase,
    /// See [`Events::text`](fullpipe_flow::Events::text).
    Event,
    /// A whole number, never null.
    Count(fn(&TraceRow) -> u64, fn(&mut TraceRow, u64)),
    /// Nanoseconds, shown with so many decimals; null where unknown.
    Nanos {
        /// 9 for seconds, 6 for milliseconds.
        decimals: u8,
        get: fn(&TraceRow) -> Option<u64>,
        set: fn(&mut TraceRow, Option<u64>),
    },
    /// A number, kept to so many decimals; null where it is not finite.
    Number {
        decimals: u8,
        get: fn(&TraceRow) -> f64,
        set: fn(&mut TraceRow, f64),
    },
}

impl ColumnSpec {
    /// The value of a row as text, empty for null; `flow`: the name of its flow.
    pub fn text(&self, row: &TraceRow, flow: &str) -> String {
        match self.value {
            Value::Flow => flow.to_owned(),
            Value::Phase => row.phase_name().to_owned(),
            Value::Event => row.events.text(),
            Value::Count(get, _) => get(row).to_string(),
            Value::Nanos { decimals, get, .. } => get(row).map_or_else(String::new, |n| {
                (n as f64 / 10f64.powi(i32::from(decimals))).to_string()
            }),
            Value::Number { get, .. } => match get(row) {
                v if v.is_finite() => v.to_string(),
                _ => String::new(),
            },
        }
    }
}

const fn number(get: fn(&TraceRow) -> f64, set: fn(&mut TraceRow, f64)) -> Value {
    Value::Number {
        decimals: SEGMENT_DECIMALS,
        get,
        set,
    }
}

const fn millis(get: fn(&TraceRow) -> Option<u64>, set: fn(&mut TraceRow, Option<u64>)) -> Value {
    Value::Nanos {
        decimals: 6,
        get,
        set,
    }
}

/// A span that may be unknown.
fn known(span: Span, unknown: Span) -> Option<u64> {
    (span != unknown).then(|| span.as_nanos())
}

fn span(nanos: Option<u64>, unknown: Span) -> Span {
    nanos.map_or(unknown, Span::from_nanos)
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The columns of every trace, in order. After them come the controller's own variables, each as `var_NAME`.
pub const COLUMNS: &[ColumnSpec] = &[
    ColumnSpec {
        name: "flow",
        unit: "",
        about: "name of the flow",
        web100: "",
        linux: "",
        value: Value::Flow,
    },
    ColumnSpec {
        name: "time_s",
        unit: "s",
        about: "since the start of the run",
        web100: "",
        linux: "",
        value: Value::Nanos {
            decimals: 9,
            get: |r| Some(r.time.as_nanos()),
            set: |r, v| r.time = Time::from_nanos(v.unwrap_or(0)),
        },
    },
    ColumnSpec {
        name: "cwnd",
        unit: "segments",
        about: "window in use: PRR's during a reduction, the controller's otherwise",
        web100: "CurCwnd (bytes)",
        linux: "tcpi_snd_cwnd",
        value: number(|r| r.cwnd, |r, v| r.cwnd = v),
    },
    ColumnSpec {
        name: "cwnd_min",
        unit: "segments",
        about: "smallest since the row before",
        web100: "",
        linux: "",
        value: number(|r| r.cwnd_min, |r, v| r.cwnd_min = v),
    },
    ColumnSpec {
        name: "cwnd_max",
        unit: "segments",
        about: "largest since the row before",
        web100: "",
        linux: "",
        value: number(|r| r.cwnd_max, |r, v| r.cwnd_max = v),
    },
    ColumnSpec {
        name: "ssthresh",
        unit: "segments",
        about: "threshold; null before the first reduction",
        web100: "CurSsthresh (bytes)",
        linux: "tcpi_snd_ssthresh",
        value: number(
            |r| r.ssthresh,
            |r, v| r.ssthresh = if v.is_finite() { v } else { f64::INFINITY },
        ),
    },
    ColumnSpec {
        name: "rtt_ms",
        unit: "ms",
        about: "latest sample; null before the first",
        web100: "SampledRTT",
        linux: "",
        value: millis(
            |r| known(r.rtt, Span::ZERO),
            |r, v| r.rtt = span(v, Span::ZERO),
        ),
    },
    ColumnSpec {
        name: "srtt_ms",
        unit: "ms",
        about: "smoothed; null before the first sample",
        web100: "SmoothedRTT",
        linux: "tcpi_rtt",
        value: millis(
            |r| known(r.srtt, Span::ZERO),
            |r, v| r.srtt = span(v, Span::ZERO),
        ),
    },
    ColumnSpec {
        name: "pacing_mbps",
        unit: "Mbit/s",
        about: "pacing rate of the payload; 0 when not paced",
        web100: "",
        linux: "tcpi_pacing_rate (byte/s)",
        value: Value::Number {
            decimals: 6,
            get: |r| r.pacing_rate * 1e-6,
            set: |r, v| r.pacing_rate = if v.is_finite() { v * 1e6 } else { 0.0 },
        },
    },
    ColumnSpec {
        name: "flight",
        unit: "segments",
        about: "in the network, RFC 6675's pipe",
        web100: "PipeSize (bytes)",
        linux: "tcpi_unacked - tcpi_sacked - tcpi_lost + tcpi_retrans",
        value: Value::Count(|r| r.flight, |r, v| r.flight = v),
    },
    ColumnSpec {
        name: "delivered_segments",
        unit: "segments",
        about: "delivered so far, as far as the sender knows",
        web100: "",
        linux: "tcpi_delivered",
        value: Value::Count(|r| r.delivered, |r, v| r.delivered = v),
    },
    ColumnSpec {
        name: "min_rtt_ms",
        unit: "ms",
        about: "smallest RTT; null before the first sample",
        web100: "MinRTT",
        linux: "tcpi_min_rtt",
        value: millis(
            |r| known(r.min_rtt, Span::MAX),
            |r, v| r.min_rtt = span(v, Span::MAX),
        ),
    },
    ColumnSpec {
        name: "ack_delay_ms",
        unit: "ms",
        about: "how long the receiver held the latest ACK; null where nobody says",
        web100: "",
        linux: "",
        value: millis(
            |r| known(r.ack_delay, Span::MAX),
            |r, v| r.ack_delay = span(v, Span::MAX),
        ),
    },
    ColumnSpec {
        name: "snd_una",
        unit: "segments",
        about: "first unacknowledged segment",
        web100: "SndUna (bytes)",
        linux: "",
        value: Value::Count(|r| r.snd_una, |r, v| r.snd_una = v),
    },
    ColumnSpec {
        name: "snd_nxt",
        unit: "segments",
        about: "next new segment",
        web100: "SndNxt (bytes)",
        linux: "",
        value: Value::Count(|r| r.snd_nxt, |r, v| r.snd_nxt = v),
    },
    ColumnSpec {
        name: "retransmits",
        unit: "segments",
        about: "sent again so far",
        web100: "PktsRetrans, SegsRetrans",
        linux: "tcpi_total_retrans",
        value: Value::Count(|r| r.retransmits, |r, v| r.retransmits = v),
    },
    ColumnSpec {
        name: "loss_events",
        unit: "",
        about: "congestion events so far that reduced the window",
        web100: "CongSignals",
        linux: "",
        value: Value::Count(
            |r| u64::from(r.loss_events),
            |r, v| r.loss_events = small(v),
        ),
    },
    ColumnSpec {
        name: "timeouts",
        unit: "",
        about: "retransmission timeouts so far",
        web100: "Timeouts",
        linux: "",
        value: Value::Count(|r| u64::from(r.timeouts), |r, v| r.timeouts = small(v)),
    },
    ColumnSpec {
        name: "local_stalls",
        unit: "segments",
        about: "refused by the local queue so far",
        web100: "SendStall",
        linux: "",
        value: Value::Count(
            |r| u64::from(r.local_stalls),
            |r, v| r.local_stalls = small(v),
        ),
    },
    ColumnSpec {
        name: "mss",
        unit: "bytes",
        about: "payload of a segment",
        web100: "CurMSS",
        linux: "tcpi_snd_mss",
        value: Value::Count(|r| u64::from(r.mss), |r, v| r.mss = small(v)),
    },
    ColumnSpec {
        name: "phase",
        unit: "",
        about: "start-up, congestion-avoidance, disorder, cwr, recovery or loss",
        web100: "State",
        linux: "tcpi_ca_state",
        value: Value::Phase,
    },
    ColumnSpec {
        name: "event",
        unit: "",
        about: "what happened since the row before, joined by +; empty for nothing",
        web100: "",
        linux: "",
        value: Value::Event,
    },
];

/// Decimals kept of a window.
pub const SEGMENT_DECIMALS: u8 = 4;
/// Decimals kept of a controller's own variable.
pub const VARIABLE_DECIMALS: u8 = 6;
/// What stands before the name of a controller's own variable.
pub const VARIABLE: &str = "var_";

/// The column of this name.
pub fn find(name: &str) -> Option<&'static ColumnSpec> {
    COLUMNS.iter().find(|c| c.name == name)
}

/// `x` with so many decimals, as an integer; `None` if it is not finite or does not fit.
pub(crate) fn scaled(x: f64, decimals: u8) -> Option<i64> {
    let v = (x * 10f64.powi(i32::from(decimals))).round();
    (v.abs() < LARGEST_DECIMAL).then_some(v as i64)
}

/// A decimal of 18 digits.
const LARGEST_DECIMAL: f64 = 1e18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_say_their_unit() {
        for (i, c) in COLUMNS.iter().enumerate() {
            assert!(
                COLUMNS[..i].iter().all(|d| d.name != c.name),
                "{} twice",
                c.name
            );
            assert!(!c.about.is_empty() && !c.name.starts_with(VARIABLE));
            for (end, unit) in [("_s", "s"), ("_ms", "ms"), ("_mbps", "Mbit/s")] {
                assert_eq!(c.name.ends_with(end), c.unit == unit, "{}", c.name);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_unknown() {
        assert_eq!(scaled(1.23456, 4), Some(12_346));
        assert_eq!(scaled(-2.0, 6), Some(-2_000_000));
        for x in [f64::NAN, f64::INFINITY, 1e30] {
            assert_eq!(scaled(x, 4), None);
        }
    }
}
