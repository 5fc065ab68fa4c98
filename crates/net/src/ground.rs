//! A run on this machine: both hosts and, between them, the path of the specification, each on a
//! thread of its own, over UDP on the loopback interface. Nothing needs privilege.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use fullpipe_host::{HostOutcome, PathReport, merge};
use fullpipe_realtime::live::Live;
use fullpipe_run::{Outcome, RunSpec};

use crate::emulator::{Emulator, EmulatorConfig, EmulatorError};
use crate::endpoint::{self, EndpointError, Hooks, Plan, Side, UdpPort};
use crate::headers;
use crate::io::{Clock, Mode, Socket, Stop, WaitStrategy, pin};
use crate::wire::SessionId;

/// Settings of a run over the loopback interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// One datagram per packet, or segmentation offload.
    pub mode: Mode,
    /// Sleep or spin while waiting.
    pub wait: WaitStrategy,
    /// Keep the near host on this processor and the far one on the next; `None`: where the system
    /// puts them.
    pub pin: Option<usize>,
    /// Both hosts and the path have addresses of IPv6. What packets count as stays what the
    /// specification says.
    pub ipv6: bool,
    /// End the run when the transfers of all lasting flows are complete, before its time if need
    /// be.
    pub until_complete: bool,
}

/// A run that came to no result, by its cause.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// The specification asks for what this ground does not have.
    #[error("{what}")]
    Unable {
        /// The unsupported feature, with its scenario key.
        what: String,
        /// Remedy for the user.
        hint: String,
    },
    /// A host could not do its part.
    #[error(transparent)]
    Host(EndpointError),
    /// The path between the hosts.
    #[error(transparent)]
    Path(EmulatorError),
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

impl From<EndpointError> for GroundError {
    fn from(error: EndpointError) -> Self {
        let hint = match &error {
            EndpointError::TooLarge { .. } => "give it a smaller `mtu`",
            EndpointError::TooMany { .. } => "make several scenarios of it, or use --ground sim",
            EndpointError::Interface(_) => {
                "leave out `nic_rate` and `txqueuelen`, or use --ground sim"
            }
            EndpointError::Violation(v) => return Self::Fault(v.to_string()),
            _ => return Self::Host(error),
        };
        Self::Unable {
            what: error.to_string(),
            hint: hint.to_owned(),
        }
    }
}

impl From<EmulatorError> for GroundError {
    fn from(error: EmulatorError) -> Self {
        match error {
            EmulatorError::Interface(error) => error.into(),
            EmulatorError::Route => Self::Unable {
                what: error.to_string(),
                hint: "use --ground sim".to_owned(),
            },
            EmulatorError::Violation(v) => Self::Fault(v.to_string()),
            other => Self::Path(other),
        }
    }
}

impl From<GroundError> for fullpipe_run::GroundError {
    fn from(error: GroundError) -> Self {
        match error {
            GroundError::Unable { what, hint } => Self::Unable {
                key: None,
                what,
                hint,
            },
            GroundError::Fault(what) => Self::Fault(what),
            GroundError::Interrupted => Self::Interrupted,
            other => Self::Environment {
                what: other.to_string(),
                hint: "`--ground sim` needs no sockets".to_owned(),
            },
        }
    }
}

/// Runs `spec` on this machine. Both hosts publish in `live`; `interrupt` ends them within a tenth
/// of a second.
///
/// # Errors
/// See [`GroundError`].
pub fn run_local(
    spec: &RunSpec,
    options: &Options,
    live: Option<&Live>,
    interrupt: &AtomicBool,
) -> Result<Outcome, GroundError> {
    let hooks = [(); 2].map(|()| Hooks {
        live,
        ..Hooks::default()
    });
    let (near, far, path) = run_hosts(spec, options, hooks, interrupt)?;
    merge(spec, near, far, path).map_err(GroundError::Fault)
}

