//! From the kernel's records to the outcome of a run.

use fullpipe_cc::{CongestionKind, Phase};
use fullpipe_flow::{Episode, EpisodeKind, Events, TraceRow};
use fullpipe_run::{
    ArrivalRecord, FlowOutcome, FlowTotals, Histogram, LinkOutcome, LinkSpec, Outcome, Round,
    RunSpec, SenderRecord,
};
use fullpipe_units::{Span, Time};

use crate::error::LinuxError;
use crate::records::{self, Body, Record, Records};

/// The outcome of a run of `spec` that left these records.
///
/// # Errors
/// [`LinuxError::Guest`] if they are not whole.
pub fn outcome(spec: &RunSpec, bytes: &[u8]) -> Result<Outcome, LinuxError> {
    let mut flows: Vec<Flow> = spec.flows.iter().map(|_| Flow::default()).collect();
    let mut links: Vec<Link> = spec.links.iter().map(|_| Link::default()).collect();
    let (mut whole, mut events) = (false, 0);
    for record in Records::new(bytes) {
        events += 1;
        whole |= record.kind == records::END;
        let read = match record.kind {
            records::LINK | records::WAIT | records::SAMPLE => {
                links.get_mut(record.id).map(|l| l.read(&record))
            }
            records::END => Some(Some(())),
            _ => flows.get_mut(record.id).map(|f| f.read(&record)),
        };
        read.flatten().ok_or_else(broken)?;
    }
    if !whole {
        return Err(LinuxError::Guest("its records are cut off".to_owned()));
    }
    let mut delivered_packets = 0;
    let flows = spec.flows.iter().zip(flows).map(|(f, read)| {
        delivered_packets += read.arrived;
        let timing = (f.started(spec.seed), read.completed);
        let arrivals = ArrivalRecord {
            delivered: read.delivered,
            arrived: read.arrivals,
        };
        FlowOutcome::new(f, read.totals, read.record, arrivals, timing)
    });
    let flows: Vec<_> = flows.collect();
    let links = spec.links.iter().zip(links);
    let links = links.map(|(l, read)| read.finish(l, spec)).collect();
    Ok(Outcome {
        duration: spec.duration,
        measure_from: spec.measure_from,
        interval: spec.interval,
        flows,
        links,
        arrivals: Vec::new(),
        cross: Vec::new(),
        capture: Vec::new(),
        events,
        delivered_packets,
        fidelity: None,
    })
}

fn broken() -> LinuxError {
    LinuxError::Guest("its records cannot be read".to_owned())
}

/// A flow as far as it has been read.
#[derive(Default)]
struct Flow {
    totals: FlowTotals,
    record: SenderRecord,
    delivered: Vec<u64>,
    arrivals: Vec<u64>,
    arrived: u64,
    completed: Option<Time>,
}

impl Flow {
    fn read(&mut self, record: &Record<'_>) -> Option<()> {
        let mut b = record.body;
        match record.kind {
            records::ROW => self.record.series.rows.push(row(&mut b, record.id)?),
            records::EPISODE => self.record.episodes.push(episode(&mut b)?),
            records::ROUND => self.record.rounds.push(Round {
                start: Time::from_nanos(b.u64()?),
                delivered: b.u64()?,
                cwnd: b.u64()? as f64,
            }),
            records::DELIVERED => self.delivered = wide(b),
            records::ARRIVED => self.arrivals = wide(b),
            records::RTT => self.record.rtt = histogram(b, Span::from_micros(1)),
            records::FLOW => self.totals(&mut b)?,
            _ => {}
        }
        Some(())
    }

    fn totals(&mut self, b: &mut Body<'_>) -> Option<()> {
        self.totals = FlowTotals {
            sent: b.u64()?,
            retransmits: b.u64()?,
            delivered: b.u64()?,
            delivered_measured: b.u64()?,
            arrived_measured: b.u64()?,
            duplicates: b.u64()?,
            out_of_order: b.u64()?,
            dropped: b.u64()?,
            loss_events: b.u64()?,
            loss_events_measured: b.u64()?,
            timeouts: b.u64()?,
            probes: b.u64()?,
            undone: b.u64()?,
            local_stalls: 0,
            acks: b.u64()?,
            limited: fullpipe_flow::LimitTimes::default(),
        };
        self.arrived = b.u64()?;
        let _late = b.u64()?;
        let (area, since, until) = (b.u64()?, b.u64()?, b.u64()?);
        let (max, completed) = (b.u64()?, b.u64()?);
        let measured = until.saturating_sub(since);
        self.record.cwnd_max = max as f64;
        self.record.cwnd_mean = match measured {
            0 => max as f64,
            _ => area as f64 / measured as f64,
        };
        self.completed = (completed != u64::MAX).then(|| Time::from_nanos(completed));
        Some(())
    }
}

