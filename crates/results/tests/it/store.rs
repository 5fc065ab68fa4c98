//! The result directory: what is in it, who may write it, what happens when it is damaged.

use std::collections::BTreeMap;
use std::fs;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use fullpipe_metrics as metrics;
use fullpipe_metrics::Scope;
use fullpipe_results::run::RunError;
use fullpipe_results::store::{ResultDir, SeriesKind, StoreError, sha256};
use fullpipe_run::{LookField, Looks, Outcome, RunSpec, Violation};
use fullpipe_scenario::{Overrides, Scenario};
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::small::{MATRIX, scenario};
use crate::store_support::{Dice, assert_same, contents, run, run_in, with};

#[test]
fn the_manifest_says_what_was_run_and_hashes_every_file() {
    let root = tempfile::tempdir().unwrap();
    run(&scenario(MATRIX), Some(root.path()), 2, false).unwrap();
    let text = fs::read_to_string(root.path().join("manifest.json")).unwrap();
    let m: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(m["scenario"], "small");
    assert_eq!(m["scenario_text"], MATRIX);
    assert_eq!(m["seeds"], serde_json::json!([1, 2]));
    assert_eq!(m["complete"], true);
    assert_eq!(
        m["cases"][1],
        serde_json::json!({"flow.main.stack": "reno", "path.mtu": 9000})
    );
    assert!(m["machine"]["arch"].is_string() && m["fullpipe"].is_string());
    let listed = m["files"].as_array().unwrap().iter();
    let of_runs = m["runs"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|r| r["files"].as_array().unwrap());
    let mut hashed = 0;
    for file in listed.chain(of_runs) {
        let bytes = fs::read(root.path().join(file["path"].as_str().unwrap())).unwrap();
        assert_eq!(file["sha256"], sha256(&bytes));
        hashed += 1;
    }
    // Result and two tables; series, links, events and samples of eight runs.
    assert_eq!(hashed, 3 + 8 * 4);
}

