//! Samples of flows as rows, and as a trace that grows.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use fullpipe_flow::TraceRow;
use fullpipe_observe::tcp_info::SND_MSS;
use fullpipe_observe::{Sampled, TcpInfo};
use fullpipe_trace::{FlowMeta, Meta, Numbers, Resolution, TraceError, TraceWriter, WholeFile};
use fullpipe_units::{Span, Time};

/// What was seen of a flow at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Since the start.
    pub at: Time,
    /// The kernel's number of the socket.
    pub cookie: u64,
    /// Both ends.
    pub name: &'a str,
    pub stack: &'a str,
    pub info: &'a TcpInfo,
    /// The increase and the decrease in force; NaN: not known.
    pub law: [f64; 2],
}

/// Rows of flows, and the file that they go into, if there is one. A file has its name when it is
/// whole.
#[derive(Debug)]
pub struct Traced {
    file: Option<Growing>,
    flows: HashMap<u64, Known>,
    /// Names that are taken: an address and port may return with another connection.
    names: HashSet<String>,
    count: u32,
}

#[derive(Debug)]
struct Known {
    index: u32,
    name: String,
    sampled: Sampled,
}

#[derive(Debug)]
struct Growing {
    file: WholeFile,
    laws: bool,
    state: State,
}

/// Columns are those of the flows of the beginning: the file begins with the first.
#[derive(Debug)]
enum State {
    Empty(BufWriter<File>),
    Written(Box<TraceWriter<BufWriter<File>>>),
    Done,
}

/// Names of [`Sample::law`].
const LAW: [&str; 2] = ["a", "b"];

impl Traced {
    /// Begins a trace that will be `path`, or rows alone. `laws`: it has columns for
    /// [`Sample::law`].
    ///
    /// # Errors
    /// If the temporary file beside it cannot be made.
    pub fn begin(path: Option<&Path>, laws: bool) -> Result<Self, TraceError> {
        let file = path.map(|path| Growing::begin(path, laws)).transpose()?;
        Ok(Self {
            file,
            flows: HashMap::new(),
            names: HashSet::new(),
            count: 0,
        })
    }

    /// One more sample of a flow: its row, and the flow's name. `exact` puts into the row what
    /// `tcp_info` has not.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn take(
        &mut self,
        sample: &Sample<'_>,
        exact: impl Fn(&mut TraceRow),
    ) -> Result<Option<(TraceRow, &str)>, TraceError> {
        if !self.flows.contains_key(&sample.cookie) {
            let name = unique(&mut self.names, sample.name);
            if let Some(file) = &mut self.file {
                file.meet(&name, sample)?;
            }
            let known = Known {
                index: self.count,
                name,
                sampled: Sampled::default(),
            };
            self.count += 1;
            self.flows.insert(sample.cookie, known);
        }
        let Some(known) = self.flows.get_mut(&sample.cookie) else {
            return Ok(None);
        };
        let index = known.index as usize;
        let Sample { at, info, law, .. } = sample;
        known.sampled.take(*at, index, info, Span::ZERO, Time::ZERO);
        let mut last = None;
        for mut row in known.sampled.drain() {
            exact(&mut row);
            if let Some(file) = &mut self.file {
                file.push(&row, law)?;
            }
            last = Some(row);
        }
        Ok(last.map(|row| (row, known.name.as_str())))
    }

    /// Forgets flows that are gone.
    pub fn retain(&mut self, is_there: impl Fn(u64) -> bool) {
        self.flows.retain(|cookie, _| is_there(*cookie));
    }

    /// Gives the file its name; returns how many rows it has. `missed`: rows that should be in it.
    ///
    /// # Errors
    /// If it could not be written; then there is no file.
    pub fn finish(self, missed: u64) -> Result<u64, TraceError> {
        self.file.map_or(Ok(0), |file| file.finish(missed))
    }
}

impl Growing {
    fn begin(path: &Path, laws: bool) -> Result<Self, TraceError> {
        let file = WholeFile::begin(path)?;
        let out = BufWriter::with_capacity(1 << 16, file.file()?);
        Ok(Self {
            file,
            laws,
            state: State::Empty(out),
        })
    }

