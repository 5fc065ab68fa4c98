//! What the sender of a flow has seen so far, turned into events one by one.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;

use fullpipe_cc::Phase;
use fullpipe_flow::{Ack, Detector, Segment, TraceRow};
use fullpipe_run::{CaptureEvent, CaptureRow};
use fullpipe_units::{Span, Time};
use serde::Serialize;
use serde_json::json;

use super::record::{Event, Frame, Lost, Metrics, PacketData, PacketHeader, Raw, ranges, record};
use crate::capture::IP_AND_TCP;

/// The events of a flow while they are written.
pub(super) struct Log<'a> {
    out: &'a mut dyn Write,
    mss: u64,
    stamps: bool,
    /// Packets sent and received so far.
    sent: u64,
    received: u64,
    /// Largest packet number acknowledged.
    largest: u64,
    /// Copies of segments that are not acknowledged, by segment number, oldest first.
    waiting: BTreeMap<u64, Vec<Copy>>,
    /// Packet numbers of the SYNs that nobody has answered, and when they left.
    syns: Vec<(u64, Time)>,
    metrics: Metrics,
    detector: Option<Detector>,
    /// The sender's state, as the latest row of the series has it.
    phase: Option<Phase>,
    /// The capture has the sender's verdicts; elsewhere what is sent again was taken for lost.
    verdicts: bool,
}

/// One transmission.
#[derive(Clone, Copy, Debug)]
struct Copy {
    number: u64,
    stamp: Time,
    fate: Fate,
    /// The sender has marked it lost.
    lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Arrived,
    Dropped,
}

impl<'a> Log<'a> {
    pub(super) fn new(out: &'a mut dyn Write, mss: u32, stamps: bool) -> Self {
        Log {
            out,
            mss: u64::from(mss),
            stamps,
            sent: 0,
            received: 0,
            largest: 0,
            waiting: BTreeMap::new(),
            syns: Vec::new(),
            metrics: Metrics::default(),
            detector: None,
            phase: None,
            verdicts: false,
        }
    }

    /// Losses are found in this way, and each verdict is in the capture or not.
    pub(super) fn detected_by(mut self, detector: Option<Detector>, verdicts: bool) -> Self {
        (self.detector, self.verdicts) = (detector, verdicts);
        self
    }
}

