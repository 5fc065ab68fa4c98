//! The loop.

use std::io;

use fullpipe_host::HostOutcome;
use fullpipe_run::CaptureEvent;
use fullpipe_units::{Span, Time};
use nix::time::{ClockId, clock_gettime};

use super::batching::Batching;
use super::hooks::Hooks;
use super::interface::Leaving;
use super::port::{Mark, Port};
use super::state::{Pushed, State};
use super::timers::Wake;
use super::{EndpointError, Plan};
use crate::io::Stop;
use crate::wire::DataDatagram;

/// Segments that a sender, or datagrams that a source, may send before the next one has its turn.
const BURST: usize = 64;
/// Batches of arrivals that a turn takes at most: whoever floods this host must not keep it from
/// sending.
const MOST_BATCHES: usize = 16;
/// Longest wait.
const POLL_TIMEOUT: Span = Span::from_millis(50);

/// One side of a run.
pub struct Endpoint<'p, 'h, P> {
    port: P,
    state: State<'p, 'h>,
    batching: Batching,
}

impl<'p, 'h, P: Port> Endpoint<'p, 'h, P> {
    /// Before its first turn.
    pub fn new(plan: &'p Plan, port: P, hooks: Hooks<'h>) -> Result<Self, EndpointError> {
        Ok(Self {
            state: State::new(plan, hooks, port.overhead())?,
            port,
            batching: Batching::new(),
        })
    }

    /// Until the end.
    pub fn run(mut self, stop: &Stop) -> Result<HostOutcome, EndpointError> {
        let began = processor_time();
        let mut now = self.port.now();
        self.state.lateness.begin(now);
        while now < self.state.end && !stop.is_set() {
            self.turn(now)?;
            if let Some((flow, error)) = self.state.wires.contents.fault.take() {
                let flow = self.state.plan.spec.flows[flow as usize].name.clone();
                return Err(EndpointError::Content { flow, error });
            }
            now = self.port.now();
        }
        self.state.counts.socket_drops = self.port.drops();
        self.state.counts.cpu = processor_time().saturating_sub(began);
        let ended = now.min(self.state.end);
        let has_stamps = self.port.has_stamps();
        self.state.finish(ended, has_stamps)
    }

    fn turn(&mut self, mut now: Time) -> io::Result<()> {
        self.state.counts.turns += 1;
        let mut arrived = 0;
        for _ in 0..MOST_BATCHES {
            let batch = self.port.receive()?;
            if batch == 0 {
                break;
            }
            arrived += batch;
            now = self.port.now();
            self.state.counts.datagrams_in += batch as u64;
            let state = &mut self.state;
            self.port.received_at(|at| state.lateness.arrival(now, at));
            self.port
                .each(|from, mark, bytes| state.take(now, from, mark, bytes));
            // What answers this batch does not wait for the next one.
            self.answer(now)?;
            self.flush(now)?;
            // Whoever may send hears first all that there is to hear: a host that sends more per
            // turn than it takes in would leave ACKs waiting ever longer. Where nobody may, answers
            // leave at once.
            if self.state.is_idle() {
                break;
            }
        }
        self.state.fire(now);
        self.answer(now)?;
        self.transmit(now)?;
        self.flush(now)?;
        if self.state.is_idle() {
            if arrived == 0 {
                self.wait(now)?;
            } else if let Some(pause) = self.batching.pause(now, arrived) {
                let state = &self.state;
                let until = state.wires.timers.next().min(state.end).min(now + pause);
                self.port.pause(until)?;
            }
        }
        Ok(())
    }

    /// Pushes the ACKs and echoes of the batch.
    fn answer(&mut self, now: Time) -> io::Result<()> {
        let mut acks = std::mem::take(&mut self.state.wires.acks);
        for (slot, ack, proof) in acks.drain(..) {
            self.make_room(now)?;
            let state = &mut self.state;
            let receiver = &state.host.receivers[slot as usize];
            let datagram = receiver
                .inlet
                .datagram(now, state.plan.session, (&ack, proof));
            let flow = receiver.flow();
            let len = datagram.bytes();
            self.port.push(state.plan.peer, None, len, |out| {
                datagram.encode(out);
            });
            state.pushed.push(Pushed::Other);
            state.capture.see(now, flow, || CaptureEvent::AckSent(ack));
        }
        self.state.wires.acks = acks;
        let mut echoes = std::mem::take(&mut self.state.echoes);
        for (echo, len) in echoes.drain(..) {
            self.make_room(now)?;
            let state = &mut self.state;
            self.port
                .push(state.plan.peer, None, len, |out| echo.encode(out));
            state.pushed.push(Pushed::Other);
        }
        self.state.echoes = echoes;
        Ok(())
    }

    /// Pushes what has crossed the host's own interface.
    #[cold]
    fn leave_interface(&mut self, now: Time) -> io::Result<()> {
        while self.state.retry.is_none()
            && let Some(interfaces) = &mut self.state.wires.interfaces
            && let Some(leaving) = interfaces.out.pop_front()
        {
            self.make_room(now)?;
            if put(&mut self.port, &mut self.state, &leaving) {
                self.state.pushed.push(Pushed::Other);
            }
        }
        Ok(())
    }

