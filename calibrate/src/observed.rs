//! Reads the oracle's output of a run into [`Record`]s.

use std::collections::BTreeMap;

use crate::cell::Cell;
use crate::measure::{Event, Record, Row};
use crate::oracle::{Oracle, OracleError, read_gz};

/// Counters of the sender's kernel that a run changed, by name (`TcpExt:TCPSackRecovery`).
pub type Counters = BTreeMap<String, u64>;

/// The oracle's states of recovery (`include/uapi/linux/tcp.h`).
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// Failures to read a run.
#[derive(Debug, thiserror::Error)]
pub enum ObservedError {
    /// A file.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// A line that is not what the observer writes.
    #[error("{run}: line {line} of flow {flow} is not a row: `{text}`")]
    Row {
        /// Name of the run.
        run: String,
        /// Number of the flow.
        flow: usize,
        /// Number of the line.
        line: usize,
        /// The line.
        text: String,
    },
}

/// A poll of the observer, as far as it is used.
#[derive(Clone, Copy)]
struct Poll {
    ms: f64,
    state: u8,
    cwnd: f64,
    ssthresh: i64,
    srtt_us: f64,
    retransmits: u64,
    acked: u64,
}

impl Poll {
    /// `t_ms,ca,cwnd,ssthresh,srtt_us,rttvar_us,unacked,sacked,lost,retrans,total_retrans,bytes_acked,snd_wnd`
    fn parse(line: &str) -> Option<Self> {
        let f: Vec<&str> = line.split(',').collect();
        if f.len() != 13 {
            return None;
        }
        Some(Self {
            ms: f[0].parse().ok()?,
            state: f[1].parse().ok()?,
            cwnd: f[2].parse().ok()?,
            ssthresh: f[3].parse().ok()?,
            srtt_us: f[4].parse().ok()?,
            retransmits: f[10].parse().ok()?,
            acked: f[11].parse().ok()?,
        })
    }
}

/// The record of a flow that started at `start_ms`, from the observer's text; the number of a bad
/// line in the error.
///
/// A recovery begins where the state becomes Recovery, or stays there with a new threshold: an ACK
/// that ends one recovery can begin the next, and no poll sees the state between. A timeout is
/// where the state becomes Loss; a timer that backs off further leaves no trace here, the kernel's
/// counters have it.
///
/// # Errors
/// The number of the first line that is not a row.
pub fn record(text: &str, start_ms: u64) -> Result<Record, usize> {
    let mut r = Record::default();
    let mut before: Option<Poll> = None;
    for (i, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.starts_with('t') {
            continue;
        }
        let p = Poll::parse(line).ok_or(i + 1)?;
        let ms = start_ms as f64 + p.ms;
        if let Some(b) = before {
            let again = b.state == RECOVERY && p.ssthresh != b.ssthresh;
            let recovery = p.state == RECOVERY && (b.state != RECOVERY || again);
            let timeout = p.state == LOSS && b.state != LOSS;
            if recovery || timeout {
                r.events.push(Event { ms, cwnd: b.cwnd });
            }
            r.recoveries += u64::from(recovery);
            r.timeouts += u64::from(timeout);
        }
        r.rows.push(Row {
            ms,
            cwnd: p.cwnd,
            srtt_ms: p.srtt_us / 1e3,
            acked: p.acked,
        });
        r.retransmits = p.retransmits;
        before = Some(p);
    }
    Ok(r)
}

/// The counters that a run changed in the sender's kernel.
pub fn counters(text: &str) -> Counters {
    let mut c = Counters::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [phase, "snd", name, value] = words[..] else {
            continue;
        };
        let Ok(value) = value.parse::<u64>() else {
            continue; // A limit that is -1.
        };
        let entry = c.entry(name.to_owned()).or_default();
        match phase {
            "after" => *entry = entry.wrapping_add(value),
            _ => *entry = entry.wrapping_sub(value),
        }
    }
    c.retain(|_, v| *v != 0);
    c
}

