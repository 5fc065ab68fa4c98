//! Fingerprint of what decides a run's outcome.

use fullpipe_fingerprint::Sources;

fn main() {
    println!("cargo::rerun-if-changed=kernel");
    Sources::default().with_crate(".").emit("FULLPIPE_LINUX");
}
