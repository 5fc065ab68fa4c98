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
/// pass it on (`forward!`).
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

    /// Datagrams that came and are passed over, for they are longer than any of the run, and their
    /// bytes, as far as they were read.
    fn passed_over(&self) -> (u64, u64);

    /// The peer is at another address from now on; `None`: perhaps this host is. Whoever uses the
    /// port goes on calling the peer by the address that it had at first.
    ///
    /// # Errors
    /// There is no way to that address.
    fn reroute(&mut self, peer: SocketAddr, to: Option<SocketAddr>) -> io::Result<()>;
}

/// Methods of [`Port`] that a port around another one only passes on, by name.
///
/// `forward!(|this| this.port; now, drops)` in an implementation: `this` is `&self` or `&mut self`.
macro_rules! forward {
    (|$this:ident| $port:expr; $($method:ident),+) => {
        $($crate::endpoint::forward!(@$method |$this| $port);)+
    };
    (@push |$this:ident| $port:expr) => {
        #[inline]
        fn push(
            &mut self,
            to: ::std::net::SocketAddr,
            mark: Option<$crate::endpoint::Mark>,
            len: usize,
            fill: impl FnOnce(&mut [u8]),
        ) {
            let $this = self;
            $port.push(to, mark, len, fill);
        }
    };
    (@is_full |$this:ident| $port:expr) => {
        #[inline]
        fn is_full(&self) -> bool {
            let $this = self;
            $port.is_full()
        }
    };
    (@overhead |$this:ident| $port:expr) => {
        fn overhead(&self) -> usize {
            let $this = self;
            $port.overhead()
        }
    };
    (@held_until |$this:ident| $port:expr) => {
        fn held_until(&mut self) -> Option<::fullpipe_units::Time> {
            let $this = self;
            $port.held_until()
        }
    };
    (@flush |$this:ident| $port:expr) => {
        fn flush(&mut self) -> ::std::io::Result<$crate::endpoint::Flush> {
            let $this = self;
            $port.flush()
        }
    };
    (@receive |$this:ident| $port:expr) => {
        fn receive(&mut self) -> ::std::io::Result<usize> {
            let $this = self;
            $port.receive()
        }
    };
    (@each |$this:ident| $port:expr) => {
        #[inline]
        fn each(
            &self,
            take: impl FnMut(::std::net::SocketAddr, Option<$crate::endpoint::Mark>, &[u8]),
        ) {
            let $this = self;
            $port.each(take);
        }
    };
    (@received_at |$this:ident| $port:expr) => {
        fn received_at(&self, take: impl FnMut(::fullpipe_units::Time)) {
            let $this = self;
            $port.received_at(take);
        }
    };
    (@has_stamps |$this:ident| $port:expr) => {
        fn has_stamps(&self) -> bool {
            let $this = self;
            $port.has_stamps()
        }
    };
    (@wait |$this:ident| $port:expr) => {
        fn wait(
            &mut self,
            until: ::fullpipe_units::Time,
            writable: bool,
        ) -> ::std::io::Result<bool> {
            let $this = self;
            $port.wait(until, writable)
        }
    };
    (@pause |$this:ident| $port:expr) => {
        fn pause(&mut self, until: ::fullpipe_units::Time) -> ::std::io::Result<()> {
            let $this = self;
            $port.pause(until)
        }
    };
    (@now |$this:ident| $port:expr) => {
        #[inline]
        fn now(&self) -> ::fullpipe_units::Time {
            let $this = self;
            $port.now()
        }
    };
    (@drops |$this:ident| $port:expr) => {
        fn drops(&self) -> u64 {
            let $this = self;
            $port.drops()
        }
    };
    (@passed_over |$this:ident| $port:expr) => {
        fn passed_over(&self) -> (u64, u64) {
            let $this = self;
            $port.passed_over()
        }
    };
    (@reroute |$this:ident| $port:expr) => {
        fn reroute(
            &mut self,
            peer: ::std::net::SocketAddr,
            to: Option<::std::net::SocketAddr>,
        ) -> ::std::io::Result<()> {
            let $this = self;
            $port.reroute(peer, to)
        }
    };
}
pub(crate) use forward;

/// Lent to a run.
impl<P: Port> Port for &mut P {
    forward!(|this| (**this); push, is_full, overhead, held_until, flush, receive, each);
    forward!(|this| (**this); received_at, has_stamps, wait, pause, now, drops, passed_over, reroute);
}
