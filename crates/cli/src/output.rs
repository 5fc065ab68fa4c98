//! Standard streams: data to stdout, words to stderr; a reader that has gone away causes no panic.
//! Text is shown, not obeyed: names of files and in results may be a stranger's.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::args::Colour;
use crate::exit::{Exit, Failure};
use crate::stdout;

/// Writes data to stdout. A closed pipe ends the output quietly.
pub fn data(text: &str) -> Result<(), Failure> {
    bytes(shown(text).as_bytes())
}

/// Writes a part of what goes on until somebody ends it; false once nobody reads any more.
pub fn more(text: &str) -> Result<bool, Failure> {
    if text.is_empty() {
        return Ok(!has_hung_up());
    }
    match part(|stdout| stdout.write_all(shown(text).as_bytes())) {
        Err(e) if is_closed(&e) => Ok(false),
        written => written.map(|()| true).map_err(|e| unwritten(&e)),
    }
}

/// The reading end of a pipe is closed.
fn has_hung_up() -> bool {
    let stdout = io::stdout();
    let mut asked = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let is_known = poll(&mut asked, PollTimeout::ZERO).is_ok();
    is_known
        && asked[0]
            .revents()
            .is_some_and(|events| events.contains(PollFlags::POLLERR))
}

/// Writes data that need not be text.
pub fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    content(|stdout| stdout.write_all(bytes))
}

/// The same for what is made while it is written.
pub fn content(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    match part(write) {
        Err(e) if !is_closed(&e) => Err(unwritten(&e)),
        _ => Ok(()),
    }
}

/// The same for what writes to stdout by itself.
pub fn by_itself(print: impl FnOnce() -> io::Result<()>) -> Result<(), Failure> {
    match stdout::is_open().and_then(|()| print()) {
        Err(e) if !is_closed(&e) => Err(unwritten(&e)),
        _ => Ok(()),
    }
}

/// A part of what is written, before the rest is there; a closed pipe is an error.
pub fn part(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    stdout::is_open()?;
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out).and_then(|()| out.flush())
}

/// The reader of a pipe has gone away: it has what it wanted.
pub fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// How a command ends whose stdout takes nothing: quietly, if nobody reads any more.
pub fn unwritten(error: &io::Error) -> Failure {
    match is_closed(error) {
        true => Failure::new(Exit::Ok, ""),
        false => Failure::io("cannot write to stdout", error),
    }
}

/// A text with its control characters, but for line breaks and tabs, as escapes: a terminal would
/// obey them.
fn shown(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_obeyed(c) {
            // As JSON has them, which this may be.
            true => out.extend(format!("\\u{:04x}", u32::from(c)).chars()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Prints a line on stderr, its control characters as escapes.
pub fn say(line: &str) {
    say_styled(&shown(line));
}

/// Prints a line on stderr whose control characters are colours of our own.
pub fn say_styled(line: &str) {
    if let Some(held) = held_lines().as_mut() {
        if held.len() == MOST_HELD {
            held.pop_front();
        }
        return held.push_back(line.to_owned());
    }
    // Stderr is closed: there is nowhere left to report it.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Lines for stderr are kept while this value lives, since something else has the terminal, and
/// printed when it is dropped.
pub struct Held(());

/// Keeps lines for stderr from now on.
pub fn hold() -> Held {
    held_lines().get_or_insert_default();
    Held(())
}

impl Drop for Held {
    fn drop(&mut self) {
        let held = held_lines().take();
        held.into_iter()
            .flatten()
            .for_each(|line| say_styled(&line));
    }
}

/// The last `n` of the lines that are kept.
pub fn held(n: usize) -> Vec<String> {
    let held = held_lines();
    let lines = held.iter().flatten();
    let all = held.as_ref().map_or(0, VecDeque::len);
    lines.skip(all.saturating_sub(n)).cloned().collect()
}

fn held_lines() -> MutexGuard<'static, Option<VecDeque<String>>> {
    // A panic while it was held leaves lines that are whole.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

static HELD: Mutex<Option<VecDeque<String>>> = Mutex::new(None);
/// Lines that are kept for a terminal that is in use; older ones are dropped.
const MOST_HELD: usize = 1000;

/// Prints a line on stderr with `--verbose`; without, it is not even made.
pub fn detail(line: impl FnOnce() -> String) {
    if verbose() {
        say(&line());
    }
}

/// Whether [`detail`] prints; takes effect once, before its first line.
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
        say_styled(&format!("{on}{label}\x1b[0m {}", shown(message)));
    } else {
        say(&format!("{label} {message}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(shown("a\tb µ\nc\r\n"), "a\tb µ\nc\r\n");
        assert_eq!(
            shown("a\u{1b}[2J\u{9b}1m\u{8}"),
            "a\\u001b[2J\\u009b1m\\u0008"
        );
    }
}
