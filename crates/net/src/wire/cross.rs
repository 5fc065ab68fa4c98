//! Cross traffic: numbered datagrams of any size, to which nobody answers.
//!
//! ```text
//! | header, 12 bytes                                              |
//! | number, 8 bytes: from 0, one more per datagram of the source  |
//! | sender's time stamp, 4 bytes: microseconds, modulo 2^32       |
//! | padding up to the size asked for                              |
//! ```
//! No flags. What the padding holds means nothing; it is sent as zeros.

use fullpipe_units::Time;

use super::numbered::{self, Numbered};
use super::{Header, Kind, SessionId, WireError};

/// A datagram of kind [`Kind::Datagram`], without its padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossDatagram {
    /// Session that the datagram belongs to.
    pub session: SessionId,
    /// Number of the source in the run specification.
    pub source: u16,
    /// Its number in the source.
    pub number: u64,
    /// When it left, exact to a microsecond and known modulo 2^32 of them.
    pub stamp: Time,
}

impl CrossDatagram {
    /// Fewest bytes.
    pub const LEN: usize = numbered::LEN;

    /// Fills `out`, which is at least [`Self::LEN`] bytes long, to its end.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) {
        Numbered {
            number: self.number,
            stamp: self.stamp,
        }
        .encode_padded(Kind::Datagram, self.source, self.session, out);
    }

    /// Reads it; what follows is padding.
    ///
    /// # Errors
    /// [`WireError`] if it is too short, has flags, or a number that no datagram has.
    #[inline]
    pub fn decode(header: &Header, datagram: &[u8]) -> Result<Self, WireError> {
        let Numbered { number, stamp } = Numbered::decode_padded(header, datagram)?;
        Ok(Self {
            session: header.session,
            source: header.flow,
            number,
            stamp,
        })
    }
}
