//! A reduction begins, and what its quota lets out.

use fullpipe_cc::Phase;
use fullpipe_units::Time;

use super::detect::Losses;
use super::frto::Frto;
use super::prr::{Prr, PrrAck};
use super::undo::UndoMark;
use super::{PrrStart, Recovery};
use crate::config::{Reduction, SpuriousRule};
use crate::sender::scoreboard::Scoreboard;

impl Recovery {
    /// Whether a sign of congestion asks for a reduction now: one per window of data, and after a
    /// timeout only for a `loss`.
    pub(in crate::sender) fn admits_reduction(&self, loss: bool) -> bool {
        loss || !self.is_reducing()
    }

    /// A loss in a window of data whose reduction began with a mark or a local drop: only the
    /// repair is new. True if that is so.
    ///
    /// In Linux the recovery ends where the reduction would have (`tcp_enter_recovery` leaves
    /// `high_seq` alone), so that what was lost behind that point reduces once more, and it can be
    /// undone, without the window (`tcp_init_undo`).
    pub(in crate::sender) fn repair_only(&mut self, board: &Scoreboard) -> bool {
        let is_cwr = self.phase == Phase::Cwr;
        if is_cwr {
            self.phase = Phase::Recovery;
            if self.cfg.reduction != Reduction::PrrWindow {
                self.point = board.nxt();
            }
            if self.cfg.undo && self.cfg.undo_by == SpuriousRule::Linux {
                self.forget_old_retransmissions(board);
                let mark = UndoMark::new(board.una(), false, board.retrans_out());
                self.undo = Some(mark);
                self.gives_back = false;
            }
        }
        is_cwr
    }

    /// A reduction begins: a recovery if something is lost, CWR otherwise.
    pub(in crate::sender) fn begin(&mut self, now: Time, loss: bool, board: &Scoreboard) {
        self.phase = if loss { Phase::Recovery } else { Phase::Cwr };
        self.frto = Frto::Off;
        self.point = board.nxt();
        self.reduced_at = now;
        self.fast_retransmit = loss && self.cfg.reduction == Reduction::Immediate;
        self.rescue_after = board.una() + 1;
        self.probe.confirm();
        self.newreno.begin_recovery();
        self.forget_old_retransmissions(board);
        self.note_retransmissions_out(board);
        let may_undo = loss && self.cfg.undo;
        self.undo = may_undo.then(|| {
            let mark = UndoMark::new(board.una(), false, board.retrans_out());
            mark.resent(board.get(board.una()))
        });
        self.gives_back = loss;
    }

    /// The quota of the reduction that has begun, if it is to have one.
    pub(in crate::sender) fn start_prr(&mut self, start: PrrStart) {
        let recover_fs = match self.cfg.reduction {
            Reduction::Immediate => return,
            Reduction::Prr => start.outstanding,
            Reduction::PrrWindow => start.window,
        };
        self.prr = Some(Prr::new(start.ssthresh, recover_fs, start.window));
    }

    /// The reduction under way goes on to another threshold.
    pub(in crate::sender) fn aim_at(&mut self, ssthresh: u64) {
        if let Some(prr) = &mut self.prr {
            prr.aim_at(ssthresh);
        }
    }

    /// The reordering timer found losses, and no ACK brings a quota. In Linux the timer counts as
    /// one delivery (`tcp_rack_reo_timeout`); otherwise one segment leaves where a reduction
    /// `begins`.
    pub(in crate::sender) fn release_without_ack(&mut self, begins: bool, start: PrrStart) {
        match self.cfg.reduction {
            Reduction::PrrWindow => self.allow(PrrAck {
                delivered: 1,
                inflight: start.window - 1,
                good: false,
            }),
            _ if begins => self.replace_prr(start),
            _ => {}
        }
    }

    /// Replaces the quota of a reduction that began without an ACK.
    pub(in crate::sender) fn replace_prr(&mut self, start: PrrStart) {
        if let Some(prr) = &mut self.prr {
            *prr = Prr::new(start.ssthresh, start.outstanding, start.window);
        }
    }

    /// A lost retransmission reduces again, if it is to.
    pub(in crate::sender) fn reduces_again(&self) -> bool {
        self.cfg.reduce_on_lost_retransmission
    }

    /// It has, and the quota begins anew.
    pub(in crate::sender) fn reduced_again(&mut self, now: Time, start: PrrStart) {
        self.reduced_at = now;
        if self.prr.is_some() {
            self.start_prr(start);
        }
    }

    /// A retransmission lost after a timeout begins a recovery of its own.
    pub(in crate::sender) fn recovers_from_loss(&self) -> bool {
        self.phase == Phase::Loss && self.cfg.recover_from_loss
    }

    /// Segments whose loss begins one after the reordering timer; 0: none does. Linux asks there
    /// for no lost retransmission (`tcp_rack_reo_timeout`).
    pub(in crate::sender) fn recovers_by_time(&self, losses: Losses) -> u64 {
        match (self.recovers_from_loss(), self.cfg.reduction) {
            (false, _) => 0,
            (true, Reduction::PrrWindow) => losses.all(),
            (true, _) => losses.retransmissions,
        }
    }

    /// The reduction under way is justified: it must not be undone. In Linux the window stays, but
    /// the recovery may end (`tcp_fastretrans_alert`, point D).
    pub(in crate::sender) fn justify(&mut self) {
        match self.cfg.undo_by {
            SpuriousRule::Rfc => self.undo = None,
            SpuriousRule::Linux => self.gives_back = false,
        }
    }
}
