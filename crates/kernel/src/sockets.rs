//! Senders and sinks: a socket belongs to the namespace in which it was made, whatever thread uses
//! it.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_emulate::emulation::since;
use fullpipe_emulate::namespace::{HostSide, Side, addresses};
use fullpipe_units::Time;
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, Shutdown, SockFlag, SockType, SockaddrStorage, bind, connect,
    getsockopt, listen, recv, setsockopt, shutdown, socket, sockopt,
};
use nix::unistd::write;

use crate::plan::FlowPlan;

/// A sender and its listening sink, not connected yet.
#[derive(Debug)]
pub struct Pair {
    sender: OwnedFd,
    sink: OwnedFd,
    to: SocketAddr,
}

/// Where the connections of a pair of hosts begin and end.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Address of the senders.
    pub sender: IpAddr,
    /// Address and port of the sink.
    pub sink: SocketAddr,
}

impl Ends {
    /// Of pair `k`, whose sender is on this side.
    pub fn new(from: Side, k: usize, ipv6: bool) -> Self {
        let sink = match from {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        };
        let address = |side| match addresses(side, k) {
            (_, v6) if ipv6 => v6,
            (v4, _) => v4,
        };
        Self {
            sender: address(from),
            sink: SocketAddr::new(address(sink), PORT),
        }
    }
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
    /// The run is over.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Time of the run.
    pub fn now(&self) -> Time {
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
    /// Sockets of a flow; `hosts`: near and far.
    ///
    /// # Errors
    /// [`SocketError`].
    pub fn new(ends: Ends, flow: &FlowPlan, hosts: [&HostSide; 2]) -> Result<Self, SocketError> {
        let [near, far] = hosts;
        let (at_sender, at_sink) = match flow.from {
            Side::Near => (near, far),
            Side::Far => (far, near),
        };
        let (own, to) = (ends.sender, ends.sink);
        let (buffer, module) = (flow.receive_buffer, flow.sink_module);
        let sink = at_sink.enter(move || {
            let sink = stream(to)?;
            setsockopt(&sink, sockopt::ReuseAddr, &true)?;
            if let Some(bytes) = buffer {
                reserve(&sink, bytes)?;
            }
            if let Some(module) = module {
                setsockopt(&sink, sockopt::TcpCongestion, &module.to_owned().into())?;
            }
            bind(sink.as_raw_fd(), &SockaddrStorage::from(to))?;
            listen(&sink, Backlog::new(1)?)?;
            Ok(sink)
        });
        let sink = sink.map_err(|e| SocketError::Io("a sink", e))?;
        let module = flow.module.clone();
        let departures = Departures::of(flow);
        let sender = at_sender.enter(move || {
            let sender = stream(to)?;
            setsockopt(&sender, sockopt::TcpCongestion, &module.into())?;
            departures.tell(&sender)?;
            let own = SocketAddr::new(own, 0);
            bind(sender.as_raw_fd(), &SockaddrStorage::from(own))?;
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

    /// The kernel's number of the sender's socket.
    ///
    /// # Errors
    /// That of getsockopt(2).
    pub fn cookie(&self) -> io::Result<u64> {
        Ok(getsockopt(&self.sender, option::Cookie)?)
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

/// How the packets of a sender leave its host.
#[derive(Clone, Copy, Debug)]
pub struct Departures {
    pace: Option<u64>,
    priority: Option<i32>,
}

impl Departures {
    /// Pace and priority that the plan gives to a flow.
    pub fn of(flow: &FlowPlan) -> Self {
        Self {
            pace: flow.pace,
            priority: flow.priority,
        }
    }

    /// Tells a socket that is not connected yet.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn tell(self, socket: &OwnedFd) -> nix::Result<()> {
        if let Some(rate) = self.pace {
            // All bits set would lift the ceiling, and the pacer would not run.
            let most = usize::MAX / 2;
            let rate = usize::try_from(rate).map_or(most, |rate| rate.min(most));
            setsockopt(socket, option::MaxPacingRate, &rate)?;
        }
        match self.priority {
            Some(priority) => setsockopt(socket, sockopt::Priority, &priority),
            None => Ok(()),
        }
    }
}

mod option {
    // The macro calls others by their bare names.
    use nix::sys::socket::sockopt::SetStruct;
    use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// Ceiling of the rate of a connection, bytes per second, an `unsigned long`: the kernel
        /// paces it.
        MaxPacingRate,
        SetOnly,
        libc::SOL_SOCKET,
        libc::SO_MAX_PACING_RATE,
        usize,
        SetStruct<'_, usize>
    );

    sockopt_impl!(
        /// The kernel's number of a socket.
        Cookie,
        GetOnly,
        libc::SOL_SOCKET,
        libc::SO_COOKIE,
        u64
    );
}

/// A receive buffer of twice `bytes`, as `SO_RCVBUF` counts. In a user namespace the kernel grants
/// what `net.core.rmem_max` allows, and what the namespace begins with anyway (`tcp_rmem`).
pub fn reserve(sink: &OwnedFd, bytes: usize) -> nix::Result<()> {
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

/// A socket of the family of `to`.
pub fn stream(to: SocketAddr) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    socket(family, SockType::Stream, flags, None)
}

/// Nothing of a connection goes on behind its socket.
pub fn abort_on_close(socket: &impl AsFd) {
    let abort = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let _ = setsockopt(socket, sockopt::Linger, &abort);
}

/// Sends zeros.
#[derive(Debug)]
pub struct Sender {
    socket: OwnedFd,
    to: SocketAddr,
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
        match connect(self.socket.as_raw_fd(), &SockaddrStorage::from(self.to)) {
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
        abort_on_close(&self.socket);
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
pub fn is_nothing(error: &io::Error) -> bool {
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
