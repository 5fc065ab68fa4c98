//! The records of a file as the schema has them.

use std::io::{self, Write};

use serde::Serialize;

/// A JSON text sequence (RFC 7464): each text between a record separator and a line feed.
pub(super) fn record(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    out.write_all(&[RECORD_SEPARATOR])?;
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
pub(super) struct Event<D> {
    pub(super) time: f64,
    pub(super) name: &'static str,
    pub(super) data: D,
    /// A field of our own, as events may have: QUIC numbers its packets anew and need not say it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) retransmission: bool,
}

#[derive(Serialize)]
pub(super) struct PacketData {
    pub(super) header: PacketHeader,
    pub(super) raw: Raw,
    pub(super) frames: Vec<Frame>,
}

#[derive(Serialize)]
pub(super) struct PacketHeader {
    pub(super) packet_type: &'static str,
    pub(super) packet_number: u64,
}

impl PacketHeader {
    /// Header of a SYN: qlog's `initial`.
    pub(super) fn opening(packet_number: u64) -> PacketHeader {
        PacketHeader {
            packet_type: "initial",
            packet_number,
        }
    }

    /// Header of any packet after the SYN: qlog's `1RTT`.
    pub(super) fn short(packet_number: u64) -> PacketHeader {
        PacketHeader {
            packet_type: "1RTT",
            packet_number,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Raw {
    pub(super) length: u64,
    pub(super) payload_length: u64,
}

#[derive(Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
pub(super) enum Frame {
    Stream {
        stream_id: u64,
        offset: u64,
        length: u64,
    },
    Ack {
        acked_ranges: Vec<[u64; 2]>,
    },
    Ping,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ssthresh: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pacing_rate: Option<u64>,
}

impl Metrics {
    /// Only what differs from `before`.
    pub(super) fn without(self, before: &Metrics) -> Metrics {
        fn new<T: PartialEq>(now: Option<T>, before: Option<T>) -> Option<T> {
            if now == before { None } else { now }
        }
        Metrics {
            min_rtt: new(self.min_rtt, before.min_rtt),
            smoothed_rtt: new(self.smoothed_rtt, before.smoothed_rtt),
            latest_rtt: new(self.latest_rtt, before.latest_rtt),
            congestion_window: new(self.congestion_window, before.congestion_window),
            bytes_in_flight: new(self.bytes_in_flight, before.bytes_in_flight),
            ssthresh: new(self.ssthresh, before.ssthresh),
            pacing_rate: new(self.pacing_rate, before.pacing_rate),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Lost {
    header: PacketHeader,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<&'static str>,
}

impl Lost {
    /// The packet of this number.
    pub(super) fn of(packet_number: u64) -> Lost {
        Lost::by(packet_number, None)
    }

    /// The same, found to be lost by this `trigger` of the schema.
    pub(super) fn by(packet_number: u64, trigger: Option<&'static str>) -> Lost {
        Lost {
            header: PacketHeader::short(packet_number),
            trigger,
        }
    }
}

/// Sorted numbers as ranges, both ends included.
pub(super) fn ranges(numbers: &[u64]) -> Vec<[u64; 2]> {
    let mut found: Vec<[u64; 2]> = Vec::new();
    for &n in numbers {
        match found.last_mut() {
            Some(last) if n <= last[1] + 1 => last[1] = n,
            _ => found.push([n, n]),
        }
    }
    found
}

const RECORD_SEPARATOR: u8 = 0x1e;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_neighbours() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), [[0, 2], [5, 5], [7, 8]]);
    }
}
