//! Same scenario and seed: the same bytes, for any number of threads.

use fullpipe_results::result::printed;
use fullpipe_scenario::Overrides;
use serde_json::Value;

use crate::small::{MATRIX, scenario};
use crate::store_support::{assert_same, contents, run, with};

#[test]
fn files_are_the_same_bytes_for_one_and_two_threads_twice() {
    let s = scenario(MATRIX);
    let root = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for (name, jobs) in [("a", 1), ("b", 2), ("c", 1), ("d", 2)] {
        let dir = root.path().join(name);
        let (ran, log) = run(&s, Some(&dir), jobs, false).unwrap();
        assert_eq!((ran.made, ran.reused), (8, 0));
        assert_eq!(log.finished.lock().unwrap().len(), 8);
        all.push(contents(&dir));
    }
    for name in [
        "manifest.json",
        "result.json",
        "runs.parquet",
        "links.parquet",
    ] {
        assert!(all[0].contains_key(name), "{name}");
    }
    for part in ["", ".links", ".events"] {
        assert!(all[0].contains_key(&format!("series/case-0003-seed2{part}.parquet")));
    }
    assert_eq!(all[0].keys().filter(|n| n.starts_with("runs/")).count(), 8);
    for other in &all[1..] {
        assert_same(&all[0], other);
    }
}

#[test]
fn another_seed_gives_another_result() {
    let root = tempfile::tempdir().unwrap();
    let result = |seed: u64| {
        let s = with(
            MATRIX,
            &Overrides {
                seed: Some(seed),
                // Often enough that two seeds cannot both pass without a loss.
                set: vec![("flow.main.drop.probability".into(), "0.01".into())],
                ..Overrides::default()
            },
        );
        run(&s, Some(&root.path().join(seed.to_string())), 2, false)
            .unwrap()
            .0
            .result
    };
    let (a, b) = (result(7), result(8));
    assert_eq!(a.cases[0].seeds, [7]);
    assert_ne!(
        a.cases[0].flows, b.cases[0].flows,
        "random losses must depend on the seed"
    );
}

#[test]
fn what_is_printed_is_what_is_stored_but_for_wall_times() {
    let root = tempfile::tempdir().unwrap();
    let s = scenario(MATRIX);
    let (ran, _) = run(&s, Some(root.path()), 2, false).unwrap();
    let stored = std::fs::read_to_string(root.path().join("result.json")).unwrap();
    let doubles: Value = serde_json::from_str(&stored).unwrap();
    let text = ran.result.without_times().to_json();
    assert_eq!(text.lines().count(), stored.lines().count());
    let read: Value = serde_json::from_str(&text).unwrap();
    // Fifteen digits of the same.
    assert_eq!(printed::pretty(&read), printed::pretty(&doubles));
    assert_ne!(read, doubles, "no number has more digits");
    assert!(
        ran.result
            .cases
            .iter()
            .all(|c| c.wall_s.is_some() && c.packets_per_s.is_some())
    );
    let timing = std::fs::read_to_string(root.path().join("timing.json")).unwrap();
    let timing: Value = serde_json::from_str(&timing).unwrap();
    // A day and a time, as `2026-11-24T13:20:05.123Z`.
    let ended = timing[0]["ended"].as_str().unwrap();
    assert!(ended.starts_with("20") && ended.len() == 24, "{ended}");
    assert!(!stored.contains("wall_s") && ran.result.to_json().contains("wall_s"));
    // And without a directory the same again.
    let (again, _) = run(&s, None, 1, false).unwrap();
    assert_eq!(again.result.without_times(), ran.result.without_times());
}
