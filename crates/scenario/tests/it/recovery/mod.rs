//! Loss recovery in whole simulations: what a flow may undo, resend and believe of its path.

mod draw;
mod one_way;
mod properties;
mod reordering;
mod timer;
mod undo;

use fullpipe_run::{FlowOutcome, Outcome};
use fullpipe_scenario::{Overrides, Scenario};

/// Payload of a segment of 1500 bytes with time stamps.
const SEGMENT_BITS: f64 = 8.0 * 1448.0;

/// The scenario with these settings.
fn scenario(text: &str, set: &[(&str, &str)]) -> Scenario {
    let overrides = Overrides {
        set: set
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        ..Overrides::default()
    };
    Scenario::parse(text, "recovery.toml", &overrides).unwrap_or_else(|e| panic!("{e}"))
}

/// Its first case, run with its first seed.
fn simulate(text: &str, set: &[(&str, &str)]) -> Outcome {
    let scenario = scenario(text, set);
    fullpipe_sim::run(&scenario.cases[0].run_spec(scenario.seeds[0])).unwrap()
}

/// The first flow of that.
fn flow(text: &str, set: &[(&str, &str)]) -> FlowOutcome {
    simulate(text, set).flows.remove(0)
}
