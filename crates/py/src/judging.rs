//! What results are worth: expectations held against wrong worlds, results side by side.

use std::collections::BTreeMap;

use fullpipe_metrics as metrics;
use fullpipe_results::compare::{self, View, compare_stored};
use fullpipe_results::falsify::{Depth, Trial};
use fullpipe_results::run::Options;
use pyo3::prelude::*;

use crate::controller::Hosting;
use crate::error::{FullpipeError, ScenarioError, not_run, not_stored};
use crate::result::ResultDir;
use crate::running::{Counted, Flag, built, watched};
use crate::scenario::Scenario;

/// The object that `fullpipe falsify --format json` prints.
#[pyfunction]
#[pyo3(signature = (scenario, *, jobs=0, first_failure=false, progress=None))]
pub fn falsify(
    py: Python<'_>,
    scenario: &Scenario,
    jobs: usize,
    first_failure: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    if scenario.read.expectations.is_empty() {
        let what = format!(
            "error: {} expects nothing: it cannot fail\n  hint: write an [[expect]]: metric, bound \
             and the source of the bound",
            scenario.read.name
        );
        return Err(ScenarioError::new_err(what));
    }
    let trial = py.detach(|| Trial::new(scenario.read.clone(), &scenario.overrides));
    let trial = trial.map_err(|refused| {
        let hint = refused.hint();
        ScenarioError::new_err(format!("error: {refused}\n  hint: {hint}"))
    })?;
    let flag = Flag::new();
    let ground = Hosting::new(built("sim", None, &flag)?, flag.get());
    let counted = Counted::default();
    let options = Options {
        jobs,
        progress: &counted,
        interrupt: flag.get(),
        ..Options::default()
    };
    let depth = match first_failure {
        true => Depth::FirstFailure,
        false => Depth::EveryWorld,
    };
    let mut show = counted.shown_to(progress.as_ref());
    let found = watched(py, &flag, None, &mut show, || {
        trial.run(depth, &options, &ground, None)
    })?;
    let found = found.map_err(|e| ground.error(e, not_run))?;
    show()?;
    Ok(found.to_json())
}

/// The object that `fullpipe compare --format json` prints.
#[pyfunction]
pub fn compared(
    py: Python<'_>,
    a: &ResultDir,
    b: &ResultDir,
    threshold: f64,
    thresholds: BTreeMap<String, f64>,
    names: Vec<String>,
    agreement_and_flagged: (Option<bool>, bool),
) -> PyResult<String> {
    for name in names.iter().chain(thresholds.keys()) {
        if metrics::scope_of(name).is_none() {
            let what =
                format!("error: no metric `{name}`\n  hint: `fullpipe list metrics` has all");
            return Err(ScenarioError::new_err(what));
        }
    }
    let (agreement, with_flagged) = agreement_and_flagged;
    let options = compare::Options {
        threshold,
        thresholds,
        metrics: names,
        view: match agreement {
            None => View::Auto,
            Some(true) => View::Agreement,
            Some(false) => View::Metrics,
        },
        with_flagged,
    };
    let both = py.detach(|| compare_stored(a.stored(), b.stored(), &options));
    serde_json::to_string(&both.map_err(not_stored)?)
        .map_err(|e| FullpipeError::new_err(e.to_string()))
}
