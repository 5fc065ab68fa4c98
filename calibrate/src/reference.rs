//! Results as files: the frozen references of the repository, and the simulator's own results in
//! the same form.
//!
//! A directory holds two texts.
//! `runs.csv`: one row per flow of a run, with the metrics, the kernel's counters and the command
//! that made it. `curves.csv`: the windows, rounded to whole segments, as differences:
//! `10 *1 0 *2 -3` is 10, 20, 20, 20, 20, 17 (the first value counts from zero, `*n` repeats the
//! difference before it `n` more times).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::measure::{Curve, Measure};

/// Counters of the sender's kernel that a run changed, by name (`TcpExt:TCPSackRecovery`).
pub type Counters = BTreeMap<String, u64>;

/// A run, reduced.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Name of the cell.
    pub cell: String,
    /// Number of the repeat.
    pub repeat: u32,
    /// Release of the kernel; empty for a simulated run.
    pub kernel: String,
    /// Ticks per second of its hosts.
    pub hz: u32,
    /// The command line that produced the references.
    pub command: String,
    /// Counters of the sender's kernel, all flows together.
    pub counters: Counters,
    /// The flows, in the order of the cell.
    pub flows: Vec<FlowResult>,
}

/// A flow of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// Algorithm, by the kernel's name.
    pub module: String,
    /// Metrics.
    pub measure: Measure,
    /// Window over time; of the first repeat only where there are several.
    pub curve: Option<Curve>,
}

/// Failures of reading and writing.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// The file system.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// A line that is not of the form above.
    #[error("{path}: line {line}: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line.
        line: usize,
        /// The parser's message, or the rule that is broken.
        reason: String,
    },
}

/// The frozen references of this repository.
pub fn frozen_dir() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/reference"))
}

/// Writes runs to a directory; equal runs give equal bytes.
///
/// # Errors
/// [`ReferenceError::Io`].
pub fn write(dir: &Path, runs: &[Run]) -> Result<(), ReferenceError> {
    fs::create_dir_all(dir).map_err(at(dir))?;
    let (mut table, mut curves) = (format!("{HEADER}\n"), format!("{CURVES_HEADER}\n"));
    for run in runs {
        for (flow, f) in run.flows.iter().enumerate() {
            let key = format!("{},{},{flow}", run.cell, run.repeat);
            let m = &f.measure;
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "{key},{},{:.4},{:.3},{:.4},{:.3},{},{},{},{},{},{},{},{},{},{}",
                f.module,
                m.goodput_mbit,
                m.cwnd_mean,
                m.rtt_mean_ms,
                m.rtt_p95_ms,
                m.loss_events,
                m.retransmits,
                m.timeouts,
                optional(m.first_loss_s, 3),
                optional(m.first_loss_cwnd, 2),
                optional(m.completed_s, 4),
                if flow == 0 {
                    counters_text(&run.counters)
                } else {
                    String::new()
                },
                run.kernel,
                run.hz,
                run.command,
            );
            if let Some(c) = &f.curve {
                let _ = writeln!(
                    curves,
                    "{key},{},{},{}",
                    c.start_ms,
                    c.step_ms,
                    encode(&c.cwnd)
                );
            }
        }
    }
    for (name, text) in [(RUNS, table), (CURVES, curves)] {
        let path = dir.join(name);
        let part = dir.join(format!("{name}.part"));
        fs::write(&part, text).map_err(at(&part))?;
        fs::rename(&part, &path).map_err(at(&path))?;
    }
    Ok(())
}

