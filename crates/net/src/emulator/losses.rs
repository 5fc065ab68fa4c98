//! What an emulator's links dropped, by whose it was.

use fullpipe_run::{CaptureEvent, CaptureRow, RunSpec};
use fullpipe_units::Time;

use crate::endpoint::numbers::{Incarnation, Numbers, SHORT};
use crate::wire::{Header, Parsed};

/// Planned losses of a run.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Data packets of each flow.
    pub flows: Vec<u64>,
    /// Data packets of each class of short flows.
    pub classes: Vec<u64>,
    /// Datagrams of each source.
    pub sources: Vec<u64>,
    /// Probes and echoes of each sequence.
    pub pings: Vec<u64>,
    /// First transmissions of short flows among their first 64 segments: class, number in the
    /// class, segment.
    pub first: Vec<(u32, u64, u32)>,
    /// Each packet of a lasting flow, if the run is captured.
    pub capture: Vec<CaptureRow>,
    captures: bool,
    numbers: Option<Numbers>,
}

impl Losses {
    /// None yet.
    pub fn new(spec: &RunSpec) -> Self {
        Self {
            flows: vec![0; spec.flows.len()],
            classes: vec![0; spec.arrivals.len()],
            sources: vec![0; spec.sources.len()],
            pings: vec![0; spec.pings.len()],
            first: Vec::new(),
            capture: Vec::new(),
            captures: spec.capture,
            numbers: Some(Numbers::new(spec.arrivals.len())),
        }
    }

    /// A datagram of the run was dropped, ECN-capable if `ect`.
    #[cold]
    pub fn note(&mut self, at: Time, datagram: &[u8], ect: bool) {
        let Ok(header) = Header::decode(datagram) else {
            return;
        };
        let number = usize::from(header.flow);
        let add = |list: &mut [u64]| {
            if let Some(count) = list.get_mut(number) {
                *count += 1;
            }
        };
        match Parsed::decode(datagram) {
            Ok(Parsed::Data(data, _)) if header.flow >= SHORT => {
                self.note_short(header.flow, &data.segment);
            }
            Ok(Parsed::Data(data, _)) => {
                if !data.segment.syn {
                    add(&mut self.flows);
                }
                let mut segment = data.segment;
                segment.ect = ect;
                self.see(at, header.flow, CaptureEvent::SegmentDropped(segment));
            }
            Ok(Parsed::Ack(ack)) => {
                self.see(at, header.flow, CaptureEvent::AckDropped(ack.ack.cum));
            }
            Ok(Parsed::Cross(..)) => add(&mut self.sources),
            Ok(Parsed::Probe(..)) => add(&mut self.pings),
            _ => {}
        }
    }

    fn note_short(&mut self, number: u16, segment: &fullpipe_flow::Segment) {
        let Some(numbers) = self.numbers else { return };
        let Some(class) = numbers.class(number) else {
            return;
        };
        if segment.syn {
            return;
        }
        self.classes[class] += 1;
        let (incarnation, seq) = Incarnation::split(segment.seq);
        if seq < 64 && !segment.retransmission {
            let flow = numbers.index(number, incarnation);
            self.first.push((class as u32, flow, seq as u32));
        }
    }

    fn see(&mut self, at: Time, flow: u16, event: CaptureEvent) {
        if self.captures && flow < SHORT {
            let flow = u32::from(flow);
            self.capture.push(CaptureRow { at, flow, event });
        }
    }
}
