//! One flow over a TCP connection at one side: how the connection comes about, its data, and what
//! the kernel says of it.

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use fullpipe_flow::{EpisodeKind, ReceiverCounts};
use fullpipe_host::{ReceiverReport, SenderReport};
use fullpipe_observe::tcp_info::{
    BYTES_ACKED, DATA_SEGS_OUT, DELIVERED, RTT, SND_CWND, TOTAL_RETRANS, TcpInfo, UNACKED,
};
use fullpipe_observe::{FIELDS, Sampled};
use fullpipe_realtime::live::LiveFlow;
use fullpipe_run::{
    ArrivalRecorder, FlowSpec, FlowTotals, Histogram, LookField, Looks, Round, RunSpec,
    SenderRecord, Series,
};
use fullpipe_units::{Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrStorage, connect, getsockopt, recv,
    setsockopt, socket, sockopt,
};

use super::ticket::Ticket;
use super::{module, sink};

/// A flow at one side.
#[derive(Debug)]
pub(super) struct Flow<'a> {
    pub(super) spec: &'a FlowSpec,
    /// The data goes from here.
    pub(super) sends: bool,
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
    /// Error that ended the connection early.
    pub(super) failure: Option<String>,
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

impl<'a> Flow<'a> {
    pub(super) fn new(f: &'a FlowSpec, sends: bool, spec: &RunSpec) -> Self {
        let transfer = f.sender.transfer.map(|n| n * u64::from(f.sender.mss));
        Self {
            spec: f,
            sends,
            started: f.started(spec.seed),
            connection: Connection::None,
            left: transfer.unwrap_or(u64::MAX),
            before: 0,
            greeting: None,
            sampled: Sampled::since_handshake(),
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

    /// Its connection is to be made now.
    pub(super) fn is_due(&self, now: Time) -> bool {
        matches!(self.connection, Connection::None) && now >= self.started
    }

    /// Both ends of its connection, for as long as that carries data.
    pub(super) fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        let (Connection::Open(stream) | Connection::Written(stream)) = &self.connection else {
            return None;
        };
        Some((stream.local_addr().ok()?, stream.peer_addr().ok()?))
    }

    /// Whatever fails ends the flow and is told.
    pub(super) fn keep(&mut self, step: impl FnOnce(&mut Self) -> io::Result<()>) {
        if let Err(e) = step(self) {
            self.fail(&e);
        }
    }

    /// As it was seen last; zero before.
    pub(super) fn rtt_now(&self) -> Span {
        Span::from_micros(self.last.count(&RTT))
    }

    pub(super) fn fail(&mut self, error: &io::Error) {
        self.failure.get_or_insert_with(|| error.to_string());
        self.cut();
    }

    /// Nothing of it goes on behind it.
    pub(super) fn cut(&mut self) {
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

    pub(super) fn dial(&mut self, to: SocketAddr, shown: &Ticket) -> io::Result<()> {
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

    pub(super) fn accept(&mut self, stream: TcpStream) -> io::Result<()> {
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
    pub(super) fn wants(&self, held: bool) -> Option<PollFd<'_>> {
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

    pub(super) fn send(&mut self, chunk: &[u8], turns: usize) -> io::Result<u64> {
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

    pub(super) fn receive(
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
    pub(super) fn on_wire(&self, bytes: u64) -> u64 {
        let mss = u64::from(self.spec.sender.mss.max(1));
        bytes + bytes.div_ceil(mss) * u64::from(self.spec.sender.header)
    }

    pub(super) fn sample(
        &mut self,
        now: Time,
        k: usize,
        info: TcpInfo,
        step: Span,
        measure_from: Time,
    ) {
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

    pub(super) fn live(&self) -> LiveFlow {
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

    pub(super) fn sender(self, flow: u32, measure_from: Time, end: Time) -> SenderReport {
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

    pub(super) fn receiver(self, flow: u32, end: Time) -> ReceiverReport {
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
