//! One session at the server, without a socket: request in, run, result out. Every message is
//! idempotent: a copy of one changes nothing.

mod admission;
mod incoming;
mod result;
mod run;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_run::RunSpec;
use fullpipe_units::{Span, Time};

use super::board::{Posted, Shown};
use super::channel::Channel;
use super::control::{ClientMessage, EndReason, FlowState, MOST_FLOWS, SILENCE, ServerMessage};
use super::control_port::{ControlChannel, Traffic};
use super::credit::Credit;
use super::limits::memory::{Memory, Share};
use super::limits::{Limits, transfer};
use super::message::{Ask, Open};
use super::mtu::Prober;
use super::path::{Challenge, MigrationInbox, PathStep, Paths};
use super::report::Report;
use super::seal::End;
use super::{Secrets, entropy};
use crate::content::{self, Allowed, Answer, Carried, Question};
use crate::headers;
use crate::shown::shown;
pub use admission::Job;
use incoming::{Incoming, Taken};
use result::Ended;
use run::Run;

/// From the OPEN until the run must have begun.
pub const START_TIMEOUT: Span = Span::from_secs(120);
/// The same where files have to be read and compared before.
pub const FILES_TIMEOUT: Span = Span::from_secs(3600);
/// From the end of the run until the result must have been fetched.
pub const FETCH_TIMEOUT: Span = Span::from_secs(600);
/// The same of a server that is shutting down, which waits for three seconds.
pub const SHUTDOWN_FETCH_TIMEOUT: Span = Span::from_secs(2);
/// From a refusal until the client must have said goodbye.
pub const GOODBYE_TIMEOUT: Span = Span::from_secs(3);
/// What a client is told whose copy a later session has begun again.
const SUPERSEDED: &str = "the same copy was begun again";
/// Answers queued for sending.
const MOST_ANSWERS: usize = 128;

/// State machine of one session at the server.
#[derive(Debug)]
pub struct ServerSession {
    channel: Channel,
    /// The OPEN, and the ACCEPT that answers every copy of it.
    open: Vec<u8>,
    accept: Vec<u8>,
    limits: Arc<Limits>,
    ask: Ask,
    /// Bytes on the wire of one part of the result.
    packet: u64,
    stage: Stage,
    out: VecDeque<Vec<u8>>,
    last_received: Time,
    /// Time of the last check whether the run is over.
    looked: Time,
    since: Time,
    progress: Progress,
    allowed: Allowed,
    memory: Memory,
    /// Payload of the flows, once granted. Dropped before the share: its threads end first.
    content: Option<content::Job>,
    /// Memory reserved for this session, once granted.
    share: Option<Arc<Share>>,
    /// When it was first seen that a later session has begun the same copy.
    superseded: Option<Time>,
    paths: Paths,
    credit: Credit,
    /// What comes from other addresses than the client's.
    inbox: Arc<MigrationInbox>,
    prober: Prober,
    shown: Option<Shown>,
}

#[derive(Debug)]
enum Stage {
    /// Parts of the request are arriving.
    Request(Incoming),
    Refused(String),
    Granted(Arc<Job>),
    Running(Run),
    Ended(Ended),
    Closed,
}

#[derive(Clone, Debug, Default)]
struct Progress {
    traffic: Traffic,
    /// Set by the endpoint.
    complete: Arc<AtomicBool>,
    reported_complete: bool,
    /// Set from outside: the server is shutting down.
    shut: Arc<AtomicBool>,
}

/// State of a session at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// The request is not complete.
    Request,
    /// The request was refused; the client learns the reason.
    Refused,
    /// It was granted, and the client has not said start.
    Granted,
    /// The endpoint runs.
    Running,
    /// The result waits to be fetched.
    Ended,
    /// Nothing is sent or accepted any more.
    Closed,
}

impl ServerSession {
    /// For a client that has shown its OPEN. Its request has the length that it announced, which
    /// the gate has bounded. `shut` ends it soon.
    pub fn new(
        now: Time,
        (from, open, ask): (SocketAddr, &Open, Ask),
        accept: Vec<u8>,
        secrets: &Secrets,
        limits: Arc<Limits>,
        allowed: Allowed,
        shut: Arc<AtomicBool>,
    ) -> Self {
        Self {
            memory: Memory::new(&limits),
            share: None,
            channel: Channel::new(secrets, End::Server),
            open: open.bytes.to_vec(),
            accept,
            limits,
            ask,
            packet: result::DATAGRAM + headers::bytes(from) as u64,
            stage: Stage::Request(Incoming::new(ask.length)),
            out: VecDeque::new(),
            last_received: now,
            looked: now,
            since: now,
            progress: Progress {
                shut,
                ..Progress::default()
            },
            allowed,
            content: None,
            superseded: None,
            paths: Paths::new(from),
            credit: Credit::default(),
            inbox: Arc::new(MigrationInbox::new(from)),
            prober: Prober::default(),
            shown: None,
        }
    }

