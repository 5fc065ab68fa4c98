//! Forward RTO recovery: whether the retransmission timer went off for nothing. RFC 5682, by its
//! section 3.1 with SACK and section 2.1 without, or Linux 6.1 `tcp_process_loss`.

use fullpipe_cc::Phase;

use super::{Irregular, Recovery};
use crate::config::{Detector, SpuriousRule};
use crate::sender::scoreboard::Scoreboard;

/// Step of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frto {
    Off,
    /// Step 2: the timed-out segment was resent; its ACK is awaited.
    AwaitFirst,
    /// Step 3: new data was sent instead of retransmissions; the next ACK decides.
    AwaitSecond,
    /// Linux: an ACK that was neither came. Retransmissions go on, and a later ACK may still
    /// decide.
    AwaitLater,
}

impl Frto {
    pub(super) fn holds_retransmissions(self) -> bool {
        self == Frto::AwaitSecond
    }
}

impl Recovery {
    /// F-RTO is under way.
    #[inline]
    pub(in crate::sender) fn is_testing_timeout(&self) -> bool {
        self.frto != Frto::Off
    }

    /// Segments that it still lets leave after `sent` in all.
    pub(in crate::sender) fn frto_quota(&self, sent: u64) -> u64 {
        self.frto_until.saturating_sub(sent)
    }

    /// Of the RFC's step 2 and step 3 the first resends one segment, the second sends two new ones;
    /// `sent` have left so far. Linux leaves it to the window.
    fn enter_frto(&mut self, next: Frto, sent: u64) {
        if self.frto != next {
            let quota = match (self.cfg.frto_by, next) {
                (SpuriousRule::Rfc, Frto::AwaitFirst) => 1,
                (SpuriousRule::Rfc, Frto::AwaitSecond) => 2,
                _ => u64::MAX,
            };
            self.frto_until = sent.saturating_add(quota);
            // The ACK came before the host let the retransmission of step 1 out: step 2b sends new
            // data and nothing else.
            self.fast_retransmit &= next != Frto::AwaitSecond;
        }
        self.frto = next;
    }

    /// The pacer holds back what would leave now. New data that has not left yet ends F-RTO in
    /// Linux, and once some has, what is lost leaves before more of it: the pacer's timer asks
    /// nobody (`tcp_xmit_recovery`, `tcp_tsq_write`).
    pub(in crate::sender) fn pace_frto(&mut self, board: &Scoreboard) {
        if self.frto == Frto::AwaitSecond && self.cfg.frto_by == SpuriousRule::Linux {
            self.frto = match board.nxt() > self.point {
                true => Frto::AwaitLater,
                false => Frto::Off,
            };
        }
    }

    /// F-RTO after a timeout.
    pub(super) fn start_frto(&mut self, sent: u64) {
        let next = self.frto_after_timeout();
        self.frto = Frto::Off;
        self.enter_frto(next, sent);
    }

    /// The state after a timeout that found this phase. RFC 5682 section 3.1 step 1: not if a
    /// recovery is under way, except that the timer may go off again before the first ACK. Linux
    /// (`tcp_enter_loss`): at any repetition.
    fn frto_after_timeout(&self) -> Frto {
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let repeated = match self.cfg.frto_by {
            SpuriousRule::Rfc => self.frto == Frto::AwaitFirst,
            SpuriousRule::Linux => self.expiries > 1,
        };
        match self.cfg.frto && (!recovering || repeated) {
            true => Frto::AwaitFirst,
            false => Frto::Off,
        }
    }

    /// True if this ACK shows that the timeout was spurious and its reduction can be undone.
    /// `new_data`: there is some to send; `sent` segments have left so far.
    #[inline]
    pub(in crate::sender) fn shows_spurious_timeout(
        &mut self,
        ir: &Irregular<'_>,
        board: &Scoreboard,
        new_data: bool,
        sent: u64,
    ) -> bool {
        if self.frto == Frto::Off || self.phase != Phase::Loss {
            return false;
        }
        let (next, spurious) = match self.cfg.frto_by {
            SpuriousRule::Rfc => self.frto_step_by_rfc(ir, board, new_data),
            SpuriousRule::Linux => self.frto_step_by_linux(ir, board, new_data),
        };
        self.enter_frto(next, sent);
        spurious && (self.undo.is_some() || self.is_undone_in_loss())
    }

    /// Without SACK an ACK that advances stands for delivered data, a duplicate for a loss.
    fn frto_step_by_rfc(
        &self,
        ir: &Irregular<'_>,
        board: &Scoreboard,
        new_data: bool,
    ) -> (Frto, bool) {
        let d = ir.delivered;
        let sack = self.cfg.detector != Detector::NewReno;
        let duplicate = !ir.advanced && (d.sacked > 0 || !ir.window_update);
        match self.frto {
            // Duplicates before the ACK of the retransmission only tell the scoreboard.
            Frto::AwaitFirst if !ir.advanced => match sack || !duplicate {
                true => (Frto::AwaitFirst, false),
                false => (Frto::Off, false),
            },
            Frto::AwaitFirst => match board.una() < self.point && new_data {
                true => (Frto::AwaitSecond, false),
                false => (Frto::Off, false),
            },
            _ if !ir.advanced && !duplicate => (self.frto, false),
            _ => {
                let beyond = board.una() > self.point || board.fack() > self.point;
                let news = ir.advanced || (sack && d.sacked > 0);
                (Frto::Off, news && !beyond)
            }
        }
    }

    /// `FLAG_ORIG_SACK_ACKED` at any time means that the timer was wrong.
    fn frto_step_by_linux(
        &self,
        ir: &Irregular<'_>,
        board: &Scoreboard,
        new_data: bool,
    ) -> (Frto, bool) {
        let d = ir.delivered;
        // Without SACK an ACK that covers a retransmission says nothing of the originals behind it.
        let ambiguous = self.cfg.detector == Detector::NewReno
            && d.newest.is_some_and(|(_, sent)| sent.retransmitted());
        if !ambiguous && d.original.is_some_and(|seq| seq < self.point) {
            return (Frto::Off, true);
        }
        let duplicate = !ir.advanced && !ir.window_update && ir.dsack.is_none();
        if board.nxt() > self.point {
            let real = d.sacked > 0 || duplicate;
            let next = if real { Frto::Off } else { Frto::AwaitLater };
            return (next, false);
        }
        match ir.advanced && board.una() < self.point {
            true if new_data => (Frto::AwaitSecond, false),
            true => (Frto::Off, false),
            false => (self.frto, false),
        }
    }
}
