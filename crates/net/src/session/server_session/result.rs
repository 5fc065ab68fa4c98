//! A result, as it is handed out: part by part, within the limit on the rate, and not for ever.

use super::super::control::{EndReason, MOST_PARTS, PART, ServerMessage};

/// A run that has ended.
#[derive(Debug)]
pub struct Ended {
    why: EndReason,
    bytes: Vec<u8>,
    digest: [u8; 32],
    /// Parts so far.
    handed_out: u64,
}

/// Bytes of a part on the wire but for IP and UDP: header, number, kind and length of the message,
/// tag.
pub const DATAGRAM: u64 = PART as u64 + 12 + 8 + 8 + 32;

/// Parts of a result that may leave at once, and how often all of it may be sent: most parts get
/// lost only on a path on which nothing else arrives either.
const BURST: u64 = 64;
const COPIES: u64 = 8;

impl Ended {
    /// With this result.
    pub fn new(why: EndReason, bytes: Vec<u8>) -> Self {
        Self {
            why,
            digest: *blake3::hash(&bytes).as_bytes(),
            bytes,
            handed_out: 0,
        }
    }

    /// Says what there is.
    pub fn announcement(&self) -> ServerMessage {
        ServerMessage::Ended {
            why: self.why,
            // The server bounds what it writes.
            length: self.bytes.len() as u32,
            digest: self.digest,
        }
    }

    /// The parts asked for, as many as may leave: besides a first burst `allowed` so far, if there
    /// is a limit.
    pub fn parts(&mut self, allowed: Option<u64>, from: u32, many: u16) -> Vec<ServerMessage> {
        let in_time = allowed.map_or(u64::MAX, |parts| BURST.saturating_add(parts));
        let whole = self.bytes.len().div_ceil(PART) as u64;
        let room = in_time.min(BURST + COPIES * whole);
        let room = room.saturating_sub(self.handed_out).min(MOST_PARTS.into());
        let mut parts = Vec::new();
        let end = from.saturating_add(u32::from(many).min(room as u32));
        for at in from..end {
            let start = at as usize * PART;
            let Some(rest) = self.bytes.get(start..).filter(|rest| !rest.is_empty()) else {
                break;
            };
            let bytes = rest[..rest.len().min(PART)].to_vec();
            parts.push(ServerMessage::Part { at, bytes });
        }
        self.handed_out += parts.len() as u64;
        parts
    }
}
