//! Ablation: a cell with one switch of the Linux model turned off, to show what that switch
//! contributes.

use fullpipe_run::FlowSpec;
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Value;

use crate::cell::{Cell, Model};
use crate::docs::settings;
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
    if !settings().iter().any(|s| s.name == switch) {
        return false;
    }
    match switch.split_once('.') {
        Some(("sender", field)) => flow.sender = with(&flow.sender, &rfc.sender, field),
        Some(("receiver", field)) => flow.receiver = with(&flow.receiver, &rfc.receiver, field),
        _ => return false,
    }
    true
}

/// `to` with the field of this path as `from` has it; what is `None` is no value. Through TOML,
/// whose numbers include the infinite window.
fn with<T: Serialize + DeserializeOwned>(to: &T, from: &T, field: &str) -> T {
    let value = |of: &T| Value::try_from(of).expect("a configuration is plain data");
    let (mut to, from) = (value(to), value(from));
    let (groups, name) = field.rsplit_once('.').unwrap_or(("", field));
    let groups = || groups.split('.').filter(|group| !group.is_empty());
    let theirs = groups().fold(&from, |at, group| &at[group]).get(name);
    let ours = groups().fold(&mut to, |at, group| &mut at[group]);
    if let Value::Table(ours) = ours {
        match theirs {
            Some(value) => ours.insert(name.to_owned(), value.clone()),
            None => ours.remove(name),
        };
    }
    to.try_into().expect("it is a configuration still")
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
