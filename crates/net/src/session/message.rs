//! The datagrams of the handshake. All begin with the [`Header`] of every datagram, session 0
//! unless said otherwise; numbers are big-endian.
//!
//! ```text
//! HELLO   nonce 16, zeros up to 1200 bytes in all
//! COOKIE  nonce 16, cookie 36, public key of the server 32
//! OPEN    nonce 16, cookie 36, Noise message 1 of: kind 1, options 1, bytes of the request 4, its digest 32
//! ACCEPT  nonce 16, Noise message 2 of: session 8    (header: the session)
//! REFUSE  nonce 16, Noise message 2 of: reason 1, number 4
//! REFUSE  nonce 16, reason 1, number 4               (in clear: the key has not been shown)
//! ```
//! The nonce is the client's and comes back in every answer, so that nobody who does not see the
//! datagrams can answer in the server's place. All that goes before a Noise message in clear, the
//! HELLO and the COOKIE too, is its prologue. No answer is longer than its question.

use crate::wire::{HEADER, Header, Kind, SessionId, VERSION, WireError};

use super::cookie::{COOKIE, Cookie};
use super::noise::{ADDED, Initiator, Responder};
use super::parse::Fields;
use super::{Identity, Key, Secrets, ServerId};

pub use super::refusal::Reason;

/// Bytes of a HELLO.
pub const HELLO_BYTES: usize = 1200;
/// Bytes of a COOKIE.
pub const COOKIE_BYTES: usize = HEADER + 16 + COOKIE + 32;
/// Bytes of an OPEN before the Noise message.
const OPEN_CLEAR: usize = HEADER + 16 + COOKIE;
/// The Noise message of an OPEN.
const FIRST: usize = Ask::BYTES + ADDED;
/// Bytes of an OPEN.
pub const OPEN_BYTES: usize = OPEN_CLEAR + FIRST;
/// Bytes before the Noise message of an answer.
const ANSWER_CLEAR: usize = HEADER + 16;
/// The Noise messages that accept and refuse.
const ACCEPTING: usize = 8 + ADDED;
const REFUSING: usize = 5 + ADDED;
/// Bytes of an ACCEPT.
pub const ACCEPT_BYTES: usize = ANSWER_CLEAR + ACCEPTING;
/// Bytes of a REFUSE in clear.
pub const REFUSE_BYTES: usize = ANSWER_CLEAR + 1 + 4;
/// Bytes of a REFUSE of who has shown the key.
pub const SEALED_REFUSE_BYTES: usize = ANSWER_CLEAR + REFUSING;

/// A number that a client draws for every handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce(pub [u8; 16]);

/// Transport under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TestKind {
    /// The endpoint of fullpipe over UDP: flows, cross traffic, probes.
    Udp = 1,
    /// The same with flows over the kernels' own TCP ([`tcp`](crate::tcp)).
    KernelTcp = 2,
}

/// What a client asks for before it sends its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// [`TestKind`] as a number; servers refuse what they do not know.
    pub kind: u8,
    /// [`ENCRYPT`]; no others yet.
    pub options: u8,
    /// Bytes of the request.
    pub length: u32,
    /// BLAKE3 of the request.
    pub digest: [u8; 32],
}

impl Ask {
    /// Bytes of it.
    pub(super) const BYTES: usize = 38;

    pub(super) fn encode(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        let length = self.length.to_be_bytes();
        fill(
            &mut out,
            &[&[self.kind, self.options], &length, &self.digest],
        );
        out
    }

    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let [kind, options, a, b, c, d, digest @ ..] = *bytes;
        Self {
            kind,
            options,
            length: u32::from_be_bytes([a, b, c, d]),
            digest,
        }
    }
}

/// The option of [`Ask`] that encrypts data.
pub const ENCRYPT: u8 = 1;

/// An OPEN as the server reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Nonce of the client.
    pub nonce: Nonce,
    /// Cookie that the server minted for this nonce and address.
    pub cookie: Cookie,
    /// The datagram.
    pub bytes: [u8; OPEN_BYTES],
}

