//! The report: a stored result, or the results of a study, as one HTML page that needs no network.
//!
//! What it is: the data of the page ([`data`], from which `web/src/generated/data.ts` is made),
//! taken from the files of the store alone, and the page around it. What it is not: it draws
//! nothing; the template, built from `web/`, does that in the browser. The same results give the
//! same bytes.
//!
//! All cases share [`BUDGET`] bytes of curves, extremes kept, unless there are so many that
//! [`MIN_ROWS`] each are more; tables grow with the cases, by about 1 kB each.

pub(crate) mod axes;
pub(crate) mod curves;
pub mod data;
mod html;
mod pack;
mod ranking;
pub(crate) mod transfers;
mod values;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use crate::falsification;
use crate::figure::has_threshold;
use curves::{Drawn, Grid};
use data::{Axis, CasePart, Completions, Curve, Curves, Figure, Page, ScenarioPart};
use fullpipe_metrics::Expression;
use fullpipe_results::compare::Runs;
use fullpipe_results::label;
use fullpipe_results::result::{RunResult, VERSION};
pub use fullpipe_results::store::REPORT;
use fullpipe_results::store::{Manifest, ResultDir, SeriesKind, StoreError};

/// A report that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The page.
    pub path: PathBuf,
    /// Size, bytes.
    pub bytes: u64,
}

/// Writes `report.html` into the directory of a result, or of a study: a directory with one result
/// per subdirectory.
///
/// # Errors
/// If there is no finished result, if it cannot be read or if the page cannot be written.
pub fn write(dir: &Path) -> Result<Written, StoreError> {
    if ResultDir::is_one(dir) {
        return save(dir, &page(&[ResultDir::open(dir)?], None)?);
    }
    let (study, results) = match Study::of(dir) {
        Some(study) => {
            let open = |name: &String| ResultDir::open(&dir.join(name));
            let results = study.results.iter().map(open).collect::<Result<_, _>>()?;
            (study, results)
        }
        None => (Study::named_after(dir), ResultDir::below(dir)?),
    };
    if results.is_empty() {
        return Err(StoreError::NoResult {
            dir: dir.to_owned(),
        });
    }
    save(dir, &page(&results, Some(study))?)
}

/// What a page of several results says of them together; kept beside them as `study.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Study {
    /// Name.
    pub name: String,
    /// Description, shown under the title.
    pub about: String,
    /// Subdirectories of its results, in order.
    pub results: Vec<String>,
}

