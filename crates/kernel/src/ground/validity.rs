//! What makes a run not valid here, beside what the path itself shows.

use fullpipe_emulate::truth::Check;
use fullpipe_run::{Buffer, LinkSpec, RunSpec};
use fullpipe_units::Span;

use crate::sampler::Seen;

/// What waits for a late departure leaves at once, comes back as a burst, and may fill a buffer
/// that it would have passed one by one: the latest must be short against the smallest buffer.
pub(super) fn bunched(spec: &RunSpec, latest: Span) -> Option<Check> {
    let room = |l: &LinkSpec| {
        let bits = l.rate?.as_bits_per_sec().max(1) as f64;
        match l.buffer {
            Buffer::Packets(n) => Some(n as f64 * PACKET * 8.0 / bits),
            Buffer::Bytes(n) => Some(n as f64 * 8.0 / bits),
            Buffer::Time(t) => Some(t.as_secs_f64()),
            Buffer::Unlimited => None,
        }
    };
    let smallest = spec.links.iter().filter_map(room).min_by(f64::total_cmp)?;
    Some(Check {
        name: "latest departure, against the smallest buffer".to_owned(),
        unit: "ms".to_owned(),
        specified: None,
        measured: latest.as_millis_f64(),
        bound: (0.0, smallest * 1e3 * BUNCH),
    })
}

/// Bytes of the packets that a buffer counts.
pub(super) const PACKET: f64 = 1500.0;

/// Part of a buffer that a bunch of packets may take.
pub(super) const BUNCH: f64 = 0.5;

/// A sender that had nothing to send, though its flow has no end: its program was late.
pub(super) fn starved(spec: &RunSpec, seen: &[Seen]) -> Vec<Check> {
    let bulk = spec.flows.iter().zip(seen);
    let bulk = bulk.filter(|(f, _)| f.sender.transfer.is_none() && f.stop.is_none());
    bulk.map(|(f, s)| Check {
        name: format!("flow {} without data to send", f.name),
        unit: "% of its life".to_owned(),
        specified: Some(0.0),
        measured: s.sampled.starved * 100.0,
        bound: (0.0, STARVED * 100.0),
    })
    .collect()
}

/// Part of its life that a sender may lack data.
pub(super) const STARVED: f64 = 0.01;

#[cfg(test)]
mod tests {
    use fullpipe_units::Rate;

    use super::*;

    #[test]
    fn a_bunch_may_take_half_of_the_smallest_buffer() {
        let rate = Some(Rate::from_bits_per_sec(100_000_000));
        let link = |packets| LinkSpec::new("l", rate, Span::ZERO, Buffer::Packets(packets));
        let mut spec = RunSpec {
            links: vec![link(1000), link(41)],
            ..RunSpec::default()
        };
        // 41 packets of 0.12 ms.
        let holds = |spec: &RunSpec, us| bunched(spec, Span::from_micros(us)).unwrap().holds();
        assert!(holds(&spec, 2400) && !holds(&spec, 2500));
        spec.links = vec![LinkSpec::pure_delay("back", Span::ZERO)];
        assert!(bunched(&spec, Span::from_secs(1)).is_none());
    }
}
