//! The page of a result: complete, the same bytes each time, of one result or of several.

use std::fs;

use fullpipe_report::page::{REPORT, Study, write, write_study};
use serde_json::Value;

use crate::small::{MATRIX, scenario};
use crate::support::run;

/// The data inside a page.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

/// Little-endian `f64` of a column.
fn numbers(base64: &Value) -> Vec<f64> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = base64.as_str().unwrap().trim_end_matches('=');
    let bits = text
        .bytes()
        .map(|b| digits.iter().position(|d| *d == b).unwrap() as u32);
    let (mut word, mut count, mut bytes) = (0u32, 0, Vec::new());
    for b in bits {
        (word, count) = (word << 6 | b, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((word >> count) as u8);
        }
    }
    let (words, []) = bytes.as_chunks::<8>() else {
        panic!("not a column of f64")
    };
    words.iter().map(|w| f64::from_le_bytes(*w)).collect()
}

#[test]
fn a_page_has_the_numbers_of_its_result_and_the_same_bytes_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let ran = run(&scenario(MATRIX), &out);
    let written = write(&out).unwrap();
    assert_eq!(written.path, out.join(REPORT));
    let page = fs::read_to_string(&written.path).unwrap();
    assert_eq!(written.bytes, page.len() as u64);
    write(&out).unwrap();
    assert_eq!(page, fs::read_to_string(&written.path).unwrap());

    let data = data(&page);
    assert_eq!(data["title"], "small");
    let part = &data["scenarios"][0];
    assert_eq!(part["axes"][0]["values"].as_array().unwrap().len(), 2);
    let table = &part["tables"][0];
    assert_eq!(table["scope"], "flow");
    let column = |metric: &str| {
        let columns = table["columns"].as_array().unwrap();
        columns.iter().find(|c| c["metric"] == metric).unwrap()
    };
    let goodput = column("goodput_mbps");
    let flows = ran.result.cases.iter().flat_map(|c| &c.flows);
    let wanted: Vec<_> = flows.map(|f| f.metrics["goodput_mbps"]).collect();
    let means: Vec<f64> = wanted.iter().map(|e| e.mean.unwrap()).collect();
    let lows: Vec<f64> = wanted.iter().map(|e| e.ci95.unwrap()[0]).collect();
    assert_eq!(numbers(&goodput["mean"]), means);
    assert_eq!(numbers(&goodput["low"]), lows);
    let failed = ran.result.expectations.iter().filter(|e| !e.pass).count();
    let shown = part["expectations"].as_array().unwrap();
    assert_eq!(shown.len(), ran.result.expectations.len());
    assert_eq!(shown.iter().filter(|e| e["pass"] == false).count(), failed);
    assert!(part["cases"][0]["curves"]["data"].is_string());
}

#[test]
fn a_figure_of_an_expression_has_its_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let twice = "2 * goodput_mbps";
    let figure = format!(
        "[[report]]\nfigure = \"matrix\"\nmetric = \"{twice}\"\n\
         x = \"path.mtu\"\ny = \"flow.main.stack\"\n"
    );
    run(&scenario(&format!("{MATRIX}\n{figure}")), &out);
    write(&out).unwrap();
    let data = data(&fs::read_to_string(out.join(REPORT)).unwrap());
    let columns = data["scenarios"][0]["tables"][0]["columns"]
        .as_array()
        .unwrap();
    let of = |metric: &str, what: &str| {
        let column = columns.iter().find(|c| c["metric"] == metric).unwrap();
        numbers(&column[what])
    };
    for what in ["mean", "low", "high"] {
        let pairs = of(twice, what).into_iter().zip(of("goodput_mbps", what));
        let (mut some, mut same) = (0, true);
        for (double, single) in pairs {
            some += 1;
            same &= (double - 2.0 * single).abs() < 1e-9 * double.abs();
        }
        assert!(some > 3 && same, "{what}");
    }
    let metrics = data["metrics"].as_array().unwrap();
    assert!(metrics.iter().any(|m| m["name"] == twice));
}

/// One competitor never recovers on the long path: its short time on the short one is no mean over
/// both, and does not make it the first.
#[test]
fn competitors_are_ranked_where_all_of_them_have_a_value() {
    let text = "name = \"rank\"\nduration = \"30s\"\n[path]\nrate = \"100Mbit/s\"\n\
                rtt = \"20ms\"\nbuffer = \"1BDP\"\n[[flow]]\nname = \"main\"\n\
                stack = \"reno\"\nwindow = \"1BDP\"\n[[flow.drop]]\nsegment = 3000\n\
                [matrix]\n\"flow.main.stack\" = [\"reno\", \"htcp\"]\n\
                \"path.rtt\" = [\"20ms\", \"200ms\"]\n[[report]]\nfigure = \"metric\"\n\
                x = \"path.rtt\"\ny = \"recovery_time_s\"\n";
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let ran = run(&scenario(text), &out);
    let times: Vec<Option<f64>> = ran
        .result
        .cases
        .iter()
        .map(|c| c.flows[0].metrics["recovery_time_s"].mean)
        .collect();
    let [reno, None, htcp, Some(_)] = times[..] else {
        panic!("{times:?}");
    };
    assert!(htcp < reno, "{times:?}");
    write(&out).unwrap();
    let data = data(&fs::read_to_string(out.join(REPORT)).unwrap());
    let ranking = &data["scenarios"][0]["ranking"];
    assert_eq!(
        (&ranking["cases"], &ranking["of_cases"]),
        (&1.into(), &2.into())
    );
    let row = |i: usize| &ranking["rows"][i];
    assert_eq!((&row(0)["at"], &row(0)["cases"]), (&1.into(), &2.into()));
    assert_eq!((&row(1)["at"], &row(1)["cases"]), (&0.into(), &1.into()));
    assert_eq!(row(0)["mean"].as_f64(), htcp);
    assert_eq!(row(1)["mean"].as_f64(), reno);
}

