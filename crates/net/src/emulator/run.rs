//! The loop of an emulator.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use fullpipe_realtime::pace::Pace;
use fullpipe_realtime::pool::{self, Pool};
use fullpipe_realtime::priority::{self, Priority};
use fullpipe_run::{CrossSpec, Fidelity, Histogram, Lateness, RunSpec};
use fullpipe_sim::{Datagram, Departure, PacketOutcome, Path};
use fullpipe_units::{Span, Time};

use super::losses::LossLog;
use super::routes::{Routes, Way};
use super::{EmulatorConfig, EmulatorError, EmulatorOutcome};
use crate::headers;
use crate::io::{Clock, Ecn, Inbox, Outbox, Socket, Stop, Waiter};

/// An emulator and all that it holds.
pub struct Running {
    clock: Clock,
    end: Time,
    path: Path,
    routes: Routes,
    /// Nothing leaves earlier after its arrival.
    least: Span,
    pool: Pool<Note>,
    sides: [Side; 2],
    /// Arrivals that the path has not been given, in no order.
    waiting: Vec<Arrival>,
    /// What has to leave, in the order of time.
    due: VecDeque<Departure>,
    pace: Pace,
    /// The operating system refused a datagram.
    stalled: bool,
    /// By the side that it left to.
    lateness: [Histogram; 2],
    losses: LossLog,
    counts: Counts,
}

/// One of the two sockets.
struct Side {
    socket: Socket,
    peer: Option<SocketAddr>,
    inbox: Inbox,
    outbox: Outbox,
    /// When what the outbox holds was to leave.
    due: VecDeque<Time>,
    /// Its socket refused, and the outbox has not been empty since.
    refused: bool,
}

/// What is known of a datagram in the pool.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// Code point when it came.
    ecn: Option<Ecn>,
    from_near: bool,
}

/// A datagram in the pool.
#[derive(Clone, Copy)]
struct Arrival {
    at: Time,
    token: u64,
    way: Way,
    ect: bool,
}

#[derive(Default)]
struct Counts {
    arrived: u64,
    left: u64,
    ignored: u64,
    overflow: u64,
    /// Datagrams that could not leave at all.
    failed: u64,
    stalls: u64,
    turns: u64,
}

const NEAR: usize = 0;
const FAR: usize = 1;
/// Batches that are read from a socket before the other one has its turn.
const BATCHES: usize = 64;
/// A batch of fewer datagrams was the last one.
const FEW: usize = 8;
/// Datagrams of an outbox.
const OUT: usize = 64;
/// Paths with less delay are woken up by arrivals.
const BLIND: Span = Span::from_micros(200);
/// Longest blind wait: sockets must not overflow.
const HORIZON: Span = Span::from_millis(1);
/// Longest wait of all.
const IDLE: Span = Span::from_millis(50);
/// A socket that refused is tried again after this.
const RETRY: Span = Span::from_micros(50);

impl Running {
    /// An emulator of the links of `spec` between two sockets.
    pub fn new(
        spec: &RunSpec,
        clock: Clock,
        path: Path,
        routes: Routes,
        sockets: [Socket; 2],
        peers: [Option<SocketAddr>; 2],
    ) -> Self {
        let longest = pool::largest(spec) - headers::IPV4;
        let [near, far] = sockets;
        let side = |socket: Socket, peer| Side {
            inbox: Inbox::new(&socket),
            outbox: Outbox::new(OUT, longest),
            socket,
            peer,
            due: VecDeque::new(),
            refused: false,
        };
        Self {
            clock,
            end: Time::ZERO + spec.duration,
            least: least_delay(spec, &path),
            path,
            routes,
            pool: Pool::new(longest, pool::bound(spec)),
            sides: [side(near, peers[NEAR]), side(far, peers[FAR])],
            waiting: Vec::new(),
            due: VecDeque::new(),
            pace: Pace::default(),
            stalled: false,
            lateness: Default::default(),
            losses: LossLog::new(spec),
            counts: Counts::default(),
        }
    }

    /// Until the end of the run or `stop`.
    pub fn run(
        mut self,
        config: &EmulatorConfig,
        stop: Stop,
    ) -> Result<EmulatorOutcome, EmulatorError> {
        let mut priority = Priority::new(config.real_time, self.now());
        let waiter = Waiter::new(config.wait, self.clock, stop.clone())?;
        while !stop.is_set() && self.now() <= self.end {
            self.turn()?;
            priority.watch(self.now());
            self.wait(&waiter)?;
        }
        self.finish(priority.is_real_time())
    }

