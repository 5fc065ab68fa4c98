//! The grounds that this version has, as the suite knows them.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use fullpipe_net::ground::{self, Options, run_local};
use fullpipe_sim::{Outcome, RunSpec};
use fullpipe_suite::ground::{Ground, GroundError};

use crate::args;
use crate::exit::{Exit, Failure};

/// The ground of that name.
///
/// # Errors
/// If this version does not have it.
pub fn find(
    ground: args::Ground,
    interrupt: &'static AtomicBool,
) -> Result<Box<dyn Ground>, Failure> {
    let (name, what) = match ground {
        args::Ground::Sim => return Ok(Box::new(fullpipe_sim::run)),
        args::Ground::Udp => return Ok(Box::new(Udp { interrupt })),
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

/// Both hosts and the path between them on this machine, over UDP on the loopback interface, in real time.
struct Udp {
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
        run_local(spec, &Options::default(), self.interrupt).map_err(told)
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