    /// Lets everybody who may send do so, in turns.
    fn transmit(&mut self, now: Time) -> io::Result<()> {
        if self.state.wires.interfaces.is_some() {
            self.leave_interface(now)?;
        }
        for _ in 0..self.state.wires.due.len() {
            if let Some(index) = self.state.wires.due.pop_front() {
                self.pump_cross(now, index)?;
            }
        }
        for _ in 0..self.state.wires.ready.len() {
            if self.state.retry.is_some() {
                break;
            }
            let Some(slot) = self.state.wires.ready.pop_front() else {
                break;
            };
            self.state.wires.queued[slot as usize] = false;
            if self.pump(now, slot)? {
                self.state.wires.make_ready(slot);
            }
            let state = &mut self.state;
            if let Some(route) = state.host.senders[slot as usize].outlet.interface {
                state.wake_next_at_interface(now, route);
            }
            let sender = &mut state.host.senders[slot as usize];
            state.wires.arm_sender(slot, sender);
        }
        Ok(())
    }

    /// One turn of a sender; true if it may have more.
    #[inline]
    fn pump(&mut self, now: Time, slot: u32) -> io::Result<bool> {
        for _ in 0..BURST {
            self.make_room(now)?;
            if self.state.retry.is_some() {
                self.state.host.senders[slot as usize].yielded(now);
                return Ok(true);
            }
            let state = &mut self.state;
            let sender = &mut state.host.senders[slot as usize];
            let Some(segment) = sender.poll_transmit(now) else {
                return Ok(false);
            };
            if sender.outlet.interface.is_some() {
                if state.enter_interface(now, slot, segment) {
                    continue;
                }
                return Ok(false);
            }
            let dropped = sender.depart(now, &segment, &mut state.host.classes);
            if !dropped {
                let (datagram, len) = sender.outlet.datagram(state.plan.session, segment);
                let leaving = Leaving {
                    slot,
                    segment,
                    datagram,
                    len,
                };
                if !put(&mut self.port, state, &leaving) {
                    return Ok(false);
                }
            }
            state.pushed.push(Pushed::Segment {
                sender: slot,
                segment,
                dropped,
            });
        }
        self.state.host.senders[slot as usize].yielded(now);
        Ok(true)
    }

    /// Datagrams of cross traffic that are due.
    #[cold]
    fn pump_cross(&mut self, now: Time, index: u32) -> io::Result<()> {
        for _ in 0..BURST {
            self.make_room(now)?;
            let state = &mut self.state;
            let (plan, peer) = (state.plan, state.plan.peer);
            let i = index as usize;
            let cross = &mut state.host.cross[i];
            let Some((datagram, len)) = state.wires.cross.next(cross, now, plan, i) else {
                let wake = Wake::Cross(index);
                state.wires.timers.set(cross.next_departure(), wake);
                return Ok(());
            };
            self.port.push(peer, None, len, |out| datagram.encode(out));
            state.pushed.push(match cross.is_answered() {
                true => Pushed::Other,
                false => Pushed::Datagram(index),
            });
        }
        self.state.wires.due.push_back(index);
        Ok(())
    }

    #[inline]
    fn make_room(&mut self, now: Time) -> io::Result<()> {
        if self.port.is_full() {
            self.flush(now)?;
            if let Some(at) = self.port.held_until() {
                self.state.hold(at);
            }
        }
        Ok(())
    }

    /// Sends what was pushed; gives back what is refused.
    fn flush(&mut self, now: Time) -> io::Result<()> {
        if self.state.pushed.is_empty() {
            return Ok(());
        }
        let flush = self.port.flush()?;
        self.state.counts.datagrams_out += flush.left as u64;
        let gone = self.port.now();
        self.state.lateness.departure(gone, now, flush.left);
        if flush.refused {
            self.state.take_back(now, flush.left);
        } else {
            self.state.taken(now, flush.left);
        }
        self.state.settle(now);
        Ok(())
    }

    fn wait(&mut self, now: Time) -> io::Result<()> {
        let state = &mut self.state;
        let until = state
            .wires
            .timers
            .next()
            .min(state.end)
            .min(now + POLL_TIMEOUT);
        let until = state.retry.map_or(until, |retry| until.min(retry));
        let room = self.port.wait(until, state.asks_for_room())?;
        state.waited(self.port.now(), room);
        Ok(())
    }
}

/// Pushes a segment with its payload; false: the payload cannot be had.
#[inline]
fn put(port: &mut impl Port, state: &mut State<'_, '_>, leaving: &Leaving) -> bool {
    let Leaving {
        slot,
        segment,
        datagram,
        len,
    } = leaving;
    let (peer, contents) = (state.plan.peer, &mut state.wires.contents);
    let mark = segment.ect.then_some(Mark::Capable);
    let source = contents.sources.get_mut(*slot as usize);
    let source = match source.and_then(|source| source.as_deref_mut()) {
        Some(source) if !segment.syn => source,
        _ => {
            port.push(peer, mark, *len, |out| datagram.encode(out));
            return true;
        }
    };
    let payload = &mut contents.scratch[..len - DataDatagram::LEN];
    let filled = match source.fill(segment.seq, payload) {
        Ok(n) if n > 0 => &payload[..n],
        none => {
            let ends = || io::Error::other("the data ends before the transfer does");
            let error = none.err().unwrap_or_else(ends);
            let flow = state.host.senders[*slot as usize].flow();
            contents.fault.get_or_insert((flow, error));
            return false;
        }
    };
    port.push(peer, mark, DataDatagram::LEN + filled.len(), |out| {
        datagram.encode(out);
        out[DataDatagram::LEN..].copy_from_slice(filled);
    });
    true
}

/// CPU time of the calling thread.
fn processor_time() -> Span {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Span::ZERO, |t| {
        let (seconds, nanos) = (t.tv_sec().max(0) as u64, t.tv_nsec().max(0) as u64);
        Span::from_secs(seconds) + Span::from_nanos(nanos)
    })
}
