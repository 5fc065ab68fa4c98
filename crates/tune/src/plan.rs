//! What would change now, by the rules in force or by those of a policy that is not: words for
//! `fullpipe tune plan`.

use std::path::Path;

use fullpipe_policy::{Compiled, Rule};
use serde_json::{Value, json};

use crate::bpf::{Bpf, Load};
use crate::journal::Journal;
use crate::kernel::Kernel;
use crate::namespaces::Scope;
use crate::state::{DaemonError, JOURNAL};
use crate::tuner::{Decision, TuneError, Tuner, label};

/// By the rules in force.
///
/// # Errors
/// [`TuneError`].
pub fn in_force<K: Kernel>(tuner: &mut Tuner<K>) -> Result<Value, TuneError> {
    let decisions = tuner.plan()?;
    let flows: Vec<Value> = decisions.iter().map(|d| line(d, None)).collect();
    Ok(json!({ "plan": flows }))
}

/// By other rules, were they applied now: their paths beside those in force, and the flows.
///
/// # Errors
/// [`TuneError`]: they do not fit.
pub fn of<K: Kernel>(tuner: &mut Tuner<K>, compiled: Compiled) -> Result<Value, TuneError> {
    let decisions = tuner.preview(compiled.clone())?;
    let (now, then) = (tuner.rules(), &compiled.rules);
    let before = |rule: &Rule| now.iter().find(|old| old.name == rule.name);
    let paths = then.iter().map(|rule| {
        let was = before(rule);
        let what = match was {
            None => "new",
            Some(old) if old == rule => "same",
            Some(_) => "other",
        };
        json!({ "path": rule.name, "what": what, "stack": rule.stack,
                "was": was.map(|old| &old.stack) })
    });
    let is_gone = |old: &&Rule| then.iter().all(|rule| rule.name != old.name);
    let gone = now.iter().filter(is_gone);
    let gone = gone
        .map(|old| json!({ "path": old.name, "what": "gone", "stack": null, "was": old.stack }));
    let paths: Vec<Value> = paths.chain(gone).collect();
    let flows = decisions.iter().map(|d| {
        // A flow that stays on its path gets new parameters without an order.
        let rule = d.arm.filter(|(_, control)| !control).map(|(k, _)| &then[k]);
        let other = rule.and_then(|rule| Some((before(rule)?, rule)));
        line(d, other.filter(|(old, rule)| old.action != rule.action))
    });
    let flows: Vec<Value> = flows.collect();
    Ok(json!({ "paths": paths, "plan": flows }))
}

/// By these rules, where no daemon runs that has this folder: what one before has given back is in
/// its journal. Programs are loaded to look at flows, and are gone afterwards.
///
/// # Errors
/// [`DaemonError`].
pub fn without_daemon(
    compiled: Compiled,
    state: &Path,
    prefix: &str,
    scope: Scope,
) -> Result<Value, DaemonError> {
    let bpf = Bpf::load(Load {
        prefix,
        cgroup: None,
        scope,
        register: false,
    })?;
    let journal = Journal::look(&state.join(JOURNAL))?;
    Ok(of(&mut Tuner::new(bpf, prefix, journal), compiled)?)
}

fn line(decision: &Decision, other: Option<(&Rule, &Rule)>) -> Value {
    let flow = label(&decision.seen.listing);
    let (changes, why) = match other {
        Some((old, new)) if old.stack == new.stack => {
            (true, format!("rule {}: other parameters", new.name))
        }
        Some((old, new)) => (
            true,
            format!("rule {}: {}, was {}", new.name, new.stack, old.stack),
        ),
        None => (decision.order.is_some(), decision.why.clone()),
    };
    let namespace = decision.seen.namespace;
    json!({ "flow": flow, "namespace": namespace, "changes": changes, "why": why })
}