/// An OPEN as the client made it, with what it needs to understand the answer.
#[derive(Debug)]
pub struct Opening {
    nonce: Nonce,
    bytes: [u8; OPEN_BYTES],
    /// Until the answer is read.
    noise: Option<Initiator>,
}

/// A server's answer to an OPEN, proven.
#[derive(Debug)]
pub enum Answer {
    /// The session is open.
    Accepted(Secrets),
    /// No session; why.
    Refused(Reason),
}

/// A HELLO.
pub fn hello(nonce: &Nonce) -> [u8; HELLO_BYTES] {
    let mut out = [0; HELLO_BYTES];
    header(Kind::Hello, SessionId(0), &mut out);
    out[HEADER..HEADER + 16].copy_from_slice(&nonce.0);
    out
}

/// Reads a HELLO; it must have its full length, so that no answer is longer than it.
///
/// # Errors
/// [`WireError`].
pub fn read_hello(datagram: &[u8]) -> Result<Nonce, WireError> {
    let mut f = exactly::<HELLO_BYTES>(Kind::Hello, datagram)?;
    let nonce = f.bytes().map(Nonce).ok_or(WireError::Truncated)?;
    match f.0.iter().all(|byte| *byte == 0) {
        true => Ok(nonce),
        false => Err(WireError::Malformed),
    }
}

/// A COOKIE of this server.
pub fn cookie(nonce: &Nonce, cookie: &Cookie, server: &ServerId) -> [u8; COOKIE_BYTES] {
    let mut out = [0; COOKIE_BYTES];
    header(Kind::Cookie, SessionId(0), &mut out);
    fill(&mut out[HEADER..], &[&nonce.0, &cookie.0, &server.0]);
    out
}

/// Reads a COOKIE.
///
/// # Errors
/// [`WireError`].
pub fn read_cookie(datagram: &[u8]) -> Result<(Nonce, Cookie, ServerId), WireError> {
    let mut f = exactly::<COOKIE_BYTES>(Kind::Cookie, datagram)?;
    let read = || {
        let (nonce, cookie) = (Nonce(f.bytes()?), Cookie(f.bytes()?));
        Some((nonce, cookie, ServerId(f.bytes()?)))
    };
    ({ read })().ok_or(WireError::Truncated)
}

/// All that both sides have seen before the first Noise message.
fn prologue(nonce: &Nonce, given: &Cookie, server: &ServerId) -> Vec<u8> {
    let hello = hello(nonce);
    let cookie = cookie(nonce, given, server);
    let open = open_clear(nonce, given);
    [&b"fullpipe"[..], &hello[..HEADER + 16], &cookie, &open].concat()
}

fn open_clear(nonce: &Nonce, cookie: &Cookie) -> [u8; OPEN_CLEAR] {
    let mut out = [0; OPEN_CLEAR];
    header(Kind::Open, SessionId(0), &mut out);
    fill(&mut out[HEADER..], &[&nonce.0, &cookie.0]);
    out
}

impl Opening {
    /// For the server that has given the cookie. `ephemeral` is for test vectors: nobody else may
    /// choose it.
    ///
    /// # Errors
    /// No random bytes from the operating system.
    pub fn new(
        key: &Key,
        server: &ServerId,
        nonce: Nonce,
        cookie: Cookie,
        ask: &Ask,
        ephemeral: Option<&[u8; 32]>,
    ) -> Result<Self, NoEntropy> {
        let prologue = prologue(&nonce, &cookie, server);
        let begun = Initiator::begin::<FIRST>(key, server, &prologue, ask, ephemeral);
        let (noise, message) = begun.map_err(|_| NoEntropy)?;
        let mut bytes = [0; OPEN_BYTES];
        fill(&mut bytes, &[&open_clear(&nonce, &cookie), &message]);
        Ok(Self {
            nonce,
            bytes,
            noise: Some(noise),
        })
    }

