//! The way behind the transmitter: a delay that may change, jitter that keeps the order, and
//! packets that are reordered and arrive later than those behind them.

use fullpipe_run::{ComponentRng, LinkSpec, Reorder};
use fullpipe_units::{Span, Time};

use super::Admission;
use super::way::{Flying, Way};
use crate::packet::Packet;
use crate::ring::Ring;

/// What happens to packets between the transmitter and the far end.
#[derive(Debug)]
pub struct Wire {
    delay: Span,
    /// Later delays, the next one at the back.
    changes: Vec<(Time, Span)>,
    jitter: Option<(ComponentRng, Span)>,
    reorder: Option<Chance>,
    /// Latest arrival so far, reordered packets apart.
    last: Time,
    /// In order among themselves: all are late by the same.
    reordered: Ring<Flying>,
}

/// Draws the packets that are reordered.
#[derive(Debug)]
struct Chance {
    rng: ComponentRng,
    spec: Reorder,
    /// Packets until the next one, that one included.
    gap: u64,
}

/// A uniform part of a span.
fn part(rng: &mut ComponentRng, most: Span) -> Span {
    Span::from_nanos((most.as_nanos() as f64 * rng.uniform()) as u64)
}

impl Wire {
    /// The way of a link in the run with `seed`.
    pub fn new(spec: &LinkSpec, seed: u64) -> Self {
        let extra = spec.drawn_spread(seed);
        let changes = spec.schedule.iter().rev();
        let rng = |what: &str| ComponentRng::new(seed, &format!("{} {what}", spec.name));
        Self {
            delay: spec.delay + extra,
            changes: changes
                .filter_map(|c| Some((c.at, c.delay? + extra)))
                .collect(),
            jitter: (spec.jitter > Span::ZERO).then(|| (rng("jitter"), spec.jitter)),
            reorder: spec.reorder.map(|r| Chance::new(r, rng("reorder"))),
            last: Time::ZERO,
            reordered: Ring::new(Flying::NONE),
        }
    }

    /// A packet leaves the transmitter at `departs`, no earlier than the one before.
    pub fn send(&mut self, departs: Time, packet: Packet, way: &mut Way) -> Admission {
        while let Some((_, delay)) = self.changes.pop_if(|c| c.0 <= departs) {
            self.delay = delay;
        }
        let mut arrives = departs + self.delay;
        if let Some((rng, most)) = &mut self.jitter {
            arrives += part(rng, *most);
        }
        let arrives = arrives.max(self.last);
        self.last = arrives;
        if let Some(chance) = &mut self.reorder
            && chance.reorders()
        {
            let at = arrives + chance.spec.extra;
            let first = self.reordered.is_empty();
            self.reordered.push(Flying {
                arrives: at,
                packet,
            });
            return Admission::Reordered { at, first };
        }
        way.join(arrives, packet)
    }

    /// The oldest reordered packet, which arrives now.
    pub fn take_reordered(&mut self) -> Option<Packet> {
        (!self.reordered.is_empty()).then(|| self.reordered.pop().packet)
    }

    /// When the next reordered packet arrives.
    pub fn next_reordered(&self) -> Option<Time> {
        self.reordered.front().map(|f| f.arrives)
    }

    /// Packets reordered so far.
    pub fn reordered(&self) -> u64 {
        self.reordered.pushed()
    }

    /// Every reordered packet on the way.
    pub fn inside(&self) -> impl Iterator<Item = &Packet> + '_ {
        self.reordered.iter().map(|f| &f.packet)
    }
}

impl Chance {
    fn new(spec: Reorder, mut rng: ComponentRng) -> Self {
        let gap = rng.geometric(spec.probability);
        Self { rng, spec, gap }
    }

    fn reorders(&mut self) -> bool {
        self.gap -= 1;
        let hit = self.gap == 0;
        if hit {
            self.gap = self.rng.geometric(self.spec.probability);
        }
        hit
    }
}
