//! Which links a packet crosses: by the side it comes from and the pair of hosts it is of.

use fullpipe_run::RunSpec;
use fullpipe_sim::{Path, Route};

use crate::namespace::PAIRS;

/// Routes of all pairs of hosts, by the side that a packet comes from.
#[derive(Clone, Debug)]
pub struct Ways {
    pairs: Vec<[Route; 2]>,
}

impl Ways {
    /// Pair `k` is the flow `k` of `spec`: what leaves its sender's host goes forward, what leaves
    /// the other host goes back. `None`: too many, or too long.
    pub fn new(spec: &RunSpec, path: &mut Path) -> Option<Self> {
        let pairs = spec.flows.iter().map(|flow| {
            let forward = path.route(&flow.forward)?;
            let back = path.route(&flow.back)?;
            Some(match flow.reverse {
                false => [forward, back],
                true => [back, forward],
            })
        });
        let pairs: Vec<_> = pairs.collect::<Option<_>>()?;
        (pairs.len() <= PAIRS).then_some(Self { pairs })
    }

    /// The way of a packet from a side.
    #[inline]
    pub fn of(&self, from: usize, pair: usize) -> Option<Route> {
        self.pairs.get(pair).map(|way| way[from])
    }
}
