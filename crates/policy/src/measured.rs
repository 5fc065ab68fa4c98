//! What probes have measured of paths, by the host that was asked.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use fullpipe_units::{Bytes, Rate, Span};
use serde_json::{Value, json};

use crate::policy::text;

/// What a probe has measured of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Capacity, headers included.
    pub rate: Rate,
    /// Round-trip time without queues.
    pub rtt: Span,
    /// Buffer of the bottleneck; at least this where the probe lost nothing.
    pub buffer: Bytes,
    /// The probe has filled the buffer.
    pub lost: bool,
    /// The limit of the host that was asked, where that and not the path bounded the rate.
    pub limit: Option<ServerLimit>,
    /// The hosts were on time: else rate and buffer may be too large, for what comes late comes in
    /// bursts.
    pub valid: bool,
    /// When, in seconds since 1970.
    pub at: u64,
}

/// A limit of a server that hides what a path has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerLimit {
    /// `serve --max-rate`.
    Rate(Rate),
    /// `serve --max-bytes`: used up before the probe had its time.
    Bytes(Bytes),
}

impl fmt::Display for ServerLimit {
    /// With the option that sets it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => write!(f, "{rate} (`serve --max-rate`)"),
            Self::Bytes(bytes) => write!(f, "{bytes} (`serve --max-bytes`)"),
        }
    }
}

/// Keyed by the host that was asked, as `probe` spells it.
pub type Measurements = BTreeMap<String, Measured>;

impl fmt::Display for Measured {
    /// `98.7 Mbit/s, RTT 80.10 ms, buffer at least 450.0 kB`, and whether it is not valid.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, rtt) = (self.rate.as_mbps(), self.rtt.as_millis_f64());
        let least = if self.lost { "" } else { "at least " };
        let buffer = self.buffer.get() as f64 / 1000.0;
        write!(
            f,
            "{rate:.1} Mbit/s, RTT {rtt:.2} ms, buffer {least}{buffer:.1} kB"
        )?;
        match self.valid {
            true => Ok(()),
            false => f.write_str(" (not valid, the hosts were late: too large, if anything)"),
        }
    }
}

impl Measured {
    /// JSON as the file of measured paths has it, and `from_json` reads.
    pub fn to_json(&self) -> Value {
        let (max_rate, max_bytes) = match self.limit {
            Some(ServerLimit::Rate(rate)) => (Some(rate.as_bits_per_sec()), None),
            Some(ServerLimit::Bytes(bytes)) => (None, Some(bytes.get())),
            None => (None, None),
        };
        json!({
            "rate_bps": self.rate.as_bits_per_sec(),
            "rtt_ns": self.rtt.as_nanos(),
            "buffer_bytes": self.buffer.get(),
            "lost": self.lost,
            "rate_at_least": self.limit.is_some(),
            "server_max_rate_bps": max_rate,
            "server_max_bytes": max_bytes,
            "valid": self.valid,
            "at": self.at,
        })
    }

    /// `None` if it is no such object, or says what cannot be.
    pub fn from_json(value: &Value) -> Option<Self> {
        let number = |key: &str| value[key].as_u64();
        let max_rate = number("server_max_rate_bps").map(Rate::from_bits_per_sec);
        let max_bytes = number("server_max_bytes").map(Bytes);
        let limit = max_rate.map(ServerLimit::Rate);
        let measured = Self {
            rate: Rate::from_bits_per_sec(number("rate_bps").filter(|n| *n > 0)?),
            rtt: Span::from_nanos(number("rtt_ns").filter(|n| (1..=HOUR).contains(n))?),
            buffer: Bytes(number("buffer_bytes")?),
            lost: value["lost"].as_bool()?,
            limit: limit.or(max_bytes.map(ServerLimit::Bytes)),
            // Earlier versions did not say.
            valid: value["valid"].as_bool().unwrap_or(true),
            at: number("at")?,
        };
        Some(measured)
    }

    /// Whether it is not older than `lasts` seconds. A clock that was ahead when it was measured,
    /// and was put back, leaves one of the future: it is not waited for.
    pub fn counts(&self, now: u64, lasts: u64) -> bool {
        now.abs_diff(self.at) < lasts
    }

