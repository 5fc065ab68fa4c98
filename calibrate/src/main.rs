//! `fullpipe-calibrate`: runs the calibration cells with Linux and with the simulator, and compares.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use fullpipe_calibrate::cell::{self, Cell};
use fullpipe_calibrate::oracle::Oracle;

/// Hold the simulator against Linux 6.1, cell by cell.
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Sub,
}

#[derive(Subcommand)]
enum Sub {
    /// List the cells with their buffers
    #[command(
        after_help = "Examples:\n  fullpipe-calibrate cells\n  fullpipe-calibrate cells --only 'cubic-*'"
    )]
    Cells(Only),
    /// Build the oracle if it is absent and run the cells that are not done yet
    #[command(
        after_help = "Examples:\n  fullpipe-calibrate oracle --only 'reno-20x30-*'\n  fullpipe-calibrate oracle --jobs 2\n  \
                      fullpipe-calibrate oracle --build /var/tmp/oracle --out /var/tmp/oracle/out\n\nStop it at any time: the same command goes on where it was."
    )]
    Oracle(OracleArgs),
}

#[derive(Args)]
struct Only {
    /// Only cells whose name matches: * and ? as in a shell, commas between alternatives
    #[arg(long, value_name = "GLOB", default_value = "*")]
    only: String,
}

#[derive(Args)]
struct Places {
    /// Directory of the oracle's kernel [default: $XDG_CACHE_HOME/fullpipe-oracle or ~/.cache/fullpipe-oracle]
    #[arg(long, value_name = "DIR")]
    build: Option<PathBuf>,
    /// Directory of the oracle's results [default: out in the directory of the kernel]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Directory of the oracle's scripts
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/oracle"), hide_default_value = true)]
    scripts: PathBuf,
}

#[derive(Args)]
struct OracleArgs {
    #[command(flatten)]
    only: Only,
    #[command(flatten)]
    places: Places,
    /// Kernels at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Niceness of the kernels
    #[arg(long, value_name = "N", default_value_t = 10)]
    nice: i32,
    /// Wall time after which a run is given up, s
    #[arg(long, value_name = "S", default_value_t = 3600)]
    limit: u64,
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
    fn oracle(&self, jobs: usize, nice: i32, limit: Duration) -> Oracle {
        let build = self.build.clone().unwrap_or_else(Oracle::default_build);
        let out = self.out.clone().unwrap_or_else(|| build.join("out"));
        Oracle {
            scripts: self.scripts.clone(),
            build,
            out,
            jobs,
            nice,
            limit,
        }
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
        Sub::Cells(only) => {
            println!(
                "{:<32} {:<6} {:>6} {:>5} {:>8} {:>8} {:>4}",
                "cell", "kind", "Mbit/s", "ms", "buffer", "loss", "runs"
            );
            for c in only.cells()? {
                println!(
                    "{:<32} {:<6} {:>6} {:>5} {:>8} {:>8} {:>4}",
                    c.id(),
                    c.kind.to_string(),
                    c.path.rate_mbit,
                    c.path.rtt_ms,
                    c.buffer(),
                    c.loss,
                    c.repeats
                );
            }
            Ok(())
        }
        Sub::Oracle(a) => {
            let cells = a.only.cells()?;
            let oracle = a
                .places
                .oracle(a.jobs, a.nice, Duration::from_secs(a.limit));
            oracle.build().map_err(|e| e.to_string())?;
            oracle
                .run(&cells, &|line| eprintln!("{line}"))
                .map_err(|e| e.to_string())
        }
    }
}