impl Study {
    fn of(dir: &Path) -> Option<Study> {
        let text = std::fs::read(dir.join(STUDY)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn named_after(dir: &Path) -> Study {
        let whole = dir.canonicalize().ok();
        let name = whole.as_deref().unwrap_or(dir).file_name();
        Study {
            name: name.map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
            ..Study::default()
        }
    }
}

const STUDY: &str = "study.json";

/// Writes the report of a study into `dir`, and what the study is.
///
/// # Errors
/// If a result cannot be read or a file cannot be written.
pub fn write_study(dir: &Path, study: &Study) -> Result<Written, StoreError> {
    let text = serde_json::to_string_pretty(study).expect("strings only") + "\n";
    ResultDir::write_beside(dir, STUDY, text.as_bytes())?;
    write(dir)
}

fn save(dir: &Path, page: &Page) -> Result<Written, StoreError> {
    let text = html::page(&page.title, page);
    let path = ResultDir::write_beside(dir, REPORT, text.as_bytes())?;
    Ok(Written {
        path,
        bytes: text.len() as u64,
    })
}

/// The data of the page of these results.
///
/// # Errors
/// If a file of a result cannot be read.
pub fn page(results: &[ResultDir], study: Option<Study>) -> Result<Page, StoreError> {
    let read: Vec<(&ResultDir, RunResult)> = results
        .iter()
        .map(|d| Ok((d, d.result()?)))
        .collect::<Result<_, StoreError>>()?;
    let cases: usize = read.iter().map(|(_, r)| r.cases.len()).sum();
    let rows = (ROWS_OF_ALL / cases.max(1)).clamp(*ROWS.start(), *ROWS.end());
    let mut scenarios = parts(&read, rows)?;
    let size = curve_bytes(&scenarios);
    if size > BUDGET {
        let fewer = rows * BUDGET / size;
        scenarios = parts(&read, fewer.max(MIN_ROWS))?;
    }
    tell_apart(&mut scenarios, results);
    let study = study.unwrap_or_else(|| {
        scenarios.first().map_or_else(Study::default, |s| Study {
            name: s.name.clone(),
            about: s.about.clone(),
            ..Study::default()
        })
    });
    Ok(Page {
        version: data::VERSION,
        title: study.name,
        about: study.about,
        fullpipe: VERSION.to_owned(),
        metrics: values::metrics(scenarios.iter().flat_map(|s| &s.tables)),
        scenarios,
    })
}

/// Bytes of curves in one page, base64.
pub const BUDGET: usize = 3_000_000;
/// Rows of all cases together, before their size is known.
const ROWS_OF_ALL: usize = 72_000;
const ROWS: std::ops::RangeInclusive<usize> = 240..=1200;
const MIN_ROWS: usize = 100;

fn parts(read: &[(&ResultDir, RunResult)], rows: usize) -> Result<Vec<ScenarioPart>, StoreError> {
    read.iter()
        .map(|(dir, result)| scenario(dir, result, rows))
        .collect()
}

/// Results of one scenario bear the names of their directories, too.
fn tell_apart(scenarios: &mut [ScenarioPart], results: &[ResultDir]) {
    let names: Vec<String> = scenarios.iter().map(|s| s.name.clone()).collect();
    for (scenario, result) in scenarios.iter_mut().zip(results) {
        let same = names.iter().filter(|name| **name == scenario.name);
        let dir = result.path().file_name().filter(|_| same.count() > 1);
        if let Some(dir) = dir {
            scenario.name = format!("{} ({})", scenario.name, dir.to_string_lossy());
        }
    }
}

fn curve_bytes(scenarios: &[ScenarioPart]) -> usize {
    let cases = scenarios.iter().flat_map(|s| &s.cases);
    cases
        .filter_map(|c| Some(c.curves.as_ref()?.data.len()))
        .sum()
}

fn scenario(dir: &ResultDir, result: &RunResult, rows: usize) -> Result<ScenarioPart, StoreError> {
    let manifest = dir.manifest();
    let file = File::of(&manifest.scenario_text);
    let params = label::texts(result.cases.iter().map(|c| &c.params));
    let axes = axes::axes(&params, &file.matrix);
    let drawn: Vec<(Vec<Drawn>, Vec<Completions>)> = (0..result.cases.len())
        .into_par_iter()
        .map(|i| Ok((drawn(dir, result, i, rows)?, completions(dir, result, i)?)))
        .collect::<Result<_, StoreError>>()?;
    let mut layouts: Vec<Vec<Curve>> = Vec::new();
    let mut cases = Vec::new();
    for (((case, params), label), (drawn, completions)) in result
        .cases
        .iter()
        .zip(&params)
        .zip(label::labels(&params))
        .zip(drawn)
    {
        let at = |axis: &Axis| {
            let value = label::find(params, &axis.key).unwrap_or_default();
            axis.values.iter().position(|v| v == value).unwrap_or(0)
        };
        cases.push(CasePart {
            label,
            at: axes.iter().map(at).collect(),
            simulated_s: case.simulated_s,
            warmup_s: Some(case.warmup_s).filter(|&s| s > 0.0),
            delivered_packets: case.delivered_packets,
            curves: pack_curves(drawn, Grid::new(case.simulated_s, rows), &mut layouts),
            seeds: case.seeds.len(),
            completions,
        });
    }
    let expressions = file.expressions(result);
    let asked = ranking::metrics(&axes, &file.report).into_iter();
    let runs = Runs::of_metrics(dir, asked.chain(expressions.iter().map(String::as_str)))?;
    let mut tables = values::tables(result);
    values::add_expressions(&mut tables, &expressions, &runs);
    let ranking = ranking::ranking(result, &runs, &axes, &cases, &file.report);
    let side_by_side = values::side_by_side(&tables, &file.report);
    Ok(ScenarioPart {
        name: result.scenario.clone(),
        about: file.about,
        origin: manifest.origin.clone(),
        text: manifest.scenario_text.clone(),
        text_sha256: manifest.scenario_sha256.to_string(),
        ground: ground(
            &result.ground,
            result.kernel.as_deref(),
            manifest.peer.as_deref(),
        ),
        fullpipe: manifest.fullpipe.clone(),
        engine: manifest.engine.clone(),
        machine: machine(manifest),
        seeds: manifest.seeds.clone(),
        fixed: path_of(manifest)
            .into_iter()
            .chain(fixed(&params, &axes))
            .collect(),
        axes,
        cases,
        tables,
        side_by_side,
        ranking,
        expectations: values::expectations(result),
        falsification: falsification::beside(
            dir.path(),
            &result.scenario,
            &manifest.scenario_sha256.to_string(),
        ),
        figures: file.report,
        layouts,
        warmup: result.warmup(),
        unsure: remarks(result),
        untrue: result.untrue(),
        fidelity: result.test_bed(),
    })
}

/// What is to be said before the means are believed.
fn remarks(result: &RunResult) -> Option<String> {
    let partial = result.partial().map(|why| format!("PARTIAL: {why}"));
    let all: Vec<String> = [partial, result.unsure(), result.repeated()]
        .into_iter()
        .flatten()
        .collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// What the page needs of the scenario's file and is not in the result. The file was valid when it
/// ran; one that a later version cannot read any more only loses these.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct File {
    about: String,
    report: Vec<Figure>,
    pub(crate) matrix: toml::Table,
}

impl File {
    pub(crate) fn of(text: &str) -> File {
        toml::from_str(text).unwrap_or_default()
    }

    /// Expressions over metrics that its figures and expectations are about.
    fn expressions(&self, result: &RunResult) -> BTreeSet<String> {
        let figures = self.report.iter().flat_map(|f| f.metric.iter().chain(&f.y));
        let expectations = result.expectations.iter().map(|e| &e.metric);
        let all = figures.chain(expectations);
        all.filter(|m| Expression::is_one(m)).cloned().collect()
    }
}

fn fixed(params: &[Vec<(String, String)>], axes: &[Axis]) -> Vec<(String, String)> {
    let first = params.first().into_iter().flatten();
    first
        .filter(|(key, _)| axes.iter().all(|a| a.key != *key))
        .cloned()
        .collect()
}

/// Where the path is not the scenario's, why nothing is shown of its links.
fn path_of(manifest: &Manifest) -> Option<(String, String)> {
    let peer = manifest.peer.as_deref()?;
    let path = format!(
        "the one to {peer}, as it was: links, queues and drops of the scenario do not apply, and nothing is drawn of them; `path.rate` and `path.rtt` label cases, and say what 1BDP means"
    );
    Some(("path".to_owned(), path))
}

/// Where it ran, in words: a kernel is named whatever the path was.
fn ground(name: &str, kernel: Option<&str>, peer: Option<&str>) -> String {
    let kernel = kernel.map_or(String::new(), |kernel| format!(": {kernel}"));
    match peer {
        None => format!("{name}{kernel}"),
        Some(peer) if kernel.is_empty() => format!("{name} over the path to {peer}, as it was"),
        Some(peer) => format!("{name}{kernel}, over the path to {peer}, as it was"),
    }
}

fn machine(manifest: &Manifest) -> String {
    let m = &manifest.machine;
    let cpu = m.cpu.as_deref().unwrap_or("unknown processor");
    format!("{cpu}, {} threads, {} {}", m.cpus, m.os, m.arch)
}

/// The short flows of a case, all seeds.
fn completions(
    dir: &ResultDir,
    result: &RunResult,
    case: usize,
) -> Result<Vec<Completions>, StoreError> {
    let mut tables = Vec::new();
    for &seed in &result.cases[case].seeds {
        tables.extend(dir.series(case, seed, SeriesKind::Transfers)?);
    }
    Ok(transfers::completions(&tables, result.cases[case].warmup_s))
}

/// The curves of a case's first seed.
fn drawn(
    dir: &ResultDir,
    result: &RunResult,
    case: usize,
    rows: usize,
) -> Result<Vec<Drawn>, StoreError> {
    let c = &result.cases[case];
    let Some(&seed) = c.seeds.first() else {
        return Ok(Vec::new());
    };
    if c.simulated_s <= 0.0 {
        return Ok(Vec::new());
    }
    let grid = Grid::new(c.simulated_s, rows);
    let mut out = Vec::new();
    if let Some(series) = dir.series(case, seed, SeriesKind::Flows)? {
        let without = c.flows.iter().filter(|flow| !has_threshold(&flow.stack));
        let without: Vec<&str> = without.map(|flow| flow.name.as_str()).collect();
        let all = curves::flows(grid, &series).into_iter();
        let has = |curve: &Curve| curve.what != "ssthresh" || !without.contains(&&*curve.of);
        out.extend(all.filter(|(curve, _)| has(curve)));
    }
    if let Some(series) = dir.series(case, seed, SeriesKind::Links)? {
        out.extend(curves::links(grid, &series));
    }
    if let Some(series) = dir.series(case, seed, SeriesKind::Samples)? {
        out.extend(curves::samples(grid, &series));
    }
    if let Some(series) = dir.series(case, seed, SeriesKind::Pings)? {
        out.extend(curves::pings(grid, &series));
    }
    Ok(out)
}

fn pack_curves(drawn: Vec<Drawn>, grid: Grid, layouts: &mut Vec<Vec<Curve>>) -> Option<Curves> {
    if drawn.is_empty() {
        return None;
    }
    let (layout, columns): (Vec<Curve>, Vec<Vec<f64>>) = drawn.into_iter().unzip();
    let known = layouts.iter().position(|l| *l == layout);
    let layout = known.unwrap_or_else(|| {
        layouts.push(layout);
        layouts.len() - 1
    });
    Some(Curves {
        step: grid.step,
        rows: grid.rows,
        layout,
        data: pack::curves(&columns),
    })
}

#[cfg(test)]
mod tests {
    use super::ground;

    #[test]
    fn a_kernel_is_named_over_any_path() {
        assert_eq!(ground("udp", None, None), "udp");
        let running = Some("Linux 6.18.1, running");
        assert_eq!(
            ground("kernel", running, None),
            "kernel: Linux 6.18.1, running"
        );
        let there = Some("dtn.example.org");
        assert_eq!(
            ground("udp", None, there),
            "udp over the path to dtn.example.org, as it was"
        );
        assert_eq!(
            ground("kernel", running, there),
            "kernel: Linux 6.18.1, running, over the path to dtn.example.org, as it was"
        );
    }
}
