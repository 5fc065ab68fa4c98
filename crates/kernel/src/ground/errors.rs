//! What the system refuses, with the remedy.

use std::io;

use fullpipe_emulate::emulation::EmulationError;
use fullpipe_emulate::namespace::TUN_REMEDY;
use fullpipe_run::GroundError;

use crate::sockets::SocketError;

pub(super) fn sockets(error: SocketError) -> GroundError {
    match error {
        SocketError::Io(what, e) if e.kind() == io::ErrorKind::PermissionDenied => {
            GroundError::Environment {
                what: format!("{what}: {e}"),
                hint: "run as root, or allow it: a congestion module to all users (`sysctl \
                       net.ipv4.tcp_allowed_congestion_control`), a receive window of this size \
                       (`sysctl net.core.rmem_max`)"
                    .to_owned(),
            }
        }
        SocketError::Io(what, e) => lacks(what, &e),
        SocketError::Module(found) => GroundError::Environment {
            what: format!("the kernel took another congestion module: `{found}`"),
            hint: "see `sysctl net.ipv4.tcp_allowed_congestion_control`".to_owned(),
        },
    }
}

pub(super) fn lacks(what: &str, error: &io::Error) -> GroundError {
    GroundError::Environment {
        what: format!("{what}: {error}"),
        hint: "`fullpipe emulate -- true` tries the same hosts and path".to_owned(),
    }
}

pub(super) fn environment(error: EmulationError) -> GroundError {
    match error {
        EmulationError::Violation(v) => v.into(),
        EmulationError::Thread => GroundError::Fault(error.to_string()),
        EmulationError::Host(host) => GroundError::Environment {
            what: host.to_string(),
            hint: host.hint().to_owned(),
        },
        other => GroundError::Environment {
            what: other.to_string(),
            hint: TUN_REMEDY.to_owned(),
        },
    }
}
