//! Runs the same cells in the simulator.

use fullpipe_cc::StackSpec;
use fullpipe_flow::{EpisodeKind, Preset, ReceiverConfig, SenderConfig};
use fullpipe_run::{Buffer, Drops, FlowOutcome, FlowSpec, LinkSpec, Loss, RunSpec, Trace};
use fullpipe_sim::run as simulate;
use fullpipe_units::{Rate, Span, Time};
use rayon::prelude::*;

use crate::cell::{Cell, MSS, PACKET};
use crate::measure::{Curve, Event, GRID_MS, Record, Row, measure};
use crate::reference::{FlowResult, Run};

/// Which of the simulator's descriptions of a host is held against Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Linux 6.1: preset `linux` and the kernel's modules (`reno-linux`, ...).
    Linux,
    /// The RFCs: preset `2026` and the published algorithms. Shows what the Linux variants are good
    /// for.
    Rfc,
}

/// Failures of a simulated cell.
#[derive(Debug, thiserror::Error)]
pub enum SimulatedError {
    /// The algorithm is not known to the simulator.
    #[error("{cell}: {reason}")]
    Stack {
        /// Name of the cell.
        cell: String,
        /// The registry's word.
        reason: String,
    },
    /// A fault of the simulator.
    #[error("{cell}: {reason}")]
    Run {
        /// Name of the cell.
        cell: String,
        /// The simulator's error message.
        reason: String,
    },
}

/// What the guest of the oracle is, beside its path.
pub mod guest {
    use fullpipe_units::Span;

    /// Ticks per second of a user-mode kernel.
    pub const HZ: u32 = 100;

    /// The first flow connects this long after a tick: `CLOCK_MONOTONIC` reads 0.500909312 s, ticks
    /// come every 10 ms.
    pub const AFTER_TICK: Span = Span::from_nanos(909_312);

    /// Timers go off up to this late: two that are due within half a microsecond go off together
    /// (`TIMER_MIN_DELTA`). Without it, packets that arrive and leave in the same instant would
    /// always do so in the same order.
    pub const LATENESS: Span = Span::from_nanos(500);

    /// Of processes that wake in the same instant the last one runs first: its window is the first
    /// in the queue.
    pub const TURN: Span = Span::from_micros(1);

    /// The receiver's time stamps are shifted by a random number for each connection
    /// (`tcp_timestamps = 1`), which TCP-LP takes for part of the delay. Seven in eight are as good
    /// as this one.
    pub const STAMP_OFFSET_MS: u32 = 1 << 31;
}

impl Model {
    /// Sender, receiver and congestion control of a host with a kernel's module.
    fn host(self, module: &str) -> Result<(SenderConfig, ReceiverConfig, StackSpec), String> {
        let (preset, name) = match self {
            Self::Linux if module == "lp" => (
                Preset::Linux,
                format!("lp-linux(stamp_offset={})", guest::STAMP_OFFSET_MS),
            ),
            Self::Linux => (Preset::Linux, format!("{module}-linux")),
            Self::Rfc => (Preset::Y2026, module.to_owned()),
        };
        let stack = StackSpec::parse(&name).map_err(|e| e.to_string())?;
        let mut sender = SenderConfig::preset(preset, PACKET);
        let mut receiver = ReceiverConfig::preset(preset);
        debug_assert_eq!(sender.mss, MSS);
        sender.timers.hz = guest::HZ;
        if self == Self::Linux {
            receiver.acks.hz = Some(guest::HZ);
        }
        Ok((sender, receiver, stack))
    }
}

/// The run of a cell: bottleneck without delay, then half the RTT each way, random loss between the
/// two.
///
/// # Errors
/// [`SimulatedError::Stack`] if the simulator does not know an algorithm.
pub fn spec(cell: &Cell, seed: u64, model: Model) -> Result<RunSpec, SimulatedError> {
    let half = Span::from_micros(u64::from(cell.path.rtt_ms) * 500);
    let link = |name: &str, rate: Option<Rate>, delay, buffer, loss| LinkSpec {
        loss,
        jitter: if rate.is_none() {
            guest::LATENESS
        } else {
            Span::ZERO
        },
        ..LinkSpec::new(name, rate, delay, buffer)
    };
    let loss = if cell.loss > 0.0 {
        Loss::Bernoulli { p: cell.loss }
    } else {
        Loss::None
    };
    let rate = Rate::from_bits_per_sec(u64::from(cell.path.rate_mbit) * 1_000_000);
    let buffer = Buffer::Packets(cell.buffer());
    let links = vec![
        link("bottleneck", Some(rate), Span::ZERO, buffer, Loss::None),
        link("forward", None, half, Buffer::Unlimited, loss),
        link("back", None, half, Buffer::Unlimited, Loss::None),
    ];
    let mut flows = Vec::new();
    for (i, module) in cell.flows.iter().enumerate() {
        let (sender, receiver, stack) =
            model.host(module).map_err(|reason| SimulatedError::Stack {
                cell: cell.id(),
                reason,
            })?;
        flows.push(FlowSpec {
            name: format!("flow{i}"),
            stack,
            sender,
            receiver,
            forward: vec![0, 1],
            back: vec![2],
            local_queue: false,
            start: Time::ZERO
                + guest::AFTER_TICK
                + Span::from_millis(cell.start_ms(i))
                + guest::TURN * (cell.flows.len() - 1 - i) as u64,
            start_spread: Span::ZERO,
            stop: None,
            drops: Drops::default(),
            arrival_drops: Default::default(),
            reverse: false,
        });
    }
    Ok(RunSpec {
        seed,
        duration: guest::AFTER_TICK + Span::from_millis(cell.end_ms()),
        measure_from: Time::ZERO + guest::AFTER_TICK + Span::from_millis(cell.from_ms()),
        interval: Span::from_secs(1),
        links,
        flows,
        trace: Trace::Every(Span::from_millis(TRACE_MS)),
        ..RunSpec::default()
    })
}

