//! The client: opens a session with a server, runs its side, fetches the other side's result.
//!
//! The far clock reads zero when START arrives, the near one when the answer to it does: far times are half a round trip ahead.
//! Nothing is computed over the two clocks, so that only curves drawn over one another show it.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_sim::{Outcome, RunSpec};
use fullpipe_units::{Span, Time};
use serde::{Deserialize, Serialize};

use super::asking::{Asking, Ended};
use super::attended::{Attended, Early, Talk, Traffic};
use super::control::{Grant, Why, shown};
use super::message::{Ask, ENCRYPT, TestKind};
use super::opening::{Opening, OpeningError};
use super::pull::PullError;
use super::request::{Options, Request, RequestError};
use super::seal::{End, Seal};
use super::{Key, Sealed, Secrets, entropy};
use crate::content::{Answer, Question};
use crate::endpoint::{
    self, EndpointError, Hooks, HostOutcome, PathReport, Plan, Port, Side, UdpPort, merge,
};
use crate::ground;
use crate::headers;
use crate::io::{Clock, IoConfig, Socket, Stop, pin};
use crate::wire::{Header, Kind};

/// A server to run with.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where it listens.
    pub address: SocketAddr,
    /// The key that both have; [`Key::open`] for a server that asks for none.
    pub key: Key,
    /// How long the handshake may take.
    pub patience: Span,
}