    /// The datagram.
    pub fn bytes(&self) -> &[u8; OPEN_BYTES] {
        &self.bytes
    }

    /// Reads the answer, an ACCEPT or a sealed REFUSE; `None`: it proves nothing, and another may
    /// follow.
    ///
    /// # Errors
    /// [`WireError`]; an answer of another handshake is malformed.
    pub fn read_answer(&mut self, datagram: &[u8]) -> Result<Option<Answer>, WireError> {
        let header = Header::decode(datagram)?;
        let mut f = match header.kind {
            Kind::Accept => exactly::<ACCEPT_BYTES>(Kind::Accept, datagram)?,
            kind => exactly::<SEALED_REFUSE_BYTES>(kind, datagram)?,
        };
        let nonce = f.bytes().map(Nonce).ok_or(WireError::Truncated)?;
        if nonce != self.nonce || !matches!(header.kind, Kind::Accept | Kind::Refuse) {
            return Err(WireError::Malformed);
        }
        let Some(noise) = &mut self.noise else {
            return Ok(None);
        };
        if header.kind == Kind::Refuse {
            let said = noise.read(f.0);
            return Ok(said.and_then(Reason::decode).map(Answer::Refused));
        }
        let Some(session) = noise.read(f.0).map(u64::from_be_bytes).map(SessionId) else {
            return Ok(None);
        };
        Ok(self.noise.take().map(|noise| {
            let keys = noise.keys();
            Answer::Accepted(Secrets { session, keys })
        }))
    }
}

/// The operating system gave no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no random bytes from the operating system")]
pub struct NoEntropy;

impl Open {
    /// Reads one, without looking at cookie or key.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn read(datagram: &[u8]) -> Result<Self, WireError> {
        let mut f = exactly::<OPEN_BYTES>(Kind::Open, datagram)?;
        let Ok(bytes) = <[u8; OPEN_BYTES]>::try_from(datagram) else {
            return Err(WireError::Truncated);
        };
        let mut read = || {
            Some(Self {
                nonce: Nonce(f.bytes()?),
                cookie: Cookie(f.bytes()?),
                bytes,
            })
        };
        read().ok_or(WireError::Truncated)
    }

    /// What it asks for, if it was made with this key and for this server.
    pub fn understand(&self, key: &Key, identity: &Identity) -> Option<(Responder, Ask)> {
        let prologue = prologue(&self.nonce, &self.cookie, &identity.public());
        Responder::read(key, identity, &prologue, &self.bytes[OPEN_CLEAR..])
    }

    /// The ACCEPT that answers it, and what the session's secrets are.
    ///
    /// # Errors
    /// [`NoEntropy`].
    pub fn accept(
        &self,
        noise: Responder,
        session: SessionId,
    ) -> Result<([u8; ACCEPT_BYTES], Secrets), NoEntropy> {
        let mut out = [0; ACCEPT_BYTES];
        header(Kind::Accept, session, &mut out);
        let accepted = noise.accept::<ACCEPTING>(session.0);
        let (message, keys) = accepted.map_err(|_| NoEntropy)?;
        fill(&mut out[HEADER..], &[&self.nonce.0, &message]);
        Ok((out, Secrets { session, keys }))
    }

    /// The REFUSE that answers it, and that only its client can read.
    ///
    /// # Errors
    /// [`NoEntropy`].
    pub fn refuse(
        &self,
        noise: Responder,
        reason: Reason,
    ) -> Result<[u8; SEALED_REFUSE_BYTES], NoEntropy> {
        let mut out = [0; SEALED_REFUSE_BYTES];
        header(Kind::Refuse, SessionId(0), &mut out);
        let message = noise.refuse::<REFUSING>(reason).map_err(|_| NoEntropy)?;
        fill(&mut out[HEADER..], &[&self.nonce.0, &message]);
        Ok(out)
    }
}

