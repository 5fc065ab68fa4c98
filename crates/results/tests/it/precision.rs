//! Seeds are added until the interval is as narrow as asked for, or the cap is reached, and it is
//! said which of the two.

use fullpipe_results::store::ResultDir;
use fullpipe_run::{Outcome, RunSpec, Violation};
use fullpipe_scenario::{Precision, Scenario};

use crate::small::scenario;
use crate::store_support::{assert_same, contents, never, run_in};

const TEXT: &str = r#"
name = "sure"
about = "Four cases with a spread of their own"
duration = "1s"

[path]
rate = "1Mbit/s"
rtt = "40ms"

[[flow]]
name = "main"
stack = "reno"

[matrix]
"path.rate" = ["1Mbit/s", "2Mbit/s", "3Mbit/s", "4Mbit/s"]
"#;

fn asking(target: f64, max_seeds: u32) -> Scenario {
    let mut s = scenario(TEXT);
    s.measure.precision = Some(Precision {
        target,
        of: vec!["goodput_mbps".into()],
        max_seeds,
    });
    s
}

/// Goodput alternates by the seed around 100 000 segments, by 0.5, 1, 2 and 50 % in the four cases.
fn spread(spec: &RunSpec) -> Result<Outcome, Violation> {
    let mut o = fullpipe_sim::run(spec)?;
    let rate = spec.links.iter().find_map(|l| l.rate).unwrap();
    let by = [500, 1000, 2000, 50_000][(rate.as_bits_per_sec() / 1_000_000 - 1) as usize];
    o.flows[0].totals.delivered_measured = match spec.seed % 2 {
        0 => 100_000 - by,
        _ => 100_000 + by,
    };
    Ok(o)
}

#[test]
fn every_case_gets_the_seeds_it_needs() {
    // Half width over mean of n values +d, -d, +d, ...: 2.87 d for 3 seeds, 1.36 d for 5, 0.99 d
    // for 7.
    let (ran, log) = run_in(&asking(0.02, 10), None, 2, false, &spread).unwrap();
    let seeds: Vec<usize> = ran.result.cases.iter().map(|c| c.seeds.len()).collect();
    assert_eq!(seeds, [3, 5, 7, 10]);
    assert_eq!(ran.result.cases[1].seeds, [1, 2, 3, 4, 5]);
    let reached: Vec<_> = ran
        .result
        .cases
        .iter()
        .map(|c| c.precision.clone().unwrap())
        .collect();
    assert_eq!(
        reached.iter().map(|p| p.reached).collect::<Vec<_>>(),
        [true, true, true, false]
    );
    // Five values 1.01, 0.99, ..: t(4) = 2.776445, deviation 0.01 sqrt(1.2), mean 1.002.
    let expected = 2.776_445_105 * 0.01 * (1.2f64 / 5.0).sqrt() / 1.002;
    assert!(
        (reached[1].achieved.unwrap() - expected).abs() < 1e-9,
        "{:?}",
        reached[1]
    );
    assert_eq!(reached[3].of.as_deref(), Some("main"));
    let warned = log.warnings.lock().unwrap();
    assert!(
        warned.len() == 1
            && warned[0].starts_with("the precision of ±2 % is not reached in 1 of 4 cases")
            && warned[0].contains("goodput_mbps of main is ±37.7 % after 10 seeds"),
        "{warned:?}"
    );
    assert_eq!(log.finished.lock().unwrap().len(), 25);
}

/// A gain needs the baseline's run with the same seed: the baseline, which has none itself, gets as
/// many seeds as the case that needs most.
#[test]
fn a_baseline_gets_the_seeds_of_those_that_are_held_against_it() {
    let text = format!("{TEXT}\n[measure]\nbaseline = {{ \"path.rate\" = \"1Mbit/s\" }}\n");
    let mut s = scenario(&text);
    s.measure.precision = Some(Precision {
        target: 0.02,
        of: vec!["gain".into()],
        max_seeds: 10,
    });
    // The gain alternates by 0.5, 1.5 and 50 %.
    let (ran, log) = run_in(&s, None, 2, false, &spread).unwrap();
    let cases = &ran.result.cases;
    let seeds: Vec<usize> = cases.iter().map(|c| c.seeds.len()).collect();
    assert_eq!(seeds, [10, 3, 7, 10]);
    assert!(cases[0].precision.is_none() && cases[2].precision.as_ref().unwrap().reached);
    let warned = log.warnings.lock().unwrap();
    assert!(
        warned.len() == 1 && warned[0].contains("in 1 of 3 cases"),
        "{warned:?}"
    );
    let gain = &cases[3].metrics.0["gain"];
    let expected = 0.5 * (150_000.0 / 100_500.0 + 50_000.0 / 99_500.0);
    assert!((gain.mean.unwrap() - expected).abs() < 1e-9, "{gain:?}");
}

#[test]
fn without_a_precision_nothing_is_added() {
    let (ran, log) = run_in(&scenario(TEXT), None, 1, false, &spread).unwrap();
    assert!(
        ran.result
            .cases
            .iter()
            .all(|c| c.seeds == [1] && c.precision.is_none())
    );
    assert!(log.warnings.lock().unwrap().is_empty());
}

#[test]
fn the_same_bytes_for_any_number_of_threads_and_after_a_stop() {
    let root = tempfile::tempdir().unwrap();
    let s = asking(0.02, 10);
    let dir = |name: &str| root.path().join(name);
    run_in(&s, Some(&dir("one")), 1, false, &spread).unwrap();
    run_in(&s, Some(&dir("three")), 3, false, &spread).unwrap();
    let whole = contents(&dir("one"));
    assert_same(&whole, &contents(&dir("three")));
    let stored = ResultDir::open(&dir("one")).unwrap();
    assert_eq!(stored.manifest().runs.len(), 25);
    assert_eq!(stored.runs().unwrap().rows(), 25);
    assert_eq!(stored.result().unwrap().cases[2].seeds.len(), 7);

    // Everything there: nothing is run again, not even to find out how many seeds are needed.
    let (ran, _) = run_in(&s, Some(&dir("one")), 2, true, &never).unwrap();
    assert_eq!((ran.made, ran.reused), (0, 25));
    assert_same(&whole, &contents(&dir("one")));
    // Stopped in the second batch, then taken up.
    let stops = |spec: &RunSpec| {
        assert!(spec.seed < 5, "stop");
        spread(spec)
    };
    assert!(run_in(&s, Some(&dir("part")), 2, false, &stops).is_err());
    let (ran, _) = run_in(&s, Some(&dir("part")), 2, true, &spread).unwrap();
    assert!(
        ran.reused >= 12 && ran.made > 0,
        "{} {}",
        ran.reused,
        ran.made
    );
    assert_same(&whole, &contents(&dir("part")));
    // Begun anew in the same place.
    run_in(&s, Some(&dir("part")), 2, false, &spread).unwrap();
    assert_same(&whole, &contents(&dir("part")));
}
