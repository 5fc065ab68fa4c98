//! Datagrams and probes of a specification, in the path itself: no host sends them, so they enter
//! their first link when they are due, to the nanosecond, and cost no processor time of a host's.

use fullpipe_host::Cross as Source;
use fullpipe_run::{CrossOutcome, RunSpec};
use fullpipe_sim::{Datagram, Departure, PacketKind, PacketOutcome, Path, Route};
use fullpipe_units::Time;

/// A token with this bit is of cross traffic, and not of the pool.
pub const BIT: u64 = 1 << 63;

/// All cross traffic of a run.
#[derive(Debug)]
pub struct Cross {
    sources: Vec<(Source, [Route; 2])>,
    /// Datagrams in the path, by their tokens.
    inside: Vec<Inside>,
    free: Vec<usize>,
    /// Probes that have arrived and are to be answered.
    answers: Vec<usize>,
    end: Time,
}

#[derive(Clone, Copy, Debug)]
struct Inside {
    source: usize,
    number: u64,
    left: Time,
    answer: bool,
}

impl Cross {
    /// That of `spec`; `None`: a way is too long.
    pub fn new(spec: &RunSpec, path: &mut Path) -> Option<Self> {
        let sources = spec.cross.iter().map(|c| {
            let mut source = Source::new(c, spec);
            source.begin();
            let ways = [path.route(&c.forward)?, path.route(&c.back)?];
            Some((source, ways))
        });
        Some(Self {
            sources: sources.collect::<Option<_>>()?,
            inside: Vec::new(),
            free: Vec::new(),
            answers: Vec::new(),
            end: Time::ZERO + spec.duration,
        })
    }

    /// When the next one is due.
    pub fn next(&self) -> Time {
        if !self.answers.is_empty() {
            return Time::ZERO;
        }
        let all = self
            .sources
            .iter()
            .map(|(source, _)| source.next_departure());
        all.min().unwrap_or(Time::MAX)
    }

    /// All that is due until `now` enters the path, each at its own time; answers at `now`.
    pub fn offer(&mut self, now: Time, path: &mut Path) {
        while let Some((at, source)) = self.due()
            && at <= now.min(self.end)
        {
            let number = self.sources[source].0.depart(at);
            let left = at;
            self.enter(
                at,
                path,
                Inside {
                    source,
                    number,
                    left,
                    answer: false,
                },
            );
        }
        for i in 0..self.answers.len() {
            let probe = self.inside[self.answers[i]];
            self.free.push(self.answers[i]);
            self.enter(
                now,
                path,
                Inside {
                    answer: true,
                    ..probe
                },
            );
        }
        self.answers.clear();
    }

    fn due(&self) -> Option<(Time, usize)> {
        let all = self.sources.iter().enumerate();
        let all = all.map(|(i, (source, _))| (source.next_departure(), i));
        all.min()
    }

    fn enter(&mut self, at: Time, path: &mut Path, what: Inside) {
        let slot = self.free.pop().unwrap_or(self.inside.len());
        match self.inside.get_mut(slot) {
            Some(free) => *free = what,
            None => self.inside.push(what),
        }
        let (source, ways) = &self.sources[what.source];
        let kind = match (source.is_answered(), what.answer) {
            (false, _) => PacketKind::Datagram,
            (true, false) => PacketKind::Request,
            (true, true) => PacketKind::Reply,
        };
        let datagram = Datagram {
            token: BIT | slot as u64,
            kind,
            flow: u32::MAX - what.source as u32,
            size: source.packet(),
            ect: false,
        };
        path.offer(at, ways[usize::from(what.answer)], &datagram);
    }

    /// One of them has left the path.
    pub fn ended(&mut self, departure: &Departure) {
        let slot = (departure.token & !BIT) as usize;
        let what = self.inside[slot];
        let (source, _) = &mut self.sources[what.source];
        match departure.outcome {
            PacketOutcome::Dropped => source.dropped += 1,
            PacketOutcome::Arrived { .. } if source.is_answered() && !what.answer => {
                self.answers.push(slot);
                return;
            }
            PacketOutcome::Arrived { .. } => {
                source.arrive(departure.at, what.number, Some(departure.at - what.left));
            }
        }
        self.free.push(slot);
    }

    /// The run is over.
    pub fn finish(self) -> Vec<CrossOutcome> {
        let end = self.end;
        let all = self.sources.into_iter();
        all.map(|(source, _)| source.finish(end)).collect()
    }
}
