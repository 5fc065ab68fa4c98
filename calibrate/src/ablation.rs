//! Ablation: a cell with one switch of the Linux model turned off, to show what that switch
//! contributes.

use fullpipe_flow::{ReceiverConfig, SenderConfig};
use fullpipe_run::FlowSpec;
use fullpipe_sim::run as simulate;
use rayon::prelude::*;

use crate::cell::Cell;
use crate::measure::{Curve, GRID_MS, measure};
use crate::reference::{FlowResult, Run};
use crate::simulated::{Model, SimulatedError, record, spec};

/// The switch that stands for the kernel's modules: set back, a flow runs the published algorithm.
pub const STACK: &str = "stack";

/// Every repeat of a cell in the Linux model with `switch` as the RFC model has it; without a
/// switch, the RFC model itself.
///
/// # Errors
/// [`SimulatedError`]; [`SimulatedError::Run`] too if there is no such switch.
pub fn without(cell: &Cell, switch: Option<&str>) -> Result<Vec<Run>, SimulatedError> {
    (0..cell.repeats)
        .into_par_iter()
        .map(|repeat| one(cell, repeat, switch))
        .collect()
}

fn one(cell: &Cell, repeat: u32, switch: Option<&str>) -> Result<Run, SimulatedError> {
    let failed = |reason: String| SimulatedError::Run {
        cell: cell.id(),
        reason,
    };
    let seed = u64::from(repeat) + 1;
    let id = cell.id();
    let cell = &cell.run(repeat);
    let rfc = spec(cell, seed, Model::Rfc)?;
    let run = match switch {
        None => rfc,
        Some(switch) => {
            let mut run = spec(cell, seed, Model::Linux)?;
            for (flow, rfc) in run.flows.iter_mut().zip(&rfc.flows) {
                if !set_back(flow, rfc, switch) {
                    return Err(failed(format!("there is no switch `{switch}`")));
                }
            }
            run
        }
    };
    let outcome = simulate(&run).map_err(|e| failed(e.to_string()))?;
    let flows = cell.flows.iter().zip(&outcome.flows);
    let flows = flows.map(|(module, flow)| {
        let record = record(flow);
        FlowResult {
            module: (*module).to_owned(),
            measure: measure(&record, cell.from_ms(), cell.end_ms()),
            curve: Some(Curve::of(&record, cell.end_ms(), GRID_MS)),
        }
    });
    Ok(Run {
        cell: id,
        repeat,
        kernel: String::new(),
        command: String::new(),
        counters: Default::default(),
        flows: flows.collect(),
    })
}

/// Sets a switch to what another flow has; false if there is none of the name.
fn set_back(flow: &mut FlowSpec, rfc: &FlowSpec, switch: &str) -> bool {
    if switch == STACK {
        flow.stack = rfc.stack.clone();
        return true;
    }
    match switch.split_once('.') {
        Some(("sender", field)) => sender(&mut flow.sender, &rfc.sender, field),
        Some(("receiver", field)) => receiver(&mut flow.receiver, &rfc.receiver, field),
        _ => false,
    }
}

/// Copies a field by its name, for those that preset `linux` sets; [`crate::docs::settings`] has
/// the list.
fn sender(to: &mut SenderConfig, from: &SenderConfig, field: &str) -> bool {
    match field {
        "reduction" => to.reduction = from.reduction,
        "reduce_on_lost_retransmission" => {
            to.reduce_on_lost_retransmission = from.reduce_on_lost_retransmission;
        }
        "recover_from_loss" => to.recover_from_loss = from.recover_from_loss,
        "loss_window" => to.loss_window = from.loss_window,
        "timeout_reduces_in_recovery" => {
            to.timeout_reduces_in_recovery = from.timeout_reduces_in_recovery;
        }
        "head_restarts_timer" => to.head_restarts_timer = from.head_restarts_timer,
        "refill" => to.refill = from.refill,
        "rto.min" => to.rto.min = from.rto.min,
        "rto.max" => to.rto.max = from.rto.max,
        "rto.rule" => to.rto.rule = from.rto.rule,
        "rto.sample" => to.rto.sample = from.rto.sample,
        "slow_start_limit" => to.slow_start_limit = from.slow_start_limit,
        "base" => to.base = from.base,
        "validation" => to.validation = from.validation,
        "probe_margin" => to.probe_margin = from.probe_margin,
        "timers" => to.timers = from.timers,
        _ => return false,
    }
    true
}

fn receiver(to: &mut ReceiverConfig, from: &ReceiverConfig, field: &str) -> bool {
    match field {
        "first_window" => to.first_window = from.first_window,
        "window" => to.window = from.window,
        "quick_acks" => to.quick_acks = from.quick_acks,
        "compression" => to.compression = from.compression,
        "hz" => to.hz = from.hz,
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cell, docs};

    fn flows(cell: &Cell) -> (FlowSpec, FlowSpec) {
        let of = |model| spec(cell, 1, model).unwrap().flows.remove(0);
        (of(Model::Linux), of(Model::Rfc))
    }

    #[test]
    fn every_setting_can_be_set_back_and_nothing_else_is_left() {
        let cell = cell::all().remove(0);
        let (mut linux, rfc) = flows(&cell);
        for setting in docs::settings() {
            let before = (linux.sender.clone(), linux.receiver.clone());
            assert!(
                set_back(&mut linux, &rfc, &setting.name),
                "{}",
                setting.name
            );
            let after = (linux.sender.clone(), linux.receiver.clone());
            assert!(before != after, "{} changes nothing", setting.name);
        }
        assert_eq!(linux.sender, rfc.sender);
        assert_eq!(linux.receiver, rfc.receiver);
        assert!(set_back(&mut linux, &rfc, STACK));
        assert_eq!(format!("{:?}", linux.stack), format!("{:?}", rfc.stack));
        assert!(!set_back(&mut linux, &rfc, "sender.colour"));
    }

    #[test]
    fn an_unknown_switch_is_an_error() {
        let cell = cell::all().remove(0);
        let error = without(&cell, Some("hz")).unwrap_err().to_string();
        assert!(error.contains("no switch `hz`"), "{error}");
    }
}
