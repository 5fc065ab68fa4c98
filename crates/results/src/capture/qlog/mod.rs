//! Events of one flow as its sender sees them: qlog 0.3 in JSON text sequences, the form that qvis
//! opens.
//!
//! Documents: draft-ietf-quic-qlog-main-schema-02 (the header, `JSON-SEQ`, RFC 7464),
//! draft-marx-qlog-event-definitions-quic-h3 (names of events). The vocabulary is QUIC's; a flow of
//! numbered segments fits it like this:
//! - Every transmission, SYN and retransmission included, has a packet number of its own, counted
//!   from 0. The segment is a STREAM frame: bytes `n mss` to `(n + 1) mss` of stream 0.
//! - An ACK frame names the packet numbers it newly acknowledges: of each segment the copy that
//!   arrived, as the path knows it, not as the sender guesses it. An ACK that brings nothing new
//!   repeats the largest number so far.
//! - `recovery:packet_lost` is the sender's judgement, when it marks the segment's last copy lost;
//!   `trigger` says by what, where the series has the sender's state. A capture of Linux has no
//!   verdicts: there a copy is taken to be lost when the segment is sent again, but for a tail loss
//!   probe. What the path really dropped is `fullpipe:packet_dropped`, an event of our own.
//! - States have the names that the schema gives for New Reno: `slow_start`,
//!   `congestion_avoidance`, `recovery`, the last for a reduction after a mark, too. A timeout is
//!   `fullpipe:timeout`.
//! - At one instant what arrived comes first, then what it did to the sender, then what was sent.
//! - `recovery:congestion_state_updated` and `recovery:metrics_updated` come from the run's time
//!   series, as dense as the scenario's `trace` asks for; only what changed is repeated. Windows
//!   in bytes of payload, times in milliseconds, `pacing_rate` in bit/s.
//!
//! A test holds real files against the types of draft-ietf-quic-qlog-main-schema-05 and
//! draft-ietf-quic-qlog-quic-events-04, the last whose files have version 0.3. Only the standard's
//! names are used beside that; qvis draws sequence, congestion and
//! packetization views from them.

mod log;
mod record;

use std::io::{self, Write};
use std::net::SocketAddr;

use fullpipe_cc::Phase;
use fullpipe_flow::{Detector, Events, TraceRow};
use fullpipe_run::{CaptureEvent, CaptureRow};
use fullpipe_trace::{FlowMeta, Trace};
use fullpipe_units::{Span, Time};
use serde_json::{Value, json};

use super::pcap::Host;
use super::pcap::read::{NotOurs, read};
use super::thin::thin;
use super::{WITH_STAMPS, endpoints};
use log::Log;
use record::record;

/// Run and flow that a file is of.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// For people: scenario, case, seed.
    pub title: &'a str,
    /// Index of the flow in the run.
    pub index: usize,
    /// Name of the flow.
    pub name: &'a str,
    /// The flow and what made it, for people.
    pub about: &'a str,
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Packets have room for time stamps.
    pub stamps: bool,
    /// How losses are found, where that is known.
    pub detector: Option<Detector>,
    /// Window, RTT and events of the sender.
    pub states: &'a [TraceRow],
}

/// The rows of a flow in a capture of the senders' and one of the receivers' packets, whose
/// segments carry `mss` bytes. What the path dropped and what the sender judged lost is in neither.
///
/// # Errors
/// If one of them is no such capture.
pub fn packets(
    (senders, receivers): (&[u8], &[u8]),
    flow: usize,
    mss: u32,
) -> Result<Vec<CaptureRow>, NotOurs> {
    let mut rows = read(senders, flow, mss, Host::Sender)?;
    rows.extend(read(receivers, flow, mss, Host::Receiver)?);
    // What arrives at an instant was sent before.
    rows.sort_by_key(|row| row.at);
    Ok(rows)
}

