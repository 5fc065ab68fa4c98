//! Senders and sinks: a socket belongs to the namespace in which it was made, whatever thread uses
//! it.

use std::io;
use std::net::{IpAddr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_emulate::emulation::since;
use fullpipe_emulate::namespace::{HostSide, Side, addresses};
use fullpipe_units::Time;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, Shutdown, SockFlag, SockType, SockaddrIn, bind, connect,
    getsockopt, listen, recv, setsockopt, shutdown, socket, sockopt,
};
use nix::unistd::write;

use crate::plan::FlowPlan;

/// A sender and its listening sink, not connected yet.
#[derive(Debug)]
pub struct Pair {
    sender: OwnedFd,
    sink: OwnedFd,
    to: SocketAddrV4,
}

/// What everybody of a run looks at.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// Time zero.
    pub epoch: Instant,
    /// The run is over.
    pub stop: &'a AtomicBool,
}

impl Stage<'_> {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn now(&self) -> Time {
        since(self.epoch)
    }
}

/// Between two looks at the clock and at the end.
const GLANCE: u16 = 20;
/// The sink's port on its own address.
const PORT: u16 = 5001;

/// What a socket was to have, and has not.
#[derive(Debug)]
pub enum SocketError {
    /// The system refuses.
    Io(&'static str, io::Error),
    /// The congestion module that was set is not the one that is read back.
    Module(String),
}

impl Pair {
    /// Sockets of flow `k`; `hosts`: near and far.
    ///
    /// # Errors
    /// [`SocketError`].
    pub fn new(k: usize, flow: &FlowPlan, hosts: [&HostSide; 2]) -> Result<Self, SocketError> {
        let [near, far] = hosts;
        let (at_sender, at_sink, sink_side) = match flow.from {
            Side::Near => (near, far, Side::Far),
            Side::Far => (far, near, Side::Near),
        };
        let IpAddr::V4(own) = addresses(flow.from, k).0 else {
            return Err(SocketError::Io("an address", io::ErrorKind::Other.into()));
        };
        let IpAddr::V4(other) = addresses(sink_side, k).0 else {
            return Err(SocketError::Io("an address", io::ErrorKind::Other.into()));
        };
        let to = SocketAddrV4::new(other, PORT);
        let buffer = flow.receive_buffer;
        let sink = at_sink.enter(move || {
            let sink = stream()?;
            setsockopt(&sink, sockopt::ReuseAddr, &true)?;
            if let Some(bytes) = buffer {
                reserve(&sink, bytes)?;
            }
            bind(sink.as_raw_fd(), &SockaddrIn::from(to))?;
            listen(&sink, Backlog::new(1)?)?;
            Ok(sink)
        });
        let sink = sink.map_err(|e| SocketError::Io("a sink", e))?;
        let module = flow.module.clone();
        let sender = at_sender.enter(move || {
            let sender = stream()?;
            setsockopt(&sender, sockopt::TcpCongestion, &module.into())?;
            bind(
                sender.as_raw_fd(),
                &SockaddrIn::from(SocketAddrV4::new(own, 0)),
            )?;
            Ok(sender)
        });
        let sender = sender.map_err(|e| SocketError::Io("a sender", e))?;
        let pair = Self { sender, sink, to };
        pair.check(&flow.module)?;
        Ok(pair)
    }

    /// The module that was set is the one that runs: a module's own refusal is silent.
    fn check(&self, wanted: &str) -> Result<(), SocketError> {
        let set = getsockopt(&self.sender, sockopt::TcpCongestion);
        let set = set.map_err(|e| SocketError::Io("TCP_CONGESTION", e.into()))?;
        match set.to_str() {
            Some(module) if module.trim_end_matches('\0') == wanted => Ok(()),
            _ => Err(SocketError::Module(set.to_string_lossy().into_owned())),
        }
    }

