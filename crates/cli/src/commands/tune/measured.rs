//! What the daemon's probes have measured of paths.

use fullpipe_policy::{Measurements, measured};

use crate::args::TunerState;

/// All of it; nothing where no daemon has been.
pub(super) fn known(state: &TunerState) -> Measurements {
    measured::of_file(&state.state.join("measured"))
}
