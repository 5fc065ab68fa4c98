//! Numbers of what an event wakes: links, the run's own marks, traffic, then flows, whose number
//! may grow during a run.

use crate::queue::Target;

/// Where each kind has its targets. The arrival at link `i`'s far end is target `i`: the frequent
/// event needs no table.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    links: u32,
    cross: u32,
    classes: u32,
    sessions: u32,
    flows: u32,
}

/// What an event that is not an arrival wakes.
pub type Wake = fullpipe_host::Wake<LinkEvent>;

/// Events of links that are not the arrival of a packet in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A link whose departures are not known in advance: the transmitter is free.
    Departure(u32),
    /// The earliest of a link's reordered packets arrives.
    Reordered(u32),
    /// A step of the trace ends for all queues.
    Sample,
}

/// Targets of a flow, some unused: a power of two.
const PER_FLOW: u32 = 8;

impl Layout {
    /// For this many of each kind.
    pub fn new(links: usize, cross: usize, classes: usize) -> Self {
        let links = links as u32;
        let cross_from = 3 * links + 2;
        let classes_from = cross_from + cross as u32;
        let sessions_from = classes_from + classes as u32;
        Self {
            links,
            cross: cross_from,
            classes: classes_from,
            sessions: sessions_from,
            flows: sessions_from + classes as u32,
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
        let of_flow = |i: u32, kind: u32| self.flows + PER_FLOW * i + kind;
        match wake {
            Wake::Network(LinkEvent::Departure(i)) => self.links + i,
            Wake::Network(LinkEvent::Reordered(i)) => 2 * self.links + i,
            Wake::Measure => 3 * self.links,
            Wake::Network(LinkEvent::Sample) => 3 * self.links + 1,
            Wake::Cross(i) => self.cross + i,
            Wake::Class(i) => self.classes + i,
            Wake::Session(i) => self.sessions + i,
            Wake::Sender(i) => of_flow(i, 0),
            Wake::Receiver(i) => of_flow(i, 1),
            Wake::Start(i) => of_flow(i, 2),
            Wake::Stop(i) => of_flow(i, 3),
            Wake::Resume(i) => of_flow(i, 4),
            Wake::Change(i) => of_flow(i, 5),
        }
    }

    /// What a target that is not an arrival names.
    #[inline]
    pub fn named(&self, target: Target) -> Wake {
        if target >= self.flows {
            let at = target - self.flows;
            let i = at / PER_FLOW;
            return match at % PER_FLOW {
                0 => Wake::Sender(i),
                1 => Wake::Receiver(i),
                2 => Wake::Start(i),
                3 => Wake::Stop(i),
                4 => Wake::Resume(i),
                _ => Wake::Change(i),
            };
        }
        if target >= self.sessions {
            Wake::Session(target - self.sessions)
        } else if target >= self.classes {
            Wake::Class(target - self.classes)
        } else if target >= self.cross {
            Wake::Cross(target - self.cross)
        } else if target > 3 * self.links {
            Wake::Network(LinkEvent::Sample)
        } else if target == 3 * self.links {
            Wake::Measure
        } else if target >= 2 * self.links {
            Wake::Network(LinkEvent::Reordered(target - 2 * self.links))
        } else {
            Wake::Network(LinkEvent::Departure(target - self.links))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_names_what_it_was_made_of() {
        for (links, cross, classes) in [(2, 0, 0), (3, 2, 4), (0, 0, 1)] {
            let layout = Layout::new(links, cross, classes);
            let count = |n: usize| 0..n as u32;
            let departures = count(links).map(LinkEvent::Departure);
            let mut all: Vec<Wake> = departures.map(Wake::Network).collect();
            let reordered = count(links).map(LinkEvent::Reordered);
            all.extend(reordered.map(Wake::Network));
            all.push(Wake::Measure);
            all.push(Wake::Network(LinkEvent::Sample));
            all.extend(count(cross).map(Wake::Cross));
            all.extend(count(classes).map(Wake::Class));
            all.extend(count(classes).map(Wake::Session));
            for i in [0, 1, 7] {
                all.extend([
                    Wake::Sender(i),
                    Wake::Receiver(i),
                    Wake::Start(i),
                    Wake::Stop(i),
                    Wake::Resume(i),
                    Wake::Change(i),
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
