//! Two grounds held against each other: a second one is made from the simulator by known faults.

use std::path::Path;

use fullpipe_results::agreement::{COMPLETION_AREA, CWND_AREA, Distance, LOSS_TIME};
use fullpipe_results::compare::{Comparison, Options, Verdict, View, compare_stored};
use fullpipe_results::store::ResultDir;
use fullpipe_run::{Ground, GroundError};
use fullpipe_run::{Outcome, RunSpec};
use fullpipe_units::Span;

use crate::small::scenario;
use crate::store_support::run_in;

/// The simulator, with a fault.
struct Faulty<F>(F);

impl<F: Fn(&mut Outcome) + Sync> Ground for Faulty<F> {
    fn name(&self) -> &str {
        "udp"
    }

    fn fingerprint(&self) -> &str {
        "altered"
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        let mut outcome = fullpipe_sim::run(spec)?;
        self.0(&mut outcome);
        Ok(outcome)
    }
}

const ALONE: &str = r#"
name = "alone"
duration = "6s"

[path]
rate = "20Mbit/s"
rtt = "40ms"

[[flow]]
name = "main"
stack = "reno"
streams = 2
drop = { time = "2s" }

[[traffic]]
name = "web"
kind = "short-flows"
stack = "reno"
size = "5 segments"
per_second = 5

[measure]
trace = "full"
"#;

fn held(text: &str, fault: impl Fn(&mut Outcome) + Sync, options: &Options) -> Comparison {
    let root = tempfile::tempdir().unwrap();
    let dirs = ["a", "b"].map(|d| root.path().join(d));
    let s = scenario(text);
    run_in(&s, Some(&dirs[0]), 2, false, &fullpipe_sim::run).unwrap();
    run_in(&s, Some(&dirs[1]), 2, false, &Faulty(fault)).unwrap();
    let open = |dir: &Path| ResultDir::open(dir).unwrap();
    let (a, b) = (open(&dirs[0]), open(&dirs[1]));
    compare_stored(&a, &b, options).unwrap()
}

fn distance<'a>(c: &'a Comparison, flow: &str, measure: &str) -> &'a Distance {
    let wanted = |d: &&Distance| d.flow == flow && d.measure == measure;
    c.distances.iter().find(wanted).unwrap()
}

#[test]
fn what_is_the_same_agrees_and_other_numbers_are_not_judged() {
    let c = held(ALONE, |o| o.links[0].queue_mean += 1e3, &Options::default());
    assert_eq!(c.view, View::Agreement);
    assert!(c.agree, "{:?}", c.distances);
    assert_eq!(c.distances.len(), 3);
    assert!(c.distances.iter().all(|d| d.verdict == Verdict::Same));
    let queue = c.rows.iter().find(|r| r.metric == "queue_packets.mean");
    let queue = queue.unwrap();
    assert_eq!((queue.verdict, queue.judged), (Verdict::Beyond, false));
    // Asked for by name it is.
    let options = Options {
        metrics: vec!["queue_packets.mean".to_owned()],
        ..Options::default()
    };
    assert!(!held(ALONE, |o| o.links[0].queue_mean += 1e3, &options).agree);
}

/// A tenth less in every row is a tenth of the area, whatever the curve and however many streams.
#[test]
fn a_window_that_is_a_tenth_smaller() {
    let shrink = |part: f64| {
        move |o: &mut Outcome| {
            let rows = o.flows.iter_mut().flat_map(|f| &mut f.series.rows);
            rows.for_each(|r| r.cwnd *= 1.0 - part);
        }
    };
    for (part, verdict) in [(0.1, Verdict::Beyond), (0.04, Verdict::Within)] {
        let c = held(ALONE, shrink(part), &Options::default());
        let d = distance(&c, "main", CWND_AREA);
        // Full traces keep four decimals of a window.
        assert!((d.mean - part).abs() < 1e-6, "{d:?}");
        assert_eq!(d.verdict, verdict);
        assert_eq!(c.agree, verdict == Verdict::Within);
    }
    let strict = Options {
        thresholds: [(CWND_AREA.to_owned(), 0.03)].into(),
        ..Options::default()
    };
    assert!(!held(ALONE, shrink(0.04), &strict).agree);
}

#[test]
fn events_that_come_late_and_one_that_does_not_come() {
    let late = |by: Span| {
        move |o: &mut Outcome| {
            let all = o.flows.iter_mut().flat_map(|f| &mut f.episodes);
            all.for_each(|e| e.at += by);
        }
    };
    for (ms, verdict) in [(30, Verdict::Within), (90, Verdict::Beyond)] {
        let c = held(ALONE, late(Span::from_millis(ms)), &Options::default());
        let d = distance(&c, "main", LOSS_TIME);
        assert!((d.mean_ms.unwrap() - ms as f64).abs() < 1e-6, "{d:?}");
        // The smallest RTT is 40 ms and the transmission of a segment and its ACK.
        assert!((d.mean - ms as f64 / 40.6).abs() < 0.02 * d.mean, "{d:?}");
        assert_eq!((d.verdict, c.agree), (verdict, verdict == Verdict::Within));
    }
    let miss = |o: &mut Outcome| o.flows[0].totals.loss_events -= 1;
    let c = held(ALONE, miss, &Options::default());
    let row = c.rows.iter().find(|r| r.metric == "loss_events").unwrap();
    assert_eq!((row.verdict, row.threshold), (Verdict::Beyond, 0.0));
    assert!(!c.agree);
}

