//! The client: opens a session with a server, runs its side, fetches the other side's result.
//!
//! The far clock reads zero when START arrives, the near one when the answer to it does: far times
//! are half a round trip ahead. Nothing is computed over the two clocks, so that only curves drawn
//! over one another show it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_host::{HostOutcome, ends_at};
use fullpipe_realtime::live::Live;
use fullpipe_run::{Outcome, RunSpec};
use fullpipe_units::{Span, Time};

use super::client_session::{ClientSession, Ended};
use super::control::{ALIVE, EndReason, Grant};
use super::control_port::{ControlChannel, ControlPort, Early, Traffic};
use super::exchange::{CONTROL_BYTES, exchange, open, send};
use super::path::PathStep;
use super::request::{Options, Request};
use super::seal::{End, OVERHEAD, Seal};
use super::server_session::FETCH_TIMEOUT;
use super::{Key, Sealed, Secrets, ServerId};
use crate::content::{Answer, Question};
use crate::endpoint::{self, Hooks, Pieces, Plan, Port, Side, UdpPort};
use crate::ground;
use crate::headers;
use crate::io::{Clock, IoConfig, Socket, Stop, pin};
use crate::shown::shown;
use crate::tcp;

pub use super::failure::SessionError;
pub use super::report::{Cut, Done, Report};

/// A server to run with.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Address and UDP port of the server.
    pub address: SocketAddr,
    /// The key that both have; [`Key::open`] for a server that asks for none.
    pub key: Key,
    /// The server that is meant; `None`: whoever has the key, or answers.
    pub server: Option<ServerId>,
    /// Timeout of the handshake.
    pub patience: Span,
}

impl Peer {
    /// The one that the key names, if it names one, with ten seconds for the handshake.
    pub fn new(address: SocketAddr, key: Key) -> Self {
        Self {
            address,
            server: key.server(),
            key,
            patience: Span::from_secs(10),
        }
    }
}

/// How long a server may take to answer what it can answer at once.
pub const ANSWER: Span = Span::from_secs(15);

/// How long a client that was interrupted waits for the server's half of the result.
const PARTING: Span = Span::from_secs(3);

/// How long a request may take, which has up to 256 KiB and may cross a slow link.
pub const REQUEST: Span = Span::from_secs(60);

