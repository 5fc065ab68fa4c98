//! A session on its own thread at the server: talk, run, talk.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_realtime::live::LiveRun;
use fullpipe_units::{Span, Time};

use super::board::Board;
use super::control_port::{ControlChannel, ControlPort, Early};
use super::event::Event;
use super::exchange::{CONTROL_BYTES, exchange};
use super::limits::Limits;
use super::limits::memory::Memory;
use super::message::{Ask, Open};
use super::path::MigrationInbox;
use super::pull;
use super::report::Report;
use super::seal::{End, OVERHEAD, Seal};
use super::server::Log;
use super::server_session::{Job, ServerSession, SessionState};
use super::simple;
use super::{Sealed, Secrets};
use crate::content::Allowed;
use crate::endpoint::{self, Hooks, Pieces, Plan, Port, Side, UdpPort};
use crate::headers;
use crate::io::{Clock, IoConfig, Mode, Socket, Stop, WaitStrategy};
use crate::lender::Lender;
use crate::shown::shown;
use crate::tcp::{self, Desk, Expected};

/// All that a session's thread is given.
pub struct Session {
    pub test: u64,
    pub udp: UdpSocket,
    pub clock: Clock,
    pub peer: SocketAddr,
    pub open: Box<Open>,
    pub ask: Ask,
    pub accept: Vec<u8>,
    pub secrets: Secrets,
    pub limits: Arc<Limits>,
    pub allowed: Allowed,
    pub memory: Memory,
    pub desk: Desk,
    pub log: Log,
    pub stopping: Arc<AtomicBool>,
    pub shut: Arc<AtomicBool>,
    pub over: Arc<AtomicBool>,
    pub inbox: Arc<MigrationInbox>,
    pub board: Board,
}

/// From the OPEN to the last goodbye.
pub fn run(session: Session) {
    if let Err(error) = attempt(&session) {
        (session.log)(&Event::Lost {
            test: session.test,
            peer: session.peer.into(),
            what: error.to_string(),
        });
    }
}

fn attempt(session: &Session) -> io::Result<()> {
    let stop = Stop::new()?;
    let mut state = ServerSession::new(
        session.clock.now(),
        (session.peer, &session.open, session.ask),
        session.accept.clone(),
        &session.secrets,
        Arc::clone(&session.limits),
        session.allowed.clone(),
        Arc::clone(&session.shut),
    )
    .with_memory(session.memory.clone())
    .with_inbox(Arc::clone(&session.inbox));
    let config = IoConfig {
        // As the system gives them: control messages are few.
        send_buffer: 0,
        receive_buffer: 0,
        ..IoConfig::new(Mode::Packet)
    };
    let mut port = session.port(&config, CONTROL_BYTES, &stop)?;
    session.run_control(&mut port, &mut state, &[SessionState::Request])?;
    session.send_decision(&state);
    let granted = state.job().is_some();
    // Before the client hears that the run begins: it dials at once.
    let tcp = state.job().filter(|job| job.options.kernel_tcp);
    let expected = tcp.map(|job| {
        let flows = job.spec.flows.len();
        session.desk.expect(&session.secrets, flows)
    });
    session.run_control(
        &mut port,
        &mut state,
        &[SessionState::Granted, SessionState::Refused],
    )?;
    if state.at() == SessionState::Running
        && let Some(job) = state.job().cloned()
    {
        drop(port);
        session.host(&job, &mut state, expected)?;
        session.tell_what_is_stored(&state);
    } else if state.stored().is_some() {
        // Of empty files there is nothing to run.
        session.tell_what_is_stored(&state);
    } else if granted && state.at() == SessionState::Closed {
        let (test, peer) = (session.test, session.peer.into());
        (session.log)(&Event::Closed { test, peer });
    }
    Ok(())
}

impl Session {
    fn port(&self, config: &IoConfig, longest: usize, stop: &Stop) -> io::Result<UdpPort> {
        let config = IoConfig { longest, ..*config };
        let mut socket = Socket::new(self.udp.try_clone()?, &config)?;
        socket.connect(self.peer)?;
        let mut port = UdpPort::new(socket, longest, WaitStrategy::Sleep, self.clock, stop)?;
        let there = self.inbox.peer();
        if there != self.peer {
            port.reroute(self.peer, Some(there))?;
        }
        Ok(port)
    }

