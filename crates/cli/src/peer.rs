//! A second host as the far side of a run: names, keys, errors, and the ground that uses it.

use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fullpipe_net::content::copy::{self, Proof};
use fullpipe_net::content::{Carried, Content, Question};
use fullpipe_net::endpoint::Hooks;
use fullpipe_net::io::{Mode, has_segmentation, pin};
use fullpipe_net::live::Live;
use fullpipe_net::session::client::{Client, Done, Peer, SessionError};
use fullpipe_net::session::control::EndReason;
use fullpipe_net::session::key::VARIABLE;
use fullpipe_net::session::request::{Options, Request};
use fullpipe_net::session::{Key, PORT};
use fullpipe_net::{ground, headers};
use fullpipe_results::ground::{Ground, GroundError};
use fullpipe_run::{FlowOutcome, Outcome, RunSpec, Trace};
use fullpipe_trace::{Summary, TraceError};
use fullpipe_units::{Span, Time};

use crate::commands::send::args::{Mode as FlagMode, PeerFlags};
use crate::commands::send::target::Server;
use crate::exit::{Exit, Failure};
use crate::{output, trace};

/// How to talk to a server.
#[derive(Clone, Debug)]
pub struct Way {
    /// As the user named it.
    pub name: String,
    /// In the order in which they are tried.
    addresses: Vec<SocketAddr>,
    key: Key,
    encrypted: bool,
    options: ground::Options,
}

impl Way {
    /// Finds the server and reads the key.
    ///
    /// # Errors
    /// The name means nothing, the key cannot be used, the processor is not there.
    pub fn new(server: &Server, flags: &PeerFlags) -> Result<Self, Failure> {
        let port = server.port.unwrap_or(PORT);
        let found = (server.host.as_str(), port).to_socket_addrs();
        let addresses: Vec<SocketAddr> = found.map_err(|e| unknown(server, &e))?.collect();
        if addresses.is_empty() {
            let message = format!("`{}` has no address", server.host);
            return Err(Failure::new(Exit::Environment, message));
        }
        if let Some(cpu) = flags.pin {
            // On a thread that ends: it is only tried out.
            let tried = std::thread::spawn(move || pin(cpu)).join();
            let tried = tried.unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
            tried.map_err(|e| {
                Failure::io(format!("cannot keep the thread on processor {cpu}"), &e)
                    .hint("`--pin` takes the number of a processor, counted from 0")
            })?;
        }
        if flags.mode == FlagMode::Bulk && matches!(has_segmentation(), Ok(false)) {
            output::warning(
                "this system has no segmentation offload for UDP: datagrams leave one by one",
            );
        }
        Ok(Self {
            name: match server.port {
                Some(_) => server.to_string(),
                None => Server {
                    port: Some(PORT),
                    ..server.clone()
                }
                .to_string(),
            },
            addresses,
            key: key(flags.key.as_deref())?,
            encrypted: flags.encrypt,
            options: crate::ground::options(flags),
        })
    }

    /// Opens a session for `spec`; the addresses of the server are tried one after the other.
    ///
    /// # Errors
    /// [`SessionError`] of the last address.
    pub fn connect(
        &self,
        spec: RunSpec,
        label: &str,
        until_complete: bool,
        content: Content,
        interrupt: &AtomicBool,
    ) -> Result<Client, SessionError> {
        let request = Request {
            spec,
            options: Options {
                label: label.to_owned(),
                bulk: self.options.mode == Mode::Bulk,
                until_complete,
                content,
                ..self.packets()
            },
        };
        let last = self.addresses.len() - 1;
        let mut error = SessionError::Interrupted;
        for (i, address) in self.addresses.iter().enumerate() {
            let mut peer = Peer::new(*address, self.key.clone());
            if i < last {
                peer.patience = Span::from_secs(2);
            }
            let connect = || Client::connect(&peer, &request, &self.options, interrupt);
            let mut found = connect();
            if matches!(&found, Err(SessionError::Handshake { error, .. }) if error.is_busy()) {
                // With our own question of a moment ago, perhaps.
                std::thread::sleep(SOON);
                found = connect();
            }
            match found {
                Err(e @ SessionError::Handshake { .. }) if i < last => error = e,
                other => return other,
            }
        }
        Err(error)
    }

    /// What packets hold besides data. If only some of the addresses are of IPv6, there is room for
    /// its headers too.
    fn packets(&self) -> Options {
        Options {
            encrypted: self.encrypted,
            ipv6: self.addresses.iter().any(|to| headers::is_ipv6(*to)),
            ..Options::default()
        }
    }

    /// Makes room in the packets of `spec` for what encryption and IPv6 add, so that they stay as
    /// long as they were; once for each run.
    pub fn fit(&self, spec: &mut RunSpec) {
        self.packets().make_room(spec);
    }

    /// The round-trip time to the server, the shortest of a few small questions.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn round_trip(&self, interrupt: &AtomicBool) -> Result<Span, SessionError> {
        let nothing = RunSpec::default();
        let mut client = self.connect(nothing, "round trip", true, Content::Nothing, interrupt)?;
        let mut shortest = Span::MAX;
        for _ in 0..ROUNDS {
            let asked = Instant::now();
            client.ask(&Question::Prepared, interrupt)?;
            let took = Span::from_secs_f64(asked.elapsed().as_secs_f64());
            shortest = shortest.min(took);
        }
        client.close();
        Ok(shortest)
    }

    /// How datagrams leave, and how precisely it waits.
    pub fn options(&self) -> &ground::Options {
        &self.options
    }
}

