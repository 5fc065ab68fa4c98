//! Scenarios.

use std::num::NonZeroU32;

use fullpipe_results::store::quantity;
use fullpipe_scenario::{Overrides, builtin};
use pyo3::prelude::*;

use crate::error;

/// A scenario that has been read and found valid.
#[pyclass(frozen, module = "fullpipe._native")]
pub struct Scenario {
    /// The cases and all else that the file says, with the overrides.
    pub read: fullpipe_scenario::Scenario,
    /// Keys that were set in place of the file's.
    pub overrides: Overrides,
}

#[pymethods]
impl Scenario {
    /// Reads the text of a scenario file, or what `name` names: a file or a built-in scenario.
    #[new]
    #[pyo3(signature = (name, text=None, *, set=Vec::new(), seed=None, repeat=None, quick=false))]
    fn new(
        name: &str,
        text: Option<&str>,
        set: Vec<(String, String)>,
        seed: Option<u64>,
        repeat: Option<NonZeroU32>,
        quick: bool,
    ) -> PyResult<Self> {
        let overrides = Overrides {
            set,
            seed,
            repeat,
            quick,
            world: Vec::new(),
        };
        let read = match text {
            Some(text) => fullpipe_scenario::Scenario::parse(text, name, &overrides),
            None => fullpipe_scenario::Scenario::load(name, &overrides),
        };
        let read = read.map_err(|e| error::refused(&e))?;
        Ok(Scenario { read, overrides })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.read.name
    }

    #[getter]
    fn about(&self) -> &str {
        &self.read.about
    }

    /// The text of the file, without what overrides change.
    #[getter]
    fn text(&self) -> &str {
        &self.read.text
    }

    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.read.seeds.clone()
    }

    /// What is strange in it, and no fault.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.read.warnings.iter().map(ToString::to_string).collect()
    }

    /// The matrix parameters of every case, as written.
    fn cases(&self) -> Vec<Vec<(String, String)>> {
        self.read.cases.iter().map(|c| c.params()).collect()
    }
}

/// Names of the built-in scenarios.
#[pyfunction]
pub fn built_in() -> Vec<&'static str> {
    builtin::names().collect()
}

/// The text of a scenario file or of a built-in scenario.
#[pyfunction]
pub fn text(name: &str) -> PyResult<String> {
    let read = fullpipe_scenario::text(name);
    read.map_err(|e| error::refused(&e))
}

/// See [`quantity`].
#[pyfunction]
#[pyo3(name = "quantity")]
pub fn quantity_of(text: &str) -> Option<(f64, &'static str)> {
    quantity(text)
}
