//! The running controller of any registered kind.

use fullpipe_units::{Rate, Time};

use crate::classic::Classic;
use crate::controller::{AckEvent, CongestionEvent, Controller, IdleEvent, RestartEvent, RtoEvent};
use crate::linux::Linux;

/// A running controller of any registered kind; dispatch by `match`, no pointer on the ACK path.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // one per flow; a pointer would cost a miss per ACK
pub enum Stack {
    /// Start-up x window law.
    Classic(Classic),
    /// A kernel module.
    Linux(Linux),
}

macro_rules! dispatch {
    ($self:ident, $c:ident => $call:expr) => {
        match $self {
            Stack::Classic($c) => $call,
            Stack::Linux($c) => $call,
        }
    };
}

impl Controller for Stack {
    #[inline]
    fn on_delivery(&mut self, ev: &AckEvent) {
        // Of all kinds only the kernel's modules look at an ACK this early.
        if let Stack::Linux(module) = self {
            module.on_delivery(ev);
        }
    }
    #[inline]
    fn on_ack(&mut self, ev: &AckEvent) {
        dispatch!(self, c => c.on_ack(ev))
    }
    fn on_congestion(&mut self, ev: &CongestionEvent) {
        dispatch!(self, c => c.on_congestion(ev))
    }
    fn on_rto(&mut self, ev: &RtoEvent) {
        dispatch!(self, c => c.on_rto(ev))
    }
    fn on_established(&mut self, ev: &RestartEvent) {
        dispatch!(self, c => c.on_established(ev))
    }
    fn on_restart(&mut self, ev: &RestartEvent) {
        dispatch!(self, c => c.on_restart(ev))
    }
    fn on_recovery_exit(&mut self, now: Time) {
        dispatch!(self, c => c.on_recovery_exit(now))
    }
    fn on_undo(&mut self, now: Time) {
        dispatch!(self, c => c.on_undo(now))
    }
    fn on_idle(&mut self, ev: &IdleEvent) {
        dispatch!(self, c => c.on_idle(ev))
    }
    fn exit_start_up(&mut self, now: Time) {
        dispatch!(self, c => c.exit_start_up(now))
    }
    fn on_mss_change(&mut self, ratio: f64) {
        dispatch!(self, c => c.on_mss_change(ratio))
    }
    #[inline]
    fn window(&self) -> f64 {
        dispatch!(self, c => c.window())
    }
    #[inline]
    fn ssthresh(&self) -> f64 {
        dispatch!(self, c => c.ssthresh())
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        dispatch!(self, c => c.pacing_rate())
    }
    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        dispatch!(self, c => c.report(visit))
    }
}
