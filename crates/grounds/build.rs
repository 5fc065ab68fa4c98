//! Fingerprints of the sources that decide what each ground returns, for the keys of stored runs.

use fullpipe_fingerprint::Sources;

fn main() {
    // Rows and captures go through `trace`; the simulator itself does not need it.
    let simulator = Sources::default().with_crate("../sim");
    simulator.with_crate("../trace").emit("FULLPIPE_SIM");
    let sockets = Sources::default().with_crate("../net").with_folder("src");
    sockets.with_crate("../trace").emit("FULLPIPE_UDP");
    // What is changed in a specification before a ground has it.
    Sources::default()
        .with_folder("src")
        .emit("FULLPIPE_SWITCHES");
}
