//! `fullpipe report`, and the line that says where a report is.

use std::path::Path;

use fullpipe_report::page::{self, Study, Written};

use crate::args::{Format, Report, Run};
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

/// Says of a table that nothing else is left of it, wherever it goes: what reads the other formats
/// keeps them itself.
pub fn offer(args: &Run) {
    if let Some(line) = offered(args) {
        output::say(line);
    }
}

fn offered(args: &Run) -> Option<&'static str> {
    let kept = args.out.is_some() || args.junit.is_some() || args.markdown.is_some();
    let is_table = args.format == Format::Table;
    (is_table && !kept && !args.quiet)
        .then_some("kept nothing: `--out DIR` writes the report, figures and every number")
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn a_table_that_is_all_says_so() {
        let offered = |flags: &[&str]| {
            let line = [&["fullpipe", "run", "first-run"], flags].concat();
            match Args::parse_from(line).command {
                Command::Run(run) => offered(&run).is_some(),
                other => panic!("{other:?}"),
            }
        };
        assert!(offered(&[]));
        for flags in [
            &["--out", "r"][..],
            &["--junit", "r.xml"],
            &["--markdown", "r.md"],
            &["--format", "csv"],
            &["-q"],
        ] {
            assert!(!offered(flags), "{flags:?}");
        }
    }
}
