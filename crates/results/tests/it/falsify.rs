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
    let trial = Trial::new(scenario, &overrides).unwrap();
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

/// Short flows have stacks as lasting ones do: what is expected of them falls with theirs.
#[test]
fn what_short_flows_do_fails_under_another_stack_of_theirs() {
    let found = falsify(
        r#"name = "short"
duration = "4s"

[path]
rate = "20Mbit/s"
rtt = "50ms"
buffer = "1000 packets"

[[traffic]]
name = "web"
kind = "short-flows"
preset = "2003"
stack = "reno+burst(iw=10)"
size = "10 segments"
every = "500ms"

[[expect]]
name = "one round trip"
metric = "completion_time_s.mean"
flow = "web"
at_most = 0.07
"#,
    );
    let worlds = caught(&found, "one round trip");
    for about in ["web: standard TCP in its place", "web: a nonsense law"] {
        assert!(worlds.iter().any(|w| w == about), "{about}: {worlds:?}");
    }
}

#[test]
fn an_expectation_that_nothing_fails_is_toothless() {
    let open = "\n[[expect]]\nname = \"open\"\nmetric = \"goodput_mbps\"\nat_least = 0.001\n";
    let found = falsify(&format!("{ONE_LOSS}{HALVED}{open}"));
    let toothless: Vec<&str> = found.toothless().map(|e| e.name.as_str()).collect();
    assert_eq!(toothless, ["open"]);
    assert!(!found.passed());
    let nearest = found.expectations[1].nearest.as_ref().unwrap();
    assert_eq!(nearest.world, "main: a fixed window of ten segments");
    assert_eq!(
        Some(nearest.value),
        found.expectations[1].elsewhere.map(|[low, _]| low)
    );

    let excused = format!("{ONE_LOSS}{HALVED}{open}toothless = \"the path is up\"\n");
    let found = falsify(&excused);
    assert!(found.expectations[1].toothless && found.passed());
}

/// Where the interval alone lets an expectation pass, wrong worlds pass by it too: that is said.
#[test]
fn an_expectation_that_its_interval_lets_pass_is_unclear() {
    let lossy = ONE_LOSS.replace("rtt = \"50ms\"", "rtt = \"50ms\"\nloss = 0.002");
    let at_least = |bound: f64| {
        let expect = format!("\n[[expect]]\nmetric = \"goodput_mbps\"\nat_least = {bound}\n");
        falsify(&format!("{lossy}{expect}")).expectations.remove(0)
    };
    let clear = at_least(0.001);
    let [mean, _] = clear.here.unwrap();
    let above = at_least(mean * 1.001);
    assert_eq!((clear.unclear, clear.passes), (false, true));
    assert_eq!((above.unclear, above.passes), (true, true));
}

/// A bound drawn around what one seed gave fails in every wrong world, by chance: so it does with
/// another seed.
#[test]
fn what_holds_with_these_seeds_only_is_said() {
    let lossy = ONE_LOSS.replace("rtt = \"50ms\"", "rtt = \"50ms\"\nloss = 0.002");
    let around = |text: &str, part: f64| {
        let expect = |low: f64, high: f64| {
            let bound = format!("[{low}, {high}]");
            let text = format!("{text}\n[[expect]]\nmetric = \"goodput_mbps\"\nwithin = {bound}\n");
            falsify(&text).expectations.remove(0)
        };
        let [seen, _] = expect(0.0, 1e3).here.unwrap();
        let found = expect(seen * (1.0 - part), seen * (1.0 + part));
        assert!(found.passes && !found.toothless, "{found:?}");
        (found.seed_decides, found.other_seeds)
    };
    let one = lossy.replace("seeds = 2", "seeds = 1");
    let (decides, others) = around(&one, 1e-4);
    assert!(decides && others.is_some());
    let (decides, _) = around(&one, 0.5);
    assert!(!decides);
    // Nothing is random without losses.
    assert_eq!(around(ONE_LOSS, 1e-4), (false, None));
}

