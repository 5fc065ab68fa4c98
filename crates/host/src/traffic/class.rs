//! A class of short flows: when the next one comes, what it is, and what is remembered of all of
//! them.
//!
//! Arrival times and sizes have a generator each, and every flow its own: a variant that changes
//! one of them, or the transport, leaves the others as they are (common random numbers). What
//! follows the first transfer of a session is drawn from a generator of that session, so that one
//! that takes longer, or goes on, moves no other.

use std::collections::BTreeMap;

use fullpipe_cc::Stack;
use fullpipe_flow::Sender;
use fullpipe_run::{
    ArrivalOutcome, ArrivalSpec, Arrivals, ComponentRng, FlowSpec, FlowTotals, Histogram, RunSpec,
    Session, SizeLaw, Transfer,
    traffic::{PerInterval, draw_size},
};
use fullpipe_units::{Span, Time};

/// Where the flows of a class come from.
#[derive(Debug)]
pub struct Class {
    name: String,
    /// The next flow, but for its name and size.
    template: FlowSpec,
    gaps: Gaps,
    law: SizeLaw,
    sizes: ComponentRng,
    session: Session,
    /// What the generators of sessions are derived from, with the number of each.
    seed: (u64, String),
    /// Sessions so far.
    sessions: u64,
    most_sessions: u64,
    /// Those between two transfers, by the time of the next one and by their number.
    thinking: BTreeMap<(Time, u64), Box<OpenSession>>,
    /// Flows so far.
    flows: u64,
    most_flows: u64,
    /// One more has been announced by [`Class::next_arrival`].
    expected: bool,
    last: Time,
    until: Time,
}

/// A session that may go on.
#[derive(Debug)]
pub struct OpenSession {
    number: u64,
    rng: ComponentRng,
}

/// The arrival process.
#[derive(Debug)]
enum Gaps {
    Poisson {
        mean_ns: f64,
        rng: ComponentRng,
    },
    Every(Span),
    /// The latest first.
    At(Vec<Time>),
}

impl Class {
    /// A class of the run.
    pub fn new(a: &ArrivalSpec, spec: &RunSpec) -> Self {
        let f = &a.template;
        let rng = |what: &str| ComponentRng::new(spec.seed, &format!("{} {what}", a.seed_name()));
        let after_stop = |t: Time| t + Span::from_nanos(1);
        let end = Time::ZERO + spec.duration;
        Self {
            name: f.name.clone(),
            template: FlowSpec {
                stop: None,
                ..f.clone()
            },
            gaps: Gaps::new(a, rng("arrivals")),
            law: a.sizes.clone(),
            sizes: rng("sizes"),
            session: a.session,
            seed: (spec.seed, format!("{} session", a.seed_name())),
            sessions: 0,
            most_sessions: a.most_sessions(spec.duration),
            thinking: BTreeMap::new(),
            flows: 0,
            most_flows: a.most_transfers(spec.duration),
            expected: false,
            last: f.start,
            // What would arrive at the end of the run has no time to send anything.
            until: f.stop.map_or(Time::MAX, after_stop).min(end),
        }
    }

    /// When the next flow arrives; `None`: none does.
    pub fn next_arrival(&mut self) -> Option<Time> {
        if self.sessions >= self.most_sessions || self.is_used_up() {
            return None;
        }
        self.last = self.gaps.next(self.last)?;
        self.expected = self.last < self.until;
        self.expected.then_some(self.last)
    }

    /// The flow that arrives, and its session if that may go on.
    pub fn next_flow(&mut self) -> (&FlowSpec, Option<Box<OpenSession>>) {
        let size = draw_size(&self.law, &mut self.sizes);
        let session = self.session.goes_on().then(|| {
            let (seed, name) = &self.seed;
            let number = self.sessions;
            let rng = ComponentRng::new(*seed, &format!("{name} {number}"));
            Box::new(OpenSession { number, rng })
        });
        self.sessions += 1;
        self.expected = false;
        (self.flow(size), session)
    }

    /// A transfer of a session is complete. When the next one begins; `None`: the session is over,
    /// or the time for new flows is.
    pub fn go_on(&mut self, now: Time, mut session: Box<OpenSession>) -> Option<Time> {
        let rng = &mut session.rng;
        if rng.uniform() * self.session.exchanges >= self.session.exchanges - 1.0 {
            return None;
        }
        let mean = self.session.think.as_nanos() as f64;
        let think = libm::round(mean * rng.exponential());
        let at = now + Span::from_nanos(think as u64);
        if at >= self.until || self.is_used_up() {
            return None;
        }
        self.thinking.insert((at, session.number), session);
        Some(at)
    }

    /// The flow with which a session goes on: the one whose time comes first, of the times that
    /// [`Class::go_on`] has told.
    pub fn next_of_session(&mut self) -> Option<(&FlowSpec, Option<Box<OpenSession>>)> {
        let (_, mut session) = self.thinking.pop_first()?;
        let size = draw_size(&self.law, &mut session.rng);
        Some((self.flow(size), Some(session)))
    }

    /// There are, or are to come, as many flows as there may be.
    fn is_used_up(&self) -> bool {
        let to_come = self.thinking.len() as u64 + u64::from(self.expected);
        self.flows + to_come >= self.most_flows
    }

