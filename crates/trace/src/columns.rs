//! The schema of a trace: names, units, meaning, and what the same thing is called by Web100 (RFC
//! 4898) and by Linux.
//!
//! Numbers that are not counts are decimals over 64-bit integers: with delta encoding a row of a
//! trace costs two to three bytes, where floating point costs twenty. Where a file holds few rows
//! the same columns are doubles ([`Numbers`](crate::Numbers)).

use fullpipe_cc::Phase;
use fullpipe_flow::TraceRow;
use fullpipe_units::{Span, Time, printed_text};

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
    /// Name in Linux's `TCP_INFO` or `ss`; empty without one.
    pub linux: &'static str,
    pub(crate) value: Value,
}

/// Where a column's value is in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// Name of the flow.
    Flow,
    /// See [`TraceRow::phase_name`].
    Phase,
    /// See [`Events::text`](fullpipe_flow::Events::text).
    Event,
    /// A whole number, never null.
    Count(Field<u64>),
    /// Nanoseconds, shown with so many decimals (9 for seconds, 6 for milliseconds); null where
    /// unknown.
    Nanos(u8, Field<Option<u64>>),
    /// A number, kept to so many decimals; null where it is not finite.
    Number(u8, Field<f64>),
}

/// A field of a row: read, read from many rows at once, written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<T> {
    pub get: fn(&TraceRow) -> T,
    /// Appends that of every row: a loop of its own, not a call per row.
    pub get_all: fn(&[TraceRow], &mut Vec<T>),
    pub set: fn(&mut TraceRow, T),
}

impl ColumnSpec {
    /// The value of a row as text, empty for null; `flow`: the name of its flow.
    pub fn text(&self, row: &TraceRow, flow: &str) -> String {
        match self.value {
            Value::Flow => flow.to_owned(),
            Value::Phase => row.phase_name().to_owned(),
            Value::Event => row.events.text(),
            Value::Count(field) => (field.get)(row).to_string(),
            Value::Nanos(decimals, field) => (field.get)(row)
                .map_or_else(String::new, |n| printed_text(n as f64 / power(decimals))),
            Value::Number(_, field) => match (field.get)(row) {
                v if v.is_finite() => printed_text(v),
                _ => String::new(),
            },
        }
    }
}

/// Fields that count, of either width.
trait Count {
    fn wide(self) -> u64;
    fn narrow(count: u64) -> Self;
}

impl Count for u64 {
    fn wide(self) -> u64 {
        self
    }
    fn narrow(count: u64) -> u64 {
        count
    }
}

