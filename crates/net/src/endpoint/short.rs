//! Short flows: their slots and numbers at the host of their senders, their receivers at the other.

use fullpipe_sim::traffic::Short;
use fullpipe_units::Time;

use super::numbers::{Incarnation, SHORT};
use super::receiving::Receiving;
use super::sending::Sending;
use super::state::{NONE, State};
use super::timers::Wake;

impl State<'_, '_> {
    /// The next short flow of a class arrives: into the slot of one that is over, or into a new one.
    #[cold]
    pub fn welcome(&mut self, now: Time, class: u32) {
        let arrivals = &mut self.arrivals[class as usize];
        let f = arrivals.next_flow();
        let record = &mut self.classes[class as usize];
        let number = record.begin(now, f.sender.transfer.unwrap_or(0));
        let on_wire = self.numbers.of(class, number as u64);
        let place = usize::from(on_wire.0 - SHORT);
        if self.short_senders[place] == NONE {
            let short = Short::new(class as usize, number);
            let mut flow = Sending::short(on_wire, f, self.plan.spec.seed, now, short);
            flow.interface = self.interfaces.as_mut().and_then(|i| i.route(f));
            let slot = self.settle_in(flow);
            self.short_senders[place] = slot;
            self.senders[slot as usize].start(now, &mut self.classes);
            self.make_ready(slot);
        } else {
            // The flow of the same number a whole round before is still there.
            self.counts.unnumbered += 1;
        }
        if let Some(at) = self.arrivals[class as usize].next_arrival() {
            self.timers.set(at, Wake::Class(class));
        }
    }

    fn settle_in(&mut self, mut flow: Sending) -> u32 {
        if let Some(slot) = self.free.pop() {
            let place = &mut self.senders[slot as usize];
            // It may still stand in the queue of those that may send.
            flow.queued = place.queued;
            *place = flow;
            return slot;
        }
        self.senders.push(flow);
        self.contents.sources.push(None);
        self.senders.len() as u32 - 1
    }

    /// A short flow is over: its slot and its number are free.
    #[cold]
    pub fn retire(&mut self, now: Time, slot: u32) {
        let sender = &mut self.senders[slot as usize];
        sender.leave(now, &mut self.classes);
        sender.wakes = Time::MAX;
        self.short_senders[usize::from(sender.number - SHORT)] = NONE;
        self.free.push(slot);
    }

    /// The receiver of a short flow, made if there is none yet; that of an earlier flow of its number has done its work.
    pub fn short_receiver(
        &mut self,
        now: Time,
        number: u16,
        incarnation: Incarnation,
    ) -> Option<u32> {
        let class = self.numbers.class(number)?;
        let template = &self.plan.spec.arrivals.get(class)?.template;
        if self.plan.sends(template.reverse) {
            return None;
        }
        let place = self.short_receivers.get_mut(usize::from(number - SHORT))?;
        let known = self.receivers.get(*place as usize);
        match known.and_then(Receiving::incarnation) {
            Some(present) if present == incarnation => return Some(*place),
            Some(present) if !incarnation.is_after(present) => return None,
            _ => {}
        }
        let mut f = template.clone();
        f.name = format!("{}#{}", f.name, self.numbers.index(number, incarnation));
        let seed = self.plan.spec.seed;
        let receiver = Receiving::short(number, incarnation, class as u32, &f, seed);
        if *place == NONE {
            *place = self.receivers.len() as u32;
            self.receivers.push(receiver);
            self.contents.sinks.push(None);
        } else {
            let before = std::mem::replace(&mut self.receivers[*place as usize], receiver);
            before.leave(now, &mut self.classes);
        }
        Some(*place)
    }
}