    /// Sender and sink for two threads.
    pub fn split(self) -> (Sender, Sink) {
        let Self { sender, sink, to } = self;
        let sink = Sink {
            socket: sink.into(),
        };
        (Sender { socket: sender, to }, sink)
    }
}

/// A receive buffer of twice `bytes`, as `SO_RCVBUF` counts. In a user namespace the kernel grants
/// what `net.core.rmem_max` allows, and what the namespace begins with anyway (`tcp_rmem`).
fn reserve(sink: &OwnedFd, bytes: usize) -> nix::Result<()> {
    match setsockopt(sink, sockopt::RcvBufForce, &bytes) {
        Err(Errno::EPERM) => {}
        other => return other,
    }
    let has = |socket| Ok(getsockopt(socket, sockopt::RcvBuf)? == 2 * bytes);
    if has(sink)? {
        return Ok(());
    }
    setsockopt(sink, sockopt::RcvBuf, &bytes)?;
    match has(sink)? {
        true => Ok(()),
        false => Err(Errno::EPERM),
    }
}

fn stream() -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Inet, SockType::Stream, flags, None)
}

/// Sends zeros.
#[derive(Debug)]
pub struct Sender {
    socket: OwnedFd,
    to: SocketAddrV4,
}

impl Sender {
    /// The life of a flow: waits for its start, connects, sends until it is done or cut off.
    ///
    /// # Errors
    /// The connection failed.
    pub fn run(self, flow: &FlowPlan, stage: Stage<'_>) -> io::Result<()> {
        while stage.now() < flow.start {
            if stage.is_over() {
                return Ok(());
            }
            let left = (flow.start - stage.now()).as_nanos();
            std::thread::sleep(Duration::from_nanos(left).min(Duration::from_millis(20)));
        }
        match connect(self.socket.as_raw_fd(), &SockaddrIn::from(self.to)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(e) => return Err(e.into()),
        }
        // Whole segments: a short one would wait for its ACK (RFC 896), or leave alone.
        let chunk = vec![0; (SEGMENTS * flow.mss) as usize];
        let mut left = flow.bytes.unwrap_or(u64::MAX);
        while left > 0 && !stage.is_over() {
            if flow.stop.is_some_and(|stop| stage.now() >= stop) {
                return Ok(()); // dropped with an RST
            }
            let ready = ready(&self.socket, PollFlags::POLLOUT)?;
            if !ready {
                continue;
            }
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            match write(&self.socket, &chunk[..n]) {
                Ok(sent) if flow.bytes.is_some() => left -= sent as u64,
                Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => {}
                // Cut off by its own end, or by the other.
                Err(e) => return Err(e.into()),
            }
        }
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
        while !stage.is_over() {
            std::thread::sleep(Duration::from_millis(u64::from(GLANCE)));
        }
        Ok(())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // Nothing of a run goes on behind it.
        let abort = nix::libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        let _ = setsockopt(&self.socket, sockopt::Linger, &abort);
    }
}

/// Takes what comes and forgets it.
#[derive(Debug)]
pub struct Sink {
    socket: TcpListener,
}

impl Sink {
    /// Accepts one connection and reads until it ends.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn run(self, stage: Stage<'_>) -> io::Result<()> {
        let connection = loop {
            if stage.is_over() {
                return Ok(());
            }
            if ready(&self.socket, PollFlags::POLLIN)? {
                match self.socket.accept() {
                    Ok((connection, _)) => break connection,
                    Err(e) if is_nothing(&e) => {}
                    Err(e) => return Err(e),
                }
            }
        };
        connection.set_nonblocking(true)?;
        let mut buffer = vec![0; 1 << 20];
        while !stage.is_over() {
            if !ready(&connection, PollFlags::POLLIN)? {
                continue;
            }
            // The kernel throws the data away itself (tcp(7), MSG_TRUNC).
            match recv(connection.as_raw_fd(), &mut buffer, MsgFlags::MSG_TRUNC) {
                Ok(0) => break,
                Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(Errno::ECONNRESET) => break,
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}

/// Nobody is there, or a signal came.
fn is_nothing(error: &io::Error) -> bool {
    let kind = error.kind();
    kind == io::ErrorKind::WouldBlock || kind == io::ErrorKind::Interrupted
}

fn ready(socket: &impl AsFd, what: PollFlags) -> io::Result<bool> {
    let mut polled = [PollFd::new(socket.as_fd(), what)];
    match poll(&mut polled, PollTimeout::from(GLANCE)) {
        Ok(n) => Ok(n > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Segments of one call.
const SEGMENTS: u32 = 64;