    /// The longest datagram of the run has so many bytes of UDP payload.
    pub fn allow(&mut self, bytes: usize) {
        self.channel.allow(bytes);
        self.prober.begin(bytes);
    }

    /// State of the search for the longest datagram of the path.
    pub fn prober(&self) -> &Prober {
        &self.prober
    }

    /// Shares the inbox that the gate fills with datagrams from other addresses.
    pub fn with_inbox(self, inbox: Arc<MigrationInbox>) -> Self {
        Self { inbox, ..self }
    }

    /// Writes the traffic of the run on the server's board.
    pub fn show(&mut self, posted: &Arc<Posted>) {
        self.shown = Some(Shown::new(posted));
    }

    /// Address that the client has proven last.
    pub fn peer(&self) -> SocketAddr {
        self.paths.peer()
    }

    /// A message that came from `from`.
    fn hear(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        let Some((message, newest)) = self.channel.open_in_order(datagram) else {
            return;
        };
        self.paths.heard(now, from, datagram.len(), newest, fresh);
        let is_there = from == self.paths.peer();
        if is_there {
            self.credit.received(datagram.len());
        }
        match message {
            ClientMessage::Path(answer) => {
                self.last_received = now;
                if !(is_there && self.credit.answered(answer)) {
                    self.paths.answered(now, from, answer);
                }
            }
            message => self.take_message(now, message),
        }
    }

    /// The memory that it shares with other sessions.
    pub fn with_memory(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    /// Current state.
    pub fn at(&self) -> SessionState {
        match &self.stage {
            Stage::Request(_) => SessionState::Request,
            Stage::Refused(_) => SessionState::Refused,
            Stage::Granted(_) => SessionState::Granted,
            Stage::Running(_) => SessionState::Running,
            Stage::Ended(_) => SessionState::Ended,
            Stage::Closed => SessionState::Closed,
        }
    }

    /// What was granted, until it has ended.
    pub fn job(&self) -> Option<&Arc<Job>> {
        match &self.stage {
            Stage::Granted(job) => Some(job),
            Stage::Running(run) => Some(&run.job),
            _ => None,
        }
    }

    /// Reason for a refusal, if the request was refused.
    pub fn refusal(&self) -> Option<&str> {
        match &self.stage {
            Stage::Refused(why) => Some(why),
            _ => None,
        }
    }

    /// A flag for the endpoint to set when its flows are complete.
    pub fn complete(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.progress.complete)
    }

    /// The client is silent, or the stage has lasted, for longer than allowed.
    pub fn is_abandoned(&self, now: Time) -> bool {
        let silent = now.saturating_since(self.last_received);
        let lasting = now.saturating_since(self.since);
        match &self.stage {
            Stage::Request(_) => silent > SILENCE || lasting > START_TIMEOUT,
            // Its client is told when it says something next.
            _ if self.is_superseded() => self
                .superseded
                .is_some_and(|since| now.saturating_since(since) > GOODBYE_TIMEOUT),
            // Both hosts may have files to read before the start; the client sends a sign of life
            // meanwhile.
            Stage::Granted(job) if job.options.content.is_file() => {
                silent > SILENCE || lasting > FILES_TIMEOUT
            }
            Stage::Granted(_) => silent > SILENCE || lasting > START_TIMEOUT,
            // Its client says goodbye, as a rule.
            Stage::Refused(_) => lasting > GOODBYE_TIMEOUT,
            Stage::Running(_) => false,
            Stage::Ended(_) => silent > SILENCE || lasting > FETCH_TIMEOUT,
            Stage::Closed => true,
        }
    }

    /// The stage is younger than [`SHUTDOWN_FETCH_TIMEOUT`], for which a server that is shutting
    /// down lets its result be fetched.
    pub fn is_fresh(&self, now: Time) -> bool {
        now.saturating_since(self.since) < SHUTDOWN_FETCH_TIMEOUT
    }

    /// The run has ended by itself or because [`ControlChannel::is_over`] said so; this is its
    /// result.
    pub fn end(&mut self, now: Time, bytes: Vec<u8>, failed: bool) -> EndReason {
        let why = match &self.stage {
            // The client has said goodbye: it fetches nothing.
            Stage::Closed => return EndReason::Stopped,
            _ if failed => EndReason::Failed,
            Stage::Running(Run { why: Some(why), .. }) => *why,
            _ => EndReason::Over,
        };
        self.stage = Stage::Ended(Ended::new(why, bytes));
        // The time that ending took does not count as silence of the client.
        self.last_received += now.saturating_since(self.looked);
        self.since = now;
        self.announce();
        why
    }

