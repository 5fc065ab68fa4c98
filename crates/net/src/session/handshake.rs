//! The client's side of the handshake, without a socket or a clock.

use fullpipe_units::{Span, Time};

use crate::wire::{Header, Kind};

use super::message::{self, Ask, Nonce, Open, Reason};
use super::{Key, Secrets};

/// Until a datagram is sent again for the first time; twice as long each further time.
pub const FIRST_RETRY: Span = Span::from_millis(250);

/// Longest time between two tries.
pub const LONGEST_RETRY: Span = Span::from_secs(2);

/// How often the handshake begins anew because a cookie grew old on the way.
const MOST_RESTARTS: u32 = 3;

/// A handshake under way.
pub struct Handshake {
    key: Key,
    ask: Ask,
    nonce: Nonce,
    open: Option<Box<Open>>,
    due: Time,
    retry: Span,
    give_up: Time,
    restarts: u32,
    /// Somebody accepted without proof: damaged on the way, or a forger.
    unproven: bool,
    fresh: Box<dyn FnMut() -> [u8; 16] + Send>,
}

/// How a handshake ends without a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// No answer, or none that counts.
    #[error("no answer")]
    NoAnswer,
    /// The server says no.
    #[error("{0}")]
    Refused(Reason),
    /// All who accepted could not prove that they have the key.
    #[error("the server cannot prove that it has the key")]
    Impostor,
}

impl HandshakeError {
    /// The server has as many tests as it takes: later it may have room.
    pub fn is_busy(&self) -> bool {
        matches!(
            self,
            Self::Refused(Reason::Busy(_) | Reason::BusyForPeer(_) | Reason::Hurried(_))
        )
    }
}

impl Handshake {
    /// Begins; `fresh` draws random nonces, after `patience` without an answer it gives up.
    pub fn new(
        now: Time,
        patience: Span,
        key: Key,
        ask: Ask,
        mut fresh: Box<dyn FnMut() -> [u8; 16] + Send>,
    ) -> Self {
        Self {
            key,
            ask,
            nonce: Nonce(fresh()),
            open: None,
            due: now,
            retry: FIRST_RETRY,
            give_up: now + patience,
            restarts: 0,
            unproven: false,
            fresh,
        }
    }

    /// What to send now, if anything.
    ///
    /// # Errors
    /// [`HandshakeError::NoAnswer`] after the patience is over.
    pub fn poll(&mut self, now: Time) -> Result<Option<Vec<u8>>, HandshakeError> {
        if now >= self.give_up {
            return Err(match self.unproven {
                true => HandshakeError::Impostor,
                false => HandshakeError::NoAnswer,
            });
        }
        if now < self.due {
            return Ok(None);
        }
        self.due = now + self.retry;
        self.retry = (self.retry * 2).min(LONGEST_RETRY);
        Ok(Some(match &self.open {
            None => message::hello(&self.nonce).to_vec(),
            Some(open) => open.bytes.to_vec(),
        }))
    }

    /// When to call [`Handshake::poll`] again.
    pub fn next_timeout(&self) -> Time {
        self.due.min(self.give_up)
    }

    /// A datagram came; the session if that completes the handshake. What does not belong to this
    /// handshake is passed over.
    ///
    /// # Errors
    /// [`HandshakeError`] if the server says no.
    pub fn handle(
        &mut self,
        now: Time,
        datagram: &[u8],
    ) -> Result<Option<(Secrets, Open)>, HandshakeError> {
        match Header::decode(datagram).map(|header| header.kind) {
            Ok(Kind::Cookie) if self.open.is_none() => {
                if let Ok((nonce, cookie)) = message::read_cookie(datagram)
                    && nonce == self.nonce
                {
                    let open = Open::new(&self.key, nonce, cookie, self.ask);
                    self.open = Some(Box::new(open));
                    self.hurry(now);
                }
            }
            Ok(Kind::Accept) => return self.accepted(datagram),
            Ok(Kind::Refuse) => self.refused(now, datagram)?,
            _ => {}
        }
        Ok(None)
    }

    fn accepted(&mut self, datagram: &[u8]) -> Result<Option<(Secrets, Open)>, HandshakeError> {
        let Some(open) = &self.open else {
            return Ok(None);
        };
        match open.read_accept(&self.key, datagram) {
            Ok(Some(session)) => {
                let secrets = open.secrets(&self.key, session);
                Ok(Some((secrets, (**open).clone())))
            }
            // The right one may follow: one damaged bit, or one forger, ends nothing.
            Ok(None) => {
                self.unproven = true;
                Ok(None)
            }
            Err(_) => Ok(None),
        }
    }

    fn refused(&mut self, now: Time, datagram: &[u8]) -> Result<(), HandshakeError> {
        match message::read_refuse(datagram) {
            Ok((nonce, reason)) if nonce == self.nonce => {
                if reason != Reason::Cookie || self.restarts == MOST_RESTARTS {
                    return Err(HandshakeError::Refused(reason));
                }
                self.restarts += 1;
                self.nonce = Nonce((self.fresh)());
                self.open = None;
                self.hurry(now);
            }
            _ => {}
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn give_up_at(&mut self, at: Time) {
        self.give_up = at;
    }

    fn hurry(&mut self, now: Time) {
        self.due = now;
        self.retry = FIRST_RETRY;
    }
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake")
            .field("ask", &self.ask)
            .field("opened", &self.open.is_some())
            .finish_non_exhaustive()
    }
}
