//! `fullpipe doctor`: what it finds is so.

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

#[test]
fn what_is_asked_for_by_name_and_lacking_sets_the_exit_code() {
    let (code, found) = findings(&["hosts"]);
    assert!(found.iter().all(|f| f["area"] == "hosts"));
    let lacking = found.iter().any(|f| f["state"] == "no");
    assert_eq!(code, if lacking { 3 } else { 0 }, "{found:?}");
    // Nobody but the emulator itself knows better what there is.
    let path = ["emulate", "--rate", "10Mbit/s", "--rtt", "10ms"];
    let run = [&path[..], &["--no-check", "--", "true"]].concat();
    let ended = finished(command(Path::new("."), &run).output().unwrap());
    assert_eq!(ended.code == 3, lacking, "{}", ended.stderr);
}
