//! `fullpipe check`: the mistakes of a scenario, before anything runs.

use fullpipe_results::run::refusals;
use fullpipe_scenario::{Diagnostics, Loaded, Overrides, Scenario};

use crate::args::Check;
use crate::exit::{Exit, Failure};
use crate::{ground, output};

/// Runs the command.
pub fn check(args: &Check) -> Result<Exit, Failure> {
    let overrides = Overrides {
        set: args.set.clone(),
        quick: args.quick,
        ..Overrides::default()
    };
    let ground = match &args.ground {
        Some(name) => Some(ground::named(name, args.kernel.clone())?),
        None => None,
    };
    let mut exit = Exit::Ok;
    let mut noted: Vec<String> = Vec::new();
    let mut read: Vec<(String, Result<Scenario, Diagnostics>)> = Vec::new();
    for name in &args.scenarios {
        match fullpipe_scenario::load(name, &overrides) {
            Ok(Loaded::Scenario(scenario)) => read.push((name.clone(), Ok(*scenario))),
            Ok(Loaded::Study(study)) => {
                let members = counted(study.scenarios.len(), "scenario");
                output::data(&format!("{name}: a study of {members}\n"))?;
                for member in study.scenarios {
                    let scenario = Scenario::load(&member, &overrides);
                    read.push((member, scenario));
                }
            }
            Err(diagnostics) => read.push((name.clone(), Err(diagnostics))),
        }
    }
    for (name, scenario) in &read {
        match scenario {
            Ok(scenario) => {
                for warning in &scenario.warnings {
                    output::warning(&warning.to_string());
                }
                let refused = match &ground {
                    Some(ground) => refusals(scenario, &**ground),
                    None => Vec::new(),
                };
                let notes = ground.iter().flat_map(|ground| ground.notes());
                for note in notes {
                    if !noted.contains(&note) {
                        output::warning(&note);
                        noted.push(note);
                    }
                }
                if refused.is_empty() {
                    output::data(&summary(name, scenario, args.cases))?;
                }
                for error in &refused {
                    exit = Exit::Usage;
                    output::error(&error.to_string());
                    error.hint().iter().for_each(|hint| output::hint(hint));
                }
            }
            Err(diagnostics) => {
                for diagnostic in &diagnostics.0 {
                    output::error(&diagnostic.to_string());
                }
                exit = Exit::Usage;
            }
        }
    }
    Ok(exit)
}

fn summary(name: &str, scenario: &Scenario, list_cases: bool) -> String {
    let (cases, seeds) = (scenario.cases.len(), scenario.seeds.len());
    let expectations = scenario.expectations.len();
    let mut text = format!(
        "{name}: ok: {} x {} = {}, {}\n",
        counted(cases, "case"),
        counted(seeds, "seed"),
        counted(cases * seeds, "run"),
        counted(expectations, "expectation"),
    );
    if list_cases {
        for case in &scenario.cases {
            let params: Vec<String> = case
                .params()
                .iter()
                .map(|(k, v)| format!("{k} = {v}"))
                .collect();
            text += &format!("  {}  {}\n", case.index, params.join(", "));
        }
    }
    text
}

/// `1 case`, `4 cases`.
pub fn counted(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}