    /// Seconds since it was measured.
    pub fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.at)
    }
}

/// Longest RTT that a path can have, ns.
const HOUR: u64 = 3_600_000_000_000;

/// The text of a file of measurements.
pub fn written(all: &Measurements) -> String {
    let all = all.iter().map(|(host, m)| (host.clone(), m.to_json()));
    format!("{:#}\n", Value::Object(all.collect()))
}

/// From such a file, if it is there and a regular one.
pub fn of_file(file: &Path) -> Measurements {
    text(file).map_or_else(|_| Measurements::new(), |text| read(&text))
}

/// From such a text. What is none counts for nothing: it is measured again.
pub fn read(text: &str) -> Measurements {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let all = value.as_object().into_iter().flatten();
    all.filter_map(|(host, m)| Some((host.clone(), Measured::from_json(m)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_measurements_is_read_as_it_was_written() {
        let measured = Measured {
            rate: Rate::from_bits_per_sec(622_000_000),
            rtt: Span::from_millis(160),
            buffer: Bytes(3_000_000),
            lost: true,
            limit: None,
            valid: false,
            at: 1_700_000_000,
        };
        let all = Measurements::from([("192.0.2.7:6220".to_owned(), measured)]);
        assert_eq!(read(&written(&all)), all);
        assert_eq!(measured.age(1_700_000_060), 60);
        assert_eq!(measured.age(0), 0, "a clock that was put back");
        let counts = |now| measured.counts(now, 60);
        assert!(counts(1_700_000_059) && !counts(1_700_000_060));
        assert!(counts(1_699_999_941), "put back by less");
        assert!(!counts(1_699_999_940) && !counts(0));
    }

    #[test]
    fn it_reads_in_usual_units_and_says_what_it_is_not() {
        let mut measured = Measured {
            rate: Rate::from_bits_per_sec(203_258_824),
            rtt: Span::from_micros(80_123),
            buffer: Bytes(1_875_870),
            lost: true,
            limit: None,
            valid: true,
            at: 1,
        };
        let due = "203.3 Mbit/s, RTT 80.12 ms, buffer 1875.9 kB";
        assert_eq!(measured.to_string(), due);
        (measured.lost, measured.valid) = (false, false);
        let due = "203.3 Mbit/s, RTT 80.12 ms, buffer at least 1875.9 kB (not valid, the hosts \
                   were late: too large, if anything)";
        assert_eq!(measured.to_string(), due);
    }

    #[test]
    fn a_server_s_limit_is_read_as_it_was_written() {
        let measured = |limit| Measured {
            rate: Rate::from_bits_per_sec(21_000_000),
            rtt: Span::from_millis(40),
            buffer: Bytes(0),
            lost: false,
            limit,
            valid: true,
            at: 1,
        };
        for (limit, said) in [
            (None, None),
            (
                Some(ServerLimit::Rate(Rate::from_bits_per_sec(20_000_000))),
                Some("20Mbit/s (`serve --max-rate`)"),
            ),
            (
                Some(ServerLimit::Bytes(Bytes(1_000_000))),
                Some("1MB (`serve --max-bytes`)"),
            ),
        ] {
            let json = measured(limit).to_json();
            assert_eq!(json["rate_at_least"], limit.is_some());
            assert_eq!(Measured::from_json(&json), Some(measured(limit)));
            assert_eq!(limit.map(|limit| limit.to_string()).as_deref(), said);
        }
    }

    #[test]
    fn what_no_probe_can_have_written_counts_for_nothing() {
        for text in [
            "",
            "[1]",
            "{\"a\": 1}",
            "{\"a\": {\"rate_bps\": 0, \"rtt_ns\": 1, \"buffer_bytes\": 1, \"lost\": true, \"at\": 1}}",
            "{\"a\": {\"rate_bps\": 1, \"rtt_ns\": 0, \"buffer_bytes\": 1, \"lost\": true, \"at\": 1}}",
            "{\"a\": {\"rate_bps\": -1, \"rtt_ns\": 1, \"buffer_bytes\": 1, \"lost\": true, \"at\": 1}}",
        ] {
            assert_eq!(read(text), Measurements::new(), "{text}");
        }
    }
}
