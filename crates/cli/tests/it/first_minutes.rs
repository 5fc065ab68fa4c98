//! The commands of `docs/first-ten-minutes.md`, executed.

use std::path::Path;
use std::process::Command;

use crate::process::finished;

/// `cargo test -p fullpipe --test it -- --ignored first_ten_minutes --nocapture`
#[test]
#[ignore = "needs network namespaces of its own, and a machine that is not busy"]
fn the_page_of_the_first_ten_minutes_is_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = root.join("scripts/first_ten_minutes.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(env!("CARGO_BIN_EXE_fullpipe"));
    let ended = finished(python.output().unwrap());
    println!("{}", ended.stdout);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
}