impl Peer {
    /// With ten seconds for the handshake.
    pub fn new(address: SocketAddr, key: Key) -> Self {
        Self {
            address,
            key,
            patience: Span::from_secs(10),
        }
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The handshake.
    #[error("{peer}: {error}")]
    Opening {
        /// The server.
        peer: SocketAddr,
        /// Why.
        error: OpeningError,
    },
    /// Encryption without a key.
    #[error("encryption needs a key that only both sides have")]
    NoKey,
    /// The request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The server will not run it.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// Nothing is heard of the server any more.
    #[error("the server has not been heard of for 10 seconds")]
    Vanished,
    /// The result of the far side.
    #[error(transparent)]
    Result(#[from] PullError),
    /// The far side sent what is no result, or not one of this run.
    #[error("the server's result does not fit: {0}")]
    Misfit(String),
    /// There is no route.
    #[error("this host knows no way to {peer}: {error}")]
    NoWay {
        /// The server.
        peer: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The far endpoint failed.
    #[error("at the server: {0}")]
    Far(String),
    /// The near endpoint failed.
    #[error(transparent)]
    Near(#[from] EndpointError),
    /// Something beside the run that this host was to do.
    #[error("{0}")]
    Here(String),
    /// The operating system.
    #[error("socket: {0}")]
    Io(#[from] io::Error),
    /// Stopped from outside.
    #[error("interrupted")]
    Interrupted,
}

impl SessionError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        use super::message::Reason;
        match self {
            Self::Here(_) => None,
            Self::Opening { error, .. } => match error {
                OpeningError::NoAnswer => Some(
                    "is `fullpipe serve` running there, and does the firewall let UDP through to its port?",
                ),
                OpeningError::Refused(Reason::Authentication) | OpeningError::Impostor => Some(
                    "both sides need the same key: here it comes with `--key FILE`, or in FULLPIPE_KEY; a server with `--open` takes none",
                ),
                OpeningError::Refused(Reason::Unencrypted) => Some("say `--encrypt`"),
                OpeningError::Refused(Reason::Keyless) => Some("give the server a key"),
                _ => None,
            },
            Self::NoKey => Some("`fullpipe serve --new-key FILE` makes one, for both sides"),
            Self::Vanished => Some(
                "is `fullpipe serve` still running there, and does the network carry packets both ways?",
            ),
            Self::NoWay { .. } => Some("look at the links and routes of this host"),
            Self::Near(EndpointError::Longer { .. }) => Some("or give the interface a larger MTU"),
            Self::Near(_) => Some("the fault is at this host: mend it and try again"),
            _ => None,
        }
    }
}

/// What the server leaves behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Its side of the run.
    pub outcome: HostOutcome,
    /// What went wrong.
    pub error: Option<String>,
}

impl Report {
    /// Of a run that did not come about, or broke off.
    pub fn failed(why: String) -> Self {
        Self {
            outcome: HostOutcome::default(),
            error: Some(why),
        }
    }
}

/// Both sides of a run.
#[derive(Clone, Debug)]
pub struct Done {
    /// This side.
    pub near: HostOutcome,
    /// The other.
    pub far: HostOutcome,
    /// How it ended there.
    pub why: Why,
}

impl Done {
    /// The result of `spec`, which both sides ran.
    ///
    /// # Errors
    /// [`SessionError::Misfit`].
    pub fn merge(self, spec: &RunSpec) -> Result<Outcome, SessionError> {
        merge(spec, self.near, self.far, PathReport::default())
            .map_err(|what| SessionError::Misfit(shown(&what)))
    }
}

/// A session whose request was granted.
#[derive(Debug)]
pub struct Client {
    port: UdpPort,
    clock: Clock,
    stop: Stop,
    peer: SocketAddr,
    secrets: Secrets,
    /// Of an encrypted session; it outlasts a run, because its numbers do.
    seal: Option<Seal>,
    asking: Asking,
    grant: Grant,
    early: Early,
    /// The server has been told, or need not be.
    is_over: bool,
}

/// Datagrams that may come before the run begins here.
const MOST_EARLY: usize = 256;
/// Batches that are taken in before something is said again.
const MOST_BATCHES: usize = 16;
/// Room for the longest control message.
pub(super) const CONTROL_BYTES: usize = 1300;
/// Longest wait, so that an interruption is seen.
const GLANCE: Span = Span::from_millis(50);

impl Client {
    /// Opens a session and has the request granted. `interrupt` ends every wait.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn connect(
        peer: &Peer,
        request: &Request,
        options: &ground::Options,
        interrupt: &AtomicBool,
    ) -> Result<Self, SessionError> {
        let encrypted = request.options.encrypted;
        if encrypted && peer.key.is_open() {
            return Err(SessionError::NoKey);
        }
        let bytes = request.encode()?;
        let longest = ground::longest(&request.spec) + request.options.overhead();
        let longest = longest.max(CONTROL_BYTES);
        let config = IoConfig {
            longest,
            ..Side::Near.io_config(&request.spec, options.mode)
        };
        let any: SocketAddr = match peer.address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let mut socket = Socket::bind(any, &config)?;
        let connected = socket.connect(peer.address);
        connected.map_err(|error| SessionError::NoWay {
            peer: peer.address,
            error,
        })?;
        let (clock, stop) = (Clock::new(), Stop::new()?);
        let port = UdpPort::new(socket, longest, options.patience, clock, &stop)?;
        let mut port = port.with_longer_headers(request.options.longer_headers());
        let secrets = open(&mut port, peer, &request.options, &bytes, interrupt)?;
        let until_complete = request.options.until_complete;
        let asking = Asking::new(clock.now(), &secrets, bytes, until_complete);
        let mut client = Self {
            port,
            clock,
            stop,
            peer: peer.address,
            seal: encrypted.then(|| Seal::new(&secrets, End::Client)),
            secrets,
            asking,
            grant: Grant::default(),
            early: Early::new(),
            is_over: false,
        };
        let verdict = client.converse(interrupt, |asking| asking.verdict().cloned())?;
        client.grant = verdict.map_err(SessionError::Refused)?;
        Ok(client)
    }

    /// Within which bounds the server runs it, and what it does differently.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The server.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Asks the server about what the flows carry; before the run, or after it.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn ask(
        &mut self,
        question: &Question,
        interrupt: &AtomicBool,
    ) -> Result<Answer, SessionError> {
        self.asking.ask(self.clock.now(), question);
        self.converse(interrupt, Asking::take_answer)
    }

    /// Says goodbye.
    pub fn close(mut self) {
        self.asking.close(self.clock.now());
        self.is_over = true;
        // Whether the server hears it does not matter.
        let _ = self.converse(&AtomicBool::new(false), |asking| {
            asking.is_closed().then_some(())
        });
    }

