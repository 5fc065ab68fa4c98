//! The module `fullpipe._native`: scenarios, grounds and results for Python. Everything that
//! decides something is in the crates below; here values cross the border, long calls let other
//! threads of the interpreter run, and errors become exceptions with the text of the command line.
//!
//! - [`scenario`]: reading, and what a scenario will run.
//! - [`running`]: runs, progress, Ctrl-C.
//! - [`result`]: a result directory and its tables.
//! - [`table`]: columns for NumPy and, by the Arrow C stream, for everybody else.
//! - [`sweep`]: many points in one call.
//! - [`controller`]: flows whose controllers are written in Python.
//! - [`judging`]: wrong worlds, results side by side.
//! - [`stack`]: which stacks there are, and the law of one.

mod controller;
mod error;
mod judging;
mod result;
mod running;
mod scenario;
mod stack;
mod sweep;
mod table;

use pyo3::prelude::*;

/// Natives of the package `fullpipe`; not for direct use.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::add(module)?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<result::ResultDir>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(running::run, module)?)?;
    module.add_function(wrap_pyfunction!(running::fingerprint, module)?)?;
    module.add_function(wrap_pyfunction!(running::grounds, module)?)?;
    module.add_class::<running::Stop>()?;
    module.add_class::<controller::Controller>()?;
    module.add_class::<controller::Ack>()?;
    module.add_class::<controller::Congestion>()?;
    module.add_class::<controller::Lost>()?;
    module.add_class::<controller::Round>()?;
    module.add_class::<controller::Start>()?;
    module.add_class::<controller::Timeout>()?;
    module.add_function(wrap_pyfunction!(controller::hooks, module)?)?;
    module.add_function(wrap_pyfunction!(controller::register, module)?)?;
    module.add_function(wrap_pyfunction!(judging::falsify, module)?)?;
    module.add_function(wrap_pyfunction!(judging::compared, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::swept, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::quantity_of, module)?)?;
    module.add_function(wrap_pyfunction!(stack::stacks, module)?)?;
    module.add_function(wrap_pyfunction!(stack::law, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::text, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::built_in, module)?)?;
    Ok(())
}
