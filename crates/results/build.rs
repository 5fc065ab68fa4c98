//! Fingerprint of the metrics, which decide what is kept of a run beside the ground that made it.

use fullpipe_fingerprint::Sources;

fn main() {
    let metrics = Sources::default().with_crate("../metrics");
    metrics.emit("FULLPIPE_METRICS");
}
