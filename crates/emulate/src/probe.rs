//! What a path does to datagrams, measured from outside: sent by one host, stamped by the kernel
//! of the other.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fullpipe_units::Span;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;

use crate::namespace::{HostSide, Side, addresses};
use crate::stage::Stage;

/// Bytes of IPv4 and UDP headers.
const HEADERS: u16 = 28;
/// Number and time of departure.
const CONTENT: usize = 12;
/// Datagrams per call where the kernel cuts them.
const AT_ONCE: usize = 32;
/// Room for what the reader has not read, bytes.
const ROOM: usize = 64 << 20;

/// A way from one host to the other, with a socket at each end.
#[derive(Debug)]
pub struct Probe {
    from: UdpSocket,
    to: UdpSocket,
    target: SocketAddr,
    /// The kernel cuts what is sent at once.
    cuts: bool,
}

/// A datagram that came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Sequence number, from 0.
    pub number: u32,
    /// From the call that sent it until the kernel had it on the other host.
    pub delay: Span,
    /// When the kernel had it there, nanoseconds of the day's clock.
    pub at: u64,
}

impl Probe {
    /// From one host of a pair to the other.
    ///
    /// # Errors
    /// No sockets.
    pub fn new(stage: &Stage, from: Side, pair: usize) -> io::Result<Self> {
        let to = match from {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        };
        let sender = stage.host(from);
        let from = socket(sender, addresses(from, pair).0)?;
        let to = socket(stage.host(to), addresses(to, pair).0)?;
        to.set_read_timeout(Some(Duration::from_millis(20)))?;
        let target = to.local_addr()?;
        // Kernels begin to stamp a moment after they are asked to.
        thread::sleep(Duration::from_millis(20));
        Ok(Self {
            from,
            to,
            target,
            cuts: sender.merges_datagrams,
        })
    }

    /// Sends `count` packets of `size` bytes, with headers, `gap` apart or, if it is zero, as fast
    /// as they go, and returns those that come until none has come for `patience`.
    ///
    /// # Errors
    /// Those of the sockets.
    pub fn send(
        &self,
        count: u32,
        size: u16,
        gap: Duration,
        patience: Duration,
    ) -> io::Result<Vec<Arrival>> {
        thread::scope(|scope| {
            let reader = scope.spawn(|| self.receive(count, patience));
            let sent = self.send_all(count, size, gap);
            let came = reader.join().map_err(|_| io::Error::other("reader"))?;
            sent.and(came)
        })
    }

    fn send_all(&self, count: u32, size: u16, gap: Duration) -> io::Result<()> {
        let size = usize::from(size.saturating_sub(HEADERS)).max(CONTENT);
        let at_once = match self.cuts && gap.is_zero() {
            true => AT_ONCE.min(usize::from(u16::MAX - HEADERS) / size).max(1),
            false => 1,
        };
        if at_once > 1 {
            setsockopt(&self.from, sockopt::UdpGsoSegment, &(size as i32))?;
        }
        let mut bytes = vec![0; size * at_once];
        let mut number = 0;
        while number < count {
            let n = at_once.min((count - number) as usize);
            let now = now().to_be_bytes();
            for part in bytes.chunks_mut(size).take(n) {
                part[..4].copy_from_slice(&number.to_be_bytes());
                part[4..12].copy_from_slice(&now);
                number += 1;
            }
            match self.from.send_to(&bytes[..n * size], self.target) {
                Ok(_) => {}
                // The sender's own buffer is full: these are not sent.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
            if !gap.is_zero() {
                thread::sleep(gap);
            }
        }
        if at_once > 1 {
            setsockopt(&self.from, sockopt::UdpGsoSegment, &0)?;
        }
        Ok(())
    }

    fn receive(&self, count: u32, patience: Duration) -> io::Result<Vec<Arrival>> {
        let mut came = Vec::with_capacity(count as usize);
        let mut buffer = [0; 64];
        let mut control = nix::cmsg_space!(TimeSpec);
        let mut last = now();
        loop {
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let fd = self.to.as_raw_fd();
            let flags = MsgFlags::empty();
            match recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut control), flags) {
                Ok(message) => {
                    last = now();
                    let at = message.cmsgs()?.find_map(|c| match c {
                        ControlMessageOwned::ScmTimestampns(t) => Some(nanos(t)),
                        _ => None,
                    });
                    let at = at.unwrap_or(last);
                    let number = [0, 1, 2, 3].map(|i| buffer[i]);
                    let sent = [4, 5, 6, 7, 8, 9, 10, 11].map(|i| buffer[i]);
                    came.push(Arrival {
                        number: u32::from_be_bytes(number),
                        delay: Span::from_nanos(at.saturating_sub(u64::from_be_bytes(sent))),
                        at,
                    });
                }
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
            let quiet = Duration::from_nanos(now().saturating_sub(last));
            if came.len() == count as usize || quiet > patience {
                return Ok(came);
            }
        }
    }
}

fn socket(host: &HostSide, address: IpAddr) -> io::Result<UdpSocket> {
    host.enter(move || {
        let socket = UdpSocket::bind((address, 0))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        if setsockopt(&socket, sockopt::RcvBufForce, &ROOM).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &ROOM)?;
        }
        Ok(socket)
    })
}

fn now() -> u64 {
    let day = SystemTime::now().duration_since(UNIX_EPOCH);
    day.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

fn nanos(time: TimeSpec) -> u64 {
    let (seconds, nanos) = (time.tv_sec(), time.tv_nsec());
    u64::try_from(seconds * 1_000_000_000 + nanos).unwrap_or(0)
}