    fn flow(&mut self, size: u64) -> &FlowSpec {
        self.template.name = format!("{}#{}", self.name, self.flows);
        self.template.sender.transfer = Some(size);
        self.flows += 1;
        &self.template
    }
}

impl Gaps {
    fn new(a: &ArrivalSpec, mut rng: ComponentRng) -> Self {
        match a.arrivals {
            Arrivals::Poisson { per_second } if per_second > 0.0 => Self::Poisson {
                mean_ns: 1e9 / per_second,
                rng,
            },
            Arrivals::Poisson { .. } => Self::At(Vec::new()),
            Arrivals::Every(gap) => Self::Every(gap.max(Span::from_nanos(1))),
            Arrivals::Spread { count, within } => {
                let start = a.template.start;
                let mut at: Vec<Time> = (0..count)
                    .map(|_| start + within.mul_f64(rng.uniform()))
                    .collect();
                at.sort_unstable_by(|a, b| b.cmp(a));
                Self::At(at)
            }
        }
    }

    fn next(&mut self, last: Time) -> Option<Time> {
        match self {
            Self::Poisson { mean_ns, rng } => {
                let gap = libm::round(*mean_ns * rng.exponential());
                Some(last + Span::from_nanos(gap as u64))
            }
            Self::Every(gap) => Some(last + *gap),
            Self::At(times) => times.pop(),
        }
    }
}

/// What makes a flow a short one.
#[derive(Debug)]
pub struct Short {
    /// Index of its class.
    pub class: u32,
    /// Index into [`ClassRecord::transfers`].
    pub number: usize,
    /// Its session, until the transfer is complete.
    pub session: Option<Box<OpenSession>>,
    rtt_samples: u64,
}

impl Short {
    /// Row `number` of `class`, a transfer of `session` if that may go on.
    pub fn new(class: u32, number: usize, session: Option<Box<OpenSession>>) -> Self {
        Self {
            class,
            number,
            session,
            rtt_samples: 0,
        }
    }

    /// The sender has processed an ACK or a timeout.
    #[cold]
    pub fn on_sender(&mut self, now: Time, sender: &mut Sender<Stack>, record: &mut ClassRecord) {
        let samples = sender.rtt().samples();
        if samples != self.rtt_samples {
            self.rtt_samples = samples;
            if now >= record.measure_from {
                record.rtt.record(sender.rtt().latest());
            }
        }
        if sender.has_log() {
            sender.drain_log().for_each(drop);
        }
    }
}

/// What is remembered of the flows of a class.
#[derive(Debug)]
pub struct ClassRecord {
    name: String,
    mss: u32,
    packet: u32,
    measure_from: Time,
    /// In the order in which they began.
    pub transfers: Vec<Transfer>,
    rtt: Histogram,
    totals: FlowTotals,
    delivered: PerInterval,
}

impl ClassRecord {
    /// An empty record for a class of `spec`.
    pub fn new(a: &ArrivalSpec, spec: &RunSpec) -> Self {
        let f = &a.template;
        Self {
            name: f.name.clone(),
            mss: f.sender.mss,
            packet: f.sender.packet(),
            measure_from: spec.measure_from,
            transfers: Vec::new(),
            rtt: Histogram::default(),
            totals: FlowTotals::default(),
            delivered: PerInterval::new(spec.interval),
        }
    }

    /// Name of a flow.
    pub fn flow_name(&self, number: usize) -> String {
        format!("{}#{number}", self.name)
    }

    /// A flow of `size` segments arrives; returns its row.
    pub fn begin(&mut self, now: Time, size: u64) -> usize {
        self.transfers.push(Transfer {
            start: now,
            size,
            completion: None,
            lost: 0,
            retransmits: 0,
            timeouts: 0,
        });
        self.transfers.len() - 1
    }

    /// So many segments arrive for the first time.
    pub fn deliver(&mut self, now: Time, segments: u64) {
        self.delivered.add(now, segments);
    }

    /// The last segment is acknowledged.
    pub fn complete(&mut self, now: Time, number: usize) {
        let row = &mut self.transfers[number];
        row.completion = Some(now - row.start);
    }

    /// The first transmission of a segment was lost.
    pub fn lost(&mut self, number: usize, segment: u64) {
        if segment < 64 {
            self.transfers[number].lost |= 1 << segment;
        }
    }

    /// A flow leaves, or the run ends, with these counters.
    pub fn leave(&mut self, now: Time, number: usize, flow: &FlowTotals) {
        let row = &mut self.transfers[number];
        row.retransmits = flow.retransmits as u32;
        row.timeouts = flow.timeouts as u32;
        self.add(now, flow);
    }

    /// Adds the counters of a flow, or of one end of it.
    pub fn add(&mut self, now: Time, flow: &FlowTotals) {
        let measured = now >= self.measure_from;
        let flow = if measured { *flow } else { flow.unmeasured() };
        self.totals = self.totals.plus(flow);
    }

    /// The result.
    pub fn finish(self, end: Time) -> ArrivalOutcome {
        ArrivalOutcome {
            name: self.name,
            mss: self.mss,
            packet: self.packet,
            transfers: self.transfers,
            rtt: self.rtt,
            totals: self.totals,
            delivered_per_interval: self.delivered.finish(end),
        }
    }
}