    /// Bytes of the run.
    pub fn traffic(&self) -> Traffic {
        self.progress.traffic
    }

    fn announce(&mut self) {
        if let Stage::Ended(ended) = &self.stage {
            let message = ended.announcement();
            self.answer(&message);
        }
    }

    /// Parts for which there is no room or no credit have to be asked for again.
    fn answer(&mut self, message: &ServerMessage) {
        if self.out.len() < MOST_ANSWERS {
            let sealed = self.channel.seal(message);
            let credit = &mut self.credit;
            self.out
                .extend(sealed.filter(|sealed| credit.spend(sealed.len())));
        }
    }

    fn take_part(&mut self, now: Time, at: u32, part: &[u8]) {
        let Stage::Request(incoming) = &mut self.stage else {
            return self.send_decision();
        };
        let bytes = match incoming.take(at, part) {
            Taken::Nothing => return,
            Taken::Part => return self.answer(&ServerMessage::Have { at }),
            Taken::All(bytes) => bytes,
        };
        let within = (&*self.limits, &self.memory, &self.allowed);
        self.stage = match admission::admit(&bytes, &self.ask, within) {
            Ok((job, content, share)) => {
                (self.content, self.share) = (Some(content), Some(share));
                Stage::Granted(Arc::new(job))
            }
            Err(why) => Stage::Refused(shown(&why)),
        };
        self.since = now;
        self.send_decision();
    }

    /// The same copy was begun again by a later session.
    pub fn is_superseded(&self) -> bool {
        self.content
            .as_ref()
            .is_some_and(content::Job::is_superseded)
    }

    /// The run begins: what it carries, and the run with the length of that.
    ///
    /// # Errors
    /// A sentence for the client.
    pub fn begin_content(&mut self, spec: &mut RunSpec) -> Result<Carried, String> {
        let Some(content) = &mut self.content else {
            return Ok(Carried::default());
        };
        let carried = content.begin(spec)?;
        if let Stage::Running(run) = &mut self.stage
            && run.job.options.content.is_file()
        {
            run.carries(spec.flows.iter().filter_map(transfer).sum());
        }
        Ok(carried)
    }

    /// What the client's copy has stored here ([`content::Job::stored`]).
    pub fn stored(&self) -> Option<(&str, u64, u64)> {
        self.content.as_ref()?.stored()
    }

    /// Its part of the memory of all tests.
    pub fn share(&self) -> Option<Arc<Share>> {
        self.share.clone()
    }

    /// The run is over.
    pub fn end_content(&mut self, carried: Carried) {
        if let Some(content) = &mut self.content {
            content.ended(carried);
        }
    }

    fn answer_about_content(&mut self, number: u32, question: &Question) {
        let answer = match &mut self.content {
            Some(content) if content.is_superseded() => Answer::Failed(SUPERSEDED.to_owned()),
            Some(content) => content.ask(question),
            None => Answer::Nonsense,
        };
        let answer = match answer {
            Answer::Failed(why) => Answer::Failed(shown(&why)),
            answer => answer,
        };
        self.answer(&ServerMessage::Content { number, answer });
    }

    /// State of the flows that are sent from here, as the server's board has it.
    fn answer_about_flows(&mut self, from: u32) {
        if let (Stage::Running(_), Some(shown)) = (&self.stage, &self.shown) {
            let flows = shown.live().sent(from, MOST_FLOWS);
            let flows = flows.into_iter().map(FlowState::new).collect();
            self.answer(&ServerMessage::Flows(flows));
        }
    }

    /// Repeats the answer to the request.
    fn send_decision(&mut self) {
        let message = match &self.stage {
            Stage::Refused(why) => ServerMessage::Refused(why.clone()),
            Stage::Granted(job) => ServerMessage::Granted(job.grant.clone()),
            _ => return,
        };
        self.answer(&message);
    }

    fn start(&mut self, now: Time) {
        if self.is_superseded() && matches!(self.stage, Stage::Granted(_)) {
            let report = postcard::to_stdvec(&Report::failed(SUPERSEDED.to_owned()));
            let ended = Ended::new(EndReason::Superseded, report.unwrap_or_default());
            self.stage = Stage::Ended(ended);
            self.since = now;
        }
        if let Stage::Granted(job) = &self.stage {
            self.stage = Stage::Running(Run::new(now, Arc::clone(job)));
        }
    }

    fn send_progress(&mut self) {
        let complete = self.progress.complete.load(Ordering::Acquire);
        self.progress.reported_complete |= complete;
        let Traffic { received, sent, .. } = self.progress.traffic;
        self.answer(&ServerMessage::Alive {
            received,
            sent,
            complete,
        });
    }

