//! The grounds that this version has, as the runner knows them.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use fullpipe_net::ground::{self, Options, run_local};
use fullpipe_net::io::{self, WaitStrategy};
use fullpipe_results::ground::{Ground, GroundError};
use fullpipe_run::{Outcome, RunSpec};

use crate::args::{self, PeerFlags, Run};
use crate::commands::send::args::Mode;
use crate::commands::send::target::Server;
use crate::exit::{Exit, Failure};
use crate::peer::{PeerGround, Way};

/// The ground of that name.
///
/// # Errors
/// If this version does not have it.
pub fn find(args: &Run, interrupt: &'static AtomicBool) -> Result<Box<dyn Ground>, Failure> {
    if let Some(peer) = &args.peer {
        return with_peer(args, peer, interrupt);
    }
    if args.ipv6 && args.ground != args::Ground::Udp {
        let message = "`--ipv6` is about the sockets of the ground udp";
        return Err(Failure::new(Exit::Usage, message).hint("write `--ground udp`"));
    }
    if args.flags.encrypt || args.flags.key.is_some() {
        let message = "`--encrypt` and `--key` are about another host, and there is none";
        return Err(Failure::new(Exit::Usage, message).hint("name it with `--peer HOST`"));
    }
    let (name, what) = match args.ground {
        args::Ground::Sim => return Ok(Box::new(fullpipe_sim::run)),
        args::Ground::Udp => {
            let options = Options {
                ipv6: args.ipv6,
                ..options(&args.flags)
            };
            return Ok(Box::new(Udp { options, interrupt }));
        }
        args::Ground::Linux => ("linux", "the Linux TCP stack in virtual time"),
        args::Ground::Kernel => (
            "kernel",
            "the path emulator and the control of the kernel's TCP",
        ),
    };
    let version = env!("CARGO_PKG_VERSION");
    let message = format!("ground `{name}` needs {what}, which fullpipe {version} does not have");
    Err(Failure::new(Exit::Environment, message).hint(
        "`--ground sim` runs the same file in the simulator, `--ground udp` over real sockets",
    ))
}

/// The ground udp with another host as the far side.
fn with_peer(
    args: &Run,
    peer: &str,
    interrupt: &'static AtomicBool,
) -> Result<Box<dyn Ground>, Failure> {
    if matches!(args.ground, args::Ground::Linux | args::Ground::Kernel) {
        let message = "`--peer` is for the ground udp";
        return Err(Failure::new(Exit::Usage, message).hint("write `--ground udp`"));
    }
    let server = Server::parse(peer);
    let server = server.map_err(|e| Failure::new(Exit::Usage, format!("--peer: {e}")))?;
    let way = Way::new(&server, &args.flags)?;
    Ok(Box::new(PeerGround::new(way, interrupt)))
}

/// Socket options from the command line.
pub fn options(flags: &PeerFlags) -> Options {
    Options {
        mode: match flags.mode {
            Mode::Packet => io::Mode::Packet,
            Mode::Bulk => io::Mode::Bulk,
        },
        wait: match flags.spin {
            true => WaitStrategy::Spin,
            false => WaitStrategy::Sleep,
        },
        pin: flags.pin,
        ipv6: false,
        until_complete: false,
    }
}

/// Both hosts and the path between them on this machine, over UDP on the loopback interface, in
/// real time.
struct Udp {
    options: Options,
    interrupt: &'static AtomicBool,
}

impl Ground for Udp {
    fn name(&self) -> &str {
        "udp"
    }

    /// Two runs at a time would wait for each other's processors.
    fn at_once(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(1)
    }

    fn in_real_time(&self) -> bool {
        true
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        run_local(spec, &self.options, self.interrupt).map_err(told)
    }
}

/// What the suite makes of it.
fn told(error: ground::GroundError) -> GroundError {
    match error {
        ground::GroundError::Unable { what, hint } => GroundError::Unable { what, hint },
        ground::GroundError::Fault(what) => GroundError::Fault(what),
        ground::GroundError::Interrupted => GroundError::Interrupted,
        other => GroundError::Environment {
            what: other.to_string(),
            hint: "`--ground sim` needs no sockets".to_owned(),
        },
    }
}
