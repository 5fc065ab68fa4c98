//! `fullpipe-calibrate`: runs the calibration cells with Linux and with the simulator, and
//! compares.

mod fuzz_command;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Args, Parser, Subcommand, ValueEnum};
use fullpipe_calibrate::causes::{Causes, Surprises};
use fullpipe_calibrate::cell::{self, Cell, Model};
use fullpipe_calibrate::compare::compare;
use fullpipe_calibrate::reference::{self, Run};
use fullpipe_calibrate::report::{self, Results};
use fullpipe_calibrate::{ablation, docs, figure, kernel, simulated};

/// Hold the simulator against Linux, cell by cell.
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Sub,
}

#[derive(Subcommand)]
enum Sub {
    /// List the cells with their buffers, or show them as scenarios
    #[command(
        after_help = "Examples:\n  fullpipe-calibrate cells\n  fullpipe-calibrate cells --only 'cubic-*@6.12'\n  \
                      fullpipe-calibrate cells --only reno-20x30-b1 --toml > cell.toml"
    )]
    Cells(CellsArgs),
    /// Run the cells that have no reference yet over Linux's own TCP
    #[command(
        after_help = "Examples:\n  fullpipe-calibrate measure\n  fullpipe-calibrate measure --only '*@6.12' --jobs 2\n  \
                      fullpipe-calibrate measure --only reno-20x30-b1 --again --out again\n\n\
                      The kernels are 6.1, 6.12, 6.1-hz100 and 6.1-hz1000 of `fullpipe linux build`.\n\
                      Stop it at any time: the same command goes on where it was."
    )]
    Measure(MeasureArgs),
    /// Run cells in the simulator
    #[command(
        after_help = "Examples:\n  fullpipe-calibrate sim --only 'reno-20x30-*'\n  fullpipe-calibrate sim --out sim"
    )]
    Sim(SimArgs),
    /// Compare the simulator with the frozen references; fails if a limit is broken and --strict is
    /// given
    #[command(
        after_help = "Examples:\n  fullpipe-calibrate compare\n  fullpipe-calibrate compare --only 'cubic-*' --format json\n  \
                      fullpipe-calibrate compare --sim sim\n  fullpipe-calibrate compare --raw again   (not frozen yet)"
    )]
    Compare(CompareArgs),
    /// Add measured runs to the references of the repository
    #[command(
        after_help = "Examples:\n  fullpipe-calibrate freeze\n  fullpipe-calibrate freeze --out again --to reference --partial"
    )]
    Freeze(FreezeArgs),
    /// Write every cell with both windows into one HTML file
    #[command(
        after_help = "Examples:\n  fullpipe-calibrate report\n  fullpipe-calibrate report --only 'cubic-*' --to cubic.html\n\n\
                      Open it in a browser; `report.html#cell=cubic-100x40-b1` opens a cell."
    )]
    Report(ReportArgs),
    /// Write docs/linux.md: how close the simulator is, where it is not and why
    #[command(
        after_help = "Examples:\n  fullpipe-calibrate docs\n  fullpipe-calibrate docs --to linux.md"
    )]
    Docs(DocsArgs),
    /// Draw the windows of six algorithms on one long path, as SVG and PNG
    #[command(
        after_help = "Examples:\n  fullpipe-calibrate figure\n  fullpipe-calibrate figure --to linux.svg"
    )]
    Figure(FigureArgs),
    /// Search for scenarios on which the simulator and Linux part ways
    #[command(after_help = fuzz_command::EXAMPLES)]
    Fuzz(fuzz_command::FuzzArgs),
}

#[derive(Args)]
struct Only {
    /// Only cells whose name matches: * and ? as in a shell, commas between alternatives
    #[arg(long, value_name = "GLOB", default_value = "*")]
    only: String,
}

#[derive(Args)]
struct CellsArgs {
    #[command(flatten)]
    only: Only,
    /// Print each as a scenario of `fullpipe run`
    #[arg(long)]
    toml: bool,
}

#[derive(Args)]
struct Places {
    /// Directory of measured runs [default: $XDG_CACHE_HOME/fullpipe/calibrate or
    /// ~/.cache/fullpipe/calibrate]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct MeasureArgs {
    #[command(flatten)]
    only: Only,
    #[command(flatten)]
    places: Places,
    /// Kernels at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Run cells that are among the references, too
    #[arg(long)]
    again: bool,
}

