//! `fullpipe report`, and the line that says where a report is.

use std::path::Path;

use fullpipe_report::page::{self, Study, Written};

use crate::args::Report;
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command.
pub fn report(args: &Report) -> Result<Exit, Failure> {
    let written = page::write(&args.dir)?;
    output::say(&line(&written));
    Ok(Exit::Ok)
}

/// Writes the report of a result and says where it is.
pub fn beside(dir: &Path) -> Result<String, Failure> {
    Ok(line(&page::write(dir)?))
}

/// Writes the report of several results, and says where it is.
pub fn of_all(dir: &Path, study: &Study) -> Result<String, Failure> {
    Ok(line(&page::write_study(dir, study)?))
}

/// `report: results/report.html (312 kB, opens in a browser)`.
fn line(written: &Written) -> String {
    let size = match written.bytes {
        b @ ..1_000_000 => format!("{} kB", b.div_ceil(1000)),
        b => format!("{:.1} MB", b as f64 / 1e6),
    };
    let path = written.path.display();
    format!("report: {path} ({size}, opens in a browser)")
}
