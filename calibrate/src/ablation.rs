//! Ablation: a cell with one switch of the Linux model turned off, to show what that switch
//! contributes.

use fullpipe_flow::{ReceiverConfig, SenderConfig};
use fullpipe_run::FlowSpec;
use rayon::prelude::*;

use crate::cell::{Cell, Model};
use crate::reference::Run;
use crate::simulated::{SimulatedError, reduced, spec};

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
    let timed = cell.run(repeat);
    let rfc = spec(&timed, seed, Model::Rfc)?;
    let run = match switch {
        None => rfc,
        Some(switch) => {
            let mut run = spec(&timed, seed, Model::Linux)?;
            for (flow, rfc) in run.flows.iter_mut().zip(&rfc.flows) {
                if !set_back(flow, rfc, switch) {
                    return Err(failed(format!("there is no switch `{switch}`")));
                }
            }
            run
        }
    };
    reduced(cell, repeat, &run)
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
        "handshake_ack" => to.handshake_ack = from.handshake_ack,
        "tcp_options" => to.tcp_options = from.tcp_options,
        "window.validation" => to.window.validation = from.window.validation,
        "window.slow_start_limit" => to.window.slow_start_limit = from.window.slow_start_limit,
        "window.decrease_base" => to.window.decrease_base = from.window.decrease_base,
        "recovery.reduction" => to.recovery.reduction = from.recovery.reduction,
        "recovery.reordering_by" => to.recovery.reordering_by = from.recovery.reordering_by,
        "recovery.frto_by" => to.recovery.frto_by = from.recovery.frto_by,
        "recovery.steady_newreno" => to.recovery.steady_newreno = from.recovery.steady_newreno,
        "recovery.undo_by" => to.recovery.undo_by = from.recovery.undo_by,
        "recovery.loss_window" => to.recovery.loss_window = from.recovery.loss_window,
        "recovery.reduce_on_lost_retransmission" => {
            to.recovery.reduce_on_lost_retransmission = from.recovery.reduce_on_lost_retransmission;
        }
        "recovery.recover_from_loss" => {
            to.recovery.recover_from_loss = from.recovery.recover_from_loss;
        }
        "recovery.timeout_reduces_in_recovery" => {
            to.recovery.timeout_reduces_in_recovery = from.recovery.timeout_reduces_in_recovery;
        }
        "rto.min" => to.rto.min = from.rto.min,
        "rto.max" => to.rto.max = from.rto.max,
        "rto.rule" => to.rto.rule = from.rto.rule,
        "rto.sample" => to.rto.sample = from.rto.sample,
        "timers.grain" => to.timers.grain = from.timers.grain,
        "timers.probe_margin" => to.timers.probe_margin = from.timers.probe_margin,
        "pacing.rule" => to.pacing.rule = from.pacing.rule,
        "host.tso_autosize" => to.host.tso_autosize = from.host.tso_autosize,
        "host.send_buffer" => to.host.send_buffer = from.host.send_buffer,
        _ => return false,
    }
    true
}

fn receiver(to: &mut ReceiverConfig, from: &ReceiverConfig, field: &str) -> bool {
    match field {
        "acks.quick" => to.acks.quick = from.acks.quick,
        "acks.compression" => to.acks.compression = from.acks.compression,
        "paws" => to.paws = from.paws,
        "sack.whole" => to.sack.whole = from.sack.whole,
        "acks.hz" => to.acks.hz = from.acks.hz,
        "window.max" => to.window.max = from.window.max,
        "window.first" => to.window.first = from.window.first,
        "window.widest" => to.window.widest = from.window.widest,
        "window.buffer" => to.window.buffer = from.window.buffer,
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
