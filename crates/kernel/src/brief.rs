//! Short flows: a connection each, opened when it is due. Senders and sinks of a class share a
//! thread, in the sender's namespace; a sink answers the last byte with its FIN, which brings the
//! last ACK along: until it comes is the completion time.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use fullpipe_emulate::namespace::{HostSide, Side};
use fullpipe_observe::SocketDiag;
use fullpipe_observe::tcp_info::{
    DATA_SEGS_OUT, RTT, SND_SSTHRESH, TOTAL_RETRANS, TOTAL_RTO, TcpInfo,
};
use fullpipe_run::traffic::PerInterval;
use fullpipe_run::{ArrivalOutcome, ArrivalSpec, FlowTotals, Histogram, RunSpec, Transfer};
use fullpipe_units::{Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    Backlog, MsgFlags, SockaddrStorage, bind, connect, listen, recv, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;

use crate::plan::ClassPlan;
use crate::sockets::{Departures, Ends, Stage, abort_on_close, is_nothing, reserve, stream};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;
/// Longest wait.
const GLANCE: Span = Span::from_millis(20);
/// Segments of one call.
const SEGMENTS: u64 = 64;

/// A class of short flows, its sink listening.
#[derive(Debug)]
pub struct Brief<'a> {
    plan: &'a ClassPlan,
    class: &'a ArrivalSpec,
    spec: &'a RunSpec,
    ends: Ends,
    listener: TcpListener,
}

/// The sender's end of a flow.
#[derive(Debug)]
struct Sending {
    flow: usize,
    stream: TcpStream,
    /// Bytes that are still to be written.
    left: u64,
    is_connected: bool,
}

/// The sink's end.
#[derive(Debug)]
struct Taking {
    stream: TcpStream,
    /// Bytes that are still to come.
    left: u64,
}

/// What is known of the flows so far.
#[derive(Debug)]
struct Ledger {
    transfers: Vec<Transfer>,
    totals: FlowTotals,
    rtt: Histogram,
    delivered: PerInterval,
    mss: u64,
    measure_from: Time,
    diag: Option<SocketDiag>,
}

