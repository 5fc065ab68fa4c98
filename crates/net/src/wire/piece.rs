//! A piece of a datagram that is too long for its path.

use super::{HEADER, Header, Kind, SessionId, WireError};

/// What a piece has in front of its part of the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceDatagram {
    /// The session.
    pub session: SessionId,
    /// Flow of the whole.
    pub flow: u16,
    /// Of the whole, modulo 2^32: one more for each that leaves in pieces.
    pub number: u32,
    /// Index of the piece, below `count`.
    pub index: u8,
    /// How many there are, at least 2.
    pub count: u8,
    /// Bytes of the whole.
    pub whole: u16,
}

impl PieceDatagram {
    /// Bytes in front of a part.
    pub const LEN: usize = HEADER + 8;
    /// Most pieces of a datagram.
    pub const MOST: usize = 64;

    /// Bytes of every part but the last.
    #[inline]
    pub fn part(&self) -> usize {
        usize::from(self.whole).div_ceil(usize::from(self.count))
    }

    /// Where in the whole its part lies.
    pub fn range(&self) -> std::ops::Range<usize> {
        let (part, whole) = (self.part(), usize::from(self.whole));
        let at = usize::from(self.index) * part;
        at.min(whole)..(at + part).min(whole)
    }

    /// Writes it to the front of `out`.
    pub fn encode(&self, out: &mut [u8]) {
        Header {
            kind: Kind::Piece,
            flags: 0,
            flow: self.flow,
            session: self.session,
        }
        .encode(out);
        out[12..16].copy_from_slice(&self.number.to_be_bytes());
        out[16] = self.index;
        out[17] = self.count;
        out[18..Self::LEN].copy_from_slice(&self.whole.to_be_bytes());
    }

    /// Reads one whose header has been read; its part follows.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn decode(header: &Header, datagram: &[u8]) -> Result<Self, WireError> {
        let Some(head) = datagram.first_chunk::<{ Self::LEN }>() else {
            return Err(WireError::Truncated);
        };
        let [.., n0, n1, n2, n3, index, count, w0, w1] = *head;
        let piece = Self {
            session: header.session,
            flow: header.flow,
            number: u32::from_be_bytes([n0, n1, n2, n3]),
            index,
            count,
            whole: u16::from_be_bytes([w0, w1]),
        };
        let counts = (2..=Self::MOST).contains(&usize::from(count)) && index < count;
        if header.flags != 0 || !counts || piece.range().is_empty() {
            return Err(WireError::Malformed);
        }
        match datagram.len() == Self::LEN + piece.range().len() {
            true => Ok(piece),
            false => Err(WireError::Malformed),
        }
    }
}
