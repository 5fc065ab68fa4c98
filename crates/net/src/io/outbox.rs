//! [`Outbox`]: datagrams on their way out, in order.

use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;

use quinn_udp::EcnCodepoint;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::addr::SocketAddrArg;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};

use super::Socket;
use super::socket::is_answer_of_the_network;

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
    /// So many are still there because the host takes no more: a local stall. See [`Outbox::take_refused`].
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

    /// Adds a datagram of `len` bytes, which `fill` writes. Returns false, and does not call it, if there is no room: flush first.
    ///
    /// `fill` is given the bytes that an earlier datagram of this outbox left there: a payload that does not matter may be left as
    /// it is, and while all datagrams have one size, payload stays payload. What has to be kept from a peer must not go through the
    /// outbox of another.
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

    /// Whether all have left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a datagram of `len` bytes has room.
    pub fn has_room(&self, len: usize) -> bool {
        self.items.len() < self.items.capacity() && self.buffer.len() - self.filled >= len
    }

    /// Sends from the front until all have left or the host takes no more. What it did not take stays: try again, or take it back.
    ///
    /// # Errors
    /// A datagram cannot leave at all: it is longer than the interface allows, there is no route, a filter forbids it. It is still
    /// at the front ([`Outbox::skip`]).
    pub fn flush(&mut self, socket: &Socket) -> io::Result<Flushed> {
        self.flush_to(socket)
    }

    fn flush_to(&mut self, port: &impl Port) -> io::Result<Flushed> {
        let mut sent = 0;
        // Answers of the network fail one call each.
        let mut patience = 8;
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
                    // The call ended early for a reason that it does not tell. Asking again would hide a full queue.
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
                Err(e) if is_answer_of_the_network(&e) && patience > 0 => {
                    patience -= 1;
                    port.drain_errors();
                }
                Err(e) if group > 1 && is_about_offload(&e) => {
                    // Which of the two it was, the datagrams themselves will show.
                    if Errno::from_io_error(&e) != Some(Errno::MSGSIZE) {
                        port.give_up_segments();
                    }
                    alone = self.next + group;
                }
                Err(e) => return Err(e),
            }
        }
        self.clear();
        Ok(Flushed { sent, refused: 0 })
    }

    /// Takes back what has not left, the newest first, as a sender wants it back. The outbox is empty afterwards.
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
    /// What may leave with offload.
    fn offload(&self) -> Offload;
    /// Sends datagrams of the size of `first` (the last may be shorter) as one call.
    fn send_segments(&self, first: &Item, contents: &[u8]) -> io::Result<()>;
    /// Sends one by one, with as few calls as may be; returns how many of the first run of equal code points left.
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
}

/// Which runs of equal datagrams leave as one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offload {
    /// Most datagrams of a call; 1: no offload.
    pub segments: usize,
    /// Only datagrams of up to so many bytes.
    pub longest: usize,
}

impl Offload {
    const NONE: Self = Self {
        segments: 1,
        longest: 0,
    };
}

/// How many of `items` may leave as one offloaded call: to one address, with one code point, of one size but for the last.
fn run(items: &[Item], offload: Offload) -> usize {
    let Some((first, rest)) = items.split_first() else {
        return 0;
    };
    let most = offload.segments.min(MOST_BYTES / first.len.max(1));
    if most < 2 || first.len == 0 || first.len > offload.longest {
        return 1;
    }
    let mut n = 1;
    for item in rest.iter().take(most - 1) {
        let fits = item.to == first.to && item.ecn == first.ecn && item.len <= first.len;
        if !fits || item.len == 0 {
            break;
        }
        n += 1;
        if item.len < first.len {
            break;
        }
    }
    n
}

/// How many from the front leave one by one in the same call: one code point, and no run for offload.
fn singles(items: &[Item], offload: Offload) -> usize {
    let Some(first) = items.first() else { return 0 };
    let mut n = 1;
    while n < items.len().min(BATCH)
        && items[n].ecn == first.ecn
        && (offload.segments < 2 || run(&items[n..], offload) < 2)
    {
        n += 1;
    }
    n
}

fn is_refusal(e: &io::Error) -> bool {
    e.kind() == ErrorKind::WouldBlock || Errno::from_io_error(e) == Some(Errno::NOBUFS)
}

/// Whether a call with offload may have failed because of it: a device without it, or segments beyond the MTU.
fn is_about_offload(e: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(e),
        Some(Errno::IO | Errno::INVAL | Errno::MSGSIZE)
    )
}

/// Addresses as the kernel wants them, kept from call to call: nearly always those of the call before.
struct Addresses {
    kernel: Vec<SocketAddrAny>,
    known: Vec<SocketAddr>,
}

impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.known.fmt(f)
    }
}