impl Log<'_> {
    pub(super) fn event(
        &mut self,
        at: Time,
        name: &'static str,
        data: impl Serialize,
    ) -> io::Result<()> {
        let event = Event {
            time: millis(at),
            name,
            data,
            retransmission: false,
        };
        record(self.out, &event)
    }

    /// The addresses are those of the packet captures.
    pub(super) fn opening(
        &mut self,
        at: Time,
        (from, to): (SocketAddr, SocketAddr),
    ) -> io::Result<()> {
        let data = json!({
            "ip_version": if from.is_ipv4() { "v4" } else { "v6" },
            "src_ip": from.ip().to_string(),
            "dst_ip": to.ip().to_string(),
            "src_port": from.port(),
            "dst_port": to.port(),
        });
        self.event(at, "connectivity:connection_started", data)
    }

    pub(super) fn row(&mut self, row: &CaptureRow) -> io::Result<()> {
        match row.event {
            CaptureEvent::SegmentSent(s) => self.segment_sent(row.at, &s),
            CaptureEvent::AckReceived(a) => self.ack_received(row.at, &a),
            CaptureEvent::SegmentReceived(s) => {
                self.settle(&s, Fate::Arrived);
                Ok(())
            }
            CaptureEvent::SegmentDropped(s) => match self.settle(&s, Fate::Dropped) {
                Some(n) => self.event(row.at, "fullpipe:packet_dropped", Lost::of(n)),
                None => Ok(()),
            },
            CaptureEvent::AckSent(_)
            | CaptureEvent::AckDropped(_)
            | CaptureEvent::SegmentLost(_) => Ok(()),
        }
    }

    /// The sender marked a segment lost: its last copy.
    pub(super) fn segment_lost(&mut self, at: Time, seq: u64) -> io::Result<()> {
        let copy = self
            .waiting
            .get_mut(&seq)
            .and_then(|copies| copies.last_mut());
        match copy.filter(|copy| !copy.lost) {
            Some(copy) => {
                copy.lost = true;
                let lost = Lost::by(copy.number, self.trigger());
                self.event(at, "recovery:packet_lost", lost)
            }
            None => Ok(()),
        }
    }

    fn segment_sent(&mut self, at: Time, s: &Segment) -> io::Result<()> {
        let number = self.sent;
        self.sent += 1;
        if s.syn {
            if !s.ends_handshake() {
                self.syns.push((number, s.stamp));
            }
            let data = PacketData {
                header: PacketHeader::opening(number),
                raw: Raw {
                    length: self.header_length(0),
                    payload_length: 0,
                },
                frames: vec![Frame::Ping],
            };
            return self.event(at, "transport:packet_sent", data);
        }
        let copies = self.waiting.entry(s.seq).or_default();
        let before = copies.last().map(|c| c.number);
        copies.push(Copy {
            number,
            stamp: s.stamp,
            fate: Fate::InFlight,
            lost: false,
        });
        if let Some(n) = before.filter(|_| !self.verdicts && !self.only_probes()) {
            let lost = Lost::by(n, self.trigger());
            self.event(at, "recovery:packet_lost", lost)?;
        }
        let frame = Frame::Stream {
            stream_id: 0,
            offset: s.seq.wrapping_mul(self.mss),
            length: self.mss,
        };
        let data = PacketData {
            header: PacketHeader::short(number),
            raw: Raw {
                length: self.header_length(0) + self.mss,
                payload_length: self.mss,
            },
            frames: vec![frame],
        };
        let event = Event {
            time: millis(at),
            name: "transport:packet_sent",
            data,
            retransmission: s.retransmission,
        };
        record(self.out, &event)
    }

    /// What is sent again now repairs no loss: it is a tail loss probe, of which RFC 9002 section
    /// 6.2 says that it marks nothing lost.
    fn only_probes(&self) -> bool {
        matches!(self.phase, Some(Phase::Open | Phase::Disorder | Phase::Cwr))
    }

    /// How a loss was found now, if the series tells the sender's state.
    fn trigger(&self) -> Option<&'static str> {
        Some(match (self.phase?, self.detector?) {
            (Phase::Loss, _) => "pto_expired",
            (_, Detector::Rack) => "time_threshold",
            (_, Detector::Sack | Detector::NewReno) => "reordering_threshold",
        })
    }

    /// The path has decided about a copy; its packet number.
    fn settle(&mut self, s: &Segment, fate: Fate) -> Option<u64> {
        if s.syn {
            return None;
        }
        let copies = self.waiting.get_mut(&s.seq)?;
        let copy = copies
            .iter_mut()
            .find(|c| c.stamp == s.stamp && c.fate == Fate::InFlight)?;
        copy.fate = fate;
        Some(copy.number)
    }

    fn ack_received(&mut self, at: Time, a: &Ack) -> io::Result<()> {
        let number = self.received;
        self.received += 1;
        let mut acked = Vec::new();
        // A SYN is no segment. One that was sent again has an answer of its own.
        if a.syn {
            let answered = self.syns.iter().position(|(_, at)| *at == a.echo);
            acked.extend(answered.map(|i| self.syns.remove(i).0));
        }
        self.acknowledge(0..a.cum, &mut acked);
        for block in a.sacks.iter() {
            self.acknowledge(block.start..block.end, &mut acked);
        }
        acked.sort_unstable();
        self.largest = self.largest.max(acked.last().copied().unwrap_or(0));
        if acked.is_empty() {
            acked.push(self.largest);
        }
        let data = PacketData {
            header: match a.syn {
                true => PacketHeader::opening(number),
                false => PacketHeader::short(number),
            },
            raw: Raw {
                length: self.header_length(a.sacks.len() as u64),
                payload_length: 0,
            },
            frames: vec![Frame::Ack {
                acked_ranges: ranges(&acked),
            }],
        };
        self.event(at, "transport:packet_received", data)
    }

    /// Takes out the copies of these segments that arrived, and forgets those that were dropped.
    /// One still on its way (a needless retransmission) stays until a duplicate is reported.
    fn acknowledge(&mut self, segments: std::ops::Range<u64>, acked: &mut Vec<u64>) {
        let mut done = Vec::new();
        for (seq, copies) in self.waiting.range_mut(segments) {
            let arrived = copies.iter().filter(|c| c.fate == Fate::Arrived);
            acked.extend(arrived.map(|c| c.number));
            copies.retain(|c| c.fate == Fate::InFlight);
            if copies.is_empty() {
                done.push(*seq);
            }
        }
        for seq in done {
            self.waiting.remove(&seq);
        }
    }

    pub(super) fn metrics(&mut self, row: &TraceRow) -> io::Result<()> {
        self.phase = Some(row.phase);
        let rtt = row.rtt.as_millis_f64();
        let srtt = row.srtt.as_millis_f64();
        let bytes = |segments: f64| {
            let b = segments * self.mss as f64;
            b.is_finite().then_some(b as u64)
        };
        let positive = |x: f64| (x > 0.0).then_some(x);
        let now = Metrics {
            // The flow's own: a sampled trace has not seen every round trip.
            min_rtt: (row.min_rtt < Span::MAX).then(|| row.min_rtt.as_millis_f64()),
            smoothed_rtt: positive(srtt),
            latest_rtt: positive(rtt),
            congestion_window: bytes(row.cwnd),
            bytes_in_flight: Some(row.flight.saturating_mul(self.mss)),
            ssthresh: bytes(row.ssthresh),
            pacing_rate: positive(row.pacing_rate).map(|r| r as u64),
        };
        let changed = now.without(&self.metrics);
        self.metrics = now;
        if changed == Metrics::default() {
            return Ok(());
        }
        self.event(row.time, "recovery:metrics_updated", changed)
    }

    /// Of a packet of the capture with so many SACK blocks.
    fn header_length(&self, blocks: u64) -> u64 {
        let (stamps, most) = if self.stamps { (12, 3) } else { (0, 4) };
        let sack = match blocks.min(most) {
            0 => 0,
            n => 4 + 8 * n,
        };
        u64::from(IP_AND_TCP) + stamps + sack
    }
}

fn millis(at: Time) -> f64 {
    at.as_nanos() as f64 / 1e6
}
