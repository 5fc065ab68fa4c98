//! What data, cross traffic and probes have after the header: a number and a time stamp.
//!
//! Stamps are whole microseconds modulo 2^32. The clock of an endpoint ticks in whole microseconds,
//! so that an echoed stamp is exactly the time at which the segment left.

use fullpipe_units::Time;

use super::{HEADER, Header, Kind, MOST_NUMBER, SessionId, WireError};

/// Bytes of the header, the number and the stamp.
pub(super) const LEN: usize = HEADER + 12;

/// Number and time stamp.
#[derive(Clone, Copy)]
pub(super) struct Numbered {
    pub number: u64,
    pub stamp: Time,
}

impl Numbered {
    #[inline]
    pub fn encode(self, out: &mut [u8]) {
        debug_assert!(self.number < MOST_NUMBER, "number {}", self.number);
        out[12..20].copy_from_slice(&self.number.to_be_bytes());
        out[20..LEN].copy_from_slice(&stamp(self.stamp).to_be_bytes());
    }

    #[inline]
    pub fn decode(datagram: &[u8]) -> Result<Self, WireError> {
        let Some(head) = datagram.first_chunk::<LEN>() else {
            return Err(WireError::Truncated);
        };
        let [.., n0, n1, n2, n3, n4, n5, n6, n7, t0, t1, t2, t3] = *head;
        let number = u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        if number >= MOST_NUMBER {
            return Err(WireError::Malformed);
        }
        Ok(Self {
            number,
            stamp: time(u32::from_be_bytes([t0, t1, t2, t3])),
        })
    }

    /// Writes a datagram that has nothing else: a header without flags, number and stamp, zeros up
    /// to the end of `out`, which is at least [`LEN`] bytes long.
    #[inline]
    pub fn encode_padded(self, kind: Kind, flow: u16, session: SessionId, out: &mut [u8]) {
        Header {
            kind,
            flags: 0,
            flow,
            session,
        }
        .encode(out);
        self.encode(out);
        out[LEN..].fill(0);
    }

    /// Reads one; what follows is padding.
    #[inline]
    pub fn decode_padded(header: &Header, datagram: &[u8]) -> Result<Self, WireError> {
        let numbered = Self::decode(datagram)?;
        match header.flags {
            0 => Ok(numbered),
            _ => Err(WireError::Malformed),
        }
    }
}

/// A time on the wire.
#[inline]
pub(super) fn stamp(t: Time) -> u32 {
    (t.as_nanos() / 1000) as u32
}

/// A stamp as the first time that has it.
#[inline]
pub(super) fn time(stamp: u32) -> Time {
    Time::from_nanos(u64::from(stamp) * 1000)
}