    /// Talks as long as the session is at one of these places.
    fn run_control(
        &self,
        port: &mut UdpPort,
        state: &mut ServerSession,
        at: &[SessionState],
    ) -> io::Result<()> {
        while at.contains(&state.at()) {
            let now = self.clock.now();
            let ended = state.at() == SessionState::Ended;
            let shut = self.shut.load(Ordering::Relaxed) && !(ended && state.is_fresh(now));
            if shut || !ended && self.stopping.load(Ordering::Relaxed) {
                return self.lose("the server is shutting down");
            }
            if state.is_abandoned(now) {
                let what = match state.at() {
                    SessionState::Request => "the client vanished before its request was complete",
                    _ if state.is_superseded() => "the same copy was begun again",
                    SessionState::Granted => "the client did not start the test",
                    SessionState::Ended => "the client did not fetch its result",
                    _ => return Ok(()),
                };
                return self.lose(what);
            }
            self.exchange(port, state)?;
        }
        if state.at() == SessionState::Closed {
            // Before the client hears it: it may come again at once.
            self.over.store(true, Ordering::Release);
        }
        match state.at() {
            // What comes now belongs to the run.
            SessionState::Running => Ok(()),
            // Its caller logs the decision before the client hears it and says goodbye.
            SessionState::Granted | SessionState::Refused => Ok(()),
            // The last answers.
            _ if state.next_timeout() < Time::MAX => self.exchange(port, state),
            _ => Ok(()),
        }
    }

    fn exchange(&self, port: &mut UdpPort, state: &mut ServerSession) -> io::Result<()> {
        // A client sends nothing of a run before it has heard that it begins.
        exchange(port, self.peer, self.clock, state, &mut Early::new())
    }

    fn lose(&self, what: &str) -> io::Result<()> {
        Err(io::Error::other(what.to_owned()))
    }

    fn send_decision(&self, state: &ServerSession) {
        let (test, peer) = (self.test, self.peer.into());
        if let Some(job) = state.job() {
            let spec = &job.spec;
            (self.log)(&Event::Granted {
                test,
                peer,
                label: job.options.label.clone(),
                flows: spec.flows.len() + spec.arrivals.len() + spec.cross.len(),
                seconds: spec.duration.as_secs_f64(),
                notes: job.grant.notes.clone(),
            });
        } else if let Some(why) = state.refusal() {
            let reason = why.to_owned();
            (self.log)(&Event::Denied { test, peer, reason });
        }
    }

    fn tell_what_is_stored(&self, state: &ServerSession) {
        if let Some((name, files, bytes)) = state.stored() {
            (self.log)(&Event::Stored {
                test: self.test,
                peer: self.peer.into(),
                name: shown(name),
                files,
                bytes,
            });
        }
    }

