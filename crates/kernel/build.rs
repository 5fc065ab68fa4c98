//! Fingerprint of what decides a run's outcome.

use fullpipe_fingerprint::Sources;

fn main() {
    Sources::default().with_crate(".").emit("FULLPIPE_KERNEL");
}
