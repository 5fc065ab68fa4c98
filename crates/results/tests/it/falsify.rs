//! Expectations held against wrong worlds.

use fullpipe_results::falsify::{Depth, Falsification, Trial, WorldEffect, worlds};
use fullpipe_results::run::Options;
use fullpipe_results::store::Cache;
use fullpipe_scenario::{Overrides, Scenario};

/// One loss at a window of 100 segments: the window comes down to the half and climbs by one
/// segment per round trip.
const ONE_LOSS: &str = r#"name = "one-loss"
duration = "6s"
seeds = 2

[path]
rate = "20Mbit/s"
rtt = "50ms"
buffer = "1000 packets"

[[flow]]
name = "main"
stack = "reno"
window = "100 segments"
drop = { time = "2s" }

[[traffic]]
name = "noise"
kind = "udp"
rate = "1Mbit/s"
start = "1s"
"#;

const HALVED: &str = r#"
[[expect]]
name = "the window is halved"
metric = "decrease_fraction"
within = [0.45, 0.55]
"#;

fn falsify(text: &str) -> Falsification {
    let overrides = Overrides::default();
    let scenario = Scenario::parse(text, "test.toml", &overrides).unwrap_or_else(|e| panic!("{e}"));
    let options = Options {
        jobs: 2,
        ..Options::default()
    };
    let trial = Trial::new(scenario, &overrides);
    let ground = &fullpipe_sim::run;
    trial
        .run(Depth::EveryWorld, &options, ground, None)
        .unwrap()
}

/// The worlds that an expectation fails in, those of one kind.
fn caught<'a>(found: &'a Falsification, name: &str) -> &'a [String] {
    let e = found.expectations.iter().find(|e| e.name == name);
    &e.expect("it is in the file").caught
}

#[test]
fn what_follows_the_law_fails_under_another_law() {
    let found = falsify(&format!("{ONE_LOSS}{HALVED}"));
    let worlds = caught(&found, "the window is halved");
    for about in [
        "main: a nonsense law",
        "main: decreases a fifth larger",
        "main: no drops ordered",
    ] {
        assert!(worlds.iter().any(|w| w == about), "{about}: {worlds:?}");
    }
    // A Reno flow in place of a Reno flow is no other world.
    let other = |w: &&String| w.contains("standard TCP");
    assert_eq!(worlds.iter().find(other), None);
    assert!(found.passed(), "{found:?}");
}

#[test]
fn an_expectation_that_nothing_fails_is_toothless() {
    let open = "\n[[expect]]\nname = \"open\"\nmetric = \"goodput_mbps\"\nat_least = 0.001\n";
    let found = falsify(&format!("{ONE_LOSS}{HALVED}{open}"));
    let toothless: Vec<&str> = found.toothless().map(|e| e.name.as_str()).collect();
    assert_eq!(toothless, ["open"]);
    assert!(!found.passed());

    let excused = format!("{ONE_LOSS}{HALVED}{open}toothless = \"the path is up\"\n");
    let found = falsify(&excused);
    assert!(found.expectations[1].toothless && found.passed());
}

/// What only a window of ten segments breaks can fail, and shows little.
#[test]
fn an_expectation_that_one_kind_of_world_fails_is_weak() {
    let open = "\n[[expect]]\nname = \"open\"\nmetric = \"goodput_mbps\"\nat_least = 5\n";
    let text = format!("{ONE_LOSS}{HALVED}{open}");
    let weak = |found: &Falsification| found.weak().map(|e| e.name.clone()).collect::<Vec<_>>();
    let found = falsify(&text);
    assert_eq!(
        caught(&found, "open"),
        ["main: a fixed window of ten segments"]
    );
    assert_eq!(weak(&found), ["open"]);
    assert!(found.passed(), "{found:?}");

    // A world that the file names is what the expectation is meant to notice.
    let named = falsify(&format!(
        "{text}\n[[negative]]\nabout = \"n\"\nset = {{ \"flow.main.window\" = \"5 segments\" }}\n"
    ));
    assert_eq!(weak(&named), [""; 0]);
    // Followed to the first failure, nobody knows of a second.
    let scenario = Scenario::parse(&text, "test.toml", &Overrides::default()).unwrap();
    let trial = Trial::new(scenario, &Overrides::default());
    let options = Options::default();
    let found = trial.run(Depth::FirstFailure, &options, &fullpipe_sim::run, None);
    assert_eq!(weak(&found.unwrap()), [""; 0]);
}

