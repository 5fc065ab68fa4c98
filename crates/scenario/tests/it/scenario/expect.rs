//! Expectations: bounds, several values of a key, ratios of cases.

use super::{read, small};
use crate::ratios::RATIOS;

#[test]
fn bounds() {
    let bound = |lines: &str| {
        read(&small(&format!(
            "[[expect]]\nmetric = \"goodput_mbps\"\n{lines}"
        )))
        .expectations[0]
            .bound
    };
    assert_eq!(bound("within = [1, 2.5]"), (1.0, 2.5));
    assert_eq!(bound("at_least = 3"), (3.0, f64::INFINITY));
    assert_eq!(bound("at_most = -1"), (f64::NEG_INFINITY, -1.0));
    assert_eq!(bound("at_least = 1\nat_most = 2"), (1.0, 2.0));
    assert_eq!(bound("equals = 10\ntolerance = 1"), (9.0, 11.0));
    assert_eq!(
        bound("equals = 0.3298783\ntolerance = 1e-6"),
        (0.3298773, 0.3298793)
    );
    assert_eq!(bound("equals = -10\ntolerance = \"10%\""), (-11.0, -9.0));
    assert_eq!(
        read(&small("[[expect]]\nmetric = \"drops\"\nat_most = 0")).expectations[0]
            .link
            .as_deref(),
        Some("bottleneck")
    );
}

#[test]
fn an_expectation_may_name_several_values_of_a_key() {
    let text = format!(
        "{RATIOS}[[expect]]\nmetric = \"goodput_mbps\"\nat_least = 1\n\
         where = {{ \"flow.main.stack\" = [\"cubic\", \"reno\"], \"flow.main.window\" = \"4 segments\" }}\n"
    );
    let scenario = read(&text);
    assert_eq!(scenario.expectations[0].cases, [0, 2]);
    assert_eq!(
        scenario.expectations[0].name,
        "goodput_mbps: flow.main.stack = reno, cubic, flow.main.window = 4 segments"
    );
}

#[test]
fn an_expectation_may_be_a_ratio_of_two_cases() {
    let text = format!(
        "{RATIOS}[[expect]]\nmetric = \"goodput_mbps\"\nwithin = [1.98, 2.02]\n\
         where = {{ \"flow.main.window\" = \"8 segments\" }}\nratio_to = {{ \"flow.main.window\" = \"4 segments\" }}\n"
    );
    let scenario = read(&text);
    assert_eq!(scenario.expectations[0].pairs, [(1, 0), (3, 2), (5, 4)]);
}
