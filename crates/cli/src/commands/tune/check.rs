//! `fullpipe tune check`: every mistake of a policy, and its warnings.

use fullpipe_policy::{Action, PathFacts, Policy, Rule};
use fullpipe_scenario::Diagnostics;
use serde_json::{Value, json};

use super::lacking::kernel_lacks;
use super::measured::known;
use crate::args::TuneCheck;
use crate::commands::check::counted;
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command.
pub fn check(args: &TuneCheck) -> Result<Exit, Failure> {
    let read = Policy::load_with(&args.policy, &known(&args.state));
    if args.json {
        output::data(&format!("{:#}\n", as_json(args, &read)))?;
    }
    match &read {
        Ok(policy) => {
            let lacking = kernel_lacks(&policy.compiled);
            for warning in policy.compiled.warnings.iter().chain(&lacking) {
                output::warning(warning);
            }
            if !args.json {
                let paths = counted(policy.paths.len() + policy.waiting.len(), "path");
                let warnings = policy.compiled.warnings.len() + lacking.len();
                let warnings = counted(warnings, "warning");
                let file = args.policy.display();
                output::data(&format!("{file}: ok: {paths}, {warnings}\n"))?;
            }
            Ok(Exit::Ok)
        }
        Err(wrong) => {
            refuse(wrong);
            Ok(Exit::Usage)
        }
    }
}

/// Prints everything that is wrong.
pub(super) fn refuse(wrong: &Diagnostics) {
    for diagnostic in &wrong.0 {
        output::error(&diagnostic.to_string());
    }
}

fn as_json(args: &TuneCheck, read: &Result<Policy, Diagnostics>) -> Value {
    let errors: Vec<Value> = match read {
        Ok(_) => Vec::new(),
        Err(wrong) => wrong
            .0
            .iter()
            .map(|fault| {
                json!({
                    "file": fault.file, "line": fault.line, "column": fault.column,
                    "key": fault.key, "value": fault.value,
                    "message": fault.message, "hint": fault.hint,
                })
            })
            .collect(),
    };
    let (warnings, paths) = match read {
        Ok(policy) => {
            let pairs = policy.compiled.rules.iter().zip(&policy.paths);
            let paths = pairs.map(|(rule, facts)| path_json(rule, facts)).collect();
            let mut warnings = policy.compiled.warnings.clone();
            warnings.extend(kernel_lacks(&policy.compiled));
            (warnings, paths)
        }
        Err(_) => (Vec::new(), Vec::<Value>::new()),
    };
    json!({
        "fullpipe": env!("CARGO_PKG_VERSION"),
        "policy": args.policy.display().to_string(),
        "ok": read.is_ok(),
        "errors": errors,
        "warnings": warnings,
        "paths": paths,
    })
}

/// What is said of a path for programs.
pub(super) fn path_json(rule: &Rule, facts: &PathFacts) -> Value {
    let selector = &rule.selector;
    let to: Vec<String> = selector.to.iter().map(ToString::to_string).collect();
    let ports = selector.ports.iter();
    let ports: Vec<[u16; 2]> = ports.map(|r| [*r.start(), *r.end()]).collect();
    let later = facts.changes.iter();
    let changes: Vec<Value> = later
        .map(|c| json!({ "at_s": c.at.as_secs_f64(), "stack": c.stack.to_string() }))
        .collect();
    let (kernel, rows) = match &rule.action {
        Action::Kernel { name, .. } => (Some(name), None),
        Action::Ours { table, .. } => (None, Some(table.len())),
    };
    json!({
        "name": rule.name,
        "place": facts.place,
        "to": to,
        "ports": ports,
        "stack": rule.stack,
        "kernel": kernel,
        "table_rows": rows,
        "table_error": { "a": facts.table_error.0, "b": facts.table_error.1 },
        "share": f64::from(rule.share) / 65536.0,
        "send_buffer_bytes": rule.send_buffer,
        "receive_buffer_bytes": rule.receive_buffer,
        "bdp_packets": facts.bdp(),
        "departures": facts.departures,
        "changes": changes,
    })
}
