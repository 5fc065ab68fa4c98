//! The result store: a directory that holds everything about the runs of one scenario.
//!
//! ```text
//! manifest.json                          version, scenario text, seeds, machine, key and files of every run, hashes
//! result.json                            the object of `--format json`, without wall times
//! runs.parquet                           one row per flow (or traffic) x case x seed: parameters, seed, flow, kind, stack, every metric
//! links.parquet                          one row per link x case x seed
//! series/case-0000-seed1.parquet         time series of all flows, decimated, extremes kept
//! series/case-0000-seed1.full.parquet    one row per ACK, with `trace = "full"`
//! series/case-0000-seed1.links.parquet   queue lengths
//! series/case-0000-seed1.events.parquet  reductions, timeouts, undos
//! series/case-0000-seed1.samples.parquet rates per interval of flows and traffic, and since their start
//! series/case-0000-seed1.transfers.parquet  short flows one by one
//! series/case-0000-seed1.pings.parquet   answers to probes
//! series/case-0000-seed1.tcp_info.parquet  every field of TCP_INFO over time, where a kernel's TCP sends
//! captures/case-0000-seed1-sender.pcap   packets at the senders' hosts, and -receiver.pcap; only if asked for
//! captures/case-0000-seed1-flow0-main.sqlog   events of a flow in qlog; only if asked for
//! runs/<key>.json                        one finished run: its metrics and the hashes of its series and captures
//! timing.json                            wall times of the runs that were made here
//! report.html                            all of it as one page, made from the other files
//! ```
//!
//! A run is known by its key: the hash of the resolved case, the seed and the engine (version and
//! fingerprint of its sources, over sockets the endpoint's among them, and of the versions of the
//! crates that these need). Resuming repeats no run whose file is there and whole. Every file but
//! `timing.json` and the lock is a pure function of scenario, seeds, program and machine
//! description: the same bytes for any number of threads, and after any number of kills. Wall times
//! are kept apart for that reason.
//!
//! `manifest.json` and the files under `runs/` carry their own SHA-256; the manifest carries that
//! of every other file. What does not match is never read as a result.
//!
//! [`Keys`] says by what names runs are known, [`Store`] writes them, [`ResultDir`] reads what is
//! finished.

mod cache;
mod claim;
mod columns;
mod engine;
mod error;
mod files;
mod hash;
mod layout;
mod looks;
mod machine;
mod manifest;
mod plan;
mod quantity;
mod reader;
mod samples;
mod seal;
mod series;
mod tables;
mod writer;

pub use cache::Cache;
pub use claim::Earlier;
pub use columns::{Column, Table};
pub(crate) use engine::brought;
pub use error::{Other, StoreError};
pub use files::is_written;
pub use hash::{Hash, sha256};
pub use layout::{REPORT, SeriesKind, series_name};
pub use machine::Machine;
pub use manifest::{FileHash, Manifest, ManifestRun};
pub use plan::{Keys, Planned, Unit};
pub use quantity::{quantity, unit_of_all};
pub use reader::ResultDir;
pub use tables::column_of_key;
pub(crate) use tables::{AllRuns, Variables, runs_table};
pub(crate) use writer::captures_with;
pub use writer::{Finished, Store, StoredFiles, Timing};
