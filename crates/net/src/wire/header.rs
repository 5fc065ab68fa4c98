//! Header of every datagram: version, kind, session.

use super::WireError;

/// Version of the format.
pub const VERSION: u8 = 2;

/// Bytes of a [`Header`].
pub const HEADER: usize = 12;

/// Segments, datagrams and probes have numbers below this, and so do ends of ranges and windows up
/// to it: nothing that is added to a number that came over the wire overflows.
pub const MOST_NUMBER: u64 = 1 << 62;

/// Random name of a session between two hosts; unguessable for who does not see its datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// Kind of a datagram: the low four bits of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Client: a first word, to learn a cookie.
    Hello = 0,
    /// Server: the cookie; nothing is remembered.
    Cookie = 1,
    /// Client: cookie, proof of the key, what is asked for.
    Open = 2,
    /// Server: granted.
    Accept = 3,
    /// Server: not granted, and why.
    Refuse = 4,
    /// Either: a numbered message of an open session.
    Control = 5,
    /// A segment of data or a SYN.
    Data = 8,
    /// An acknowledgement.
    Ack = 9,
    /// Cross traffic.
    Datagram = 10,
    /// A round-trip probe.
    Ping = 11,
    /// Answer to [`Self::Ping`], of the same size.
    Pong = 12,
    /// A part of one of kinds 8 to 12 that is too long for its path.
    Piece = 13,
}

/// The first twelve bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of the datagram.
    pub kind: Kind,
    /// Bits with a meaning of the kind.
    pub flags: u8,
    /// Flow, source or sequence of probes inside the session; short flows have numbers from
    /// `0x8000`.
    pub flow: u16,
    /// The session; 0 before there is one.
    pub session: SessionId,
}

impl Kind {
    fn parse(value: u8) -> Option<Self> {
        Some(match value {
            0 => Self::Hello,
            1 => Self::Cookie,
            2 => Self::Open,
            3 => Self::Accept,
            4 => Self::Refuse,
            5 => Self::Control,
            8 => Self::Data,
            9 => Self::Ack,
            10 => Self::Datagram,
            11 => Self::Ping,
            12 => Self::Pong,
            13 => Self::Piece,
            _ => return None,
        })
    }
}

impl Header {
    /// Writes it to the front of `out`, which is at least [`HEADER`] bytes long.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) {
        out[0] = VERSION << 4 | self.kind as u8;
        out[1] = self.flags;
        out[2..4].copy_from_slice(&self.flow.to_be_bytes());
        out[4..12].copy_from_slice(&self.session.0.to_be_bytes());
    }

    /// Reads it from the front of a datagram.
    ///
    /// # Errors
    /// [`WireError`] if it is too short, of another version or of no kind.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Result<Self, WireError> {
        let Some(head) = datagram.first_chunk::<HEADER>() else {
            return Err(WireError::Truncated);
        };
        if head[0] >> 4 != VERSION {
            return Err(WireError::Version);
        }
        let [_, flags, f0, f1, session @ ..] = *head;
        Ok(Self {
            kind: Kind::parse(head[0] & 15).ok_or(WireError::Malformed)?,
            flags,
            flow: u16::from_be_bytes([f0, f1]),
            session: SessionId(u64::from_be_bytes(session)),
        })
    }
}

/// Four flags as bits, the first the lowest.
#[inline]
pub(super) fn bits(flags: [bool; 4]) -> u8 {
    let [a, b, c, d] = flags.map(u8::from);
    a | b << 1 | c << 2 | d << 3
}

/// The reverse of [`bits`]; higher bits must be clear.
#[inline]
pub(super) fn flags(bits: u8) -> Result<[bool; 4], WireError> {
    if bits >= 16 {
        return Err(WireError::Malformed);
    }
    Ok([1, 2, 4, 8].map(|bit| bits & bit != 0))
}
