//! Another host as the far side of a run.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fullpipe_kernel::{RunningKernel, RunningTcp};
use fullpipe_net::content::copy::{self, Proof};
use fullpipe_net::content::{Carried, Content};
use fullpipe_net::endpoint::Hooks;
use fullpipe_net::session::check;
use fullpipe_net::session::client::{Done, SessionError};
use fullpipe_net::session::control::EndReason;
use fullpipe_realtime::live::{Live, LiveRun};
use fullpipe_run::{FlowOutcome, Ground, GroundError, Network, Outcome, RunSpec, Trace};
use fullpipe_trace::{Summary, TraceError};
use fullpipe_units::{Span, Time};

use crate::udp::{self, FINGERPRINT};
use crate::way::{Way, WayError};
use crate::{Entry, Setting, Settings, trace};

/// Runs scenarios with a server as the far side; the path is the one to there.
pub struct Peer<'a> {
    way: Way,
    /// Flows are connections of the running kernels' TCP.
    kernel: Option<RunningTcp>,
    interrupt: &'a AtomicBool,
    /// Counters of the running flows, for whoever watches.
    pub live: Option<Arc<Live>>,
    /// Flows that send from here take orders through `live`.
    pub takes_orders: bool,
    /// A run ends when the transfers of its lasting flows are complete.
    pub until_complete: bool,
    /// Shortest round trip that is known: by so much the server's clock is ahead, which begins with
    /// the word that its answer is awaited for.
    pub round_trip: Span,
    /// Data follow a pattern that both sides check.
    pub verify: bool,
    /// File for a row of every ACK of the flows that send from here.
    pub trace: Option<PathBuf>,
    proofs: Mutex<Vec<Proof>>,
    notes: Mutex<Vec<String>>,
    untraced: Mutex<Option<SessionError>>,
    last: Mutex<Option<Last>>,
}

/// What is known of the last run.
#[derive(Debug)]
struct Last {
    network: Network,
    streams: Vec<Stream>,
    ended: EndReason,
}

/// What became of one stream of a flow.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its stacks, in order ([`FlowOutcome::stack`]).
    pub stack: String,
    /// Segments that arrived for the first time, in the measured part.
    pub delivered: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Mean window, segments.
    pub cwnd_mean: f64,
    /// Largest window, segments.
    pub cwnd_max: f64,
}

impl<'a> Peer<'a> {
    /// The ground whose far side is the server at the end of `way`.
    pub fn new(way: Way, interrupt: &'a AtomicBool) -> Self {
        Self {
            way,
            kernel: None,
            interrupt,
            live: None,
            takes_orders: false,
            until_complete: false,
            round_trip: Span::ZERO,
            verify: false,
            trace: None,
            proofs: Mutex::default(),
            notes: Mutex::default(),
            untraced: Mutex::default(),
            last: Mutex::default(),
        }
    }

    /// The same with flows over TCP of the running kernels.
    ///
    /// # Errors
    /// Every packet was to be encrypted.
    pub fn over_tcp(way: Way, interrupt: &'a AtomicBool) -> Result<Self, WayError> {
        let kernel = Some(RunningTcp::new(FINGERPRINT));
        let way = way.with_kernel_tcp()?;
        Ok(Self {
            kernel,
            ..Self::new(way, interrupt)
        })
    }

    /// Makes room in packets for encryption and IPv6, as each run does ([`Way::fit`]).
    pub fn fit(&self, spec: &mut RunSpec) {
        self.way.fit(spec);
    }

    /// What is known of the data of the last run; nothing if it was cut short.
    pub fn proofs(&self) -> Vec<Proof> {
        self.proofs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The streams of the last run, in the order of its specification.
    pub fn streams(&self) -> Vec<Stream> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().flat_map(|last| last.streams.clone()).collect()
    }