/// The matrix compares the stacks of one flow, and all that is expected is another's.
#[test]
fn a_stack_that_nothing_depends_on_is_named() {
    let two = ONE_LOSS.replace(
        "[[traffic]]",
        "[[flow]]\nname = \"other\"\nstack = \"reno\"\nwindow = \"8 segments\"\n\n[[traffic]]",
    );
    let matrix = "\n[matrix]\n\"flow.main.stack\" = [\"reno\", \"scalable\"]\n";
    let other = "\n[[expect]]\nmetric = \"goodput_mbps\"\nflow = \"other\"\nwithin = [0.2, 5]\n";
    let found = falsify(&format!("{two}{other}{matrix}"));
    assert!(found.unnoticed().contains_key("flow.main"), "{found:?}");
    let of_main = "flow = \"main\"\nwhere = { \"flow.main.stack\" = \"reno\" }\nmetric =";
    let halved = HALVED.replace("metric =", of_main);
    let found = falsify(&format!("{two}{other}{halved}{matrix}"));
    assert!(!found.unnoticed().contains_key("flow.main"), "{found:?}");
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
    let trial = Trial::new(scenario, &Overrides::default()).unwrap();
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

/// Datagrams have numbers of their own, which end with them: who is switched off has a part in the
/// result if somebody else's change.
#[test]
fn a_traffic_that_nobody_feels_is_dead() {
    let effect = |start: &str| {
        let text = ONE_LOSS.replace("start = \"1s\"", &format!("start = \"{start}\""));
        let found = falsify(&format!("{text}{HALVED}"));
        let off = found
            .worlds
            .iter()
            .find(|w| w.about == "noise: switched off");
        off.expect("it is there").effect
    };
    assert_eq!(effect("1s"), WorldEffect::Missed);
    assert_eq!(effect("5.999s"), WorldEffect::Dead);
}

#[test]
fn expectations_that_are_left_out_are_counted() {
    let matrix = "\n[matrix]\n\"flow.main.stack\" = [\"reno\", \"scalable\"]\n\n[quick]\n\
                  \"flow.main.stack\" = [\"reno\"]\n";
    let other = "\n[[expect]]\nmetric = \"decrease_fraction\"\nwhere = { \"flow.main.stack\" = \
                 \"scalable\" }\nat_most = 0.2\n";
    let text = format!("{ONE_LOSS}{matrix}{HALVED}{other}");
    let line = text
        .lines()
        .position(|l| l.starts_with("metric = \"decrease"))
        .unwrap();
    let left_out = |quick| {
        let overrides = Overrides {
            quick,
            ..Overrides::default()
        };
        let scenario = Scenario::parse(&text, "test.toml", &overrides).unwrap();
        scenario.left_out
    };
    assert_eq!(left_out(false), [0; 0]);
    let [of] = left_out(true)[..] else {
        panic!("one of two")
    };
    assert!(of > line + 1, "line {of}, not that of the first");
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
    let trial = Trial::new(scenario.unwrap(), &Overrides::default()).unwrap();
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
        "{ONE_LOSS}{HALVED}\n[matrix]\n\"flow.main.stack\" = [\"reno\", \"scalable+hystart++\", \"cubic\"]\n"
    );
    let scenario = Scenario::parse(&two, "test.toml", &Overrides::default()).unwrap();
    let all = worlds(&scenario);
    let of = |about: &str| {
        let world = all.iter().find(|w| w.about == about);
        world.map(fullpipe_results::falsify::World::assignments)
    };
    // Of CUBIC, whose beta is what is kept, 0.3 are removed; of Reno 0.5, of Scalable 0.125.
    let larger = of("main: decreases a fifth larger").unwrap();
    assert_eq!(
        larger,
        [
            "flow.main.stack=\"aimd(decrease=0.6)\"",
            "flow.main.stack=\"scalable(decrease=0.15)+hystart++\"",
            "flow.main.stack=\"cubic(beta=0.64)\"",
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
    let trial = Trial::new(scenario, &overrides).unwrap();
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

/// Two cases with an ordered loss. More datagrams hit the flow in the second alone, the dearer one.
const TWO: &str = r#"name = "two"
duration = "6s"

[path]
rate = "20Mbit/s"
rtt = "50ms"
buffer = "100 packets"

[[flow]]
name = "main"
stack = "reno"
window = "100 segments"
drop = { time = "2s" }

[[traffic]]
name = "noise"
kind = "udp"
rate = "24kbit/s"
start = "3s"

[[matrix.case]]
name = "small"
duration = "4s"
path.rate = "100Mbit/s"
path.rtt = "5ms"
flow.main.window = "4 segments"

[[matrix.case]]
name = "large"

[[expect]]
name = "one is sent again"
metric = "retransmits"
at_most = 1
"#;

const BURST: &str = "\n[[negative]]\nabout = \"the datagrams hit\"\nset = { \"traffic.noise.rate\" \
                     = \"40Mbit/s\" }\n";
const LOSSY: &str = "\n[[negative]]\nabout = \"lossy\"\nset = { \"path.loss\" = 0.05 }\n";

fn first_failure(text: &str) -> Falsification {
    let overrides = Overrides::default();
    let scenario = Scenario::parse(text, "test.toml", &overrides).unwrap_or_else(|e| panic!("{e}"));
    let trial = Trial::new(scenario, &overrides).unwrap();
    let options = Options::default();
    let found = trial.run(Depth::FirstFailure, &options, &fullpipe_sim::run, None);
    found.unwrap()
}

#[test]
fn the_search_misses_nothing_and_runs_less() {
    // What fails in the dearer case alone.
    let found = first_failure(&format!("{TWO}{BURST}"));
    assert_eq!(caught(&found, "one is sent again"), ["the datagrams hit"]);
    assert!(found.passed(), "{found:?}");

    let rate = "\n[[expect]]\nname = \"rate\"\nmetric = \"goodput_mbps\"\nat_least = 5\n";
    let found = first_failure(&format!("{TWO}{BURST}{rate}"));
    assert_eq!(
        caught(&found, "rate"),
        ["main: a fixed window of ten segments"]
    );

    // The same where the expectation has failed before, in the cheaper case.
    let both = format!("{TWO}{LOSSY}{BURST}");
    let found = first_failure(&both);
    assert_eq!(
        found
            .worlds
            .iter()
            .filter(|w| w.effect == WorldEffect::Caught)
            .count(),
        2
    );
    assert!(found.passed(), "{found:?}");
    let every = falsify(&both);
    assert!(found.made < every.made, "{} of {}", found.made, every.made);
    let tried = |found: &Falsification| found.expectations[0].tried;
    assert!(tried(&found) < tried(&every), "{found:?}");
}

/// The last world but a few fails it at the cheaper case: until then other stacks have changed
/// numbers there, and nobody knows of the other case.
#[test]
fn a_world_that_is_looked_at_in_part_is_not_judged() {
    let open = "\n[[expect]]\nmetric = \"goodput_mbps\"\nat_least = 5\n";
    let rates = "\n[matrix]\n\"path.rate\" = [\"20Mbit/s\", \"40Mbit/s\"]\n";
    let text = format!("{ONE_LOSS}{open}{rates}");
    let effect = |found: &Falsification| {
        let mut worlds = found.worlds.iter();
        let unmoved = worlds.find(|w| w.about == "main: a law that no loss impresses");
        unmoved.expect("it is there").effect
    };
    let found = first_failure(&text);
    assert_eq!(effect(&found), WorldEffect::Untried, "{found:?}");
    assert!(!found.unnoticed().contains_key("flow.main"), "{found:?}");
    assert!(found.passed(), "{found:?}");
    let every = falsify(&text);
    assert_eq!(effect(&every), WorldEffect::Missed, "{every:?}");
    assert!(every.unnoticed().contains_key("flow.main"), "{every:?}");
}

#[test]
fn an_inert_world_is_run_whatever_failed_before() {
    let inert = |set: &str| {
        let world = format!("\n[[negative]]\nabout = \"n\"\nset = {{ {set} }}\ninert = \"w\"\n");
        first_failure(&format!("{TWO}{LOSSY}{world}"))
    };
    let found = inert("\"path.buffer\" = \"4000 packets\"");
    assert_eq!(found.worlds[1].effect, WorldEffect::Dead);
    assert!(found.passed(), "{found:?}");
    // A world that sets what the case has already cannot show that the key is inert.
    let found = inert("\"path.buffer\" = \"100 packets\"");
    assert_eq!(found.worlds[1].effect, WorldEffect::Untried);
    assert!(!found.passed(), "{found:?}");
}

/// That nothing was lost in a world breaks no bound: it only leaves nothing to hold against it.
#[test]
fn what_fails_only_where_it_is_undefined_is_weak() {
    let vacuous =
        "\n[[expect]]\nname = \"vacuous\"\nmetric = \"decrease_fraction\"\nwithin = [-5, 5]\n";
    let found = falsify(&format!("{TWO}{LOSSY}{HALVED}{vacuous}"));
    let by_name = |name: &str| found.expectations.iter().find(|e| e.name == name).unwrap();
    let e = by_name("vacuous");
    assert!(
        !e.caught.is_empty() && e.fails_only_undefined && e.weak,
        "{e:?}"
    );
    let others = found.expectations.iter().filter(|e| e.name != "vacuous");
    assert!(others.clone().count() > 0);
    assert!(others.clone().all(|e| !e.fails_only_undefined), "{found:?}");
}

/// With one seed no difference is too large.
#[test]
fn what_one_seed_cannot_judge_is_toothless() {
    let text = format!(
        "{ONE_LOSS}{HALVED}\n[matrix]\n\"path.rtt\" = [\"50ms\", \"60ms\"]\n\n[[expect]]\n\
         name = \"same\"\nmetric = \"goodput_mbps\"\nwhere = {{ \"path.rtt\" = \"50ms\" }}\n\
         agrees_with = {{ \"path.rtt\" = \"60ms\" }}\n"
    );
    let drawn = text.replace("buffer =", "loss = 1e-4\njitter = \"1ms\"\nbuffer =");
    let found = falsify(&drawn.replace("seeds = 2", "seeds = 1"));
    assert!(
        found.toothless().any(|e| e.name == "same" && e.unclear),
        "{found:?}"
    );
}

#[test]
fn what_a_world_of_the_file_alone_fails_is_not_weak() {
    let found = falsify(&format!("{TWO}{BURST}"));
    assert_eq!(caught(&found, "one is sent again"), ["the datagrams hit"]);
    assert_eq!(found.weak().count(), 0);
}

#[test]
fn what_fails_as_it_is_is_not_caught_by_failing_elsewhere() {
    let never = "\n[[expect]]\nname = \"never\"\nmetric = \"goodput_mbps\"\nat_least = 1000\n";
    let found = falsify(&format!("{ONE_LOSS}{HALVED}{never}"));
    assert_eq!(caught(&found, "never"), [""; 0]);
    let passes: Vec<bool> = found.expectations.iter().map(|e| e.passes).collect();
    assert_eq!(passes, [true, false]);
}

/// A discipline may draw, and does not where there is no queue.
#[test]
fn seeds_that_could_change_something_and_do_not_are_named() {
    let drawing = ONE_LOSS.replace("[[flow]]", "queue = \"codel\"\n\n[[flow]]");
    let found = falsify(&format!("{drawing}{HALVED}"));
    assert_eq!(found.same_for_all_seeds.len(), 1);
}

#[test]
fn each_case_gets_the_stack_made_for_it() {
    let compared = "\n[[expect]]\nmetric = \"goodput_mbps\"\nwhere = { stack = \"b\" }\nratio_to = { \
                    stack = \"a\" }\nwithin = [0.1, 10]\n";
    let text = format!(
        "{ONE_LOSS}{HALVED}\n[matrix]\n\"path.rtt\" = [\"50ms\", \"60ms\"]\n\n[[matrix.stack]]\n\
         name = \"a\"\nflow.main.stack = \"reno\"\n[[matrix.stack]]\nname = \"b\"\n\
         flow.main.stack = \"scalable\"\n{compared}"
    );
    let overrides = Overrides::default();
    let scenario = Scenario::parse(&text, "test.toml", &overrides).unwrap();
    let all = worlds(&scenario);
    let of = |about: &str| all.iter().find(|w| w.about == about).unwrap();
    let stacks = |about: &str| -> Vec<String> {
        let other = of(about).of(&scenario, &overrides).unwrap();
        let cases = other.cases.iter();
        cases.map(|c| c.flows[0].stack.clone()).collect()
    };
    let (here, there) = ("aimd(decrease=0.6)", "scalable(decrease=0.15)");
    let larger = "main: decreases a fifth larger";
    assert_eq!(stacks(larger), [here, there, here, there]);
    assert_eq!(of(larger).assignments().len(), 2);
    let one_side = format!("{larger}, not in the case it is compared with");
    assert_eq!(stacks(&one_side), ["reno", there, "reno", there]);
    // The same wrong thing.
    assert_eq!(of(&one_side).kind(), of(larger).kind());
}

/// What `--quick` sets, and a case that nothing asks about, are in the result as well.
#[test]
fn what_was_looked_at_is_said() {
    let large = TWO.replace("at_most = 1", "at_most = 1\nwhere = { case = \"large\" }");
    let text = large.replace("[path]", "seeds = 1\n\n[quick]\nseeds = 2\n\n[path]");
    let parsed = |quick| {
        let overrides = Overrides {
            quick,
            ..Overrides::default()
        };
        let scenario = Scenario::parse(&text, "test.toml", &overrides).unwrap();
        let trial = Trial::new(scenario, &overrides).unwrap();
        let options = Options::default();
        let found = trial.run(Depth::FirstFailure, &options, &fullpipe_sim::run, None);
        let found = found.unwrap();
        (found.quick, found.same_for_all_seeds.len())
    };
    assert_eq!(parsed(false), (false, 0));
    assert_eq!(parsed(true), (true, 2));
}

/// Where the flow that is measured is switched off, nothing is measured: that says nothing.
#[test]
fn a_value_that_went_with_its_flow_is_no_catch() {
    let two = ONE_LOSS.replace(
        "[[traffic]]\nname = \"noise\"\nkind = \"udp\"\nrate = \"1Mbit/s\"\nstart = \"1s\"\n",
        "[[flow]]\nname = \"b\"\nstack = \"reno\"\n",
    );
    let expected = "\n[[expect]]\nname = \"b lives\"\nmetric = \"goodput_mbps\"\nflow = \"b\"\n\
                    at_least = 0.001\n";
    let found = falsify(&format!("{two}{expected}"));
    let worlds = caught(&found, "b lives");
    assert!(!worlds.iter().any(|w| w == "b: switched off"), "{worlds:?}");
    assert!(found.worlds.iter().any(|w| w.about == "b: switched off"));
}

/// A queue of datagrams, and nobody else.
const DATAGRAMS: &str = r#"name = "datagrams"
duration = "5s"

[path]
rate = "10Mbit/s"
rtt = "20ms"
buffer = "unlimited"

[[traffic]]
name = "u"
kind = "udp"
rate = "8Mbit/s"
spacing = "poisson"

[[expect]]
name = "they wait"
metric = "queueing_delay_ms.mean"
at_least = 0.1
"#;

/// Nobody waits where nothing is sent: the traffic is gone, and with it what the queue had.
#[test]
fn a_queue_that_went_with_its_traffic_is_a_catch() {
    let off = "u: switched off";
    let found = falsify(DATAGRAMS);
    let e = &found.expectations[0];
    assert_eq!(e.caught, [off]);
    assert!(
        e.fails_only_undefined && e.weak && found.passed(),
        "{found:?}"
    );
    assert_eq!(found.dead().count(), 0);

    let about = "nothing is sent";
    let negative = format!(
        "{DATAGRAMS}\n[[negative]]\nabout = \"{about}\"\nset = {{ \"traffic.u.enabled\" = false }}\n"
    );
    let found = falsify(&negative);
    assert_eq!(caught(&found, "they wait"), [about]);
    assert!(found.passed(), "{found:?}");
    let found = first_failure(&negative);
    assert_eq!(found.worlds[0].effect, WorldEffect::Caught);
}

/// The only traffic is meant where none is named: its numbers are gone with it all the same.
#[test]
fn numbers_of_a_traffic_without_a_name_are_its_own() {
    for metric in ["delay_ms.mean", "delay_ms.mean / delay_ms.min"] {
        for of in ["", "\nflow = \"u\""] {
            let own = format!("metric = \"{metric}\"{of}");
            let text = DATAGRAMS.replace("metric = \"queueing_delay_ms.mean\"", &own);
            let found = falsify(&text);
            assert_eq!(found.expectations[0].caught, [""; 0], "{own}");
            assert!(!found.expectations[0].fails_only_undefined, "{own}");
        }
    }
}

/// What somebody asks about changes, though no other flow or traffic feels it; so does whatever
/// there is where there is nobody else.
#[test]
fn a_link_that_is_asked_about_has_a_part_in_the_result() {
    let off = |text: &str| {
        let found = falsify(text);
        let off = found
            .worlds
            .iter()
            .find(|w| w.about.ends_with("switched off"));
        off.expect("it is there").effect
    };
    let late = ONE_LOSS.replace("start = \"1s\"", "start = \"5.98s\"");
    let waiting =
        "\n[[expect]]\nmetric = \"queue_packets.mean\"\nlink = \"bottleneck\"\nat_least = 1\n";
    assert_eq!(off(&format!("{late}{HALVED}")), WorldEffect::Dead);
    assert_eq!(
        off(&format!("{late}{HALVED}{waiting}")),
        WorldEffect::Missed
    );
    let own = "metric = \"sent_mbps\"\nflow = \"u\"";
    let own = DATAGRAMS.replace("metric = \"queueing_delay_ms.mean\"", own);
    assert_eq!(off(&own), WorldEffect::Missed);
}

/// Room for any queue is nothing new where a queue has no end.
#[test]
fn an_unlimited_queue_has_no_world_with_more_room() {
    let cases = |text: &str| -> Vec<Option<usize>> {
        let scenario = Scenario::parse(text, "test.toml", &Overrides::default()).unwrap();
        let worlds = worlds(&scenario).into_iter();
        let room = worlds.filter(|w| w.about.ends_with("room for any queue"));
        let keys = room.flat_map(|w| w.keys).filter(|k| k.key == "path.buffer");
        keys.map(|key| key.case).collect()
    };
    let matrix = "\n[matrix]\n\"path.buffer\" = [\"unlimited\", \"100 packets\"]\n";
    assert_eq!(cases(DATAGRAMS), []);
    assert_eq!(cases(&format!("{DATAGRAMS}{matrix}")), [Some(1)]);
    assert_eq!(cases(&DATAGRAMS.replace("unlimited", "9 packets")), [None]);
}

/// Asymmetry is that of two flows: where one is gone, the world is held against what is left.
#[test]
fn a_negative_is_held_against_what_is_valid_in_it_or_refused() {
    let two = ONE_LOSS.replace(
        "[[traffic]]\nname = \"noise\"\nkind = \"udp\"\nrate = \"1Mbit/s\"\nstart = \"1s\"\n",
        "[[flow]]\nname = \"b\"\nstack = \"reno\"\n",
    );
    let pair = "\n[[expect]]\nname = \"pair\"\nmetric = \"asymmetry\"\nwithin = [-1, 1]\n";
    let full = "\n[[expect]]\nname = \"full\"\nmetric = \"goodput_mbps\"\nflow = \"main\"\nat_most = \
                1\n";
    let away = "\n[[negative]]\nabout = \"b away\"\nset = { \"flow.b.enabled\" = false }\n";

    let found = falsify(&format!("{two}{pair}{full}{away}"));
    let world = &found.worlds[0];
    assert_eq!((world.about.as_str(), world.left_out.len()), ("b away", 1));
    let left_out = &world.left_out[0];
    assert_eq!(
        (left_out.name.as_str(), left_out.why.as_str()),
        ("pair", "asymmetry compares two flows, there are 1")
    );
    assert!(world.caught_by.iter().all(|name| name != "pair"));

    let refused = |text: &str| {
        let overrides = Overrides::default();
        let scenario = Scenario::parse(text, "test.toml", &overrides);
        let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
        Trial::new(scenario, &overrides).unwrap_err().to_string()
    };
    let text = format!("{two}{pair}{away}");
    let line = text
        .lines()
        .position(|line| line == "[[negative]]")
        .unwrap()
        + 1;
    let nobody = format!(
        "test.toml:{line}: [[negative]] \"b away\": every expectation is invalid in it: asymmetry \
         compares two flows, there are 1"
    );
    assert_eq!(refused(&text), nobody);

    // A key that contradicts the others.
    let late = "\n[[negative]]\nabout = \"too late\"\nset = { \"flow.b.start\" = \"100s\" }\n";
    let late = refused(&format!("{two}{full}{late}"));
    assert!(
        late.contains("[[negative]] \"too late\": `flow.b.start`: "),
        "{late}"
    );
}
