//! Other parameters of a policy in force: those that it says for later, and those of `set`.

use std::time::Duration;

use fullpipe_cc::StackSpec;
use fullpipe_policy::{Action, Compiled, Facts, Later, PathFacts, Policy, Rule, beside, lower};

use super::DaemonError;

/// Makes the changes of a policy up to `now`, each once and those of a path in the order of time.
/// The path of each, and a line for the log.
pub(crate) fn make_due(policy: &mut Policy, now: Duration) -> Vec<(String, String)> {
    let mut made = Vec::new();
    let Policy {
        compiled, paths, ..
    } = policy;
    for (rule, facts) in compiled.rules.iter_mut().zip(paths) {
        let is_due = |change: &Later| Duration::from_nanos(change.at.as_nanos()) <= now;
        let due = facts.changes.iter().take_while(|c| is_due(c)).count();
        for Later { at, action, stack } in facts.changes.drain(..due) {
            rule.action = action;
            rule.stack = stack.to_string();
            facts.stack = Some(stack);
            let line = format!(
                "path {}: {} from now on ({at} after the policy)",
                rule.name, rule.stack
            );
            made.push((rule.name.clone(), line));
        }
    }
    made
}

/// The policy with other parameters of one path's stack; the spelling that it then has.
///
/// # Errors
/// No such path, no such parameter, or a value that the law does not take.
pub fn changed(
    policy: &mut Policy,
    name: &str,
    settings: &[(&str, &str)],
) -> Result<String, DaemonError> {
    let wrong = |why: String| DaemonError::Policy(why);
    let Policy {
        compiled, paths, ..
    } = policy;
    let Compiled { rules, .. } = compiled;
    let index = rules.iter().position(|r| r.name == name);
    let names = || {
        rules
            .iter()
            .map(|r| r.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let index = index.ok_or_else(|| wrong(format!("no path `{name}`; there are: {}", names())))?;
    reparametrized(&mut rules[index], &mut paths[index], settings)
}

/// A rule with other parameters of its stack; the spelling that it then has.
pub(super) fn reparametrized(
    rule: &mut Rule,
    facts: &mut PathFacts,
    settings: &[(&str, &str)],
) -> Result<String, DaemonError> {
    let wrong = |why: String| DaemonError::Policy(why);
    let name = &rule.name;
    let Action::Ours { params: old, .. } = rule.action else {
        return Err(wrong(format!(
            "{name}: the kernel's own algorithm takes no parameters here"
        )));
    };
    let before = facts.stack.clone();
    let before = before.map_or_else(|| StackSpec::parse(&rule.stack), Ok);
    let stack = before.and_then(|stack| stack.changed(settings));
    let stack = stack.map_err(|e| {
        let hint = e
            .hint()
            .map_or(String::new(), |hint| format!("\nhint: {hint}"));
        wrong(format!("{e}{hint}"))
    })?;
    let window = |segments: u32| (segments > 0).then_some(f64::from(segments));
    let lowered = lower(
        &stack,
        &Facts {
            rtt: facts.rtt,
            clamp: window(old.clamp),
            reach: facts.reach(),
            update_interval: None,
        },
    );
    let lowered = lowered.map_err(|refusals| {
        let words = refusals
            .iter()
            .map(|r| format!("{}; {}", r.message, r.hint));
        wrong(words.collect::<Vec<_>>().join("\n"))
    })?;
    let mut action = lowered.action;
    if let Action::Ours { params, .. } = &mut action {
        // What the file says beside the stack stays.
        *params = beside(params, &old);
    }
    rule.action = action;
    rule.stack = stack.to_string();
    facts.stack = Some(stack);
    Ok(rule.stack.clone())
}