/// A table alone says what made it, and nothing in it differs when it is made again.
#[test]
fn a_table_can_be_cited() {
    let root = tempfile::tempdir().unwrap();
    let overrides = Overrides {
        set: vec![("path.loss".to_owned(), "1e-3".to_owned())],
        ..Overrides::default()
    };
    let of = Scenario::parse(MATRIX, "small.toml", &overrides).unwrap();
    run(&of, Some(root.path()), 2, false).unwrap();
    let dir = ResultDir::open(root.path()).unwrap();
    let manifest = dir.manifest();
    let meta = |file: &str| -> BTreeMap<String, String> {
        let bytes = fs::read(root.path().join(file)).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let pairs = reader.metadata().file_metadata().key_value_metadata();
        let pairs = pairs.unwrap().iter();
        pairs
            .map(|p| (p.key.clone(), p.value.clone().unwrap()))
            .collect()
    };
    for file in ["runs.parquet", "links.parquet"] {
        let meta = meta(file);
        assert_eq!(meta["fullpipe.engine"], manifest.engine, "{file}");
        assert_eq!(meta["fullpipe.scenario_sha256"], sha256(MATRIX.as_bytes()));
        assert_eq!(meta["fullpipe.seeds"], "1-2");
        assert_eq!(meta["fullpipe.set"], r#"{"path.loss":"1e-3"}"#);
        let table = if file == "runs.parquet" {
            dir.runs()
        } else {
            dir.links()
        }
        .unwrap();
        let units: serde_json::Value = serde_json::from_str(&meta["fullpipe.units"]).unwrap();
        for (name, _) in &table.columns {
            let unit = metrics::unit(name);
            assert!(
                unit.is_empty() || units[name] == unit,
                "{file} {name}: {unit}"
            );
        }
    }
    for kind in [SeriesKind::Flows, SeriesKind::Links, SeriesKind::Events] {
        let name = fullpipe_results::store::series_name(3, 2, kind);
        let of = manifest.runs.iter().find(|r| (r.case, r.seed) == (3, 2));
        let meta = meta(&name);
        assert_eq!(meta["fullpipe.run"], of.unwrap().key.to_string(), "{name}");
        assert_eq!(meta["fullpipe.engine"], manifest.engine);
    }
}

#[test]
fn runs_are_one_tidy_row_per_flow_case_and_seed() {
    let root = tempfile::tempdir().unwrap();
    let (ran, _) = run(&scenario(MATRIX), Some(root.path()), 2, false).unwrap();
    let dir = ResultDir::open(root.path()).unwrap();
    let table = dir.runs().unwrap();
    assert_eq!(table.rows(), 2 * 4 * 2);
    assert_eq!(table.text("flow").unwrap()[..2], ["main", "late"]);
    assert_eq!(
        table.text("path.mtu").unwrap()[..6],
        ["1500", "1500", "1500", "1500", "9000", "9000"]
    );
    assert_eq!(table.text("flow.main.stack").unwrap()[15], "highspeed");
    assert_eq!(table.int("seed").unwrap()[..4], [1, 1, 2, 2]);
    for name in metrics::names_of(Scope::Flow).chain(metrics::names_of(Scope::Case)) {
        assert!(table.float(name).is_some(), "{name}");
    }
    // The result's means are those of the rows.
    let goodput = table.float("goodput_mbps").unwrap();
    let mean = (goodput[0].unwrap() + goodput[2].unwrap()) / 2.0;
    let result = dir.result().unwrap();
    assert_eq!(result, ran.result.without_times());
    assert_eq!(
        result.cases[0].flow("main").unwrap().value("goodput_mbps"),
        Some(mean)
    );
    assert!(
        result.cases[0].flow("main").unwrap().metrics["goodput_mbps"]
            .ci95
            .is_some()
    );
    let links = dir.links().unwrap();
    assert!(
        links
            .text("link")
            .unwrap()
            .iter()
            .any(|l| l == "bottleneck")
    );
    assert!(links.float("utilization").is_some());
}

#[test]
fn series_are_kept_and_full_traces_beside_them() {
    let root = tempfile::tempdir().unwrap();
    run(&scenario(MATRIX), Some(root.path()), 2, false).unwrap();
    let dir = ResultDir::open(root.path()).unwrap();
    let series = dir.series(0, 1, SeriesKind::Flows).unwrap().unwrap();
    for name in [
        "time_s",
        "cwnd",
        "cwnd_min",
        "cwnd_max",
        "ssthresh",
        "rtt_ms",
        "srtt_ms",
        "pacing_mbps",
    ] {
        assert_eq!(
            series.float(name).map(<[_]>::len),
            Some(series.rows()),
            "{name}"
        );
    }
    assert!(series.rows() > 100);
    // The second flow has two streams.
    let mut flows = series.text("flow").unwrap().to_vec();
    flows.dedup();
    assert_eq!(flows.len(), 3);
    assert_eq!(dir.series(0, 1, SeriesKind::FlowsFull).unwrap(), None);
    assert_eq!(dir.series(0, 99, SeriesKind::Flows).unwrap(), None);
    let queue = dir.series(0, 1, SeriesKind::Links).unwrap().unwrap();
    let [packets, min, max] = ["queue_packets", "queue_packets_min", "queue_packets_max"]
        .map(|name| queue.int(name).unwrap().to_vec());
    assert!(packets.contains(&0) && packets.iter().any(|&q| q > 0));
    for ((packets, min), max) in packets.iter().zip(&min).zip(&max) {
        assert!(min <= packets && packets <= max, "{min} {packets} {max}");
    }
    let times = queue.float("time_s").unwrap();
    let begins = times.iter().filter(|time| **time == Some(0.0)).count();
    assert!(begins > 0 && times.len() >= 2001 * begins, "{begins}");

    let full = MATRIX.replace("[measure]", "[measure]\ntrace = \"full\"");
    let root = tempfile::tempdir().unwrap();
    run(&scenario(&full), Some(root.path()), 2, false).unwrap();
    let dir = ResultDir::open(root.path()).unwrap();
    let all = dir.series(0, 1, SeriesKind::FlowsFull).unwrap().unwrap();
    let few = dir.series(0, 1, SeriesKind::Flows).unwrap().unwrap();
    assert!(few.rows() > 100 && few.rows() <= all.rows());
}

/// The simulator's run with two numbers of a kernel beside each row: one that counts the rows of
/// its flow, one that is not there at every other.
fn with_looks(spec: &RunSpec) -> Result<Outcome, Violation> {
    let mut outcome = fullpipe_sim::run(spec)?;
    for f in &mut outcome.flows {
        let fields = [("count", ""), ("max_pacing_rate", "byte/s")];
        f.looks = Looks::new(fields.map(|(name, unit)| LookField { name, unit }));
        for (i, row) in (0u64..).zip(&f.series.rows) {
            let second = (i % 2 == 1).then_some(u64::MAX - 1);
            f.looks.push(row.time, [Some(i), second]);
        }
    }
    Ok(outcome)
}

#[test]
fn what_a_kernel_showed_is_a_series_of_its_own() {
    let full = MATRIX.replace("[measure]", "[measure]\ntrace = \"full\"");
    let off = MATRIX.replace("[measure]", "[measure]\ntrace = \"off\"");
    for (text, rows) in [
        (MATRIX, Some(SeriesKind::Flows)),
        (full.as_str(), Some(SeriesKind::FlowsFull)),
        (off.as_str(), None),
    ] {
        let root = tempfile::tempdir().unwrap();
        run_in(&scenario(text), Some(root.path()), 2, false, &with_looks).unwrap();
        let dir = ResultDir::open(root.path()).unwrap();
        let looks = dir.series(0, 1, SeriesKind::TcpInfo).unwrap();
        let Some(rows) = rows else {
            assert_eq!(looks, None);
            continue;
        };
        let (looks, rows) = (looks.unwrap(), dir.series(0, 1, rows).unwrap().unwrap());
        // A look for every row, at its time.
        assert_eq!(looks.text("flow"), rows.text("flow"));
        let times = rows.float("time_s").unwrap().iter().flatten();
        let seen = looks.float("time_s").unwrap().iter().flatten();
        assert!(seen.zip(times).all(|(a, b)| (a - b).abs() < 1e-9));
        let count = looks.float("count").unwrap();
        let second = looks.float("max_pacing_rate").unwrap();
        for (count, second) in count.iter().zip(second) {
            // The most that a column of 64 bits with a sign holds.
            let due = (count.unwrap() % 2.0 == 1.0).then_some(i64::MAX as f64);
            assert_eq!(*second, due);
        }
    }
    let root = tempfile::tempdir().unwrap();
    run(&scenario(MATRIX), Some(root.path()), 2, false).unwrap();
    let dir = ResultDir::open(root.path()).unwrap();
    assert_eq!(dir.series(0, 1, SeriesKind::TcpInfo).unwrap(), None);
}

#[test]
fn only_an_own_and_equal_result_is_replaced() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    fs::write(dir.join("thesis.tex"), "x").unwrap();
    let refused = |text: &str, set: &[(&str, &str)], resume| {
        let set = set
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        let s = with(
            text,
            &Overrides {
                set,
                ..Overrides::default()
            },
        );
        run(&s, Some(dir), 2, resume).map(|_| ()).unwrap_err()
    };
    for resume in [false, true] {
        let error = refused(MATRIX, &[], resume);
        assert!(
            matches!(error, RunError::Store(StoreError::Foreign { .. })),
            "{error}"
        );
        assert_eq!(error.exit_code(), 2);
        assert!(error.hint().unwrap().contains("--out"));
    }
    fs::remove_file(dir.join("thesis.tex")).unwrap();

    run(&scenario(MATRIX), Some(dir), 2, false).unwrap();
    let before = contents(dir);
    let error = refused(&MATRIX.replace("\"small\"", "\"other\""), &[], true);
    assert!(
        matches!(error, RunError::Store(StoreError::OtherResult { .. })),
        "{error}"
    );
    let error = refused(MATRIX, &[("path.rtt", "50ms")], false);
    assert!(
        matches!(error, RunError::Store(StoreError::OtherResult { .. })),
        "{error}"
    );
    assert_same(&before, &contents(dir));

    // The same again replaces it, every run made anew.
    let (ran, _) = run(&scenario(MATRIX), Some(dir), 2, false).unwrap();
    assert_eq!((ran.made, ran.reused), (8, 0));
    assert_same(&before, &contents(dir));
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let error = run(&scenario(MATRIX), Some(&file.join("out")), 1, false)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains("cannot create"), "{error}");
    let full = StoreError::Io {
        doing: "write",
        path: file,
        source: std::io::Error::from(std::io::ErrorKind::StorageFull),
    };
    assert!(full.hint().unwrap().contains("space"));
}