/// Writes the events of one flow.
///
/// # Errors
/// If `out` refuses.
pub fn write(out: &mut dyn Write, subject: &Subject<'_>, rows: &[CaptureRow]) -> io::Result<()> {
    record(out, &preamble(subject.title, subject.name, subject.about))?;
    let log = Log::new(out, subject.mss, subject.stamps);
    let of_flow = rows.iter().filter(|r| r.flow as usize == subject.index);
    let verdict = |row: &&CaptureRow| matches!(row.event, CaptureEvent::SegmentLost(_));
    let mut verdicts = of_flow.clone().filter(verdict).peekable();
    let mut log = log.detected_by(subject.detector, verdicts.peek().is_some());
    let (metrics, mut series) = (subject.states, 0);
    let mut told = Told::default();
    let mut first = true;
    for row in of_flow.clone().filter(|row| !verdict(row)) {
        // The sender's state follows what arrived at an instant, its verdicts follow that, and both
        // come before what was sent.
        let sends = matches!(row.event, CaptureEvent::SegmentSent(_)) && !first;
        let is_due = |time: Time| time < row.at || (sends && time == row.at);
        let mut states_until = |log: &mut Log<'_>, is_due: &dyn Fn(Time) -> bool| {
            while let Some(state) = metrics.get(series).filter(|m| is_due(m.time)) {
                told.row(log, state)?;
                series += 1;
            }
            Ok::<_, io::Error>(())
        };
        while let Some(lost) = verdicts.next_if(|lost| is_due(lost.at)) {
            states_until(&mut log, &|time| time <= lost.at)?;
            if let CaptureEvent::SegmentLost(seq) = lost.event {
                log.segment_lost(lost.at, seq)?;
            }
        }
        states_until(&mut log, &is_due)?;
        if std::mem::take(&mut first) {
            log.opening(row.at, made_up(subject.index))?;
        }
        log.row(row)?;
    }
    let rest = &metrics[series..];
    rest.iter().try_for_each(|r| told.row(&mut log, r))?;
    verdicts.try_for_each(|lost| match lost.event {
        CaptureEvent::SegmentLost(seq) => log.segment_lost(lost.at, seq),
        _ => Ok(()),
    })
}

/// What was said of a sender's state.
#[derive(Default)]
struct Told {
    phase: Option<&'static str>,
}

impl Told {
    /// What happened up to a row, the phase if it is another one, and the metrics.
    fn row(&mut self, log: &mut Log<'_>, row: &TraceRow) -> io::Result<()> {
        for (event, name) in TRACED {
            if row.events.has(event) {
                let mut data =
                    json!({ "retransmits": row.retransmits, "loss_events": row.loss_events });
                let proof = PROOFS.iter().find(|(proof, _)| row.events.has(*proof));
                if let (Events::UNDO, Some((_, proof))) = (event, proof) {
                    data["proof"] = json!(proof);
                }
                log.event(row.time, name, data)?;
            }
        }
        let new = state(row);
        if self.phase != Some(new) {
            // The first phase has none before it.
            let data = match self.phase.replace(new) {
                Some(old) => json!({ "old": old, "new": new }),
                None => json!({ "new": new }),
            };
            log.event(row.time, "recovery:congestion_state_updated", data)?;
        }
        log.metrics(row)
    }
}

/// The state in the words of the schema (quic-events-04, section 7.3). A trace keeps
/// [`TraceRow::start_up`] of the open state alone: elsewhere the threshold says it.
fn state(row: &TraceRow) -> &'static str {
    let slow_start = match row.phase {
        Phase::Recovery | Phase::Cwr => return "recovery",
        Phase::Open => row.start_up,
        Phase::Disorder | Phase::Loss => row.cwnd < row.ssthresh,
    };
    match slow_start {
        true => "slow_start",
        false => "congestion_avoidance",
    }
}

