//! The datagrams of the handshake. All begin with the [`Header`] of every datagram, session 0
//! unless said otherwise; numbers are big-endian.
//!
//! ```text
//! HELLO   nonce 16, zeros up to 1200 bytes in all
//! COOKIE  nonce 16, cookie 36
//! OPEN    nonce 16, cookie 36, kind 1, options 1, bytes of the request 4, digest of the request 32, proof 32
//! ACCEPT  nonce 16, proof 32                         (header: the new session)
//! REFUSE  nonce 16, reason 1, number 4
//! ```
//! The nonce is the client's and comes back in every answer, so that nobody who does not see the
//! datagrams can answer in the server's place. A proof is a keyed hash under the shared key: the
//! client's over its OPEN, the server's over OPEN and ACCEPT. No answer is longer than its
//! question.

use crate::wire::{HEADER, Header, Kind, SessionId, WireError};

use super::cookie::{COOKIE, Cookie};
use super::parse::Fields;
use super::{Key, Secrets};

/// Bytes of a HELLO.
pub const HELLO_BYTES: usize = 1200;
/// Bytes of a COOKIE.
pub const COOKIE_BYTES: usize = HEADER + 16 + COOKIE;
/// Bytes of an OPEN before its proof.
const OPEN_CLAIM: usize = HEADER + 16 + COOKIE + 1 + 1 + 4 + 32;
/// Bytes of an OPEN.
pub const OPEN_BYTES: usize = OPEN_CLAIM + 32;
/// Bytes of an ACCEPT.
pub const ACCEPT_BYTES: usize = HEADER + 16 + 32;
/// Bytes of a REFUSE.
pub const REFUSE_BYTES: usize = HEADER + 16 + 1 + 4;

/// A number that a client draws for every handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce(pub [u8; 16]);

/// What is to be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TestKind {
    /// The endpoint of fullpipe over UDP: flows, cross traffic, probes.
    Udp = 1,
    /// Bulk flows of the kernels' TCP. Not in this version: refused.
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

/// The option of [`Ask`] that encrypts data.
pub const ENCRYPT: u8 = 1;

/// Why a server refused, before it knows the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
#[non_exhaustive]
pub enum Reason {
    /// The proof is not one: another key, or only one side has one.
    #[error("authentication failed")]
    Authentication = 1,
    /// The cookie is too old or not of this server: begin anew.
    #[error("the handshake took too long")]
    Cookie = 2,
    /// A session was opened with this cookie before.
    #[error("this handshake was used before")]
    Replay = 3,
    /// As many tests as the server runs at a time; the number.
    #[error("the server is busy with {0} tests (limit --max-tests)")]
    Busy(u32) = 4,
    /// As many as it runs for one address; the number.
    #[error("the server runs {0} tests for this address already (limit --max-tests-per-peer)")]
    BusyForPeer(u32) = 5,
    /// A kind or option that it does not have.
    #[error("this kind of test is not in the server's version")]
    Unsupported = 6,
    /// The request is longer than it takes; the limit in bytes.
    #[error("the request is longer than the server's limit of {0} bytes")]
    TooLong(u32) = 7,
    /// It is about to stop.
    #[error("the server is shutting down")]
    Stopping = 8,
    /// Encryption without a key that is a secret.
    #[error("a server without a key cannot encrypt: everybody would have the key")]
    Keyless = 9,
    /// It runs encrypted tests only.
    #[error("the server takes encrypted tests only")]
    Unencrypted = 10,
    /// The address opens sessions faster than the server remembers them; how many it may within
    /// the life of a cookie.
    #[error("this address opened {0} sessions within 20 seconds, the most that the server takes")]
    Hurried(u32) = 11,
}

impl Reason {
    fn parts(self) -> (u8, u32) {
        match self {
            Self::Authentication => (1, 0),
            Self::Cookie => (2, 0),
            Self::Replay => (3, 0),
            Self::Busy(n) => (4, n),
            Self::BusyForPeer(n) => (5, n),
            Self::Unsupported => (6, 0),
            Self::TooLong(n) => (7, n),
            Self::Stopping => (8, 0),
            Self::Keyless => (9, 0),
            Self::Unencrypted => (10, 0),
            Self::Hurried(n) => (11, n),
        }
    }

    fn parse(code: u8, number: u32) -> Option<Self> {
        Some(match code {
            1 => Self::Authentication,
            2 => Self::Cookie,
            3 => Self::Replay,
            4 => Self::Busy(number),
            5 => Self::BusyForPeer(number),
            6 => Self::Unsupported,
            7 => Self::TooLong(number),
            8 => Self::Stopping,
            9 => Self::Keyless,
            10 => Self::Unencrypted,
            11 => Self::Hurried(number),
            _ => return None,
        })
    }
}

