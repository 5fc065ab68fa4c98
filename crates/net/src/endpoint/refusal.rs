//! What a batch becomes: it leaves, or part of it is refused by the operating system or by the
//! host's own interface.

use fullpipe_flow::Segment;
use fullpipe_host::Waiting;
use fullpipe_run::CaptureEvent;
use fullpipe_sim::Route;
use fullpipe_units::{Span, Time};

use super::interface::Leaving;
use super::state::{Pushed, State};
use super::timers::{Event, Wake};

impl State<'_, '_> {
    /// The operating system took the first `left` datagrams of the batch: the others go back,
    /// newest first.
    #[cold]
    pub fn take_back(&mut self, now: Time, left: usize) {
        let (retry, first) = self.backoff.refused(now, left);
        self.counts.local_stalls += u64::from(first);
        self.retry = Some(retry);
        let on_wire = |p: &Pushed| usize::from(!matches!(p, Pushed::Segment { dropped: true, .. }));
        let mut index: usize = self.pushed.iter().map(on_wire).sum();
        while index > left
            && let Some(pushed) = self.pushed.pop()
        {
            index -= on_wire(&pushed);
            match pushed {
                Pushed::Segment {
                    sender: slot,
                    segment,
                    dropped,
                } => {
                    let sender = &mut self.host.senders[slot as usize];
                    sender.take_back(now, &segment, dropped, &mut self.host.classes);
                    self.wires.arm_sender(slot, sender);
                    if !self.stalled.contains(&slot) {
                        self.stalled.push(slot);
                    }
                }
                Pushed::Datagram(i) => {
                    self.host.cross[i as usize].dropped += 1;
                    self.counts.refused += 1;
                }
                Pushed::Other => self.counts.refused += 1,
            }
        }
    }

    /// It took the whole batch, `left` datagrams: there is room again.
    #[inline]
    pub fn taken(&mut self, now: Time, left: usize) {
        if left > 0 && self.backoff.accepted() {
            self.resume(now);
        }
    }

    /// What is left of the batch has left.
    #[inline]
    pub fn settle(&mut self, now: Time) {
        if self.capture.is_on() {
            self.capture_sent(now);
        }
        self.pushed.clear();
    }

    #[cold]
    fn capture_sent(&mut self, now: Time) {
        let mut sent = std::mem::take(&mut self.pushed);
        for pushed in sent.drain(..) {
            if let Pushed::Segment {
                sender,
                segment,
                dropped,
            } = pushed
            {
                let flow = self.host.senders[sender as usize].flow();
                self.capture
                    .see(now, flow, || CaptureEvent::SegmentSent(segment));
                if dropped {
                    self.capture
                        .see(now, flow, || CaptureEvent::SegmentDropped(segment));
                }
            }
        }
        self.pushed = sent;
    }

    /// A limit of the host: senders wait, and lose nothing.
    #[cold]
    pub fn hold(&mut self, until: Time) {
        self.retry = Some(self.retry.map_or(until, |retry| retry.max(until)));
    }

    /// Whether a wait is for room too.
    pub fn asks_for_room(&self) -> bool {
        self.retry.is_some() && self.backoff.asks()
    }

    /// A wait is over; if the socket was asked, `room` is what it says.
    pub fn waited(&mut self, now: Time, room: bool) {
        let Some(at) = self.retry else { return };
        let told = room && self.backoff.asks();
        if told {
            self.backoff.told();
        }
        if told || at <= now {
            self.resume(now);
        }
    }

    /// There may be room again.
    #[cold]
    fn resume(&mut self, now: Time) {
        self.retry = None;
        for slot in std::mem::take(&mut self.stalled) {
            self.host.senders[slot as usize].resume(now, &mut self.host.classes);
            self.wires.make_ready(slot);
        }
    }

    /// A flow that waited for room at its interface tries again; false: there is nothing left of
    /// it.
    #[cold]
    pub fn resume_at_interface(&mut self, now: Time, slot: u32) -> bool {
        let outlet = &mut self.host.senders[slot as usize].outlet;
        outlet.waits = false;
        let route = outlet.interface;
        if let (Some(interfaces), Some(route)) = (&mut self.wires.interfaces, route)
            && let Some(waiting) = interfaces.waiting.get_mut(&route)
        {
            waiting.resumed();
        }
        let is_over = self.retire_if_over(now, slot);
        if is_over && let Some(route) = route {
            self.wake_next_at_interface(now, route);
        }
        !is_over
    }

