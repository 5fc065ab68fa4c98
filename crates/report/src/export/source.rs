//! Where the data of an export comes from: a trace file, or a run of a stored result with its trace
//! and perhaps its capture.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fullpipe_trace::{Trace, TraceError};
use fullpipe_units::Span;

use fullpipe_results::capture::pcap::Host;
use fullpipe_results::capture::pcap::read::{NotOurs, read};
use fullpipe_results::capture::qlog;

use fullpipe_results::store::{ManifestRun, ResultDir, SeriesKind, StoreError, Table};

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
    /// Instead of the trace what a kernel showed of the senders; as CSV alone.
    pub tcp_info: bool,
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

/// What a form has room for and an export lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lack {
    /// The run was not captured.
    #[error(
        "states without packets, which were not stored: `run --qlog` stores them, where the \
             ground has captures"
    )]
    Packets,
    /// A file alone, as of a flow that was only looked at.
    #[error("states without packets: a trace file holds none")]
    InATrace,
    /// Packets cannot be thinned.
    #[error("states without packets: `--every` leaves them out")]
    Thinned,
    /// Nor are they in the picture of a capture.
    #[error("every packet: `--every` thins states, and this run has its packets")]
    Whole,
}

/// Writes what is wanted of a trace file, or of the result in a directory, and returns what it
/// lacks.
///
/// # Errors
/// If it is not there, is damaged, or is not one flow where the form holds one.
pub fn export(
    source: &Path,
    wanted: &Wanted,
    out: &mut dyn Write,
) -> Result<Option<Lack>, ExportError> {
    if wanted.tcp_info {
        return export_tcp_info(source, wanted, out).map(|()| None);
    }
    if !source.exists() {
        return Err(ExportError::Missing(format!(
            "`{}`: no such file or directory",
            source.display()
        )));
    }
    let dir = match source.is_dir() {
        true => Some(ResultDir::open(source)?),
        false => None,
    };
    let (trace, run) = match &dir {
        Some(dir) => of_result(dir, wanted).map(|(trace, run)| (trace, Some((dir, run))))?,
        None => {
            let wrong = |e| ExportError::Trace {
                path: source.to_owned(),
                source: e,
            };
            (Trace::open(source).map_err(wrong)?, None)
        }
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
        [] => Err(ExportError::Missing(
            "no flow was seen, and this form holds one".to_owned(),
        )),
        _ => Err(ExportError::Missing(format!(
            "this form holds one flow; choose with --flow: {}",
            names.join(", ")
        ))),
    };
    match wanted.form {
        Form::Csv => csv::write(out, &trace, &flows, wanted.every)?,
        Form::Qlog => {
            let flow = one()?;
            let stored = match run {
                Some((dir, run)) => Stored::of(dir, run, (flow, names[flow]))?,
                None => Stored::Nothing,
            };
            match (stored, wanted.every) {
                (Stored::Log(log), None) => out.write_all(&log)?,
                (Stored::Packets(senders, receivers), None) => {
                    let mss = trace.meta.flows[flow].mss;
                    let packets = qlog::packets((&senders, &receivers), flow, mss)?;
                    qlog::write_captured(out, &trace, flow, &packets)?;
                }
                (stored, every) => {
                    qlog::write_trace(out, &trace, flow, every)?;
                    return Ok(Some(match stored {
                        Stored::Nothing if run.is_none() => Lack::InATrace,
                        Stored::Nothing => Lack::Packets,
                        _ => Lack::Thinned,
                    }));
                }
            }
        }
        Form::Xplot => {
            let flow = one()?;
            let capture = match run {
                Some((dir, run)) => dir.capture(run.case, run.seed, Host::Sender)?,
                None => None,
            };
            match capture {
                Some(capture) => {
                    let about = &trace.meta.flows[flow];
                    let rows = read(&capture, flow, about.mss, Host::Sender)?;
                    let title = format!("{} of {}", about.name, trace.meta.scenario);
                    xplot::write_capture(out, &title, flow as u32, &rows)?;
                    return Ok(wanted.every.map(|_| Lack::Whole));
                }
                None => xplot::write_trace(out, &trace, flow, wanted.every)?,
            }
        }
    }
    Ok(None)
}