    fn take_message(&mut self, now: Time, message: ClientMessage) {
        self.last_received = now;
        match message {
            ClientMessage::Part { at, bytes } => self.take_part(now, at, &bytes),
            ClientMessage::Start => self.start(now),
            ClientMessage::Stop => {
                if let Stage::Running(run) = &mut self.stage {
                    run.why.get_or_insert(EndReason::Stopped);
                }
            }
            ClientMessage::Ask { from, many } => return self.send_parts(now, from, many),
            ClientMessage::Content { number, question } => {
                return self.answer_about_content(number, &question);
            }
            ClientMessage::Close => {
                self.stage = Stage::Closed;
                self.answer(&ServerMessage::Closed);
            }
            ClientMessage::Probe { number, .. } => {
                return self.answer(&ServerMessage::Probed(number));
            }
            ClientMessage::Probed(number) => return self.prober.answered(now, number),
            ClientMessage::Flows { from } => return self.answer_about_flows(from),
            ClientMessage::Alive | ClientMessage::Path(_) => {}
        }
        match self.at() {
            SessionState::Running => self.send_progress(),
            SessionState::Ended => self.announce(),
            _ => {}
        }
    }

    fn send_parts(&mut self, now: Time, from: u32, many: u16) {
        let lasting = now.saturating_since(self.since);
        let Stage::Ended(ended) = &mut self.stage else {
            return;
        };
        let rate = self.limits.max_rate;
        let allowed = rate.map(|rate| rate.bytes_in(lasting).0 / self.packet);
        let parts = ended.parts(allowed, from, many);
        parts.iter().for_each(|part| self.answer(part));
    }
}

/// A challenge.
fn fresh() -> Option<Challenge> {
    let mut challenge = [0; 8];
    entropy(&mut challenge).ok().map(|()| challenge)
}

impl ControlChannel for ServerSession {
    fn on_datagram(&mut self, now: Time, datagram: &[u8]) {
        if datagram == self.open {
            // Its answer was lost. This is no sign of life: anybody may send it again.
            if self.out.len() < MOST_ANSWERS {
                self.out.push_back(self.accept.clone());
            }
        } else {
            self.hear(now, self.paths.peer(), datagram);
        }
    }

    fn poll_path(&mut self, now: Time) -> Option<PathStep> {
        while let Some((from, datagram)) = self.inbox.take() {
            self.hear(now, from, &datagram);
        }
        if self.paths.take_move() {
            self.paths.tell(&self.inbox);
            self.credit = Credit::default();
            // The new way may be narrower.
            self.prober.path().doubt();
            return Some(PathStep::Move(self.paths.peer()));
        }
        let (to, challenge) = self.paths.poll(now)?;
        let datagram = self.channel.seal(&ServerMessage::Challenge(challenge))?;
        Some(PathStep::Challenge(to, datagram))
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        if self.superseded.is_none() && self.is_superseded() {
            self.superseded = Some(now);
        }
        if let Some(datagram) = self.out.pop_front() {
            return Some(datagram);
        }
        let complete = self.progress.complete.load(Ordering::Acquire);
        if self.at() == SessionState::Running && complete && !self.progress.reported_complete {
            self.send_progress();
        }
        if self.at() == SessionState::Running
            && let Some(probe) = self.prober.poll(now)
        {
            let (number, padding) = (probe.number, Channel::padding(probe.bytes, probe.number));
            self.answer(&ServerMessage::Probe { number, padding });
        }
        if let Some(challenge) = self.credit.poll(now, fresh) {
            let sealed = self.channel.seal(&ServerMessage::Challenge(challenge));
            self.out.extend(sealed);
        }
        self.out.pop_front()
    }

    fn next_timeout(&self) -> Time {
        match self.out.is_empty() {
            true => Time::MAX,
            false => Time::ZERO,
        }
    }

    fn is_over(&mut self, now: Time, traffic: &Traffic) -> bool {
        self.progress.traffic = *traffic;
        self.looked = now;
        if let Some(shown) = &mut self.shown {
            shown.take(now, traffic);
        }
        let shut = self.progress.shut.load(Ordering::Relaxed);
        let silent = now.saturating_since(self.last_received) > SILENCE;
        let superseded = self.is_superseded();
        let Stage::Running(run) = &mut self.stage else {
            return true;
        };
        if run.why.is_none() {
            run.why = if superseded {
                Some(EndReason::Superseded)
            } else if shut {
                Some(EndReason::ShuttingDown)
            } else if silent {
                Some(EndReason::Vanished)
            } else {
                run.exceeded(now, traffic)
            };
        }
        run.why.is_some()
    }
}

#[cfg(test)]
mod tests;
