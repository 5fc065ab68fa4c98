//! Standard streams: data to stdout, words to stderr; a reader that has gone away causes no panic.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use crate::args::Colour;
use crate::exit::Failure;

/// Writes data to stdout. A closed pipe ends the output quietly.
pub fn data(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// The same for what need not be text.
pub fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::io("cannot write to stdout", &e))
        }
        _ => Ok(()),
    }
}

/// Words for people, a line of stderr.
pub fn say(line: &str) {
    // Nobody reads stderr: nothing more can be said.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// A line that is only said, and only made, with `--verbose`.
pub fn detail(line: impl FnOnce() -> String) {
    if verbose() {
        say(&line());
    }
}

/// Chooses whether [`detail`] is said, before the first.
pub fn set_verbose(verbose: bool) {
    let _ = VERBOSE.set(verbose);
}

/// True with `--verbose`.
pub fn verbose() -> bool {
    VERBOSE.get().copied().unwrap_or(false)
}

static VERBOSE: OnceLock<bool> = OnceLock::new();

/// An error message.
pub fn error(message: &str) {
    labelled("error:", "\x1b[1;31m", message);
}

/// A warning.
pub fn warning(message: &str) {
    labelled("warning:", "\x1b[1;33m", message);
}

/// Prints a `hint:` line to stderr.
pub fn hint(message: &str) {
    labelled("  hint:", "\x1b[1;36m", message);
}

/// Chooses whether stderr has colour, before the first message.
pub fn set_colour(when: Colour) {
    match when {
        Colour::Auto => colour(),
        Colour::Always => *COLOUR.get_or_init(|| true),
        Colour::Never => *COLOUR.get_or_init(|| false),
    };
}

/// True where stderr is a terminal and `NO_COLOR` is not set, unless `--color` says otherwise.
pub fn colour() -> bool {
    *COLOUR.get_or_init(|| {
        std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
            && io::stderr().is_terminal()
    })
}

static COLOUR: OnceLock<bool> = OnceLock::new();

fn labelled(label: &str, on: &str, message: &str) {
    if colour() {
        say(&format!("{on}{label}\x1b[0m {message}"));
    } else {
        say(&format!("{label} {message}"));
    }
}
