//! Links.

use fullpipe_run::{Histogram, LinkOutcome, LinkSpec, QueueSample, RunSpec};
use fullpipe_units::{Span, Time};

use super::histogram;
use crate::records::{self, Record};

/// A link as far as it has been read.
#[derive(Default)]
pub(super) struct Link {
    counts: [u64; 11],
    wait: Histogram,
    series: Vec<QueueSample>,
}

impl Link {
    pub(super) fn read(&mut self, record: &Record<'_>) -> Option<()> {
        let mut b = record.body;
        match record.kind {
            records::LINK => self.counts = b.u64s()?,
            records::WAIT => self.wait = histogram(b, Span::from_nanos(100)),
            _ => self.series.push(QueueSample {
                at: b.time()?,
                packets: b.u64()?,
                min: b.u64()?,
                max: b.u64()?,
            }),
        }
        Some(())
    }

    pub(super) fn finish(self, link: &LinkSpec, spec: &RunSpec) -> LinkOutcome {
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
            ties: None,
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
