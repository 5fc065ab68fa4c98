//! The verbs of `fullpipe tune` that need the kernel, in a program that was built without them.

use std::path::Path;

use fullpipe_doctor::Finding;

use crate::args::TunerVerb;
use crate::exit::{Exit, Failure};

const HOW: &str = "`apt-get install libelf-dev zlib1g-dev pkg-config`, then `cargo install --path \
                   crates/cli --features tune`";

/// What `tune doctor` says of it.
pub fn examine(_: &Path) -> Vec<Finding> {
    let lacks = "not in this fullpipe: built without libelf";
    vec![Finding::no("the tuner's kernel side", lacks).remedy(HOW)]
}

/// Says how to get them.
pub fn run(_: &TunerVerb) -> Result<Exit, Failure> {
    let message = "this fullpipe was built without the tuner's kernel side";
    Err(Failure::new(Exit::Environment, message).hint(HOW))
}
