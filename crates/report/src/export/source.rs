//! Where the data of an export comes from: a trace file, or a run of a stored result with its trace
//! and perhaps its capture.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fullpipe_trace::{Trace, TraceError};
use fullpipe_units::Span;

use fullpipe_results::capture::pcap::read::{NotOurs, read};
use fullpipe_results::capture::qlog;

use fullpipe_results::store::{ResultDir, StoreError};

use super::{csv, xplot};

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// See [`csv`].
    Csv,
    /// See [`qlog`].
    Qlog,
    /// See [`xplot`].
    Xplot,
}

/// What of a trace is wanted, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The form.
    pub form: Form,
    /// Only this flow.
    pub flow: Option<String>,
    /// Case of a result; the first if absent.
    pub case: Option<usize>,
    /// Seed of a result; the case's first if absent.
    pub seed: Option<u64>,
    /// At most one row per so much time.
    pub every: Option<Span>,
}

/// An export that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The result cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The trace cannot be read.
    #[error("`{}`: {source}", .path.display())]
    Trace {
        /// Path of the trace file.
        path: PathBuf,
        /// Reason.
        source: TraceError,
    },
    /// The capture cannot be read.
    #[error(transparent)]
    Capture(#[from] NotOurs),
    /// The run, or its trace, is not there.
    #[error("{0}")]
    Missing(String),
    /// The output refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes what is wanted of a trace file, or of the result in a directory.
///
/// # Errors
/// If it is not there, is damaged, or is not one flow where the form holds one.
pub fn export(source: &Path, wanted: &Wanted, out: &mut dyn Write) -> Result<(), ExportError> {
    let (trace, capture) = if source.is_dir() {
        of_result(&ResultDir::open(source)?, wanted)?
    } else {
        let trace = Trace::open(source).map_err(|e| ExportError::Trace {
            path: source.to_owned(),
            source: e,
        })?;
        (trace, None)
    };
    let names: Vec<&str> = trace.meta.flows.iter().map(|f| f.name.as_str()).collect();
    let all: Vec<usize> = (0..names.len()).collect();
    let flows = match &wanted.flow {
        Some(name) => {
            let found = names.iter().position(|n| n == name);
            let found = found.ok_or_else(|| {
                ExportError::Missing(format!("no flow `{name}`; there are: {}", names.join(", ")))
            })?;
            vec![found]
        }
        None => all,
    };
    let one = || match flows[..] {
        [one] => Ok(one),
        _ => Err(ExportError::Missing(format!(
            "this form holds one flow; choose with --flow: {}",
            names.join(", ")
        ))),
    };
    match wanted.form {
        Form::Csv => csv::write(out, &trace, &flows, wanted.every)?,
        Form::Qlog => qlog::write_trace(out, &trace, one()?, wanted.every)?,
        Form::Xplot => {
            let flow = one()?;
            match capture {
                Some(capture) => {
                    let about = &trace.meta.flows[flow];
                    let rows = read(&capture, flow, about.mss)?;
                    let title = format!("{} of {}", about.name, trace.meta.scenario);
                    xplot::write_capture(out, &title, flow as u32, &rows)?;
                }
                None => xplot::write_trace(out, &trace, flow, wanted.every)?,
            }
        }
    }
    Ok(())
}

/// The densest trace of a run, and its capture if it has one and the form can use it.
fn of_result(dir: &ResultDir, wanted: &Wanted) -> Result<(Trace, Option<Vec<u8>>), ExportError> {
    let runs = &dir.manifest().runs;
    let run = runs.iter().find(|r| {
        wanted.case.is_none_or(|c| r.case == c) && wanted.seed.is_none_or(|s| r.seed == s)
    });
    let run = run.ok_or_else(|| {
        let known: Vec<String> = runs
            .iter()
            .take(8)
            .map(|r| format!("case {} seed {}", r.case, r.seed))
            .collect();
        ExportError::Missing(format!("no such run; there are: {}", known.join(", ")))
    })?;
    let (path, bytes) = dir.trace(run.case, run.seed)?.ok_or_else(|| {
        ExportError::Missing(format!(
            "case {} seed {} kept no series: its scenario has `trace = \"off\"`",
            run.case, run.seed
        ))
    })?;
    let trace = Trace::parse(bytes).map_err(|source| ExportError::Trace { path, source })?;
    let capture = match wanted.form {
        Form::Xplot => dir.capture(run.case, run.seed)?,
        _ => None,
    };
    Ok((trace, capture))
}
