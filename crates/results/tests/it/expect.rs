//! Expectations held against runs.

use crate::ratios::RATIOS;
use crate::small::scenario;
use crate::store_support::run;

/// A window of 8 segments instead of 4 doubles the rate of a flow that the window limits, whatever
/// the law.
#[test]
fn an_expectation_may_be_a_ratio_of_two_cases() {
    let text = format!(
        "{RATIOS}[[expect]]\nmetric = \"goodput_mbps\"\nwithin = [1.98, 2.02]\n\
         where = {{ \"flow.main.window\" = \"8 segments\" }}\nratio_to = {{ \"flow.main.window\" = \"4 segments\" }}\n"
    );
    let (ran, _) = run(&scenario(&text), None, 1, false).unwrap();
    let found = &ran.result.expectations;
    assert_eq!(found.len(), 3);
    for e in found {
        assert!(e.pass && (e.observed.unwrap() - 2.0).abs() < 0.02, "{e:?}");
        assert_eq!(e.bound, [1.98, 2.02]);
    }
}
