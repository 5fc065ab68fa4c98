//! `fullpipe run --policy`: flows of a scenario by the paths of a policy.

use std::collections::BTreeSet;
use std::path::Path;

use fullpipe_policy::Policy;
use fullpipe_scenario::Scenario;

use super::check::refuse;
use crate::exit::{Exit, Failure};

/// Settings of the flows that are named like paths of the policy.
pub fn flow_settings(
    file: &Path,
    scenarios: &[Scenario],
) -> Result<Vec<(String, String)>, Failure> {
    let policy = Policy::load(file).map_err(|wrong| {
        refuse(&wrong);
        Failure::new(Exit::Usage, "the policy is not valid")
    })?;
    let cases = scenarios.iter().flat_map(|s| &s.cases);
    let flows: BTreeSet<String> = cases
        .flat_map(|case| case.run_spec(0).flows)
        .map(|flow| flow.name)
        .collect();
    let mut set = Vec::new();
    let mut named = false;
    for (rule, facts) in policy.compiled.rules.iter().zip(&policy.paths) {
        if !flows.contains(&rule.name) {
            continue;
        }
        named = true;
        let keys = facts.flow_keys(rule).ok_or_else(|| {
            let message = format!(
                "path `{}`: there is no model of `{}`",
                rule.name, rule.stack
            );
            Failure::new(Exit::Usage, message)
        })?;
        let keys = keys.into_iter();
        set.extend(keys.map(|(key, value)| (format!("flow.{}.{key}", rule.name), value)));
    }
    if !named {
        let paths: Vec<&str> = policy
            .compiled
            .rules
            .iter()
            .map(|r| r.name.as_str())
            .collect();
        let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
        let message = format!("no flow is named like a path: flows {}", flows.join(", "));
        return Err(Failure::new(Exit::Usage, message)
            .hint(format!("the policy has the paths {}", paths.join(", "))));
    }
    Ok(set)
}
