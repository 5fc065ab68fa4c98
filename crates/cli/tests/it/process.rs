//! Running the program.

use std::path::Path;
use std::process::{Command, Output};

/// Exit code and streams of a finished command.
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The program, with nothing of the caller's terminal.
pub fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    command.current_dir(dir).args(args);
    // Not that of whoever runs the tests.
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env("FULLPIPE_CONFIG", "");
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM", "COLUMNS"] {
        command.env_remove(name);
    }
    command
}

/// Runs it in a directory.
pub fn fullpipe(dir: &Path, args: &[&str]) -> Finished {
    finished(command(dir, args).output().unwrap())
}

pub fn finished(output: Output) -> Finished {
    Finished {
        code: output.status.code().expect("ended by itself"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A scenario that takes a moment: one Reno flow, 10 Mbit/s, 40 ms, 5 s.
pub const SMALL: &str = r#"name = "small"
about = "one flow on a short path"
duration = "5s"

[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "1BDP"

[[flow]]
name = "main"
stack = "reno"
"#;

/// `SMALL` with something at its end.
pub fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap();
}