/// A REFUSE in clear.
pub fn refuse(nonce: &Nonce, reason: Reason) -> [u8; REFUSE_BYTES] {
    let mut out = [0; REFUSE_BYTES];
    header(Kind::Refuse, SessionId(0), &mut out);
    fill(&mut out[HEADER..], &[&nonce.0, &reason.encode()]);
    out
}

/// Reads a REFUSE in clear.
///
/// # Errors
/// [`WireError`]; a reason that must not be given in clear is malformed.
pub fn read_refuse(datagram: &[u8]) -> Result<(Nonce, Reason), WireError> {
    let mut f = exactly::<REFUSE_BYTES>(Kind::Refuse, datagram)?;
    let mut read = || Some((Nonce(f.bytes()?), f.bytes()?));
    let (nonce, said) = read().ok_or(WireError::Truncated)?;
    let reason = Reason::decode(said).filter(|reason| reason.may_be_clear());
    Ok((nonce, reason.ok_or(WireError::Malformed)?))
}

/// The answer to a HELLO of another version, as long as one of ours: a REFUSE that its client
/// understands. Every version from 2 on has this REFUSE and the first 28 bytes of HELLO; version 1
/// has neither the reason nor a number for it.
pub fn refuse_version(datagram: &[u8]) -> Option<[u8; REFUSE_BYTES]> {
    let theirs = datagram.first()? >> 4;
    let hello = datagram.len() == HELLO_BYTES && datagram[0] & 15 == Kind::Hello as u8;
    if !hello || theirs == VERSION || datagram[1..HEADER] != [0; HEADER - 1] {
        return None;
    }
    let nonce = Nonce(*datagram.get(HEADER..)?.first_chunk()?);
    let mut out = refuse(&nonce, Reason::Version(VERSION.into()));
    if theirs == 1 {
        let [code, ..] = Reason::Unsupported.encode();
        out[0] = 1 << 4 | Kind::Refuse as u8;
        out[ANSWER_CLEAR..].copy_from_slice(&[code, 0, 0, 0, 0]);
    }
    Some(out)
}

/// A HELLO of version 1, whose servers do not answer others.
pub fn hello_of_version_1(nonce: &Nonce) -> [u8; HELLO_BYTES] {
    let mut out = hello(nonce);
    out[0] = 1 << 4 | Kind::Hello as u8;
    out
}

/// The version of a server that speaks another than ours: of its REFUSE, or of the COOKIE of
/// version 1. A REFUSE of version 1 answers no HELLO of a server of version 1; it is what later
/// servers, ours too, say to [`hello_of_version_1`].
pub fn other_version(datagram: &[u8], nonce: &Nonce) -> Option<u8> {
    let (version, kind) = (datagram.first()? >> 4, datagram[0] & 15);
    let ours = datagram.get(HEADER..)?.first_chunk::<16>()? == &nonce.0;
    let cookie = version == 1 && kind == Kind::Cookie as u8;
    let says_no = version != 1 && kind == Kind::Refuse as u8;
    (ours && version != VERSION && (cookie || says_no)).then_some(version)
}

fn header(kind: Kind, session: SessionId, out: &mut [u8]) {
    Header {
        kind,
        flags: 0,
        flow: 0,
        session,
    }
    .encode(out);
}

/// Writes the fields one after another.
fn fill(mut out: &mut [u8], fields: &[&[u8]]) {
    for field in fields {
        let (head, rest) = out.split_at_mut(field.len());
        head.copy_from_slice(field);
        out = rest;
    }
}

