//! The client's side of the handshake, without a socket or a clock.

use fullpipe_units::{Span, Time};

use crate::wire::{Header, Kind, VERSION, WireError};

use super::message::{self, Answer, Ask, Nonce, Opening, Reason};
use super::{Key, Secrets, ServerId};

/// Until a datagram is sent again for the first time; twice as long each further time.
pub const FIRST_RETRY: Span = Span::from_millis(250);

/// Longest time between two tries.
pub const LONGEST_RETRY: Span = Span::from_secs(2);

/// How often the handshake begins anew because a cookie grew old on the way.
const MOST_RESTARTS: u32 = 3;

/// Unanswered tries after which servers of version 1, which know no other, are asked too.
const PATIENT: u32 = 3;

/// COOKIEs of another server that are believed.
const MOST_OTHERS: u32 = 2;

/// A handshake under way.
pub struct Handshake {
    key: Key,
    ask: Ask,
    nonce: Nonce,
    /// The server that is meant; without one, whoever has the key, or answers.
    server: Option<ServerId>,
    /// The OPEN, and for whom it is.
    open: Option<(Box<Opening>, ServerId)>,
    /// HELLOs without an answer.
    tries: u32,
    /// A HELLO of version 1 is due.
    knock: bool,
    /// Another server than the one that is meant has answered, and how often.
    other: Option<(ServerId, u32)>,
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
    /// It is another server than the one that is meant.
    #[error("another server answers: its identity is {}, not {}", found.short(), meant.short())]
    OtherServer {
        /// Identity in the COOKIE.
        found: ServerId,
        /// Identity that the client was given.
        meant: ServerId,
    },
    /// It speaks another version of the protocol.
    #[error("the server speaks version {0} of the protocol, this program version {VERSION}")]
    OtherVersion(u8),
    /// The operating system gives no random bytes.
    #[error(transparent)]
    NoEntropy(#[from] message::NoEntropy),
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
            server: None,
            open: None,
            tries: 0,
            knock: false,
            other: None,
            due: now,
            retry: FIRST_RETRY,
            give_up: now + patience,
            restarts: 0,
            unproven: false,
            fresh,
        }
    }

    /// With this server only.
    pub fn with_server(self, server: Option<ServerId>) -> Self {
        Self { server, ..self }
    }

    /// What to send now, if anything.
    ///
    /// # Errors
    /// [`HandshakeError::NoAnswer`] after the patience is over.
    pub fn poll(&mut self, now: Time) -> Result<Option<Vec<u8>>, HandshakeError> {
        if now >= self.give_up {
            return Err(match (self.other, self.server) {
                (Some((found, _)), Some(meant)) => HandshakeError::OtherServer { found, meant },
                _ if self.unproven => HandshakeError::Impostor,
                _ => HandshakeError::NoAnswer,
            });
        }
        if std::mem::take(&mut self.knock) {
            return Ok(Some(message::hello_of_version_1(&self.nonce).to_vec()));
        }
        if now < self.due {
            return Ok(None);
        }
        self.due = now + self.retry;
        self.retry = (self.retry * 2).min(LONGEST_RETRY);
        Ok(Some(match &self.open {
            None => {
                self.tries += 1;
                self.knock = self.tries > PATIENT;
                message::hello(&self.nonce).to_vec()
            }
            Some((open, _)) => open.bytes().to_vec(),
        }))
    }

    /// When to call [`Handshake::poll`] again.
    pub fn next_timeout(&self) -> Time {
        match self.knock {
            true => Time::ZERO,
            false => self.due.min(self.give_up),
        }
    }

    /// A datagram came; the session, and who serves it, if that completes the handshake. What does
    /// not belong to this handshake is passed over.
    ///
    /// # Errors
    /// [`HandshakeError`] if the server says no.
    pub fn handle(
        &mut self,
        now: Time,
        datagram: &[u8],
    ) -> Result<Option<(Secrets, ServerId)>, HandshakeError> {
        match Header::decode(datagram).map(|header| header.kind) {
            Ok(Kind::Cookie) if self.open.is_none() => self.take_cookie(now, datagram)?,
            Ok(Kind::Accept) => return self.take_answer(datagram),
            Ok(Kind::Refuse) if datagram.len() == message::SEALED_REFUSE_BYTES => {
                return self.take_answer(datagram);
            }
            Ok(Kind::Refuse) => self.take_refusal(now, datagram)?,
            Err(WireError::Version) => {
                if let Some(version) = message::other_version(datagram, &self.nonce) {
                    return Err(HandshakeError::OtherVersion(version));
                }
            }
            _ => {}
        }
        Ok(None)
    }

    fn take_cookie(&mut self, now: Time, datagram: &[u8]) -> Result<(), HandshakeError> {
        let Ok((nonce, cookie, found)) = message::read_cookie(datagram) else {
            return Ok(());
        };
        if nonce != self.nonce {
            return Ok(());
        }
        if let Some(meant) = self.server.filter(|meant| *meant != found) {
            // Once may be a damaged bit or a forger who was faster: the next HELLO tells.
            return match self.other {
                Some((before, n)) if before == found && n + 1 >= MOST_OTHERS => {
                    Err(HandshakeError::OtherServer { found, meant })
                }
                Some((before, n)) if before == found => {
                    self.other = Some((found, n + 1));
                    Ok(())
                }
                _ => {
                    self.other = Some((found, 1));
                    Ok(())
                }
            };
        }
        let open = Opening::new(&self.key, &found, nonce, cookie, &self.ask, None)?;
        self.open = Some((Box::new(open), found));
        self.hurry(now);
        Ok(())
    }

    fn take_answer(
        &mut self,
        datagram: &[u8],
    ) -> Result<Option<(Secrets, ServerId)>, HandshakeError> {
        let Some((open, server)) = &mut self.open else {
            return Ok(None);
        };
        match open.read_answer(datagram) {
            Ok(Some(Answer::Accepted(secrets))) => Ok(Some((secrets, *server))),
            Ok(Some(Answer::Refused(reason))) => Err(HandshakeError::Refused(reason)),
            // The right one may follow: one damaged bit, or one forger, ends nothing.
            Ok(None) => {
                self.unproven = true;
                Ok(None)
            }
            Err(_) => Ok(None),
        }
    }

    fn take_refusal(&mut self, now: Time, datagram: &[u8]) -> Result<(), HandshakeError> {
        match message::read_refuse(datagram) {
            Ok((nonce, reason)) if nonce == self.nonce => {
                // A cookie grows old; and what it came with may have been damaged on its way here.
                let again = match reason {
                    Reason::Cookie => self.restarts < MOST_RESTARTS,
                    Reason::Authentication => self.restarts == 0,
                    _ => false,
                };
                if !again {
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