    /// Runs this side of `spec`, which is the request's, while the server runs the other.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn run(
        &mut self,
        spec: &Arc<RunSpec>,
        options: &ground::Options,
        hooks: Hooks<'_>,
        interrupt: &AtomicBool,
    ) -> Result<Done, SessionError> {
        self.asking.start(self.clock.now());
        let begun = |asking: &mut Asking| {
            (asking.progress().is_some() || asking.ended().is_some()).then_some(())
        };
        self.converse(interrupt, begun)?;
        let near = self.run_near(spec, options, hooks, interrupt)?;
        self.asking.stop(self.clock.now());
        let ended = self.converse(interrupt, |asking| asking.ended())?;
        let report = self.fetch(&ended, interrupt)?;
        if let Some(error) = report.error {
            return Err(SessionError::Far(shown(&error)));
        }
        Ok(Done {
            near,
            far: report.outcome,
            why: ended.why,
        })
    }

    /// Says start, and is never heard of again: for tests of servers.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn vanish_after_start(mut self) -> Result<(), SessionError> {
        self.asking.start(self.clock.now());
        let begun = |asking: &mut Asking| asking.progress().map(|_| ());
        self.is_over = true;
        self.converse(&AtomicBool::new(false), begun)
    }

    fn run_near(
        &mut self,
        spec: &Arc<RunSpec>,
        options: &ground::Options,
        hooks: Hooks<'_>,
        interrupt: &AtomicBool,
    ) -> Result<HostOutcome, SessionError> {
        let plan = Plan {
            spec: Arc::clone(spec),
            side: Side::Near,
            session: self.secrets.session,
            peer: self.peer,
            shared_clock: false,
        };
        if let Some(cpu) = options.pin {
            pin(cpu)?;
        }
        let complete = self.asking.complete();
        let stop = Stop::new()?;
        self.port.restart(options.patience, Clock::new(), &stop)?;
        let mut talk = Near {
            asking: &mut self.asking,
            interrupt,
            watched: hooks.complete,
        };
        let port = Attended::new(
            &mut self.port,
            &mut talk,
            self.peer,
            self.clock,
            &stop,
            self.grant.max_rate,
        )
        .with_early(std::mem::take(&mut self.early));
        let hooks = hooks.with_complete(&complete);
        let outcome = match &mut self.seal {
            Some(seal) => {
                let sealed = Sealed::new(port, seal, ground::longest(spec));
                endpoint::run(&plan, sealed, hooks, &stop)
            }
            None => endpoint::run(&plan, port, hooks, &stop),
        };
        self.port
            .restart(options.patience, self.clock, &self.stop)?;
        let now = self.clock.now();
        if outcome.is_err() || interrupt.load(Ordering::Relaxed) {
            return match outcome {
                Err(error) => Err(error.into()),
                Ok(_) => Err(SessionError::Interrupted),
            };
        }
        if self.asking.ended().is_none() && self.asking.is_silent(now) {
            return Err(SessionError::Vanished);
        }
        Ok(outcome?)
    }

    fn fetch(&mut self, ended: &Ended, interrupt: &AtomicBool) -> Result<Report, SessionError> {
        self.asking.fetch(self.clock.now(), ended)?;
        let bytes = self.converse(interrupt, Asking::result)??;
        postcard::from_bytes(&bytes).map_err(|e| SessionError::Misfit(e.to_string()))
    }

    /// Talks until `done` has an answer.
    fn converse<T>(
        &mut self,
        interrupt: &AtomicBool,
        mut done: impl FnMut(&mut Asking) -> Option<T>,
    ) -> Result<T, SessionError> {
        loop {
            if let Some(done) = done(&mut self.asking) {
                return Ok(done);
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(SessionError::Interrupted);
            }
            let now = self.clock.now();
            if self.asking.is_silent(now) {
                return Err(SessionError::Vanished);
            }
            let (peer, clock) = (self.peer, self.clock);
            exchange(
                &mut self.port,
                peer,
                clock,
                &mut self.asking,
                &mut self.early,
            )?;
        }
    }
}

/// A server need not wait for a client that has given up.
impl Drop for Client {
    fn drop(&mut self) {
        if !self.is_over {
            let now = self.clock.now();
            self.asking.close(now);
            if let Some(goodbye) = self.asking.say(now) {
                let _ = send(&mut self.port, self.peer, &goodbye);
                let _ = self.port.flush();
            }
        }
    }
}

/// Says what is due, waits a moment, and hears what has come. What belongs to a run is kept for it.
pub(super) fn exchange(
    port: &mut UdpPort,
    peer: SocketAddr,
    clock: Clock,
    talk: &mut impl Talk,
    early: &mut Early,
) -> io::Result<()> {
    let now = clock.now();
    while let Some(datagram) = talk.say(now) {
        send(port, peer, &datagram)?;
    }
    port.flush()?;
    port.wait(talk.due().min(now + GLANCE), false)?;
    // Whoever sends without a pause must not keep the caller from looking at its clock.
    for _ in 0..MOST_BATCHES {
        if port.receive()? == 0 {
            break;
        }
        let now = clock.now();
        port.each(|from, mark, datagram| {
            let ours = from == peer;
            if ours && is_control(datagram) {
                talk.hear(now, datagram);
            } else if ours && early.len() < MOST_EARLY {
                early.push((from, mark, datagram.to_vec()));
            }
        });
    }
    Ok(())
}

