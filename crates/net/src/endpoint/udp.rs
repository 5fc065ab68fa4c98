//! The port over a real socket.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fullpipe_units::Time;

use super::port::{Flush, Mark, Port};
use crate::io::{Clock, Ecn, Inbox, Outbox, Socket, Stop, WaitStrategy, Waiter};

/// Datagrams of a batch.
pub const BATCH: usize = 64;

/// A socket, a batch in either direction, and how to wait. Stays on the thread that made it.
#[derive(Debug)]
pub struct UdpPort {
    socket: Socket,
    outbox: Outbox,
    inbox: Inbox,
    waiter: Waiter,
    longest: usize,
    longer_headers: usize,
    /// What the peer is called, and where it is, if it has moved.
    moved: Option<(SocketAddr, SocketAddr)>,
}

impl UdpPort {
    /// Over `socket`, for datagrams of up to `longest` bytes.
    ///
    /// # Errors
    /// Of the operating system.
    pub fn new(
        socket: Socket,
        longest: usize,
        wait: WaitStrategy,
        clock: Clock,
        stop: &Stop,
    ) -> io::Result<Self> {
        Ok(Self {
            outbox: Outbox::new(BATCH, longest),
            inbox: Inbox::new(&socket),
            waiter: Waiter::new(wait, clock, stop.clone())?,
            socket,
            longest,
            longer_headers: 0,
            moved: None,
        })
    }

    /// This host's end.
    pub fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// Over a path whose headers are so many bytes longer than those of IPv4: probes and cross
    /// traffic are shorter by that.
    pub fn with_longer_headers(self, bytes: usize) -> Self {
        Self {
            longer_headers: bytes,
            ..self
        }
    }

    /// Goes on with another clock and another end: sessions outlast runs.
    ///
    /// # Errors
    /// Of the operating system.
    pub fn restart(&mut self, wait: WaitStrategy, clock: Clock, stop: &Stop) -> io::Result<()> {
        self.waiter = Waiter::new(wait, clock, stop.clone())?;
        Ok(())
    }

    /// Sets this when an ICMP message says that a datagram was too long for the path.
    pub fn tell_doubts(&mut self, doubted: Arc<AtomicBool>) {
        self.socket.tell_doubts(doubted);
    }

    /// The underlying socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }
}

impl Port for UdpPort {
    #[inline]
    fn push(
        &mut self,
        to: SocketAddr,
        mark: Option<Mark>,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let ecn = mark.map(|mark| match mark {
            Mark::Capable => Ecn::Ect0,
            Mark::Congestion => Ecn::Ce,
        });
        let to = match self.moved {
            Some((called, there)) if called == to => there,
            _ => to,
        };
        // There is room for the longest: the caller has looked.
        let pushed = self.outbox.push(to, ecn, len, fill);
        debug_assert!(pushed, "{len}");
    }

    #[inline]
    fn is_full(&self) -> bool {
        !self.outbox.has_room(self.longest)
    }

    fn overhead(&self) -> usize {
        self.longer_headers
    }

    fn held_until(&mut self) -> Option<Time> {
        None
    }

    fn flush(&mut self) -> io::Result<Flush> {
        let flushed = self.outbox.flush(&self.socket);
        if !self.outbox.is_empty() {
            // Neither what was refused nor what cannot leave at all may stand in the way of what is
            // said next.
            self.outbox.take_refused(|_, _| {});
        }
        let flushed = flushed?;
        Ok(Flush {
            left: flushed.sent,
            refused: flushed.refused > 0,
        })
    }

    fn receive(&mut self) -> io::Result<usize> {
        self.socket.receive(&mut self.inbox)
    }