impl<'a> Brief<'a> {
    /// A class between its own addresses on two hosts, near and far.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn new(
        plan: &'a ClassPlan,
        class: &'a ArrivalSpec,
        spec: &'a RunSpec,
        ends: Ends,
        hosts: [&HostSide; 2],
    ) -> io::Result<Self> {
        let [near, far] = hosts;
        let at_sink = match plan.flow.from {
            Side::Near => far,
            Side::Far => near,
        };
        let (to, buffer) = (ends.sink, plan.flow.receive_buffer);
        let module = plan.flow.sink_module;
        let listener: OwnedFd = at_sink.enter(move || {
            let socket = stream(to)?;
            setsockopt(&socket, sockopt::ReuseAddr, &true)?;
            if let Some(bytes) = buffer {
                reserve(&socket, bytes)?;
            }
            if let Some(module) = module {
                setsockopt(&socket, sockopt::TcpCongestion, &module.to_owned().into())?;
            }
            bind(socket.as_raw_fd(), &SockaddrStorage::from(to))?;
            listen(&socket, Backlog::new(BACKLOG)?)?;
            Ok(socket)
        })?;
        Ok(Self {
            plan,
            class,
            spec,
            ends,
            listener: listener.into(),
        })
    }

    /// Side of the senders.
    pub fn from(&self) -> Side {
        self.plan.flow.from
    }

    /// All flows of the class until the run is over, on a thread in the senders' namespace.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn run(self, stage: Stage<'_>) -> io::Result<ArrivalOutcome> {
        let mss = u64::from(self.plan.flow.mss.max(1));
        let mut ledger = Ledger {
            transfers: Vec::new(),
            totals: FlowTotals::default(),
            rtt: Histogram::default(),
            delivered: PerInterval::new(self.spec.interval),
            mss,
            measure_from: self.spec.measure_from,
            diag: SocketDiag::open().ok(),
        };
        let mut waiting: VecDeque<_> = self.plan.flows.iter().copied().collect();
        let mut sending: Vec<Sending> = Vec::new();
        let mut taking: Vec<Taking> = Vec::new();
        let mut sizes: HashMap<u16, u64> = HashMap::new();
        let chunk = vec![0; usize::try_from(SEGMENTS * mss).unwrap_or(1 << 16)];
        let mut room = vec![0; 1 << 17];
        while !stage.is_over() {
            while let Some(&(start, size)) = waiting.front()
                && start <= stage.now()
            {
                waiting.pop_front();
                let stream = self.dial()?;
                sizes.insert(stream.local_addr()?.port(), size * mss);
                sending.push(Sending {
                    flow: ledger.begin(start, size),
                    stream,
                    left: size * mss,
                    is_connected: false,
                });
            }
            let next = waiting.front().map_or(Time::MAX, |(start, _)| *start);
            let until = next.saturating_since(stage.now()).min(GLANCE);
            wait(&self.listener, &sending, &taking, until)?;
            self.accept(&mut taking, &sizes)?;
            let now = stage.now();
            let mut i = 0;
            while i < taking.len() {
                match taking[i].take(now, &mut room, &mut ledger)? {
                    true => drop(taking.swap_remove(i)),
                    false => i += 1,
                }
            }
            let mut i = 0;
            while i < sending.len() {
                match sending[i].step(&chunk)? {
                    true => ledger.complete(stage.now(), &sending.swap_remove(i)),
                    false => i += 1,
                }
            }
        }
        sending.iter().for_each(|rest| ledger.look(rest));
        Ok(ArrivalOutcome {
            name: self.class.template.name.clone(),
            mss: self.plan.flow.mss,
            packet: self.class.template.sender.packet(),
            transfers: ledger.transfers,
            rtt: ledger.rtt,
            totals: ledger.totals,
            delivered_per_interval: ledger.delivered.finish(Time::ZERO + self.spec.duration),
        })
    }

    fn dial(&self) -> io::Result<TcpStream> {
        let socket = stream(self.ends.sink)?;
        setsockopt(
            &socket,
            sockopt::TcpCongestion,
            &self.plan.flow.module.clone().into(),
        )?;
        Departures::of(&self.plan.flow).tell(&socket)?;
        let own = SocketAddr::new(self.ends.sender, 0);
        bind(socket.as_raw_fd(), &SockaddrStorage::from(own))?;
        abort_on_close(&socket);
        match connect(socket.as_raw_fd(), &SockaddrStorage::from(self.ends.sink)) {
            Ok(()) | Err(Errno::EINPROGRESS) => Ok(socket.into()),
            Err(e) => Err(e.into()),
        }
    }

    fn accept(&self, taking: &mut Vec<Taking>, sizes: &HashMap<u16, u64>) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, from)) => {
                    stream.set_nonblocking(true)?;
                    abort_on_close(&stream);
                    let left = sizes.get(&from.port()).copied().unwrap_or(0);
                    taking.push(Taking { stream, left });
                }
                Err(e) if is_nothing(&e) => return Ok(()),
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// Until one of them has something to do, or `most` is over.
fn wait(
    listener: &TcpListener,
    sending: &[Sending],
    taking: &[Taking],
    most: Span,
) -> io::Result<()> {
    let mut polled = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    polled.extend(sending.iter().map(|s| {
        // Until all is written, and then for the FIN of the sink.
        let what = match s.left > 0 || !s.is_connected {
            true => PollFlags::POLLOUT,
            false => PollFlags::POLLIN,
        };
        PollFd::new(s.stream.as_fd(), what)
    }));
    // One that has all and waits for the sender to close needs no wake-up of its own.
    let taking = taking.iter().filter(|t| t.left > 0);
    polled.extend(taking.map(|t| PollFd::new(t.stream.as_fd(), PollFlags::POLLIN)));
    let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(most.as_nanos()));
    match ppoll(&mut polled, Some(timeout), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

impl Sending {
    /// Writes what it can; true: the sink has all of it and said so.
    fn step(&mut self, chunk: &[u8]) -> io::Result<bool> {
        if !self.is_connected {
            if let Some(e) = self.stream.take_error()? {
                return Err(e);
            }
            if self.stream.peer_addr().is_err() {
                return Ok(false);
            }
            self.is_connected = true;
        }
        while self.left > 0 {
            let n = usize::try_from(self.left)
                .unwrap_or(usize::MAX)
                .min(chunk.len());
            match self.stream.write(&chunk[..n]) {
                Ok(n) => self.left -= n as u64,
                Err(e) if is_nothing(&e) => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        match self.stream.read(&mut [0; 1]) {
            Ok(n) => Ok(n == 0),
            Err(e) if is_nothing(&e) => Ok(false),
            Err(e) => Err(e),
        }
    }
}

impl Taking {
    /// Reads what is there; true: nothing more is to be done.
    fn take(&mut self, now: Time, room: &mut [u8], ledger: &mut Ledger) -> io::Result<bool> {
        loop {
            // The kernel throws the data away itself (tcp(7), MSG_TRUNC).
            match recv(self.stream.as_raw_fd(), room, MsgFlags::MSG_TRUNC) {
                Ok(0) | Err(Errno::ECONNRESET) => return Ok(true),
                Ok(n) => {
                    let before = self.left;
                    self.left = before.saturating_sub(n as u64);
                    let segments = |bytes: u64| bytes.div_ceil(ledger.mss);
                    ledger.arrived(now, segments(before) - segments(self.left));
                    if self.left == 0 {
                        self.stream.shutdown(Shutdown::Write)?;
                    }
                }
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(false),
                Err(e) => return Err(e.into()),
            }
        }
    }
}

impl Ledger {
    fn begin(&mut self, start: Time, size: u64) -> usize {
        self.transfers.push(Transfer {
            start,
            size,
            completion: None,
            lost: 0,
            retransmits: 0,
            timeouts: 0,
        });
        self.transfers.len() - 1
    }

    fn arrived(&mut self, now: Time, segments: u64) {
        self.totals.delivered += segments;
        if now >= self.measure_from {
            self.totals.delivered_measured += segments;
            self.totals.arrived_measured += segments;
        }
        self.delivered.add(now, segments);
    }

    fn complete(&mut self, now: Time, done: &Sending) {
        let start = self.transfers[done.flow].start;
        self.transfers[done.flow].completion = Some(now.saturating_since(start));
        self.look(done);
    }

    /// What the kernel counted, once for each flow.
    fn look(&mut self, flow: &Sending) {
        let ends = flow
            .stream
            .local_addr()
            .and_then(|a| Ok((a, flow.stream.peer_addr()?)));
        let (Some(diag), Ok((local, remote))) = (&mut self.diag, ends) else {
            return;
        };
        let found = diag.connection(local, remote).ok().flatten();
        let info = found.map_or_else(TcpInfo::default, |socket| socket.info);
        let transfer = &mut self.transfers[flow.flow];
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        transfer.retransmits = small(info.count(&TOTAL_RETRANS));
        transfer.timeouts = small(info.count(&TOTAL_RTO));
        self.totals.sent += info.count(&DATA_SEGS_OUT);
        self.totals.retransmits += info.count(&TOTAL_RETRANS);
        self.totals.timeouts += info.count(&TOTAL_RTO);
        // A threshold stems from a loss, at least one.
        let reduced = u64::from(info.get(&SND_SSTHRESH).is_some());
        self.totals.loss_events += reduced;
        if transfer.start >= self.measure_from {
            self.totals.loss_events_measured += reduced;
            if let Some(micros) = info.get(&RTT) {
                self.rtt.record(Span::from_micros(micros));
            }
        }
    }
}
