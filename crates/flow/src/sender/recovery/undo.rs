//! Reductions that turn out to be spurious: Eifel (RFC 3522) and DSACK (RFC 3708), by the RFCs or
//! by Linux.
//!
//! Both hold what ACKs say against the retransmissions of the reduction. Those that were in the
//! network before it began may be acknowledged, or reported as duplicates, during it: they belong
//! to it (Linux `tcp_init_undo`, `tcp_any_retrans_done`).

use fullpipe_cc::Phase;
use fullpipe_units::Time;

use super::frto::Frto;
use super::{Irregular, Recovery};
use crate::config::{Detector, SpuriousRule};
use crate::episode::Proof;
use crate::sender::scoreboard::{Scoreboard, Sent};

/// What is needed to recognise a reduction as spurious.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct UndoMark {
    /// First unacknowledged segment when it began.
    una: u64,
    by_timeout: bool,
    /// Retransmissions in the network when it began, and those since.
    retransmissions: u64,
    /// Duplicates reported since.
    duplicates: u64,
    /// The time stamp that an original's must be older than (RFC 3522 section 3.2, RetransmitTS):
    /// that of the first retransmission since it began, or that of the first outstanding segment if
    /// a recovery before had resent it.
    retransmit_ts: Option<Time>,
    /// The first ACK that advanced after that has been examined: Eifel is over.
    examined: bool,
    /// DSACK proves nothing in this window (RFC 3708 section 3, conditions A and C).
    dsack_is_over: bool,
}

impl UndoMark {
    /// `retransmissions` are in the network.
    pub(super) fn new(una: u64, by_timeout: bool, retransmissions: u64) -> Self {
        Self {
            una,
            by_timeout,
            retransmissions,
            duplicates: 0,
            retransmit_ts: None,
            examined: false,
            dsack_is_over: false,
        }
    }

    /// The recovery before may have resent `head`, the first outstanding segment: then its ACK is
    /// examined, not that of what this one resends behind it.
    pub(super) fn resent(mut self, head: &Sent) -> Self {
        self.retransmit_ts = head.retransmitted().then_some(head.xmit);
        self
    }

    /// The reduction is that of a timeout.
    pub(in crate::sender) fn is_of_timeout(&self) -> bool {
        self.by_timeout
    }

    /// The last retransmission never left the host.
    pub(super) fn on_unsent(&mut self) {
        self.retransmissions = self.retransmissions.saturating_sub(1);
    }

    /// `again`: the segment was resent before. A duplicate of it would not tell which of its
    /// retransmissions was for nothing. `head`: the first outstanding one, as it was sent last.
    #[inline]
    pub(super) fn on_retransmit(&mut self, now: Time, again: bool, head: &Sent) {
        self.retransmit_ts
            .get_or_insert(if head.retransmitted() { head.xmit } else { now });
        self.retransmissions += 1;
        self.dsack_is_over |= again;
    }

    /// Every retransmission was reported as a duplicate.
    fn all_were_duplicates(&self) -> bool {
        self.retransmissions > 0 && self.duplicates >= self.retransmissions
    }
}

/// What an ACK says of the reduction under way, or of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Verdict {
    /// Nothing against it.
    Stands,
    /// It was spurious; `unmark`: what is marked lost is in the network after all.
    Spurious { unmark: bool, by: Proof },
    /// A segment that was taken to be lost arrived unaided while retransmissions are still out:
    /// until the next ACK nothing is judged lost or resent (Linux `tcp_try_undo_partial`).
    Doubtful,
}

/// The proof of a spurious reduction to record: by duplicates, else by a time stamp.
fn proof(duplicates: bool) -> Proof {
    match duplicates {
        true => Proof::Duplicates,
        false => Proof::Stamp,
    }
}

impl Recovery {
    /// What this ACK says of the reduction.
    #[inline]
    pub(in crate::sender) fn judge_reduction(
        &mut self,
        ir: &Irregular<'_>,
        board: &Scoreboard,
    ) -> Verdict {
        let sends_dsack = self.dsacks > 0;
        if let Some(seq) = ir.dsack {
            self.count_duplicate(ir, seq, board);
        }
        match self.cfg.undo_by {
            SpuriousRule::Rfc => self.judge_by_rfcs(ir, sends_dsack, board),
            SpuriousRule::Linux => self.judge_by_linux(ir, board),
        }
    }

