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
