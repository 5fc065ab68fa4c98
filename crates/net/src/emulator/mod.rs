//! The path emulator: one thread between two UDP sockets of this process that delays, drops and
//! marks datagrams as the links of the specification would, without privilege.
//!
//! What the links do is [`fullpipe_sim::Path`], the simulator's network itself, fed with the times
//! at which the kernel received each datagram. So the thread may look late, in batches, and the
//! path still decides as if it had looked at once; late is only what leaves, by what [`Fidelity`]
//! says. The emulator does not wake up for arrivals while something is under way: nothing leaves
//! earlier than a path's delay after it came.
//!
//! Bytes count as in the simulator: data as its datagram with 28 bytes of IPv4 and UDP headers,
//! also over IPv6, SYNs and ACKs as the header of their flow, cross traffic and probes as their
//! specification says.

mod losses;
mod routes;
mod run;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread::{self, JoinHandle};

use fullpipe_host::Losses;
use fullpipe_realtime::pool;
use fullpipe_run::{Fidelity, Histogram, LinkOutcome, RunSpec, Violation};
use fullpipe_sim::Path;
use fullpipe_units::Span;

use crate::endpoint::{EndpointError, interfaces};
use crate::headers;
use crate::io::{Clock, IoConfig, Mode, Socket, Stop, WaitStrategy};
use crate::wire::SessionId;
use routes::Routes;
use run::Running;

/// Settings of an emulator.
#[derive(Clone, Copy, Debug)]
pub struct EmulatorConfig {
    /// Datagrams of other sessions are ignored.
    pub session: SessionId,
    /// The near host; `None`: who first sends a datagram of this session to the near side.
    pub near_peer: Option<SocketAddr>,
    /// The far host, likewise.
    pub far_peer: Option<SocketAddr>,
    /// Sleep, or spin for the last microseconds before a departure.
    pub wait: WaitStrategy,
    /// Ask for real-time priority; where it is not allowed, the emulator runs without.
    pub real_time: bool,
}

/// A running emulator.
#[derive(Debug)]
pub struct Emulator {
    near: SocketAddr,
    far: SocketAddr,
    stop: Stop,
    thread: JoinHandle<Result<EmulatorOutcome, EmulatorError>>,
}

/// Counters, drops and lateness of one run of a path emulator.
#[derive(Clone, Debug)]
pub struct EmulatorOutcome {
    /// The links of the emulator by their index in the specification: all but the hosts' own
    /// interfaces.
    pub links: Vec<(usize, LinkOutcome)>,
    /// Lateness of the emulator against its bounds, and what it lost itself.
    pub fidelity: Fidelity,
    /// How much later than computed each datagram left.
    pub lateness: Histogram,
    /// What the links dropped, by whose it was.
    pub losses: Losses,
    /// Datagrams that came and belong to the run.
    pub arrived: u64,
    /// Datagrams that left.
    pub left: u64,
    /// Datagrams that came and are none of this run's: wrong sender, session, kind, number or side.
    pub ignored: u64,
    /// Datagrams that found no room in the pool.
    pub overflow: u64,
    /// Datagrams that the operating system dropped at the emulator's sockets.
    pub socket_drops: u64,
    /// Processor time of the thread.
    pub cpu: Span,
    /// Turns of its loop.
    pub turns: u64,
}

/// Why there is no emulator, or no result of it.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// A route has too many links.
    #[error("a route has more than 255 links")]
    Route,
    /// The operating system.
    #[error("path in real time: {0}")]
    Io(#[from] io::Error),
    /// A host's interface in the wrong place.
    #[error(transparent)]
    Interface(#[from] EndpointError),
    /// A fault of the path itself.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The thread ended with a panic.
    #[error("the path's thread failed")]
    Thread,
}

impl EmulatorConfig {
    /// Between two hosts whose addresses are known: sleeps, real-time if allowed.
    pub fn new(session: SessionId, near_peer: SocketAddr, far_peer: SocketAddr) -> Self {
        Self {
            session,
            near_peer: Some(near_peer),
            far_peer: Some(far_peer),
            wait: WaitStrategy::Sleep,
            real_time: true,
        }
    }
}

impl Emulator {
    /// Starts the path of `spec`, whose time zero is that of `clock`; it ends by itself with the
    /// run.
    ///
    /// # Errors
    /// [`EmulatorError`] if the sockets cannot be opened or a route cannot be made.
    pub fn start(
        spec: &RunSpec,
        clock: Clock,
        config: &EmulatorConfig,
    ) -> Result<Self, EmulatorError> {
        let interfaces = interfaces(spec)?;
        let mut path = Path::with_links(spec, |link| interfaces[link].is_none());
        let routes = Routes::new(spec, &mut path, config.session).ok_or(EmulatorError::Route)?;
        let longest = pool::largest(spec) - headers::IPV4;
        let near = open(config.near_peer, longest)?;
        let far = open(config.far_peer, longest)?;
        let addresses = (near.local(), far.local());
        let stop = Stop::new()?;
        let peers = [config.near_peer, config.far_peer];
        let running = Running::new(spec, clock, path, routes, [near, far], peers);
        let (config, stopped) = (*config, stop.clone());
        let thread = thread::Builder::new().name("emulator".into());
        let thread = thread.spawn(move || running.run(&config, stopped))?;
        Ok(Self {
            near: addresses.0,
            far: addresses.1,
            stop,
            thread,
        })
    }

    /// Address that the near host sends to.
    pub fn near_addr(&self) -> SocketAddr {
        self.near
    }

    /// Address that the far host sends to.
    pub fn far_addr(&self) -> SocketAddr {
        self.far
    }

    /// Ends it, if it has not ended with the run.
    ///
    /// # Errors
    /// [`EmulatorError`] of the thread.
    pub fn stop(self) -> Result<EmulatorOutcome, EmulatorError> {
        self.stop.set();
        self.thread.join().map_err(|_| EmulatorError::Thread)?
    }
}

/// A socket towards a host of this machine.
fn open(peer: Option<SocketAddr>, longest: usize) -> io::Result<Socket> {
    let ip = match peer {
        Some(SocketAddr::V6(_)) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let config = IoConfig {
        // Merged arrivals have no times of their own.
        coalesce: false,
        longest,
        ..IoConfig::new(Mode::Packet)
    };
    let mut socket = Socket::bind(SocketAddr::new(ip, 0), &config)?;
    if let Some(peer) = peer {
        socket.connect(peer)?;
    }
    Ok(socket)
}
