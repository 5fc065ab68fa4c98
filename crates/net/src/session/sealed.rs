//! The port of an encrypted session's endpoint: seals outgoing datagrams and opens incoming ones. A
//! datagram that cannot be opened reaches the endpoint empty, which counts it as ignored.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;

use fullpipe_units::Time;

use super::seal::{OVERHEAD, Seal};
use crate::endpoint::{Flush, Mark, Port};

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

    #[inline]
    fn is_full(&self) -> bool {
        self.port.is_full()
    }

    fn overhead(&self) -> usize {
        self.port.overhead() + OVERHEAD
    }

    fn held_until(&mut self) -> Option<Time> {
        self.port.held_until()
    }

    fn flush(&mut self) -> io::Result<Flush> {
        self.port.flush()
    }

    fn receive(&mut self) -> io::Result<usize> {
        self.port.receive()
    }

    #[inline]
    fn each(&self, mut take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
        let (seal, room) = &mut *self.opening.borrow_mut();
        self.port.each(|from, mark, bytes| {
            take(from, mark, seal.open(bytes, room).unwrap_or_default());
        });
    }

    fn received_at(&self, take: impl FnMut(Time)) {
        self.port.received_at(take);
    }

    fn has_stamps(&self) -> bool {
        self.port.has_stamps()
    }

    fn wait(&mut self, until: Time, writable: bool) -> io::Result<bool> {
        self.port.wait(until, writable)
    }

    fn pause(&mut self, until: Time) -> io::Result<()> {
        self.port.pause(until)
    }

    #[inline]
    fn now(&self) -> Time {
        self.port.now()
    }

    fn drops(&self) -> u64 {
        self.port.drops()
    }

    fn reroute(&mut self, peer: SocketAddr, to: Option<SocketAddr>) -> io::Result<()> {
        self.port.reroute(peer, to)
    }
}