    /// Why the server ended the last run.
    pub fn ended(&self) -> Option<EndReason> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map(|last| last.ended)
    }

    fn note(&self, note: String) {
        let mut all = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&note) {
            all.push(note);
        }
    }

    /// Why the trace of a run could not be written, which is no reason to forget the run; taken.
    pub fn untraced(&self) -> Option<SessionError> {
        let mut untraced = self.untraced.lock().unwrap_or_else(PoisonError::into_inner);
        untraced.take()
    }

    fn note_trace(&self, path: &Path, written: Result<Summary, TraceError>) {
        match written {
            Ok(Summary { missed: 0, .. }) => {}
            Ok(Summary { missed, rows, .. }) => self.note(format!(
                "{missed} rows of the trace came too fast, {rows} are in it"
            )),
            Err(error) => {
                let mut untraced = self.untraced.lock().unwrap_or_else(PoisonError::into_inner);
                untraced.get_or_insert(trace::cannot(path, &error));
            }
        }
    }

    /// Makes one run.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn run_one(&self, spec: &RunSpec) -> Result<Outcome, SessionError> {
        let mut spec = spec.clone();
        spec.links.clear();
        self.way.fit(&mut spec);
        if self.until_complete {
            fine(&mut spec);
        }
        if self.takes_orders {
            for flow in spec.flows.iter_mut().filter(|f| !f.reverse) {
                flow.sender.changeable = true;
            }
        }
        let content = match self.verify {
            true => Content::Pattern { key: spec.seed },
            false => Content::Nothing,
        };
        let label = spec
            .flows
            .first()
            .map_or("send", |f| f.name.as_str())
            .to_owned();
        let mut client = self.way.connect(
            spec.clone(),
            &label,
            self.until_complete,
            content,
            self.interrupt,
        )?;
        for note in &client.grant().notes {
            self.note(format!("server: {note}"));
        }
        let mut carried = match self.verify {
            true => copy::patterns(spec.seed, &spec),
            false => Carried::default(),
        };
        let recording = self.trace.as_deref().map(|path| trace::begin(path, &spec));
        let recording = recording.transpose()?;
        let traces = recording
            .as_ref()
            .map_or_else(Vec::new, |r| trace::taps(r, &spec));
        let hooks = Hooks {
            live: self.live.as_deref(),
            traces,
            ..carried.hooks()
        };
        if let Some(live) = &self.live {
            live.begin(LiveRun::new(&spec));
        }
        let shared = Arc::new(spec.clone());
        let done = client.run(&shared, self.way.options(), hooks, self.interrupt)?;
        for note in &done.notes {
            self.note(note.clone());
        }
        if let (Some(recording), Some(path)) = (recording, &self.trace) {
            self.note_trace(path, recording.finish(stacks(&spec, &done)));
        }
        for (narrowed, word) in [
            (client.narrowed(), "left"),
            (client.narrowed_there(), "came from the server"),
        ] {
            if let Some(bytes) = narrowed {
                self.note(format!(
                    "the path took no longer packets any more: segments {word} in pieces of {bytes} \
                     bytes of UDP payload"
                ));
            }
        }
        let bleached = done.near.bleached.iter().map(|flow| *flow as usize);
        let bleached: Vec<_> = bleached.filter_map(|i| spec.flows.get(i)).collect();
        if let Some(first) = bleached.first() {
            let more = match bleached.len() {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            self.note(format!(
                "{}{more}: ECN is on, and nothing arrived ECN-capable: something on the way clears \
                 the field, and no queue behind it can mark",
                first.name
            ));
        }
        if done.cut.is_none() && !matches!(done.why, EndReason::Over | EndReason::Stopped) {
            let ended = done.near.ended.saturating_since(Time::ZERO);
            let (lasted, why) = (ended.as_secs_f64(), done.why.text());
            self.note(format!("server: the run lasted {lasted:.1} s only: {why}"));
        }
        // What is on its way cannot be told from what is lost.
        if self.verify && done.cut.is_none() {
            let proofs = copy::tallies(&carried, &spec, &mut |q| {
                client.ask(q, self.interrupt).map_err(|e| e.to_string())
            });
            let proofs = proofs.map_err(|e| SessionError::Far(e.to_string()))?;
            *self.proofs.lock().unwrap_or_else(PoisonError::into_inner) = proofs;
        }
        let grant = client.grant();
        let network = Network {
            near: client.near(),
            far: client.peer(),
            max_rate: grant.max_rate,
            max_bytes: grant.max_bytes,
        };
        if done.far.is_some() {
            client.close();
        }
        let (ended, is_cut) = (done.why, done.cut.is_some());
        let mut outcome = done.merge(&spec)?;
        for cross in outcome.cross.iter_mut().filter(|cross| !cross.answered) {
            cross.last_arrival = by_our_clock(cross.last_arrival, self.round_trip);
        }
        if self.kernel.is_none() && network.max_rate.is_some() {
            // What refuses packets at both ends is the server's rate, and no queue of theirs.
            for flow in &mut outcome.flows {
                flow.totals.limited = flow.totals.limited.under_a_ceiling();
            }
        }
        // A limit of the server is no end of the run's own, and the time may not be over.
        if !is_cut && !matches!(ended, EndReason::Over | EndReason::Stopped) {
            outcome.partial = Some(ended.text().to_owned());
        }
        if self.until_complete && outcome.partial.is_none() {
            outcome.partial = unfinished(&spec, &outcome);
        }
        outcome
            .flows
            .iter()
            .filter_map(none_arrived)
            .for_each(|note| self.note(note));
        let streams = outcome.flows.iter().map(|f| Stream {
            stack: f.stack.clone(),
            delivered: f.totals.delivered_measured,
            retransmits: f.totals.retransmits,
            cwnd_mean: f.cwnd_mean,
            cwnd_max: f.cwnd_max,
        });
        let last = Some(Last {
            network,
            streams: streams.collect(),
            ended,
        });
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
        Ok(outcome)
    }
}

