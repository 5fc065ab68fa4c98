//! `--trace`: every look at every flow as a row of a trace.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fullpipe_observe::tcp_info::SND_MSS;
use fullpipe_observe::{Observation, Sampled};
use fullpipe_trace::{FlowMeta, Meta, Numbers, Resolution, TraceError, TraceWriter};
use fullpipe_units::{Span, Time};

/// A trace that grows; it has its name when it is whole.
#[derive(Debug)]
pub struct Traced {
    path: PathBuf,
    temporary: PathBuf,
    /// [`None`] once it is finished.
    writer: Option<TraceWriter<BufWriter<File>>>,
    /// Flows that are there now, by cookie: index in the trace, and what was seen so far.
    now: HashMap<u64, (u32, Sampled)>,
    /// Names that are taken: an address and port may return with another connection.
    names: HashSet<String>,
}

impl Traced {
    /// Begins the trace that will be `path`.
    ///
    /// # Errors
    /// If the temporary file beside it cannot be made.
    pub fn begin(path: &Path) -> Result<Self, TraceError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.tmp"));
        let meta = Meta {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ground: "host".to_owned(),
            ..Meta::default()
        };
        let out = BufWriter::with_capacity(1 << 16, File::create(&temporary)?);
        let by = Resolution::Microseconds;
        Ok(Self {
            path: path.to_owned(),
            temporary,
            writer: Some(TraceWriter::new(out, &meta, by, Numbers::Decimal)?),
            now: HashMap::new(),
            names: HashSet::new(),
        })
    }

    /// A look.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn look(&mut self, at: Duration, flows: &[Observation]) -> Result<(), TraceError> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let at = Time::from_nanos(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        let mut before = std::mem::take(&mut self.now);
        for flow in flows {
            let cookie = flow.socket.cookie;
            let (index, mut sampled) = before.remove(&cookie).unwrap_or_else(|| {
                let name = unique(&mut self.names, &super::name(flow));
                (writer.meet(met(name, flow)), Sampled::default())
            });
            let info = &flow.socket.info;
            sampled.take(at, index as usize, info, Span::ZERO, Time::ZERO);
            for row in sampled.drain() {
                writer.push(&row, &[])?;
            }
            self.now.insert(cookie, (index, sampled));
        }
        Ok(())
    }

    /// Gives the file its name; returns how many rows it has.
    ///
    /// # Errors
    /// If it could not be written; then there is no file.
    pub fn finish(mut self) -> Result<u64, TraceError> {
        let Some(writer) = self.writer.take() else {
            return Ok(0);
        };
        let (rows, mut out) = writer.finish(0)?;
        out.flush()?;
        std::fs::rename(&self.temporary, &self.path)?;
        Ok(rows)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // After `finish` it is gone; otherwise nobody will ever read it.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

fn met(name: String, flow: &Observation) -> FlowMeta {
    let mss = flow.socket.info.get(&SND_MSS).unwrap_or(0);
    let mss = u32::try_from(mss).unwrap_or(u32::MAX);
    FlowMeta {
        name,
        stack: flow.socket.congestion.clone(),
        mss,
        // What a packet has besides is not in `tcp_info`.
        packet: mss,
        variables: Vec::new(),
    }
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
    use super::*;

    #[test]
    fn a_name_that_returns_is_numbered() {
        let mut taken = HashSet::new();
        assert_eq!(unique(&mut taken, "a -> b"), "a -> b");
        assert_eq!(unique(&mut taken, "a -> b"), "a -> b (2)");
        assert_eq!(unique(&mut taken, "a -> b"), "a -> b (3)");
        assert_eq!(unique(&mut taken, "a -> c"), "a -> c");
    }
}
