//! Senders and sinks of one side, on one thread. What a sender counts is the kernel's
//! (`TCP_INFO`), looked at 100 to 1000 times a second; what a sink counts are the bytes it has
//! read.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fullpipe_observe::SocketDiag;
use fullpipe_observe::tcp_info::SND_CWND;
use fullpipe_realtime::live::{self, Live};
use fullpipe_run::{FlowSpec, RunSpec, Trace};
use fullpipe_units::{Bytes, Span, Time};
use nix::poll::{PollFd, PollTimeout, poll};

use super::beside::Beside;
use super::flow::Flow;
use super::{Expected, Halves, ticket};
use crate::endpoint::Side;
use crate::io::Clock;
use crate::session::Secrets;
use crate::session::control::Grant;
use crate::session::shaper::Shaper;

/// How connections come about at this side.
#[derive(Debug)]
pub enum Door {
    /// They are dialled, each at the start of its flow.
    Dial {
        /// The other side's TCP port.
        to: SocketAddr,
        /// Those of the session, for the tickets.
        secrets: Secrets,
    },
    /// They come in.
    Expect(Expected),
}

/// All flows of one side.
#[derive(Debug)]
pub struct Flows<'a> {
    spec: &'a RunSpec,
    door: Door,
    clock: Clock,
    beside: Arc<Beside>,
    shaper: Option<Shaper>,
    /// Bytes in both directions, after which nothing moves any more.
    max_bytes: Option<Bytes>,
    all: Vec<Flow<'a>>,
    /// Data of one call.
    chunk: Vec<u8>,
    room: Vec<u8>,
    shown: Option<Shown<'a>>,
}

/// Where it is written how the flows are getting on, ten times a second.
#[derive(Debug)]
struct Shown<'a> {
    live: &'a Live,
    next: Time,
}

/// Segments that are written at once.
const SEGMENTS: u32 = 64;
/// Bytes that are read at once.
const ROOM: usize = 128 << 10;
/// Calls before the next flow has its turn.
const TURNS: usize = 16;
/// How much earlier than this host the other one may end a run, beside a round trip: a start that
/// was sent again, and threads that wake up late.
const AT_THE_END: Span = Span::from_millis(500);
/// Between two looks at a sender: a twentieth of the round-trip time within these bounds.
const LOOKS: u64 = 20;
const SHORTEST: Span = Span::from_millis(1);
const LONGEST: Span = Span::from_millis(10);

impl<'a> Flows<'a> {
    /// The flows of `spec` at this side, by a clock that reads zero when the run begins. Senders
    /// write at the granted rate at most, all together, and nothing moves beyond the granted bytes.
    pub fn new(
        spec: &'a RunSpec,
        side: Side,
        door: Door,
        clock: Clock,
        grant: &Grant,
        beside: Arc<Beside>,
    ) -> Self {
        let flow = |f: &'a FlowSpec| Flow::new(f, side.sends(f.reverse), spec);
        let all: Vec<Flow<'_>> = spec.flows.iter().map(flow).collect();
        let longest = all.iter().map(|f| f.spec.sender.mss).max().unwrap_or(1);
        Self {
            spec,
            door,
            clock,
            beside,
            shaper: grant.max_rate.map(|rate| Shaper::new(rate, clock.now())),
            max_bytes: grant.max_bytes,
            all,
            chunk: vec![0; (SEGMENTS * longest) as usize],
            room: vec![0; ROOM],
            shown: None,
        }
    }

    /// Says there how the flows of this side are getting on.
    pub fn with_live(self, live: Option<&'a Live>) -> Self {
        let shown = live.map(|live| Shown {
            live,
            next: Time::ZERO,
        });
        Self { shown, ..self }
    }

    /// Until `over` is set.
    pub fn run(mut self, over: &AtomicBool) -> Halves {
        let mut diag = SocketDiag::open().ok();
        let mut due = Time::ZERO;
        while !over.load(Ordering::Relaxed) {
            let now = self.clock.now();
            self.begin(now);
            self.end(now);
            let held = self.shaper.as_mut().and_then(|shaper| shaper.refill(now));
            self.wait(held.is_some());
            if !self.is_used_up() {
                self.move_data(held.is_some());
            }
            let now = self.clock.now();
            if now >= due {
                due = now + self.look(&mut diag, now);
                self.show_if_due(now);
            }
        }
        let now = self.clock.now();
        self.look(&mut diag, now);
        self.finish(now)
    }

    fn show_if_due(&mut self, now: Time) {
        if let Some(shown) = &mut self.shown
            && now >= shown.next
        {
            shown.next = now + live::EVERY;
            shown.live.publish(now, self.all.iter().map(Flow::live));
        }
    }