/// Whether servers run such a thing at all.
///
/// # Errors
/// [`GroundError::Unable`].
pub fn within_bounds(spec: &RunSpec) -> Result<(), GroundError> {
    check::run(spec).map_err(|what| GroundError::Unable {
        key: None,
        what,
        hint: "no server goes beyond that: choose a value within it".to_owned(),
    })
}

/// The stacks of the flows that send from here, by index.
fn stacks(spec: &RunSpec, done: &Done) -> Vec<(u32, String)> {
    let senders = done.near.senders.iter();
    senders
        .filter_map(|s| {
            let flow = spec.flows.get(s.flow as usize)?;
            Some((s.flow, flow.stacks(&s.record.stacks)))
        })
        .collect()
}

/// A moment of the server's clock, which is ahead by a round trip.
fn by_our_clock(at: Time, round_trip: Span) -> Time {
    Time::ZERO + at.saturating_since(Time::ZERO + round_trip)
}

/// The time of a transfer was over before all of it had arrived.
fn unfinished(spec: &RunSpec, outcome: &Outcome) -> Option<String> {
    let finite = spec.flows.iter().map(|f| f.sender.transfer.is_some());
    let open = finite.zip(&outcome.flows);
    let open = open.filter(|(finite, flow)| *finite && flow.completed.is_none());
    (open.count() > 0).then(|| "the time was over before all data had arrived".to_owned())
}

/// Nothing of a flow arrived, while control messages, which are shorter, did: a link on the way may
/// take shorter packets only, and nobody says so where it is not the first one.
fn none_arrived(flow: &FlowOutcome) -> Option<String> {
    let t = &flow.totals;
    (t.delivered == 0 && t.retransmits > 0).then(|| {
        format!(
            "{}: none of {} packets of {} bytes arrived: does the path take them? `--set path.mtu=1280` makes them shorter",
            flow.name, t.sent, flow.packet
        )
    })
}

/// A run that ends by itself may last a day or a second: its series have rows for either.
fn fine(spec: &mut RunSpec) {
    if let Trace::Every(step) = spec.trace {
        spec.trace = Trace::Every(step.min(FINE.max(spec.duration / MOST_ROWS)));
    }
}

impl Ground for Peer<'_> {
    fn name(&self) -> &str {
        match self.kernel {
            Some(_) => KERNEL.name,
            None => ENTRY.name,
        }
    }

    fn fingerprint(&self) -> &str {
        match &self.kernel {
            Some(kernel) => kernel.fingerprint(),
            None => FINGERPRINT,
        }
    }

    fn kernel(&self) -> Option<String> {
        let kernel = self.kernel.as_ref()?;
        Some(format!("Linux {}, running", kernel.release()))
    }

    fn check(&self, spec: &RunSpec) -> Result<(), GroundError> {
        match &self.kernel {
            Some(kernel) => kernel.check(spec)?,
            None => crate::no_kernel(spec)?,
        }
        within_bounds(spec)
    }

    fn peer(&self) -> Option<&str> {
        Some(&self.way.name)
    }

    fn network(&self) -> Option<Network> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map(|last| last.network)
    }

    fn notes(&self) -> Vec<String> {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Two runs at a time would share the path.
    fn at_once(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(1)
    }

    fn in_real_time(&self) -> bool {
        true
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        self.check(spec)?;
        self.run_one(spec).map_err(|error| {
            match self.interrupt.load(Ordering::Relaxed) {
                // Whatever it broke first: nothing was measured.
                true => GroundError::Interrupted,
                false => error.into(),
            }
        })
    }
}

/// Longest step of the series of a run that ends by itself, and most rows.
const FINE: Span = Span::from_millis(10);
const MOST_ROWS: u64 = 500_000;

/// The way that `--peer` names.
fn named(settings: &Settings) -> Result<Way, GroundError> {
    settings
        .way
        .clone()
        .ok_or_else(|| GroundError::Environment {
            what: "no other host is named".to_owned(),
            hint: "name it with `--peer HOST`".to_owned(),
        })
}

/// `kernel` with another host.
pub(crate) const KERNEL: Entry = Entry::with_peer(
    RunningKernel::NAME,
    "TCP of the running kernel here and at another host, the network between them",
    |settings| {
        let live = settings.live.clone();
        let peer = Peer::over_tcp(named(&settings)?, settings.interrupt);
        let mut peer = peer.map_err(|e| GroundError::Unable {
            key: None,
            what: e.to_string(),
            hint: e.hint().unwrap_or_default().to_owned(),
        })?;
        peer.live = live;
        Ok(Box::new(peer))
    },
);

/// `udp` with another host.
pub(crate) const ENTRY: Entry = Entry::with_peer(
    udp::ENTRY.name,
    "Real UDP sockets here and at another host, the network between them",
    |settings| {
        let live = settings.live.clone();
        let mut peer = Peer::new(named(&settings)?, settings.interrupt);
        peer.live = live;
        Ok(Box::new(peer))
    },
)
.taking(&[Setting::Datagrams]);
