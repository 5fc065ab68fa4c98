//! Senders and sinks of one side, on one thread. What a sender counts is the kernel's
//! (`TCP_INFO`), looked at 100 to 1000 times a second; what a sink counts are the bytes it has
//! read.

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fullpipe_flow::{EpisodeKind, ReceiverCounts};
use fullpipe_host::{ReceiverReport, SenderReport};
use fullpipe_observe::tcp_info::{
    BYTES_ACKED, DATA_SEGS_OUT, DELIVERED, RTT, SND_CWND, TOTAL_RETRANS, TcpInfo, UNACKED,
};
use fullpipe_observe::{FIELDS, Sampled, SocketDiag};
use fullpipe_realtime::live::{self, Live, LiveFlow};
use fullpipe_run::{
    ArrivalRecorder, FlowSpec, FlowTotals, Histogram, LookField, Looks, Round, RunSpec,
    SenderRecord, Series, Trace,
};
use fullpipe_units::{Bytes, Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrStorage, connect, getsockopt, recv,
    setsockopt, socket, sockopt,
};

use super::beside::Beside;
use super::ticket::{self, Ticket};
use super::{Expected, Halves, module, sink};
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

/// One of them.
#[derive(Debug)]
struct Flow<'a> {
    spec: &'a FlowSpec,
    sends: bool,
    started: Time,
    connection: Connection,
    /// Bytes that are still to be written.
    left: u64,
    /// Bytes of a ticket that go before the data.
    before: u64,
    /// The ticket, until it was shown.
    greeting: Option<Ticket>,
    sampled: Sampled,
    /// Every field of `TCP_INFO` at every look that is a row; they stay at the host that sends.
    looks: Looks,
    last: TcpInfo,
    rtt: Histogram,
    rounds: Vec<Round>,
    round_at: u64,
    completed: Option<Time>,
    /// Bytes read.
    bytes: u64,
    counts: ReceiverCounts,
    at_measuring: Option<ReceiverCounts>,
    arrivals: ArrivalRecorder,
    failure: Option<String>,
}

#[derive(Debug)]
enum Connection {
    /// Not yet.
    None,
    Dialled(TcpStream),
    Open(TcpStream),
    /// All is written; the other side has not acknowledged all of it.
    Written(TcpStream),
    Gone,
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
                    if matches!(flow.connection, Connection::None) && now >= flow.started {
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
            let (Connection::Open(stream) | Connection::Written(stream)) = &flow.connection else {
                continue;
            };
            let (Ok(local), Ok(remote)) = (stream.local_addr(), stream.peer_addr()) else {
                continue;
            };
            // One that is closed has no window any more, and nothing new to tell.
            if let Ok(Some(socket)) = diag.connection(local, remote)
                && socket.info.count(&SND_CWND) > 0
            {
                flow.sample(now, k, socket.info, step, self.spec.measure_from);
            }
            let rtt = Span::from_micros(flow.last.count(&RTT));
            next = next.min((rtt / LOOKS).max(SHORTEST));
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

impl<'a> Flow<'a> {
    fn new(f: &'a FlowSpec, sends: bool, spec: &RunSpec) -> Self {
        let transfer = f.sender.transfer.map(|n| n * u64::from(f.sender.mss));
        Self {
            spec: f,
            sends,
            started: f.started(spec.seed),
            connection: Connection::None,
            left: transfer.unwrap_or(u64::MAX),
            before: 0,
            greeting: None,
            sampled: Sampled::default(),
            looks: Looks::new(FIELDS.iter().map(|f| LookField {
                name: f.name,
                unit: f.unit,
            })),
            last: TcpInfo::default(),
            rtt: Histogram::default(),
            rounds: Vec::new(),
            round_at: 0,
            completed: None,
            bytes: 0,
            counts: ReceiverCounts::default(),
            at_measuring: None,
            arrivals: ArrivalRecorder::new(spec.interval),
            failure: None,
        }
    }

    /// Whatever fails ends the flow and is told.
    fn keep(&mut self, step: impl FnOnce(&mut Self) -> io::Result<()>) {
        if let Err(e) = step(self) {
            self.fail(&e);
        }
    }

    /// As it was seen last; zero before.
    fn rtt_now(&self) -> Span {
        Span::from_micros(self.last.count(&RTT))
    }

    fn fail(&mut self, error: &io::Error) {
        self.failure.get_or_insert_with(|| error.to_string());
        self.cut();
    }

    /// Nothing of it goes on behind it.
    fn cut(&mut self) {
        let abort = nix::libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        if let Connection::Dialled(stream)
        | Connection::Open(stream)
        | Connection::Written(stream) = &self.connection
        {
            let _ = setsockopt(stream, sockopt::Linger, &abort);
        }
        self.connection = Connection::Gone;
    }

    fn dial(&mut self, to: SocketAddr, shown: &Ticket) -> io::Result<()> {
        let family = match to {
            SocketAddr::V4(_) => AddressFamily::Inet,
            SocketAddr::V6(_) => AddressFamily::Inet6,
        };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(family, SockType::Stream, flags, None)?;
        // The MSS of the option has the twelve bytes that time stamps take of each segment.
        setsockopt(
            &socket,
            sockopt::TcpMaxSeg,
            &(self.spec.sender.mss + STAMPS),
        )?;
        self.prepare(&socket)?;
        match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(e) => return Err(e.into()),
        }
        self.before = shown.len() as u64;
        self.connection = Connection::Dialled(TcpStream::from(socket));
        // Written as soon as the connection is there.
        self.greeting = Some(*shown);
        Ok(())
    }

    fn accept(&mut self, stream: TcpStream) -> io::Result<()> {
        self.prepare(&stream)?;
        self.connection = Connection::Open(stream);
        Ok(())
    }

    /// The congestion control of a sender, read back; the buffer of a sink.
    fn prepare(&self, socket: &impl AsFd) -> io::Result<()> {
        if !self.sends {
            let window = self.spec.receiver.window.max;
            return match window.and_then(|w| usize::try_from(w).ok()) {
                None => Ok(()),
                Some(w) => {
                    let bytes = w.saturating_mul(self.spec.sender.mss as usize);
                    sink::offer(socket, bytes)
                }
            };
        }
        let wanted = module(&self.spec.stack);
        setsockopt(socket, sockopt::TcpCongestion, &wanted.into())
            .map_err(|e| io::Error::other(format!("congestion control `{wanted}`: {e}")))?;
        let set = getsockopt(socket, sockopt::TcpCongestion)?;
        match set.to_str().map(|s| s.trim_end_matches('\0')) {
            Some(set) if set == wanted => Ok(()),
            _ => Err(io::Error::other(format!(
                "the kernel took another congestion control than `{wanted}`: `{}`",
                set.to_string_lossy()
            ))),
        }
    }

    /// The event that the next step waits for; `None`: none.
    fn wants(&self, held: bool) -> Option<PollFd<'_>> {
        let (stream, flags) = match &self.connection {
            Connection::Dialled(stream) => (stream, PollFlags::POLLOUT),
            Connection::Open(stream) if !self.sends => (stream, PollFlags::POLLIN),
            Connection::Open(stream) if !held => (stream, PollFlags::POLLOUT),
            _ => return None,
        };
        Some(PollFd::new(stream.as_fd(), flags))
    }