impl Addresses {
    fn new() -> Self {
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            kernel: vec![nobody.as_any(); BATCH],
            known: vec![nobody; BATCH],
        }
    }

    /// Sends `items`, which have one code point, with one call; returns how many left.
    fn send(&mut self, socket: &Socket, items: &[Item], buffer: &[u8]) -> io::Result<usize> {
        let Some(first) = items.first() else {
            return Ok(0);
        };
        socket.mark(first.ecn)?;
        for ((item, known), kernel) in items.iter().zip(&mut self.known).zip(&mut self.kernel) {
            if item.to != *known {
                *known = item.to;
                *kernel = item.to.as_any();
            }
        }
        match items.len() {
            1 => self.call::<1>(socket, items, buffer),
            2..=8 => self.call::<8>(socket, items, buffer),
            _ => self.call::<BATCH>(socket, items, buffer),
        }
    }

    /// With headers for `N` datagrams on the stack.
    fn call<const N: usize>(
        &self,
        socket: &Socket,
        items: &[Item],
        buffer: &[u8],
    ) -> io::Result<usize> {
        let slices: [[IoSlice<'_>; 1]; N] = std::array::from_fn(|i| {
            [IoSlice::new(
                items
                    .get(i)
                    .map_or(&[], |item| &buffer[item.at..item.end()]),
            )]
        });
        let mut control: [SendAncillaryBuffer<'_, '_, '_>; N] =
            std::array::from_fn(|_| SendAncillaryBuffer::default());
        let mut control = control.iter_mut();
        let mut headers: [MMsgHdr<'_>; N] = std::array::from_fn(|i| {
            // There are N of them, and `from_fn` calls N times.
            let nothing = control.next().expect("one for each");
            // To its peer a connected socket has a route already.
            match items.get(i) {
                Some(item) if Some(item.to) == socket.peer() => MMsgHdr::new(&slices[i], nothing),
                _ => MMsgHdr::new_with_addr(&self.kernel[i], &slices[i], nothing),
            }
        });
        let count = items.len().min(N);
        Ok(retry_on_intr(|| {
            sendmmsg(socket, &mut headers[..count], SendFlags::empty())
        })?)
    }
}

/// Most datagrams of one call without offload.
const BATCH: usize = 64;