    /// The window of a reduction begins: what is in the network as a retransmission belongs to it.
    pub(super) fn note_retransmissions_out(&mut self, board: &Scoreboard) {
        self.unexplained.clear();
        if self.cfg.undo && self.cfg.undo_by == SpuriousRule::Rfc {
            self.unexplained.extend(board.retransmissions_out());
        }
    }

    /// A duplicate of `seq` arrived. RFC 3708 section 3 has three cases in which that says nothing:
    /// all ACKs of a window were lost, the segment was resent more than once, or never. Linux
    /// (`tcp_dsack_seen`) ignores more duplicates than retransmissions.
    fn count_duplicate(&mut self, ir: &Irregular<'_>, seq: u64, board: &Scoreboard) {
        self.dsacks += 1;
        if self.cfg.undo_by == SpuriousRule::Linux && self.dsacks > self.retransmitted {
            return;
        }
        let sent = board.recorded(seq);
        // The case of lost ACKs comes first: then it is no duplicate of the network's.
        let acks_lost = !ir.scoreboard && seq == ir.una;
        self.network_duplicates |= !acks_lost && sent.is_some_and(|s| !s.retransmitted());
        let of_window = match self.cfg.undo_by {
            SpuriousRule::Rfc => {
                let found = self.unexplained.iter().position(|&n| n == seq);
                found.is_some_and(|i| self.unexplained.remove(i).is_some())
            }
            SpuriousRule::Linux => true,
        };
        if let Some(mark) = &mut self.undo {
            mark.duplicates += u64::from(of_window && seq >= mark.una);
            let ambiguous = sent.is_some_and(Sent::resent_again);
            mark.dsack_is_over |= ambiguous || acks_lost;
        }
    }

    /// The first ACK that advances after the first retransmission echoes a stamp from before it
    /// (RFC 3522 section 3.2), or every retransmission was reported as a duplicate (RFC 3708). By
    /// step 5 of the former a DSACK means that ACKs were lost, and so may an ACK for everything if
    /// the peer is not known to send DSACKs.
    fn judge_by_rfcs(
        &mut self,
        ir: &Irregular<'_>,
        sends_dsack: bool,
        board: &Scoreboard,
    ) -> Verdict {
        let Some(mark) = &mut self.undo else {
            return Verdict::Stands;
        };
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let ambiguous = mark.dsack_is_over || self.network_duplicates;
        let duplicates = ir.dsack.is_some() && mark.all_were_duplicates() && !ambiguous;
        let mut delayed = false;
        if let Some(first) = mark.retransmit_ts
            && ir.advanced
            && !mark.examined
        {
            mark.examined = true;
            let older = ir.echo.is_some_and(|echo| echo < first);
            let acks_arrived = ir.dsack.is_none() && (sends_dsack || board.flight() > 0);
            delayed = recovering && older && acks_arrived;
        }
        match duplicates || delayed {
            true => Verdict::Spurious {
                unmark: true,
                by: proof(duplicates),
            },
            false => Verdict::Stands,
        }
    }

    /// Linux 6.1 `tcp_may_undo` where `tcp_fastretrans_alert` and `tcp_process_loss` ask for it:
    /// any ACK may tell, not the first alone, and stamps have milliseconds.
    fn judge_by_linux(&mut self, ir: &Irregular<'_>, board: &Scoreboard) -> Verdict {
        let Some(mark) = &self.undo else {
            return Verdict::Stands;
        };
        let ms = |t: Time| t.as_nanos() / 1_000_000;
        let ended = board.una() >= self.point;
        let delayed = match self.first_retransmission {
            Some(first) => ir.echo.is_some_and(|echo| ms(echo) < ms(first)),
            // Nothing was resent and the hole is filled.
            None => !(ended && self.cfg.detector == Detector::NewReno),
        };
        let duplicates = mark.all_were_duplicates();
        let by = proof(duplicates);
        let (spurious, unmark) = match self.phase {
            Phase::Recovery if ended => (duplicates || delayed, false),
            Phase::Recovery if ir.advanced && delayed => {
                // The hole was filled by a late segment (`tcp_try_undo_partial`).
                if ir.una < board.fack() {
                    self.rack.saw_reordering(board.fack() - ir.una);
                }
                if board.retrans_out() > 0 {
                    return Verdict::Doubtful;
                }
                return Verdict::Spurious {
                    unmark: true,
                    by: Proof::Stamp,
                };
            }
            Phase::Loss => (ir.advanced && (duplicates || delayed), true),
            Phase::Cwr => (false, false),
            Phase::Open | Phase::Disorder | Phase::Recovery => {
                if duplicates {
                    self.rack.on_dsack_undo();
                }
                (duplicates, false)
            }
        };
        match spurious {
            true => Verdict::Spurious { unmark, by },
            false => Verdict::Stands,
        }
    }

