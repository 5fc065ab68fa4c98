//! Runs the same cells in the simulator.

use fullpipe_cc::StackSpec;
use fullpipe_run::RunSpec;
use fullpipe_sim::run as simulate;
use rayon::prelude::*;

use crate::cell::{Cell, Kernel, Model, ScenarioError, guest};
use crate::measure::GRID_MS;
use crate::observed;
use crate::reference::Run;

/// Failures of a simulated cell.
#[derive(Debug, thiserror::Error)]
pub enum SimulatedError {
    /// The algorithm is not known to the simulator.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A fault of the simulator.
    #[error("{cell}: {reason}")]
    Run {
        /// Name of the cell.
        cell: String,
        /// The simulator's error message.
        reason: String,
    },
}

/// The run of a cell. Its TCP-LP is told the offset of the time stamps that the kernel draws, and
/// the hosts of 6.12 have the windows and the send buffer of such.
///
/// # Errors
/// [`SimulatedError::Scenario`] if the simulator does not know an algorithm.
pub fn spec(cell: &Cell, seed: u64, model: Model) -> Result<RunSpec, SimulatedError> {
    let mut spec = cell.spec(seed, model)?;
    for flow in &mut spec.flows {
        if model == Model::Linux && cell.kernel == Kernel::V6_12 {
            guest::on_6_12(flow);
        }
        if flow.stack.to_string() == "lp-linux" {
            let name = format!("lp-linux(stamp_offset={})", guest::STAMP_OFFSET_MS);
            flow.stack = StackSpec::parse(&name).map_err(|e| SimulatedError::Run {
                cell: cell.id(),
                reason: e.to_string(),
            })?;
        }
    }
    Ok(spec)
}

/// One run of a cell, reduced; curves have the grid's step so that they can be shifted.
///
/// # Errors
/// [`SimulatedError`].
pub fn run(cell: &Cell, repeat: u32, model: Model) -> Result<Run, SimulatedError> {
    let timed = cell.run(repeat);
    let spec = spec(&timed, u64::from(repeat) + 1, model)?;
    reduced(cell, repeat, &spec)
}

/// Runs a specification of a cell and reduces it.
///
/// # Errors
/// [`SimulatedError::Run`].
pub fn reduced(cell: &Cell, repeat: u32, spec: &RunSpec) -> Result<Run, SimulatedError> {
    let outcome = simulate(spec).map_err(|e| SimulatedError::Run {
        cell: cell.id(),
        reason: e.to_string(),
    })?;
    Ok(Run {
        cell: cell.id(),
        repeat,
        kernel: String::new(),
        hz: cell.kernel.hz(),
        command: format!("fullpipe-calibrate sim --only {}", cell.id()),
        counters: Default::default(),
        flows: observed::flows(&cell.run(repeat), &outcome, Some(GRID_MS)),
    })
}

/// Every repeat of every cell, on all processors; `progress` hears of each run's end. A cell that
/// cannot be run is an error in its place.
pub fn run_all(
    cells: &[Cell],
    model: Model,
    progress: &(dyn Fn(&str) + Sync),
) -> Vec<Result<Run, SimulatedError>> {
    let runs = cells
        .iter()
        .flat_map(|c| (0..c.repeats).map(move |r| (c, r)));
    let runs: Vec<(&Cell, u32)> = runs.collect();
    let made = runs
        .par_iter()
        // One at a time, in order: the dear runs are at the end and would all be one thread's.
        .with_max_len(1)
        .map(|(cell, repeat)| {
            let result = run(cell, *repeat, model);
            progress(&cell.run_name(*repeat));
            result
        });
    made.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{self, MSS, PACKET};

    #[test]
    fn a_receiver_of_6_12_has_its_window_and_the_kernel_its_own() {
        let first = |id: &str| {
            let cell = cell::of(id).unwrap();
            let of = |s: RunSpec| {
                (
                    s.flows[0].receiver.window.first,
                    s.flows[0].receiver.window.max,
                )
            };
            let simulated = spec(&cell, 1, Model::Linux).unwrap();
            (of(simulated), of(cell.spec(1, Model::Linux).unwrap()))
        };
        let preset = (Some(45), Some(23_172));
        assert_eq!(first("reno-20x30-b1@6.1"), (preset, preset));
        let new = (Some(23_172), Some(29_328));
        assert_eq!(first("reno-20x30-b1@6.12"), (new, preset));
    }

    #[test]
    fn reno_fills_a_small_path_as_arithmetic_says() {
        let cell = cell::of("reno-20x30-b2").unwrap();
        let run = run(&cell, 0, Model::Rfc).unwrap();
        let m = run.flows[0].measure;
        // A buffer of two BDP never runs dry: all of 20 Mbit/s but the headers and the first round
        // trips.
        let full = 20.0 * f64::from(MSS) / f64::from(PACKET);
        assert!(
            m.goodput_mbit < full && m.goodput_mbit > 0.98 * full,
            "{m:?}"
        );
        // Path and buffer hold 150 packets; when slow start learns of the overflow, a round trip
        // later, its window is twice that and what it sent while three duplicates came.
        let first = m.first_loss_cwnd.unwrap();
        assert!((300.0..=310.0).contains(&first), "{first}");
        assert!(m.rtt_mean_ms > 30.0 && m.rtt_p95_ms <= 91.0, "{m:?}");
        let curve = run.flows[0].curve.as_ref().unwrap();
        // No row before the handshake is over.
        assert_eq!(curve.start_ms, 40);
        assert_eq!(curve.start_ms + 10 * (curve.cwnd.len() as u64 - 1), 120_000);
    }
}
