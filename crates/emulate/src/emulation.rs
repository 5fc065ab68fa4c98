//! The loop between the two devices: reads, cuts, has the path decide, merges, writes.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use fullpipe_realtime::alert::Alert;
use fullpipe_realtime::pace::Pace;
use fullpipe_realtime::pool::{self, Pool};
use fullpipe_realtime::priority::{self, Priority};
use fullpipe_run::{CrossOutcome, Histogram, LinkOutcome, RunSpec, Violation};
use fullpipe_sim::{Datagram, Departure, PacketOutcome, Path};
use fullpipe_units::{Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use nix::unistd::{read, write};

use crate::cross::{self, Cross};
use crate::cut::cut;
use crate::merge::Frame;
use crate::namespace::Devices;
use crate::packet::{Layout, UDP};
use crate::tap::{Passage, Passed, Tap};
use crate::vnet::{self, Partial, VnetHeader};
use crate::ways::Ways;

/// Settings of the loop.
#[derive(Clone, Copy, Debug)]
pub struct LoopConfig {
    /// Merge what leaves at once; otherwise every packet is written by itself.
    pub merge: bool,
    /// Ask for real-time priority; where it is not allowed, the loop runs without.
    pub real_time: bool,
}

/// What a loop did, and how late.
#[derive(Clone, Debug)]
pub struct LoopOutcome {
    /// The links of the specification by their index.
    pub links: Vec<(usize, LinkOutcome)>,
    /// How much later than computed each packet left.
    pub lateness: Histogram,
    /// Packets of the wire that came.
    pub arrived: u64,
    /// Packets of the wire that left.
    pub left: u64,
    /// Reads and writes that moved them.
    pub reads: u64,
    /// See `reads`.
    pub writes: u64,
    /// Packets that are none of the path's: for a group, malformed, of no pair of hosts.
    pub ignored: u64,
    /// Packets that the path itself lost: no room in memory.
    pub overflow: u64,
    /// Packets that a device refused.
    pub refused: u64,
    /// Processor time of the loop.
    pub cpu: Span,
    /// Real time of the loop.
    pub span: Span,
    /// Turns of the loop.
    pub turns: u64,
    /// It had real-time priority all the time.
    pub real_time: bool,
    /// Longest tick; zero: it woke up for every packet.
    pub grain: Span,
    /// What passed, if somebody wanted to know ([`Loop::with_tap`]).
    pub passed: Vec<Passed>,
    /// Cross traffic of the specification, if it was carried ([`Loop::with_cross_traffic`]).
    pub cross: Vec<CrossOutcome>,
}

/// A loop and all that it holds.
#[derive(Debug)]
pub struct Loop {
    devices: Devices,
    epoch: Instant,
    path: Path,
    ways: Ways,
    pool: Pool<Note>,
    /// What is due, in the order of time.
    due: VecDeque<Departure>,
    frames: [Frame; 2],
    /// When the packets of a frame were to leave.
    dues: [Vec<Time>; 2],
    input: Box<[u8]>,
    piece: Vec<u8>,
    merge: bool,
    /// Begin of this turn, from which the next tick counts.
    woke: Time,
    pace: Pace,
    alert: Alert,
    lateness: Histogram,
    counts: Counts,
    tap: Option<Tap>,
    cross: Option<Cross>,
}

/// What is known of a packet in the pool.
#[derive(Clone, Copy, Debug)]
struct Note {
    to: u8,
    pair: u8,
    checksum: Option<Partial>,
}

impl Note {
    fn passage(&self) -> Passage {
        Passage {
            from: 1 - usize::from(self.to),
            pair: usize::from(self.pair),
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    arrived: u64,
    left: u64,
    reads: u64,
    writes: u64,
    ignored: u64,
    overflow: u64,
    refused: u64,
    turns: u64,
}

/// Frames that are read from a device before the other one has its turn.
const FRAMES: usize = 256;
/// Shortest sleep between two turns: others have their turn, too.
const BREATH: Span = Span::from_micros(10);
/// Longest wait.
const IDLE: Span = Span::from_millis(50);

impl Loop {
    /// Between two devices, on the path of `spec`.
    /// Time zero is `epoch`.
    pub fn new(spec: &RunSpec, ways: Ways, path: Path, devices: Devices, epoch: Instant) -> Self {
        let longest = pool::largest(spec);
        Self {
            devices,
            epoch,
            path,
            ways,
            pool: Pool::new(longest, pool::bound(spec)),
            due: VecDeque::new(),
            frames: [Frame::new(), Frame::new()],
            dues: [Vec::new(), Vec::new()],
            input: vec![0; vnet::LEN + usize::from(u16::MAX)].into(),
            piece: Vec::new(),
            merge: true,
            woke: Time::ZERO,
            pace: Pace::default(),
            alert: Alert::default(),
            lateness: Histogram::default(),
            counts: Counts::default(),
            tap: None,
            cross: None,
        }
    }

    /// Counts what passes, and loses what flows of `spec` prescribe.
    #[must_use]
    pub fn with_tap(mut self, spec: &RunSpec) -> Self {
        self.tap = Some(Tap::new(spec));
        self
    }

    /// Carries the datagrams and probes of `spec`, too. `None`: a way is too long.
    #[must_use]
    pub fn with_cross_traffic(mut self, spec: &RunSpec) -> Option<Self> {
        self.cross = Some(Cross::new(spec, &mut self.path)?);
        Some(self)
    }

    /// Until `stop` is readable.
    ///
    /// # Errors
    /// A device is gone, or the path has lost a packet without saying so.
    pub fn run(
        mut self,
        config: &LoopConfig,
        stop: &EventFd,
    ) -> Result<LoopOutcome, EmulationError> {
        prctl::set_timerslack(1).map_err(io::Error::from)?;
        self.merge = config.merge;
        let cpu = priority::processor_time();
        let mut priority = Priority::new(config.real_time, self.now());
        loop {
            self.counts.turns += 1;
            self.woke = self.now();
            self.take_in()?;
            let now = self.now();
            if let Some(cross) = &mut self.cross {
                cross.offer(now, &mut self.path);
            }
            self.path.advance(now);
            self.sort_departures();
            self.hand_out();
            priority.watch(self.now());
            if self.wait(stop)? {
                break;
            }
        }
        Ok(LoopOutcome {
            arrived: self.counts.arrived,
            left: self.counts.left,
            reads: self.counts.reads,
            writes: self.counts.writes,
            ignored: self.counts.ignored,
            overflow: self.counts.overflow,
            refused: self.counts.refused,
            turns: self.counts.turns,
            cpu: priority::processor_time() - cpu,
            span: self.now() - Time::ZERO,
            real_time: priority.is_real_time(),
            grain: self.pace.coarsest(),
            lateness: self.lateness,
            links: self.path.finish()?,
            passed: self.tap.map_or_else(Vec::new, Tap::finish),
            cross: self.cross.map_or_else(Vec::new, Cross::finish),
        })
    }

    fn now(&self) -> Time {
        since(self.epoch)
    }

    fn take_in(&mut self) -> io::Result<()> {
        for from in [0, 1] {
            for _ in 0..FRAMES {
                let n = match read(&self.devices[from], &mut self.input) {
                    Ok(n) => n,
                    Err(Errno::EAGAIN | Errno::EINTR) => break,
                    Err(e) => return Err(e.into()),
                };
                self.counts.reads += 1;
                self.frame(from, n);
            }
        }
        Ok(())
    }

    /// A frame of `n` bytes has come in from a side.
    fn frame(&mut self, from: usize, n: usize) {
        let now = self.now();
        let Self {
            path,
            ways,
            pool,
            input,
            piece,
            counts,
            tap,
            cross,
            ..
        } = self;
        let frame = &input[..n];
        let packet = frame.get(vnet::LEN..).unwrap_or_default();
        let (Some(header), Some(layout)) = (VnetHeader::decode(frame), Layout::of(packet)) else {
            counts.ignored += 1;
            return;
        };
        let pair = layout.pair(packet);
        let way = match layout.is_chatter(packet) {
            true => None,
            false => ways.of(from, pair),
        };
        let Some(way) = way else {
            counts.ignored += 1;
            return;
        };
        let flow = layout.flow(packet);
        if let Some(cross) = cross {
            cross.offer(now, path);
        }
        let each = |packet: &[u8], checksum| {
            counts.arrived += 1;
            let layout = layout_of(&layout, packet);
            if let Some(tap) = tap
                && tap.sent(now, Passage { from, pair }, packet, &layout)
            {
                return;
            }
            let note = Note {
                to: 1 - from as u8,
                // Ways has at most 255.
                pair: pair as u8,
                checksum,
            };
            let Some(token) = pool.put(packet, note) else {
                counts.overflow += 1;
                return;
            };
            let datagram = Datagram {
                token,
                kind: layout.kind(packet),
                flow,
                size: packet.len() as u16,
                ect: matches!(layout.ecn(packet), 1 | 2),
            };
            path.offer(now, way, &datagram);
        };
        if cut(&header, packet, &layout, piece, each).is_err() {
            counts.ignored += 1;
        }
    }

    fn sort_departures(&mut self) {
        for departure in self.path.departures() {
            if departure.token & cross::BIT != 0 {
                if let Some(cross) = &mut self.cross {
                    cross.ended(&departure);
                }
                continue;
            }
            match departure.outcome {
                PacketOutcome::Arrived { .. } => self.due.push_back(departure),
                PacketOutcome::Dropped => {
                    if let Some(tap) = &mut self.tap {
                        let (packet, note) = self.pool.get(departure.token);
                        tap.dropped(departure.at, note.passage(), packet);
                    }
                    self.pool.free(departure.token);
                }
            }
        }
    }

    /// Writes what is due.
    fn hand_out(&mut self) {
        while let Some(departure) = self.due.pop_front() {
            if departure.outcome == (PacketOutcome::Arrived { ce: true }) {
                let packet = self.pool.get_mut(departure.token);
                if let Some(layout) = Layout::of(packet) {
                    layout.mark(packet);
                }
            }
            let (packet, note) = self.pool.get(departure.token);
            let to = usize::from(note.to);
            if let Some(tap) = &mut self.tap
                && tap.got(since(self.epoch), note.passage(), packet)
            {
                self.pool.free(departure.token);
                continue;
            }
            if !self.frames[to].append(packet, note.checksum) {
                self.flush(to);
                let (packet, note) = self.pool.get(departure.token);
                let merges =
                    self.merge && (self.devices[to].merges_datagrams || !is_datagram(packet));
                self.frames[to].begin(packet, note.checksum, merges);
            }
            self.dues[to].push(departure.at);
            self.pool.free(departure.token);
        }
        self.flush(0);
        self.flush(1);
    }

    fn flush(&mut self, to: usize) {
        let count = self.frames[to].count() as u64;
        if count == 0 {
            return;
        }
        let written = write(&self.devices[to], self.frames[to].close());
        let now = self.now();
        for due in self.dues[to].drain(..) {
            self.lateness.record(now.saturating_since(due));
        }
        match written {
            Ok(_) => {
                self.counts.writes += 1;
                self.counts.left += count;
                self.pace.count(count);
            }
            Err(_) => self.counts.refused += count,
        }
    }

    /// True if it is time to end.
    fn wait(&mut self, stop: &EventFd) -> io::Result<bool> {
        let now = self.now();
        let grain = self.pace.grain(now);
        if grain > Span::ZERO && self.path.inside() > 0 {
            // A tick, whatever comes: at this rate a wake-up each costs more. It counts from the
            // last wake-up, so that what a turn takes makes nothing later.
            let mut ended = [PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
            let left = (self.woke + grain).saturating_since(now).max(BREATH);
            return poll(&mut ended, left, 0);
        }
        let until = self.path.next_event().unwrap_or(Time::MAX);
        let cross = self.cross.as_ref().map_or(Time::MAX, Cross::next);
        let due = until.min(cross);
        let span = due.saturating_since(now).min(IDLE);
        let early = self.alert.early(span);
        let mut polled = [
            PollFd::new(stop.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.devices[0].as_fd(), PollFlags::POLLIN),
            PollFd::new(self.devices[1].as_fd(), PollFlags::POLLIN),
        ];
        let ended = poll(&mut polled, span - early, 0)?;
        if span < IDLE && !polled.iter().any(|fd| fd.any() == Some(true)) {
            self.alert
                .woke(self.now().saturating_since(now + span - early));
            while self.now() < due {
                std::hint::spin_loop();
            }
        }
        Ok(ended)
    }
}

/// Time of a run that began at `epoch`.
pub fn since(epoch: Instant) -> Time {
    let nanos = u64::try_from(epoch.elapsed().as_nanos());
    Time::from_nanos(nanos.unwrap_or(u64::MAX))
}

/// Waits; true if the descriptor at `stop` is readable.
fn poll(polled: &mut [PollFd<'_>], span: Span, stop: usize) -> io::Result<bool> {
    let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(span.as_nanos()));
    match ppoll(polled, Some(timeout), None) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(e) => return Err(e.into()),
    }
    Ok(polled[stop].any() == Some(true))
}

/// The layout of a piece: that of the whole but for its length.
fn layout_of(whole: &Layout, piece: &[u8]) -> Layout {
    Layout {
        len: piece.len(),
        ..*whole
    }
}

fn is_datagram(packet: &[u8]) -> bool {
    Layout::of(packet).is_some_and(|l| l.protocol == UDP)
}

/// Why there is no emulation, or no result of it.
#[derive(Debug, thiserror::Error)]
pub enum EmulationError {
    /// The operating system.
    #[error("path in real time: {0}")]
    Io(#[from] io::Error),
    /// A fault of the path itself.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// A route has more links than a path allows, or there are more pairs of hosts than addresses.
    #[error(
        "more than 255 links in a row, or more than {} pairs of hosts",
        crate::namespace::PAIRS
    )]
    TooMany,
    /// A namespace or a device.
    #[error(transparent)]
    Host(#[from] crate::namespace::HostError),
    /// The kernel's queues cannot do what the path is to do.
    #[error(transparent)]
    Refused(#[from] crate::netem::Refused),
    /// The kernel has not all that a path of its queues takes.
    #[error(transparent)]
    Lacking(#[from] crate::netem::Lacking),
    /// Processes of the run.
    #[error("a process namespace: {0}")]
    Household(io::Error),
    /// The thread ended with a panic.
    #[error("the path's thread failed")]
    Thread,
}