#[test]
fn bugs_name_the_case_and_the_seed() {
    let s = scenario(MATRIX);
    let broken = |spec: &fullpipe_run::RunSpec| {
        if spec.seed == 2 {
            return Err(Violation {
                seed: 2,
                what: "queue above its limit".into(),
            });
        }
        fullpipe_sim::run(spec)
    };
    let root = tempfile::tempdir().unwrap();
    let error = run_in(&s, Some(root.path()), 1, false, &broken)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.exit_code(), 4);
    let text = error.to_string();
    assert!(
        text.contains("with seed 2: queue above its limit"),
        "{text}"
    );
    assert!(text.contains("path.mtu = "), "{text}");
    // What was finished stays.
    let (ran, _) = run(&s, Some(root.path()), 1, true).unwrap();
    assert!(ran.made >= 4 && ran.made + ran.reused == 8);

    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let panics = |_: &fullpipe_run::RunSpec| -> Result<_, Violation> { panic!("window is NaN") };
    let error = run_in(&s, None, 2, false, &panics).map(|_| ()).unwrap_err();
    std::panic::set_hook(hook);
    assert_eq!(error.exit_code(), 4);
    assert!(
        error
            .to_string()
            .ends_with("with seed 1: panic: window is NaN"),
        "{error}"
    );
}