    /// The connection is there, and the ticket shown; false: not yet.
    fn is_open(&mut self) -> io::Result<bool> {
        let Connection::Dialled(stream) = &mut self.connection else {
            return Ok(matches!(self.connection, Connection::Open(_)));
        };
        if let Some(e) = stream.take_error()? {
            return Err(e);
        }
        if stream.peer_addr().is_err() {
            return Ok(false);
        }
        if let Some(shown) = self.greeting.take() {
            // An empty buffer takes so few bytes whole.
            stream.write_all(&shown)?;
        }
        if let Connection::Dialled(stream) =
            std::mem::replace(&mut self.connection, Connection::Gone)
        {
            self.connection = Connection::Open(stream);
        }
        Ok(true)
    }

    fn send(&mut self, chunk: &[u8], turns: usize) -> io::Result<u64> {
        if !self.is_open()? {
            return Ok(0);
        }
        let mut bytes = 0;
        let Connection::Open(stream) = &mut self.connection else {
            return Ok(0);
        };
        for _ in 0..turns {
            if self.left == 0 {
                break;
            }
            let most = chunk.len() - chunk.len() % self.spec.sender.mss.max(1) as usize;
            let n = usize::try_from(self.left).unwrap_or(usize::MAX).min(most);
            match stream.write(&chunk[..n]) {
                Ok(n) => {
                    bytes += n as u64;
                    if self.spec.sender.transfer.is_some() {
                        self.left -= n as u64;
                    }
                }
                Err(e) if is_nothing(&e) => break,
                Err(e) => return Err(e),
            }
        }
        if self.left == 0 {
            stream.shutdown(std::net::Shutdown::Write)?;
            if let Connection::Open(stream) =
                std::mem::replace(&mut self.connection, Connection::Gone)
            {
                self.connection = Connection::Written(stream);
            }
        }
        Ok(bytes)
    }