/// What follows the header of a datagram of this kind and exactly `N` bytes. Only an ACCEPT has a
/// session; none has flags.
fn exactly<const N: usize>(kind: Kind, datagram: &[u8]) -> Result<Fields<'_>, WireError> {
    let header = Header::decode(datagram)?;
    if datagram.len() < N {
        return Err(WireError::Truncated);
    }
    let none = header.flags == 0 && header.flow == 0;
    let named = header.session != SessionId(0);
    if datagram.len() > N || header.kind != kind || !none || named != (kind == Kind::Accept) {
        return Err(WireError::Malformed);
    }
    Ok(Fields(&datagram[HEADER..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(letter: &str) -> Key {
        Key::from_text(&letter.repeat(40), "test").unwrap()
    }

    fn server(n: u8) -> Identity {
        Identity::from_private([n; 32])
    }

    fn ask() -> Ask {
        Ask {
            kind: TestKind::Udp as u8,
            options: 0,
            length: 700,
            digest: [9; 32],
        }
    }

    fn opening(letter: &str, to: &Identity) -> Opening {
        let (nonce, cookie) = (Nonce([3; 16]), Cookie([4; COOKIE]));
        Opening::new(&key(letter), &to.public(), nonce, cookie, &ask(), None).unwrap()
    }

    /// The ACCEPT of the server with this identity, and its secrets.
    fn accept(opening: &Opening, letter: &str, by: &Identity) -> ([u8; ACCEPT_BYTES], Secrets) {
        let open = Open::read(opening.bytes()).unwrap();
        let (noise, asked) = open.understand(&key(letter), by).unwrap();
        assert_eq!(asked, ask());
        open.accept(noise, SessionId(77)).unwrap()
    }

    #[test]
    fn messages_survive_the_wire() {
        let (nonce, c, id) = (Nonce([3; 16]), Cookie([4; COOKIE]), server(1).public());
        assert_eq!(read_hello(&hello(&nonce)), Ok(nonce));
        assert_eq!(read_cookie(&cookie(&nonce, &c, &id)), Ok((nonce, c, id)));
        let mut opening = opening("a", &server(1));
        let (accepted, theirs) = accept(&opening, "a", &server(1));
        let Ok(Some(Answer::Accepted(ours))) = opening.read_answer(&accepted) else {
            panic!("not accepted");
        };
        assert_eq!(ours.session, SessionId(77));
        assert_eq!(
            (ours.keys.up, ours.keys.down),
            (theirs.keys.up, theirs.keys.down)
        );
        assert_ne!(ours.keys.up, ours.keys.down);
        for (kind, bytes) in [
            (Kind::Hello, &hello(&nonce)[..]),
            (Kind::Cookie, &cookie(&nonce, &c, &id)),
            (Kind::Open, opening.bytes()),
            (Kind::Accept, &accepted),
            (Kind::Refuse, &refuse(&nonce, Reason::Cookie)),
        ] {
            assert_eq!(Header::decode(bytes).unwrap().kind, kind);
        }
    }

    #[test]
    fn a_refusal_is_sealed_once_the_key_is_shown() {
        for reason in Reason::all(7) {
            let mut opening = opening("a", &server(1));
            let open = Open::read(opening.bytes()).unwrap();
            let (noise, _) = open.understand(&key("a"), &server(1)).unwrap();
            let refused = open.refuse(noise, reason).unwrap();
            for i in 0..refused.len() {
                let mut bent = refused;
                bent[i] ^= 0x10;
                assert!(
                    !matches!(opening.read_answer(&bent), Ok(Some(_))),
                    "byte {i}"
                );
            }
            let answer = opening.read_answer(&refused);
            assert!(
                matches!(answer, Ok(Some(Answer::Refused(r))) if r == reason),
                "{reason:?}"
            );
            let clear = read_refuse(&refuse(&Nonce([3; 16]), reason));
            assert_eq!(clear.is_ok(), reason.may_be_clear(), "{reason:?}");
        }
    }

    #[test]
    fn no_answer_is_longer_than_its_question() {
        const { assert!(COOKIE_BYTES <= HELLO_BYTES && REFUSE_BYTES <= HELLO_BYTES) };
        const { assert!(ACCEPT_BYTES <= OPEN_BYTES && SEALED_REFUSE_BYTES <= OPEN_BYTES) };
        assert_eq!(
            read_hello(&hello(&Nonce([0; 16]))[..HELLO_BYTES - 1]),
            Err(WireError::Truncated)
        );
    }

    #[test]
    fn every_byte_of_an_open_and_an_accept_is_proven() {
        let mut opening = opening("a", &server(1));
        let open = Open::read(opening.bytes()).unwrap();
        let understood =
            |open: &Open, key: &Key, by: u8| open.understand(key, &server(by)).is_some();
        assert!(understood(&open, &key("a"), 1));
        assert!(!understood(&open, &key("b"), 1) && !understood(&open, &Key::open(), 1));
        assert!(!understood(&open, &key("a"), 2), "one key on two servers");
        for i in 0..OPEN_BYTES {
            let mut bent = *opening.bytes();
            bent[i] ^= 0x10;
            let read = Open::read(&bent);
            assert_eq!(read.is_err(), i < HEADER, "byte {i}");
            assert!(
                !read.is_ok_and(|open| understood(&open, &key("a"), 1)),
                "byte {i}"
            );
        }
        let (accepted, _) = accept(&opening, "a", &server(1));
        for i in 0..ACCEPT_BYTES {
            // The session stands inside too, and counts there.
            if (4..HEADER).contains(&i) {
                continue;
            }
            let mut bent = accepted;
            bent[i] ^= 0x10;
            let read = opening.read_answer(&bent);
            assert!(!matches!(read, Ok(Some(_))), "byte {i}");
        }
        let right = opening.read_answer(&accepted);
        assert!(
            matches!(right, Ok(Some(Answer::Accepted(_)))),
            "after all these forgeries"
        );
    }

    #[test]
    fn no_two_handshakes_have_a_key_in_common() {
        let mut keys = Vec::new();
        for _ in 0..4 {
            let opening = opening("a", &server(1));
            let (_, secrets) = accept(&opening, "a", &server(1));
            keys.extend([secrets.keys.up, secrets.keys.down]);
        }
        // The same OPEN, answered anew.
        let opening = opening("a", &server(1));
        for _ in 0..2 {
            let (_, secrets) = accept(&opening, "a", &server(1));
            keys.extend([secrets.keys.up, secrets.keys.down]);
        }
        let different: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(different.len(), 12);
    }

    #[test]
    fn a_client_of_another_version_is_told() {
        let nonce = Nonce([5; 16]);
        let old = refuse_version(&hello_of_version_1(&nonce)).unwrap();
        // What version 1 reads: its REFUSE, reason 6.
        assert_eq!(old[..HEADER], [0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(old[HEADER..HEADER + 16], nonce.0);
        assert_eq!(old[HEADER + 16..], [6, 0, 0, 0, 0]);
        let mut later = hello(&nonce);
        later[0] = 3 << 4;
        let answer = refuse_version(&later).unwrap();
        let version = Reason::Version(VERSION.into());
        assert_eq!(read_refuse(&answer), Ok((nonce, version)));
        assert_eq!(refuse_version(&hello(&nonce)), None, "ours");
        assert_eq!(refuse_version(&later[..HELLO_BYTES - 1]), None, "short");
        assert_eq!(other_version(&old, &nonce), None, "of a later server");
        let mut later = refuse(&nonce, Reason::Version(3));
        later[0] = 0x34;
        assert_eq!(other_version(&later, &nonce), Some(3));
        assert_eq!(other_version(&later, &Nonce([6; 16])), None, "of another");
        assert_eq!(other_version(&answer, &nonce), None, "ours");
    }

    proptest! {
        #[test]
        fn nothing_panics(datagram in proptest::collection::vec(any::<u8>(), 0..1300)) {
            let _ = read_hello(&datagram);
            let _ = read_cookie(&datagram);
            let _ = read_refuse(&datagram);
            let _ = refuse_version(&datagram);
            let _ = other_version(&datagram, &Nonce([3; 16]));
            let read = opening("a", &server(1)).read_answer(&datagram);
            prop_assert!(!matches!(read, Ok(Some(_))));
            if let Ok(open) = Open::read(&datagram) {
                prop_assert!(open.understand(&key("a"), &server(1)).is_none());
            }
        }
    }
}
