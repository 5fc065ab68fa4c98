//! The verbs of `fullpipe tune` that need the kernel, in a program that was built without them.

use crate::args::TunerVerb;
use crate::exit::{Exit, Failure};

/// Says how to get them.
pub fn run(_: &TunerVerb) -> Result<Exit, Failure> {
    let message = "this fullpipe was built without the tuner's kernel side";
    Err(Failure::new(Exit::Environment, message).hint(
        "`apt-get install libelf-dev zlib1g-dev pkg-config`, then `cargo install --path crates/cli \
         --features tune`",
    ))
}
