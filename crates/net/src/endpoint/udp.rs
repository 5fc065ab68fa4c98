//! The port over a real socket.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use fullpipe_units::Time;

use super::port::{Flush, Mark, Port};

/// Time of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// Zero is now.
    pub fn start() -> Self {
        Self {
            epoch: Instant::now(),
        }
    }

    /// Whole microseconds, so that a time stamp on the wire is exact.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.epoch.elapsed().as_micros() as u64 * 1000)
    }
}

/// One datagram at a time over a socket of the standard library.
#[derive(Debug)]
pub struct UdpPort {
    socket: UdpSocket,
    clock: Clock,
    out: Vec<(SocketAddr, Vec<u8>)>,
    arrived: Vec<(SocketAddr, Vec<u8>)>,
}

const BATCH: usize = 64;

impl UdpPort {
    /// Over `socket`, which becomes non-blocking.
    ///
    /// # Errors
    /// Of the operating system.
    pub fn new(socket: UdpSocket, clock: Clock) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            clock,
            out: Vec::new(),
            arrived: Vec::new(),
        })
    }
}

impl Port for UdpPort {
    fn push(
        &mut self,
        to: SocketAddr,
        _mark: Option<Mark>,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let mut datagram = vec![0; len];
        fill(&mut datagram);
        self.out.push((to, datagram));
    }

    fn is_full(&self) -> bool {
        self.out.len() >= BATCH
    }

    fn flush(&mut self) -> io::Result<Flush> {
        let mut left = 0;
        let mut refused = false;
        for (to, datagram) in self.out.drain(..) {
            match self.socket.send_to(&datagram, to) {
                Ok(_) => left += 1,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    refused = true;
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(Flush { left, refused })
    }

    fn receive(&mut self) -> io::Result<usize> {
        self.arrived.clear();
        let mut buffer = [0; 1 << 16];
        while self.arrived.len() < BATCH {
            match self.socket.recv_from(&mut buffer) {
                Ok((n, from)) => self.arrived.push((from, buffer[..n].to_vec())),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(self.arrived.len())
    }

    fn each(&self, mut take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
        for (from, datagram) in &self.arrived {
            take(*from, None, datagram);
        }
    }

    fn wait(&mut self, until: Time, writable: bool) -> io::Result<bool> {
        let rest = until.saturating_since(self.clock.now());
        std::thread::sleep(Duration::from_nanos(rest.as_nanos().min(50_000)));
        Ok(writable)
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn drops(&self) -> u64 {
        0
    }
}
