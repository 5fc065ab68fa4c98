//! What the endpoint needs of a socket: datagrams in batches, a wait. A test puts another one in
//! its place.

use std::io;
use std::net::SocketAddr;

use fullpipe_units::Time;

/// ECN code point of a datagram that is not plain (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// ECN-capable.
    Capable,
    /// Congestion experienced.
    Congestion,
}

/// What became of the datagrams that were pushed since the last flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flush {
    /// So many of them left, the first ones.
    pub left: usize,
    /// The operating system refused the rest, which is discarded here.
    pub refused: bool,
}

/// One socket and its batches. Nothing has a default: one that wraps another must not forget to
/// pass it on.
pub trait Port {
    /// Adds a datagram of `len` bytes to the batch; `fill` writes it. What it does not write is
    /// undefined, but never anything that is not this endpoint's own. There is room: see
    /// [`Port::is_full`].
    fn push(
        &mut self,
        to: SocketAddr,
        mark: Option<Mark>,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    );

    /// The batch has no room, or nothing may leave at the moment: see [`Port::held_until`].
    fn is_full(&self) -> bool;

    /// Bytes that it adds to every datagram.
    fn overhead(&self) -> usize;

    /// After a flush: senders have to wait until then, because a limit of this host is reached. It
    /// is no refusal: nothing is lost.
    fn held_until(&mut self) -> Option<Time>;

    /// Sends the batch.
    ///
    /// # Errors
    /// Of the operating system, other than a full queue.
    fn flush(&mut self) -> io::Result<Flush>;

    /// Takes in what has arrived, up to a batch; never waits. Returns the number of datagrams.
    ///
    /// # Errors
    /// Of the operating system.
    fn receive(&mut self) -> io::Result<usize>;

    /// The datagrams of the last [`Port::receive`].
    fn each(&self, take: impl FnMut(SocketAddr, Option<Mark>, &[u8]));

    /// When the kernel received the datagrams of the last [`Port::receive`], as far as it says so,
    /// by the clock of [`Port::now`].
    fn received_at(&self, take: impl FnMut(Time));

    /// The kernel says when it received a datagram.
    fn has_stamps(&self) -> bool;

    /// Waits for a datagram, for room if `writable`, or until `until`. True if there is room again.
    ///
    /// # Errors
    /// Of the operating system.
    fn wait(&mut self, until: Time, writable: bool) -> io::Result<bool>;

    /// Lets datagrams gather until `until`, or until it is time to end. Doing nothing is right too.
    ///
    /// # Errors
    /// Of the operating system.
    fn pause(&mut self, until: Time) -> io::Result<()>;

    /// The present time of the run, in whole microseconds.
    fn now(&self) -> Time;

    /// Datagrams that the operating system dropped because nobody read them in time.
    fn drops(&self) -> u64;

    /// The peer is at another address from now on; `None`: perhaps this host is. Whoever uses the
    /// port goes on calling the peer by the address that it had at first.
    ///
    /// # Errors
    /// There is no way to that address.
    fn reroute(&mut self, peer: SocketAddr, to: Option<SocketAddr>) -> io::Result<()>;
}

/// Lent to a run.
impl<P: Port> Port for &mut P {
    fn push(
        &mut self,
        to: SocketAddr,
        mark: Option<Mark>,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        (**self).push(to, mark, len, fill);
    }

    fn is_full(&self) -> bool {
        (**self).is_full()
    }

    fn overhead(&self) -> usize {
        (**self).overhead()
    }

    fn held_until(&mut self) -> Option<Time> {
        (**self).held_until()
    }

    fn flush(&mut self) -> io::Result<Flush> {
        (**self).flush()
    }

    fn receive(&mut self) -> io::Result<usize> {
        (**self).receive()
    }

    fn each(&self, take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
        (**self).each(take);
    }

    fn received_at(&self, take: impl FnMut(Time)) {
        (**self).received_at(take);
    }

    fn has_stamps(&self) -> bool {
        (**self).has_stamps()
    }

    fn wait(&mut self, until: Time, writable: bool) -> io::Result<bool> {
        (**self).wait(until, writable)
    }

    fn pause(&mut self, until: Time) -> io::Result<()> {
        (**self).pause(until)
    }

    fn now(&self) -> Time {
        (**self).now()
    }

    fn drops(&self) -> u64 {
        (**self).drops()
    }

    fn reroute(&mut self, peer: SocketAddr, to: Option<SocketAddr>) -> io::Result<()> {
        (**self).reroute(peer, to)
    }
}
