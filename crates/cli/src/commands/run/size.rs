//! How much of the disk a run is going to take, said while there is time to stop it.

use std::path::{Path, PathBuf};

use fullpipe_results::run::RunFinished;
use fullpipe_scenario::{Scenario, TraceMode};

use crate::args::Run;
use crate::commands::check::counted;
use crate::table::number;

/// Size that a result directory is going to have, against the room on its disk.
#[derive(Debug)]
pub struct Outlook {
    dir: PathBuf,
    /// Flag or key that makes the result smaller.
    hint: Option<&'static str>,
}

impl Outlook {
    /// What this run is going to write there.
    pub fn new(args: &Run, scenario: &Scenario, dir: &Path) -> Self {
        let hint = match scenario.measure.trace {
            _ if args.pcap || args.qlog => Some("without `--pcap` and `--qlog` it is far less"),
            TraceMode::Full => Some("`--set measure.trace=decimated` takes far less"),
            _ => None,
        };
        let dir = dir.to_owned();
        Self { dir, hint }
    }

    /// What there is to say after so many runs, those before them not counted; `None` as long as
    /// nothing is known. The answer is the same from then on.
    pub fn after(&self, run: &RunFinished<'_>, before: usize) -> Option<Size> {
        let made = run.done.saturating_sub(before);
        if made == 0 || (made < ENOUGH_RUNS && run.kept_bytes < ENOUGH_BYTES) {
            return None;
        }
        let runs = run.total.saturating_sub(before);
        let bytes = run.expected_bytes as f64;
        let free = rustix::fs::statvfs(&self.dir).ok();
        let free = free.map(|disk| disk.f_bavail as f64 * disk.f_frsize as f64);
        // What is written already is not to come.
        let short = free.is_some_and(|free| bytes - run.kept_bytes as f64 > free);
        if bytes < MUCH && !short {
            return Some(Size::Usual);
        }
        let (runs, dir) = (counted(runs, "run"), self.dir.display());
        let mut text = format!("{runs} will take about {} in {dir}", gigabytes(bytes));
        if let Some(free) = free {
            let only = if short { "only " } else { "" };
            text += &format!(", where {only}{} are free", gigabytes(free));
        }
        if let Some(hint) = self.hint {
            text += &format!("; {hint}");
        }
        Some(Size::Large(text))
    }
}

/// What is to be said of a result's bytes.
#[derive(Debug, PartialEq)]
pub enum Size {
    /// Nothing to speak of.
    Usual,
    /// A warning.
    Large(String),
}

fn gigabytes(bytes: f64) -> String {
    format!("{} GB", number(bytes / 1e9, 2))
}

/// Runs that the others are like, as many files as there are.
const ENOUGH_RUNS: usize = 20;
/// Or what so few runs took.
const ENOUGH_BYTES: u64 = 100_000_000;
/// What people ask before they fill a disk with it.
const MUCH: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;

    fn after(done: usize, total: usize, kept_bytes: u64) -> Option<Size> {
        let outlook = Outlook {
            dir: std::env::temp_dir(),
            hint: Some("less"),
        };
        let run = RunFinished {
            case: 0,
            seed: 1,
            key: "",
            done,
            total,
            simulated_s: 1.0,
            packets: 0,
            wall_s: 0.0,
            kept_bytes,
            expected_bytes: kept_bytes / (done - 100).max(1) as u64 * (total - 100) as u64,
        };
        outlook.after(&run, 100)
    }

    #[test]
    fn it_is_said_when_it_is_known_and_much() {
        assert_eq!(after(100, 2350, 0), None);
        assert_eq!(after(119, 2350, 300_000), None);
        // 34 MB of 2,250 runs.
        assert_eq!(after(120, 2350, 300_000), Some(Size::Usual));
        let Some(Size::Large(text)) = after(120, 1_000_100, 86_000) else {
            panic!("4.3 GB are much");
        };
        let start = "1000000 runs will take about 4.3 GB in ";
        assert!(
            text.starts_with(start) && text.ends_with("; less"),
            "{text}"
        );
        // One run with captures says enough.
        let Some(Size::Large(text)) = after(101, 1100, u64::pow(10, 15)) else {
            panic!("no disk has as much");
        };
        assert!(text.contains(", where only "), "{text}");
    }
}
