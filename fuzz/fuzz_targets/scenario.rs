//! No text makes the reader of scenario files panic, and what it accepts is a valid scenario.
#![no_main]

use fullpipe_scenario::{Overrides, Scenario};
use libfuzzer_sys::fuzz_target;

// A last line `#set key=value` stands for a `--set` of the command line.
fuzz_target!(|text: &str| {
    let set = text
        .lines()
        .filter_map(|line| line.strip_prefix("#set ")?.split_once('='))
        .take(4)
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    match Scenario::parse(
        text,
        "fuzz.toml",
        &Overrides {
            set,
            ..Overrides::default()
        },
    ) {
        Ok(scenario) => {
            assert!(!scenario.seeds.is_empty() && !scenario.cases.is_empty());
            for case in scenario.cases.iter().take(8) {
                let spec = case.run_spec(1);
                assert!(!spec.flows.is_empty() && !spec.links.is_empty());
                for flow in &spec.flows {
                    assert!(
                        flow.forward
                            .iter()
                            .chain(&flow.back)
                            .all(|link| *link < spec.links.len())
                    );
                    assert!(flow.sender.mss >= 1 && flow.sender.window.initial >= 1.0);
                }
            }
            for expectation in &scenario.expectations {
                assert!(
                    expectation
                        .cases
                        .iter()
                        .all(|case| *case < scenario.cases.len())
                );
                assert!(
                    !expectation.cases.is_empty() && expectation.bound.0 <= expectation.bound.1
                );
            }
        }
        Err(diagnostics) => {
            assert!(!diagnostics.0.is_empty());
            let _ = diagnostics.to_string();
        }
    }
});
