//! What sender and receiver exchange, independent of any wire: whole segments by number, cumulative
//! and selective ACKs.

use fullpipe_units::{Span, Time};

use crate::ranges::Range;

/// A segment on its way to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Segment {
    /// Segment number; 0 is the first segment of data. Of the handshake, 0 is the SYN and 1 the ACK
    /// that ends it.
    pub seq: u64,
    /// A SYN: it carries no data.
    pub syn: bool,
    /// Sent before.
    pub retransmission: bool,
    /// Sender's time stamp (RFC 7323).
    pub stamp: Time,
    /// ECN-capable (RFC 3168).
    pub ect: bool,
    /// Marked by the network.
    pub ce: bool,
    /// Congestion window reduced (RFC 3168).
    pub cwr: bool,
    /// The application waits for this to be read (RFC 9293 section 3.9.1): acknowledge at once.
    pub push: bool,
}

impl Segment {
    /// The ACK that ends the handshake, without data
    /// ([`SenderConfig::handshake_ack`](crate::config::SenderConfig::handshake_ack)).
    #[inline]
    pub fn ends_handshake(&self) -> bool {
        self.syn && self.seq == 1
    }
}

/// Up to four SACK blocks, the most recently changed first; a duplicate is reported in front (RFC
/// 2018, RFC 2883).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "Vec<Range>", into = "Vec<Range>")]
pub struct SackBlocks {
    blocks: [(u64, u64); 4],
    len: u8,
}

impl SackBlocks {
    /// No block.
    pub const NONE: Self = Self {
        blocks: [(0, 0); 4],
        len: 0,
    };

    /// Appends a block; silently full after four, as the option field is.
    #[inline]
    pub fn push(&mut self, r: Range) {
        if (self.len as usize) < self.blocks.len() {
            self.blocks[self.len as usize] = (r.start, r.end);
            self.len += 1;
        }
    }

    /// The blocks in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        self.blocks[..self.len as usize]
            .iter()
            .map(|&(start, end)| Range { start, end })
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Empty ranges and those beyond the fourth are left out.
impl From<Vec<Range>> for SackBlocks {
    fn from(ranges: Vec<Range>) -> Self {
        let mut blocks = Self::default();
        let sound = ranges.into_iter().filter(|r| r.start < r.end);
        sound.for_each(|r| blocks.push(r));
        blocks
    }
}

impl From<SackBlocks> for Vec<Range> {
    fn from(blocks: SackBlocks) -> Self {
        blocks.iter().collect()
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ack {
    /// Next segment expected.
    pub cum: u64,
    /// Answers a SYN.
    pub syn: bool,
    /// Echoed time stamp: that of the segment that last advanced the window (RFC 7323 section 4.3).
    pub echo: Time,
    /// The receiver's own time stamp, milliseconds (RFC 7323 TSval).
    pub stamp_ms: u32,
    /// When the segment of the echoed time stamp arrived, by the receiver's clock, less that stamp
    /// (RFC 6817 section 2.4.1); nothing where it is not measured or the wire does not carry it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<Span>,
    /// Selective acknowledgements.
    pub sacks: SackBlocks,
    /// The first block reports a duplicate (RFC 2883).
    pub dsack: bool,
    /// ECN echo (RFC 3168).
    pub ece: bool,
    /// Segments from here on may not be sent.
    pub window_end: u64,
}