#[test]
fn short_flows_that_take_longer() {
    let slow = |o: &mut Outcome| {
        let all = o.arrivals[0].transfers.iter_mut();
        all.for_each(|t| t.completion = t.completion.map(|c| c * 2));
    };
    let c = held(ALONE, slow, &Options::default());
    let d = distance(&c, "web", COMPLETION_AREA);
    assert!((d.mean - 1.0).abs() < 1e-6, "{d:?}");
    assert_eq!(d.verdict, Verdict::Beyond);
}

/// The simulator repeats itself, the other ground does not: what two of its own runs differ by says
/// nothing against the simulator.
#[test]
fn chance_of_one_ground_counts_beside_one_that_repeats_itself() {
    struct Unsteady;
    impl Ground for Unsteady {
        fn name(&self) -> &str {
            "udp"
        }

        fn fingerprint(&self) -> &str {
            "altered"
        }
        fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
            let mut outcome = fullpipe_sim::run(spec)?;
            let factor = [0.92, 1.08][(spec.seed % 2) as usize];
            let rows = outcome.flows.iter_mut().flat_map(|f| &mut f.series.rows);
            rows.for_each(|r| r.cwnd *= factor);
            Ok(outcome)
        }
    }
    let (text, _) = ALONE.split_once("[[traffic]]").unwrap();
    let text = text.replace("duration", "seeds = 4\nduration") + "[measure]\ntrace = \"full\"\n";
    let root = tempfile::tempdir().unwrap();
    let dirs = ["a", "b"].map(|d| root.path().join(d));
    let s = scenario(&text);
    run_in(&s, Some(&dirs[0]), 2, false, &fullpipe_sim::run).unwrap();
    run_in(&s, Some(&dirs[1]), 2, false, &Unsteady).unwrap();
    let open = |dir: &Path| ResultDir::open(dir).unwrap();
    let c = compare_stored(&open(&dirs[0]), &open(&dirs[1]), &Options::default()).unwrap();
    let d = distance(&c, "main", CWND_AREA);
    assert!((d.mean - 0.08).abs() < 1e-3, "{d:?}");
    assert!(d.between_seeds.is_some_and(|s| s > 0.1), "{d:?}");
    assert_eq!(d.verdict, Verdict::Indistinguishable, "{d:?}");
}

/// With losses at random no two seeds are alike. Runs whose seeds are exchanged are other runs of
/// the same ground: what they differ by is no more than chance. A window a third smaller is more
/// than that.
#[test]
fn chance_is_told_from_a_fault_by_what_two_seeds_differ_by() {
    let text = ALONE.replace("drop = { time = \"2s\" }", "drop = { probability = 2e-3 }");
    let text = text.replace("duration", "seeds = 8\nduration");
    let root = tempfile::tempdir().unwrap();
    let dirs = ["a", "b", "c"].map(|d| root.path().join(d));
    let s = scenario(&text);
    run_in(&s, Some(&dirs[0]), 2, false, &fullpipe_sim::run).unwrap();
    struct Exchanged(f64);
    impl Ground for Exchanged {
        fn name(&self) -> &str {
            "udp"
        }

        fn fingerprint(&self) -> &str {
            "altered"
        }
        fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
            let mut spec = spec.clone();
            spec.seed += 100;
            let mut outcome = fullpipe_sim::run(&spec)?;
            let rows = outcome.flows.iter_mut().flat_map(|f| &mut f.series.rows);
            rows.for_each(|r| r.cwnd *= self.0);
            Ok(outcome)
        }
    }
    run_in(&s, Some(&dirs[1]), 2, false, &Exchanged(1.0)).unwrap();
    run_in(&s, Some(&dirs[2]), 2, false, &Exchanged(0.33)).unwrap();
    let against = |dir: &Path| {
        let open = |dir: &Path| ResultDir::open(dir).unwrap();
        let c = compare_stored(&open(&dirs[0]), &open(dir), &Options::default()).unwrap();
        distance(&c, "main", CWND_AREA).clone()
    };
    let chance = against(&dirs[1]);
    assert!(chance.mean > 0.05 && chance.pairs == 8, "{chance:?}");
    assert_eq!(chance.verdict, Verdict::Indistinguishable, "{chance:?}");
    let fault = against(&dirs[2]);
    assert!(fault.mean > fault.between_seeds.unwrap());
    assert_eq!(fault.verdict, Verdict::Beyond, "{fault:?}");
}
