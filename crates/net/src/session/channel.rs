//! Control messages of an open session: numbered and sealed, whether data are or not.
//!
//! ```text
//! header 12 (CONTROL, flag 128), in clear | number 8 | body, sealed | tag 16
//! ```
//! Sealed as [data](super::seal) are, with numbers from [`CONTROL_NUMBERS`] on. Every datagram has
//! a number of its own, also when it says again what an earlier one said; a number counts once, and
//! only within [`WINDOW`] of the highest.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Secrets;
use super::cipher::{Cipher, TAG};
use super::seal::{CONTROL_NUMBERS, End, MOST_FORGERIES, NUMBER, SEALED};
use super::seen::Seen;
use crate::wire::{HEADER, Header, Kind, SessionId};

/// How far behind the highest a number may come and still count.
pub const WINDOW: u64 = 1024;

/// Most bytes of a body.
pub const BODY: usize = 1200;

/// One end of a session's control messages.
#[derive(Debug)]
pub struct Channel {
    session: SessionId,
    out: Cipher,
    into: Cipher,
    next: u64,
    seen: Seen<{ (WINDOW / 64) as usize }>,
    forgeries: u64,
    /// Most bytes of a body.
    longest: usize,
}

impl Channel {
    /// This end of the session. There must be one of them only, as long as the session lasts:
    /// another would use the same numbers.
    pub fn new(secrets: &Secrets, end: End) -> Self {
        let (out, into) = secrets.keys.ciphers(end);
        Self {
            session: secrets.session,
            out,
            into,
            next: CONTROL_NUMBERS,
            seen: Seen::default(),
            forgeries: 0,
            longest: BODY,
        }
    }

    /// Lets bodies be as long as those of a run's datagrams of so many bytes, for probes.
    pub fn allow(&mut self, bytes: usize) {
        self.longest = BODY.max(bytes.saturating_sub(HEADER + NUMBER + TAG));
    }

    /// Padding of a probe of so many bytes in all.
    pub fn padding(bytes: usize, number: u32) -> Vec<u8> {
        let varint = |n: usize| (usize::BITS - n.leading_zeros()).div_ceil(7).max(1) as usize;
        let rest = bytes.saturating_sub(HEADER + NUMBER + 1 + varint(number as usize) + TAG);
        let fits = |n: &usize| n + varint(*n) <= rest;
        vec![0; (rest.saturating_sub(5)..rest).rev().find(fits).unwrap_or(0)]
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
            flags: SEALED,
            flow: 0,
            session: self.session,
        }
        .encode(&mut datagram);
        datagram.extend(self.next.to_be_bytes());
        let mut datagram = postcard::to_extend(message, datagram).ok()?;
        if datagram.len() > HEADER + NUMBER + self.longest {
            return None;
        }
        let (header, rest) = datagram.split_at_mut(HEADER);
        let body = rest.get_mut(NUMBER..)?;
        let tag = self.out.seal(self.next, header, body)?;
        datagram.extend(tag);
        // The last one would be that of Noise's rekeying: 292 years away.
        self.next = self.next.checked_add(1)?;
        Some(datagram)
    }

    /// What a datagram says; `None` if it is not of this session, not proven, seen before, or not
    /// understood.
    pub fn open<M: DeserializeOwned>(&mut self, datagram: &[u8]) -> Option<M> {
        self.open_in_order(datagram).map(|(message, _)| message)
    }

    /// The same, and whether none of a higher number was opened before.
    pub fn open_in_order<M: DeserializeOwned>(&mut self, datagram: &[u8]) -> Option<(M, bool)> {
        let header = Header::decode(datagram).ok()?;
        if header.kind != Kind::Control || header.session != self.session {
            return None;
        }
        if datagram.len() > HEADER + NUMBER + self.longest + TAG || self.forgeries >= MOST_FORGERIES
        {
            return None;
        }
        let (sealed, tag) = datagram.split_last_chunk::<TAG>()?;
        let (header, rest) = sealed.split_first_chunk::<HEADER>()?;
        let (number, body) = rest.split_first_chunk::<NUMBER>()?;
        let number = u64::from_be_bytes(*number);
        let count = number.checked_sub(CONTROL_NUMBERS)?;
        if !self.seen.is_new(count) {
            return None;
        }
        let mut body = body.to_vec();
        if !self.into.open(number, header, &mut body, tag) {
            self.forgeries += 1;
            return None;
        }
        let newest = count >= self.seen.end();
        self.seen.take(count);
        let (message, rest) = postcard::take_from_bytes(&body).ok()?;
        rest.is_empty().then_some((message, newest))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Directions;
    use super::*;
    use proptest::prelude::*;

    fn pair() -> (Channel, Channel) {
        let secrets = Secrets {
            session: SessionId(5),
            keys: Directions {
                up: [1; 32],
                down: [2; 32],
            },
        };
        (
            Channel::new(&secrets, End::Client),
            Channel::new(&secrets, End::Server),
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