#[test]
fn a_negative_must_be_caught() {
    let negative = |set: &str| {
        falsify(&format!(
            "{ONE_LOSS}{HALVED}\n[[negative]]\nabout = \"n\"\nset = {{ {set} }}\n"
        ))
    };
    let noticed = negative("\"flow.main.drop\" = []");
    assert_eq!(noticed.worlds[0].effect, WorldEffect::Caught);
    assert_eq!(noticed.worlds[0].caught_by, ["the window is halved"]);
    assert!(noticed.passed());

    let unnoticed = negative("\"traffic.noise.enabled\" = false");
    assert_eq!(unnoticed.worlds[0].effect, WorldEffect::Missed);
    assert!(!unnoticed.passed());
}

#[test]
fn knobs_and_seeds_that_change_nothing_are_named() {
    let far_away = "\n[[negative]]\nabout = \"a longer queue\"\nset = { \"path.buffer\" = \"2000 \
                    packets\" }\n";
    let found = falsify(&format!("{ONE_LOSS}{HALVED}{far_away}"));
    assert_eq!(found.worlds[0].effect, WorldEffect::Dead);
    assert_eq!(found.same_for_all_seeds.len(), 1);

    let random = ONE_LOSS.replace("[[flow]]", "loss = 0.001\n\n[[flow]]");
    assert_eq!(falsify(&format!("{random}{HALVED}")).same_for_all_seeds, []);
}

/// A world in which nothing may change is held to it, and one that the program makes as well is
/// that one.
#[test]
fn what_is_said_to_be_inert_is_held_to_it() {
    let world = |set: &str| {
        format!(
            "{ONE_LOSS}{HALVED}\n[[negative]]\nabout = \"n\"\nset = {{ {set} }}\ninert = \"w\"\n"
        )
    };
    let dead = |found: &Falsification| found.dead().count();
    let unsaid = falsify(&format!("{ONE_LOSS}{HALVED}"));
    let said = falsify(&world("\"path.buffer\" = \"10000000 packets\""));
    assert_eq!(said.worlds[0].effect, WorldEffect::Dead);
    assert!(said.passed(), "{said:?}");
    assert_eq!((dead(&unsaid), dead(&said)), (1, 0), "{unsaid:?}");

    // Fewer numbers are needed to see that than every world.
    let scenario = Scenario::parse(
        &world("\"path.buffer\" = \"2000 packets\""),
        "test.toml",
        &Overrides::default(),
    );
    let trial = Trial::new(scenario.unwrap(), &Overrides::default());
    let options = Options {
        jobs: 1,
        ..Options::default()
    };
    let found = trial.run(Depth::FirstFailure, &options, &fullpipe_sim::run, None);
    let found = found.unwrap();
    assert_eq!(found.worlds[0].effect, WorldEffect::Dead);
    assert!(found.passed(), "{found:?}");

    // Noticed, and numbers that change without notice: both belie it.
    for set in [
        "\"flow.main.drop\" = []",
        "\"traffic.noise.enabled\" = false",
    ] {
        let belied = falsify(&world(set));
        assert_ne!(belied.worlds[0].effect, WorldEffect::Dead);
        assert!(!belied.passed(), "{set}");
    }
}

#[test]
fn a_world_changes_each_case_by_what_it_has() {
    let two = format!(
        "{ONE_LOSS}{HALVED}\n[matrix]\n\"flow.main.stack\" = [\"reno\", \"scalable+hystart++\"]\n"
    );
    let scenario = Scenario::parse(&two, "test.toml", &Overrides::default()).unwrap();
    let all = worlds(&scenario);
    let of = |about: &str| {
        let world = all.iter().find(|w| w.about == about);
        world.map(fullpipe_results::falsify::World::assignments)
    };
    // 0.5 and 0.125, a fifth more.
    let larger = of("main: decreases a fifth larger").unwrap();
    assert_eq!(
        larger,
        [
            "flow.main.stack=\"aimd(decrease=0.6)\"",
            "flow.main.stack=\"scalable(decrease=0.15)+hystart++\"",
        ]
    );
    assert_eq!(
        of("main: plain slow start").unwrap(),
        ["flow.main.stack=\"scalable\""]
    );
}

#[test]
fn runs_are_shared_between_worlds_and_kept() {
    let overrides = Overrides::default();
    let text = format!("{ONE_LOSS}{HALVED}");
    let scenario = Scenario::parse(&text, "test.toml", &overrides).unwrap();
    let trial = Trial::new(scenario, &overrides);
    let root = tempfile::tempdir().unwrap();
    let cache = Cache::new(root.path());
    let run = |jobs| {
        let options = Options {
            jobs,
            ..Options::default()
        };
        let ground = &fullpipe_sim::run;
        let every = Depth::EveryWorld;
        trial.run(every, &options, ground, Some(&cache)).unwrap()
    };
    let first = run(1);
    let all = trial.runs(&fullpipe_sim::run);
    assert_eq!((first.made, first.reused), (all, 0));
    let again = run(2);
    assert_eq!((again.made, again.reused), (0, all));
    assert_eq!(again.expectations, first.expectations);
    assert_eq!(again.worlds, first.worlds);
}
