//! Dispatch of a datagram that arrived, by its kind.

use std::net::SocketAddr;

use fullpipe_run::CaptureEvent;
use fullpipe_units::Time;

use super::Side;
use super::cross_traffic;
use super::inlet::{self, Taken};
use super::numbers::{Incarnation, SHORT};
use super::outlet;
use super::port::Mark;
use super::state::State;
use crate::payload::Sink;
use crate::wire::{AckDatagram, CrossDatagram, DataDatagram, Header, Kind};

impl State<'_, '_> {
    /// A datagram has arrived.
    #[inline]
    pub fn take(&mut self, now: Time, from: SocketAddr, mark: Option<Mark>, bytes: &[u8]) {
        if self.understand(now, from, mark, bytes).is_none() {
            self.counts.ignored += 1;
        }
    }

    /// `None`: it is none of this run's.
    #[inline]
    fn understand(
        &mut self,
        now: Time,
        from: SocketAddr,
        mark: Option<Mark>,
        bytes: &[u8],
    ) -> Option<()> {
        let header = Header::decode(bytes).ok()?;
        if header.session != self.plan.session || from != self.plan.peer {
            return None;
        }
        match header.kind {
            Kind::Data => {
                let datagram = DataDatagram::decode(&header, bytes).ok()?;
                self.take_data(now, datagram, mark, bytes)
            }
            Kind::Ack => {
                let datagram = AckDatagram::decode(&header, bytes).ok()?;
                self.take_ack(now, header.flow, &datagram)
            }
            Kind::Datagram | Kind::Ping | Kind::Pong => {
                let datagram = CrossDatagram::decode(&header, bytes).ok()?;
                let index = self.wires.cross.index(&header, bytes)?;
                self.take_cross(now, index, datagram, bytes.len())
            }
            _ => None,
        }
    }

    #[inline]
    fn take_data(
        &mut self,
        now: Time,
        datagram: DataDatagram,
        mark: Option<Mark>,
        bytes: &[u8],
    ) -> Option<()> {
        let (number, mut segment) = (datagram.flow, datagram.segment);
        let slot = if number < SHORT {
            *self.wires.receiver_of.get(usize::from(number))?
        } else {
            let (incarnation, seq) = Incarnation::split(segment.seq);
            segment.seq = seq;
            self.short_receiver(now, number, incarnation)?
        };
        let receiver = self.host.receivers.get_mut(slot as usize)?;
        let sink = self.wires.contents.sinks.get_mut(slot as usize);
        let mut sink = sink.and_then(|sink| sink.as_deref_mut());
        if !receiver.inlet.fits(
            &segment,
            bytes.len(),
            sink.as_deref().map(|s| s as &dyn Sink),
        ) {
            return None;
        }
        let bounded = match super::hooks::room(&mut sink, receiver) {
            Ok(bounded) => bounded,
            Err(e) => {
                self.wires
                    .contents
                    .fault
                    .get_or_insert((receiver.flow(), e));
                return Some(());
            }
        };
        let flow = receiver.flow();
        let arrived = (&mut segment, datagram.nonce);
        match inlet::take(receiver, now, arrived, mark, &mut self.host.classes) {
            Taken::Beyond => {
                self.counts.beyond_window += 1;
                if bounded {
                    receiver.decline();
                }
                return Some(());
            }
            Taken::Dropped => {
                self.capture
                    .see(now, flow, || CaptureEvent::SegmentDropped(segment));
                return Some(());
            }
            Taken::In(new, acks) => {
                if new > 0
                    && let Some(sink) = sink
                {
                    let payload = bytes.get(DataDatagram::LEN..)?;
                    if let Err(e) = sink.take(segment.seq, payload) {
                        self.wires.contents.fault.get_or_insert((flow, e));
                    }
                    if bounded {
                        inlet::watch_room(receiver, now);
                    }
                }
                for (ack, proof) in acks.into_iter().flatten() {
                    self.wires.acks.push((slot, ack, proof));
                }
                self.capture
                    .see(now, flow, || CaptureEvent::SegmentReceived(segment));
            }
        }
        self.wires.arm_receiver(slot, receiver);
        Some(())
    }

    fn take_cross(
        &mut self,
        now: Time,
        index: usize,
        datagram: CrossDatagram,
        len: usize,
    ) -> Option<()> {
        let cross = self.host.cross.get_mut(index)?;
        match datagram.kind {
            Kind::Ping if self.plan.side == Side::Far => {
                let kind = Kind::Pong;
                self.echoes.push((CrossDatagram { kind, ..datagram }, len));
            }
            Kind::Ping => return None,
            Kind::Pong => {
                let rtt = cross_traffic::answered(cross, now, &datagram)?;
                if let Some(live) = self.hooks.live {
                    live.answered(now, rtt);
                }
            }
            _ => cross_traffic::arrive(cross, now, &datagram, self.plan)?,
        }
        Some(())
    }

    #[inline]
    fn take_ack(&mut self, now: Time, number: u16, datagram: &AckDatagram) -> Option<()> {
        let slot = if number < SHORT {
            *self.wires.sender_of.get(usize::from(number))?
        } else {
            *self.wires.short_senders.get(usize::from(number - SHORT))?
        };
        let sender = self.host.senders.get_mut(slot as usize)?;
        let flow = sender.flow();
        let ack = outlet::handle_ack(sender, now, datagram, &mut self.host.classes)?;
        if sender.is_complete() {
            if sender.is_short() {
                self.host.note_complete(now, slot, &mut self.wires);
                self.retire_if_over(now, slot);
                return Some(());
            }
            self.note_complete();
        }
        self.capture
            .see(now, flow, || CaptureEvent::AckReceived(ack));
        self.wires.make_ready(slot);
        Some(())
    }
}