/// Of the handshake, or a control message.
fn is_control(datagram: &[u8]) -> bool {
    Header::decode(datagram).is_ok_and(|header| (header.kind as u8) < Kind::Data as u8)
}

fn send(port: &mut UdpPort, peer: SocketAddr, datagram: &[u8]) -> io::Result<()> {
    if port.is_full() {
        // What is refused is said again.
        port.flush()?;
    }
    port.push(peer, None, datagram.len(), |out| {
        out[..datagram.len()].copy_from_slice(datagram);
    });
    Ok(())
}

fn open(
    port: &mut UdpPort,
    peer: &Peer,
    options: &Options,
    request: &[u8],
    interrupt: &AtomicBool,
) -> Result<Secrets, SessionError> {
    let ask = Ask {
        kind: TestKind::Udp as u8,
        options: if options.encrypted { ENCRYPT } else { 0 },
        // `Request::encode` has bounded it.
        length: request.len() as u32,
        digest: *blake3::hash(request).as_bytes(),
    };
    // Once, so that a missing generator is an error and not a guess.
    entropy(&mut [0; 16]).map_err(|e| io::Error::other(e.to_string()))?;
    let nonce = || {
        let mut nonce = [0; 16];
        let _ = entropy(&mut nonce);
        nonce
    };
    let mut opening = Opening::new(
        port.now(),
        peer.patience,
        peer.key.clone(),
        ask,
        Box::new(nonce),
    );
    let failed = |error| SessionError::Opening {
        peer: peer.address,
        error,
    };
    loop {
        if interrupt.load(Ordering::Relaxed) {
            return Err(SessionError::Interrupted);
        }
        let now = port.now();
        if let Some(datagram) = opening.poll(now).map_err(failed)? {
            send(port, peer.address, &datagram)?;
            port.flush()?;
        }
        port.wait(opening.next_timeout().min(now + GLANCE), false)?;
        if port.receive()? == 0 {
            continue;
        }
        let (now, mut opened) = (port.now(), Ok(None));
        port.each(|from, _, datagram| {
            if from == peer.address && matches!(opened, Ok(None)) {
                opened = opening.handle(now, datagram);
            }
        });
        if let Some((secrets, _)) = opened.map_err(failed)? {
            return Ok(secrets);
        }
    }
}

/// The client while its endpoint runs.
struct Near<'a> {
    asking: &'a mut Asking,
    interrupt: &'a AtomicBool,
    /// Somebody else who wants to know that this side is complete.
    watched: Option<&'a AtomicBool>,
}

impl Talk for Near<'_> {
    fn hear(&mut self, now: Time, datagram: &[u8]) {
        self.asking.hear(now, datagram);
    }

    fn say(&mut self, now: Time) -> Option<Vec<u8>> {
        self.asking.say(now)
    }

    fn due(&self) -> Time {
        self.asking.due()
    }

    fn is_over(&mut self, now: Time, traffic: &Traffic) -> bool {
        if let Some(watched) = self.watched
            && self.asking.complete().load(Ordering::Acquire)
        {
            watched.store(true, Ordering::Release);
        }
        self.interrupt.load(Ordering::Relaxed) || self.asking.is_over(now, traffic)
    }
}

/// Runs `spec` with the far side at `peer`, and what the server granted. Links are left out: the path is what it is. Packets that
/// are encrypted, or of IPv6, are no longer than others: their segments are shorter.
///
/// # Errors
/// [`SessionError`].
pub fn run_with_peer(
    spec: &RunSpec,
    peer: &Peer,
    request: Options,
    options: &ground::Options,
    hooks: Hooks<'_>,
    interrupt: &AtomicBool,
) -> Result<(Outcome, Grant), SessionError> {
    let mut spec = spec.clone();
    spec.links.clear();
    let request = Options {
        ipv6: headers::is_ipv6(peer.address),
        ..request
    };
    request.make_room(&mut spec);
    let request = Request {
        spec,
        options: request,
    };
    let mut client = Client::connect(peer, &request, options, interrupt)?;
    let grant = client.grant().clone();
    let spec = Arc::new(request.spec);
    let done = client.run(&spec, options, hooks, interrupt)?;
    client.close();
    Ok((done.merge(&spec)?, grant))
}
