//! What must hold of a sender between any two calls; for tests.

use fullpipe_cc::Controller;

use super::Sender;
use crate::config::Detector;

impl<C: Controller> Sender<C> {
    /// Recounts the scoreboard and checks what no sequence of events may break. Walks the whole
    /// window.
    ///
    /// # Errors
    /// A sentence about the first promise that does not hold.
    #[doc(hidden)]
    pub fn audit(&self) -> Result<(), String> {
        let board = &self.board;
        board.audit(self.cfg.recovery.detector == Detector::NewReno)?;
        let out = board.flight() + board.retrans_out();
        if board.sacked_out() + board.lost_out() > out {
            return Err(format!(
                "pipe below zero: {out} out, {} SACKed, {} lost",
                board.sacked_out(),
                board.lost_out()
            ));
        }
        if self.cwnd() < 1.0 {
            return Err(format!("window {} in {:?}", self.cwnd(), self.phase()));
        }
        let mut window = self.cwnd() as u64;
        if self.recovery.is_testing_timeout() {
            let quota = self.recovery.frto_quota(self.record.counts().sent);
            window = window.min(board.pipe().saturating_add(quota));
        }
        if self.budget.window() != window {
            return Err(format!(
                "cached window {}, is {window} of {}",
                self.budget.window(),
                self.cwnd()
            ));
        }
        let timed = self.timers.rto_is_on() || self.timers.waits_for_reordering();
        let armed = timed || self.pacer.is_gated() || self.is_stalled();
        let waits = board.pipe() > 0 && self.connection.is_open();
        if waits && !armed {
            return Err(format!(
                "{} segments in the network and no timer in {:?}",
                board.pipe(),
                self.phase()
            ));
        }
        Ok(())
    }
}
