//! Traces on disk: one schema for every ground.
//!
//! - [`columns`]: what a row is called on disk, in which unit, and under which names others know
//!   it.
//! - [`write`](mod@write): rows into Parquet, group by group, in constant memory.
//! - [`read`](mod@read): such a file as rows again.
//! - [`recording`]: a bounded queue and a thread that writes while a run goes on.
//! - [`WholeFile`]: a file that has its name when it is whole.
//!
//! What it is: translation of [`TraceRow`](fullpipe_flow::TraceRow)s. What it is not: it decides
//! neither when a row is made nor what it means. A file appears under its name when it is whole; a
//! run that is killed leaves at most a temporary file.

mod cells;
pub mod columns;
pub mod read;
pub mod recording;
mod whole;
pub mod write;

pub use columns::{COLUMNS, ColumnSpec};
pub use read::Trace;
pub use recording::{Recording, Summary, Tap};
pub use whole::WholeFile;
pub use write::{ENGINE, GROUND, Numbers, Resolution, SCENARIO, TraceWriter, UNITS, VERSION};

use serde::{Deserialize, Serialize};

/// What a file says of itself: its key/value metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Version of the program that wrote it.
    pub version: String,
    /// `sim`, `udp`, ...
    pub ground: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Index of the case.
    pub case: u64,
    /// Seed.
    pub seed: u64,
    /// Fingerprint of the sources that made the run; empty where nobody took one.
    pub engine: String,
    /// Hash of case, seed and engine, by which a result knows the run; empty without one.
    pub run: String,
    /// In the order of the run: a row's flow is an index into these.
    pub flows: Vec<FlowMeta>,
}

/// [`Meta::scenario`] of a transfer, which has none.
pub const TRANSFER: &str = "send";

impl Meta {
    /// Whether it is of a run of a scenario. Other traces are of flows of a real host: of a
    /// transfer, or of what was observed there.
    pub fn is_of_a_run(&self) -> bool {
        !self.scenario.is_empty() && self.scenario != TRANSFER
    }

    /// What the flows are of, for people: `early-loss, case 0, seed 1`, `send`, `host`.
    pub fn title(&self) -> String {
        match self.scenario.as_str() {
            "" => self.ground.clone(),
            TRANSFER => TRANSFER.to_owned(),
            name => format!("{name}, case {}, seed {}", self.case, self.seed),
        }
    }
}

/// A flow of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowMeta {
    /// Name.
    pub name: String,
    /// Spelling of its stack; of one that changed every one that it had, and since when.
    pub stack: String,
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Bytes of a full packet.
    pub packet: u32,
    /// The controller's own variables, in the order in which it reports them.
    pub variables: Vec<String>,
}

/// A trace that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Another program's file, most likely.
    #[error("not a trace of fullpipe, which is Parquet: qlog, pcap and text are not read")]
    NotParquet,
    /// The file is a damaged Parquet file.
    #[error("not a whole Parquet file: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// It is one, but no trace of a version that this program reads.
    #[error("no trace: {0}")]
    Foreign(String),
}

/// Version of the schema. Columns may be added without a new one; a reader ignores what it does not
/// know.
pub const SCHEMA: u32 = 1;
