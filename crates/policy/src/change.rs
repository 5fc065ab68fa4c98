//! `[[path.change]]`: what a path gets later, compiled like what it gets at once, so that a mistake
//! is told when the policy is read and not in the middle of the night.

use fullpipe_cc::StackSpec;
use fullpipe_scenario::settings::with_settings;
use fullpipe_scenario::value::{At, Findings};

use crate::compiled::{Action, Params};
use crate::keys::{PathChange, PathKeys};
use crate::laws::{Facts, lower};
use crate::policy::{Later, PathFacts};
use crate::sizes::{in_bytes, pacing, segments};

/// The changes of a path, in the order of time; `action`: what it gets at once.
pub(crate) fn changes(
    path: &At<'_, PathKeys>,
    facts: &PathFacts,
    action: &Action,
    findings: &mut Findings,
) -> Vec<Later> {
    let given = path.change.iter().flatten().enumerate();
    let one = path.change.as_ref().is_some_and(|all| all.len() == 1);
    let mut tables: Vec<At<'_, PathChange>> = Vec::new();
    for (i, table) in given {
        let key = path.key(&PathKeys::change);
        let key = if one {
            key
        } else {
            format!("{key}[{}]", i + 1)
        };
        let table = At::<PathChange>::new(&table.record, key);
        if table.required_keys(findings) {
            tables.push(table);
        }
    }
    // What a table changes stands on what the earlier ones made.
    tables.sort_by_key(|table| table.at);
    let (Action::Ours { params, .. }, Some(stack)) = (action, &facts.stack) else {
        if path.is_attempted(&PathKeys::change) {
            let message = "an algorithm of the kernel takes no parameters here";
            path.refuse(
                findings,
                &PathKeys::change,
                message,
                "write `stack` with a law",
            );
        }
        return Vec::new();
    };
    let (mut stack, mut params) = (stack.clone(), *params);
    let mut later = Vec::new();
    for table in &tables {
        let Some(action) = change(path, table, facts, (&mut stack, &mut params), findings) else {
            continue;
        };
        later.push(Later {
            at: table.at.unwrap_or_default(),
            action,
            stack: stack.clone(),
        });
    }
    later
}

fn change(
    path: &At<'_, PathKeys>,
    table: &At<'_, PathChange>,
    facts: &PathFacts,
    (stack, params): (&mut StackSpec, &mut Params),
    findings: &mut Findings,
) -> Option<Action> {
    type Keys = PathChange;
    let all = [Keys::set, Keys::stack, Keys::window, Keys::pacing];
    if !all.iter().any(|key| table.is_attempted(key)) {
        let hint = "give `set`, `stack`, `window` or `pacing`";
        findings.refuse_table(
            table.record.at,
            &table.path,
            "nothing says what changes",
            hint,
        );
    }
    let before = findings.faults.len();
    if let Some(other) = &table.stack {
        match other.joins_running_flow() {
            Ok(()) => *stack = (**other).clone(),
            Err(error) => {
                let hint = "leave this part out";
                table.refuse(findings, &Keys::stack, error.to_string(), hint);
            }
        }
    }
    if let Some(settings) = &table.set {
        let (at, key) = (table.record.place(&Keys::set), table.key(&Keys::set));
        let set = with_settings(stack, &settings.0, (at, &key), findings);
        *stack = set.unwrap_or_else(|| stack.clone());
    }
    if let Some(size) = table.window {
        let bytes = in_bytes(table, &Keys::window, size, facts, findings);
        let window = bytes.and_then(|b| segments(table, &Keys::window, b, facts, findings));
        params.clamp = window.unwrap_or(params.clamp);
    }
    if let Some(ceiling) = table.pacing {
        let rate = pacing(table, &Keys::pacing, ceiling, facts, findings);
        params.pacing = rate.unwrap_or(params.pacing);
    }
    if findings.faults.len() > before {
        return None;
    }
    let lowered = lower(
        stack,
        &Facts {
            rtt: facts.rtt,
            clamp: (params.clamp > 0).then_some(f64::from(params.clamp)),
            reach: facts.reach(),
            update_interval: path.update_interval,
        },
    );
    let key = match table.stack.is_some() {
        true => &Keys::stack,
        false => &Keys::set,
    };
    match lowered.map(|lowered| lowered.action) {
        Ok(Action::Ours { params: law, table }) => {
            *params = beside(&law, params);
            Some(Action::Ours {
                params: *params,
                table,
            })
        }
        Ok(Action::Kernel { name, .. }) => {
            let message = format!("`{name}` is the kernel's: a path cannot change to it later");
            table.refuse(findings, key, message, "write a law");
            None
        }
        Err(refused) => {
            for refusal in refused {
                table.refuse(findings, key, refusal.message, refusal.hint);
            }
            None
        }
    }
}

/// Another law with what stands beside the law before.
pub fn beside(law: &Params, before: &Params) -> Params {
    Params {
        flags: before.flags,
        clamp: before.clamp,
        initial_window: before.initial_window,
        spread_us: before.spread_us,
        update_interval_us: before.update_interval_us,
        pacing: before.pacing,
        ..*law
    }
}