/// Reads what [`write`] wrote.
///
/// # Errors
/// [`ReferenceError`], with the line.
pub fn read(dir: &Path) -> Result<Vec<Run>, ReferenceError> {
    let path = dir.join(RUNS);
    let text = fs::read_to_string(&path).map_err(at(&path))?;
    let mut runs: Vec<Run> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let wrong = |reason: &str| ReferenceError::Line {
            path: path.clone(),
            line: i + 1,
            reason: reason.to_owned(),
        };
        if i == 0 {
            if line != HEADER {
                return Err(wrong("the columns are not those of this version"));
            }
            continue;
        }
        let f: Vec<&str> = line.splitn(COLUMNS, ',').collect();
        if f.len() != COLUMNS {
            return Err(wrong("columns are missing"));
        }
        let (repeat, flow, result) = parse_flow(&f).ok_or_else(|| wrong("not a number"))?;
        let same = runs
            .last()
            .is_some_and(|r| r.cell == f[0] && r.repeat == repeat);
        if same != (flow > 0) || (same && runs.last().is_some_and(|r| r.flows.len() != flow)) {
            return Err(wrong("flows are not in order"));
        }
        if !same {
            let counters = parse_counters(f[14]).ok_or_else(|| wrong("not a counter"))?;
            let hz = f[16].parse().map_err(|_| wrong("not a number"))?;
            runs.push(Run {
                cell: f[0].to_owned(),
                repeat,
                kernel: f[15].to_owned(),
                hz,
                command: f[17].to_owned(),
                counters,
                flows: Vec::new(),
            });
        }
        if let Some(run) = runs.last_mut() {
            run.flows.push(result);
        }
    }
    read_curves(&dir.join(CURVES), &mut runs)?;
    Ok(runs)
}

fn read_curves(path: &Path, runs: &mut [Run]) -> Result<(), ReferenceError> {
    let text = fs::read_to_string(path).map_err(at(path))?;
    for (i, line) in text.lines().enumerate().skip(1) {
        let place = |runs: &mut [Run]| {
            let f: Vec<&str> = line.splitn(6, ',').collect();
            let [cell, repeat, flow, start, step, values] = f[..] else {
                return None;
            };
            let repeat: u32 = repeat.parse().ok()?;
            let run = runs
                .iter_mut()
                .find(|r| r.cell == cell && r.repeat == repeat)?;
            let flow = run.flows.get_mut(flow.parse::<usize>().ok()?)?;
            flow.curve = Some(Curve {
                start_ms: start.parse().ok()?,
                step_ms: step.parse().ok()?,
                cwnd: decode(values)?,
            });
            Some(())
        };
        place(runs).ok_or_else(|| ReferenceError::Line {
            path: path.to_owned(),
            line: i + 1,
            reason: "not a curve of a run".to_owned(),
        })?;
    }
    Ok(())
}

/// Repeat, number of the flow, and the flow of a row.
fn parse_flow(f: &[&str]) -> Option<(u32, usize, FlowResult)> {
    let number = |i: usize| f[i].parse::<f64>().ok();
    let optional = |i: usize| match f[i] {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    };
    let measure = Measure {
        goodput_mbit: number(4)?,
        cwnd_mean: number(5)?,
        rtt_mean_ms: number(6)?,
        rtt_p95_ms: number(7)?,
        loss_events: f[8].parse().ok()?,
        retransmits: f[9].parse().ok()?,
        timeouts: f[10].parse().ok()?,
        first_loss_s: optional(11)?,
        first_loss_cwnd: optional(12)?,
        completed_s: optional(13)?,
    };
    let result = FlowResult {
        module: f[3].to_owned(),
        measure,
        curve: None,
    };
    Some((f[1].parse().ok()?, f[2].parse().ok()?, result))
}

fn optional(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(String::new, |v| format!("{v:.digits$}"))
}

fn counters_text(counters: &Counters) -> String {
    let all: Vec<String> = counters.iter().map(|(k, v)| format!("{k}={v}")).collect();
    all.join(" ")
}

fn parse_counters(text: &str) -> Option<Counters> {
    text.split_whitespace()
        .map(|pair| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        })
        .collect()
}

/// Differences of the rounded values, runs of equal ones shortened.
fn encode(values: &[f64]) -> String {
    let mut words: Vec<String> = Vec::new();
    let (mut last, mut repeated) = (0, 0);
    let mut before: Option<i64> = None;
    let close = |repeated: &mut i64, words: &mut Vec<String>| {
        if *repeated > 0 {
            words.push(format!("*{repeated}"));
        }
        *repeated = 0;
    };
    for value in values {
        let value = value.round() as i64;
        let step = value - last;
        last = value;
        if before == Some(step) {
            repeated += 1;
        } else {
            close(&mut repeated, &mut words);
            words.push(step.to_string());
            before = Some(step);
        }
    }
    close(&mut repeated, &mut words);
    words.join(" ")
}