    /// A flow had its turn at its interface: the one that has waited longest is next.
    pub fn wake_next_at_interface(&mut self, now: Time, route: Route) {
        let Some(interfaces) = &mut self.wires.interfaces else {
            return;
        };
        let Some(next) = (interfaces.waiting.get_mut(&route)).and_then(Waiting::wake) else {
            return;
        };
        // The buffer of an interface counts packets, of any size.
        let room = interfaces.room(now, route, 1).unwrap_or(now);
        let at = room.max(now + Span::from_micros(1));
        self.wires.timers.set(at, Wake::Resume(next));
    }

    /// A short flow that is complete leaves its slot once its interface knows nothing of it.
    pub fn retire_if_over(&mut self, now: Time, slot: u32) -> bool {
        let sender = &self.host.senders[slot as usize];
        let is_over = sender.is_short() && sender.is_complete() && sender.outlet.is_free();
        if is_over {
            self.retire(now, slot);
        }
        is_over
    }

    /// A segment that was polled enters its host's own interface; false: there it finds no room,
    /// and goes back.
    #[cold]
    pub fn enter_interface(&mut self, now: Time, slot: u32, segment: Segment) -> bool {
        let sender = &mut self.host.senders[slot as usize];
        let classes = &mut self.host.classes;
        let (Some(interfaces), Some(route)) = (&mut self.wires.interfaces, sender.outlet.interface)
        else {
            return true;
        };
        let size = sender.outlet.lengths.segment(&segment);
        if let Some(retry) = interfaces.room(now, route, size) {
            sender.refuse(now, &segment, classes);
            self.wait_for_room(now, retry, slot, route);
            return false;
        }
        let flow = sender.flow();
        let dropped = sender.depart(now, &segment, classes);
        if !dropped {
            let (datagram, len) = sender.outlet.datagram(self.plan.session, segment);
            let leaving = Leaving {
                slot,
                segment,
                datagram,
                len,
            };
            interfaces.enter(now, route, u32::from(datagram.flow), size, leaving);
            sender.entered_queue();
            sender.outlet.inside += 1;
            let at = interfaces.next_event();
            if at < interfaces.wakes {
                interfaces.wakes = at;
                self.wires.timers.set(at, Wake::Network(Event::Interface));
            }
        }
        self.capture
            .see(now, flow, || CaptureEvent::SegmentSent(segment));
        if dropped {
            self.capture
                .see(now, flow, || CaptureEvent::SegmentDropped(segment));
        }
        true
    }

    #[cold]
    pub fn cross_interface(&mut self, now: Time, at: Time) {
        let Some(interfaces) = &mut self.wires.interfaces else {
            return;
        };
        if interfaces.wakes != at {
            return;
        }
        let (senders, classes) = (&mut self.host.senders, &mut self.host.classes);
        let [mut freed, mut over] = std::mem::take(&mut interfaces.left);
        interfaces.advance(now, |left, lost| {
            let sender = &mut senders[left.slot as usize];
            let segment = &left.segment;
            if lost && !segment.syn {
                sender.lose(segment.seq, segment.retransmission, classes);
            }
            sender.outlet.inside -= 1;
            if sender.left_queue() {
                freed.push(left.slot);
            }
            if sender.outlet.inside == 0 && sender.is_short() {
                over.push(left.slot);
            }
        });
        interfaces.wakes = interfaces.next_event();
        let wakes = interfaces.wakes;
        self.wires
            .timers
            .set(wakes, Wake::Network(Event::Interface));
        for slot in freed.drain(..) {
            let route = self.host.senders[slot as usize].outlet.interface;
            let interfaces = self.wires.interfaces.as_ref();
            match route.filter(|route| interfaces.is_some_and(|i| i.is_crowded(*route))) {
                // The place that its segment leaves is theirs who wait.
                Some(route) => self.wait_for_room(now, now, slot, route),
                None => self.wires.make_ready(slot),
            }
        }
        for slot in over.drain(..) {
            self.retire_if_over(now, slot);
        }
        if let Some(interfaces) = &mut self.wires.interfaces {
            interfaces.left = [freed, over];
        }
    }

    /// A flow waits for room at its interface, where there is none before `retry`.
    #[cold]
    fn wait_for_room(&mut self, now: Time, retry: Time, slot: u32, route: Route) {
        let outlet = &mut self.host.senders[slot as usize].outlet;
        if std::mem::replace(&mut outlet.waits, true) {
            return;
        }
        let Some(interfaces) = &mut self.wires.interfaces else {
            return;
        };
        if let Some(first) = interfaces.waiting.entry(route).or_default().refused(slot) {
            let retry = retry.max(now + Span::from_micros(1));
            self.wires.timers.set(retry, Wake::Resume(first));
        }
    }
}
