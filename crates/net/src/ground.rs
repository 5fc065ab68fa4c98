//! A run on this machine: both hosts and, between them, the path of the specification, each on a thread of its own, over UDP on
//! the loopback interface. Nothing needs privilege.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use fullpipe_sim::{Outcome, RunSpec};

use crate::endpoint::{
    self, EndpointError, Hooks, HostOutcome, PathReport, Plan, Side, UdpPort, merge,
};
use crate::io::{Clock, IoConfig, Mode, Patience, Socket, Stop, pin};
use crate::wire::SessionId;

/// How a run is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// One datagram per packet, or segmentation offload.
    pub mode: Mode,
    /// How precisely the hosts wait.
    pub patience: Patience,
    /// Keep the near host on this processor and the far one on the next; `None`: where the system puts them.
    pub pin: Option<usize>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// The specification asks for what this ground does not have.
    #[error("{what}")]
    Unable {
        /// What it cannot do.
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// A host could not do its part.
    #[error(transparent)]
    Host(#[from] EndpointError),
    /// The operating system.
    #[error("socket: {0}")]
    Io(#[from] io::Error),
    /// A fault of the program.
    #[error("{0}")]
    Fault(String),
    /// Stopped from outside.
    #[error("interrupted")]
    Interrupted,
}

/// Runs `spec` on this machine. `interrupt` ends it within a tenth of a second.
///
/// # Errors
/// See [`GroundError`].
pub fn run_local(
    spec: &RunSpec,
    options: &Options,
    interrupt: &AtomicBool,
) -> Result<Outcome, GroundError> {
    let [near, far] = run_hosts(
        spec,
        options,
        [Hooks::default(), Hooks::default()],
        interrupt,
    )?;
    merge(spec, near, far, PathReport::default()).map_err(GroundError::Fault)
}

/// Runs both hosts with these hooks, the near one's first, without a path between them.
///
/// # Errors
/// See [`GroundError`].
pub fn run_hosts(
    spec: &RunSpec,
    options: &Options,
    hooks: [Hooks<'_>; 2],
    interrupt: &AtomicBool,
) -> Result<[HostOutcome; 2], GroundError> {
    if let Some(link) = spec.links.first() {
        return Err(GroundError::Unable {
            what: format!("link {}: this ground has no links yet", link.name),
            hint: "run it with --ground sim".to_owned(),
        });
    }
    let config = IoConfig {
        longest: longest(spec),
        ..IoConfig::new(options.mode)
    };
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut sockets = [Socket::bind(any, &config)?, Socket::bind(any, &config)?];
    let addresses = [sockets[0].local(), sockets[1].local()];
    sockets[0].connect(addresses[1])?;
    sockets[1].connect(addresses[0])?;
    let spec = Arc::new(spec.clone());
    let plan = |side, peer| Plan {
        spec: spec.clone(),
        side,
        session: SessionId(spec.seed),
        peer,
        shared_clock: true,
    };
    let plans = [
        plan(Side::Near, addresses[1]),
        plan(Side::Far, addresses[0]),
    ];
    let stop = Stop::new()?;
    let clock = Clock::new();
    let outcomes = thread::scope(|scope| {
        let hosts = plans.iter().zip(sockets).zip(hooks).enumerate();
        let hosts: Vec<_> = hosts
            .map(|(i, ((plan, socket), hooks))| {
                let stop = &stop;
                scope.spawn(move || {
                    if let Some(first) = options.pin {
                        pin(first + i)?;
                    }
                    let longest = config.longest;
                    let port = UdpPort::new(socket, longest, options.patience, clock, stop)?;
                    let outcome = endpoint::run(plan, port, hooks, stop);
                    if outcome.is_err() {
                        stop.set();
                    }
                    outcome
                })
            })
            .collect();
        while !hosts.iter().all(ScopedJoinHandle::is_finished) {
            if interrupt.load(Ordering::Relaxed) {
                stop.set();
            }
            thread::sleep(Duration::from_millis(20));
        }
        let outcomes = hosts.into_iter().map(ScopedJoinHandle::join);
        outcomes.collect::<Result<Vec<_>, _>>()
    });
    let panicked = |_| GroundError::Fault("a host panicked".to_owned());
    let mut outcomes = outcomes.map_err(panicked)?.into_iter();
    let (Some(near), Some(far)) = (outcomes.next(), outcomes.next()) else {
        return Err(GroundError::Fault("a host is missing".to_owned()));
    };
    if interrupt.load(Ordering::Relaxed) {
        return Err(GroundError::Interrupted);
    }
    Ok([near?, far?])
}

/// Payload of the longest datagram of a run.
fn longest(spec: &RunSpec) -> usize {
    let templates = spec.arrivals.iter().map(|a| &a.template);
    let segments = spec
        .flows
        .iter()
        .chain(templates)
        .map(|f| f.sender.mss as usize + crate::wire::DataDatagram::LEN);
    let foreign = spec.sources.iter().map(|s| usize::from(s.packet));
    let foreign = foreign.chain(spec.pings.iter().map(|p| usize::from(p.size)));
    let least = crate::wire::AckDatagram::MOST;
    segments.chain(foreign).fold(least, usize::max)
}