fn decode(text: &str) -> Option<Vec<f64>> {
    let mut values = Vec::new();
    let (mut last, mut step) = (0_i64, 0);
    for word in text.split_whitespace() {
        let times = match word.strip_prefix('*') {
            Some(n) => n.parse::<u32>().ok()?,
            None => {
                step = word.parse().ok()?;
                1
            }
        };
        for _ in 0..times {
            last += step;
            values.push(last as f64);
        }
    }
    Some(values)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ReferenceError + use<> {
    let path = path.to_owned();
    move |source| ReferenceError::Io { path, source }
}

const RUNS: &str = "runs.csv";
const CURVES: &str = "curves.csv";
const COLUMNS: usize = 18;
const HEADER: &str = "cell,repeat,flow,module,goodput_mbit,cwnd_mean,rtt_mean_ms,rtt_p95_ms,loss_events,retransmits,timeouts,\
                      first_loss_s,first_loss_cwnd,completed_s,counters,kernel,hz,command";
const CURVES_HEADER: &str = "cell,repeat,flow,start_ms,step_ms,cwnd";

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cell: &str, repeat: u32, flows: usize) -> Run {
        let flow = |i: usize| FlowResult {
            module: "reno".to_owned(),
            measure: Measure {
                goodput_mbit: 95.25 + i as f64,
                cwnd_mean: 512.125,
                rtt_mean_ms: 61.5,
                rtt_p95_ms: 79.875,
                loss_events: 14,
                retransmits: 681,
                timeouts: 1,
                first_loss_s: (i == 0).then_some(0.389),
                first_loss_cwnd: (i == 0).then_some(1333.5),
                completed_s: (i == 1).then_some(2.5),
            },
            curve: (repeat == 0).then(|| Curve {
                start_ms: 100,
                step_ms: 100,
                cwnd: vec![10.0, 20.0, 20.0, 20.0, 30.0, 7.0, 6.0, 5.0, 4.0],
            }),
        };
        Run {
            cell: cell.to_owned(),
            repeat,
            kernel: "6.1.1".to_owned(),
            hz: 250,
            command: "fullpipe-calibrate measure --only a".to_owned(),
            counters: [("Tcp:RetransSegs".to_owned(), 681)].into(),
            flows: (0..flows).map(flow).collect(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let runs = vec![run("a", 0, 2), run("b", 0, 1), run("b", 1, 1)];
        write(dir.path(), &runs).unwrap();
        assert_eq!(read(dir.path()).unwrap(), runs);
        let bytes = |name| fs::read(dir.path().join(name)).unwrap();
        let before = (bytes(RUNS), bytes(CURVES));
        write(dir.path(), &read(dir.path()).unwrap()).unwrap();
        assert_eq!((bytes(RUNS), bytes(CURVES)), before);
    }

    #[test]
    fn broken_lines_are_named() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &[run("a", 0, 1)]).unwrap();
        let path = dir.path().join(RUNS);
        let text = fs::read_to_string(&path).unwrap();
        for (from, to, want) in [
            ("95.2500", "fast", "line 2: not a number"),
            ("a,0,0,", "a,0,1,", "line 2: flows are not in order"),
            ("module", "name", "line 1: the columns"),
        ] {
            fs::write(&path, text.replace(from, to)).unwrap();
            let error = read(dir.path()).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn differences() {
        let values = [10.0, 20.0, 30.0, 30.0, 30.0, 17.4];
        let text = encode(&values);
        assert_eq!(text, "10 *2 0 *1 -13");
        assert_eq!(decode(&text).unwrap(), [10.0, 20.0, 30.0, 30.0, 30.0, 17.0]);
        assert_eq!(decode("10 *1 0 *2 -3").unwrap().len(), 6);
        assert_eq!(decode(""), Some(Vec::new()));
        assert_eq!(decode("1 x"), None);
    }
}
