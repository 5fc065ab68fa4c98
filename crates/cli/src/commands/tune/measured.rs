//! What the daemon's probes have measured of paths.

use std::fs;

use fullpipe_policy::{Measurements, measured};

use crate::args::TunerState;

/// All of it; nothing where no daemon has been.
pub(super) fn known(state: &TunerState) -> Measurements {
    let text = fs::read_to_string(state.state.join("measured"));
    measured::read(&text.unwrap_or_default())
}
