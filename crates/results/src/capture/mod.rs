//! Captures of a run for other people's tools: [`pcap`] for Wireshark, tshark and tcptrace,
//! [`qlog`] for qvis.
//!
//! What it is: translation of [`CaptureRow`]s, which the simulator records when `RunSpec::capture`
//! is set, into the two formats. What it is not: it draws nothing and judges nothing. A run with
//! captures gives the same numbers as one without.

pub mod pcap;
pub mod qlog;
pub mod thin;

use std::net::{Ipv4Addr, SocketAddrV4};

use fullpipe_run::{CaptureEvent, CaptureRow, FlowSpec};
use fullpipe_units::Time;

/// Captures to write beside the results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captures {
    /// One file of packets per run at the senders' hosts and one at the receivers'.
    pub pcap: bool,
    /// One file of events per flow, as its sender sees them.
    pub qlog: bool,
}

impl Captures {
    /// True if there is something to write.
    pub fn any(self) -> bool {
        self.pcap || self.qlog
    }

    /// Bytes on the disk for one data packet with its share of ACKs: headers at both hosts, and the
    /// events. Rough, from above.
    pub fn bytes_per_packet(self) -> u64 {
        u64::from(self.pcap) * PCAP_BYTES + u64::from(self.qlog) * QLOG_BYTES
    }
}

/// Most data packets of a run that is captured: above a gigabyte of rows in memory per run, and
/// files that Wireshark takes minutes to open.
pub const MOST_PACKETS: u64 = 2_000_000;
/// Captures that may become larger than this together are worth a warning, bytes.
pub const LARGE: u64 = 1_000_000_000;

const PCAP_BYTES: u64 = 240;
const QLOG_BYTES: u64 = 450;

/// The two ends of a flow: addresses of one's own, so that every flow is a stream of its own.
///
/// Flow 0 goes from `10.0.0.1:49152` to `10.1.0.1:5001`, flow 1 from `10.0.0.2:49153` to
/// `10.1.0.2:5001`, and so on; each second byte counts 250 flows.
pub fn endpoints(flow: usize) -> (SocketAddrV4, SocketAddrV4) {
    let (high, low) = ((flow / PER_NET) as u8, (flow % PER_NET) as u8 + 1);
    let port = FIRST_PORT + (flow % PORTS) as u16;
    (
        SocketAddrV4::new(Ipv4Addr::new(10, 0, high, low), port),
        SocketAddrV4::new(Ipv4Addr::new(10, 1, high, low), RECEIVER_PORT),
    )
}

const PER_NET: usize = 250;
const PORTS: usize = 16_384;
const FIRST_PORT: u16 = 49_152;
const RECEIVER_PORT: u16 = 5001;

/// Headers of an ACK without options, or of a segment.
const IP_AND_TCP: u32 = 40;
/// The same with the time stamps option (RFC 7323).
const WITH_STAMPS: u32 = 52;

/// True if the flow's packets have room for time stamps.
pub(crate) fn has_stamps(flow: &FlowSpec) -> bool {
    flow.sender.header >= WITH_STAMPS
}

/// The receiver's time stamps as they reached a sender: what its next segments echo.
#[derive(Debug, Default)]
struct Echoes(Vec<(Time, u32)>);

impl Echoes {
    fn of(flow: usize, rows: &[CaptureRow]) -> Self {
        let of_flow = rows.iter().filter(|r| r.flow as usize == flow);
        Self(
            of_flow
                .filter_map(|r| match r.event {
                    CaptureEvent::AckReceived(ack) => Some((r.at, ack.stamp_ms)),
                    _ => None,
                })
                .collect(),
        )
    }

    /// What a segment that left at `sent` echoes; 0 before the first ACK.
    fn at(&self, sent: Time) -> u32 {
        let after = self.0.partition_point(|(at, _)| *at <= sent);
        after.checked_sub(1).map_or(0, |i| self.0[i].1)
    }
}

fn millis(time: Time) -> u32 {
    (time.as_nanos() / 1_000_000) as u32
}

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
#[allow(missing_docs)]
pub mod testing;