/// Most bytes of one call with offload. A whole IP packet has 65,535, and senders that forgot it lost nearly everything.
const MOST_BYTES: usize = 65_000;

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A host that takes so many datagrams and then answers each call with the next of its errors.
    struct Fake {
        segments: Cell<usize>,
        longest: Cell<usize>,
        room: Cell<usize>,
        errors: RefCell<Vec<Errno>>,
        answers: Cell<u64>,
        /// Lengths, by call.
        calls: RefCell<Vec<Vec<usize>>>,
    }

    impl Fake {
        fn new(segments: usize, room: usize, errors: &[Errno]) -> Self {
            Self {
                segments: Cell::new(segments),
                longest: Cell::new(usize::MAX),
                room: Cell::new(room),
                errors: RefCell::new(errors.iter().rev().copied().collect()),
                answers: Cell::new(0),
                calls: RefCell::default(),
            }
        }

        fn take(&self, lengths: Vec<usize>, whole: bool) -> io::Result<usize> {
            let n = lengths.len().min(self.room.get());
            if n == 0 || whole && n < lengths.len() {
                return Err(self
                    .errors
                    .borrow_mut()
                    .pop()
                    .expect("no call after the last error")
                    .into());
            }
            self.room.set(self.room.get() - n);
            self.calls.borrow_mut().push(lengths[..n].to_vec());
            Ok(n)
        }
    }

    impl Port for Fake {
        fn offload(&self) -> Offload {
            Offload {
                segments: self.segments.get(),
                longest: self.longest.get(),
            }
        }

        fn send_segments(&self, first: &Item, contents: &[u8]) -> io::Result<()> {
            self.take(contents.chunks(first.len).map(<[u8]>::len).collect(), true)
                .map(drop)
        }

        fn send_singles(&self, _: &mut Addresses, items: &[Item], _: &[u8]) -> io::Result<usize> {
            self.take(items.iter().map(|item| item.len).collect(), false)
        }

        fn give_up_segments(&self) {
            self.segments.set(1);
            self.room.set(usize::MAX);
        }

        fn drain_errors(&self) -> u64 {
            self.room.set(if self.answers.get() > 0 {
                usize::MAX
            } else {
                self.room.get()
            });
            self.answers.take()
        }
    }

    fn filled(lengths: &[usize]) -> Outbox {
        let mut outbox = Outbox::new(300, 1500);
        for (i, &len) in lengths.iter().enumerate() {
            let to = SocketAddr::from(([127, 0, 0, 1], 9));
            assert!(outbox.push(to, None, len, |place| place.fill(i as u8)));
        }
        outbox
    }

    fn taken_back(outbox: &mut Outbox) -> Vec<u8> {
        let mut back = Vec::new();
        outbox.take_refused(|_, bytes| back.push(bytes[0]));
        back
    }

    #[test]
    fn runs_of_equal_datagrams_leave_together() {
        let port = Fake::new(64, usize::MAX, &[]);
        let mut outbox = filled(&[100, 100, 100, 40, 40, 1400, 60, 70, 80, 100, 100]);
        assert_eq!(
            outbox.flush_to(&port).unwrap(),
            Flushed {
                sent: 11,
                refused: 0
            }
        );
        let calls: [&[usize]; 5] = [
            &[100, 100, 100, 40],
            &[40],
            &[1400, 60],
            &[70, 80],
            &[100, 100],
        ];
        // A single before a run leaves alone; singles in a row leave by one call.
        assert_eq!(*port.calls.borrow(), calls);
    }

    #[test]
    fn short_ones_alone_may_leave_together() {
        let port = Fake::new(64, usize::MAX, &[]);
        port.longest.set(100);
        filled(&[100, 100, 101, 101, 101, 44, 44])
            .flush_to(&port)
            .unwrap();
        let calls: [&[usize]; 3] = [&[100, 100], &[101, 101, 101], &[44, 44]];
        assert_eq!(*port.calls.borrow(), calls);
    }

    #[test]
    fn a_run_is_at_most_64_datagrams_and_65000_bytes() {
        let port = Fake::new(64, usize::MAX, &[]);
        filled(&[50; 130]).flush_to(&port).unwrap();
        filled(&[1472; 50]).flush_to(&port).unwrap();
        let calls: Vec<usize> = port.calls.borrow().iter().map(Vec::len).collect();
        assert_eq!(calls, [64, 64, 2, 44, 6]);
    }

    #[test]
    fn a_full_host_keeps_the_rest_for_the_sender_newest_first() {
        for errno in [Errno::AGAIN, Errno::NOBUFS] {
            for (segments, sent) in [(1, 70), (64, 64)] {
                let port = Fake::new(segments, 70, &[errno]);
                let mut outbox = filled(&[100; 100]);
                let flushed = outbox.flush_to(&port).unwrap();
                assert_eq!(
                    flushed,
                    Flushed {
                        sent,
                        refused: 100 - sent
                    }
                );
                let newest_first: Vec<u8> = (sent as u8..100).rev().collect();
                assert_eq!(taken_back(&mut outbox), newest_first);
                assert!(outbox.is_empty() && outbox.has_room(1500));
            }
        }
    }

    #[test]
    fn what_was_refused_can_be_tried_again() {
        let port = Fake::new(1, 3, &[Errno::AGAIN]);
        let mut outbox = filled(&[100; 5]);
        assert_eq!(
            outbox.flush_to(&port).unwrap(),
            Flushed {
                sent: 3,
                refused: 2
            }
        );
        assert_eq!(
            outbox.flush_to(&port).unwrap(),
            Flushed {
                sent: 0,
                refused: 2
            }
        );
        port.room.set(9);
        assert_eq!(
            outbox.flush_to(&port).unwrap(),
            Flushed {
                sent: 2,
                refused: 0
            }
        );
    }

    #[test]
    fn a_call_cut_short_by_an_answer_of_the_network_is_no_stall() {
        let port = Fake::new(1, 3, &[]);
        port.answers.set(1);
        assert_eq!(
            filled(&[100; 5]).flush_to(&port).unwrap(),
            Flushed {
                sent: 5,
                refused: 0
            }
        );
        let port = Fake::new(1, 0, &[Errno::CONNREFUSED]);
        port.answers.set(1);
        assert_eq!(
            filled(&[100; 5]).flush_to(&port).unwrap(),
            Flushed {
                sent: 5,
                refused: 0
            }
        );
    }

    #[test]
    fn without_offload_datagrams_leave_one_by_one() {
        for errno in [Errno::IO, Errno::INVAL] {
            let port = Fake::new(64, 0, &[errno]);
            assert_eq!(
                filled(&[100; 5]).flush_to(&port).unwrap(),
                Flushed {
                    sent: 5,
                    refused: 0
                }
            );
            assert_eq!(port.segments.get(), 1);
        }
    }

    #[test]
    fn a_run_too_long_for_the_interface_is_tried_datagram_by_datagram() {
        let port = Fake::new(64, 0, &[Errno::MSGSIZE, Errno::MSGSIZE]);
        let mut outbox = filled(&[1500, 1500, 100, 100, 100]);
        assert!(outbox.flush_to(&port).is_err());
        outbox.skip();
        port.room.set(usize::MAX);
        outbox.flush_to(&port).unwrap();
        let calls: [&[usize]; 2] = [&[1500, 100], &[100, 100]];
        assert_eq!(*port.calls.borrow(), calls);
        assert_eq!(port.segments.get(), 64);
    }

    #[test]
    fn an_error_leaves_its_datagram_at_the_front() {
        let port = Fake::new(1, 0, &[Errno::PERM, Errno::CONNREFUSED]);
        let mut outbox = filled(&[10, 20]);
        assert_eq!(
            outbox.flush_to(&port).unwrap_err().kind(),
            ErrorKind::PermissionDenied
        );
        outbox.skip();
        assert_eq!(taken_back(&mut outbox), [1]);
        outbox.skip();
        assert!(outbox.is_empty());
    }
}