    fn now(&self) -> Time {
        exact(&self.clock)
    }

    fn turn(&mut self) -> io::Result<()> {
        self.counts.turns += 1;
        let known = self.take_in()?;
        self.path.advance(known);
        self.sort_exits();
        self.send();
        Ok(())
    }

    /// Reads what has arrived and offers it to the path. Returns the time up to which all arrivals
    /// are known.
    fn take_in(&mut self) -> io::Result<Time> {
        let begun = self.now();
        let mut known = begun;
        let day = self.clock.of_day();
        for side in [NEAR, FAR] {
            for batch in 1.. {
                let n = self.sides[side]
                    .socket
                    .receive(&mut self.sides[side].inbox)?;
                let last = self.read(side, begun, |stamp| {
                    day.zip(stamp).map(|(day, stamp)| day.time(stamp))
                });
                if n < FEW {
                    break;
                }
                if batch == BATCHES {
                    known = known.min(last);
                    break;
                }
            }
        }
        // Both sockets were read after `begun`: what came later waits for its turn, but where
        // arrivals hurry.
        let limit = if self.is_blind() { known } else { Time::MAX };
        self.waiting.sort_by_key(|a| a.at);
        let ripe = self.waiting.partition_point(|a| a.at <= limit);
        for a in self.waiting.drain(..ripe) {
            let datagram = Datagram {
                token: a.token,
                kind: a.way.kind,
                flow: a.way.flow,
                size: a.way.size,
                ect: a.ect,
            };
            self.path.offer(a.at, a.way.route, &datagram);
        }
        Ok(known)
    }

    /// Puts a batch into the pool; returns when its last datagram came.
    fn read(
        &mut self,
        side: usize,
        begun: Time,
        time: impl Fn(Option<std::time::Duration>) -> Option<Time>,
    ) -> Time {
        let Side { inbox, peer, .. } = &mut self.sides[side];
        // Clocks that are set must not bring arrivals from the future.
        let latest = exact(&self.clock);
        let mut last = begun;
        for datagram in inbox.iter() {
            last = time(datagram.stamp).unwrap_or(begun).min(latest);
            let way = match *peer {
                Some(peer) if peer != datagram.from => None,
                _ => self.routes.of(side == NEAR, datagram.bytes),
            };
            let Some(way) = way else {
                self.counts.ignored += 1;
                continue;
            };
            peer.get_or_insert(datagram.from);
            self.counts.arrived += 1;
            let note = Note {
                ecn: datagram.ecn,
                from_near: side == NEAR,
            };
            match self.pool.put(datagram.bytes, note) {
                Some(token) => self.waiting.push(Arrival {
                    at: last,
                    token,
                    way,
                    ect: datagram.ecn.is_some(),
                }),
                None => self.counts.overflow += 1,
            }
        }
        last
    }

    fn sort_exits(&mut self) {
        for departure in self.path.departures() {
            match departure.outcome {
                PacketOutcome::Arrived { .. } => self.due.push_back(departure),
                PacketOutcome::Dropped => {
                    let (bytes, note) = self.pool.get(departure.token);
                    self.losses.note(departure.at, bytes, note.ecn.is_some());
                    self.pool.free(departure.token);
                }
            }
        }
    }

    /// Sends what is due.
    fn send(&mut self) {
        self.stalled = false;
        while let Some(&departure) = self.due.front() {
            let (bytes, note) = self.pool.get(departure.token);
            let side = if note.from_near { FAR } else { NEAR };
            let Some(to) = self.sides[side].peer else {
                self.counts.failed += 1;
                self.forget(departure.token);
                continue;
            };
            let ecn = match departure.outcome {
                PacketOutcome::Arrived { ce: true } => Some(Ecn::Ce),
                _ => note.ecn,
            };
            let fill = |out: &mut [u8]| out.copy_from_slice(bytes);
            if self.sides[side].outbox.push(to, ecn, bytes.len(), fill) {
                self.sides[side].due.push_back(departure.at);
                self.forget(departure.token);
            } else {
                self.flush(side);
                if self.stalled {
                    return;
                }
            }
        }
        self.flush(NEAR);
        self.flush(FAR);
    }

