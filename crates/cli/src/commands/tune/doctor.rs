//! `fullpipe tune doctor`: what the tuner takes, each thing tried.

use fullpipe_doctor::{bpf, queues};

use super::kernel;
use crate::args::TunerJson;
use crate::commands::doctor::{Part, show};
use crate::exit::{Exit, Failure};

/// Runs the command.
pub fn doctor(args: &TunerJson) -> Result<Exit, Failure> {
    let mut kernel = bpf::examine();
    kernel.extend(bpf::helpful());
    // Queues last: for them the process may enter a user namespace.
    let parts = [
        Part {
            word: "bpf",
            purpose: "privileges and kernel",
            findings: kernel,
        },
        Part {
            word: "tuner",
            purpose: "what the tuner does with them",
            findings: kernel::examine(&args.state.state),
        },
        Part {
            word: "queues",
            purpose: "queues, to spread initial windows",
            findings: queues::examine(),
        },
    ];
    match show(&parts, args.json)? {
        true => Ok(Exit::Environment),
        false => Ok(Exit::Ok),
    }
}