/// The record of a simulated flow.
pub fn record(flow: &FlowOutcome) -> Record {
    let ms = |t: Time| {
        t.saturating_since(Time::ZERO + guest::AFTER_TICK)
            .as_millis_f64()
    };
    // Without a sample of the RTT the handshake is not over: Linux is not seen before that either.
    let rows = flow.series.rows.iter();
    let rows = rows
        .filter(|r| r.srtt > Span::ZERO)
        .map(|r| Row {
            ms: ms(r.time),
            cwnd: r.cwnd,
            srtt_ms: r.srtt.as_millis_f64(),
            acked: r.delivered * u64::from(flow.mss),
        })
        .collect();
    let (mut recoveries, mut timeouts) = (0, 0);
    let mut events = Vec::new();
    for e in &flow.episodes {
        match e.kind {
            EpisodeKind::Congestion(_) => recoveries += 1,
            EpisodeKind::Timeout => timeouts += 1,
            _ => continue,
        }
        events.push(Event {
            ms: ms(e.at),
            cwnd: e.before,
        });
    }
    Record {
        rows,
        events,
        retransmits: flow.totals.retransmits,
        recoveries,
        timeouts,
    }
}

/// One run of a cell, reduced; curves have the grid's step so that they can be shifted.
///
/// # Errors
/// [`SimulatedError`].
pub fn run(cell: &Cell, repeat: u32, model: Model) -> Result<Run, SimulatedError> {
    let id = cell.id();
    let cell = &cell.run(repeat);
    let spec = spec(cell, u64::from(repeat) + 1, model)?;
    let outcome = simulate(&spec).map_err(|e| SimulatedError::Run {
        cell: cell.id(),
        reason: e.to_string(),
    })?;
    let flows = cell
        .flows
        .iter()
        .zip(&outcome.flows)
        .map(|(module, flow)| {
            let record = record(flow);
            FlowResult {
                module: (*module).to_owned(),
                measure: measure(&record, cell.from_ms(), cell.end_ms()),
                curve: Some(Curve::of(&record, cell.end_ms(), GRID_MS)),
            }
        })
        .collect();
    Ok(Run {
        cell: id,
        repeat,
        kernel: String::new(),
        command: format!("fullpipe-calibrate sim --only {}", cell.id()),
        counters: Default::default(),
        flows,
    })
}

/// Every repeat of every cell, on all processors; `progress` hears of each run's end. A cell that
/// cannot be run is an error in its place.
pub fn run_all(
    cells: &[Cell],
    model: Model,
    progress: &(dyn Fn(&str) + Sync),
) -> Vec<Result<Run, SimulatedError>> {
    let runs: Vec<(&Cell, u32)> = cells
        .iter()
        .flat_map(|c| (0..c.repeats).map(move |r| (c, r)))
        .collect();
    runs.par_iter()
        // One at a time, in order: the dear runs are at the end and would all be one thread's.
        .with_max_len(1)
        .map(|(cell, repeat)| {
            let result = run(cell, *repeat, model);
            progress(&crate::oracle::run_name(cell, *repeat));
            result
        })
        .collect()
}

/// Distance of rows, ms: the grid's points then show a state at most this old.
const TRACE_MS: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell;

    #[test]
    fn reno_fills_a_small_path_as_arithmetic_says() {
        let cells = cell::all();
        let cell = cells.iter().find(|c| c.id() == "reno-20x30-b2").unwrap();
        let run = run(cell, 0, Model::Rfc).unwrap();
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

    #[test]
    fn an_unknown_algorithm_is_an_error_with_the_cells_name() {
        let mut cell = cell::all().remove(0);
        cell.flows = vec!["nosuch"];
        let error = run(&cell, 0, Model::Rfc).unwrap_err().to_string();
        assert!(error.starts_with("nosuch-100x40"), "{error}");
    }
}
