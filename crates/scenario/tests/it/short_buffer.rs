//! A buffer so short that ties decide is warned of, and no other: simulations tell.

use fullpipe_scenario::{Overrides, Scenario};

/// Mean of what is acknowledged in 20 s, in segments, over four seeds; the warnings.
fn run(rate: &str, stack: &str, buffer: u64, jitter: &str) -> (f64, Vec<String>) {
    let text = format!(
        "name = \"short\"\nduration = \"20s\"\n[path]\nrate = \"{rate}\"\nrtt = \"40ms\"\n\
         buffer = \"{buffer} packets\"\njitter = \"{jitter}\"\n[[flow]]\nstack = \"{stack}\"\n\
         preset = \"linux\"\n[measure]\ntrace = \"off\"\n"
    );
    let scenario = Scenario::parse(&text, "short.toml", &Overrides::default());
    let scenario = scenario.unwrap_or_else(|e| panic!("{text}\n{e}"));
    let acked = (1..=4).map(|seed| {
        let outcome = fullpipe_sim::run(&scenario.cases[0].run_spec(seed)).unwrap();
        outcome.flows[0].totals.delivered as f64 / 4.0
    });
    let said = scenario.warnings.iter().map(ToString::to_string);
    (acked.sum(), said.collect())
}

#[test]
fn a_buffer_in_which_ties_decide_is_warned_of() {
    // The time that a packet takes.
    for (rate, jitter) in [("50Mbit/s", "240us"), ("20Mbit/s", "600us")] {
        for stack in ["reno", "cubic"] {
            for buffer in 1..=6 {
                let (exact, said) = run(rate, stack, buffer, "0ms");
                let (by_chance, none) = run(rate, stack, buffer, jitter);
                let warned = said
                    .iter()
                    .any(|w| w.contains(&format!("`jitter` of {jitter}")));
                let ratio = exact / by_chance;
                let differ = !(0.75..1.33).contains(&ratio);
                assert_eq!(differ, warned, "{rate} {stack} {buffer}: {ratio} {said:?}");
                assert!(none.is_empty(), "{none:?}");
            }
        }
    }
}
