//! Client side of a session, sans I/O: sends each message until it is answered, and keeps what the
//! server reported.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_realtime::live::EVERY;
use fullpipe_units::{Span, Time};

use super::Secrets;
use super::channel::Channel;
use super::control::{
    ALIVE, ClientMessage, EndReason, FlowState, Grant, MOST_FLOWS, PART, SILENCE, ServerMessage,
};
use super::control_port::{ControlChannel, Traffic};
use super::mtu::Prober;
use super::path::PathStep;
use super::pull::{Pull, PullError};
use super::seal::End;
use crate::content::{Answer, Question};
use crate::shown::shown;

/// First retransmission timeout of a message; it doubles up to the longest.
const FIRST_RETRY: Span = Span::from_millis(200);
const LONGEST_RETRY: Span = Span::from_secs(1);
/// Retransmission timeout of a part of the request.
const PART_RETRY: Span = Span::from_millis(400);
/// A server that has been silent for longer than this hears more often that this side is there:
/// perhaps it does not know where.
const UNEASY: Span = Span::from_millis(700);
/// A silent server is looked for again after this time: this host may have another address.
const LOOK: Span = Span::from_secs(1);
/// Parts of a request in flight.
const WINDOW: usize = 16;
/// A run that lasts until its flows are complete is given up after so long without a datagram of a
/// flow: as long as the longest retransmission timeout.
pub const STALL: Span = Span::from_secs(120);
/// Number of goodbyes, which are not acknowledged.
const GOODBYES: u32 = 3;

/// State machine of the client.
#[derive(Debug)]
pub struct ClientSession {
    channel: Channel,
    request: Vec<u8>,
    /// For each part: time of the last transmission, and whether the server has it.
    parts: Vec<(Option<Time>, bool)>,
    out: VecDeque<Vec<u8>>,
    want: Want,
    due: Time,
    retry: Span,
    last_received: Time,
    /// When the way to the server was last looked at.
    looked: Time,
    prober: Prober,
    decision: Option<Result<Grant, String>>,
    progress: Option<Progress>,
    ended: Option<Ended>,
    pull: Option<Pull>,
    stuck: Option<PullError>,
    goodbyes: u32,
    /// Set while somebody watches flows that the server sends.
    watch: Option<Watch>,
    /// What the server said of them, until it is taken.
    flows: Vec<FlowState>,
    /// The number of the latest question about what the flows carry, the question, and the answer.
    question: (u32, Question, Option<Answer>),
    /// The run ends once both sides are complete.
    until_complete: bool,
    complete: Arc<AtomicBool>,
    stopped: bool,
    /// Bytes of flows that have come, and when the last of them did, or the first was due.
    moved: (u64, Time),
    stalled: bool,
}

/// The message that is being repeated until answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Nothing,
    Grant,
    Start,
    Run,
    End,
    Result,
    Answer,
    Close,
}

/// When the server is asked how its flows are.
#[derive(Clone, Copy, Debug)]
struct Watch {
    every: Span,
    due: Time,
    /// The first index of the next question: of very many flows each answer has a part.
    from: u32,
}

/// What the server said of a run under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that reached it.
    pub received: u64,
    /// Bytes that it sent.
    pub sent: u64,
    /// All flows of the run have delivered their data.
    pub complete: bool,
}

/// How the run ended at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The server's reason for ending the run.
    pub why: EndReason,
    /// Bytes of the result.
    pub length: u32,
    /// BLAKE3 of the result.
    pub digest: [u8; 32],
}

