//! Cross traffic: numbered datagrams of any size, to which nobody answers, and round-trip probes
//! with their echoes. The echo is the probe with another kind: as long, byte for byte the same
//! behind its first byte.
//!
//! ```text
//! | header, 12 bytes                                              |
//! | number, 8 bytes: from 0, one more per datagram                |
//! | sender's time stamp, 4 bytes: microseconds, modulo 2^32       |
//! | padding up to the size asked for                              |
//! ```
//! No flags. What the padding holds means nothing; it is sent as zeros, and whoever echoes a probe
//! copies what it got.

use fullpipe_units::Time;

use super::numbered::{self, Numbered};
use super::{Header, Kind, SessionId, VERSION, WireError};

/// A datagram of cross traffic, without its padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossDatagram {
    /// [`Kind::Datagram`], [`Kind::Ping`] or [`Kind::Pong`].
    pub kind: Kind,
    /// Session that the datagram belongs to.
    pub session: SessionId,
    /// Number of the traffic in the run specification, among what is answered or is not.
    pub flow: u16,
    /// Its own number there; that of the probe in an echo.
    pub number: u64,
    /// When it left, or its probe, exact to a microsecond and known modulo 2^32 of them.
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
        .encode_padded(self.kind, self.flow, self.session, out);
    }

    /// Reads it; what follows is padding.
    ///
    /// # Errors
    /// [`WireError`] if it is too short, has flags, or a number that no datagram has.
    #[inline]
    pub fn decode(header: &Header, datagram: &[u8]) -> Result<Self, WireError> {
        let Numbered { number, stamp } = Numbered::decode_padded(header, datagram)?;
        Ok(Self {
            kind: header.kind,
            session: header.session,
            flow: header.flow,
            number,
            stamp,
        })
    }

    /// Makes the echo of a probe that [`Self::decode`] accepted, in place.
    #[inline]
    pub fn turn(datagram: &mut [u8]) {
        if let Some(first) = datagram.first_mut() {
            *first = VERSION << 4 | Kind::Pong as u8;
        }
    }
}
