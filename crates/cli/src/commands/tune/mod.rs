//! `fullpipe tune`: policies for the kernel's own TCP.

#[cfg(any(test, feature = "tune"))]
mod arms;
mod check;
mod doctor;
mod explain;
mod forecast;
#[cfg(feature = "tune")]
mod inject;
#[cfg_attr(not(feature = "tune"), path = "without.rs")]
mod kernel;
mod lacking;
mod measured;
mod probe;
mod simulated;

pub use kernel::{laws, programs};
pub use simulated::flow_settings;

#[cfg(any(test, feature = "tune"))]
mod parameters;
#[cfg(feature = "tune")]
mod watch;

use crate::args::{Tune, TuneVerb};
use crate::exit::{Exit, Failure};

/// Runs the command.
pub fn tune(args: &Tune) -> Result<Exit, Failure> {
    match &args.verb {
        TuneVerb::Check(args) => check::check(args),
        TuneVerb::Explain(args) => explain::explain(args),
        TuneVerb::Doctor(args) => doctor::doctor(args),
        TuneVerb::Probe(args) => probe::probe(args),
        TuneVerb::Tuner(verb) => kernel::run(verb),
    }
}