/// A session whose request was granted.
#[derive(Debug)]
pub struct Client {
    port: UdpPort,
    clock: Clock,
    stop: Stop,
    peer: SocketAddr,
    server: ServerId,
    secrets: Secrets,
    /// Of an encrypted session; it outlasts a run, because its numbers do.
    seal: Option<Seal>,
    session: ClientSession,
    /// Flows are connections of the kernels' TCP.
    kernel_tcp: bool,
    grant: Grant,
    early: Early,
    /// The server has been told, or need not be.
    is_over: bool,
}

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
        let bytes = request.encode()?;
        let longest = headers::longest(&request.spec) + request.options.overhead();
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
        let port = UdpPort::new(socket, longest, options.wait, clock, &stop)?;
        let mut port = port.with_longer_headers(request.options.longer_headers());
        let (secrets, server) = open(&mut port, peer, &request.options, &bytes, interrupt)?;
        let until_complete = request.options.until_complete;
        let session = ClientSession::new(clock.now(), &secrets, bytes, until_complete);
        let mut client = Self {
            port,
            clock,
            stop,
            peer: peer.address,
            server,
            seal: encrypted.then(|| Seal::new(&secrets, End::Client)),
            secrets,
            session,
            kernel_tcp: request.options.kernel_tcp,
            grant: Grant::default(),
            early: Early::new(),
            is_over: false,
        };
        let decision = client.converse((REQUEST, "the request"), interrupt, |session| {
            session.decision().cloned()
        })?;
        client.grant = decision.map_err(SessionError::Refused)?;
        Ok(client)
    }

    /// Within which bounds the server runs it, and what it does differently.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Bytes of UDP payload that the longest datagrams from here are cut to, because the path took
    /// no longer ones.
    pub fn narrowed(&self) -> Option<usize> {
        self.session.prober().narrowed()
    }

    /// Bytes of UDP payload of the pieces in which the longest datagrams came from the server, if
    /// they did.
    pub fn narrowed_there(&self) -> Option<usize> {
        self.session.prober().path().joined()
    }

    /// This host's end.
    pub fn near(&self) -> SocketAddr {
        self.port.local()
    }

    /// Address of the server.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The server, as the handshake has proven it.
    pub fn server(&self) -> ServerId {
        self.server
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
        self.session.ask(self.clock.now(), question);
        self.converse(
            (ANSWER, "a question"),
            interrupt,
            ClientSession::take_answer,
        )
    }

    /// Says goodbye.
    pub fn close(mut self) {
        self.session.close(self.clock.now());
        self.is_over = true;
        // Whether the server hears it does not matter.
        let wait = (ANSWER, "goodbye");
        let _ = self.converse(wait, &AtomicBool::new(false), |session| {
            session.is_closed().then_some(())
        });
    }

    /// Runs this side of `spec`, which is the request's, while the server runs the other. A run
    /// that is interrupted, or whose server vanishes, has a result: what was measured until then.
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
        let now = self.clock.now();
        self.session.start(now);
        let last = spec.flows.iter().map(|flow| flow.start + flow.start_spread);
        let last = last
            .max()
            .unwrap_or(Time::ZERO)
            .saturating_since(Time::ZERO);
        self.session.begins_at(now + last);
        let begun = |session: &mut ClientSession| {
            (session.progress().is_some() || session.ended().is_some()).then_some(())
        };
        self.converse((ANSWER, "start"), interrupt, begun)?;
        let (mut near, cut, notes) = self.run_near(spec, options, hooks, interrupt)?;
        // Whatever is asked from here on is another matter.
        let silent = self.clock.now().saturating_since(self.session.last_heard());
        let reported = match cut {
            Some(Cut::Vanished) => Err(SessionError::Vanished),
            Some(_) => self.far_half((PARTING, PARTING), &AtomicBool::new(false)),
            None => self.far_half((ANSWER, FETCH_TIMEOUT), interrupt),
        };
        let (why, far, cut) = match reported {
            Ok((why, far)) => {
                let theirs = matches!(why, EndReason::ShuttingDown | EndReason::Vanished);
                let theirs = theirs.then_some(Cut::Server(why));
                (why, Some(far), cut.or(theirs))
            }
            Err(error) if error.is_loss() => {
                let cut = cut.unwrap_or(match error {
                    SessionError::Interrupted => Cut::Interrupted,
                    _ => Cut::Unfetched,
                });
                (EndReason::Stopped, None, Some(cut))
            }
            Err(error) => return Err(error),
        };
        if far.is_none() && silent > ALIVE * 2 {
            // Until the server was missed nothing came any more, which says nothing about the path.
            let heard = Time::ZERO + near.ended.saturating_since(Time::ZERO + silent);
            near.ended = ends_at(spec, &near, heard);
        }
        Ok(Done {
            near,
            far,
            why,
            cut,
            notes,
        })
    }

    /// Ends the run at the server, and fetches its half of the result.
    fn far_half(
        &mut self,
        (stop, fetch): (Span, Span),
        interrupt: &AtomicBool,
    ) -> Result<(EndReason, HostOutcome), SessionError> {
        self.session.stop(self.clock.now());
        let ended = self.converse((stop, "stop"), interrupt, |session| session.ended())?;
        let report = self.fetch(&ended, fetch, interrupt)?;
        match report.error {
            Some(error) => Err(SessionError::Far(shown(&error))),
            None => Ok((ended.why, report.outcome)),
        }
    }

    fn run_near(
        &mut self,
        spec: &Arc<RunSpec>,
        options: &ground::Options,
        hooks: Hooks<'_>,
        interrupt: &AtomicBool,
    ) -> Result<(HostOutcome, Option<Cut>, Vec<String>), SessionError> {
        let plan = Plan {
            spec: match self.kernel_tcp {
                true => Arc::new(tcp::without_flows(spec)),
                false => Arc::clone(spec),
            },
            side: Side::Near,
            session: self.secrets.session,
            peer: self.peer,
            shared_clock: false,
        };
        if let Some(cpu) = options.pin {
            pin(cpu)?;
        }
        let complete = self.session.complete();
        let plain = headers::longest(spec);
        let below = if self.seal.is_some() { OVERHEAD } else { 0 };
        self.session.allow(plain + below);
        let path = self.session.prober().path();
        self.port.tell_doubts(path.doubts());
        let stop = Stop::new()?;
        let run_clock = Clock::new();
        self.port.restart(options.wait, run_clock, &stop)?;
        let beside = self.kernel_tcp.then(Arc::<tcp::Beside>::default);
        let flows = beside.clone().map(|beside| {
            let door = tcp::Door::Dial {
                to: self.peer,
                secrets: self.secrets.clone(),
            };
            tcp::Flows::new(spec, Side::Near, door, run_clock, &self.grant, beside)
                .with_live(hooks.live)
        });
        let mut talk = ClientControl {
            session: &mut self.session,
            interrupt,
            watched: hooks.complete,
            live: hooks.live.filter(|_| spec.flows.iter().any(|f| f.reverse)),
        };
        let port = ControlPort::new(
            &mut self.port,
            &mut talk,
            self.peer,
            self.clock,
            &stop,
            self.grant.max_rate,
        )
        .with_early(std::mem::take(&mut self.early))
        .with_beside(beside);
        let mut hooks = hooks.with_complete(&complete);
        hooks.path = Some(Arc::clone(&path));
        let session = self.secrets.session;
        let seal = &mut self.seal;
        let (outcome, halves) = tcp::beside(flows, || match seal {
            Some(seal) => {
                let sealed = Sealed::new(port, seal, plain);
                let port = Pieces::new(sealed, session, path, plain, below);
                endpoint::run(&plan, port, hooks, &stop)
            }
            None => {
                let port = Pieces::new(port, session, path, plain, below);
                endpoint::run(&plan, port, hooks, &stop)
            }
        });
        let mut outcome = outcome;
        let notes = match (&mut outcome, halves) {
            (Ok(outcome), Some(halves)) => halves.join(outcome),
            _ => Vec::new(),
        };
        self.port.restart(options.wait, self.clock, &self.stop)?;
        let now = self.clock.now();
        let gone = self.session.ended().is_none() && self.session.is_silent(now);
        let cut = match gone {
            true => Some(Cut::Vanished),
            false if self.session.is_stalled() => Some(Cut::Stalled),
            false => interrupt
                .load(Ordering::Relaxed)
                .then_some(Cut::Interrupted),
        };
        Ok((outcome?, cut, notes))
    }

    fn fetch(
        &mut self,
        ended: &Ended,
        patience: Span,
        interrupt: &AtomicBool,
    ) -> Result<Report, SessionError> {
        self.session.fetch(self.clock.now(), ended)?;
        let wait = (patience, "the question for its result");
        let bytes = self.converse(wait, interrupt, ClientSession::result)??;
        postcard::from_bytes(&bytes).map_err(|e| SessionError::Misfit(e.to_string()))
    }

    /// Talks until `done` has an answer, for so long at most: a server that says something else
    /// all the time is one that says nothing.
    fn converse<T>(
        &mut self,
        (patience, what): (Span, &'static str),
        interrupt: &AtomicBool,
        mut done: impl FnMut(&mut ClientSession) -> Option<T>,
    ) -> Result<T, SessionError> {
        let deadline = self.clock.now() + patience;
        loop {
            if let Some(done) = done(&mut self.session) {
                return Ok(done);
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(SessionError::Interrupted);
            }
            let now = self.clock.now();
            if self.session.is_silent(now) {
                return Err(SessionError::Vanished);
            }
            if now >= deadline {
                return Err(SessionError::Stuck(patience, what));
            }
            let (peer, clock) = (self.peer, self.clock);
            exchange(
                &mut self.port,
                peer,
                clock,
                &mut self.session,
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
            self.session.close(now);
            if let Some(goodbye) = self.session.poll_transmit(now) {
                let _ = send(&mut self.port, self.peer, &goodbye);
                let _ = self.port.flush();
            }
        }
    }
}

/// The client while its endpoint runs.
struct ClientControl<'a> {
    session: &'a mut ClientSession,
    interrupt: &'a AtomicBool,
    /// Somebody else who wants to know that this side is complete.
    watched: Option<&'a AtomicBool>,
    /// Whoever watches flows that the server sends.
    live: Option<&'a Live>,
}

impl ControlChannel for ClientControl<'_> {
    fn on_datagram(&mut self, now: Time, datagram: &[u8]) {
        self.session.on_datagram(now, datagram);
        if let Some(live) = self.live {
            for state in self.session.take_flows() {
                live.told(state.flow, state.live());
            }
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        if let Some(every) = self.live.and_then(|live| live.is_read_every()) {
            self.session.watch_flows(every);
        }
        self.session.poll_transmit(now)
    }

    fn next_timeout(&self) -> Time {
        self.session.next_timeout()
    }

    fn poll_path(&mut self, now: Time) -> Option<PathStep> {
        self.session.poll_path(now)
    }

    fn is_over(&mut self, now: Time, traffic: &Traffic) -> bool {
        if let Some(watched) = self.watched
            && self.session.complete().load(Ordering::Acquire)
        {
            watched.store(true, Ordering::Release);
        }
        self.interrupt.load(Ordering::Relaxed) || self.session.is_over(now, traffic)
    }
}

/// Runs `spec` with the far side at `peer`, and what the server granted. Links are left out: the
/// path is what it is. Packets that are encrypted, or of IPv6, are no longer than others: their
/// segments are shorter.
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
