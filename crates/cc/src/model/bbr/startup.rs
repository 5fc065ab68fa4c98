//! Startup and Drain (sections 5.3.1 and 5.3.2): how the pipe is found full, and emptied again.

use super::loss::Repair;
use super::sample::Sample;
use super::{Bbr, State};

impl Bbr {
    pub(super) fn check_startup_done(&mut self, rs: &Sample) {
        if self.state != State::Startup {
            return;
        }
        if self.startup_loses_too_much(rs) {
            self.undo.state = Some(State::Startup);
            self.leave_startup_full();
        }
        if self.full.reached {
            self.enter_drain();
        }
    }

    /// The pipe counts as full because of losses or marks.
    pub(super) fn leave_startup_full(&mut self) {
        self.full.reached = true;
        self.full.now = true;
        self.inflight_longterm = self.bdp(self.bw, 1.0).max(self.latest.inflight);
    }

    /// CheckStartupHighLoss()'s conditions (section 5.3.1.3).
    fn startup_loses_too_much(&self, rs: &Sample) -> bool {
        if self.repair != Repair::FastRecovery {
            return false;
        }
        if self.is_blind() {
            return true;
        }
        let signs = match self.rules.counts_lossy_acks {
            true => self.latest.lossy_acks(),
            false => self.latest.ranges(),
        };
        self.latest.round_start
            && f64::from(signs) >= self.set.startup_full_loss_cnt
            && self.is_inflight_too_high(rs.lost, rs.tx_in_flight)
    }

    pub(super) fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain_start_round = self.rounds.count;
        if self.rules.drain_forgets {
            self.latest.reset();
        }
    }

    pub(super) fn check_drain_done(&mut self, rs: &Sample) {
        if self.state != State::Drain {
            return;
        }
        let is_done = if self.rules.drains_to_max_bw {
            self.at_departure(rs, rs.inflight) <= self.inflight(self.max_bw.get(), 1.0)
        } else {
            rs.inflight <= self.inflight(self.bw, 1.0)
                || self.rounds.count > self.drain_start_round + DRAIN_ROUNDS
        };
        if is_done {
            self.start_down(rs.now, rs.c_delivered);
        }
    }
}

/// Rounds after which Drain ends anyway (section 5.3.2).
const DRAIN_ROUNDS: u32 = 3;
