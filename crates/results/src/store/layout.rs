//! Names of the files in a result directory: the one place that knows how they are spelled.

use super::Hash;
use super::files::LOCK;
use crate::capture::pcap::Host;

/// The time series of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// Flows, decimated to about 2000 rows each.
    Flows,
    /// Of the flows, a row per ACK.
    FlowsFull,
    /// Queue lengths of the links.
    Links,
    /// Reductions, timeouts, undos.
    Events,
    /// Rates per interval, of flows and traffic.
    Samples,
    /// Short flows, one by one.
    Transfers,
    /// Answers to probes.
    Pings,
    /// Every field of `TCP_INFO`, where a kernel's TCP sends.
    TcpInfo,
}

impl SeriesKind {
    /// What tells its file from the others of a run.
    fn suffix(self) -> &'static str {
        match self {
            SeriesKind::Flows => "",
            SeriesKind::FlowsFull => ".full",
            SeriesKind::Links => ".links",
            SeriesKind::Events => ".events",
            SeriesKind::Samples => ".samples",
            SeriesKind::Transfers => ".transfers",
            SeriesKind::Pings => ".pings",
            SeriesKind::TcpInfo => ".tcp_info",
        }
    }
}

/// Path of a time series, relative to the result's directory.
pub fn series_name(case: usize, seed: u64, kind: SeriesKind) -> String {
    format!("{SERIES}/{}{}.parquet", stem(case, seed), kind.suffix())
}

/// Path of the packets at one end of a run.
pub(super) fn pcap_name(case: usize, seed: u64, host: Host) -> String {
    let end = match host {
        Host::Sender => "sender",
        Host::Receiver => "receiver",
    };
    format!("{CAPTURES}/{}-{end}{PCAP}", stem(case, seed))
}

/// Path of the events of a flow in qlog.
pub(super) fn qlog_name(case: usize, seed: u64, index: usize, flow: &str) -> String {
    format!(
        "{CAPTURES}/{}-flow{index}-{}{SQLOG}",
        stem(case, seed),
        plain(flow)
    )
}

/// Path of the file that says that a run is finished.
pub(super) fn run_name(key: Hash) -> String {
    format!("{RUNS}/{key}{RUN}")
}

/// The key of the run that a name under [`RUNS`] is of.
pub(super) fn key_of(name: &str) -> Option<Hash> {
    name.strip_suffix(RUN).and_then(Hash::parse)
}

fn stem(case: usize, seed: u64) -> String {
    format!("case-{case:04}-seed{seed}")
}

/// True for a name under [`SERIES`] or [`CAPTURES`] that a run has, or had.
pub(super) fn is_of_run(name: &str) -> bool {
    let numbered = |text: &str, least: usize| {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        (digits >= least).then_some(digits)
    };
    let case = name.strip_prefix("case-");
    let behind = case.and_then(|case| Some(&case[numbered(case, 4)?..]));
    behind
        .and_then(|rest| rest.strip_prefix("-seed"))
        .is_some_and(|seed| numbered(seed, 1).is_some())
}

/// True for a path, relative to the directory, of a file that runs are kept in: nothing makes it
/// from the others, as it does pages and pictures.
pub(super) fn is_kept(path: &str) -> bool {
    match path.split_once('/') {
        None => [MANIFEST, RESULT, RUNS_TABLE, LINKS_TABLE, TIMING, LOCK].contains(&path),
        Some((RUNS, name)) => key_of(name).is_some(),
        Some((SERIES | CAPTURES, name)) => is_of_run(name),
        Some(_) => false,
    }
}

/// A name that is safe in a file name; two names may become one.
fn plain(name: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    name.chars().map(safe).take(40).collect()
}

/// Layout of the directory.
pub(super) const FORMAT: u32 = 1;

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const RESULT: &str = "result.json";
pub(super) const RUNS_TABLE: &str = "runs.parquet";
pub(super) const LINKS_TABLE: &str = "links.parquet";
pub(super) const TIMING: &str = "timing.json";
pub(super) const RUNS: &str = "runs";
pub(super) const SERIES: &str = "series";
pub(super) const CAPTURES: &str = "captures";
const RUN: &str = ".json";
pub(super) const PCAP: &str = ".pcap";
pub(super) const SQLOG: &str = ".sqlog";
/// Page of a result, made from its other files.
pub const REPORT: &str = "report.html";