impl ClientSession {
    /// With a session that was opened for this request.
    pub fn new(now: Time, secrets: &Secrets, request: Vec<u8>, until_complete: bool) -> Self {
        let parts = request.len().div_ceil(PART);
        Self {
            channel: Channel::new(secrets, End::Client),
            request,
            parts: vec![(None, false); parts],
            out: VecDeque::new(),
            want: Want::Grant,
            due: now,
            retry: FIRST_RETRY,
            last_received: now,
            looked: now,
            prober: Prober::default(),
            decision: None,
            progress: None,
            ended: None,
            pull: None,
            stuck: None,
            goodbyes: 0,
            watch: None,
            flows: Vec::new(),
            question: (0, Question::Prepared, None),
            until_complete,
            complete: Arc::default(),
            stopped: false,
            moved: (0, now),
            stalled: false,
        }
    }

    /// What the server says to the request.
    pub fn decision(&self) -> Option<&Result<Grant, String>> {
        self.decision.as_ref()
    }

    /// What the server said last of the run.
    pub fn progress(&self) -> Option<Progress> {
        self.progress
    }

    /// End of the run at the server, once the client knows of it.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// A flag for the endpoint to set when its flows are complete.
    pub fn complete(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.complete)
    }

    /// The server has been silent for longer than [`SILENCE`].
    pub fn is_silent(&self, now: Time) -> bool {
        now.saturating_since(self.last_received) > SILENCE
    }

    /// When anything was last heard of the server.
    pub fn last_heard(&self) -> Time {
        self.last_received
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

    /// While the run lasts, asks how the flows are that the server sends: as often as somebody
    /// looks, but no more often than the server's endpoint writes it down.
    pub fn watch_flows(&mut self, every: Span) {
        let every = every.clamp(EVERY, ALIVE);
        let watch = self.watch.get_or_insert(Watch {
            every,
            due: Time::ZERO,
            from: 0,
        });
        watch.every = every;
    }

    /// What the server has said of its flows since the last call.
    pub fn take_flows(&mut self) -> Vec<FlowState> {
        std::mem::take(&mut self.flows)
    }

    /// Says start until that is answered.
    pub fn start(&mut self, now: Time) {
        self.moved = (0, now);
        self.turn_to(now, Want::Start);
    }

    /// The last flow of the run begins then, by the clock of the session.
    pub fn begins_at(&mut self, last: Time) {
        self.moved.1 = self.moved.1.max(last);
    }

    /// The run, which was to last until all flows are complete, was given up: for [`STALL`] the
    /// server said that it is there, and sent and acknowledged nothing.
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Says stop until the result is announced. What the server has been silent for by then counts,
    /// but for a moment in which to take what is waiting here.
    pub fn stop(&mut self, now: Time) {
        if self.ended.is_none() {
            let silent = now.saturating_since(self.last_received).min(SILENCE - LOOK);
            self.turn_to(now, Want::End);
            self.last_received = Time::ZERO + now.saturating_since(Time::ZERO + silent);
        }
    }

    /// Fetches the announced result.
    ///
    /// # Errors
    /// [`PullError`].
    pub fn fetch(&mut self, now: Time, ended: &Ended) -> Result<(), PullError> {
        self.pull = Some(Pull::new(ended.length, ended.digest)?);
        self.turn_to(now, Want::Result);
        Ok(())
    }

    /// The result, once all of it is there.
    pub fn result(&mut self) -> Option<Result<Vec<u8>, PullError>> {
        if let Some(error) = self.stuck.take() {
            return Some(Err(error));
        }
        let pull = self.pull.take_if(|pull| pull.is_complete())?;
        Some(pull.finish())
    }

    /// Asks until it is answered.
    pub fn ask(&mut self, now: Time, question: &Question) {
        let number = self.question.0.wrapping_add(1);
        self.question = (number, question.clone(), None);
        self.turn_to(now, Want::Answer);
    }

    /// The answer.
    pub fn take_answer(&mut self) -> Option<Answer> {
        self.question.2.take()
    }

    /// Says goodbye, a few times at most.
    pub fn close(&mut self, now: Time) {
        self.goodbyes = 0;
        self.turn_to(now, Want::Close);
    }

    /// Goodbye was answered, or said often enough.
    pub fn is_closed(&self) -> bool {
        self.want == Want::Nothing
    }

    fn turn_to(&mut self, now: Time, want: Want) {
        self.want = want;
        self.due = now;
        self.retry = FIRST_RETRY;
        self.last_received = now;
    }

    fn take_message(&mut self, now: Time, message: ServerMessage) {
        self.last_received = now;
        match message {
            ServerMessage::Have { at } => {
                if let Some((_, there)) = self.parts.get_mut(at as usize)
                    && !std::mem::replace(there, true)
                    && self.want == Want::Grant
                {
                    self.due = now;
                }
            }
            ServerMessage::Granted(grant) => {
                let notes = grant.notes.iter().take(16).map(|n| shown(n)).collect();
                self.decide(Ok(Grant { notes, ..grant }));
            }
            ServerMessage::Refused(why) => self.decide(Err(shown(&why))),
            ServerMessage::Alive {
                received,
                sent,
                complete,
            } => {
                self.progress = Some(Progress {
                    received,
                    sent,
                    complete,
                });
                if self.want == Want::Start {
                    self.turn_to(now, Want::Run);
                    self.due = now + ALIVE;
                }
            }
            ServerMessage::Ended {
                why,
                length,
                digest,
            } => {
                self.ended.get_or_insert(Ended {
                    why,
                    length,
                    digest,
                });
                if matches!(self.want, Want::Start | Want::Run | Want::End) {
                    self.want = Want::Nothing;
                }
            }
            ServerMessage::Part { at, bytes } => {
                if let Some(pull) = &mut self.pull {
                    pull.take(now, at, &bytes);
                }
            }
            ServerMessage::Content { number, answer } => {
                if self.want == Want::Answer && number == self.question.0 {
                    self.question.2 = Some(match answer {
                        Answer::Failed(why) => Answer::Failed(shown(&why)),
                        answer => answer,
                    });
                    self.want = Want::Nothing;
                }
            }
            // Nothing but the answer says where this side is.
            ServerMessage::Challenge(challenge) => self.push(&ClientMessage::Path(challenge)),
            ServerMessage::Probe { number, .. } => self.push(&ClientMessage::Probed(number)),
            ServerMessage::Probed(number) => self.prober.answered(now, number),
            ServerMessage::Flows(mut flows) => {
                if let Some(watch) = &mut self.watch {
                    let last = flows.get(MOST_FLOWS - 1);
                    watch.from = last.map_or(0, |last| last.flow.saturating_add(1));
                    flows.truncate(MOST_FLOWS);
                    self.flows = flows;
                }
            }
            ServerMessage::Closed => {
                if self.want == Want::Close {
                    self.want = Want::Nothing;
                }
            }
        }
    }

    fn decide(&mut self, decision: Result<Grant, String>) {
        if self.want == Want::Grant {
            self.decision = Some(decision);
            self.want = Want::Nothing;
        }
    }

    /// Parts that the server does not have, a window of them under way; when it has all, the last,
    /// to hear what it says to them.
    fn next_parts(&mut self, now: Time) -> Vec<ClientMessage> {
        let retry = |sent: &Option<Time>| sent.is_none_or(|at| now >= at + PART_RETRY);
        let absent = |part: &(Option<Time>, bool)| !part.1;
        let flying = self.parts.iter().filter(|p| absent(p) && !retry(&p.0));
        let room = WINDOW.saturating_sub(flying.count());
        let places = self.parts.iter().enumerate();
        let places = places.filter(|(_, p)| absent(p) && retry(&p.0));
        let mut places: Vec<usize> = places.map(|(at, _)| at).take(room).collect();
        if self.parts.iter().all(|p| p.1) {
            places.extend(self.parts.len().checked_sub(1));
        }
        self.due = now + PART_RETRY;
        let parts = places.into_iter().map(|at| {
            self.parts[at].0 = Some(now);
            let start = at * PART;
            let end = (start + PART).min(self.request.len());
            ClientMessage::Part {
                at: at as u32,
                bytes: self.request[start..end].to_vec(),
            }
        });
        parts.collect()
    }

    /// What is to be said now, into the queue.
    fn queue_due(&mut self, now: Time) {
        let message = match self.want {
            Want::Nothing => return,
            Want::Result => return self.next_question(now),
            _ if now < self.due => return,
            Want::Grant => {
                let parts = self.next_parts(now);
                return parts.iter().for_each(|part| self.push(part));
            }
            Want::Start => ClientMessage::Start,
            Want::Run => ClientMessage::Alive,
            Want::End => ClientMessage::Stop,
            Want::Answer => ClientMessage::Content {
                number: self.question.0,
                question: self.question.1.clone(),
            },
            Want::Close if self.goodbyes >= GOODBYES => {
                self.want = Want::Nothing;
                return;
            }
            Want::Close => {
                self.goodbyes += 1;
                ClientMessage::Close
            }
        };
        self.due = now
            + match self.want {
                Want::Run if now.saturating_since(self.last_received) > UNEASY => FIRST_RETRY,
                Want::Run => ALIVE,
                _ => self.retry,
            };
        self.retry = (self.retry * 2).min(LONGEST_RETRY);
        self.push(&message);
    }

    fn push(&mut self, message: &ClientMessage) {
        self.out.extend(self.channel.seal(message));
    }

    fn next_question(&mut self, now: Time) {
        match self.pull.as_mut().map(|pull| pull.poll(now)) {
            Some(Ok(Some((from, many)))) => self.push(&ClientMessage::Ask { from, many }),
            // Whatever else it may still say.
            Some(Err(error)) => self.stuck = Some(error),
            _ => {}
        }
    }
}

