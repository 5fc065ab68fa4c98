//! Packets and times for the tests of the disciplines.

use fullpipe_flow::Segment;
use fullpipe_units::Time;

use crate::packet::{Kind, Packet};

/// A time in milliseconds.
pub fn ms(t: u64) -> Time {
    Time::from_nanos(t * 1_000_000)
}

/// Number `n` of `flow`, `size` bytes, not ECN-capable.
pub fn packet(flow: u32, size: u16, n: u64) -> Packet {
    Packet::cross(flow, size, Kind::Datagram, n, Time::ZERO)
}

/// Number `n` of a flow that uses ECN, 1500 bytes.
pub fn capable(n: u64) -> Packet {
    let segment = Segment {
        seq: n,
        syn: false,
        retransmission: false,
        stamp: Time::ZERO,
        ect: true,
        ce: false,
        cwr: false,
        push: false,
    };
    Packet::of_segment(0, 1500, &segment)
}
