//! Results.

use std::path::{Path, PathBuf};

use fullpipe_report::page;
use fullpipe_results::store::{self, SeriesKind};
use fullpipe_trace::{COLUMNS, Trace};
use pyo3::prelude::*;

use crate::error::{FullpipeError, ScenarioError, not_stored};
use crate::table::Table;

/// A finished result on disk.
#[pyclass(frozen, module = "fullpipe._native")]
pub struct ResultDir(store::ResultDir);

impl ResultDir {
    /// The result itself.
    pub fn stored(&self) -> &store::ResultDir {
        &self.0
    }

    /// Opens it.
    pub fn at(path: &Path) -> PyResult<Self> {
        let opened = store::ResultDir::open(path);
        opened.map(ResultDir).map_err(not_stored)
    }
}

#[pymethods]
impl ResultDir {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        ResultDir::at(&path)
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    /// The object that `fullpipe run --format json` prints.
    fn json(&self) -> PyResult<String> {
        let result = self.0.result().map_err(not_stored)?;
        Ok(result.to_json())
    }

    /// One row per flow, case and seed.
    fn runs(&self) -> PyResult<Table> {
        self.0.runs().map(Table).map_err(not_stored)
    }

    /// One row per link, case and seed.
    fn links(&self) -> PyResult<Table> {
        self.0.links().map(Table).map_err(not_stored)
    }

    /// A time series of a run; `None` if the run kept none.
    fn series(&self, case: usize, seed: u64, kind: &str) -> PyResult<Option<Table>> {
        let kind = match kind {
            "links" => SeriesKind::Links,
            "samples" => SeriesKind::Samples,
            "transfers" => SeriesKind::Transfers,
            "pings" => SeriesKind::Pings,
            "tcp_info" => SeriesKind::TcpInfo,
            other => {
                let known = "`links`, `samples`, `transfers`, `pings` and `tcp_info`";
                let what = format!("no series `{other}`\n  hint: there are {known}");
                return Err(ScenarioError::new_err(what));
            }
        };
        let series = self.0.series(case, seed, kind).map_err(not_stored)?;
        Ok(series.map(Table))
    }

    /// The densest trace of the flows of a run; `None` if the run kept none.
    fn trace(&self, py: Python<'_>, case: usize, seed: u64) -> PyResult<Option<Table>> {
        let Some((path, bytes)) = self.0.trace(case, seed).map_err(not_stored)? else {
            return Ok(None);
        };
        let parsed = py.detach(|| Trace::parse(bytes).map(|trace| columns(&trace)));
        let columns = parsed
            .map_err(|e| FullpipeError::new_err(format!("cannot read {}: {e}", path.display())))?;
        Ok(Some(Table(columns)))
    }

    /// Writes the report page; returns where it is.
    fn report(&self, py: Python<'_>) -> PyResult<PathBuf> {
        let written = py.detach(|| page::write(self.0.path()));
        written.map(|w| w.path).map_err(not_stored)
    }
}

/// A trace as plain columns, numbers as doubles; behind them `var.` and each variable of the
/// controllers.
fn columns(trace: &Trace) -> store::Table {
    let mut table = store::Table::default();
    let name = |flow: u32| trace.meta.flows.get(flow as usize).map_or("", |f| &f.name);
    for c in COLUMNS {
        let texts = trace.rows.iter().map(|row| c.text(row, name(row.flow)));
        let column = match c.name {
            "flow" | "phase" | "event" => store::Column::Text(texts.collect()),
            _ => store::Column::Float(texts.map(|t| t.parse().ok()).collect()),
        };
        table.push(c.name, column);
    }
    for (name, values) in &trace.variables {
        let defined = values.iter().map(|x| Some(*x).filter(|x| !x.is_nan()));
        table.push(
            format!("var.{name}"),
            store::Column::Float(defined.collect()),
        );
    }
    table
}