/// Writes one flow of a trace: its metrics, at most one record per `every`, the phases of its
/// recovery, and what happened to it as events of our own. Packets are in captures only.
///
/// # Errors
/// If `out` refuses.
pub fn write_trace(
    out: &mut dyn Write,
    trace: &Trace,
    flow: usize,
    every: Option<Span>,
) -> io::Result<()> {
    let states: Vec<TraceRow> = thin(trace, flow, every).iter().map(|k| k.row).collect();
    of_trace(trace, flow, |subject| {
        record(out, &preamble(subject.title, subject.name, subject.about))?;
        let mut log = Log::new(out, subject.mss, false);
        // Of a real host's flows the name has the addresses, or nobody knows them.
        let ends = match trace.meta.is_of_a_run() {
            true => Some(made_up(flow)),
            false => ends(subject.name),
        };
        if let (Some(first), Some(ends)) = (states.first(), ends) {
            log.opening(first.time, ends)?;
        }
        let mut told = Told::default();
        states.iter().try_for_each(|row| told.row(&mut log, row))
    })
}

/// Writes one flow of a trace between its packets.
///
/// # Errors
/// If `out` refuses.
pub fn write_captured(
    out: &mut dyn Write,
    trace: &Trace,
    flow: usize,
    packets: &[CaptureRow],
) -> io::Result<()> {
    let states: Vec<TraceRow> = trace.of_flow(flow).map(|(_, row)| *row).collect();
    of_trace(trace, flow, |subject| {
        let states = &states;
        write(out, &Subject { states, ..subject }, packets)
    })
}

/// What the file of a flow of a trace is about, without its states.
fn of_trace<T>(trace: &Trace, flow: usize, then: impl FnOnce(Subject<'_>) -> T) -> T {
    let unknown = FlowMeta::default();
    let of = trace.meta.flows.get(flow).unwrap_or(&unknown);
    let m = &trace.meta;
    then(Subject {
        title: &m.title(),
        index: flow,
        name: &of.name,
        about: &format!(
            "flow {}, {}, ground {}, from a trace of fullpipe; the vocabulary is QUIC's",
            of.name, of.stack, m.ground
        ),
        mss: of.mss,
        stamps: of.packet.saturating_sub(of.mss) >= WITH_STAMPS,
        detector: None,
        states: &[],
    })
}

/// The ends of a flow of a run: hosts without addresses.
fn made_up(flow: usize) -> (SocketAddr, SocketAddr) {
    let (from, to) = endpoints(flow);
    (from.into(), to.into())
}

/// The ends of a flow that was observed, `10.0.0.1:22 -> 192.0.2.7:50312`; a second one of this
/// name has a number behind it.
fn ends(name: &str) -> Option<(SocketAddr, SocketAddr)> {
    let (from, to) = name.split_once(" -> ")?;
    let to = to.split_once(' ').map_or(to, |(to, _)| to);
    Some((from.parse().ok()?, to.parse().ok()?))
}

/// What showed that a reduction was spurious, in the words of a trace.
const PROOFS: [(Events, &str); 3] = [
    (Events::EIFEL, "eifel"),
    (Events::DSACK, "dsack"),
    (Events::F_RTO, "f-rto"),
];

/// Events of a trace that have a record of their own.
const TRACED: [(Events, &str); 9] = [
    (Events::LOSS, "fullpipe:loss_event"),
    (Events::MARK, "fullpipe:mark_event"),
    (Events::LOCAL_DROP, "fullpipe:local_stall_event"),
    (Events::LOST_RETRANSMISSION, "fullpipe:lost_retransmission"),
    (Events::TIMEOUT, "fullpipe:timeout"),
    (Events::UNDO, "fullpipe:undo"),
    (Events::START_UP_EXIT, "fullpipe:start_up_exit"),
    (Events::PROBE, "fullpipe:probe"),
    (Events::STALL, "fullpipe:stall"),
];

fn preamble(title: &str, name: &str, description: &str) -> Value {
    json!({
        "qlog_format": "JSON-SEQ",
        "qlog_version": "0.3",
        "title": title,
        "description": description,
        "trace": {
            "title": name,
            "vantage_point": { "name": format!("sender of {name}"), "type": "client" },
            "configuration": { "time_offset": 0, "original_uris": [] },
            "common_fields": {
                "group_id": name,
                "protocol_type": ["TCP"],
                "time_format": "relative",
                "reference_time": 0,
            },
        },
    })
}

#[cfg(test)]
mod tests;
