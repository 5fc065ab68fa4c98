//! Scenarios that are no question about one real path, and why.

use fullpipe_scenario::{Overrides, Scenario, builtin};

/// What to do for a test that there is not: a built-in scenario of this name is about a path of its
/// own. `None`: nothing is called like that.
pub fn no_test(name: &str) -> Option<String> {
    let near = builtin::nearest_name(name)?;
    if builtin::TESTS.contains(&near) {
        return Some(format!("did you mean `{near}`?"));
    }
    let scenario = Scenario::load(near, &Overrides::default()).ok();
    let why = scenario.map_or(PRESCRIBED, |scenario| own_path(&scenario));
    Some(format!(
        "`{near}` is no question about one real path: {why}; `fullpipe run {near}` makes such a path, \
         in the simulator or, with `--ground udp`, between sockets"
    ))
}

/// What a scenario is about that a path to one host has not.
fn own_path(scenario: &Scenario) -> &'static str {
    let (mut several_rtts, mut several_queues) = (false, false);
    for case in &scenario.cases {
        let spec = case.run_spec(1);
        let first = case.flows.first().map(|flow| flow.base_rtt);
        several_rtts |= case.flows.iter().any(|flow| Some(flow.base_rtt) != first);
        several_queues |= spec.flows.iter().any(|flow| {
            let links = flow.forward.iter().filter_map(|link| spec.links.get(*link));
            let rated = links.filter(|link| link.rate.is_some() && !link.is_interface);
            rated.count() > 1
        });
    }
    match (several_rtts, several_queues) {
        (_, true) => {
            "its flows cross several bottlenecks in a row, and nobody arranges those between two hosts"
        }
        (true, _) => {
            "its flows have different round-trip times, and a path to one host has one (two servers \
             would have two, in two commands at a time)"
        }
        _ => PRESCRIBED,
    }
}

const PRESCRIBED: &str =
    "it prescribes the path (rate, round trip, queue or losses), and a real one is as it is";
