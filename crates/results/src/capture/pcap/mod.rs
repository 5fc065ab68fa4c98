//! Packets as tcpdump would have seen them: classic pcap with nanoseconds, raw IPv4, headers only.
//!
//! Format: libpcap's `pcap-savefile`, magic `a1b23c4d`, link type 101 (`LINKTYPE_RAW`). Headers:
//! IPv4 (RFC 791), TCP (RFC 9293), options MSS, window scale and time stamps (RFC 7323), SACK and
//! D-SACK (RFC 2018, RFC 2883), ECN (RFC 3168).
//!
//! The simulator numbers segments and knows no bytes, so some fields follow from a rule:
//! - Segment `n` begins at `ISN + 1 + n mss`, modulo 2^32. The payload is all zero and is cut off;
//!   the TCP checksum counts it.
//! - The time stamps' clock ticks in milliseconds of virtual time. Packets too small for the option
//!   have none.
//! - The window is `window_end` in bytes, rounded up to the scale. A receiver that never limits
//!   shows the largest window TCP has, 1 GiB.
//! - The sender's own window is constant. A connection without a handshake has no SYN; one with a
//!   handshake has no separate third packet, its first data stands for it. There is no FIN.
//! - An ACK with SACK blocks is as long as its options make it; on the simulated link every ACK has
//!   the same size.
//! - The IP identification is a hash of the packet, the same in both files and another one for
//!   another copy of a segment.

mod connection;
mod headers;
pub mod read;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use fullpipe_run::{CaptureEvent, CaptureRow, FlowSpec};
use fullpipe_units::Time;

use connection::Connection;

/// The end of the path at which the capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// The host where a flow's data segments leave.
    Sender,
    /// The host where a flow's data segments arrive.
    Receiver,
}

/// Writes the packets that the hosts of `flows` sent and received on this side.
///
/// # Errors
/// If `out` refuses.
pub fn write(
    out: &mut dyn Write,
    flows: &[FlowSpec],
    rows: &[CaptureRow],
    host: Host,
) -> io::Result<()> {
    let connections: Vec<Connection> = flows
        .iter()
        .enumerate()
        .map(|(i, flow)| Connection::new(i, flow, rows))
        .collect();
    out.write_all(&file_header())?;
    for row in rows {
        let connection = &connections[row.flow as usize];
        let (headers, payload) = match (host, row.event) {
            (Host::Sender, CaptureEvent::SegmentSent(s))
            | (Host::Receiver, CaptureEvent::SegmentReceived(s)) => connection.segment(&s),
            (Host::Sender, CaptureEvent::AckReceived(a))
            | (Host::Receiver, CaptureEvent::AckSent(a)) => (connection.ack(&a), 0),
            _ => continue,
        };
        let whole = headers.len() as u32 + payload;
        out.write_all(&record_header(row.at, headers.len() as u32, whole))?;
        out.write_all(&headers)?;
    }
    Ok(())
}

/// Bytes of the file's header.
const FILE_HEADER: usize = 24;

/// Bytes of a record's header.
const RECORD_HEADER: usize = 16;

fn file_header() -> [u8; FILE_HEADER] {
    let mut h = [0; FILE_HEADER];
    h[0..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
    h[4..6].copy_from_slice(&2u16.to_le_bytes());
    h[6..8].copy_from_slice(&4u16.to_le_bytes());
    h[16..20].copy_from_slice(&SNAP_LENGTH.to_le_bytes());
    h[20..24].copy_from_slice(&LINKTYPE_RAW.to_le_bytes());
    h
}

fn record_header(at: Time, captured: u32, whole: u32) -> [u8; RECORD_HEADER] {
    let (seconds, nanos) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
    let mut h = [0; RECORD_HEADER];
    h[0..4].copy_from_slice(&(seconds as u32).to_le_bytes());
    h[4..8].copy_from_slice(&(nanos as u32).to_le_bytes());
    h[8..12].copy_from_slice(&captured.to_le_bytes());
    h[12..16].copy_from_slice(&whole.to_le_bytes());
    h
}

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Longest headers: 20 bytes of IP, 60 of TCP.
const SNAP_LENGTH: u32 = 80;
const LINKTYPE_RAW: u32 = 101;
