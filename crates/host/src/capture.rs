//! Packets as a capture at the hosts sees them.

use fullpipe_run::{CaptureEvent, CaptureRow, RunSpec};
use fullpipe_units::Time;

/// The capture of one host; short flows are not captured.
#[derive(Debug)]
pub struct Capture {
    is_on: bool,
    rows: Vec<CaptureRow>,
    /// Flows of the specification: those that are captured.
    lasting: u32,
}

impl Capture {
    /// Empty, and for good unless the run asks for a capture.
    pub fn new(spec: &RunSpec) -> Self {
        Self {
            is_on: spec.capture,
            rows: Vec::new(),
            lasting: spec.flows.len() as u32,
        }
    }

    /// True if rows are recorded.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// The host sees a packet of `flow`.
    #[inline]
    pub fn see(&mut self, at: Time, flow: u32, event: impl FnOnce() -> CaptureEvent) {
        if self.is_on {
            self.record(at, flow, event());
        }
    }

    #[cold]
    fn record(&mut self, at: Time, flow: u32, event: CaptureEvent) {
        // The ACK that ends the handshake says nothing that the first segment does not.
        let bare = match &event {
            CaptureEvent::SegmentSent(s)
            | CaptureEvent::SegmentReceived(s)
            | CaptureEvent::SegmentDropped(s) => s.ends_handshake(),
            _ => false,
        };
        if flow < self.lasting && !bare {
            self.rows.push(CaptureRow { at, flow, event });
        }
    }

    /// Every row, in the order of time.
    pub fn finish(self) -> Vec<CaptureRow> {
        self.rows
    }
}
