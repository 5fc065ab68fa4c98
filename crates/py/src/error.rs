//! Errors as exceptions. The text is that of the command line, remedy included.

use fullpipe_results::run::RunError;
use fullpipe_results::store::StoreError;
use fullpipe_run::GroundError;
use fullpipe_scenario::Diagnostics;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

create_exception!(
    fullpipe,
    FullpipeError,
    PyException,
    "Whatever fullpipe refuses or cannot do."
);
create_exception!(
    fullpipe,
    ScenarioError,
    FullpipeError,
    "A scenario, a setting or a stack that is not valid."
);
create_exception!(
    fullpipe,
    EnvironmentLacks,
    FullpipeError,
    "The machine, the network or the other host lacks something."
);

/// Adds the classes to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("FullpipeError", py.get_type::<FullpipeError>())?;
    module.add("ScenarioError", py.get_type::<ScenarioError>())?;
    module.add("EnvironmentLacks", py.get_type::<EnvironmentLacks>())
}

/// The exception of a refused scenario.
pub fn refused(diagnostics: &Diagnostics) -> PyErr {
    ScenarioError::new_err(diagnostics.to_string())
}

/// The exception of a run that came to nothing.
pub fn not_run(error: &RunError) -> PyErr {
    let text = hinted(error.to_string(), error.hint());
    match error.exit_code() {
        2 => ScenarioError::new_err(text),
        3 => EnvironmentLacks::new_err(text),
        130 => PyKeyboardInterrupt::new_err(text),
        _ => FullpipeError::new_err(text),
    }
}

/// The exception of a result that cannot be read or written.
pub fn not_stored(error: StoreError) -> PyErr {
    not_run(&RunError::from(error))
}

/// The exception of a ground that is not there.
pub fn no_ground(error: GroundError) -> PyErr {
    match error {
        GroundError::Environment { what, hint } => {
            EnvironmentLacks::new_err(hinted(what, Some(hint)))
        }
        other => FullpipeError::new_err(other.to_string()),
    }
}

fn hinted(text: String, hint: Option<String>) -> String {
    match hint {
        Some(hint) if !hint.is_empty() => format!("{text}\n  hint: {hint}"),
        _ => text,
    }
}
