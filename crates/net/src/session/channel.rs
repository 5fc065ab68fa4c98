//! Control messages of an open session: numbered and proven.
//!
//! ```text
//! header 12 (CONTROL) | number 8 | body, postcard | tag 32
//! ```
//! The tag is a BLAKE3 hash of all before it under the key of the direction. Every datagram has a
//! number of its own, also when it says again what an earlier one said; a number counts once, and
//! only within [`WINDOW`] of the highest.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::seen::Seen;
use crate::wire::{HEADER, Header, Kind, SessionId};

/// How far behind the highest a number may come and still count.
pub const WINDOW: u64 = 1024;

/// Most bytes of a body.
pub const BODY: usize = 1200;

const NUMBER: usize = 8;
const TAG: usize = 32;

/// One end of a session's control messages.
#[derive(Debug)]
pub struct Channel {
    session: SessionId,
    out: [u8; 32],
    into: [u8; 32],
    next: u64,
    seen: Seen<{ (WINDOW / 64) as usize }>,
}

impl Channel {
    /// Sends with one key, receives with the other.
    pub fn new(session: SessionId, out: [u8; 32], into: [u8; 32]) -> Self {
        Self {
            session,
            out,
            into,
            next: 0,
            seen: Seen::default(),
        }
    }

    /// The session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// A datagram that says this. `None` if it is longer than a body may be: a fault of the caller.
    pub fn seal(&mut self, message: &impl Serialize) -> Option<Vec<u8>> {
        let mut datagram = vec![0; HEADER];
        Header {
            kind: Kind::Control,
            flags: 0,
            flow: 0,
            session: self.session,
        }
        .encode(&mut datagram);
        datagram.extend(self.next.to_be_bytes());
        let mut datagram = postcard::to_extend(message, datagram).ok()?;
        if datagram.len() > HEADER + NUMBER + BODY {
            return None;
        }
        let tag = blake3::keyed_hash(&self.out, &datagram);
        datagram.extend(tag.as_bytes());
        self.next += 1;
        Some(datagram)
    }

    /// What a datagram says; `None` if it is not of this session, not proven, seen before, or not
    /// understood.
    pub fn open<M: DeserializeOwned>(&mut self, datagram: &[u8]) -> Option<M> {
        let header = Header::decode(datagram).ok()?;
        if header.kind != Kind::Control || header.session != self.session {
            return None;
        }
        if datagram.len() > HEADER + NUMBER + BODY + TAG {
            return None;
        }
        let (proven, tag) = datagram.split_last_chunk::<TAG>()?;
        let (number, body) = proven.get(HEADER..)?.split_first_chunk::<NUMBER>()?;
        // Constant time.
        if blake3::keyed_hash(&self.into, proven) != *tag {
            return None;
        }
        if !self.seen.take(u64::from_be_bytes(*number)) {
            return None;
        }
        let (message, rest) = postcard::take_from_bytes(body).ok()?;
        rest.is_empty().then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pair() -> (Channel, Channel) {
        let (up, down) = ([1; 32], [2; 32]);
        (
            Channel::new(SessionId(5), up, down),
            Channel::new(SessionId(5), down, up),
        )
    }

    #[test]
    fn a_message_counts_once_and_only_whole() {
        let (mut client, mut server) = pair();
        let datagram = client.seal(&(7u32, "seven")).unwrap();
        for i in 0..datagram.len() {
            let mut bent = datagram.clone();
            bent[i] ^= 4;
            // Flags and flow are under the tag like everything else.
            assert_eq!(server.open::<(u32, String)>(&bent), None, "byte {i}");
        }
        for n in 0..datagram.len() {
            assert_eq!(server.open::<(u32, String)>(&datagram[..n]), None);
        }
        let read = server.open::<(u32, String)>(&datagram);
        assert_eq!(read, Some((7, "seven".to_owned())));
        assert_eq!(server.open::<(u32, String)>(&datagram), None, "again");
        // What one side said does not come back to it as the other's.
        let echo = client.seal(&1u8).unwrap();
        assert_eq!(client.open::<u8>(&echo), None);
    }

    #[test]
    fn a_body_has_a_bound() {
        let (mut client, _) = pair();
        assert!(client.seal(&vec![0u8; BODY - 2]).is_some());
        assert!(client.seal(&vec![0u8; BODY]).is_none());
    }

    proptest! {
        #[test]
        fn noise_is_nothing(datagram in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (mut client, _) = pair();
            prop_assert_eq!(client.open::<u8>(&datagram), None);
        }
    }
}
