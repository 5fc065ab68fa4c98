//! What an emulator's links dropped, by whose it was.

use fullpipe_host::Losses;
use fullpipe_run::{CaptureEvent, CaptureRow, CrossNumbers, RunSpec};
use fullpipe_units::Time;

use crate::endpoint::numbers::{Incarnation, Numbers, SHORT};
use crate::wire::{Header, Kind, Parsed};

/// Counts the planned losses of a run.
#[derive(Debug)]
pub struct LossLog {
    losses: Losses,
    captures: bool,
    numbers: Numbers,
    cross: CrossNumbers,
}

impl LossLog {
    /// None yet.
    pub fn new(spec: &RunSpec) -> Self {
        Self {
            losses: Losses {
                flows: vec![0; spec.flows.len()],
                classes: vec![0; spec.arrivals.len()],
                cross: vec![0; spec.cross.len()],
                ..Losses::default()
            },
            captures: spec.capture,
            numbers: Numbers::new(spec.arrivals.len()),
            cross: spec.cross_numbers(),
        }
    }

    /// All of them.
    pub fn finish(self) -> Losses {
        self.losses
    }

    /// A datagram of the run was dropped, ECN-capable if `ect`.
    #[cold]
    pub fn note(&mut self, at: Time, datagram: &[u8], ect: bool) {
        let Ok(header) = Header::decode(datagram) else {
            return;
        };
        let number = usize::from(header.flow);
        match Parsed::decode(datagram) {
            Ok(Parsed::Data(data, _)) if header.flow >= SHORT => {
                self.note_short(header.flow, &data.segment);
            }
            Ok(Parsed::Data(data, _)) => {
                if !data.segment.syn
                    && let Some(count) = self.losses.flows.get_mut(number)
                {
                    *count += 1;
                }
                let mut segment = data.segment;
                segment.ect = ect;
                self.see(at, header.flow, CaptureEvent::SegmentDropped(segment));
            }
            Ok(Parsed::Ack(ack)) => {
                self.see(at, header.flow, CaptureEvent::AckDropped(ack.ack.cum));
            }
            Ok(Parsed::Cross(cross, _)) => {
                let answered = cross.kind != Kind::Datagram;
                if let Some(index) = self.cross.index(answered, number) {
                    self.losses.cross[index] += 1;
                }
            }
            _ => {}
        }
    }

    fn note_short(&mut self, number: u16, segment: &fullpipe_flow::Segment) {
        let Some(class) = self.numbers.class(number) else {
            return;
        };
        if segment.syn {
            return;
        }
        self.losses.classes[class] += 1;
        let (incarnation, seq) = Incarnation::split(segment.seq);
        if seq < 64 && !segment.retransmission {
            let flow = self.numbers.index(number, incarnation);
            self.losses.first.push((class as u32, flow, seq as u32));
        }
    }

    fn see(&mut self, at: Time, flow: u16, event: CaptureEvent) {
        if self.captures && flow < SHORT {
            let flow = u32::from(flow);
            self.losses.capture.push(CaptureRow { at, flow, event });
        }
    }
}
