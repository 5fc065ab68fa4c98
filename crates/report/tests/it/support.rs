//! Runs of scenarios.

use std::path::Path;

use fullpipe_results::run::{Options, Ran, run_on};
use fullpipe_run::Ground;
use fullpipe_scenario::Scenario;

pub fn run(s: &Scenario, out: &Path) -> Ran {
    run_on_ground(s, out, &fullpipe_sim::run)
}

pub fn run_on_ground(s: &Scenario, out: &Path, ground: &dyn Ground) -> Ran {
    let options = Options {
        jobs: 2,
        out: Some(out),
        ..Options::default()
    };
    run_on(s, &options, ground).unwrap_or_else(|e| panic!("{e}"))
}
