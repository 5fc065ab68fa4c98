//! [`Outbox`]: datagrams on their way out, in order.

mod offload;
mod singles;
#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use quinn_udp::EcnCodepoint;
use rustix::io::Errno;

use super::Socket;
use super::socket::{Offload, is_answer_of_the_network, may_be_icmp};

use offload::{is_about_offload, run, singles};
use singles::Addresses;

/// Datagrams in the order in which they are to leave, in one buffer that is used again and again.
#[derive(Debug)]
pub struct Outbox {
    buffer: Vec<u8>,
    /// Bytes of the buffer in use.
    filled: usize,
    items: Vec<Item>,
    /// The first that has not left.
    next: usize,
    addresses: Addresses,
}

/// What became of the datagrams of an [`Outbox`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flushed {
    /// So many left, from the front.
    pub sent: usize,
    /// So many are still there because the host takes no more: a local stall. See
    /// [`Outbox::take_refused`].
    pub refused: usize,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    to: SocketAddr,
    ecn: Option<EcnCodepoint>,
    at: usize,
    len: usize,
}

impl Outbox {
    /// Room for `datagrams` of up to `longest` bytes each.
    pub fn new(datagrams: usize, longest: usize) -> Self {
        let datagrams = datagrams.max(1);
        Self {
            buffer: vec![0; datagrams * longest],
            filled: 0,
            items: Vec::with_capacity(datagrams),
            next: 0,
            addresses: Addresses::new(),
        }
    }

    /// Adds a datagram of `len` bytes, which `fill` writes. Returns false, and does not call it, if
    /// there is no room: flush first.
    ///
    /// `fill` is given the bytes that an earlier datagram of this outbox left there: a payload that
    /// does not matter may be left as it is, and while all datagrams have one size, payload stays
    /// payload. What has to be kept from a peer must not go through the outbox of another.
    #[inline]
    pub fn push(
        &mut self,
        to: SocketAddr,
        ecn: Option<EcnCodepoint>,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        let at = self.filled;
        let room = self.items.len() < self.items.capacity();
        let Some(place) = self.buffer.get_mut(at..at + len).filter(|_| room) else {
            return false;
        };
        fill(place);
        self.filled += len;
        self.items.push(Item { to, ecn, at, len });
        true
    }

    /// Datagrams that have not left.
    pub fn len(&self) -> usize {
        self.items.len() - self.next
    }

    /// True when no datagram waits for the socket.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a datagram of `len` bytes has room.
    pub fn has_room(&self, len: usize) -> bool {
        self.items.len() < self.items.capacity() && self.buffer.len() - self.filled >= len
    }

    /// Sends from the front until all have left or the host takes no more. What it did not take
    /// stays: try again, or take it back.
    ///
    /// # Errors
    /// A datagram cannot leave at all: it is longer than the interface allows, a filter forbids it.
    /// It is still at the front ([`Outbox::skip`]).
    pub fn flush(&mut self, socket: &Socket) -> io::Result<Flushed> {
        self.flush_to(socket)
    }