    fn meet(&mut self, name: &str, sample: &Sample<'_>) -> Result<(), TraceError> {
        let mss = sample.info.get(&SND_MSS).unwrap_or(0);
        let mss = u32::try_from(mss).unwrap_or(u32::MAX);
        let variables = LAW.iter().filter(|_| self.laws);
        let met = FlowMeta {
            name: name.to_owned(),
            stack: sample.stack.to_owned(),
            mss,
            // What a packet has besides is not in `tcp_info`.
            packet: mss,
            variables: variables.map(|v| (*v).to_owned()).collect(),
        };
        self.state = match std::mem::replace(&mut self.state, State::Done) {
            State::Empty(out) => State::Written(Box::new(writer(out, vec![met])?)),
            State::Written(mut writer) => {
                writer.meet(met);
                State::Written(writer)
            }
            State::Done => State::Done,
        };
        Ok(())
    }

    fn push(&mut self, row: &TraceRow, law: &[f64; 2]) -> Result<(), TraceError> {
        let law: &[f64] = if self.laws { law } else { &[] };
        match &mut self.state {
            State::Written(writer) => writer.push(row, law),
            State::Empty(_) | State::Done => Ok(()),
        }
    }

    fn finish(mut self, missed: u64) -> Result<u64, TraceError> {
        let writer = match std::mem::replace(&mut self.state, State::Done) {
            State::Empty(out) => writer(out, Vec::new())?,
            State::Written(writer) => *writer,
            State::Done => return Ok(0),
        };
        let (rows, mut out) = writer.finish(missed)?;
        out.flush()?;
        self.file.finish()?;
        Ok(rows)
    }
}

fn writer(
    out: BufWriter<File>,
    flows: Vec<FlowMeta>,
) -> Result<TraceWriter<BufWriter<File>>, TraceError> {
    let meta = Meta {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ground: "host".to_owned(),
        flows,
        ..Meta::default()
    };
    TraceWriter::new(out, &meta, Resolution::Microseconds, Numbers::Decimal)
}

/// `name`, or where it is taken `name (2)` and so on.
fn unique(taken: &mut HashSet<String>, name: &str) -> String {
    let numbered = (2..).map(|n| format!("{name} ({n})"));
    let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
    let free = candidates.find(|c| !taken.contains(c));
    let free = free.unwrap_or_else(|| name.to_owned());
    taken.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use fullpipe_observe::tcp_info::SND_CWND;
    use fullpipe_trace::Trace;

    use super::*;

    #[test]
    fn a_name_that_returns_is_numbered() {
        let mut taken = HashSet::new();
        assert_eq!(unique(&mut taken, "a -> b"), "a -> b");
        assert_eq!(unique(&mut taken, "a -> b"), "a -> b (2)");
        assert_eq!(unique(&mut taken, "a -> b"), "a -> b (3)");
        assert_eq!(unique(&mut taken, "a -> c"), "a -> c");
    }

    #[test]
    fn what_a_tuner_says_stands_beside_the_window_and_a_trace_may_be_empty() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("flows.parquet");
        let mut traced = Traced::begin(Some(&file), true).unwrap();
        let info = TcpInfo::of(&[(SND_CWND, 10), (SND_MSS, 1448)]);
        for (cookie, law) in [(1, [f64::NAN; 2]), (2, [4.5, 0.25])] {
            let sample = Sample {
                at: Time::from_nanos(7_000_000),
                cookie,
                name: "a -> b",
                stack: "reno",
                info: &info,
                law,
            };
            let row = traced.take(&sample, |row| row.cwnd += 0.5).unwrap();
            let (row, name) = row.unwrap();
            let due = if cookie == 1 { "a -> b" } else { "a -> b (2)" };
            assert_eq!((row.cwnd, name), (10.5, due));
        }
        assert!(!file.exists(), "it is not whole");
        assert_eq!(traced.finish(0).unwrap(), 2);
        let trace = Trace::open(&file).unwrap();
        let windows: Vec<f64> = trace.rows.iter().map(|r| r.cwnd).collect();
        assert_eq!(windows, [10.5; 2]);
        for ((name, values), (due, value)) in trace.variables.iter().zip([("a", 4.5), ("b", 0.25)])
        {
            assert!(
                name == due && values[0].is_nan() && values[1] == value,
                "{values:?}"
            );
        }
        Traced::begin(Some(&file), false)
            .unwrap()
            .finish(0)
            .unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
