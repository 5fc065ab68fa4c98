//! Points of a sweep: many small scenarios as one.

use fullpipe_results::run::{Options, tabled};
use fullpipe_results::store::{Column, Table as Columns};
use fullpipe_scenario as scenario;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::controller::Hosting;
use crate::error::{FullpipeError, ScenarioError, not_run, refused};
use crate::running::{Flag, Stop, built, watched};
use crate::scenario::Scenario;
use crate::table::add_axis;

/// Runs the points of a sweep, in each of which `keys` have other values, on this thread's
/// processor, and returns their rows as a Parquet file: `point`, from `first` on, the axes as
/// written, but those in `apart`, and as numbers, then the columns of `runs.parquet`.
#[pyfunction]
// Named in Python.
#[allow(clippy::too_many_arguments)]
#[pyo3(signature = (base, keys, points, *, first=0, apart=Vec::new(), ground="sim", kernel=None,
    stop=None))]
pub fn swept<'py>(
    py: Python<'py>,
    base: &Scenario,
    keys: Vec<String>,
    points: Vec<Vec<String>>,
    first: i64,
    apart: Vec<String>,
    ground: &str,
    kernel: Option<String>,
    stop: Option<&Stop>,
) -> PyResult<Bound<'py, PyBytes>> {
    let flag = Flag::new();
    let ground = Hosting::new(built(ground, kernel, &flag)?, flag.get());
    let made = watched(
        py,
        &flag,
        stop,
        || Ok(()),
        || {
            let union = Union::of(base, &keys, &points).map_err(|e| refused(&e))?;
            let options = Options {
                jobs: 1,
                interrupt: flag.get(),
                ..Options::default()
            };
            let table = match &union.scenario {
                Some(all) => {
                    tabled(all, &options, &ground).map_err(|e| ground.error(e, not_run))?
                }
                None => return Err(ScenarioError::new_err("error: there is no point to run")),
            };
            let table = union.by_point(table, first, &keys, &points, &apart);
            table
                .to_parquet()
                .map_err(|e| FullpipeError::new_err(e.to_string()))
        },
    )?;
    Ok(PyBytes::new(py, &made?))
}

/// The cases of all points, one after the other.
struct Union {
    scenario: Option<scenario::Scenario>,
    /// The point of each case, and which of the point's cases it is.
    places: Vec<(usize, usize)>,
}

impl Union {
    fn of(
        base: &Scenario,
        keys: &[String],
        points: &[Vec<String>],
    ) -> Result<Self, scenario::Diagnostics> {
        let mut union = Union {
            scenario: None,
            places: Vec::new(),
        };
        let mut cases = Vec::new();
        for (i, values) in points.iter().enumerate() {
            let mut overrides = base.overrides.clone();
            // Nobody reads the series, and no metric depends on them.
            overrides.set.push(("measure.trace".into(), "off".into()));
            let set = keys.iter().cloned().zip(values.iter().cloned());
            overrides.set.extend(set);
            let (text, origin) = (&base.read.text, &base.read.origin);
            let mut point = scenario::Scenario::parse(text, origin, &overrides)?;
            let before = cases.len();
            for (j, mut case) in point.cases.drain(..).enumerate() {
                case.index += before;
                case.baseline = case.baseline.map(|base| base + before);
                cases.push(case);
                union.places.push((i, j));
            }
            union.scenario.get_or_insert(point);
        }
        if let Some(all) = &mut union.scenario {
            all.cases = cases;
            all.expectations.clear();
            all.reports.clear();
        }
        Ok(union)
    }

    /// The table of all cases with the points in front.
    fn by_point(
        &self,
        table: Columns,
        first: i64,
        keys: &[String],
        points: &[Vec<String>],
        apart: &[String],
    ) -> Columns {
        let rows: Vec<(usize, usize)> = match table.int("case") {
            Some(cases) => cases.iter().map(|c| self.places[*c as usize]).collect(),
            None => Vec::new(),
        };
        let mut all = Columns::default();
        let point = rows.iter().map(|(point, _)| *point as i64 + first);
        all.push("point", Column::Int(point.collect()));
        for (i, key) in keys.iter().enumerate() {
            let values = rows.iter().map(|(point, _)| points[*point][i].clone());
            all.push(key.as_str(), Column::Text(values.collect()));
        }
        keys.iter().for_each(|key| add_axis(&mut all, key));
        let case = rows.iter().map(|(_, case)| *case as i64);
        all.push("case", Column::Int(case.collect()));
        for (name, column) in table.columns {
            if all.column(&name).is_none() {
                all.push(name, column);
            }
        }
        all.columns.retain(|(name, _)| !apart.contains(name));
        all
    }
}
