//! Encrypted datagrams of a session: all but control messages, which a [`channel`](super::channel)
//! seals in the same way, and the handshake.
//!
//! ```text
//! header 12, in clear, flag 128 set | number 8 | ciphertext of what follows the header | tag 16
//! ```
//! What Noise's `EncryptWithAd` makes of it under the key of the direction: ChaCha20-Poly1305 (RFC
//! 8439), the header as associated data, the number as nonce. Data have numbers below
//! [`CONTROL_NUMBERS`], control messages from there on. A direction never uses a number twice,
//! whatever becomes of the datagram, and what is sent again is sealed anew. AES-GCM would be as
//! fast, but one key is good for 2^23 packets of it only (RFC 9001 section B.1), and there is no
//! exchange of keys within a session.

use super::Secrets;
use super::cipher::{Cipher, TAG};
use super::seen::Seen;
use crate::wire::{HEADER, Header, Kind, SessionId};

/// Bytes that encryption adds to a datagram.
pub const OVERHEAD: usize = NUMBER + TAG;

/// Flag of a header: what follows it is sealed.
pub const SEALED: u8 = 128;

/// How far behind the highest a number may come and still count: more than any path reorders, 20 ms
/// at 40 Gbit/s.
pub const WINDOW: u64 = 64 * WORDS as u64;

/// The first number of a control message.
pub const CONTROL_NUMBERS: u64 = 1 << 63;

const WORDS: usize = 1024;
pub(super) const NUMBER: usize = 8;

/// Forgeries that a key withstands (RFC 9001 section 6.6); nothing is opened after that.
pub(super) const MOST_FORGERIES: u64 = 1 << 36;

/// One end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The session's initiator.
    Client,
    /// The session's responder.
    Server,
}

/// One end of a session's encrypted datagrams. There must be one of them only, as long as the
/// session lasts: another would use the same numbers.
#[derive(Debug)]
pub struct Seal {
    session: SessionId,
    out: Cipher,
    next: u64,
    into: Cipher,
    seen: Box<Seen<WORDS>>,
    forgeries: u64,
}

impl Seal {
    /// This end of the session.
    pub fn new(secrets: &Secrets, end: End) -> Self {
        let (out, into) = secrets.keys.ciphers(end);
        Self {
            session: secrets.session,
            out,
            next: 0,
            into,
            seen: Box::default(),
            forgeries: 0,
        }
    }

    /// Seals what `fill` writes into `out`, all of which is the sealed datagram; what it writes is
    /// [`OVERHEAD`] shorter.
    ///
    /// # Panics
    /// If `out` has no room for a header and [`OVERHEAD`], or 2^63 datagrams were sealed.
    #[inline]
    pub fn seal(&mut self, out: &mut [u8], fill: impl FnOnce(&mut [u8])) {
        let end = out.len() - TAG;
        // Behind the number, so that only the header has to move.
        fill(&mut out[NUMBER..end]);
        out.copy_within(NUMBER..NUMBER + HEADER, 0);
        out[1] |= SEALED;
        let number = self.next;
        // A thousand million per second last for 292 years.
        assert!(number < CONTROL_NUMBERS, "numbers left");
        self.next = number + 1;
        out[HEADER..HEADER + NUMBER].copy_from_slice(&number.to_be_bytes());
        let (header, rest) = out.split_at_mut(HEADER);
        let (body, tag) = rest[NUMBER..].split_at_mut(end - HEADER - NUMBER);
        let sealed = self.out.seal(number, header, body);
        tag.copy_from_slice(&sealed.expect("a datagram"));
    }

