//! `fullpipe doctor`: what it finds is so.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::process::{command, finished};
use crate::schema::holds;

fn findings(areas: &[&str]) -> (i32, Vec<Value>) {
    let args = [&["doctor", "--json"], areas].concat();
    let ended = finished(command(Path::new("."), &args).output().unwrap());
    let said: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    holds("doctor", &said);
    (ended.code, said["findings"].as_array().unwrap().clone())
}

#[test]
fn whatever_is_not_there_has_a_remedy() {
    let (code, found) = findings(&[]);
    assert_eq!(code, 0);
    for area in ["grounds", "time", "sockets", "hosts", "bpf"] {
        assert!(found.iter().any(|f| f["area"] == area), "{area}: {found:?}");
    }
    // A clock may be slow without a better one.
    let helpless = (found.iter())
        .filter(|f| f["state"] == "no" && f["remedy"].is_null())
        .collect::<Vec<_>>();
    assert!(helpless.is_empty(), "{helpless:?}");
    let simulator = found.iter().find(|f| f["name"] == "ground sim").unwrap();
    assert_eq!(simulator["state"], "yes", "{simulator}");
}

/// What a build takes is used, not looked for: where the sources are there, a compiler that cannot
/// link is as good as none.
#[test]
fn tools_that_do_not_work_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for tool in ["gcc", "flex", "bison", "bc"] {
        let path = folder.path().join(tool);
        std::fs::write(&path, "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut broken = command(Path::new("."), &["doctor", "grounds", "--json"]);
    let ended = finished(broken.env("PATH", folder.path()).output().unwrap());
    let said: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let all = said["findings"].as_array().unwrap();
    let build = all
        .iter()
        .find(|f| f["name"] == "kernel of ground linux, to build");
    let build = build.unwrap();
    assert_eq!(build["state"], "limited", "{build}");
    let found = build["found"].as_str().unwrap();
    assert!(found.starts_with("missing: "), "{found}");
    let remedy = build["remedy"].as_str().unwrap();
    assert!(remedy.contains("apt-get install"), "{remedy}");
}

/// A program that uses eBPF tries it, and one that does not says so.
#[test]
fn programs_of_ebpf_are_tried_where_there_are_any() {
    let (_, found) = findings(&["bpf"]);
    let named = |name: &str| found.iter().find(|f| f["name"] == name);
    match named("programs of eBPF") {
        Some(none) => {
            assert_eq!(none["state"], "limited");
            assert!(none["remedy"].as_str().unwrap().contains("--features tune"));
        }
        None => {
            let tried = named("running flows (iter/tcp)").expect("a trial");
            let mended = tried["remedy"].is_string();
            assert!(tried["state"] == "yes" || mended, "{tried}");
        }
    }
}

#[test]
fn what_is_asked_for_by_name_and_lacking_sets_the_exit_code() {
    let (code, found) = findings(&["hosts"]);
    assert!(found.iter().all(|f| f["area"] == "hosts"));
    let lacking = found.iter().any(|f| f["state"] == "no");
    assert_eq!(code, if lacking { 3 } else { 0 }, "{found:?}");
    let name = "path by the kernel: `emulate --by netem`";
    let netem = found.iter().find(|f| f["name"] == name);
    if let Some(netem) = netem {
        let path = [
            "emulate", "--by", "netem", "--rate", "10Mbit/s", "--rtt", "10ms",
        ];
        let run = [&path[..], &["--no-check", "--", "true"]].concat();
        let ended = finished(command(Path::new("."), &run).output().unwrap());
        let is_there = ended.code != 3;
        // A module that is not loaded is loaded by a run, not by a trial.
        let waits = netem["remedy"]
            .as_str()
            .is_some_and(|r| r.starts_with("sudo modprobe"));
        assert!(
            waits || is_there == (netem["state"] == "yes"),
            "{netem} {}",
            ended.stderr
        );
        assert!(is_there || netem["remedy"].is_string(), "{netem}");
    } else {
        assert!(lacking, "{found:?}");
    }
    // Nobody but the emulator itself knows better what there is.
    let path = ["emulate", "--rate", "10Mbit/s", "--rtt", "10ms"];
    let run = [&path[..], &["--no-check", "--", "true"]].concat();
    let ended = finished(command(Path::new("."), &run).output().unwrap());
    assert_eq!(ended.code == 3, lacking, "{}", ended.stderr);
}