/// An OPEN: what it says, and all of its bytes, which both sides hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Nonce of the client.
    pub nonce: Nonce,
    /// Cookie that the server minted for this nonce and address.
    pub cookie: Cookie,
    /// Kind and size of the request to come.
    pub ask: Ask,
    /// The datagram.
    pub bytes: [u8; OPEN_BYTES],
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

/// A COOKIE.
pub fn cookie(nonce: &Nonce, cookie: &Cookie) -> [u8; COOKIE_BYTES] {
    let mut out = [0; COOKIE_BYTES];
    header(Kind::Cookie, SessionId(0), &mut out);
    fill(&mut out[HEADER..], &[&nonce.0, &cookie.0]);
    out
}

/// Reads a COOKIE.
///
/// # Errors
/// [`WireError`].
pub fn read_cookie(datagram: &[u8]) -> Result<(Nonce, Cookie), WireError> {
    let mut f = exactly::<COOKIE_BYTES>(Kind::Cookie, datagram)?;
    let read = || Some((Nonce(f.bytes()?), Cookie(f.bytes()?)));
    ({ read })().ok_or(WireError::Truncated)
}

impl Open {
    /// With its proof.
    pub fn new(key: &Key, nonce: Nonce, cookie: Cookie, ask: Ask) -> Self {
        let mut bytes = [0; OPEN_BYTES];
        header(Kind::Open, SessionId(0), &mut bytes);
        let (kind, options) = ([ask.kind], [ask.options]);
        let length = ask.length.to_be_bytes();
        let claim: [&[u8]; 6] = [&nonce.0, &cookie.0, &kind, &options, &length, &ask.digest];
        fill(&mut bytes[HEADER..], &claim);
        let proof = open_proof(key, &bytes[..OPEN_CLAIM]);
        bytes[OPEN_CLAIM..].copy_from_slice(proof.as_bytes());
        Self {
            nonce,
            cookie,
            ask,
            bytes,
        }
    }

    /// Reads one, without looking at cookie or proof.
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
                ask: Ask {
                    kind: f.byte()?,
                    options: f.byte()?,
                    length: f.word()?,
                    digest: f.bytes()?,
                },
                bytes,
            })
        };
        read().ok_or(WireError::Truncated)
    }

    /// True if the proof was made with this key; compared in constant time.
    pub fn proves(&self, key: &Key) -> bool {
        let (claim, given) = self.bytes.split_at(OPEN_CLAIM);
        // `Hash == [u8]` compares in constant time.
        open_proof(key, claim) == *given
    }

    /// The secrets of the session that it opens.
    pub fn secrets(&self, key: &Key, session: SessionId) -> Secrets {
        Secrets::derive(key, &self.bytes, session)
    }

    /// The ACCEPT that answers it.
    pub fn accept(&self, key: &Key, session: SessionId) -> [u8; ACCEPT_BYTES] {
        let mut out = [0; ACCEPT_BYTES];
        header(Kind::Accept, session, &mut out);
        let proof = self.accept_proof(key, session);
        fill(&mut out[HEADER..], &[&self.nonce.0, proof.as_bytes()]);
        out
    }

    /// Reads an ACCEPT that answers it; `None`: not a proof of this key.
    ///
    /// # Errors
    /// [`WireError`]; an ACCEPT of another handshake is malformed.
    pub fn read_accept(&self, key: &Key, datagram: &[u8]) -> Result<Option<SessionId>, WireError> {
        let session = Header::decode(datagram)?.session;
        let mut f = exactly::<ACCEPT_BYTES>(Kind::Accept, datagram)?;
        let nonce = f.bytes().map(Nonce).ok_or(WireError::Truncated)?;
        if nonce != self.nonce {
            return Err(WireError::Malformed);
        }
        let proven = self.accept_proof(key, session) == *f.0;
        Ok(proven.then_some(session))
    }

    fn accept_proof(&self, key: &Key, session: SessionId) -> blake3::Hash {
        key.hasher("accept")
            .update(&self.bytes)
            .update(&session.0.to_be_bytes())
            .finalize()
    }
}

/// A REFUSE.
pub fn refuse(nonce: &Nonce, reason: Reason) -> [u8; REFUSE_BYTES] {
    let mut out = [0; REFUSE_BYTES];
    header(Kind::Refuse, SessionId(0), &mut out);
    let (code, number) = reason.parts();
    let fields: [&[u8]; 3] = [&nonce.0, &[code], &number.to_be_bytes()];
    fill(&mut out[HEADER..], &fields);
    out
}

/// Reads a REFUSE.
///
/// # Errors
/// [`WireError`].
pub fn read_refuse(datagram: &[u8]) -> Result<(Nonce, Reason), WireError> {
    let mut f = exactly::<REFUSE_BYTES>(Kind::Refuse, datagram)?;
    let mut read = || Some((Nonce(f.bytes()?), f.byte()?, f.word()?));
    let (nonce, code, number) = read().ok_or(WireError::Truncated)?;
    let reason = Reason::parse(code, number).ok_or(WireError::Malformed)?;
    Ok((nonce, reason))
}