    /// All granted bytes have been carried: the session ends the run.
    fn is_used_up(&self) -> bool {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let all = now(&self.beside.received) + now(&self.beside.sent);
        self.max_bytes.is_some_and(|most| all > most.0)
    }

    /// Connections that are due, or have come.
    fn begin(&mut self, now: Time) {
        match &self.door {
            Door::Dial { to, secrets } => {
                for (k, flow) in self.all.iter_mut().enumerate() {
                    if flow.is_due(now) {
                        let shown = ticket::ticket(secrets, k as u16);
                        flow.keep(|flow| flow.dial(*to, &shown));
                    }
                }
            }
            Door::Expect(expected) => {
                while let Some((k, stream)) = expected.take() {
                    if let Some(flow) = self.all.get_mut(k) {
                        flow.keep(|flow| flow.accept(stream));
                    }
                }
            }
        }
    }

    /// Flows that are cut off.
    fn end(&mut self, now: Time) {
        for flow in &mut self.all {
            if flow.spec.stop.is_some_and(|stop| now >= stop) {
                flow.cut();
            }
        }
    }

    /// Until a connection has something to do, for as long as a look at them may wait.
    fn wait(&self, held: bool) {
        let wanted = self.all.iter().filter_map(|f| f.wants(held));
        let mut polled: Vec<PollFd<'_>> = wanted.collect();
        if poll(&mut polled, PollTimeout::from(1u8)).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn move_data(&mut self, held: bool) {
        // Limits are looked at between two turns.
        let limited = self.shaper.is_some() || self.max_bytes.is_some();
        let turns = if limited { 1 } else { TURNS };
        let Self {
            all,
            chunk,
            room,
            beside,
            shaper,
            clock,
            spec,
            ..
        } = self;
        for flow in all {
            let moved = match flow.sends {
                true if held => Ok(0),
                true => flow.send(chunk, turns),
                false => flow.receive(room, turns, clock.now(), spec.measure_from),
            };
            match moved {
                Ok(bytes) => {
                    let wire = flow.on_wire(bytes);
                    let side = if flow.sends {
                        &beside.sent
                    } else {
                        &beside.received
                    };
                    side.fetch_add(wire, Ordering::Relaxed);
                    if let Some(shaper) = shaper.as_mut().filter(|_| flow.sends) {
                        shaper.spend(wire);
                    }
                }
                // The clock of the far host is ahead: it ends first, and closes what it receives.
                Err(e) if is_the_end(&e, clock.now() + flow.rtt_now(), spec.duration) => flow.cut(),
                Err(e) => flow.fail(&e),
            }
        }
    }

    /// Looks at every sender; until the next look.
    fn look(&mut self, diag: &mut Option<SocketDiag>, now: Time) -> Span {
        let step = match self.spec.trace {
            Trace::Off => Span::MAX,
            Trace::Every(step) => step,
            Trace::Full => Span::ZERO,
        };
        let mut next = LONGEST;
        let Some(diag) = diag else { return next };
        for (k, flow) in self.all.iter_mut().enumerate().filter(|(_, f)| f.sends) {
            let Some((local, remote)) = flow.ends() else {
                continue;
            };
            // One that is closed has no window any more, and nothing new to tell.
            if let Ok(Some(socket)) = diag.connection(local, remote)
                && socket.info.count(&SND_CWND) > 0
            {
                flow.sample(now, k, socket.info, step, self.spec.measure_from);
            }
            next = next.min((flow.rtt_now() / LOOKS).max(SHORTEST));
        }
        next
    }

    fn finish(self, end: Time) -> Halves {
        let mut halves = Halves::default();
        let measure_from = self.spec.measure_from;
        for (k, flow) in self.all.into_iter().enumerate() {
            if let Some(failure) = &flow.failure {
                let failure = format!("flow {}: {failure}", flow.spec.name);
                halves.failures.push(failure);
            }
            match flow.sends {
                true => halves
                    .senders
                    .push(flow.sender(k as u32, measure_from, end)),
                false => halves.receivers.push(flow.receiver(k as u32, end)),
            }
        }
        halves
    }
}

/// The other host has closed a connection because the run is over there; `now` is by its clock at
/// the latest.
fn is_the_end(error: &io::Error, now: Time, duration: Span) -> bool {
    let is_closed = matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    );
    is_closed && now + AT_THE_END >= Time::ZERO + duration
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The far host's clock is ahead: what it closes at its end is no failure, earlier it is one.
    #[test]
    fn a_connection_that_ends_with_the_run_has_not_failed() {
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let (run, soon) = (Span::from_secs(10), at(9_600));
        assert!(is_the_end(&closed, soon, run));
        assert!(!is_the_end(&closed, at(9_400), run));
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert!(!is_the_end(&refused, soon, run));
    }
}
