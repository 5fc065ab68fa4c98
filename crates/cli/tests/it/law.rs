//! `fullpipe law`: table, CSV, JSON, picture, and what is refused.

use serde_json::Value;

use crate::process::{Finished, command, finished};

fn law(args: &[&str]) -> Finished {
    let dir = tempfile::tempdir().unwrap();
    law_in(dir.path(), args)
}

fn law_in(dir: &std::path::Path, args: &[&str]) -> Finished {
    finished(command(dir, &[&["law"], args].concat()).output().unwrap())
}

#[test]
fn the_table_has_a_block_per_stack_and_the_path() {
    let args = [
        "reno",
        "scalable",
        "--window",
        "50,1000",
        "--rate",
        "1.2Gbit/s",
        "--rtt",
        "80ms",
    ];
    let ended = law(&args);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(ended.stdout);
}

/// RFC 3649 section 1: at 10 Gbit/s and 100 ms standard TCP needs a loss event at most every
/// 5,000,000,000 packets, or 1 2/3 hours, for a mean window of 83,333 segments.
#[test]
fn the_paradox_of_rfc_3649_comes_out() {
    // The mean is 3/4 of the window at the loss.
    let peak = 83_333.0 / 0.75;
    let ended = law(&["reno", "--window", &peak.to_string(), "--format", "json"]);
    let doc: Value = serde_json::from_str(&ended.stdout).unwrap();
    let row = &doc["laws"][0]["windows"][0];
    let number = |name: &str| row[name].as_f64().unwrap();
    assert!((1.0 / number("loss_rate") / 5e9 - 1.0).abs() < 0.1, "{row}");
    assert!((number("recovery_s") / 6000.0 - 1.0).abs() < 0.1, "{row}");
    assert!((number("goodput_mbps") / (10_000.0 * 1448.0 / 1500.0) - 1.0).abs() < 0.01);
}

/// A window above what the path holds carries no more than the path.
#[test]
fn no_goodput_is_above_the_rate() {
    // A path of 833 segments.
    let path = ["--rate", "1Gbit/s", "--rtt", "10ms"];
    let windows = ["--window", "10,100,1000,10000", "--format", "json"];
    let args = [&["reno"][..], &path, &windows].concat();
    let doc: Value = serde_json::from_str(&law(&args).stdout).unwrap();
    let rows = doc["laws"][0]["windows"].as_array().unwrap();
    let goodput = |row: &Value| row["goodput_mbps"].as_f64().unwrap();
    let most = 1000.0 * 1448.0 / 1500.0;
    assert!(rows.iter().all(|row| goodput(row) <= most + 1e-9), "{doc}");
    let full = |row: &Value| (goodput(row) / most - 1.0).abs() < 1e-12;
    assert!(rows.iter().any(full) && goodput(&rows[0]) < most / 10.0);
}

#[test]
fn csv_has_the_fields_of_the_json() {
    let csv = law(&["multcp(n=4)", "--window", "100", "--format", "csv"]).stdout;
    let doc = law(&["multcp(n=4)", "--window", "100", "--format", "json"]).stdout;
    let doc: Value = serde_json::from_str(&doc).unwrap();
    let mut lines = csv.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').skip(1).collect();
    let row = doc["laws"][0]["windows"][0].as_object().unwrap();
    assert_eq!(heads.len(), row.len());
    let line = lines
        .next()
        .unwrap()
        .strip_prefix("\"multcp(n=4)\",")
        .unwrap();
    for (head, cell) in heads.iter().zip(line.split(',')) {
        assert_eq!(
            row[*head].to_string().parse::<f64>().ok(),
            cell.parse().ok(),
            "{head}"
        );
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn a_window_without_a_cycle_is_told_beside_the_csv() {
    let ended = law(&["westwood", "--window", "5,60", "--format", "csv"]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (0, 2));
    let told = "westwood: window 60: a loss takes nothing off";
    assert!(ended.stderr.starts_with(told), "{}", ended.stderr);
}

#[test]
fn the_picture_names_every_stack() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "reno",
        "cubic(beta=0.8)",
        "--window",
        "20,200,2000",
        "--figure",
        "laws.svg",
    ];
    let ended = law_in(dir.path(), &args);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let svg = std::fs::read_to_string(dir.path().join("laws.svg")).unwrap();
    for words in [">reno<", ">cubic(beta=0.8)<", ">response function<"] {
        assert!(svg.contains(words), "{words}");
    }
}

/// What `~` is in the table, the picture says as well: a line between means is no smooth law.
#[test]
fn the_picture_says_where_successive_cycles_differ() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = |stack: &str| {
        let args = [stack, "--window", "30,50,70", "--figure", "f.svg"];
        let ended = law_in(dir.path(), &args);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let svg = std::fs::read_to_string(dir.path().join("f.svg")).unwrap();
        (
            ended.stdout.contains('~'),
            svg.contains("successive cycles differ: htcp"),
        )
    };
    assert_eq!(drawn("htcp"), (true, true));
    assert_eq!(drawn("reno"), (false, false));
}

#[test]
fn one_panel_can_be_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "reno",
        "--window",
        "20,200",
        "--figure",
        "new/b.svg",
        "--panel",
        "b",
    ];
    let ended = law_in(dir.path(), &args);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let svg = std::fs::read_to_string(dir.path().join("new/b.svg")).unwrap();
    assert!(svg.contains(">decrease b(w)<") && !svg.contains(">response function<"));
    assert_eq!(law(&["reno", "--panel", "b"]).code, 2, "without a picture");
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy() {
    for (args, words) in [
        (&["bbr"][..], "it sets a rate from what it measures"),
        (&["own-linux"], "--kernel-module"),
        (
            &["reno", "--figure", "laws.gif"],
            "write for example laws.svg",
        ),
        (&["reno", "--window", "3"], "from 4 to 10000000"),
        (&["reno", "--rtt", "0s"], "from 1us to 60s"),
        (&["reno", "--rate", "10kbit/s"], "4 to 10,000,000 segments"),
        (&["cubik"], "unknown stack component `cubik`"),
        (&["cubci"], "hint: did you mean `cubic`? known: "),
        (&["cubic(bta=0.8)"], "hint: did you mean `beta`? known: "),
        (&["westwood", "--window", "60"], "takes nothing off"),
    ] {
        let ended = law(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{args:?}");
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
}

/// A line takes two points: where there is one, of one window or of one that has a cycle, it is a
/// dot.
#[test]
fn one_window_is_a_dot_in_the_picture() {
    let dir = tempfile::tempdir().unwrap();
    for windows in ["5", "5,60"] {
        let args = ["westwood", "--window", windows, "--figure", "w.svg"];
        let ended = law_in(dir.path(), &args);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let svg = std::fs::read_to_string(dir.path().join("w.svg")).unwrap();
        assert_eq!(svg.matches("a3.4 3.4").count(), 2 * 4, "{windows}: {svg}");
    }
}