/// Cases that differ in nothing that matters are no more runs than one: the interval of the mean
/// over them is that of each, not half as wide.
#[test]
fn cases_with_the_same_seeds_are_no_independent_samples() {
    let text = "name = \"same\"\nduration = \"5s\"\nseeds = 4\n[path]\nrate = \"50Mbit/s\"\n\
                rtt = \"40ms\"\nloss = 1e-3\n[[flow]]\nname = \"main\"\nstack = \"reno\"\n\
                [matrix]\n\"flow.main.stack\" = [\"reno\", \"cubic\"]\n\
                \"path.buffer\" = [\"10BDP\", \"11BDP\", \"12BDP\", \"13BDP\"]\n";
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let ran = run(&scenario(text), &out);
    write(&out).unwrap();
    let data = data(&fs::read_to_string(out.join(REPORT)).unwrap());
    for row in data["scenarios"][0]["ranking"]["rows"].as_array().unwrap() {
        let case = 4 * row["at"].as_u64().unwrap() as usize;
        let of_one = ran.result.cases[case].flows[0].metrics["goodput_mbps"];
        let [low, high] = of_one.ci95.unwrap();
        let half = row["half"].as_f64().unwrap();
        assert!(
            (2.0 * half / (high - low) - 1.0).abs() < 0.05,
            "{row} and {of_one:?}"
        );
    }
}

/// MIT asks for holder and permission in every copy, and a report is one.
#[test]
fn a_written_page_carries_the_licences_of_the_packages_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    run(&scenario(MATRIX), &out);
    let page = fs::read_to_string(write(&out).unwrap().path).unwrap();
    let (notices, _) = page.split_once("-->").unwrap();
    let manifest: Value =
        serde_json::from_str(include_str!("../../../../web/package.json")).unwrap();
    let packages = manifest["dependencies"].as_object().unwrap();
    for (name, version) in packages {
        let title = format!("{name} {}\n", version.as_str().unwrap());
        assert!(notices.contains(&title), "{title}");
    }
    for (text, count) in [
        ("Copyright (c) ", packages.len()),
        ("Permission is hereby granted", packages.len()),
        ("WITHOUT WARRANTY", packages.len()),
        ("Leon Sorokin", 1),
        ("Arjun Barrett", 1),
    ] {
        assert_eq!(notices.matches(text).count(), count, "{text}");
    }
}

#[test]
fn several_results_make_one_page() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["b", "a"] {
        let text = MATRIX.replace("name = \"small\"", &format!("name = \"{name}\""));
        run(&scenario(&text), &dir.path().join(name));
    }
    let names = |page: &Value| -> Vec<String> {
        let scenarios = page["scenarios"].as_array().unwrap().iter();
        scenarios
            .map(|s| s["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let read = || data(&fs::read_to_string(dir.path().join(REPORT)).unwrap());
    write(dir.path()).unwrap();
    assert_eq!(names(&read()), ["a", "b"]);
    // A study says what it is called and in which order, also when the page is made again.
    let study = Study {
        name: "both".to_owned(),
        about: "Two & more".to_owned(),
        results: vec!["b".to_owned(), "a".to_owned()],
    };
    write_study(dir.path(), &study).unwrap();
    write(dir.path()).unwrap();
    assert_eq!(names(&read()), ["b", "a"]);
    assert_eq!(read()["title"], "both");
    assert_eq!(read()["about"], "Two & more");
}

/// Before and after a change the scenario is the same, and the directory says which is which.
#[test]
fn results_of_one_scenario_have_the_names_of_their_directories() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["new", "old"] {
        run(&scenario(MATRIX), &dir.path().join(name));
    }
    let text = MATRIX.replace("name = \"small\"", "name = \"other\"");
    run(&scenario(&text), &dir.path().join("third"));
    write(dir.path()).unwrap();
    let page = data(&fs::read_to_string(dir.path().join(REPORT)).unwrap());
    let scenarios = page["scenarios"].as_array().unwrap().iter();
    let names: Vec<&str> = scenarios.map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["small (new)", "small (old)", "other"]);
}

#[test]
fn a_result_without_its_series_is_not_whole() {
    let dir = tempfile::tempdir().unwrap();
    let s = scenario(MATRIX);
    run(&s, dir.path());
    fs::remove_dir_all(dir.path().join("series")).unwrap();
    let error = write(dir.path()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("not whole: `series/case-000") && text.ends_with("is missing"),
        "{text}"
    );
    assert!(error.hint().unwrap().contains("--resume"));
    assert!(!error.is_environment());
}

#[test]
fn nothing_to_report_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert!(write(dir.path()).is_err());
    assert!(!dir.path().join(REPORT).exists());
}
