//! What is left of a run that was not asked to be kept.

use std::fs;
use std::io::{self, IsTerminal as _};

use fullpipe_results::store::is_written;
use fullpipe_scenario::Scenario;

use crate::args::{Format, Run};

/// At a terminal, of a run that is not large, everything is kept until the next such run: whoever
/// looks at its table can open its report. `None`: nobody looks, or it is known where to.
pub(super) fn last(args: &Run, scenarios: &[Scenario]) -> Option<Run> {
    let looked_at = io::stdout().is_terminal() && io::stderr().is_terminal();
    let runs = scenarios
        .iter()
        .map(|s| s.cases.len() * s.seeds.len())
        .sum::<usize>();
    let dir = fullpipe_linux::user_cache().join("last");
    let asks = leaves_nothing(args) && !args.pcap && !args.qlog && !args.resume;
    let small = scenarios.len() == 1 && runs <= MOST_OF_LAST;
    if !looked_at || !asks || !small || is_written(&dir) {
        return None;
    }
    // Every run is made, whatever the one before was.
    let gone = fs::remove_dir_all(&dir).is_ok() || !dir.exists();
    gone.then(|| Run {
        out: Some(dir),
        ..args.clone()
    })
}

/// Runs whose series, figures and page are some megabytes.
const MOST_OF_LAST: usize = 100;

/// A table, wherever it goes, is all that there will be: what reads the other formats keeps them
/// itself.
fn leaves_nothing(args: &Run) -> bool {
    let kept = args.out.is_some() || args.junit.is_some() || args.markdown.is_some();
    args.format == Format::Table && !kept && !args.quiet
}

/// What is left of a run, if it was not asked to be anywhere.
pub(super) fn offer(args: &Run, is_last: bool) -> Option<String> {
    if is_last {
        let what = "kept until the next run without `--out DIR`";
        return Some(what.to_owned());
    }
    let what = "kept nothing: `--out DIR` writes the report, figures and every number";
    leaves_nothing(args).then(|| what.to_owned())
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
                Command::Run(run) => offer(&run, false).is_some(),
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
