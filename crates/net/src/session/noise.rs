//! The handshake's cryptography: the Noise protocol framework (revision 34), by the crate `snow`.
//!
//! ```text
//! NKpsk0:
//!   <- s                 the server's public key, in its COOKIE
//!   ...
//!   -> psk, e, es        in the OPEN
//!   <- e, ee             in the ACCEPT, or in a REFUSE
//! ```
//! The pre-shared key lets in who has it, `es` shows that the server is the one meant, and `ee`
//! makes keys that neither the shared nor the server's key brings back later. An open server has a
//! pre-shared key of zeros: one pattern for all.

use snow::{Builder, HandshakeState};

use super::message::{Ask, Reason};
use super::{Directions, Identity, Key, ServerId};

/// Name of the protocol; it begins the transcript.
pub const PROTOCOL: &str = "Noise_NKpsk0_25519_ChaChaPoly_BLAKE2s";

/// Bytes that a message has more than its payload: an ephemeral key and a tag.
pub const ADDED: usize = 32 + 16;

/// The client's handshake, its first message written.
#[derive(Debug)]
pub struct Initiator(HandshakeState);

/// The server's handshake, the first message read.
#[derive(Debug)]
pub struct Responder(HandshakeState);

/// The builder of either side; `prologue` is what both must have seen the same.
fn builder<'b>(prologue: &'b [u8], key: &'b Key) -> Result<Builder<'b>, snow::Error> {
    let protocol = PROTOCOL.parse()?;
    Builder::new(protocol)
        .prologue(prologue)?
        .psk(0, key.secret())
}

impl Initiator {
    /// With the first message, whose payload is `ask`. `ephemeral` is for test vectors: nobody else
    /// may choose it.
    ///
    /// # Errors
    /// No random bytes from the operating system.
    pub fn begin<const N: usize>(
        key: &Key,
        server: &ServerId,
        prologue: &[u8],
        ask: &Ask,
        ephemeral: Option<&[u8; 32]>,
    ) -> Result<(Self, [u8; N]), snow::Error> {
        let mut builder = builder(prologue, key)?.remote_public_key(&server.0)?;
        if let Some(ephemeral) = ephemeral {
            builder = builder.fixed_ephemeral_key_for_testing_only(ephemeral);
        }
        let mut state = builder.build_initiator()?;
        let mut message = [0; N];
        let n = state.write_message(&ask.encode(), &mut message)?;
        debug_assert_eq!(n, N);
        Ok((Self(state), message))
    }

    /// The payload of the answer; `None`, and nothing has changed: it is not the server's.
    pub fn read<const N: usize>(&mut self, message: &[u8]) -> Option<[u8; N]> {
        // `snow` takes the answer's ephemeral key before it has checked it; the next answer
        // replaces it.
        let mut payload = [0; N];
        let n = self.0.read_message(message, &mut payload).ok()?;
        (n == N).then_some(payload)
    }

    /// The keys, once the answer is read.
    pub fn keys(mut self) -> Directions {
        let (up, down) = self.0.dangerously_get_raw_split();
        Directions { up, down }
    }
}

impl Responder {
    /// Reads a first message; `None`: made without the key, or for another server.
    pub fn read(
        key: &Key,
        identity: &Identity,
        prologue: &[u8],
        message: &[u8],
    ) -> Option<(Self, Ask)> {
        let builder = builder(prologue, key).ok()?;
        let builder = builder.local_private_key(identity.private()).ok()?;
        let mut state = builder.build_responder().ok()?;
        let mut payload = [0; Ask::BYTES];
        let n = state.read_message(message, &mut payload).ok()?;
        let ask = (n == Ask::BYTES).then(|| Ask::decode(&payload))?;
        Some((Self(state), ask))
    }

    /// The answer that opens a session.
    ///
    /// # Errors
    /// No random bytes from the operating system.
    pub fn accept<const N: usize>(
        mut self,
        session: u64,
    ) -> Result<([u8; N], Directions), snow::Error> {
        let message = self.write(&session.to_be_bytes())?;
        let (up, down) = self.0.dangerously_get_raw_split();
        Ok((message, Directions { up, down }))
    }

    /// The answer that opens none.
    ///
    /// # Errors
    /// No random bytes from the operating system.
    pub fn refuse<const N: usize>(mut self, reason: Reason) -> Result<[u8; N], snow::Error> {
        self.write(&reason.encode())
    }

    fn write<const N: usize>(&mut self, payload: &[u8]) -> Result<[u8; N], snow::Error> {
        let mut message = [0; N];
        let n = self.0.write_message(payload, &mut message)?;
        debug_assert_eq!(n, N);
        Ok(message)
    }
}