#[test]
fn expectations_are_held_against_means_and_fail_when_undefined() {
    let (ran, _) = run(&scenario(MATRIX), None, 2, false).unwrap();
    let e = &ran.result.expectations;
    // Two cases have mtu 1500, one of them runs reno.
    assert_eq!(e.len(), 3);
    assert!(e[0].pass && e[1].pass && e[0].observed.is_some() && e[0].observed_ci95.is_some());
    assert_eq!(e[0].bound, [0.1, 10.0]);
    assert_eq!((e[2].observed, e[2].pass), (None, false));
    assert!(!ran.result.passed());
}

#[test]
fn a_damaged_file_is_never_read_as_a_result() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    let s = scenario(MATRIX);
    run(&s, Some(dir), 2, false).unwrap();
    let good = contents(dir);
    let read = || -> Result<String, StoreError> {
        let d = ResultDir::open(dir)?;
        let mut all = format!("{:?}{:?}{:?}", d.result()?, d.runs()?, d.links()?);
        for case in 0..4 {
            for seed in [1, 2] {
                for kind in [
                    SeriesKind::Flows,
                    SeriesKind::Links,
                    SeriesKind::Events,
                    SeriesKind::Samples,
                ] {
                    all += &format!("{:?}", d.series(case, seed, kind)?.expect("kept"));
                }
            }
        }
        Ok(all)
    };
    let whole = read().unwrap();
    let mut dice = Dice(7);
    for (name, bytes) in &good {
        let path = dir.join(name);
        for round in 0..8 {
            let mut bad = bytes.clone();
            match round % 4 {
                0 => bad.truncate(dice.below(bytes.len())),
                1 => bad.clear(),
                2 => bad[dice.below(bytes.len())] ^= 1 << dice.below(8),
                _ => bad.extend_from_slice(b"\n"),
            }
            fs::write(&path, &bad).unwrap();
            let got = catch_unwind(std::panic::AssertUnwindSafe(read)).expect("no panic");
            if name.starts_with("runs/") {
                // Readers do not need these; resuming does, below.
                assert_eq!(got.unwrap(), whole);
            } else {
                let error = got.expect_err(name);
                assert!(
                    matches!(error, StoreError::Damaged { .. }),
                    "{name}: {error}"
                );
                assert!(error.hint().unwrap().contains("--resume"));
            }
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(read().is_err(), !name.starts_with("runs/"), "{name}");
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(read().unwrap(), whole);
}

#[test]
fn resuming_repairs_whatever_was_damaged() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    let s = scenario(MATRIX);
    run(&s, Some(dir), 2, false).unwrap();
    let good = contents(dir);
    let mut dice = Dice(11);
    for (name, bytes) in &good {
        let mut bad = bytes.clone();
        if dice.below(2) == 0 {
            bad.truncate(dice.below(bytes.len()));
        } else {
            bad[dice.below(bytes.len())] ^= 1 << dice.below(8);
        }
        fs::write(dir.join(name), &bad).unwrap();
        let (ran, log) = run(&s, Some(dir), 2, true).unwrap();
        let of_a_run = name.starts_with("runs/") || name.starts_with("series/");
        assert_eq!(ran.made, usize::from(of_a_run), "{name}");
        let warnings = log.warnings.lock().unwrap();
        assert_eq!(
            warnings.len(),
            usize::from(of_a_run),
            "{name}: {warnings:?}"
        );
        assert!(warnings.iter().all(|w| w.contains("is damaged")));
        assert_same(&good, &contents(dir));
    }
}

#[test]
fn an_unfinished_result_is_not_read() {
    let root = tempfile::tempdir().unwrap();
    let s = scenario(MATRIX);
    let broken = |spec: &fullpipe_run::RunSpec| {
        if spec.seed == 2 {
            return Err(Violation {
                seed: 2,
                what: "x".into(),
            });
        }
        fullpipe_sim::run(spec)
    };
    run_in(&s, Some(root.path()), 1, false, &broken)
        .map(|_| ())
        .unwrap_err();
    let error = ResultDir::open(root.path()).unwrap_err();
    assert!(matches!(error, StoreError::Unfinished { .. }), "{error}");
    assert!(!root.path().join("result.json").exists());
    let error = ResultDir::open(&root.path().join("series")).unwrap_err();
    assert!(matches!(error, StoreError::NoResult { .. }), "{error}");
}

