//! A segment of data.
//!
//! ```text
//! | header, 12 bytes                                              |
//! | sequence number, 8 bytes: of the segment, not of a byte       |
//! | sender's time stamp, 4 bytes: microseconds, modulo 2^32       |
//! | payload, at least one byte; none behind a SYN                 |
//! ```
//! Flags: 1 SYN, 2 retransmission, 4 CWR, 8 PUSH, 16 to 64 three random bits. ECN's code points are
//! those of the IP header. A SYN has number 0 and neither CWR nor PUSH nor random bits.

use fullpipe_flow::Segment;

use super::numbered::{self, Numbered};
use super::{Header, Kind, SessionId, WireError};

/// A datagram of kind [`Kind::Data`], without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataDatagram {
    /// Session that the segment belongs to.
    pub session: SessionId,
    /// Number of the flow in the run specification.
    pub flow: u16,
    /// The segment. `ect` and `ce` are not on this wire; the time stamp is exact to a microsecond
    /// and known modulo 2^32 of them.
    pub segment: Segment,
    /// Three random bits, by which ACKs prove themselves ([`super::reception`]).
    pub nonce: u8,
}

impl DataDatagram {
    /// Bytes before the payload.
    pub const LEN: usize = numbered::LEN;

    /// Writes it to the front of `out`, which is at least [`Self::LEN`] bytes long.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) {
        let s = &self.segment;
        let flags = [s.syn, s.retransmission, s.cwr, s.push];
        Header {
            kind: Kind::Data,
            flags: super::header::bits(flags) | self.nonce << 4,
            flow: self.flow,
            session: self.session,
        }
        .encode(out);
        Numbered {
            number: s.seq,
            stamp: s.stamp,
        }
        .encode(out);
    }

    /// Reads it, and what follows [`Self::LEN`] bytes is the payload. `ect` and `ce` are false.
    ///
    /// # Errors
    /// [`WireError`] if it is too short, has unknown flags, a number that no segment has, data
    /// without payload, or a SYN that is more than that.
    #[inline]
    pub fn decode(header: &Header, datagram: &[u8]) -> Result<Self, WireError> {
        let Numbered { number, stamp } = Numbered::decode(datagram)?;
        let [syn, retransmission, cwr, push] = super::header::flags(header.flags & 0x8f)?;
        let nonce = header.flags >> 4;
        let empty = datagram.len() == Self::LEN;
        // Above bit 48 a short flow's numbers tell which flow of its number it is.
        let first = match header.flow {
            SHORT.. => number << 16 >> 16,
            _ => number,
        };
        if syn != empty || (syn && (first > 1 || cwr || push || nonce > 0)) {
            return Err(WireError::Malformed);
        }
        Ok(Self {
            session: header.session,
            flow: header.flow,
            segment: Segment {
                seq: number,
                syn,
                retransmission,
                stamp,
                ect: false,
                ce: false,
                cwr,
                push,
            },
            nonce,
        })
    }
}

/// The first flow number of a short flow.
const SHORT: u16 = 0x8000;