/// Runs both hosts with these hooks, the near one's first, and returns what they and the path
/// between them leave behind. Without links there is no path: the hosts send to one another.
///
/// # Errors
/// See [`GroundError`].
pub fn run_hosts(
    spec: &RunSpec,
    options: &Options,
    hooks: [Hooks<'_>; 2],
    interrupt: &AtomicBool,
) -> Result<(HostOutcome, HostOutcome, PathReport), GroundError> {
    let any: SocketAddr = match options.ipv6 {
        true => (Ipv6Addr::LOCALHOST, 0).into(),
        false => (Ipv4Addr::LOCALHOST, 0).into(),
    };
    let bind = |side: Side| Socket::bind(any, &side.io_config(spec, options.mode));
    let mut sockets = [bind(Side::Near)?, bind(Side::Far)?];
    let [near, far] = [sockets[0].local(), sockets[1].local()];
    let session = SessionId(spec.seed);
    let clock = Clock::new();
    let emulator = if spec.links.is_empty() {
        None
    } else {
        let config = EmulatorConfig {
            wait: options.wait,
            ..EmulatorConfig::new(session, near, far)
        };
        Some(Emulator::start(spec, clock, &config)?)
    };
    let peers = emulator.as_ref().map_or([far, near], |emulator| {
        [emulator.near_addr(), emulator.far_addr()]
    });
    for (socket, peer) in sockets.iter_mut().zip(peers) {
        socket.connect(peer)?;
    }
    let run = Arc::new(spec.clone());
    let plan = |side, peer| Plan {
        spec: run.clone(),
        side,
        session,
        peer,
        shared_clock: true,
    };
    let plans = [plan(Side::Near, peers[0]), plan(Side::Far, peers[1])];
    let stop = Stop::new()?;
    let complete = [(); 2].map(|()| AtomicBool::new(false));
    let asked = [hooks[0].complete, hooks[1].complete];
    let outcomes = thread::scope(|scope| {
        let hooks = hooks.into_iter().zip(&complete);
        let hooks = hooks.map(|(hooks, own)| hooks.with_complete(own));
        let hosts = plans.iter().zip(sockets).zip(hooks).enumerate();
        let hosts: Vec<_> = hosts
            .map(|(i, ((plan, socket), hooks))| {
                let stop = &stop;
                scope.spawn(move || {
                    if let Some(first) = options.pin {
                        pin(first + i)?;
                    }
                    let longest = socket.config().longest;
                    let port = UdpPort::new(socket, longest, options.wait, clock, stop)?;
                    let more = headers::bytes(plan.peer) - headers::IPV4;
                    let port = port.with_longer_headers(more);
                    let outcome = endpoint::run(plan, port, hooks, stop);
                    if outcome.is_err() {
                        stop.set();
                    }
                    outcome
                })
            })
            .collect();
        while !hosts.iter().all(ScopedJoinHandle::is_finished) {
            let now = [0, 1].map(|i| complete[i].load(Ordering::Acquire));
            for (asked, now) in asked.iter().zip(now) {
                if let Some(asked) = asked {
                    asked.store(now, Ordering::Release);
                }
            }
            let done = options.until_complete && now == [true; 2];
            if done || interrupt.load(Ordering::Relaxed) {
                stop.set();
            }
            thread::sleep(Duration::from_millis(20));
        }
        let outcomes = hosts.into_iter().map(ScopedJoinHandle::join);
        outcomes.collect::<Result<Vec<_>, _>>()
    });
    let path = emulator.map(Emulator::stop);
    let panicked = |_| GroundError::Fault("a host panicked".to_owned());
    let mut outcomes = outcomes.map_err(panicked)?.into_iter();
    let (Some(near), Some(far)) = (outcomes.next(), outcomes.next()) else {
        return Err(GroundError::Fault("a host is missing".to_owned()));
    };
    if interrupt.load(Ordering::Relaxed) {
        return Err(GroundError::Interrupted);
    }
    let (near, far) = (near?, far?);
    let path = match path.transpose()? {
        None => PathReport {
            exact: true,
            ..PathReport::default()
        },
        Some(emulator) => PathReport {
            links: emulator.links,
            fidelity: Some(emulator.fidelity),
            losses: emulator.losses,
            exact: true,
        },
    };
    Ok((near, far, path))
}