    /// `seq` is resent; `board` does not know of it yet.
    #[inline]
    pub(in crate::sender) fn on_retransmit(&mut self, now: Time, seq: u64, board: &Scoreboard) {
        self.first_retransmission.get_or_insert(now);
        self.fast_retransmit = false;
        self.retransmitted += 1;
        if let Some(undo) = &mut self.undo {
            let again = board.get(seq).retransmitted();
            undo.on_retransmit(now, again, board.get(board.una()));
            if self.cfg.undo_by == SpuriousRule::Rfc {
                self.unexplained.push_back(seq);
            }
        }
    }

    /// If nothing that was resent is outstanding, the next retransmission is the first (Linux
    /// `tcp_retrans_stamp_cleanup`).
    #[inline]
    pub(super) fn forget_old_retransmissions(&mut self, board: &Scoreboard) {
        if !board.has_resent() {
            self.first_retransmission = None;
        }
    }

    /// Until the next ACK nothing is judged lost or resent.
    pub(in crate::sender) fn doubt(&mut self) {
        self.doubtful = true;
    }

    /// Whether an undo gives the window back, too.
    pub(in crate::sender) fn gives_back(&self) -> bool {
        self.gives_back
    }

    /// Takes the mark of the reduction to be undone, if it can be.
    pub(in crate::sender) fn take_undo(&mut self) -> Option<UndoMark> {
        self.undo.take()
    }

    /// The controller has undone the reduction; `unmark`: what is marked lost is in the network
    /// after all.
    pub(in crate::sender) fn undone(&mut self, unmark: bool, by: Proof, board: &mut Scoreboard) {
        if unmark {
            board.forget_losses();
        }
        match self.cfg.reordering_by {
            SpuriousRule::Rfc => self.rack.saw_reordering(0),
            SpuriousRule::Linux => self.rack.look_again(),
        }
        if by == Proof::Stamp && self.rack.take_back() {
            // What it was judged by were originals, taken for the retransmissions that the stamp
            // shows to be needless; those that follow would begin the same reduction again.
            self.stamped_until = board.nxt();
            board.forget_overtaken();
        }
        self.fast_retransmit = false;
        self.prr = None;
        if self.stays_after_undo(by, board) {
            self.undone_in_loss = true;
            return;
        }
        self.frto = Frto::Off;
        if matches!(self.phase, Phase::Recovery | Phase::Loss) {
            if self.cfg.undo_by == SpuriousRule::Rfc {
                self.rack.on_recovery_exit();
            }
            if self.is_held_blind() && board.una() < self.point {
                // What was undone in part is no recovery to ask about (`tcp_try_keep_open`,
                // `tcp_try_undo_loss`).
                self.point = 0;
            }
            self.rest(board);
        }
    }

    /// Without SACK a time stamp gives back the window after a timeout, but not the state: only
    /// F-RTO, which goes on, opens it, and not where the ACK ends at the point (Linux
    /// `tcp_try_undo_loss`).
    fn stays_after_undo(&self, by: Proof, board: &Scoreboard) -> bool {
        self.is_held_blind()
            && self.cfg.frto_by == SpuriousRule::Linux
            && self.phase == Phase::Loss
            && (by != Proof::Forward || board.una() == self.point)
    }

    /// The window was given back after a timeout, the state was not.
    pub(in crate::sender) fn is_undone_in_loss(&self) -> bool {
        self.undone_in_loss && self.phase == Phase::Loss
    }
}
