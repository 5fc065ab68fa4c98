//! Losses and marks (section 5.5.10): what they say of the inflight that was too high, and what a
//! recovery that proves spurious restores (section 5.5.11).

use fullpipe_units::Time;

use super::signals::ShortTerm;
use super::{Bbr, State};
use crate::controller::{CongestionEvent, LostSegment};

/// The loss recovery that the sender is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    None,
    /// A loss is noted, and the recovery follows.
    Noted,
    FastRecovery,
    Timeout,
}

/// What a spurious recovery restores (section 2.15).
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub(super) state: Option<State>,
    pub(super) short: ShortTerm,
    pub(super) inflight_longterm: f64,
}

impl Undo {
    /// Nothing was saved.
    pub(super) const NOTHING: Self = Self {
        state: None,
        short: ShortTerm::UNSET,
        inflight_longterm: f64::INFINITY,
    };
}

impl Bbr {
    /// HandleLostPacket() (section 5.5.10.2). A "packet" is a segment here, so that
    /// InflightAtLoss() finds the segment itself or the one before it.
    pub(super) fn handle_lost(&mut self, ev: &LostSegment) {
        self.note_loss(ev.delivered);
        self.latest.count_range(ev.seq);
        if !self.probe.is_sample {
            return;
        }
        let (lost, tx_in_flight) = (ev.lost as f64, ev.tx_in_flight as f64);
        if self.is_inflight_too_high(lost, tx_in_flight) {
            let at_loss = self.inflight_at_loss(lost, tx_in_flight);
            self.too_high(ev.now, ev.delivered, at_loss, ev.app_limited);
        }
    }

    /// IsInflightTooHigh() of `lost` segments since one left as the last of `tx_in_flight`.
    #[inline]
    pub(super) fn is_inflight_too_high(&self, lost: f64, tx_in_flight: f64) -> bool {
        lost > self.rules.down(tx_in_flight * self.set.loss_thresh)
            || (lost > 0.0 && self.is_blind())
    }

    /// No SACK says how much of what was in flight is lost.
    pub(super) fn is_blind(&self) -> bool {
        self.rules.distrusts_without_sack && !self.setup.selective_acks
    }

    /// InflightAtLoss() of one segment (section 5.5.10.2): how much was in flight when losses
    /// crossed the threshold.
    fn inflight_at_loss(&self, lost: f64, tx_in_flight: f64) -> f64 {
        let thresh = self.set.loss_thresh;
        let (inflight_prev, lost_prev) = (tx_in_flight - 1.0, lost - 1.0);
        let budget = self.rules.up(thresh * inflight_prev);
        let lost_prefix = self.rules.down((budget - lost_prev) / (1.0 - thresh));
        // What the draft takes back the kernel leaves.
        let least = if self.rules.whole {
            0.0
        } else {
            f64::NEG_INFINITY
        };
        (inflight_prev + lost_prefix.max(least)).max(0.0)
    }

    /// HandleInflightTooHigh().
    pub(super) fn too_high(
        &mut self,
        now: Time,
        c_delivered: u64,
        tx_in_flight: f64,
        app_limited: bool,
    ) {
        self.probe.too_high = true;
        self.probe.is_sample = false;
        if !app_limited {
            let floor = self.target_inflight() * self.set.beta;
            self.inflight_longterm = self.rules.down(tx_in_flight.max(floor));
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now, c_delivered);
        }
    }

    /// NoteLoss().
    fn note_loss(&mut self, c_delivered: u64) {
        let begins = !self.latest.loss_in_round && self.repair == Repair::None;
        if begins && self.rules.saves_at_first_loss {
            self.save_state_upon_loss();
            self.repair = Repair::Noted;
        }
        self.latest.note_loss(c_delivered);
    }

    pub(super) fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            short: self.short,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// AdaptLowerBoundsFromCongestion(), at the end of a loss round.
    pub(super) fn adapt_lower_bounds(&mut self) {
        if self.latest.loss_in_round && !self.is_probing_bw() {
            self.short
                .adapt(&self.latest, self.max_bw.get(), self.cwnd, self.set.beta);
            self.short.inflight = self.rules.down(self.short.inflight);
        }
    }

    /// A mark is a loss to the model (section 3.6). RFC 3168's echo does not count marks: a round
    /// has one.
    pub(super) fn on_mark(&mut self, ev: &CongestionEvent) {
        self.latest.note_loss(self.latest.c_delivered);
        if self.state == State::Startup {
            self.leave_startup_full();
            self.enter_drain();
        } else if self.probe.is_sample {
            let delivered = self.latest.c_delivered;
            self.too_high(ev.now, delivered, ev.flight as f64, false);
        }
    }

    /// HandleSpuriousLossDetection() (section 5.5.11.2).
    pub(super) fn handle_spurious_loss(&mut self) {
        self.restore_cwnd();
        self.latest.loss_in_round = false;
        self.full.reset(0.0);
        self.short.raise_to(&self.undo.short);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        let state = self.undo.state.take();
        match state.filter(|_| self.rules.saves_at_first_loss) {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill(self.latest.c_delivered);
            }
            _ => {}
        }
    }
}
