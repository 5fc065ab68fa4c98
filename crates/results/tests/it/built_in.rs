//! The built-in scenarios held against wrong worlds.

use fullpipe_results::falsify::{Depth, Falsification, Trial, WorldEffect};
use fullpipe_results::metrics::{RunMetrics, measure, range};
use fullpipe_results::run::Options;
use fullpipe_scenario::{Loaded, Overrides, load};
use fullpipe_units::{Span, Time};
use rayon::iter::{IntoParallelIterator, ParallelBridge, ParallelIterator};

/// Worlds in which an experiment is not the one that its name promises, by scenario: each once left
/// every expectation content.
const KNOWN: [(&str, &str); 7] = [
    ("blast", "the datagrams are switched off"),
    ("blast", "the datagrams find room"),
    (
        "waves",
        "one nonsense law for all stacks, and a single flow",
    ),
    ("slac-txqueuelen", "an interface that nothing fills"),
    (
        "slac-fairness",
        "all stacks are standard TCP, one stream each",
    ),
    ("slow-start-cap", "no segment is lost on purpose"),
    (
        "spreading",
        "three segments back to back, whatever is asked",
    ),
];

/// Scenarios whose wrong worlds take 6 s and more each of a CPU, four fifths of all together;
/// those that take longest begin.
const LONG: [&str; 20] = [
    "core-scale",
    "slac",
    "early-loss",
    "tour",
    "spreading-mixed",
    "waves",
    "response",
    "reverse",
    "slac-stability",
    "rrul",
    "slac-fairness",
    "slac-throughput",
    "slac-txqueuelen",
    "versus",
    "dtn",
    "tcpeval-basic",
    "tcpeval-buffers",
    "tcpeval-ramp-up",
    "tcpeval-transients",
    "tcpeval-impact",
];

/// Every expectation passes where it was looked at, and fails in a wrong world, or its file says
/// why none is known; every wrong world that a file names is noticed.
#[test]
fn every_expectation_of_the_built_in_scenarios_can_fail() {
    let names = fullpipe_scenario::builtin::names();
    none_is_at_fault(names.filter(|name| !LONG.contains(name)));
}

#[test]
#[ignore = "minutes: make verify-scenarios"]
fn every_expectation_of_the_long_scenarios_can_fail() {
    let names: Vec<&str> = fullpipe_scenario::builtin::names().collect();
    assert!(LONG.iter().all(|name| names.contains(name)));
    none_is_at_fault(LONG.into_iter());
}

/// One by one they go to who is free.
#[track_caller]
fn none_is_at_fault(names: impl Iterator<Item = &'static str> + Send) {
    let of_all: Vec<Vec<String>> = names.par_bridge().map(faults).collect();
    let faults: Vec<String> = of_all.into_iter().flatten().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What is wrong with the expectations of a scenario.
fn faults(name: &str) -> Vec<String> {
    let overrides = Overrides {
        quick: true,
        ..Overrides::default()
    };
    let loaded = load(name, &overrides).unwrap_or_else(|e| panic!("{e}"));
    let Loaded::Scenario(scenario) = loaded else {
        return Vec::new();
    };
    let found = falsified(Trial::new(*scenario, &overrides).unwrap());
    let toothless = found.toothless();
    let toothless =
        toothless.map(|e| format!("{name}, line {}: `{}` is toothless", e.line, e.name));
    let failing = found.expectations.iter().filter(|e| !e.passes);
    let failing = failing.map(|e| format!("{name}, line {}: `{}` fails as it is", e.line, e.name));
    let unnoticed = found.uncaught();
    let unnoticed = unnoticed.map(|w| format!("{name}: nothing notices \"{}\"", w.about));
    let excused =
        |e: &&fullpipe_results::falsify::ExpectationTeeth| !e.toothless && e.excuse.is_some();
    let sharp = found.expectations.iter().filter(excused);
    let sharp = sharp.map(|e| format!("{name}, line {}: `{}` can fail", e.line, e.name));
    let caught = |about: &str| {
        let mut worlds = found.worlds.iter();
        worlds.any(|w| w.line.is_some() && w.about == about && w.effect == WorldEffect::Caught)
    };
    let known = KNOWN.iter().filter(|(of, _)| *of == name);
    let gone = known.filter(|(_, about)| !caught(about));
    let gone = gone.map(|(_, about)| format!("{name}: the file lacks, or misses, \"{about}\""));
    let faults = toothless.chain(failing).chain(unnoticed).chain(sharp);
    faults.chain(gone).collect()
}

fn falsified(trial: Trial) -> Falsification {
    let options = Options {
        jobs: 1,
        ..Options::default()
    };
    let ground = &fullpipe_sim::run;
    let found = trial.run(Depth::FirstFailure, &options, ground, None);
    found.unwrap_or_else(|e| panic!("{e}"))
}

/// Seconds of a case that are run with two seeds.
const SHORT: Span = Span::from_secs(2);

/// Where a specification says that its seed decides nothing, two seeds give the same numbers; the
/// other way round a lossy path gives others.
#[test]
fn what_is_not_random_repeats_itself() {
    let names: Vec<&str> = fullpipe_scenario::builtin::names().collect();
    let judged: Vec<(usize, usize)> = names.into_par_iter().map(repeated).collect();
    let (fixed, drawn) = judged.iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert!(fixed > 50 && drawn > 5, "{fixed} fixed, {drawn} drawn");
}

/// Every value is one that its metric can have, but for the rounding of a quotient.
#[track_caller]
fn assert_possible(name: &str, measured: &RunMetrics) {
    let flows = measured.flows.iter().map(|f| &f.values);
    let traffic = measured.traffic.iter().map(|t| &t.values);
    let links = measured.links.iter().map(|l| &l.values);
    let all = flows.chain(traffic).chain(links).chain([&measured.metrics]);
    for (metric, value) in all.flat_map(|values| values.iter()) {
        let ([least, most], Some(value)) = (range(metric), value) else {
            continue;
        };
        assert!(
            (least - 1e-9..=most + 1e-9).contains(&value),
            "{name}: {metric} is {value}"
        );
    }
}

/// How many cases of a scenario repeat themselves, and how many of the others do not.
fn repeated(name: &str) -> (usize, usize) {
    let loaded = load(name, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let Loaded::Scenario(scenario) = loaded else {
        return (0, 0);
    };
    let (mut fixed, mut drawn) = (0, 0);
    let (random, repeating): (Vec<_>, Vec<_>) = scenario
        .cases
        .iter()
        .take(60)
        .partition(|case| case.run_spec(1).is_random());
    // Of what may differ one case shows whether it does.
    for case in random.iter().take(1).chain(&repeating) {
        let numbers = |seed| {
            let mut spec = case.run_spec(seed);
            spec.duration = SHORT.min(spec.duration);
            spec.measure_from = Time::ZERO;
            let outcome = fullpipe_sim::run(&spec).unwrap();
            let measured = measure(&case.flows, &case.traffic, &spec, &outcome);
            assert_possible(name, &measured);
            measured
        };
        let same = numbers(1) == numbers(2);
        let random = case.run_spec(1).is_random();
        assert!(random || same, "{name}, {:?}", case.params());
        fixed += usize::from(!random);
        drawn += usize::from(random && !same);
    }
    (fixed, drawn)
}
