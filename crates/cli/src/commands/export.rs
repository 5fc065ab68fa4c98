//! `fullpipe export`: a trace in the form of other people's tools.

use std::path::Path;

use fullpipe_report::export::{ExportError, Form, Wanted, export as write};
use fullpipe_results::store::{ResultDir, StoreError};

use crate::args::{Export, ExportFormat};
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command.
pub fn export(args: &Export) -> Result<Exit, Failure> {
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
    let lack = write(&args.source, &wanted, &mut bytes).map_err(|error| match error {
        ExportError::Store(error @ StoreError::NoResult { .. }) => error.into(),
        error => Failure::new(Exit::Usage, error.to_string()),
    })?;
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
