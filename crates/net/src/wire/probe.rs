//! Round-trip probes. The echo is the probe with another kind: as long, byte for byte the same
//! behind its first byte.
//!
//! ```text
//! | header, 12 bytes                                              |
//! | number, 8 bytes: from 0, one more per probe                   |
//! | prober's time stamp, 4 bytes: microseconds, modulo 2^32       |
//! | padding up to the size asked for                              |
//! ```
//! No flags. A probe is padded with zeros; whoever echoes it copies what it got.

use fullpipe_units::Time;

use super::numbered::{self, Numbered};
use super::{Header, Kind, SessionId, VERSION, WireError};

/// A datagram of kind [`Kind::Ping`] or [`Kind::Pong`], without its padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeDatagram {
    /// Session that the probe belongs to.
    pub session: SessionId,
    /// Number of the ping in the run specification.
    pub probe: u16,
    /// Its number in the sequence.
    pub number: u64,
    /// When the probe left, exact to a microsecond and known modulo 2^32 of them.
    pub stamp: Time,
    /// On its way back.
    pub echo: bool,
}

impl ProbeDatagram {
    /// Fewest bytes.
    pub const LEN: usize = numbered::LEN;

    /// Fills `out`, which is at least [`Self::LEN`] bytes long, to its end.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) {
        let kind = if self.echo { Kind::Pong } else { Kind::Ping };
        Numbered {
            number: self.number,
            stamp: self.stamp,
        }
        .encode_padded(kind, self.probe, self.session, out);
    }

    /// Reads it; what follows is padding.
    ///
    /// # Errors
    /// [`WireError`] if it is too short, has flags, or a number that no probe has.
    #[inline]
    pub fn decode(header: &Header, datagram: &[u8]) -> Result<Self, WireError> {
        let Numbered { number, stamp } = Numbered::decode_padded(header, datagram)?;
        Ok(Self {
            session: header.session,
            probe: header.flow,
            number,
            stamp,
            echo: header.kind == Kind::Pong,
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