    /// Opens a datagram into `plain`, and returns it as it was before it was sealed. `None`, and
    /// nothing has changed: it is not of this session and direction, not whole, came before, is too
    /// old to tell, or has no room.
    #[inline]
    pub fn open<'p>(&mut self, sealed: &[u8], plain: &'p mut [u8]) -> Option<&'p [u8]> {
        let header = Header::decode(sealed).ok()?;
        let carries = header.kind as u8 >= Kind::Data as u8;
        if !carries || header.flags & SEALED == 0 || header.session != self.session {
            return None;
        }
        let (head, rest) = sealed.split_first_chunk::<HEADER>()?;
        let (number, rest) = rest.split_first_chunk::<NUMBER>()?;
        let (body, tag) = rest.split_last_chunk::<TAG>()?;
        let number = u64::from_be_bytes(*number);
        if number >= CONTROL_NUMBERS
            || !self.seen.is_new(number)
            || self.forgeries >= MOST_FORGERIES
        {
            return None;
        }
        let plain = plain.get_mut(..HEADER + body.len())?;
        let (front, back) = plain.split_at_mut(HEADER);
        back.copy_from_slice(body);
        if !self.into.open(number, head, back, tag) {
            self.forgeries += 1;
            return None;
        }
        self.seen.take(number);
        front.copy_from_slice(head);
        front[1] &= !SEALED;
        Some(plain)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::super::Directions;
    use super::*;
    use crate::wire::VERSION;

    fn secrets(up: u8, down: u8) -> Secrets {
        Secrets {
            session: SessionId(5),
            keys: Directions {
                up: [up; 32],
                down: [down; 32],
            },
        }
    }

    fn pair() -> (Seal, Seal) {
        let secrets = secrets(1, 2);
        (
            Seal::new(&secrets, End::Client),
            Seal::new(&secrets, End::Server),
        )
    }

    fn plain(text: &[u8]) -> Vec<u8> {
        let mut plain = vec![0; HEADER + text.len()];
        Header {
            kind: Kind::Ack,
            flags: 3,
            flow: 7,
            session: SessionId(5),
        }
        .encode(&mut plain);
        plain[HEADER..].copy_from_slice(text);
        plain
    }

    fn sealed(seal: &mut Seal, text: &[u8]) -> Vec<u8> {
        let plain = plain(text);
        let mut out = vec![0xee; plain.len() + OVERHEAD];
        seal.seal(&mut out, |place| place.copy_from_slice(&plain));
        out
    }

    fn opened(seal: &mut Seal, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut room = [0; 2000];
        seal.open(sealed, &mut room).map(<[u8]>::to_vec)
    }

    #[test]
    fn a_datagram_comes_back_as_it_was() {
        let (mut client, mut server) = pair();
        for text in [&b""[..], b"x", &[9; 1500]] {
            let up = sealed(&mut client, text);
            assert_eq!(up.len(), HEADER + text.len() + 24);
            assert_eq!(opened(&mut server, &up), Some(plain(text)));
            let down = sealed(&mut server, text);
            assert_ne!(up, down, "two keys");
            assert_eq!(opened(&mut client, &down), Some(plain(text)));
        }
    }

    #[test]
    fn the_header_is_in_clear_and_the_rest_is_not() {
        let (mut client, _) = pair();
        let out = sealed(&mut client, b"a secret of some length");
        assert_eq!(out[0], VERSION << 4 | 9);
        assert_eq!(out[1], 3 | SEALED);
        assert_eq!(out[2..12], plain(b"")[2..]);
        assert_eq!(out[12..20], [0; 8]);
        let again = sealed(&mut client, b"a secret of some length");
        assert_eq!(again[12..20], [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_ne!(out[20..], again[20..], "another number, other bytes");
        assert!(!out.windows(6).any(|w| w == b"secret"));
    }

    #[test]
    fn nothing_bent_cut_or_longer_is_opened() {
        let (mut client, mut server) = pair();
        let out = sealed(&mut client, b"text");
        for i in 0..out.len() {
            for bit in 0..8 {
                let mut bent = out.clone();
                bent[i] ^= 1 << bit;
                assert_eq!(opened(&mut server, &bent), None, "byte {i}, bit {bit}");
            }
            assert_eq!(opened(&mut server, &out[..i]), None, "{i} bytes");
        }
        let longer = [&out[..], &[0]].concat();
        assert_eq!(opened(&mut server, &longer), None);
        assert_eq!(opened(&mut server, &plain(b"text")), None, "in clear");
        // None of them has used up its number.
        assert_eq!(opened(&mut server, &out), Some(plain(b"text")));
    }

    #[test]
    fn a_datagram_counts_once_in_any_order() {
        let (mut client, mut server) = pair();
        let all: Vec<_> = (0..100u8).map(|i| sealed(&mut client, &[i])).collect();
        for (i, out) in all.iter().enumerate().rev() {
            assert_eq!(opened(&mut server, out), Some(plain(&[i as u8])));
        }
        for out in &all {
            assert_eq!(opened(&mut server, out), None, "again");
        }
    }

    #[test]
    fn what_is_older_than_the_window_is_too_old() {
        let (mut client, mut server) = pair();
        let old = [sealed(&mut client, b"0"), sealed(&mut client, b"1")];
        for _ in 2..WINDOW {
            sealed(&mut client, b"");
        }
        let new = sealed(&mut client, b"new");
        assert!(opened(&mut server, &new).is_some());
        assert_eq!(opened(&mut server, &old[0]), None);
        assert!(opened(&mut server, &old[1]).is_some());
    }

    #[test]
    fn what_one_side_sent_does_not_come_back_to_it() {
        let (mut client, mut server) = pair();
        let (up, down) = (sealed(&mut client, b"up"), sealed(&mut server, b"down"));
        assert_eq!(opened(&mut client, &up), None);
        assert_eq!(opened(&mut server, &down), None);
    }

    #[test]
    fn another_key_or_session_opens_nothing() {
        let (mut client, _) = pair();
        let out = sealed(&mut client, b"text");
        let mut other = Seal::new(&secrets(3, 2), End::Server);
        assert_eq!(opened(&mut other, &out), None);
        let mut elsewhere = secrets(1, 2);
        elsewhere.session = SessionId(6);
        let mut elsewhere = Seal::new(&elsewhere, End::Server);
        assert_eq!(opened(&mut elsewhere, &out), None);
    }

    #[test]
    fn a_key_that_was_attacked_for_too_long_opens_nothing() {
        let (mut client, mut server) = pair();
        let out = sealed(&mut client, b"text");
        server.forgeries = MOST_FORGERIES - 1;
        let mut bent = out.clone();
        bent[20] ^= 1;
        assert_eq!(opened(&mut server, &bent), None);
        assert_eq!(opened(&mut server, &out), None);
    }

    #[test]
    fn no_number_is_used_twice() {
        let (mut client, _) = pair();
        let mut numbers = HashSet::new();
        for i in 0..5000u32 {
            // The same segment again, as a retransmission would be.
            let out = sealed(&mut client, &(i / 2).to_be_bytes());
            assert!(numbers.insert(out[12..20].to_vec()));
        }
    }

    proptest! {
        #[test]
        fn noise_is_nothing(mut noise in proptest::collection::vec(any::<u8>(), 0..200), framed in any::<bool>()) {
            let (_, mut server) = pair();
            let front = plain(b"");
            if framed && noise.len() > front.len() {
                noise[..front.len()].copy_from_slice(&front);
                noise[1] |= SEALED;
            }
            prop_assert_eq!(opened(&mut server, &noise), None);
            let mut none = [0; 0];
            prop_assert_eq!(server.open(&noise, &mut none), None);
        }
    }
}
