//! The window law that both senders run: simple, so that recovery is what is compared.

use fullpipe_cc::{AckEvent, CongestionEvent, Controller, IdleEvent, Phase, RtoEvent};
use fullpipe_units::Time;

/// The rule by which the window grows and shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It stays what it is, whatever happens.
    Fixed,
    /// RFC 5681: slow start, congestion avoidance, halved by a loss, one segment after a timeout.
    Reno,
}

/// Window and threshold, segments.
#[derive(Clone, Debug)]
pub struct Law {
    kind: Kind,
    pub cwnd: f64,
    pub ssthresh: f64,
    /// Both before the last reduction.
    saved: Option<(f64, f64)>,
    pub undos: u64,
}

impl Law {
    pub fn new(kind: Kind, cwnd: f64) -> Self {
        Self {
            kind,
            cwnd,
            ssthresh: f64::INFINITY,
            saved: None,
            undos: 0,
        }
    }

    /// An ACK of new data outside fast recovery (RFC 5681 section 3.1, equations 2 and 3).
    pub fn grow(&mut self) {
        if self.kind == Kind::Reno {
            self.cwnd += match self.cwnd < self.ssthresh {
                true => 1.0,
                false => 1.0 / self.cwnd,
            };
        }
    }

    /// A loss found by ACKs; `first` of its window, or of a retransmission (RFC 5681 sections 3.2
    /// and 4.3).
    pub fn lost(&mut self, flight: u64, first: bool) {
        if first {
            self.saved = Some((self.cwnd, self.ssthresh));
        }
        self.ssthresh = self.threshold(flight);
        if self.kind == Kind::Reno {
            self.cwnd = self.ssthresh;
        }
    }

    /// A timeout; `first` of its segment (RFC 5681 section 3.1). One segment may leave beside what
    /// is still in the network (RFC 8985 section 6.3).
    pub fn timed_out(&mut self, flight: u64, first: bool, pipe: u64) {
        if first {
            self.saved = Some((self.cwnd, self.ssthresh));
            self.ssthresh = self.threshold(flight);
        }
        if self.kind == Kind::Reno {
            self.cwnd = (pipe + 1) as f64;
        }
    }

    /// The reduction was spurious.
    pub fn undo(&mut self) {
        self.undos += 1;
        if let Some((cwnd, ssthresh)) = self.saved.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    /// Equation 4; a window that was not full counts as what it was.
    fn threshold(&self, flight: u64) -> f64 {
        match self.kind {
            Kind::Fixed => self.cwnd,
            Kind::Reno => (self.cwnd.min(flight as f64) / 2.0).max(2.0),
        }
    }
}

impl Controller for Law {
    fn on_ack(&mut self, ev: &AckEvent) {
        if ev.advanced && !matches!(ev.phase, Phase::Recovery | Phase::Cwr) {
            self.grow();
        }
    }

    fn on_congestion(&mut self, ev: &CongestionEvent) {
        self.lost(ev.flight, ev.first_in_window);
    }

    fn on_rto(&mut self, ev: &RtoEvent) {
        self.timed_out(ev.flight, ev.first, ev.pipe);
    }

    fn on_recovery_exit(&mut self, _now: Time) {}

    fn on_undo(&mut self, _now: Time) {
        self.undo();
    }

    fn on_idle(&mut self, _ev: &IdleEvent) {
        unreachable!("no history validates the window");
    }

    fn exit_start_up(&mut self, _now: Time) {
        unreachable!("no history refuses a segment");
    }

    fn on_mss_change(&mut self, _ratio: f64) {}

    fn window(&self) -> f64 {
        self.cwnd
    }

    fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    fn reads_rate(&self) -> bool {
        false
    }

    fn report(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}
