//! Worlds: `[[negative]]`, and keys that are changed after the matrix.

use fullpipe_scenario::{Overrides, Scenario, WorldKey};

use super::{CONTRACT, read};

fn stacks(scenario: &Scenario) -> Vec<&str> {
    let first = scenario.cases.iter().map(|case| &case.flows[0]);
    first.map(|flow| flow.stack.as_str()).collect()
}

fn in_world(keys: &[(Option<usize>, &str, &str)]) -> Scenario {
    let key = |&(case, key, value): &(Option<usize>, &str, &str)| WorldKey {
        case,
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let overrides = Overrides {
        world: keys.iter().map(key).collect(),
        ..Overrides::default()
    };
    Scenario::parse(CONTRACT, "test.toml", &overrides).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_world_has_the_last_word_after_the_matrix() {
    let everywhere = in_world(&[(None, "flow.main.stack", "cubic")]);
    assert_eq!(stacks(&everywhere), ["cubic"; 6]);
    // The cases keep their names, so that they can be told which is which.
    assert_eq!(
        everywhere.cases[2].params(),
        read(CONTRACT).cases[2].params()
    );

    let once = in_world(&[(Some(3), "flow.main.stack", "\"cubic\"")]);
    let changed: Vec<usize> = (0..6).filter(|&i| stacks(&once)[i] == "cubic").collect();
    assert_eq!(changed, [3]);
}

/// Asymmetry is that of two flows: where one is gone, the file is as good as before.
#[test]
fn an_expectation_that_is_invalid_in_a_world_is_left_out_there() {
    let (flow, expected) = (
        "\n[[flow]]\nname = \"b\"\nstack = \"reno\"\n",
        "\n[[expect]]\nmetric = \"asymmetry\"\nat_least = 0.1\n",
    );
    let of_main = CONTRACT.replace("within = ", "flow = \"main\"\nwithin = ");
    let text = format!("{of_main}{flow}{expected}");
    let whole = read(&text);
    assert_eq!(whole.inapplicable, []);
    let off = |world: Vec<WorldKey>, set: &[(&str, &str)]| {
        let set = set
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()));
        let overrides = Overrides {
            world,
            set: set.collect(),
            ..Overrides::default()
        };
        Scenario::parse(&text, "test.toml", &overrides)
    };
    let world = WorldKey {
        case: None,
        key: "flow.b.enabled".to_owned(),
        value: "false".to_owned(),
    };
    let there = off(vec![world], &[]).unwrap_or_else(|e| panic!("{e}"));
    let [left_out] = there.inapplicable.as_slice() else {
        panic!("{:?}", there.inapplicable);
    };
    assert_eq!(left_out.why, "asymmetry compares two flows, there are 1");
    assert_eq!(left_out.line, whole.expectations.last().unwrap().line);
    assert_eq!(there.expectations.len() + 1, whole.expectations.len());
    // Whoever asks for it is told as before.
    assert!(off(Vec::new(), &[("flow.b.enabled", "false")]).is_err());
}

#[test]
fn negatives_are_read_with_their_keys_as_written() {
    let text = format!(
        "{CONTRACT}\n[[negative]]\nabout = \"no loss\"\nset = {{ \"flow.main.drop\" = [], \
         path.mtu = 576 }}\n"
    );
    let scenario = read(&text);
    let [negative] = scenario.negatives.as_slice() else {
        panic!("{:?}", scenario.negatives);
    };
    assert_eq!(negative.about, "no loss");
    let set = [("flow.main.drop", "[]"), ("path.mtu", "576")];
    assert_eq!(negative.set, set.map(|(k, v)| (k.into(), v.into())));
    assert_eq!(negative.line, CONTRACT.lines().count() + 2);
}