/// A row of a trace, laid out as `struct fp_row`.
fn row(b: &mut Body<'_>, flow: usize) -> Option<TraceRow> {
    let time = Time::from_nanos(b.u64()?);
    let pacing_rate = b.u64()? as f64 * 8.0;
    let (delivered, snd_una, snd_nxt) = (b.u64()?, b.u64()?, b.u64()?);
    let srtt = Span::from_nanos(b.u64()?);
    let [cwnd, low, high] = [b.u32()?, b.u32()?, b.u32()?].map(f64::from);
    let ssthresh = match b.u32()? {
        // TCP_INFINITE_SSTHRESH
        0x7fff_ffff => f64::INFINITY,
        other => f64::from(other),
    };
    let (rtt, min_rtt) = (b.u32()?, b.u32()?);
    let (flight, retransmits) = (u64::from(b.u32()?), u64::from(b.u32()?));
    let (loss_events, timeouts) = (b.u32()?, b.u32()?);
    let events = Events::from_bits(b.u16()?);
    let (phase, start_up) = (b.u8()?, b.u8()? != 0);
    Some(TraceRow {
        time,
        cwnd,
        cwnd_min: low.min(cwnd),
        cwnd_max: high.max(cwnd),
        ssthresh,
        pacing_rate,
        rtt: Span::from_micros(u64::from(rtt)),
        srtt,
        min_rtt: match min_rtt {
            u32::MAX => Span::MAX,
            us => Span::from_micros(u64::from(us)),
        },
        ack_delay: Span::MAX,
        flight,
        delivered,
        snd_una,
        snd_nxt,
        retransmits,
        loss_events,
        timeouts,
        local_stalls: 0,
        mss: b.u32()?,
        flow: u32::try_from(flow).unwrap_or(u32::MAX),
        events,
        // enum tcp_ca_state
        phase: match phase {
            0 => Phase::Open,
            1 => Phase::Disorder,
            2 => Phase::Cwr,
            3 => Phase::Recovery,
            _ => Phase::Loss,
        },
        start_up,
    })
}

/// A change of the window, laid out as `struct fp_episode`.
fn episode(b: &mut Body<'_>) -> Option<Episode> {
    let at = Time::from_nanos(b.u64()?);
    let kind = match b.u32()? {
        0 => EpisodeKind::Congestion(CongestionKind::Loss),
        1 => EpisodeKind::Congestion(CongestionKind::Ecn),
        4 => EpisodeKind::Timeout,
        5 => EpisodeKind::Undo,
        6 => EpisodeKind::StartUpExit,
        _ => return None,
    };
    let (before, after) = (f64::from(b.u32()?), f64::from(b.u32()?));
    Some(Episode {
        at,
        kind,
        before,
        after,
    })
}

fn wide(b: Body<'_>) -> Vec<u64> {
    b.all_u32().into_iter().map(u64::from).collect()
}

/// Buckets of the driver, 2048 to an octave of `unit`, by their middles.
fn histogram(b: Body<'_>, unit: Span) -> Histogram {
    let mut h = Histogram::default();
    for pair in b.all_u32().chunks_exact(2) {
        let (e, m) = (pair[0] >> SUB, u64::from(pair[0] & ((1 << SUB) - 1)));
        let (low, wide) = match e {
            0 => (m, 1),
            e => (((1 << SUB) + m) << (e - 1), 1 << (e - 1)),
        };
        let middle = unit * low + unit * (wide - 1) / 2;
        h.record_many(middle, pair[1]);
    }
    h
}

/// log2 of the driver's buckets in an octave (`FP_SUB`).
const SUB: u32 = 11;

/// A link as far as it has been read.
#[derive(Default)]
struct Link {
    counts: [u64; 11],
    wait: Histogram,
    series: Vec<(Time, u64)>,
}

impl Link {
    fn read(&mut self, record: &Record<'_>) -> Option<()> {
        let mut b = record.body;
        match record.kind {
            records::LINK => {
                for count in &mut self.counts {
                    *count = b.u64()?;
                }
            }
            records::WAIT => self.wait = histogram(b, Span::from_nanos(100)),
            _ => self.series.push((Time::from_nanos(b.u64()?), b.u64()?)),
        }
        Some(())
    }

    fn finish(self, link: &LinkSpec, spec: &RunSpec) -> LinkOutcome {
        let [
            offered,
            delivered,
            delivered_bytes,
            measured_bytes,
            buffer_drops,
            random_drops,
            policer_drops,
            early_drops,
            marks,
            queue_max,
            area,
        ] = self.counts;
        let end = Time::ZERO + spec.duration;
        let measured = end.saturating_since(spec.measure_from.min(end));
        let utilization = match capacity(link, spec.measure_from, end) {
            Some(bytes) if bytes > 0.0 => (measured_bytes as f64 / bytes).min(1.0),
            _ => 0.0,
        };
        let queue_mean = match measured.as_nanos() {
            0 => 0.0,
            ns => area as f64 / ns as f64,
        };
        LinkOutcome {
            name: link.name.clone(),
            offered,
            delivered,
            delivered_bytes,
            measured_bytes,
            buffer_drops,
            random_drops,
            policer_drops,
            early_drops,
            marks,
            queueing_delay: self.wait,
            queue_max,
            queue_mean,
            utilization,
            series: self.series,
        }
    }
}

/// Bytes that the transmitter could send between two times; `None`: nothing limits it.
fn capacity(link: &LinkSpec, from: Time, to: Time) -> Option<f64> {
    let first = link.rate?;
    let changes = link.schedule.iter().filter_map(|c| Some((c.at, c.rate?)));
    let pieces: Vec<_> = [(Time::ZERO, first)].into_iter().chain(changes).collect();
    let ends = pieces[1..].iter().map(|p| p.0).chain([Time::MAX]);
    let bits = pieces.iter().zip(ends).map(|((begin, rate), end)| {
        let part = end.min(to).saturating_since((*begin).max(from));
        rate.as_bits_per_sec() as f64 * part.as_secs_f64()
    });
    Some(bits.sum::<f64>() / 8.0)
}
