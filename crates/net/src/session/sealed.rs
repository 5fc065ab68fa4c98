//! The port of an encrypted session's endpoint: seals outgoing datagrams and opens incoming ones. A
//! datagram that cannot be opened reaches the endpoint empty, which counts it as ignored.

use std::cell::RefCell;
use std::net::SocketAddr;

use super::seal::{OVERHEAD, Seal};
use crate::endpoint::{Mark, Port, forward};

/// A port that encrypts its datagrams.
#[derive(Debug)]
pub struct Sealed<'s, P> {
    port: P,
    /// The seal of the session, and room for one open datagram.
    opening: RefCell<(&'s mut Seal, Vec<u8>)>,
}

impl<'s, P: Port> Sealed<'s, P> {
    /// Wraps `port`; `longest` is the largest datagram before sealing, bytes.
    pub fn new(port: P, seal: &'s mut Seal, longest: usize) -> Self {
        Self {
            port,
            opening: RefCell::new((seal, vec![0; longest])),
        }
    }
}

impl<P: Port> Port for Sealed<'_, P> {
    #[inline]
    fn push(
        &mut self,
        to: SocketAddr,
        mark: Option<Mark>,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let (seal, _) = self.opening.get_mut();
        self.port
            .push(to, mark, len + OVERHEAD, |out| seal.seal(out, fill));
    }

    fn overhead(&self) -> usize {
        self.port.overhead() + OVERHEAD
    }

    #[inline]
    fn each(&self, mut take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
        let (seal, room) = &mut *self.opening.borrow_mut();
        self.port.each(|from, mark, bytes| {
            take(from, mark, seal.open(bytes, room).unwrap_or_default());
        });
    }

    forward!(|this| this.port; is_full, held_until, flush, receive, received_at);
    forward!(|this| this.port; has_stamps, wait, pause, now, drops, passed_over, reroute);
}