fn open_proof(key: &Key, claim: &[u8]) -> blake3::Hash {
    key.hasher("open").update(claim).finalize()
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

    fn ask() -> Ask {
        Ask {
            kind: TestKind::Udp as u8,
            options: 0,
            length: 700,
            digest: [9; 32],
        }
    }

    #[test]
    fn messages_survive_the_wire() {
        let (nonce, c) = (Nonce([3; 16]), Cookie([4; COOKIE]));
        assert_eq!(read_hello(&hello(&nonce)), Ok(nonce));
        assert_eq!(read_cookie(&cookie(&nonce, &c)), Ok((nonce, c)));
        let open = Open::new(&key("a"), nonce, c, ask());
        assert_eq!(Open::read(&open.bytes), Ok(open.clone()));
        let accept = open.accept(&key("a"), SessionId(77));
        assert_eq!(
            open.read_accept(&key("a"), &accept),
            Ok(Some(SessionId(77)))
        );
        assert_eq!(open.read_accept(&key("b"), &accept), Ok(None));
        for reason in [
            Reason::Authentication,
            Reason::Cookie,
            Reason::Replay,
            Reason::Busy(4),
            Reason::BusyForPeer(1),
            Reason::Unsupported,
            Reason::TooLong(9),
            Reason::Stopping,
        ] {
            assert_eq!(read_refuse(&refuse(&nonce, reason)), Ok((nonce, reason)));
        }
        for (kind, bytes) in [
            (Kind::Hello, &hello(&nonce)[..]),
            (Kind::Cookie, &cookie(&nonce, &c)),
            (Kind::Open, &open.bytes),
            (Kind::Accept, &accept),
            (Kind::Refuse, &refuse(&nonce, Reason::Stopping)),
        ] {
            assert_eq!(Header::decode(bytes).unwrap().kind, kind);
        }
    }

    #[test]
    fn no_answer_is_longer_than_its_question() {
        const { assert!(COOKIE_BYTES <= HELLO_BYTES && REFUSE_BYTES <= HELLO_BYTES) };
        const { assert!(ACCEPT_BYTES <= OPEN_BYTES && REFUSE_BYTES <= OPEN_BYTES) };
        assert_eq!(
            read_hello(&hello(&Nonce([0; 16]))[..HELLO_BYTES - 1]),
            Err(WireError::Truncated)
        );
    }

    #[test]
    fn every_byte_of_an_open_and_an_accept_is_proven() {
        let open = Open::new(&key("a"), Nonce([3; 16]), Cookie([4; COOKIE]), ask());
        assert!(open.proves(&key("a")) && !open.proves(&key("b")) && !open.proves(&Key::open()));
        for i in 0..OPEN_BYTES {
            let mut bent = open.bytes;
            bent[i] ^= 0x10;
            let read = Open::read(&bent);
            assert_eq!(read.is_err(), i < HEADER, "byte {i}");
            assert!(!read.is_ok_and(|open| open.proves(&key("a"))), "byte {i}");
        }
        let accept = open.accept(&key("a"), SessionId(77));
        for i in 0..ACCEPT_BYTES {
            let mut bent = accept;
            bent[i] ^= 0x10;
            let read = open.read_accept(&key("a"), &bent);
            assert!(!matches!(read, Ok(Some(_))), "byte {i}");
        }
    }

    #[test]
    fn secrets_differ_by_direction_session_and_handshake() {
        let open = |n| Open::new(&key("a"), Nonce([n; 16]), Cookie([4; COOKIE]), ask());
        let all = |s: Secrets| [s.control.up, s.control.down, s.data.up, s.data.down];
        let mut keys = Vec::new();
        keys.extend(all(open(1).secrets(&key("a"), SessionId(1))));
        keys.extend(all(open(1).secrets(&key("a"), SessionId(2))));
        keys.extend(all(open(2).secrets(&key("a"), SessionId(1))));
        keys.extend(all(open(1).secrets(&key("b"), SessionId(1))));
        let different: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(different.len(), 16);
    }

    proptest! {
        #[test]
        fn nothing_panics(datagram in proptest::collection::vec(any::<u8>(), 0..1300)) {
            let _ = read_hello(&datagram);
            let _ = read_cookie(&datagram);
            let _ = read_refuse(&datagram);
            let open = Open::new(&key("a"), Nonce([3; 16]), Cookie([4; COOKIE]), ask());
            let read = open.read_accept(&key("a"), &datagram);
            prop_assert!(!matches!(read, Ok(Some(_))));
            if let Ok(open) = Open::read(&datagram) {
                prop_assert!(!open.proves(&key("a")));
            }
        }
    }
}
