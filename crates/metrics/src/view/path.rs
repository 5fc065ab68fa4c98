//! The round trip of the idle path: as the scenario writes it, and what chance and a schedule add.

use fullpipe_run::{LinkSpec, RunSpec};
use fullpipe_units::Time;

/// What a schedule adds to the propagation delay of links between two times, in the mean, seconds.
pub(super) fn scheduled_s<'a>(
    run: &RunSpec,
    links: impl Iterator<Item = &'a usize>,
    (from, to): (Time, Time),
) -> f64 {
    let known = links.filter_map(|&l| run.links.get(l));
    known.map(|l| l.scheduled_delay_s(from, to)).sum()
}

/// The same, and what chance adds in this run.
pub(super) fn added_s<'a>(
    run: &RunSpec,
    links: impl Iterator<Item = &'a usize> + Clone,
    part: (Time, Time),
) -> f64 {
    let drawn = |l: &LinkSpec| l.drawn_spread(run.seed).as_secs_f64();
    let known = links.clone().filter_map(|&l| run.links.get(l));
    known.map(drawn).sum::<f64>() + scheduled_s(run, links, part)
}
