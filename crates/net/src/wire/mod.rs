//! The wire format, version 2: every datagram of fullpipe over UDP. All numbers are big-endian.
//!
//! Every datagram begins with the same twelve bytes ([`Header`]). Data has twelve more, so that a
//! packet of 1500 bytes carries 1448 bytes of payload, as TCP with time stamps does: 20 (IPv4) + 8
//! (UDP) + 24.
//!
//! ```text
//!  0               1               2               3
//! |version|  kind | flags         | flow                          |
//! | session                                                       |
//! |                                                               |
//! ```

mod ack;
mod cross;
mod data;
mod header;
mod numbered;
mod piece;
pub mod reception;

pub use ack::AckDatagram;
pub use cross::CrossDatagram;
pub use data::DataDatagram;
pub use header::{HEADER, Header, Kind, MOST_NUMBER, SessionId, VERSION};
pub use piece::PieceDatagram;

/// Why a datagram is none of ours. It says nothing about its content: whoever sent it learns
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Shorter than its kind.
    #[error("truncated")]
    Truncated,
    /// Another version.
    #[error("unknown version")]
    Version,
    /// A kind or flag that this version does not have, or a field out of its range.
    #[error("malformed")]
    Malformed,
}

/// A datagram of any kind. Who handles one kind only uses that kind's own reader; this one is for
/// tools and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A segment and its payload.
    Data(DataDatagram, &'a [u8]),
    /// An acknowledgement.
    Ack(AckDatagram),
    /// Cross traffic, a probe or its echo, and its padding.
    Cross(CrossDatagram, &'a [u8]),
    /// A part of a datagram that was too long for its path.
    Piece(PieceDatagram, &'a [u8]),
    /// Handshake and control: what follows the header is the session's business.
    Session(Header, &'a [u8]),
}

impl<'a> Parsed<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// What the reader of its kind says.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, WireError> {
        let header = Header::decode(datagram)?;
        // Every reader has checked that it is as long as that.
        let after = |len: usize| datagram.get(len..).unwrap_or_default();
        Ok(match header.kind {
            Kind::Data => Self::Data(
                DataDatagram::decode(&header, datagram)?,
                after(DataDatagram::LEN),
            ),
            Kind::Ack => Self::Ack(AckDatagram::decode(&header, datagram)?),
            Kind::Datagram | Kind::Ping | Kind::Pong => Self::Cross(
                CrossDatagram::decode(&header, datagram)?,
                after(CrossDatagram::LEN),
            ),
            Kind::Piece => Self::Piece(
                PieceDatagram::decode(&header, datagram)?,
                after(PieceDatagram::LEN),
            ),
            _ => Self::Session(header, after(HEADER)),
        })
    }

    /// Writes it to the front of `out`, which is as long as the datagram, and returns how long that
    /// is.
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let (head, rest) = match self {
            Self::Ack(ack) => return ack.encode(out),
            Self::Data(data, payload) => {
                data.encode(out);
                (DataDatagram::LEN, payload)
            }
            Self::Cross(cross, padding) => {
                cross.encode(&mut out[..CrossDatagram::LEN]);
                (CrossDatagram::LEN, padding)
            }
            Self::Piece(piece, part) => {
                piece.encode(out);
                (PieceDatagram::LEN, part)
            }
            Self::Session(header, body) => {
                header.encode(out);
                (HEADER, body)
            }
        };
        out[head..head + rest.len()].copy_from_slice(rest);
        head + rest.len()
    }
}