/// The flows of a run and its counters.
///
/// With one flow the kernel's counters are that flow's: they replace what the rows show of
/// recoveries and timeouts.
///
/// # Errors
/// [`ObservedError`] if a file is absent or broken.
pub fn read(
    oracle: &Oracle,
    cell: &Cell,
    repeat: u32,
) -> Result<(Vec<Record>, Counters), ObservedError> {
    let path = oracle.prefix(cell, repeat, "counters.txt");
    let text = std::fs::read_to_string(&path).map_err(|source| OracleError::Io { path, source })?;
    let counters = counters(&text);
    let mut records = Vec::new();
    for flow in 0..cell.flows.len() {
        let text = read_gz(&oracle.prefix(cell, repeat, &format!("{flow}.csv.gz")))?;
        let record =
            record(&text, cell.run(repeat).start_ms(flow)).map_err(|line| ObservedError::Row {
                run: crate::oracle::run_name(cell, repeat),
                flow,
                line,
                text: text.lines().nth(line - 1).unwrap_or_default().to_owned(),
            })?;
        records.push(record);
    }
    if let [record] = &mut records[..] {
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        record.recoveries = count("TcpExt:TCPSackRecovery") + count("TcpExt:TCPRenoRecovery");
        record.timeouts = count("TcpExt:TCPTimeouts");
    }
    Ok((records, counters))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# cc=reno\nt_ms,ca,cwnd\n\
        41,0,10,2147483647,40006,20003,10,0,0,0,0,1,65535\n\
        50,0,20,2147483647,40584,1683,20,0,0,0,0,14481,98304\n\
        52,1,21,2147483647,40584,1683,20,3,0,0,0,15929,98304\n\
        53,3,21,10,40584,1683,20,3,1,1,1,15929,98304\n\
        60,3,15,10,40584,1683,20,3,1,1,1,15929,98304\n\
        70,3,10,10,40584,1683,20,3,1,1,4,25929,98304\n\
        71,3,10,5,40584,1683,20,3,1,1,5,25929,98304\n\
        80,0,5,5,40584,1683,5,0,0,0,5,35929,98304\n\
        299,0,7,5,40584,1683,5,0,0,0,5,35929,98304\n\
        300,4,1,3,40584,1683,5,0,5,1,6,35929,98304\n\
        # late_us=0\n";

    #[test]
    fn transitions_are_events() {
        let r = record(TEXT, 1000).unwrap();
        let events: Vec<(f64, f64)> = r.events.iter().map(|e| (e.ms, e.cwnd)).collect();
        // The second recovery begins inside the first; the window before each is the neighbour's.
        assert_eq!(events, [(1053.0, 21.0), (1071.0, 10.0), (1300.0, 7.0)]);
        assert_eq!((r.recoveries, r.timeouts, r.retransmits), (2, 1, 6));
        assert_eq!(r.rows.len(), 10);
        assert_eq!(
            (r.rows[1].ms, r.rows[1].srtt_ms, r.rows[1].acked),
            (1050.0, 40.584, 14_481)
        );
    }

    #[test]
    fn a_broken_line_is_named() {
        assert_eq!(record("# x\n41,0,10\n", 0), Err(2));
        assert_eq!(record(&TEXT.replace("53,3,21", "53,x,21"), 0), Err(6));
    }

    #[test]
    fn counters_are_differences_of_the_sender() {
        let c = counters(
            "before snd Tcp:RtoMin 200\nbefore snd Tcp:MaxConn -1\nbefore snd TcpExt:A 3\n\
             after snd Tcp:RtoMin 200\nafter snd Tcp:MaxConn -1\nafter snd TcpExt:A 5\n\
             after snd TcpExt:B 7\nafter rcv TcpExt:C 9\n",
        );
        let c: Vec<(&str, u64)> = c.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        assert_eq!(c, [("TcpExt:A", 2), ("TcpExt:B", 7)]);
    }
}