impl Count for u32 {
    fn wide(self) -> u64 {
        u64::from(self)
    }
    fn narrow(count: u64) -> u32 {
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

/// A [`Field`] from an expression over a row, and from an assignment.
macro_rules! field {
    ($r:ident => $get:expr, $v:ident => $set:expr) => {
        Field {
            get: |$r| $get,
            get_all: |rows, all| all.extend(rows.iter().map(|$r| $get)),
            set: |$r, $v| $set,
        }
    };
}

/// A [`Value`] from its kind and the field's name; `or`: what the field holds where the column is
/// null.
macro_rules! value {
    (flow) => {
        Value::Flow
    };
    (phase) => {
        Value::Phase
    };
    (event) => {
        Value::Event
    };
    (count($field:ident)) => {
        Value::Count(field!(r => r.$field.wide(), v => r.$field = Count::narrow(v)))
    };
    (seconds($field:ident)) => {
        Value::Nanos(9, field!(
            r => Some(r.$field.as_nanos()),
            v => r.$field = Time::from_nanos(v.unwrap_or(0))
        ))
    };
    (millis($field:ident or $unknown:expr)) => {
        Value::Nanos(6, field!(
            r => (r.$field != $unknown).then(|| r.$field.as_nanos()),
            v => r.$field = v.map_or($unknown, Span::from_nanos)
        ))
    };
    (segments($field:ident or $unknown:expr)) => {
        Value::Number(SEGMENT_DECIMALS, field!(
            r => r.$field,
            v => r.$field = if v.is_finite() { v } else { $unknown }
        ))
    };
    (mbps($field:ident or $unknown:expr)) => {
        Value::Number(6, field!(
            r => r.$field * 1e-6,
            v => r.$field = if v.is_finite() { v * 1e6 } else { $unknown }
        ))
    };
}

/// The table: a line is `name = kind(field), unit, meaning`, then the names that Web100 and Linux
/// have for it, if any.
macro_rules! columns {
    ($($name:ident = $kind:ident $(($($field:tt)*))?, $unit:literal, $about:literal
        $(, web100 $web100:literal)? $(, linux $linux:literal)?;)*) => {
        &[$(ColumnSpec {
            name: stringify!($name),
            unit: $unit,
            about: $about,
            web100: concat!("" $(, $web100)?),
            linux: concat!("" $(, $linux)?),
            value: value!($kind $(($($field)*))?),
        }),*]
    };
}

/// The columns of every trace, in order. After them come the controller's own variables, each as
/// `var_NAME`.
pub const COLUMNS: &[ColumnSpec] = columns! {
    flow = flow, "", "name of the flow";
    time_s = seconds(time), "s", "since the start of the run";
    cwnd = segments(cwnd or f64::NAN), "segments", "window in use: PRR's during a reduction, the controller's otherwise",
        web100 "CurCwnd (bytes)", linux "tcpi_snd_cwnd";
    cwnd_min = segments(cwnd_min or f64::NAN), "segments", "smallest since the row before";
    cwnd_max = segments(cwnd_max or f64::NAN), "segments", "largest since the row before";
    ssthresh = segments(ssthresh or f64::INFINITY), "segments", "threshold; null before the first reduction",
        web100 "CurSsthresh (bytes)", linux "tcpi_snd_ssthresh";
    rtt_ms = millis(rtt or Span::ZERO), "ms", "latest sample; null before the first", web100 "SampledRTT";
    srtt_ms = millis(srtt or Span::ZERO), "ms", "smoothed; null before the first sample", web100 "SmoothedRTT", linux "tcpi_rtt";
    pacing_mbps = mbps(pacing_rate or 0.0), "Mbit/s", "pacing rate of the payload; 0 when not paced",
        linux "tcpi_pacing_rate (byte/s)";
    flight = count(flight), "segments", "in the network, RFC 6675's pipe",
        web100 "PipeSize (bytes)", linux "tcpi_unacked - tcpi_sacked - tcpi_lost + tcpi_retrans";
    delivered_segments = count(delivered), "segments", "delivered so far, as far as the sender knows", linux "tcpi_delivered - 1";
    min_rtt_ms = millis(min_rtt or Span::MAX), "ms", "smallest RTT; null before the first sample",
        web100 "MinRTT", linux "tcpi_min_rtt";
    ack_delay_ms = millis(ack_delay or Span::MAX), "ms", "how long the receiver held the latest ACK; null where nobody says";
    snd_una = count(snd_una), "segments", "first unacknowledged segment", web100 "SndUna (bytes)";
    snd_nxt = count(snd_nxt), "segments", "next new segment", web100 "SndNxt (bytes)";
    retransmits = count(retransmits), "segments", "sent again so far",
        web100 "PktsRetrans, SegsRetrans", linux "tcpi_total_retrans";
    loss_events = count(loss_events), "", "congestion events so far that reduced the window", web100 "CongSignals";
    timeouts = count(timeouts), "", "retransmission timeouts so far";
    local_stalls = count(local_stalls), "segments", "refused by the local queue so far", web100 "SendStall";
    mss = count(mss), "bytes", "payload of a segment", web100 "CurMSS", linux "tcpi_snd_mss";
    phase = phase, "", "start-up, congestion-avoidance, disorder, cwr, recovery or loss", web100 "State", linux "tcpi_ca_state";
    event = event, "", "what happened since the row before, joined by +; empty for nothing";
};

/// What `phase` may say, as [`TraceRow::phase_name`] does, and what it means: the state, and
/// whether the controller is in its start-up.
pub(crate) const PHASES: [(&str, Phase, bool); 6] = [
    ("start-up", Phase::Open, true),
    ("congestion-avoidance", Phase::Open, false),
    ("disorder", Phase::Disorder, false),
    ("cwr", Phase::Cwr, false),
    ("recovery", Phase::Recovery, false),
    ("loss", Phase::Loss, false),
];

/// Index of a row's phase in [`PHASES`].
pub(crate) fn phase_index(row: &TraceRow) -> usize {
    match row.phase {
        Phase::Open if row.start_up => 0,
        Phase::Open => 1,
        Phase::Disorder => 2,
        Phase::Cwr => 3,
        Phase::Recovery => 4,
        Phase::Loss => 5,
    }
}

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

/// Ten to the power of so many decimals.
pub(crate) fn power(decimals: u8) -> f64 {
    10f64.powi(i32::from(decimals))
}

/// `x` times `power`, rounded half away from zero; `None` if it is not finite or does not fit.
#[inline]
pub(crate) fn scaled(x: f64, power: f64) -> Option<i64> {
    let v = x * power;
    if v.abs() < LARGEST_DECIMAL {
        // As `f64::round` does, which is a call on processors without SSE 4.1.
        let whole = v as i64;
        let rest = v - whole as f64;
        Some(whole + i64::from(rest >= 0.5) - i64::from(rest <= -0.5))
    } else {
        None
    }
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
        assert_eq!(scaled(1.23456, power(4)), Some(12_346));
        assert_eq!(scaled(-2.0, power(6)), Some(-2_000_000));
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e30, 1e14] {
            assert_eq!(scaled(x, power(4)), None);
        }
    }

    #[test]
    fn rounds_as_the_library_does() {
        let mut x: f64 = 0.37;
        for i in 0..2000 {
            x *= 1.021;
            for v in [
                x,
                -x,
                x.floor() + 0.5,
                -x.floor() - 0.5,
                x.next_down(),
                f64::from(i),
            ] {
                let rounded = v.round();
                let fits = rounded.abs() < LARGEST_DECIMAL;
                assert_eq!(scaled(v, 1.0), fits.then_some(rounded as i64), "{v}");
            }
        }
        // Half a unit less a rounding.
        assert_eq!(scaled(0.499_999_999_999_999_94, 1.0), Some(0));
    }

    #[test]
    fn phases_are_those_of_a_row() {
        for (i, (name, phase, start_up)) in PHASES.into_iter().enumerate() {
            let row = TraceRow {
                phase,
                start_up,
                ..TraceRow::default()
            };
            assert_eq!((row.phase_name(), phase_index(&row)), (name, i));
        }
    }
}
