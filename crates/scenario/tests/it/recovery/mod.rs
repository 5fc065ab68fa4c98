//! Loss recovery in whole simulations: what a flow may undo, resend and believe of its path.

mod draw;
mod one_way;
mod properties;
mod reordering;
mod timer;
mod undo;

use fullpipe_run::{FlowOutcome, Outcome};
use fullpipe_scenario::{Overrides, Scenario};

/// Payload of a segment of 1500 bytes with time stamps.
const SEGMENT_BITS: f64 = 8.0 * 1448.0;

/// The scenario with these settings.
fn scenario(text: &str, set: &[(&str, &str)]) -> Scenario {
    let overrides = Overrides {
        set: set
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        ..Overrides::default()
    };
    Scenario::parse(text, "recovery.toml", &overrides).unwrap_or_else(|e| panic!("{e}"))
}

/// Its first case, run with its first seed.
fn simulate(text: &str, set: &[(&str, &str)]) -> Outcome {
    let scenario = scenario(text, set);
    fullpipe_sim::run(&scenario.cases[0].run_spec(scenario.seeds[0])).unwrap()
}

/// The first flow of that.
fn flow(text: &str, set: &[(&str, &str)]) -> FlowOutcome {
    simulate(text, set).flows.remove(0)
}

/// RFC 8985 section 7.2: the last segment is probed for while a mark is being answered, too.
#[test]
fn a_tail_is_probed_for_after_a_mark() {
    let of = |n: u64| {
        let text = format!(
            "name = \"x\"\nduration = \"20s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"60ms\"\n\
             buffer = \"200 packets\"\n\
             queue = {{ kind = \"red\", ecn = true, min = \"3 packets\", max = \"9 packets\", \
             weight = 0.05 }}\n\
             [[flow]]\nstack = \"reno\"\nsize = \"{n} segments\"\necn = true\n\
             drop = {{ segment = {} }}\n",
            n - 1
        );
        flow(&text, &[])
    };
    // The first meets no mark, the others do; each is a round trip or two beyond its length.
    for n in [50, 54, 90, 130, 150] {
        let flow = of(n);
        assert!(flow.completed.is_some(), "{n}");
        assert_eq!(flow.totals.timeouts, 0, "{n}");
    }
}

/// Flows of one host whose interface is full take turns: without small queues, where only who was
/// refused comes back; with them, where each own departure wakes its flow; and where one is paced,
/// whose time a refusal must not use up.
#[test]
fn a_full_interface_is_shared() {
    let reno = ["reno"; 8];
    let mut paced = reno;
    (paced[2], paced[5]) = ("bbr", "bbr");
    for (preset, stacks) in [("2003", reno), ("2026", reno), ("2003", paced)] {
        let flow = |(i, stack): (usize, &&str)| {
            format!(
                "[[flow]]\nname = \"f{i}\"\nhost = \"h\"\nstack = \"{stack}\"\n\
                 preset = \"{preset}\"\nsendstall = \"ignore\"\nnic_rate = \"20Mbit/s\"\n\
                 txqueuelen = 10\n"
            )
        };
        let flows: String = stacks.iter().enumerate().map(flow).collect();
        let text = format!(
            "name = \"x\"\nduration = \"20s\"\n[path]\nrate = \"100Mbit/s\"\nrtt = \"40ms\"\n{flows}"
        );
        let flows = simulate(&text, &[]).flows;
        let delivered: Vec<u64> = flows.iter().map(|flow| flow.totals.delivered).collect();
        let part = delivered.iter().sum::<u64>() / 8;
        assert!(flows.iter().any(|flow| flow.totals.local_stalls > 100));
        // An eighth of 20 Mbit/s for 20 s is 4,167 packets of 1500 bytes.
        assert!(
            (3_900..=4_167).contains(&part),
            "{preset} {stacks:?}: {delivered:?}"
        );
        let least = delivered.iter().min();
        assert!(
            least > Some(&(part / 2)),
            "{preset} {stacks:?}: {delivered:?}"
        );
    }
}