#[derive(Args)]
struct SimArgs {
    #[command(flatten)]
    only: Only,
    /// What is simulated: Linux with its modules, or the RFCs with the published algorithms
    #[arg(long, value_enum, default_value = "linux")]
    model: ModelArg,
    /// Write the results into this directory, in the form of the references
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct Linux {
    /// References to judge by [default: those of the repository]
    #[arg(long, value_name = "DIR")]
    reference: Option<PathBuf>,
    /// Judge by measured runs, as far as they are there
    #[arg(long, value_name = "DIR", conflicts_with = "reference")]
    raw: Option<PathBuf>,
}

#[derive(Args)]
struct CompareArgs {
    #[command(flatten)]
    only: Only,
    /// What is simulated: Linux with its modules, or the RFCs with the published algorithms
    #[arg(long, value_enum, default_value = "linux")]
    model: ModelArg,
    /// Results of `sim --out` to judge instead of simulating now
    #[arg(long, value_name = "DIR", conflicts_with = "model")]
    sim: Option<PathBuf>,
    /// Simulate Linux with one switch set back to preset 2026: a field of `docs/linux.md`, or
    /// `stack` for the modules
    #[arg(long, value_name = "SWITCH", conflicts_with_all = ["model", "sim"])]
    without: Option<String>,
    #[command(flatten)]
    linux: Linux,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Fail if any cell is outside a limit
    #[arg(long)]
    strict: bool,
}

#[derive(Args)]
struct FreezeArgs {
    #[command(flatten)]
    places: Places,
    /// Where the references go [default: calibrate/reference of the repository]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Write even if runs are missing
    #[arg(long)]
    partial: bool,
}

#[derive(Args)]
struct ReportArgs {
    #[command(flatten)]
    only: Only,
    #[command(flatten)]
    linux: Linux,
    /// The file
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    to: PathBuf,
}

#[derive(Args)]
struct DocsArgs {
    #[command(flatten)]
    linux: Linux,
    /// The file [default: docs/linux.md of the repository]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Args)]
struct FigureArgs {
    #[command(flatten)]
    linux: Linux,
    /// Where the SVG goes [default: docs/img/linux.svg of the repository]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModelArg {
    /// Preset linux, modules as the kernel has them
    Linux,
    /// Preset 2026, algorithms as published
    Rfc,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

impl From<ModelArg> for Model {
    fn from(arg: ModelArg) -> Self {
        match arg {
            ModelArg::Linux => Self::Linux,
            ModelArg::Rfc => Self::Rfc,
        }
    }
}

impl Only {
    fn cells(&self) -> Result<Vec<Cell>, String> {
        let cells: Vec<Cell> = cell::all()
            .into_iter()
            .filter(|c| cell::matches(&self.only, &c.id()))
            .collect();
        if cells.is_empty() {
            return Err(format!(
                "no cell matches `{}`: `fullpipe-calibrate cells` lists them",
                self.only
            ));
        }
        Ok(cells)
    }
}

impl Places {
    fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(kernel::default_out)
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("fullpipe-calibrate: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Sub) -> Result<(), String> {
    match command {
        Sub::Cells(a) => {
            let cells = a.only.cells()?;
            if a.toml {
                let texts: Vec<String> = cells.iter().map(|c| c.scenario(Model::Linux)).collect();
                print!("{}", texts.join("\n"));
            } else {
                print!("{}", table::cells(&cells));
            }
            Ok(())
        }
        Sub::Measure(a) => {
            let frozen = match a.again {
                true => Vec::new(),
                false => reference::read(&reference::frozen_dir()).map_err(text)?,
            };
            let (cells, out) = (a.only.cells()?, a.places.out());
            kernel::measure(&cells, &frozen, &out, a.jobs, &|line| eprintln!("{line}"))
                .map_err(text)
        }
        Sub::Sim(a) => {
            let cells = a.only.cells()?;
            let runs = simulate(&cells, a.model.into());
            if let Some(dir) = &a.out {
                reference::write(dir, &runs).map_err(text)?;
            }
            print!("{}", table::runs(&runs));
            if runs.is_empty() {
                return Err("no cell could be simulated".into());
            }
            Ok(())
        }
        Sub::Compare(a) => {
            let cells = a.only.cells()?;
            let oracle = a.linux.read(&cells)?;
            let known = known(&cells, &oracle);
            let sim = match (&a.sim, a.without.as_deref()) {
                (Some(dir), _) => reference::read(dir).map_err(text)?,
                (None, None) => simulate(&known, a.model.into()),
                (None, switch) => {
                    let runs = known.iter().map(|c| ablation::without(c, switch));
                    runs.collect::<Result<Vec<_>, _>>().map_err(text)?.concat()
                }
            };
            let comparison = compare(&cells, &oracle, &sim);
            match a.format {
                Format::Table => {
                    print!("{}", table::comparison(&comparison));
                    // The causes are those of the Linux model's deviations.
                    if matches!(a.model, ModelArg::Linux) && a.without.is_none() {
                        let causes = Causes::kept().map_err(text)?;
                        print!("{}", table::causes(&causes, &comparison));
                        causes.check(&comparison).map_err(text)?;
                    }
                }
                Format::Json => println!(
                    "{}",
                    serde_json::to_string_pretty(&comparison).map_err(text)?
                ),
            }
            let outside = comparison.verdicts.iter().filter(|v| !v.inside).count();
            if a.strict && outside + comparison.missing.len() > 0 {
                let missing = comparison.missing.len();
                return Err(format!(
                    "{outside} cells are outside, {missing} are missing"
                ));
            }
            Ok(())
        }
        Sub::Report(a) => report(a),
        Sub::Docs(a) => docs(a),
        Sub::Figure(a) => figure(a),
        Sub::Fuzz(a) => fuzz_command::fuzz(a),
        Sub::Freeze(a) => {
            let frozen = reference::read(&reference::frozen_dir()).map_err(text)?;
            let out = a.places.out();
            let (runs, missing) = kernel::collect(&cell::all(), &frozen, &out).map_err(text)?;
            if !missing.is_empty() && !a.partial {
                return Err(format!(
                    "{} runs are missing, the first is {}; make them with `measure` or freeze what is there with --partial",
                    missing.len(),
                    missing[0]
                ));
            }
            let to = a.to.clone().unwrap_or_else(reference::frozen_dir);
            reference::write(&to, &runs).map_err(text)?;
            eprintln!(
                "{} runs frozen in {}, {} missing",
                runs.len(),
                to.display(),
                missing.len()
            );
            Ok(())
        }
    }
}

impl Linux {
    fn read(&self, cells: &[Cell]) -> Result<Vec<Run>, String> {
        match (&self.raw, &self.reference) {
            (Some(out), _) => Ok(kernel::collect(cells, &[], out).map_err(text)?.0),
            (None, Some(dir)) => reference::read(dir).map_err(text),
            (None, None) => reference::read(&reference::frozen_dir()).map_err(text),
        }
    }
}

fn report(a: &ReportArgs) -> Result<(), String> {
    let cells = a.only.cells()?;
    let oracle = a.linux.read(&cells)?;
    let sim = simulate(&known(&cells, &oracle), Model::Linux);
    let causes = Causes::kept().map_err(text)?;
    let comparison = compare(&cells, &oracle, &sim);
    let html = report::html(&Results {
        cells: &cells,
        oracle: &oracle,
        sim: &sim,
        comparison: &comparison,
        causes: &causes,
    });
    write(&a.to, html.as_bytes())?;
    causes.check(&comparison).map_err(text)
}

fn docs(a: &DocsArgs) -> Result<(), String> {
    let cells = cell::all();
    let oracle = a.linux.read(&cells)?;
    let (causes, surprises) = (
        Causes::kept().map_err(text)?,
        Surprises::kept().map_err(text)?,
    );
    let sim = simulate(&known(&cells, &oracle), Model::Linux);
    let comparison = compare(&cells, &oracle, &sim);
    let results = Results {
        cells: &cells,
        oracle: &oracle,
        sim: &sim,
        comparison: &comparison,
        causes: &causes,
    };
    let page = docs::page(&results, &surprises).map_err(text)?;
    let to = a.to.clone().unwrap_or_else(|| docs_dir().join("linux.md"));
    write(&to, page.as_bytes())
}

fn figure(a: &FigureArgs) -> Result<(), String> {
    let cells = figure::cells();
    let oracle = a.linux.read(&cells)?;
    let sim = simulate(&cells, Model::Linux);
    let svg = figure::svg(&oracle, &sim).map_err(text)?;
    let default = || docs_dir().join("img/linux.svg");
    let to = a.to.clone().unwrap_or_else(default);
    write(&to, svg.as_bytes())
}

fn docs_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
    eprintln!("{}: {} bytes", path.display(), bytes.len());
    Ok(())
}

/// The cells that have a result of Linux: the others need no simulation.
fn known(cells: &[Cell], oracle: &[Run]) -> Vec<Cell> {
    let has = |c: &&Cell| oracle.iter().any(|r| r.cell == c.id());
    cells.iter().filter(has).cloned().collect()
}

/// Runs cells; those that cannot be run are named on the standard error and left out.
fn simulate(cells: &[Cell], model: Model) -> Vec<Run> {
    let done = AtomicUsize::new(0);
    let all: u32 = cells.iter().map(|c| c.repeats).sum();
    let results = simulated::run_all(cells, model, &|name| {
        let n = done.fetch_add(1, Ordering::Relaxed) + 1;
        eprintln!("{n}/{all} {name}");
    });
    let mut runs = Vec::new();
    for result in results {
        match result {
            Ok(run) => runs.push(run),
            Err(e) => eprintln!("fullpipe-calibrate: {e}"),
        }
    }
    runs
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