#[test]
fn two_equal_cases_are_two_runs() {
    let root = tempfile::tempdir().unwrap();
    // Two spellings of one buffer: 10 Mbit/s x 40 ms are 40 packets of 1250 bytes.
    let text = MATRIX
        .replace("rtt = \"40ms\"", "rtt = \"40ms\"\nmtu = 1250")
        .replace(
            "\"path.mtu\" = [1500, 9000]",
            "\"path.buffer\" = [\"1BDP\", \"40 packets\"]",
        )
        .replace("where = { \"path.mtu\" = 1500 }\n", "")
        .replace("\"path.mtu\" = 1500, ", "")
        .replace("[\"reno\", \"highspeed\"]", "[\"reno\"]");
    let twins = scenario(&text);
    assert_eq!(twins.cases[0].key_text(), twins.cases[1].key_text());
    assert_eq!(twins.cases.len(), 2);
    run(&twins, Some(root.path()), 2, false).unwrap();
    let (ran, log) = run(&twins, Some(root.path()), 2, true).unwrap();
    assert_eq!(
        (ran.made, ran.reused),
        (0, 4),
        "{:?}",
        log.warnings.lock().unwrap()
    );
    assert_eq!(ran.result.cases[0].flows, ran.result.cases[1].flows);
}

#[test]
fn a_large_result_keeps_the_series_of_the_first_seeds() {
    let text = r#"
        name = "large"
        duration = "100ms"
        seeds = 168
        [path]
        rate = "1Mbit/s"
        rtt = "10ms"
        jitter = "1ms"
        buffer = "20 packets"
        [[flow]]
        stack = "reno"
        [matrix]
        "path.mtu" = [500, 1000, 1500]
    "#;
    let root = tempfile::tempdir().unwrap();
    run(
        &with(text, &Overrides::default()),
        Some(root.path()),
        2,
        false,
    )
    .unwrap();
    let dir = ResultDir::open(root.path()).unwrap();
    let runs = &dir.manifest().runs;
    let having = runs.iter().filter(|r| !r.files.is_empty());
    let having: Vec<(usize, u64)> = having.map(|r| (r.case, r.seed)).collect();
    let first: Vec<(usize, u64)> = (0..3)
        .flat_map(|case| (1..=166).map(move |seed| (case, seed)))
        .collect();
    assert_eq!((runs.len(), having), (504, first));
    assert!(dir.series(2, 167, SeriesKind::Flows).unwrap().is_none());
    // What is measured is there of all.
    assert_eq!(dir.runs().unwrap().rows(), 504);
    let again = run(
        &with(text, &Overrides::default()),
        Some(root.path()),
        2,
        true,
    )
    .unwrap();
    assert_eq!((again.0.made, again.0.reused), (0, 504));
}

#[test]
fn what_cannot_be_kept_is_a_result_all_the_same() {
    let root = tempfile::tempdir().unwrap();
    let s = scenario(MATRIX);
    let (whole, _) = run(&s, None, 1, false).unwrap();
    let all = s.cases.len() * s.seeds.len();
    // Nobody, root included, can write a file below a file.
    let breaks_at = |n: usize| {
        let dir = root.path().join(n.to_string());
        let (runs, made) = (dir.join("runs"), AtomicUsize::new(0));
        let ground = move |spec: &RunSpec| {
            if made.fetch_add(1, Ordering::Relaxed) + 1 == n {
                fs::remove_dir_all(&runs).unwrap();
                fs::write(&runs, "").unwrap();
            }
            fullpipe_sim::run(spec)
        };
        run_in(&s, Some(&dir), 1, false, &ground).err().unwrap()
    };
    let last = breaks_at(all);
    assert_eq!(last.exit_code(), 3, "{last}");
    let RunError::NotKept { ran, error } = last else {
        panic!("{last}");
    };
    assert!(error.to_string().contains("runs"), "{error}");
    assert_eq!(ran.result.cases.len(), whole.result.cases.len());
    for (a, b) in ran.result.cases.iter().zip(&whole.result.cases) {
        assert_eq!((&a.seeds, &a.metrics), (&b.seeds, &b.metrics));
    }
    // With runs that are still to be made there is none.
    assert!(matches!(breaks_at(all - 1), RunError::Store(_)));
}