    fn receive(
        &mut self,
        room: &mut [u8],
        turns: usize,
        now: Time,
        measure_from: Time,
    ) -> io::Result<u64> {
        if !self.is_open()? {
            return Ok(0);
        }
        let Connection::Open(stream) = &self.connection else {
            return Ok(0);
        };
        let mut bytes = 0;
        let mut ended = false;
        for _ in 0..turns {
            // The kernel throws the data away itself (tcp(7), MSG_TRUNC).
            match recv(stream.as_raw_fd(), room, MsgFlags::MSG_TRUNC) {
                Ok(0) => ended = true,
                Ok(n) => {
                    bytes += n as u64;
                    continue;
                }
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                // Cut off by its end.
                Err(Errno::ECONNRESET) => ended = true,
                Err(e) => return Err(e.into()),
            }
            break;
        }
        if now >= measure_from && self.at_measuring.is_none() {
            self.at_measuring = Some(self.counts);
        }
        self.arrivals.on_arrival(now, &self.counts);
        self.bytes += bytes;
        let segments = self.bytes / u64::from(self.spec.sender.mss.max(1));
        (self.counts.delivered, self.counts.arrived) = (segments, segments);
        // The sender's kernel answers questions about a connection for as long as this end is open.
        if ended
            && let Connection::Open(stream) =
                std::mem::replace(&mut self.connection, Connection::Gone)
        {
            self.connection = Connection::Written(stream);
        }
        Ok(bytes)
    }

    /// With the headers of full packets.
    fn on_wire(&self, bytes: u64) -> u64 {
        let mss = u64::from(self.spec.sender.mss.max(1));
        bytes + bytes.div_ceil(mss) * u64::from(self.spec.sender.header)
    }

    fn sample(&mut self, now: Time, k: usize, info: TcpInfo, step: Span, measure_from: Time) {
        let rows = self.sampled.rows.len();
        self.sampled.take(now, k, &info, step, measure_from);
        if self.sampled.rows.len() > rows {
            self.looks.push(now, info.all());
        }
        if let Some(micros) = info.get(&RTT).filter(|_| now >= measure_from) {
            self.rtt.record(Span::from_micros(micros));
        }
        let delivered = info.count(&DELIVERED);
        if delivered >= self.round_at && delivered > 0 {
            self.round_at = delivered + info.count(&UNACKED);
            self.rounds.push(Round {
                start: now,
                delivered,
                cwnd: info.count(&SND_CWND) as f64,
            });
        }
        let all = self.spec.sender.transfer;
        let all = all.map(|n| n * u64::from(self.spec.sender.mss) + self.before);
        if self.completed.is_none() && all.is_some_and(|all| info.count(&BYTES_ACKED) >= all) {
            self.completed = Some(now);
        }
        self.last = info;
    }

    fn live(&self) -> LiveFlow {
        if !self.sends {
            return LiveFlow {
                delivered: self.counts.delivered,
                ..LiveFlow::default()
            };
        }
        let acked = self.last.count(&BYTES_ACKED).saturating_sub(self.before);
        let rtt = self.last.get(&RTT).filter(|us| *us > 0);
        LiveFlow {
            delivered: acked / u64::from(self.spec.sender.mss.max(1)),
            retransmits: Some(self.last.count(&TOTAL_RETRANS)),
            // None before the first look.
            cwnd: self.last.get(&SND_CWND).map(|segments| segments as f64),
            srtt: rtt.map(Span::from_micros),
        }
    }

    fn sender(self, flow: u32, measure_from: Time, end: Time) -> SenderReport {
        let until = self.completed.unwrap_or(end);
        let (cwnd_mean, cwnd_max) = self.sampled.window(measure_from.max(self.started), until);
        let sampled = self.sampled;
        let measured = sampled.episodes.iter().filter(|e| {
            e.at >= measure_from
                && matches!(
                    e.kind,
                    EpisodeKind::Congestion(_) | EpisodeKind::LostRetransmission
                )
        });
        let tickets = u64::from(self.before > 0);
        let sent = self.last.count(&DATA_SEGS_OUT).saturating_sub(tickets);
        SenderReport {
            flow,
            totals: FlowTotals {
                sent,
                retransmits: self.last.count(&TOTAL_RETRANS),
                loss_events: sampled.loss_events,
                loss_events_measured: measured.count() as u64,
                timeouts: sampled.timeouts,
                undone: sampled.undone,
                limited: sampled.limited,
                ..FlowTotals::default()
            },
            offered: sent,
            record: SenderRecord {
                rtt: self.rtt,
                cwnd_mean,
                cwnd_max,
                rounds: self.rounds,
                episodes: sampled.episodes,
                series: Series {
                    rows: sampled.rows,
                    variables: Vec::new(),
                },
                looks: self.looks,
                ..SenderRecord::default()
            },
            started: self.started,
            completed: self.completed,
            acked: self.last.count(&DELIVERED).saturating_sub(tickets),
        }
    }

    fn receiver(self, flow: u32, end: Time) -> ReceiverReport {
        let counts = self.counts;
        let before = self.at_measuring.unwrap_or(counts);
        ReceiverReport {
            flow,
            totals: FlowTotals {
                delivered: counts.delivered,
                delivered_measured: counts.delivered - before.delivered,
                arrived_measured: counts.arrived - before.arrived,
                ..FlowTotals::default()
            },
            arrived: counts.arrived,
            not_taken: 0,
            arrivals: self.arrivals.finish(end, &counts),
        }
    }
}

/// Bytes of the option of RFC 7323 in every segment.
const STAMPS: u32 = 12;

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
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
