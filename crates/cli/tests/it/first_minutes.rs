//! The commands of `docs/first-ten-minutes.md` and `docs/first-policy.md`, executed, and two tuners
//! that measure the path between them.

use std::path::Path;
use std::process::Command;

use crate::process::finished;

/// `cargo test -p fullpipe --test it -- --ignored first_ten_minutes --nocapture`
#[test]
#[ignore = "needs network namespaces of its own, and a machine that is not busy"]
fn the_page_of_the_first_ten_minutes_is_what_happens() {
    follows("first_ten_minutes.py");
}

/// `cargo test -p fullpipe --features tune --test it -- --ignored first_policy --nocapture`
#[test]
#[ignore = "needs network namespaces of its own, and two minutes of a machine that is not busy"]
fn the_page_of_the_first_policy_is_what_happens() {
    follows("first_policy.py");
}

/// `cargo test -p fullpipe --features tune --test it -- --ignored two_tuners --nocapture`
#[test]
#[ignore = "needs root, and a minute of a machine that is not busy"]
fn two_tuners_find_the_path_between_them() {
    follows("two_tuners.py");
}

fn follows(script: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = root.join("scripts").join(script);
    let mut python = Command::new("python3");
    python
        .args(["-B".as_ref(), script.as_os_str()])
        .arg(env!("CARGO_BIN_EXE_fullpipe"));
    let ended = finished(python.output().unwrap());
    println!("{}", ended.stdout);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
}
