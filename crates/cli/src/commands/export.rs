//! `fullpipe export`: a trace in the form of other people's tools.

use std::path::Path;

use fullpipe_report::export::{ExportError, Form, Wanted, export as write};
use fullpipe_results::store::{ResultDir, StoreError};
use fullpipe_trace::TraceError;
use fullpipe_units::Span;

use crate::args::{Export, ExportFormat};
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command.
pub fn export(args: &Export) -> Result<Exit, Failure> {
    if args.every == Some(Span::ZERO) {
        let message = "--every: a step of no time leaves nothing out";
        return Err(Failure::new(Exit::Usage, message).hint("leave `--every` out for every row"));
    }
    let wanted = Wanted {
        form: match args.to {
            ExportFormat::Csv => Form::Csv,
            ExportFormat::Qlog => Form::Qlog,
            ExportFormat::Xplot => Form::Xplot,
        },
        flow: args.flow.clone(),
        case: args.case,
        seed: args.seed,
        every: args.every,
        tcp_info: args.tcp_info,
    };
    let mut bytes = Vec::new();
    let lack = write(&args.source, &wanted, &mut bytes).map_err(refused)?;
    if let Some(lack) = lack {
        output::say(&lack.to_string());
    }
    match &args.out {
        None => output::bytes(&bytes)?,
        Some(path) => {
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
            let dir = path.parent().filter(|p| !p.as_os_str().is_empty());
            let name = name.ok_or_else(|| {
                Failure::new(Exit::Usage, format!("`{}` names no file", path.display()))
            })?;
            let path = ResultDir::write_beside(dir.unwrap_or(Path::new(".")), &name, &bytes)?;
            output::say(&format!(
                "written: {} ({} bytes)",
                path.display(),
                bytes.len()
            ));
        }
    }
    Ok(Exit::Ok)
}

fn refused(error: ExportError) -> Failure {
    let hint = match &error {
        ExportError::Store(StoreError::Missing { name, .. }) if name.ends_with(".sqlog") => {
            Some(NO_LOG.to_owned())
        }
        ExportError::Store(error) => error.hint(),
        ExportError::Trace {
            source: TraceError::NotParquet,
            ..
        } => Some(FOREIGN.to_owned()),
        _ => None,
    };
    let failure = Failure::new(Exit::Usage, error.to_string());
    match error {
        ExportError::Store(error @ StoreError::NoResult { .. }) => error.into(),
        _ => hint.into_iter().fold(failure, Failure::hint),
    }
}

/// Remedy where the log that a run stored was removed: without `--qlog` it would not come back.
const NO_LOG: &str = "`fullpipe run SCENARIO --out DIR --qlog --resume` makes it again; `--to csv` \
                      and `--to xplot` do without";

/// What does for flows of other programs what no capture of theirs can.
const FOREIGN: &str = "a flow of another program is judged while it runs: `fullpipe observe \
                       --trace FILE` says what limits it and keeps what the kernel knows";