/// See [`Wanted::tcp_info`].
fn export_tcp_info(source: &Path, wanted: &Wanted, out: &mut dyn Write) -> Result<(), ExportError> {
    let missing = |what: &str| ExportError::Missing(what.to_owned());
    if wanted.form != Form::Csv {
        return Err(missing("the fields of TCP_INFO have one form: `--to csv`"));
    }
    let table = match source.is_dir() {
        true => {
            let dir = ResultDir::open(source)?;
            let run = run_of(&dir, wanted)?;
            let table = dir.series(run.case, run.seed, SeriesKind::TcpInfo)?;
            table.ok_or_else(|| {
                ExportError::Missing(format!(
                    "case {} seed {} has none: runs on ground `kernel` have them, unless `trace = \
                     \"off\"`",
                    run.case, run.seed
                ))
            })?
        }
        false => {
            let wrong = |source: TraceError, path: &Path| ExportError::Trace {
                path: path.to_owned(),
                source,
            };
            let bytes = std::fs::read(source).map_err(|e| wrong(e.into(), source))?;
            Table::from_parquet(bytes).map_err(|e| wrong(e.into(), source))?
        }
    };
    let of = table.text("flow").zip(table.float("time_s"));
    let (flows, times) = of.ok_or_else(|| missing("a file without flows and times"))?;
    if let Some(name) = &wanted.flow
        && !flows.contains(name)
    {
        let mut names: Vec<&str> = flows.iter().map(String::as_str).collect();
        names.dedup();
        let names = names.join(", ");
        return Err(ExportError::Missing(format!(
            "no flow `{name}`; there are: {names}"
        )));
    }
    // The last of each step, as of a trace.
    let step = wanted.every.map_or(0, Span::as_nanos);
    let place = |row: usize| {
        let at = times[row].unwrap_or(0.0) * 1e9;
        (&flows[row], (at as u64).checked_div(step))
    };
    let is_kept = |row: &usize| {
        let next = row + 1;
        let is_last = step == 0 || next == table.rows() || place(next) != place(*row);
        is_last && wanted.flow.as_ref().is_none_or(|f| flows[*row] == *f)
    };
    csv::write_table(out, &table, (0..table.rows()).filter(is_kept))?;
    Ok(())
}

/// The run that is meant.
fn run_of<'a>(dir: &'a ResultDir, wanted: &Wanted) -> Result<&'a ManifestRun, ExportError> {
    let runs = &dir.manifest().runs;
    let run = runs.iter().find(|r| {
        wanted.case.is_none_or(|c| r.case == c) && wanted.seed.is_none_or(|s| r.seed == s)
    });
    run.ok_or_else(|| {
        let known: Vec<String> = runs
            .iter()
            .take(TOLD)
            .map(|r| format!("case {} seed {}", r.case, r.seed))
            .collect();
        let more = match runs.len() - known.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        ExportError::Missing(format!(
            "no such run; there are: {}{more}",
            known.join(", ")
        ))
    })
}

/// Most runs that an error names.
const TOLD: usize = 8;

/// What a run has of a flow's packets.
enum Stored {
    /// The qlog, as it was captured.
    Log(Vec<u8>),
    /// The packets at senders and receivers.
    Packets(Vec<u8>, Vec<u8>),
    Nothing,
}

impl Stored {
    fn of(dir: &ResultDir, run: &ManifestRun, flow: (usize, &str)) -> Result<Stored, StoreError> {
        let (case, seed) = (run.case, run.seed);
        if let Some(log) = dir.qlog(case, seed, flow)? {
            return Ok(Stored::Log(log));
        }
        let senders = dir.capture(case, seed, Host::Sender)?;
        let both = senders.zip(dir.capture(case, seed, Host::Receiver)?);
        Ok(both.map_or(Stored::Nothing, |(s, r)| Stored::Packets(s, r)))
    }
}

/// The run that is meant, and its densest trace.
fn of_result<'a>(
    dir: &'a ResultDir,
    wanted: &Wanted,
) -> Result<(Trace, &'a ManifestRun), ExportError> {
    let run = run_of(dir, wanted)?;
    let (path, bytes) = dir.trace(run.case, run.seed)?.ok_or_else(|| {
        ExportError::Missing(format!(
            "case {} seed {} kept no series: its scenario has `trace = \"off\"`",
            run.case, run.seed
        ))
    })?;
    let trace = Trace::parse(bytes).map_err(|source| ExportError::Trace { path, source })?;
    Ok((trace, run))
}
