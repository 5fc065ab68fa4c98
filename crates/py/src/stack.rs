//! Stacks.

use fullpipe_cc::StackSpec;
use fullpipe_cc::registry;
use fullpipe_cc::response::{Conditions, cycle};
use fullpipe_results::store::{Column, Table as Columns};
use fullpipe_units::Span;
use pyo3::prelude::*;

use crate::controller::hosted;
use crate::error::ScenarioError;
use crate::running::Flag;
use crate::table::Table;

/// Every part that a stack is made of: name, kind and a sentence.
#[pyfunction]
pub fn stacks() -> Vec<(&'static str, String, &'static str)> {
    registry::entries()
        .map(|e| (e.name, e.kind.to_string(), e.about))
        .collect()
}

/// The settled cycle of a stack at each window, as `fullpipe law` prints it; null where there is
/// none, and why, beside these windows.
#[pyfunction]
#[pyo3(signature = (stack, windows, *, rtt="100ms", mss=1448, hz=250))]
pub fn law(
    py: Python<'_>,
    stack: &str,
    windows: Vec<f64>,
    rtt: &str,
    mss: u32,
    hz: u32,
) -> PyResult<(Table, Vec<(f64, String)>)> {
    let invalid = |what: String| ScenarioError::new_err(what);
    let spec = StackSpec::parse(stack).map_err(|e| {
        let hint = e
            .hint()
            .map_or(String::new(), |hint| format!("\n  hint: {hint}"));
        invalid(format!("{stack}: {e}{hint}"))
    })?;
    let rtt: Span = rtt.parse().map_err(|e| invalid(format!("rtt: {e}")))?;
    let conditions = Conditions {
        rtt,
        mss,
        hz,
        ..Conditions::default()
    };
    let flag = Flag::new();
    let cycles = py.detach(|| {
        hosted(flag.get(), &|_| None, || {
            let cycles = windows.iter().map(|w| cycle(&spec, *w, &conditions));
            cycles.collect::<Vec<_>>()
        })
    });
    let cycles = cycles.map_err(|e| e.unwrap_or_else(|| invalid("interrupted".to_owned())))?;
    let without = windows.iter().zip(&cycles).filter_map(|(w, cycle)| {
        let why = cycle.as_ref().err()?;
        Some((*w, why.to_string()))
    });
    let without = without.collect();
    let mut table = Columns::default();
    table.push(
        "window",
        Column::Float(windows.into_iter().map(Some).collect()),
    );
    type Of = fn(&fullpipe_cc::response::Cycle) -> f64;
    let columns: [(&str, Of); 6] = [
        ("increase_first", |c| c.increase_first),
        ("increase_last", |c| c.increase_last),
        ("decrease", |c| c.decrease),
        ("rounds", |c| c.rounds),
        ("loss_rate", |c| c.loss_rate()),
        ("mean_window", |c| c.mean_window),
    ];
    for (name, of) in columns {
        let values = cycles.iter().map(|c| c.as_ref().ok().map(of));
        table.push(name, Column::Float(values.collect()));
    }
    Ok((Table(table), without))
}