/// The shared key: of a file, of the environment, or none.
fn key(file: Option<&Path>) -> Result<Key, Failure> {
    let key = match (file, std::env::var(VARIABLE)) {
        (Some(path), _) => Key::from_file(path),
        (None, Ok(text)) => Key::from_text(&text, &format!("variable {VARIABLE}")),
        (None, Err(_)) => Ok(Key::open()),
    };
    key.map_err(|e| {
        let failure = Failure::new(Exit::Environment, e.to_string());
        match e.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

fn unknown(server: &Server, error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Environment,
        format!("cannot find the host `{}`: {error}", server.host),
    )
    .hint("give its name or its address")
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let exit = match &error {
            SessionError::Interrupted => Exit::Interrupted,
            _ => Exit::Environment,
        };
        let hint = error.hint().map(str::to_owned);
        Self {
            exit,
            message: error.to_string(),
            hints: hint.into_iter().collect(),
        }
    }
}

/// Runs scenarios with a server as the far side; the path is the one to there.
pub struct PeerGround<'a> {
    way: Way,
    interrupt: &'a AtomicBool,
    /// Told how the flows are getting on.
    pub live: Option<&'a Live>,
    /// Runs end when their data are across.
    pub until_complete: bool,
    /// Data prove themselves.
    pub verify: bool,
    /// Where the flows that send from here leave a row for every ACK.
    pub trace: Option<PathBuf>,
    proofs: Mutex<Vec<Proof>>,
    notes: Mutex<Vec<String>>,
}

impl<'a> PeerGround<'a> {
    /// With the server at the end of `way`.
    pub fn new(way: Way, interrupt: &'a AtomicBool) -> Self {
        Self {
            way,
            interrupt,
            live: None,
            until_complete: false,
            verify: false,
            trace: None,
            proofs: Mutex::default(),
            notes: Mutex::default(),
        }
    }

    /// See [`Way::fit`].
    pub fn fit(&self, spec: &mut RunSpec) {
        self.way.fit(spec);
    }

    /// What is known of the data of the last run.
    pub fn proofs(&self) -> Vec<Proof> {
        self.proofs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn note(&self, note: String) {
        let mut all = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&note) {
            all.push(note);
        }
    }

    fn note_trace(
        &self,
        path: &Path,
        written: Result<Summary, TraceError>,
    ) -> Result<(), SessionError> {
        let written = written.map_err(|e| trace::cannot(path, &e))?;
        if written.missed > 0 {
            let (missed, rows) = (written.missed, written.rows);
            self.note(format!(
                "{missed} rows of the trace came too fast, {rows} are in it"
            ));
        }
        Ok(())
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
            live: self.live,
            traces,
            ..carried.hooks()
        };
        let shared = Arc::new(spec.clone());
        let done = client.run(&shared, self.way.options(), hooks, self.interrupt)?;
        if let (Some(recording), Some(path)) = (recording, &self.trace) {
            self.note_trace(path, recording.finish())?;
        }
        if !matches!(done.why, EndReason::Over | EndReason::Stopped) {
            let ended = done.near.ended.saturating_since(Time::ZERO);
            let (lasted, why) = (ended.as_secs_f64(), done.why.text());
            self.note(format!("server: the run lasted {lasted:.1} s only: {why}"));
        }
        if self.verify {
            let proofs = copy::tallies(&carried, &spec, &mut |q| {
                client.ask(q, self.interrupt).map_err(|e| e.to_string())
            });
            let proofs = proofs.map_err(|e| SessionError::Far(e.to_string()))?;
            *self.proofs.lock().unwrap_or_else(PoisonError::into_inner) = proofs;
        }
        client.close();
        let outcome = outcome(&spec, done)?;
        outcome
            .flows
            .iter()
            .filter_map(none_arrived)
            .for_each(|note| self.note(note));
        Ok(outcome)
    }
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

/// The result of both sides; a run that ended when it was done lasted only so long.
pub fn outcome(spec: &RunSpec, done: Done) -> Result<Outcome, SessionError> {
    let ended = done.near.ended;
    let mut outcome = done.merge(spec)?;
    let lasted = ended.saturating_since(Time::ZERO);
    outcome.duration = outcome.duration.min(lasted.max(spec.interval));
    Ok(outcome)
}

/// A run that ends by itself may last a day or a second: its series have rows for either.
fn fine(spec: &mut RunSpec) {
    if let Trace::Every(step) = spec.trace {
        spec.trace = Trace::Every(step.min(FINE.max(spec.duration / MOST_ROWS)));
    }
}

/// Questions of [`Way::round_trip`].
const ROUNDS: u32 = 3;
/// Until a server that was busy is asked once more.
const SOON: Duration = Duration::from_millis(300);
const FINE: Span = Span::from_millis(10);
const MOST_ROWS: u64 = 500_000;

impl Ground for PeerGround<'_> {
    fn name(&self) -> &str {
        "udp"
    }

    fn peer(&self) -> Option<&str> {
        Some(&self.way.name)
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
        self.run_one(spec).map_err(|error| {
            if self.interrupt.load(Ordering::Relaxed) {
                return GroundError::Interrupted;
            }
            match &error {
                SessionError::Interrupted => GroundError::Interrupted,
                SessionError::Refused(_) | SessionError::Request(_) => GroundError::Unable {
                    what: error.to_string(),
                    hint: "ask for less, or change the limits of `fullpipe serve`".to_owned(),
                },
                SessionError::Here(what) => GroundError::Environment {
                    what: what.clone(),
                    hint: "choose another place, or make room there".to_owned(),
                },
                _ => GroundError::Environment {
                    what: error.to_string(),
                    hint: error.hint().unwrap_or(AGAIN).to_owned(),
                },
            }
        })
    }
}

const AGAIN: &str = "look at what `fullpipe serve` says there, and try again";