    /// The oldest of those that are due is gone.
    fn forget(&mut self, token: u64) {
        self.pool.free(token);
        self.due.pop_front();
    }

    fn flush(&mut self, side: usize) {
        let Side {
            socket,
            outbox,
            due,
            refused,
            ..
        } = &mut self.sides[side];
        while !outbox.is_empty() {
            let flushed = outbox.flush(socket);
            let now = exact(&self.clock);
            // What left before an error left, too.
            let gone = due.len() - outbox.len();
            for at in due.drain(..gone) {
                self.lateness[side].record(now.saturating_since(at));
            }
            self.counts.left += gone as u64;
            self.pace.count(gone as u64);
            match flushed {
                Ok(flushed) if flushed.refused > 0 => {
                    self.counts.stalls += u64::from(!std::mem::replace(refused, true));
                    self.stalled = true;
                    return;
                }
                Ok(_) => {}
                Err(_) => {
                    outbox.skip();
                    due.pop_front();
                    self.counts.failed += 1;
                }
            }
        }
        *refused = false;
    }

    /// Arrivals may be read late.
    fn is_blind(&self) -> bool {
        self.least >= BLIND
    }

    fn wait(&mut self, waiter: &Waiter) -> io::Result<()> {
        let now = self.now();
        let grain = self.pace.grain(now);
        let until = self.path.next_event().unwrap_or(Time::MAX);
        let until = until.min(self.end + Span::from_micros(1)).min(now + IDLE);
        let until = if self.stalled {
            until.min(now + RETRY)
        } else {
            until
        };
        if !self.is_blind() || (self.path.inside() == 0 && self.waiting.is_empty()) {
            let [near, far] = &self.sides;
            waiter.wait(&[&near.socket, &far.socket], until, false)?;
        } else {
            let horizon = (self.least / 2).min(HORIZON);
            waiter.wait(&[], until.min(now + horizon).max(now + grain), false)?;
        }
        Ok(())
    }

    fn finish(self, real_time: bool) -> Result<EmulatorOutcome, EmulatorError> {
        let drops = |side: &Side| side.socket.drops().unwrap_or(0) + side.inbox.oversize().0;
        let socket_drops = self.sides.iter().map(drops).sum();
        let counts = self.counts;
        let means = self.lateness.each_ref().map(Histogram::mean_s);
        let both: f64 = means.into_iter().flatten().sum();
        let [mut all, far] = self.lateness;
        all.merge(&far);
        let late = Lateness::of(&all);
        Ok(EmulatorOutcome {
            fidelity: Fidelity {
                late_p50: late.p50,
                late_p99: late.p99,
                late_max: late.max,
                path_added: Some(Span::from_secs_f64(both)),
                unplanned_drops: socket_drops + counts.overflow + counts.failed,
                local_stalls: counts.stalls,
                real_time,
                grain: self.pace.coarsest(),
                ..Fidelity::default()
            },
            links: self.path.finish()?,
            lateness: all,
            losses: self.losses.finish(),
            arrived: counts.arrived,
            left: counts.left,
            ignored: counts.ignored,
            overflow: counts.overflow,
            socket_drops,
            cpu: priority::processor_time(),
            turns: counts.turns,
        })
    }
}

/// The time to the nanosecond: it is compared with the kernel's time stamps.
fn exact(clock: &Clock) -> Time {
    let since = u64::try_from(clock.epoch().elapsed().as_nanos());
    Time::from_nanos(since.unwrap_or(u64::MAX))
}

/// The shortest time that any route of `spec` takes in `path`.
fn least_delay(spec: &RunSpec, path: &Path) -> Span {
    let delay = |l: &usize| {
        let link = &spec.links[*l];
        let changes = link.schedule.iter().filter_map(|c| c.delay);
        changes.fold(link.delay, Span::min)
    };
    let of = |route: &Vec<usize>| {
        let own = route.iter().filter(|l| path.has(**l)).map(delay);
        own.fold(Span::ZERO, |a, b| a + b)
    };
    let flows = spec
        .flows
        .iter()
        .chain(spec.arrivals.iter().map(|a| &a.template));
    let flows = flows.flat_map(|f| [&f.forward, &f.back]);
    let cross = spec.cross.iter().flat_map(CrossSpec::routes);
    let all = flows.chain(cross).map(of);
    all.fold(Span::MAX, Span::min)
}
