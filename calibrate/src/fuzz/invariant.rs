//! What no run may break, whatever the ground.

use fullpipe_run::{FlowSpec, LinkSpec, RunSpec};
use fullpipe_units::{Rate, Span};

use super::run::{FlowSeen, Seen};

/// What a run broke, each in a sentence.
pub fn broken(spec: &RunSpec, seen: &Seen) -> Vec<String> {
    let flows = spec.flows.iter().zip(&seen.flows);
    flows.flat_map(|(f, s)| of_flow(spec, f, s)).collect()
}

fn of_flow(spec: &RunSpec, f: &FlowSpec, s: &FlowSeen) -> Vec<String> {
    let mut found = Vec::new();
    let links = |numbers: &'_ [usize]| -> Vec<LinkSpec> {
        let links = numbers.iter().filter_map(|&i| spec.links.get(i));
        links.cloned().collect()
    };
    let (forward, back) = (links(&f.forward), links(&f.back));
    let fastest = forward
        .iter()
        .filter_map(fastest)
        .fold(f64::INFINITY, f64::min);
    let (mss, packet) = (f64::from(f.sender.mss), f64::from(f.sender.packet()));
    // One packet may be on its way when the counting ends.
    let most = fastest * mss / packet * 1.001;
    if s.goodput > most {
        found.push(format!(
            "goodput {:.3} above the link's {most:.3} Mbit/s",
            s.goodput
        ));
    }
    let delays = forward
        .iter()
        .chain(&back)
        .map(|l| shortest(l).as_millis_f64());
    let least: f64 = delays.sum();
    // Buckets of the histograms are 1/2048 of an octave wide, stamps whole microseconds.
    if s.rtt_min > 0.0 && s.rtt_min < least * (1.0 - 1.0 / 1024.0) - 0.002 {
        found.push(format!(
            "RTT {:.4} below the path's {least:.4} ms",
            s.rtt_min
        ));
    }
    // Of drops that are not repaired yet, and of retransmissions that are still on their way, there
    // can be no more than a window.
    let way = s.cwnd_max.ceil() as u64 + 1;
    let (lost, resent) = (s.dropped, s.retransmits);
    if lost > resent + way {
        found.push(format!("{lost} drops, {resent} retransmissions"));
    }
    if resent > lost + s.duplicates + way {
        let twice = s.duplicates;
        found.push(format!(
            "{resent} retransmissions, {lost} drops, {twice} arrived twice"
        ));
    }
    found
}

/// Highest rate of a link, Mbit/s.
fn fastest(link: &LinkSpec) -> Option<f64> {
    let changes = link.schedule.iter().filter_map(|c| c.rate);
    let rates = link
        .rate
        .into_iter()
        .chain(changes)
        .map(Rate::as_bits_per_sec);
    rates.max().map(|bits| bits as f64 / 1e6)
}

/// Shortest delay of a link.
fn shortest(link: &LinkSpec) -> Span {
    let changes = link.schedule.iter().filter_map(|c| c.delay);
    changes.fold(link.delay, Span::min)
}

#[cfg(test)]
mod tests {
    use super::super::draft::Draft;
    use super::super::run::{resolve, simulate};
    use super::*;

    #[test]
    fn a_run_breaks_nothing_and_a_wrong_one_does() {
        let text = "name = \"x\"\nduration = \"5s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"30ms\"\n\
                    [[flow]]\nstack = \"reno-linux\"\npreset = \"linux\"\n";
        let spec = resolve(&Draft::parse(text).unwrap()).unwrap();
        let right = simulate(&spec).unwrap();
        assert_eq!(broken(&spec, &right), Vec::<String>::new());
        type Change = fn(&mut FlowSeen);
        let wrong: [Change; 4] = [
            |f| f.goodput = 9.7,
            |f| f.rtt_min = 29.9,
            |f| f.dropped = f.retransmits + 100_000,
            |f| f.retransmits = f.dropped + 100_000,
        ];
        for change in wrong {
            let mut seen = right.clone();
            change(&mut seen.flows[0]);
            assert_eq!(broken(&spec, &seen).len(), 1, "{seen:?}");
        }
    }
}