impl ControlChannel for ClientSession {
    fn on_datagram(&mut self, now: Time, datagram: &[u8]) {
        if let Some(message) = self.channel.open(datagram) {
            self.take_message(now, message);
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        if self.out.is_empty() {
            self.queue_due(now);
        }
        if self.want == Want::Run
            && let Some(watch) = &mut self.watch
            && now >= watch.due
        {
            watch.due = now + watch.every;
            let from = watch.from;
            self.push(&ClientMessage::Flows { from });
        }
        if self.want == Want::Run
            && let Some(probe) = self.prober.poll(now)
        {
            let (number, padding) = (probe.number, Channel::padding(probe.bytes, probe.number));
            self.push(&ClientMessage::Probe { number, padding });
        }
        self.out.pop_front()
    }

    fn next_timeout(&self) -> Time {
        match self.want {
            _ if !self.out.is_empty() => Time::ZERO,
            Want::Nothing => Time::MAX,
            Want::Result => self.pull.as_ref().map_or(Time::MAX, Pull::next_timeout),
            Want::Run => {
                let watch = self.watch.map_or(Time::MAX, |watch| watch.due);
                self.due.min(self.prober.next_timeout()).min(watch)
            }
            _ => self.due,
        }
    }

    fn poll_path(&mut self, now: Time) -> Option<PathStep> {
        let since = now.saturating_since(self.last_received.max(self.looked));
        (since > LOOK).then(|| {
            self.looked = now;
            PathStep::Look
        })
    }

    fn is_over(&mut self, now: Time, traffic: &Traffic) -> bool {
        if traffic.data != self.moved.0 {
            self.moved = (traffic.data, now);
        }
        let still = now.saturating_since(self.moved.1) > STALL;
        self.stalled |= self.until_complete && still && self.ended.is_none();
        let there = self.progress.is_some_and(|p| p.complete);
        let complete = self.until_complete && there && self.complete.load(Ordering::Acquire);
        self.stopped |= complete || self.ended.is_some() || self.is_silent(now) || self.stalled;
        self.stopped
    }
}
