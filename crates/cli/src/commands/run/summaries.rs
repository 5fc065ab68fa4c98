//! The files that continuous integration reads: JUnit and markdown.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use fullpipe_results::result::RunResult;
use fullpipe_scenario::Scenario;

use crate::args::Run;
use crate::exit::Failure;
use crate::view::{self, NoResult};

/// Tries the files that are written at the end, before what may take hours. One that is there stays
/// as it is, one that is not is not left behind.
pub(super) fn writable(args: &Run) -> Result<(), Failure> {
    for path in args.junit.iter().chain(&args.markdown) {
        let is_new = !path.exists();
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened.map_err(|e| unwritable(path, &e))?;
        if is_new {
            fs::remove_file(path).map_err(|e| unwritable(path, &e))?;
        }
    }
    Ok(())
}

fn unwritable(path: &Path, e: &io::Error) -> Failure {
    Failure::io(format_args!("cannot write {}", path.display()), e)
}

/// The scenarios that have no result, since one of them was stopped: the first of them, if it has
/// no finished run either, or the one before.
pub(super) fn without<'a>(
    scenarios: &'a [Scenario],
    results: &[RunResult],
    stopped: Option<&Failure>,
) -> Vec<NoResult<'a>> {
    let Some(failure) = stopped else {
        return Vec::new();
    };
    let at = match results.last() {
        Some(last) if last.interrupted.is_some() => results.len() - 1,
        _ => results.len(),
    };
    let why = |index: usize| match index == at {
        true => failure.message.clone(),
        false => format!("not reached: {}: {}", scenarios[at].name, failure.message),
    };
    let missing = scenarios.iter().enumerate().skip(results.len());
    let none = |(index, scenario): (usize, &'a Scenario)| NoResult {
        scenario: &scenario.name,
        why: why(index),
    };
    missing.map(none).collect()
}

/// The files that continuous integration asked for.
pub(super) fn summaries(
    args: &Run,
    results: &[RunResult],
    without: &[NoResult<'_>],
) -> Result<(), Failure> {
    if let Some(path) = &args.junit {
        fs::write(path, view::junit(results, without)).map_err(|e| unwritable(path, &e))?;
    }
    if let Some(path) = &args.markdown {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let text = view::markdown(results, without);
        let written = file.and_then(|mut f| f.write_all(text.as_bytes()));
        written.map_err(|e| unwritable(path, &e))?;
    }
    Ok(())
}
