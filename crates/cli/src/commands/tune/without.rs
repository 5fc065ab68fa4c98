//! The verbs of `fullpipe tune` that need the kernel, in a program that was built without them.

use std::path::Path;

use fullpipe_doctor::Finding;
use fullpipe_grounds::Laws;

use crate::args::{TunerJson, TunerVerb};
use crate::exit::{Exit, Failure};

const HOW: &str = "`apt-get install libelf-dev zlib1g-dev pkg-config`, then `cargo install --locked \
                   --path crates/cli --features tune`";

/// Findings of `tune doctor`: the tuner is not in this build.
pub fn examine(_: &Path) -> Vec<Finding> {
    let lacks = "not in this fullpipe: built without libelf";
    vec![Finding::no("the tuner's kernel side", lacks).remedy(HOW)]
}

/// Findings of `doctor` about eBPF: not tried in this build.
pub fn programs() -> Vec<Finding> {
    let not = "not tried: this fullpipe is built without the tuner, and uses none";
    vec![Finding::limited("programs of eBPF", not).remedy(HOW)]
}

/// Nothing for runs on the running kernel.
pub fn laws() -> Option<&'static dyn Laws> {
    None
}

/// There is no daemon.
pub fn measure_anew(_: &TunerJson) -> Result<Exit, Failure> {
    lacks()
}

/// Says how to get them.
pub fn run(_: &TunerVerb) -> Result<Exit, Failure> {
    lacks()
}

fn lacks() -> Result<Exit, Failure> {
    let message = "this fullpipe was built without the tuner's kernel side";
    Err(Failure::new(Exit::Environment, message).hint(HOW))
}
