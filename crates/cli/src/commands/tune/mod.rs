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

use serde_json::json;

use crate::args::{Tune, TuneVerb};
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command.
pub fn tune(args: &Tune) -> Result<Exit, Failure> {
    match &args.verb {
        TuneVerb::Check(args) => check::check(args),
        TuneVerb::Explain(args) => explain::explain(args),
        TuneVerb::Doctor(args) => doctor::doctor(args),
        TuneVerb::Probe(args) => {
            let asks_the_daemon = args.host.is_none();
            told(asks_the_daemon && args.json.json, probe::probe(args))
        }
        TuneVerb::Tuner(verb) => told(verb.prints_json(), kernel::run(verb)),
    }
}

/// Says in JSON, too, why a verb that prints JSON has none of its own.
fn told(in_json: bool, done: Result<Exit, Failure>) -> Result<Exit, Failure> {
    if let (true, Err(why)) = (in_json, &done) {
        let said = json!({ "error": why.message, "hints": why.hints });
        output::data(&format!("{said}\n"))?;
    }
    done
}
