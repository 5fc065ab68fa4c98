//! What a datagram that arrived means.

use std::net::SocketAddr;

use fullpipe_flow::Segment;
use fullpipe_run::CaptureEvent;
use fullpipe_units::Time;

use super::Side;
use super::numbers::{Incarnation, SHORT};
use super::port::Mark;
use super::receiving::Taken;
use super::state::State;
use crate::wire::{AckDatagram, CrossDatagram, DataDatagram, Header, Kind, ProbeDatagram};

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
                let segment = DataDatagram::decode(&header, bytes).ok()?.segment;
                self.take_data(now, header.flow, segment, mark, bytes)
            }
            Kind::Ack => {
                let datagram = AckDatagram::decode(&header, bytes).ok()?;
                self.take_ack(now, header.flow, &datagram)
            }
            Kind::Datagram => {
                let datagram = CrossDatagram::decode(&header, bytes).ok()?;
                let crossing = self.sources.get_mut(usize::from(header.flow))?;
                crossing.arrive(now, &datagram, bytes.len(), self.plan)
            }
            Kind::Ping => {
                let probe = ProbeDatagram::decode(&header, bytes).ok()?;
                let probing = self.pings.get(usize::from(header.flow))?;
                if self.plan.side == Side::Near || bytes.len() != probing.size {
                    return None;
                }
                let echo = ProbeDatagram {
                    echo: true,
                    ..probe
                };
                self.echoes.push((echo, bytes.len()));
                Some(())
            }
            Kind::Pong => {
                let probe = ProbeDatagram::decode(&header, bytes).ok()?;
                let probing = self.pings.get_mut(usize::from(header.flow))?;
                let rtt = probing.answered(now, &probe, bytes.len())?;
                if let Some(live) = self.hooks.live {
                    live.answered(now, rtt);
                }
                Some(())
            }
            _ => None,
        }
    }

    #[inline]
    fn take_data(
        &mut self,
        now: Time,
        number: u16,
        mut segment: Segment,
        mark: Option<Mark>,
        bytes: &[u8],
    ) -> Option<()> {
        let slot = if number < SHORT {
            *self.receiver_of.get(usize::from(number))?
        } else {
            let (incarnation, seq) = Incarnation::split(segment.seq);
            segment.seq = seq;
            self.short_receiver(now, number, incarnation)?
        };
        let receiver = self.receivers.get_mut(slot as usize)?;
        let mut sink = self.contents.sinks.get_mut(slot as usize)?.as_deref_mut();
        if !receiver.fits(&segment, bytes.len(), sink.is_some()) {
            return None;
        }
        let bounded = match super::hooks::room(&mut sink, receiver) {
            Ok(bounded) => bounded,
            Err(e) => {
                self.contents.fault.get_or_insert((receiver.flow, e));
                return Some(());
            }
        };
        let flow = receiver.flow;
        match receiver.take(now, &mut segment, mark) {
            Taken::Beyond => {
                self.counts.beyond_window += 1;
                if bounded {
                    receiver.decline();
                }
                return Some(());
            }
            Taken::Dropped => {
                self.see(now, flow, || CaptureEvent::SegmentDropped(segment));
                return Some(());
            }
            Taken::In(new, ack) => {
                if new > 0 {
                    if let Some(sink) = sink {
                        let payload = bytes.get(DataDatagram::LEN..)?;
                        if let Err(e) = sink.take(segment.seq, payload) {
                            self.contents.fault.get_or_insert((flow, e));
                        }
                        if bounded {
                            receiver.watch_room(now);
                        }
                    }
                    if number >= SHORT
                        && let Some(class) = self.numbers.class(number)
                    {
                        self.classes[class].deliver(now, new);
                    }
                }
                if let Some(ack) = ack {
                    self.acks.push((slot, ack));
                }
                self.see(now, flow, || CaptureEvent::SegmentReceived(segment));
            }
        }
        self.arm_receiver(slot);
        Some(())
    }

    #[inline]
    fn take_ack(&mut self, now: Time, number: u16, datagram: &AckDatagram) -> Option<()> {
        let slot = if number < SHORT {
            *self.sender_of.get(usize::from(number))?
        } else {
            *self.short_senders.get(usize::from(number - SHORT))?
        };
        let sender = self.senders.get_mut(slot as usize)?;
        let flow = sender.flow;
        let ack = sender.handle_ack(now, datagram, &mut self.classes)?;
        if sender.is_complete() {
            if sender.is_short() {
                self.retire(now, slot);
                return Some(());
            }
            self.note_complete();
        }
        self.see(now, flow, || CaptureEvent::AckReceived(ack));
        self.make_ready(slot);
        Some(())
    }
}
