//! Control messages of an open session: numbered and proven.
//!
//! ```text
//! header 12 (CONTROL) | number 8 | body, postcard | tag 32
//! ```
//! The tag is a BLAKE3 hash of all before it under the key of the direction. Every datagram has a number of its own, also when
//! it says again what an earlier one said; a number counts once, and only within [`WINDOW`] of the highest.

use serde::Serialize;
use serde::de::DeserializeOwned;

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
    seen: Seen,
}

/// Numbers that came.
#[derive(Debug)]
pub struct Seen {
    /// One more than the highest.
    end: u64,
    bits: [u64; (WINDOW / 64) as usize],
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

    /// What a datagram says; `None` if it is not of this session, not proven, seen before, or not understood.
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
        postcard::from_bytes(body).ok()
    }
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            end: 0,
            bits: [0; (WINDOW / 64) as usize],
        }
    }
}

impl Seen {
    /// True if `number` counts: it has not come before and is not too old to tell.
    pub fn take(&mut self, number: u64) -> bool {
        if number == u64::MAX {
            return false;
        }
        if number >= self.end {
            // What was above the highest so far has not come.
            let skipped = number - self.end;
            if skipped >= WINDOW {
                self.bits = [0; (WINDOW / 64) as usize];
            } else {
                (self.end..number).for_each(|n| self.clear(n));
            }
            self.end = number + 1;
            self.mark(number);
            return true;
        }
        if self.end - number > WINDOW || self.has(number) {
            return false;
        }
        self.mark(number);
        true
    }

    fn place(number: u64) -> (usize, u64) {
        (((number % WINDOW) / 64) as usize, 1 << (number % 64))
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        self.bits[word] & bit != 0
    }

    fn mark(&mut self, number: u64) {
        let (word, bit) = Self::place(number);
        self.bits[word] |= bit;
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = Self::place(number);
        self.bits[word] &= !bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

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
        /// Against a set of all numbers.
        #[test]
        fn numbers_count_as_a_set_would_say(steps in proptest::collection::vec((any::<bool>(), 0u64..3000), 1..400)) {
            let (mut seen, mut all, mut end) = (Seen::default(), HashSet::new(), 0u64);
            for (ahead, by) in steps {
                let number = if ahead { end + by } else { end.saturating_sub(by) };
                let counts = number + WINDOW >= end && all.insert(number);
                prop_assert_eq!(seen.take(number), counts, "{} of {}", number, end);
                end = end.max(number + 1);
            }
        }

        #[test]
        fn noise_is_nothing(datagram in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (mut client, _) = pair();
            prop_assert_eq!(client.open::<u8>(&datagram), None);
        }
    }
}
