//! `send --history` and `fullpipe history`.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::process::{command, finished, fullpipe};
use crate::schema::holds;
use crate::send::Small;
use crate::server::Server;

#[test]
fn runs_are_kept_under_their_time_listed_drawn_and_compared() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut server = Server::start(dir, &[]);
    let to = server.address.clone();
    let send = |rate: &str| {
        let line = [
            "send",
            &to,
            "--time",
            "1s",
            "--bitrate",
            rate,
            "--history",
            "h",
        ];
        let ended = fullpipe(dir, &line);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stderr.contains("kept: h/2"), "{}", ended.stderr);
    };
    for _ in 0..4 {
        send("10Mbit/s");
    }
    send("5Mbit/s");
    fs::create_dir(dir.join("h/20200101T000000.000Z")).unwrap();

    let listed = fullpipe(dir, &["history", "h", "--metric", "goodput_mbps"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    let heading = |rate: &str| format!("send with {to} (flow.rate = \"{rate}\")");
    let heads = ["10Mbit/s", "5Mbit/s"].map(|rate| listed.stdout.find(&heading(rate)));
    assert!(
        heads[0].is_some() && heads[0] < heads[1],
        "{}",
        listed.stdout
    );
    let rows = listed
        .stdout
        .lines()
        .filter(|l| l.contains("  main  cubic"));
    assert_eq!(rows.count(), 5, "{}", listed.stdout);
    let unfinished = "1 run without a whole result";
    assert!(listed.stderr.contains(unfinished), "{}", listed.stderr);

    let last = ["history", "h", "--last", "1", "--only", "10Mbit/s"];
    let last = fullpipe(dir, &[&last[..], &["--format", "csv"]].concat());
    // A head, and four metrics of one flow of one run.
    assert_eq!(last.stdout.lines().count(), 5, "{}", last.stdout);

    let goodput = ["history", "h", "--compare", "--metric", "goodput_mbps"];
    // On a busy machine runs differ as they like: what is said fits the exit code.
    let compared = || {
        let ended = fullpipe(dir, &goodput);
        let says = |word| ended.stdout.contains(word);
        let code = match (says("WORSE"), says("is not judged")) {
            (true, _) => 1,
            (false, true) => 5,
            (false, false) => 0,
        };
        assert_eq!(ended.code, code, "{}", ended.stdout);
        ended.stdout
    };
    compared();

    // The same test of a server that lets less through.
    server.stop();
    let _slower = Server::start_at(dir, &to, &["--max-rate", "2Mbit/s"]);
    send("10Mbit/s");
    compared();

    let json = fullpipe(dir, &[&goodput[..], &["--format", "json"]].concat());
    let printed: Value = serde_json::from_str(&json.stdout).unwrap();
    holds("history", &printed);
    assert_eq!(printed["runs"].as_array().unwrap().len(), 6);
    let verdicts = printed["judged"].as_array().unwrap().iter();
    let verdicts: Vec<&str> = verdicts.map(|j| j["verdict"].as_str().unwrap()).collect();
    // One run alone is too few; on a busy machine it may not be valid, and then nothing is said.
    let of_one = printed["judged"].as_array().unwrap().iter();
    let of_one = of_one.filter(|j| j["kind"] == 1).count();
    assert!(of_one <= 1 && verdicts.len() <= 2, "{verdicts:?}");
    if of_one == 1 {
        assert_eq!(verdicts.last(), Some(&"too-few"));
    }

    let drawn = fullpipe(
        dir,
        &["history", "h", "--figure", "h.svg", "--format", "csv"],
    );
    assert_eq!(drawn.code, 0, "{}", drawn.stderr);
    let svg = fs::read_to_string(dir.join("h.svg")).unwrap();
    for text in ["goodput_mbps", "rtt_ms.p95", "seconds since 2"] {
        assert!(svg.contains(text), "{text}");
    }
    // Two of them are what any two results are.
    let of = |i: usize| printed["runs"][i]["dir"].as_str().unwrap();
    let two = fullpipe(dir, &["compare", of(0), of(5), "--metric", "goodput_mbps"]);
    // 5: the hosts were busy.
    assert!([0, 1, 5].contains(&two.code), "{}", two.stderr);

    // One that is damaged is named, and takes no other with it.
    let damaged = dir.join(of(0)).join("result.json");
    let whole = fs::read(&damaged).unwrap();
    fs::write(&damaged, &whole[1..]).unwrap();
    let others = fullpipe(dir, &["history", "h", "--format", "json"]);
    fs::write(&damaged, whole).unwrap();
    assert_eq!(others.code, 3, "{}", others.stderr);
    let five: Value = serde_json::from_str(&others.stdout).unwrap();
    assert_eq!(five["runs"].as_array().unwrap().len(), 5);
    for said in [of(0), "1 of 6 runs left out"] {
        assert!(others.stderr.contains(said), "{}", others.stderr);
    }
    assert!(!others.stderr.contains("--resume"), "{}", others.stderr);

    // Of runs that were cut short there is nothing to say, and that is said.
    let line = ["send", &to, "--time", "30s", "--bitrate", "3Mbit/s"];
    let mut sending = command(dir, &[&line[..], &["--history", "h"]].concat());
    let sending = sending.stderr(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_millis(1500));
    kill(Pid::from_raw(sending.id() as i32), Signal::SIGINT).unwrap();
    let cut = finished(sending.wait_with_output().unwrap());
    assert_eq!(cut.code, 130, "{}", cut.stderr);
    let only = fullpipe(dir, &[&goodput[..], &["--only", "3Mbit/s"]].concat());
    assert_eq!(only.code, 5, "{}", only.stderr);
    assert!(
        only.stdout.contains("nothing to compare"),
        "{}{}",
        only.stdout,
        only.stderr
    );
}

#[test]
fn a_history_without_runs_and_a_metric_without_a_name_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let refused = |line: &[&str], what: &str| {
        let ended = fullpipe(dir, line);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(what), "{}", ended.stderr);
    };
    refused(&["history", "."], "no runs in `.`");
    refused(
        &["history", ".", "--metric", "goodput"],
        "did you mean `goodput_mbps`?",
    );
    refused(&["history", ".", "--figure", "h.tex"], "h.tex");
    let missing = fullpipe(dir, &["history", "nowhere"]);
    assert_eq!(missing.code, 3, "{}", missing.stderr);
}

#[test]
fn what_a_full_disk_does_not_keep_is_printed() {
    let Some(small) = Small::mount("48k") else {
        println!("skipped: a small file system needs root and a mount namespace");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let (history, trace) = (small.path() + "/h", small.path() + "/t.parquet");
    let kept = [
        "--history",
        &history,
        "this run was printed, and is not kept",
    ];
    let traced = ["--trace", &trace, "this run was printed; its trace is lost"];
    for ([flag, path, hint], format) in [(kept, "json"), (kept, "table"), (traced, "json")] {
        let line = ["send", &server.address, "-t", "1s", flag, path];
        let ended = fullpipe(dir.path(), &[&line[..], &["--format", format]].concat());
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        assert!(ended.stdout.contains("goodput"), "{}", ended.stderr);
        assert!(ended.stderr.contains("No space left"), "{}", ended.stderr);
        assert!(ended.stderr.contains(hint), "{}", ended.stderr);
        assert!(!ended.stderr.contains("kept: "), "{}", ended.stderr);
        if format == "json" {
            holds("result", &serde_json::from_str(&ended.stdout).unwrap());
        }
    }
}