    #[inline]
    fn each(&self, mut take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
        for datagram in self.inbox.iter() {
            let mark = datagram.ecn.map(|ecn| match ecn {
                Ecn::Ce => Mark::Congestion,
                Ecn::Ect0 | Ecn::Ect1 => Mark::Capable,
            });
            match self.moved {
                None => take(datagram.from, mark, datagram.bytes),
                Some((called, there)) if there == datagram.from => {
                    take(called, mark, datagram.bytes);
                }
                // It came before the peer moved.
                Some(_) => {}
            }
        }
    }

    fn received_at(&self, mut take: impl FnMut(Time)) {
        // Anew for each batch: the day's clock may be set.
        if let Some(day) = self.waiter.clock().of_day() {
            let stamps = self.inbox.iter().filter_map(|datagram| datagram.stamp);
            stamps.for_each(|stamp| take(day.time(stamp)));
        }
    }

    fn has_stamps(&self) -> bool {
        self.socket.granted().stamps
    }

    fn wait(&mut self, until: Time, writable: bool) -> io::Result<bool> {
        let ready = self.waiter.wait(&[&self.socket], until, writable)?;
        Ok(ready.writable != 0)
    }

    fn pause(&mut self, until: Time) -> io::Result<()> {
        // Where merging is on, a full inbox may be 8 datagrams that nothing merged: no trickle, and
        // what is behind them would overflow the socket.
        if self.inbox.is_full() {
            return Ok(());
        }
        self.waiter.wait(&[], until, false).map(drop)
    }

    #[inline]
    fn now(&self) -> Time {
        self.waiter.clock().now()
    }

    fn drops(&self) -> u64 {
        self.socket.drops().unwrap_or(0)
    }

    fn passed_over(&self) -> (u64, u64) {
        self.inbox.oversize()
    }

    fn reroute(&mut self, peer: SocketAddr, to: Option<SocketAddr>) -> io::Result<()> {
        let Some(to) = to else {
            return self.socket.refresh();
        };
        self.socket.connect(to)?;
        self.moved = (peer != to).then_some((peer, to));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{IoConfig, Mode};
    use fullpipe_units::Span;

    #[test]
    fn what_cannot_leave_does_not_stand_in_the_way() {
        let config = IoConfig::default();
        let here = || Socket::bind("127.0.0.1:0".parse().unwrap(), &config).unwrap();
        let (socket, other) = (here(), here());
        let to = other.local();
        let (clock, stop) = (Clock::new(), Stop::new().unwrap());
        let mut port = UdpPort::new(socket, 70_000, WaitStrategy::Sleep, clock, &stop).unwrap();
        // No datagram is as long.
        port.push(to, None, 70_000, |_| {});
        let error = port.flush().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(nix::libc::EMSGSIZE));
        port.push(to, None, 100, |_| {});
        assert_eq!(port.flush().unwrap().left, 1);
    }

    #[test]
    fn nothing_gathers_while_more_is_waiting() {
        let config = IoConfig::new(Mode::Bulk);
        let here = || Socket::bind("127.0.0.1:0".parse().unwrap(), &config).unwrap();
        let (socket, other) = (here(), here());
        let to = socket.local();
        let (clock, stop) = (Clock::new(), Stop::new().unwrap());
        let mut port = UdpPort::new(socket, 1400, WaitStrategy::Sleep, clock, &stop).unwrap();
        // One by one, as a paced flow sends them: nothing merges them.
        let mut outbox = Outbox::new(1, 100);
        for _ in 0..100 {
            assert!(outbox.push(to, None, 100, |_| {}));
            assert_eq!(outbox.flush(&other).unwrap().sent, 1);
        }
        let mut left = 100;
        while left > 0 {
            left -= port.receive().unwrap();
            let until = port.now() + Span::from_millis(200);
            port.pause(until).unwrap();
            let paused = port.now() >= until;
            assert!(!paused || left == 0, "paused before {left} datagrams");
        }
        assert_eq!(port.receive().unwrap(), 0);
        let until = port.now() + Span::from_millis(1);
        port.pause(until).unwrap();
        assert!(port.now() >= until);
    }
}