    fn flush_to(&mut self, port: &impl Port) -> io::Result<Flushed> {
        let mut sent = 0;
        // Answers of the network fail one call each.
        let mut wait = 8;
        // The one that the system refused last without a word of the network.
        let mut doubted = None;
        // Before this one datagrams leave one by one.
        let mut alone = self.next;
        while self.next < self.items.len() {
            let rest = &self.items[self.next..];
            let offload = if self.next < alone {
                Offload::NONE
            } else {
                port.offload()
            };
            let group = run(rest, offload);
            let result = if group > 1 {
                let contents = &self.buffer[rest[0].at..rest[group - 1].end()];
                port.send_segments(&rest[0], contents).map(|()| group)
            } else {
                let singles = singles(rest, offload);
                port.send_singles(&mut self.addresses, &rest[..singles], &self.buffer)
            };
            match result {
                Ok(n) => {
                    self.next += n;
                    sent += n;
                    let asked = if group > 1 {
                        group
                    } else {
                        singles(rest, offload)
                    };
                    // The call ended early for a reason that it does not tell. Asking again would
                    // hide a full queue.
                    if n < asked && port.drain_errors() == 0 {
                        return Ok(Flushed {
                            sent,
                            refused: self.len(),
                        });
                    }
                }
                Err(e) if is_refusal(&e) => {
                    return Ok(Flushed {
                        sent,
                        refused: self.len(),
                    });
                }
                Err(e) if is_answer_of_the_network(&e) && wait > 0 => {
                    wait -= 1;
                    port.drain_errors();
                }
                // A link or a route may come back: what finds none is lost, as anywhere else on the
                // way.
                Err(e) if is_answer_of_the_network(&e) => {
                    sent += self.len();
                    break;
                }
                Err(e) if port.is_homeless(&e) => {
                    sent += self.len();
                    break;
                }
                Err(e) if group > 1 && is_about_offload(&e) => {
                    // Which of the two it was, the datagrams themselves will show.
                    if Errno::from_io_error(&e) != Some(Errno::MSGSIZE) {
                        port.give_up_segments();
                    }
                    alone = self.next + group;
                }
                // An ICMP message says so of an earlier datagram, or the system of this one: then
                // it says so again. ICMP is a hint, and never ends anything.
                Err(e) if may_be_icmp(&e) => match port.drain_errors() {
                    0 if doubted == Some(self.next) => return Err(e),
                    0 => doubted = Some(self.next),
                    _ if wait > 0 => wait -= 1,
                    // Somebody sends them faster than we ask: what leaves later is not lost.
                    _ => {
                        sent += self.len();
                        break;
                    }
                },
                Err(e) => return Err(e),
            }
        }
        self.clear();
        Ok(Flushed { sent, refused: 0 })
    }

    /// Takes back what has not left, the newest first, as a sender wants it back. The outbox is
    /// empty afterwards.
    pub fn take_refused(&mut self, mut back: impl FnMut(SocketAddr, &[u8])) {
        for item in self.items[self.next..].iter().rev() {
            back(item.to, &self.buffer[item.at..item.end()]);
        }
        self.clear();
    }

    /// Drops the datagram at the front, after an error.
    pub fn skip(&mut self) {
        self.next = (self.next + 1).min(self.items.len());
        if self.is_empty() {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.items.clear();
        self.next = 0;
        self.filled = 0;
    }
}

impl Item {
    fn end(&self) -> usize {
        self.at + self.len
    }
}

/// What an outbox needs of a socket.
trait Port {
    /// Which runs of datagrams leave as one call.
    fn offload(&self) -> Offload;
    /// Sends datagrams of the size of `first` (the last may be shorter) as one call.
    fn send_segments(&self, first: &Item, contents: &[u8]) -> io::Result<()>;
    /// Sends one by one, with as few calls as may be; returns how many of the first run of equal
    /// code points left.
    fn send_singles(
        &self,
        addresses: &mut Addresses,
        items: &[Item],
        buffer: &[u8],
    ) -> io::Result<usize>;
    /// Offload does not work.
    fn give_up_segments(&self);
    /// Takes answers of the network off the socket; returns their number.
    fn drain_errors(&self) -> u64;
    /// The error says that this host has lost the socket's address.
    fn is_homeless(&self, e: &io::Error) -> bool;
}

impl Port for Socket {
    fn offload(&self) -> Offload {
        Socket::offload(self)
    }

    fn send_segments(&self, first: &Item, contents: &[u8]) -> io::Result<()> {
        Socket::send_segments(self, first.to, first.ecn, contents, first.len)
    }

    fn send_singles(
        &self,
        addresses: &mut Addresses,
        items: &[Item],
        buffer: &[u8],
    ) -> io::Result<usize> {
        addresses.send(self, items, buffer)
    }

    fn give_up_segments(&self) {
        Socket::give_up_segments(self);
    }

    fn drain_errors(&self) -> u64 {
        Socket::drain_errors(self)
    }

    fn is_homeless(&self, e: &io::Error) -> bool {
        Socket::is_homeless(self, e)
    }
}

fn is_refusal(e: &io::Error) -> bool {
    e.kind() == ErrorKind::WouldBlock || Errno::from_io_error(e) == Some(Errno::NOBUFS)
}
