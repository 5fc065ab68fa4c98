//! What probes have measured of paths, by the host that was asked.

use std::collections::BTreeMap;

use fullpipe_units::{Bytes, Rate, Span};
use serde_json::{Value, json};

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
    /// What the host that was asked lets through, where that and not the path ended the rate.
    pub allowed: Option<Rate>,
    /// The hosts were on time: else rate and buffer may be too large, for what comes late comes in
    /// bursts.
    pub valid: bool,
    /// When, in seconds since 1970.
    pub at: u64,
}

/// Keyed by the host that was asked, as `probe` spells it.
pub type Measurements = BTreeMap<String, Measured>;

impl Measured {
    /// As a probe prints it.
    pub fn to_json(&self) -> Value {
        json!({
            "rate_bps": self.rate.as_bits_per_sec(),
            "rtt_ns": self.rtt.as_nanos(),
            "buffer_bytes": self.buffer.get(),
            "lost": self.lost,
            "rate_at_least": self.allowed.is_some(),
            "server_max_rate_bps": self.allowed.map(Rate::as_bits_per_sec),
            "valid": self.valid,
            "at": self.at,
        })
    }

    /// `None` if it is no such object, or says what cannot be.
    pub fn from_json(value: &Value) -> Option<Self> {
        let number = |key: &str| value[key].as_u64();
        let measured = Self {
            rate: Rate::from_bits_per_sec(number("rate_bps").filter(|n| *n > 0)?),
            rtt: Span::from_nanos(number("rtt_ns").filter(|n| (1..=HOUR).contains(n))?),
            buffer: Bytes(number("buffer_bytes")?),
            lost: value["lost"].as_bool()?,
            allowed: number("server_max_rate_bps").map(Rate::from_bits_per_sec),
            // Earlier versions did not say.
            valid: value["valid"].as_bool().unwrap_or(true),
            at: number("at")?,
        };
        Some(measured)
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
            allowed: None,
            valid: false,
            at: 1_700_000_000,
        };
        let all = Measurements::from([("192.0.2.7:6220".to_owned(), measured)]);
        assert_eq!(read(&written(&all)), all);
        assert_eq!(measured.age(1_700_000_060), 60);
        assert_eq!(measured.age(0), 0, "a clock that was put back");
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
