//! Parameters of a stack by their names, as `{ a = 6, b = 0.3 }` in a file.

use fullpipe_cc::{StackError, StackSpec};

use crate::document::{Fault, Place};
use crate::value::{Findings, Setting};

/// The stack with all settings of a table, which has a place and a dotted key; each that the stack
/// does not take is a fault at its own place.
pub fn with_settings(
    base: &StackSpec,
    settings: &[Setting],
    (at, key): (Place, &str),
    findings: &mut Findings,
) -> Option<StackSpec> {
    let pairs: Vec<(&str, &str)> = settings
        .iter()
        .map(|s| (s.name.as_str(), s.value.as_str()))
        .collect();
    let whole = base.changed(&pairs);
    let Err(whole) = whole else {
        return whole.ok();
    };
    let single = |s: &Setting| base.changed(&[(s.name.as_str(), s.value.as_str())]).err();
    let faulty: Vec<(&Setting, StackError)> = settings
        .iter()
        .filter_map(|s| single(s).map(|error| (s, error)))
        .collect();
    for (setting, error) in &faulty {
        let key = format!("{key}.{}", setting.name);
        findings.faults.push(fault(setting.at, key, error));
    }
    if faulty.is_empty() {
        // Each would do alone: they contradict each other.
        findings.faults.push(fault(at, key.to_owned(), &whole));
    }
    None
}

fn fault(at: Place, key: String, error: &StackError) -> Fault {
    Fault {
        at,
        key,
        shows_value: true,
        message: error.to_string(),
        hint: error.hint(),
    }
}
