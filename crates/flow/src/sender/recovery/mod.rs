//! The recovery phases: what an ACK that is not plain does to them, and when they end.
//!
//! The parts: `detect` judges what is lost, with the clock of `rack`; `reduce` answers, with the quota of `prr`; `timeout`,
//! `probe` and `undo` are the retransmission timer, tail loss probes and reductions taken back.

mod detect;
mod probe;
mod prr;
mod rack;
mod reduce;
mod timeout;
mod undo;

use fullpipe_cc::{AckEvent, CongestionKind, Controller, Phase, Stamps};
use fullpipe_units::Time;

pub(super) use probe::Probe;
pub use prr::{Prr, PrrAck};
pub(super) use rack::Rack;
pub(super) use timeout::Frto;
pub(super) use undo::UndoMark;

use super::Sender;
use super::scoreboard::Delivered;
use crate::config::Detector;
use crate::segment::Ack;

impl<C: Controller> Sender<C> {
    /// Everything but a plain cumulative ACK in an open, clean window.
    #[cold]
    pub(in crate::sender) fn irregular_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        advanced: bool,
        dsack: Option<u64>,
        d: &Delivered,
        event: &mut AckEvent,
    ) {
        if self.cfg.recovery.detector == Detector::Rack {
            if let Some((seq, newest)) = d.newest {
                let echo = advanced.then_some(ack.echo);
                self.rack.advance(now, seq, &newest, echo, self.rtt.min());
            }
            if d.reordered {
                self.rack.saw_reordering();
            }
            if dsack.is_some() {
                self.rack.on_dsack(self.board.una(), self.board.nxt());
            }
        }
        if advanced {
            self.expiries = 0;
        }
        self.check_undo(now, ack, advanced, dsack);
        self.check_probe(now, advanced, dsack, event);
        self.check_frto(now, ack, advanced, d);
        let ended = self.leave_phase_if_done(now);

        if self.phase == Phase::Open && self.board.sacked_out() > 0 {
            self.phase = Phase::Disorder;
            self.limited_sent = 0;
        }
        let (lost, again) = self.detect(now, advanced);
        event.lost = lost + again;
        // What is missing of the data sent since the last reduction is the next window's loss.
        let lost = if ended { self.board.lost_out() } else { lost };
        if lost > 0 && matches!(self.phase, Phase::Open | Phase::Disorder | Phase::Cwr) {
            self.reduce(now, CongestionKind::Loss, lost, event);
        } else if again > 0 && self.phase == Phase::Recovery {
            self.reduce_again(now, lost + again);
        } else if again > 0 && self.phase == Phase::Loss && self.cfg.recovery.recover_from_loss {
            self.reduce(now, CongestionKind::Loss, again, event);
        }
    }

    /// RFC 6582 section 4, "Impatient": of the partial ACKs only the first restarts the retransmission timer.
    pub(in crate::sender) fn keeps_timer(&mut self) -> bool {
        self.cfg.recovery.detector == Detector::NewReno
            && self.phase == Phase::Recovery
            && std::mem::replace(&mut self.partial_ack_seen, true)
    }

    fn event_for(&self, now: Time, d: &Delivered) -> AckEvent {
        self.event(now, d, false, self.board.pipe(), Stamps::default())
    }

    /// Ends disorder that healed, and a reduction whose data is acknowledged; true for the latter.
    fn leave_phase_if_done(&mut self, now: Time) -> bool {
        let una = self.board.una();
        match self.phase {
            Phase::Open => {}
            Phase::Disorder => {
                if self.board.sacked_out() == 0 {
                    self.phase = Phase::Open;
                    self.limited_sent = 0;
                }
            }
            Phase::Cwr | Phase::Recovery | Phase::Loss => {
                if una >= self.recovery_point {
                    if self.phase == Phase::Recovery {
                        self.rack.on_recovery_exit();
                    }
                    self.board_healed();
                    self.prr = None;
                    self.frto = Frto::Off;
                    self.cc.on_recovery_exit(now);
                    return true;
                }
            }
        }
        false
    }

    fn board_healed(&mut self) {
        if self.cfg.recovery.detector == Detector::NewReno {
            self.board.remove_duplicates(u64::MAX);
            self.duplicates = 0;
        }
        self.limited_sent = 0;
        self.phase = if self.board.sacked_out() > 0 {
            Phase::Disorder
        } else {
            Phase::Open
        };
    }
}
