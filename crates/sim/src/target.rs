//! Numbers of what an event wakes: links, the run's own marks, traffic, then flows, whose number may grow during a run.

use crate::queue::Target;

/// Where each kind has its targets. The arrival at link `i`'s far end is target `i`: the frequent event needs no table.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    links: u32,
    sources: u32,
    pings: u32,
    classes: u32,
    flows: u32,
}

/// What a target beyond the arrivals of links names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A link whose departures are not known in advance: the transmitter is free.
    Departure(usize),
    /// A link's overtaken packets: the earliest arrives.
    Stray(usize),
    /// The measured part begins.
    Measure,
    /// A source of datagrams sends.
    Source(usize),
    /// A probe sets out.
    Ping(usize),
    /// A class of short flows: the next one arrives.
    Class(usize),
    /// A sender's timer.
    Sender(usize),
    /// A receiver's timer.
    Receiver(usize),
    /// A flow starts.
    Start(usize),
    /// A flow has no more new data.
    Stop(usize),
    /// A refused flow tries its interface again.
    Resume(usize),
}

/// Targets of a flow, some unused: a power of two.
const PER_FLOW: u32 = 8;

impl Layout {
    /// For this many of each kind.
    pub fn new(links: usize, sources: usize, pings: usize, classes: usize) -> Self {
        let links = links as u32;
        let sources_from = 3 * links + 1;
        let pings_from = sources_from + sources as u32;
        let classes_from = pings_from + pings as u32;
        Self {
            links,
            sources: sources_from,
            pings: pings_from,
            classes: classes_from,
            flows: classes_from + classes as u32,
        }
    }

    /// Targets in use with this many flows.
    pub fn targets(&self, flows: usize) -> usize {
        self.flows as usize + PER_FLOW as usize * flows
    }

    /// True for the arrival at a link's far end.
    #[inline]
    pub fn is_arrival(&self, target: Target) -> bool {
        target < self.links
    }

    /// The target of an event that is not an arrival.
    #[inline]
    pub fn target(&self, wake: Wake) -> Target {
        let of_flow = |i: usize, kind: u32| self.flows + PER_FLOW * i as u32 + kind;
        match wake {
            Wake::Departure(i) => self.links + i as u32,
            Wake::Stray(i) => 2 * self.links + i as u32,
            Wake::Measure => 3 * self.links,
            Wake::Source(i) => self.sources + i as u32,
            Wake::Ping(i) => self.pings + i as u32,
            Wake::Class(i) => self.classes + i as u32,
            Wake::Sender(i) => of_flow(i, 0),
            Wake::Receiver(i) => of_flow(i, 1),
            Wake::Start(i) => of_flow(i, 2),
            Wake::Stop(i) => of_flow(i, 3),
            Wake::Resume(i) => of_flow(i, 4),
        }
    }

    /// What a target that is not an arrival names.
    #[inline]
    pub fn named(&self, target: Target) -> Wake {
        if target >= self.flows {
            let at = target - self.flows;
            let i = (at / PER_FLOW) as usize;
            return match at % PER_FLOW {
                0 => Wake::Sender(i),
                1 => Wake::Receiver(i),
                2 => Wake::Start(i),
                3 => Wake::Stop(i),
                _ => Wake::Resume(i),
            };
        }
        let from = |first: u32| (target - first) as usize;
        if target >= self.classes {
            Wake::Class(from(self.classes))
        } else if target >= self.pings {
            Wake::Ping(from(self.pings))
        } else if target >= self.sources {
            Wake::Source(from(self.sources))
        } else if target == 3 * self.links {
            Wake::Measure
        } else if target >= 2 * self.links {
            Wake::Stray(from(2 * self.links))
        } else {
            Wake::Departure(from(self.links))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_names_what_it_was_made_of() {
        for (links, sources, pings, classes) in [(2, 0, 0, 0), (3, 2, 1, 4), (0, 0, 0, 1)] {
            let layout = Layout::new(links, sources, pings, classes);
            let mut all: Vec<Wake> = (0..links).map(Wake::Departure).collect();
            all.extend((0..links).map(Wake::Stray));
            all.push(Wake::Measure);
            all.extend((0..sources).map(Wake::Source));
            all.extend((0..pings).map(Wake::Ping));
            all.extend((0..classes).map(Wake::Class));
            for i in [0, 1, 7] {
                all.extend([
                    Wake::Sender(i),
                    Wake::Receiver(i),
                    Wake::Start(i),
                    Wake::Stop(i),
                    Wake::Resume(i),
                ]);
            }
            let mut targets: Vec<Target> = all.iter().map(|w| layout.target(*w)).collect();
            for (wake, target) in all.iter().zip(&targets) {
                assert_eq!(layout.named(*target), *wake);
                assert!(!layout.is_arrival(*target));
                assert!((*target as usize) < layout.targets(8));
            }
            targets.dedup();
            assert_eq!(targets.len(), all.len());
        }
    }
}