    /// Runs the far side, then hands out its result.
    fn host(
        &self,
        job: &Job,
        state: &mut ServerSession,
        expected: Option<io::Result<Expected>>,
    ) -> io::Result<()> {
        let plain = headers::longest(&job.spec);
        let sealed = plain + job.options.overhead();
        let longest = sealed.max(CONTROL_BYTES);
        let stop = Stop::new()?;
        let config = Side::Far.io_config(&job.spec, job.options.mode());
        let (send_buffer, receive_buffer) = self.memory.socket_buffers(&job.spec);
        let config = IoConfig {
            send_buffer,
            receive_buffer,
            ..config
        };
        let port = self.port(&config, longest, &stop)?;
        let mut port = port.with_longer_headers(job.options.longer_headers());
        let run_clock = Clock::new();
        port.restart(WaitStrategy::Sleep, run_clock, &stop)?;
        let mut spec = Arc::clone(&job.spec);
        let mut carried = match state.begin_content(Arc::make_mut(&mut spec)) {
            Ok(carried) => carried,
            Err(why) => return self.hand_out(Report::failed(why), Span::ZERO, &mut port, state),
        };
        let expected = match expected.transpose() {
            Ok(expected) => expected,
            Err(e) => {
                let why = format!("TCP port {}: {e}", self.desk.port());
                return self.hand_out(Report::failed(why), Span::ZERO, &mut port, state);
            }
        };
        let post = self.board.post(self.test, self.peer, &job.options.label);
        let live = &post.posted().live;
        live.begin(LiveRun::new(&spec));
        let beside = expected.is_some().then(Arc::<tcp::Beside>::default);
        let flows = expected.zip(beside.clone()).map(|(expected, beside)| {
            let door = tcp::Door::Expect(expected);
            tcp::Flows::new(&job.spec, Side::Far, door, run_clock, &job.grant, beside)
                .with_live(Some(live))
        });
        if flows.is_some() {
            spec = Arc::new(tcp::without_flows(&spec));
        }
        let plan = Plan {
            spec,
            side: Side::Far,
            session: self.secrets.session,
            peer: self.peer,
            shared_clock: false,
        };
        state.show(post.posted());
        let complete = state.complete();
        state.allow(sealed);
        let path = state.prober().path();
        port.tell_doubts(path.doubts());
        let hooks = Hooks {
            complete: Some(&complete),
            path: Some(Arc::clone(&path)),
            live: Some(live),
            lender: state.share().map(|share| share as Arc<dyn Lender>),
            ..carried.hooks()
        };
        let attended = ControlPort::new(
            &mut port,
            state,
            self.peer,
            self.clock,
            &stop,
            job.grant.max_rate,
        )
        .with_beside(beside);
        let (mut outcome, halves) = tcp::beside(flows, || {
            if job.options.encrypted {
                let mut seal = Seal::new(&self.secrets, End::Server);
                let sealed = Sealed::new(attended, &mut seal, plain);
                let port = Pieces::new(sealed, self.secrets.session, path, plain, OVERHEAD);
                endpoint::run(&plan, port, hooks, &stop)
            } else {
                let port = Pieces::new(attended, self.secrets.session, path, plain, 0);
                endpoint::run(&plan, port, hooks, &stop)
            }
        });
        if let (Ok(outcome), Some(halves)) = (&mut outcome, halves) {
            for what in halves.join(outcome) {
                let (test, peer) = (self.test, self.peer.into());
                (self.log)(&Event::Lost { test, peer, what });
            }
        }
        let lasted = run_clock.now().saturating_since(Time::ZERO);
        drop(post);
        // That of the run is set by now: nobody would sleep who waits for it.
        let stop = Stop::new()?;
        port.restart(WaitStrategy::Sleep, self.clock, &stop)?;
        state.end_content(carried);
        let report = match outcome {
            Ok(outcome) => Report {
                outcome,
                error: None,
            },
            Err(error) => Report::failed(error.to_string()),
        };
        self.hand_out(report, lasted, &mut port, state)
    }

    fn hand_out(
        &self,
        report: Report,
        lasted: Span,
        port: &mut UdpPort,
        state: &mut ServerSession,
    ) -> io::Result<()> {
        let failed = report.error.is_some();
        let bytes = match state.job().is_some_and(|job| job.options.json) {
            true => simple::write(&report),
            false => encode(report)?,
        };
        let traffic = state.traffic();
        let why = state.end(self.clock.now(), bytes, failed);
        let both = (traffic.received, traffic.sent);
        let (test, peer) = (self.test, self.peer);
        (self.log)(&Event::finished(test, peer, why, lasted, both));
        match why {
            // Nobody is there to fetch it.
            super::control::EndReason::Vanished => Ok(()),
            _ => self.run_control(port, state, &[SessionState::Ended]),
        }
    }
}

/// Within what a client fetches; series that are longer than that are left out.
fn encode(mut report: Report) -> io::Result<Vec<u8>> {
    let write = |report: &Report| {
        postcard::to_stdvec(report).map_err(|e| io::Error::other(format!("result: {e}")))
    };
    let bytes = write(&report)?;
    if bytes.len() <= pull::LONGEST as usize {
        return Ok(bytes);
    }
    for sender in &mut report.outcome.senders {
        sender.record.series = Default::default();
        sender.record.rounds.clear();
    }
    let bytes = write(&report)?;
    if bytes.len() <= pull::LONGEST as usize {
        return Ok(bytes);
    }
    write(&Report::failed("the result is too long".to_owned()))
}
