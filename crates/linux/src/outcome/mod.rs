//! From the kernel's records to the outcome of a run.

mod capture;
mod flow;
mod link;
mod rows;
mod traffic;

use fullpipe_run::{Histogram, Outcome, RunSpec};
use fullpipe_units::Span;

use crate::error::LinuxError;
use crate::plan::Traffic;
use crate::records::{self, Body, Record, Records};

use capture::Capture;
use flow::Flow;
use link::Link;
use traffic::Cross;

/// The outcome of a run of `spec` with this traffic, which left these records.
///
/// # Errors
/// [`LinuxError::Guest`] if they are not whole.
pub fn outcome(spec: &RunSpec, traffic: &Traffic, bytes: &[u8]) -> Result<Outcome, LinuxError> {
    let brief: usize = traffic.classes.iter().map(Vec::len).sum();
    let mut read = Read {
        flows: fresh(spec.flows.len() + brief),
        links: fresh(spec.links.len()),
        cross: fresh(spec.cross.len()),
        capture: Capture::of(spec),
        whole: false,
    };
    let mut events = 0;
    for record in Records::new(bytes) {
        events += 1;
        read.record(&record)
            .ok_or_else(|| LinuxError::Guest("its records cannot be read".to_owned()))?;
    }
    if !read.whole {
        return Err(LinuxError::Guest("its records are cut off".to_owned()));
    }
    let delivered_packets = read.flows.iter().map(|f| f.arrived).sum();
    let mut flows = read.flows.into_iter();
    let lasting = spec.flows.iter().zip(flows.by_ref());
    let lasting = lasting.map(|(f, read)| read.finish(f, spec)).collect();
    let classes = spec.arrivals.iter().zip(&traffic.classes);
    let classes = classes.map(|(a, drawn)| traffic::class(a, drawn, flows.by_ref(), spec));
    let links = spec.links.iter().zip(read.links);
    let cross = spec.cross.iter().zip(&traffic.departures).zip(read.cross);
    Ok(Outcome {
        duration: spec.duration,
        measure_from: spec.measure_from,
        interval: spec.interval,
        flows: lasting,
        links: links.map(|(l, read)| read.finish(l, spec)).collect(),
        arrivals: classes.collect(),
        cross: cross
            .map(|((c, left), read)| read.finish(c, left, spec))
            .collect(),
        capture: read.capture.finish(),
        events,
        delivered_packets,
        fidelity: None,
        partial: None,
    })
}

/// As many as the specification has, nothing read yet.
fn fresh<T: Default>(n: usize) -> Vec<T> {
    std::iter::repeat_with(T::default).take(n).collect()
}

/// Records read so far.
struct Read {
    flows: Vec<Flow>,
    links: Vec<Link>,
    cross: Vec<Cross>,
    capture: Capture,
    whole: bool,
}

impl Read {
    /// `None`: it is not what the driver writes.
    fn record(&mut self, record: &Record<'_>) -> Option<()> {
        match record.kind {
            records::LINK | records::WAIT | records::SAMPLE => {
                self.links.get_mut(record.id)?.read(record)
            }
            records::CROSS | records::CROSS_ARRIVED | records::CROSS_DELAY | records::ANSWERED => {
                self.cross.get_mut(record.id)?.read(record)
            }
            records::PACKET => self.capture.read(record),
            records::END => {
                self.whole = true;
                Some(())
            }
            _ => self.flows.get_mut(record.id)?.read(record),
        }
    }
}

/// Counts per interval.
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

/// log2 of the driver's buckets in an octave (`SUB` in `records.c`).
const SUB: u32 = 11;
