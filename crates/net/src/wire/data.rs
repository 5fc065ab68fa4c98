//! A segment of data.
//!
//! ```text
//! | header, 12 bytes                                              |
//! | sequence number, 8 bytes: of the segment, not of a byte       |
//! | sender's time stamp, 4 bytes: microseconds, modulo 2^32       |
//! | payload                                                       |
//! ```
//! Flags: 1 SYN, 2 retransmission, 4 CWR, 8 PUSH. ECN's code points are those of the IP header.

use fullpipe_flow::Segment;
use fullpipe_units::Time;

use super::{HEADER, Header, Kind, SessionId, WireError};

/// A datagram of kind [`Kind::Data`], without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataDatagram {
    /// Its session.
    pub session: SessionId,
    /// Its flow.
    pub flow: u16,
    /// The segment. `ect` and `ce` are not on this wire; the time stamp is exact to a microsecond and known modulo 2^32 of them.
    pub segment: Segment,
}

impl DataDatagram {
    /// Bytes before the payload.
    pub const LEN: usize = HEADER + 12;

    /// Writes it to the front of `out`, which is at least [`Self::LEN`] bytes long.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) {
        let s = &self.segment;
        let flags = [s.syn, s.retransmission, s.cwr, s.push];
        Header {
            kind: Kind::Data,
            flags: super::header::bits(flags),
            flow: self.flow,
            session: self.session,
        }
        .encode(out);
        out[12..20].copy_from_slice(&s.seq.to_be_bytes());
        let stamp = (s.stamp.as_nanos() / 1000) as u32;
        out[20..24].copy_from_slice(&stamp.to_be_bytes());
    }

    /// Reads it, and what follows is the payload. `ect` and `ce` are false.
    ///
    /// # Errors
    /// [`WireError`] if it is too short or has unknown flags.
    #[inline]
    pub fn decode(header: &Header, datagram: &[u8]) -> Result<Self, WireError> {
        let Some(head) = datagram.first_chunk::<{ Self::LEN }>() else {
            return Err(WireError::Truncated);
        };
        let [syn, retransmission, cwr, push] = super::header::flags(header.flags)?;
        let [.., s0, s1, s2, s3, s4, s5, s6, s7, t0, t1, t2, t3] = *head;
        let stamp = u32::from_be_bytes([t0, t1, t2, t3]);
        Ok(Self {
            session: header.session,
            flow: header.flow,
            segment: Segment {
                seq: u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
                syn,
                retransmission,
                stamp: Time::from_nanos(u64::from(stamp) * 1000),
                ect: false,
                ce: false,
                cwr,
                push,
            },
        })
    }
}
