//! Which segments are marked lost, in the order they were sent, and what takes the mark back.

use std::cmp::Reverse;
use std::mem;

use fullpipe_units::Time;

use super::Scoreboard;
use super::record::{EXONERATED, LOST, MARKS, RETRANS_OUT, SACKED, Sent, UNLISTED, order};
use crate::ranges::Range;

impl Scoreboard {
    /// Marks one segment lost; true if it was not, and was not SACKed.
    pub fn mark_lost(&mut self, seq: u64) -> bool {
        let flags = self.get(seq).flags;
        if flags & (SACKED | LOST) != 0 {
            return false;
        }
        if flags & MARKS == 0 {
            self.marked += 1;
        }
        self.get_mut(seq).flags |= LOST;
        self.out.add_lost(1);
        self.note_loss(seq);
        match self.lost.back_mut() {
            Some(run) if run.end == seq => run.end += 1,
            Some(run) if run.end > seq => self.lost_retrans.push(Reverse(seq)),
            _ => self.lost.push_back(Range {
                start: seq,
                end: seq + 1,
            }),
        }
        true
    }

    /// Marks lost, in the order they were sent, the original transmissions below `limit` for which
    /// `is_lost` holds; stops at the first for which it does not and returns its send time and
    /// number. Those before it are never looked at again. `resent`: also those whose retransmission
    /// was taken to be lost, and no longer is.
    pub fn mark_lost_originals(
        &mut self,
        limit: u64,
        resent: bool,
        lost: &mut u64,
        mut is_lost: impl FnMut(u64, &Sent) -> bool,
    ) -> Option<(Time, u64)> {
        let mut seq = self.checked.max(self.una);
        let limit = limit.min(self.nxt);
        let mut pending = None;
        while seq < limit {
            let sent = *self.get(seq);
            let judged = if resent {
                SACKED | LOST | RETRANS_OUT
            } else {
                MARKS | UNLISTED
            };
            if sent.flags & judged == 0 {
                if !is_lost(seq, &sent) {
                    pending = Some((sent.xmit, seq));
                    break;
                }
                *lost += u64::from(self.mark_lost(seq));
                if !resent {
                    self.unlist(seq);
                }
            } else if sent.flags & SACKED != 0 {
                // Skip the whole run in one step.
                if let Some(run) = self.sacked.holding(seq) {
                    seq = run.end;
                    continue;
                }
            }
            seq += 1;
        }
        self.checked = seq;
        pending
    }

    /// The same for retransmissions in the network; as
    /// [`Scoreboard::mark_lost_originals`].
    pub fn mark_lost_retransmissions(
        &mut self,
        mut is_lost: impl FnMut(u64, &Sent) -> bool,
    ) -> Option<Time> {
        while let Some(&(seq, xmit)) = self.retrans.front() {
            if self.is_current(seq, xmit) {
                let sent = *self.get(seq);
                if !is_lost(seq, &sent) {
                    return Some(xmit);
                }
                match sent.is_exonerated() {
                    true => self.lose_exonerated(seq),
                    false => self.lose_retransmission(seq),
                }
                self.unlist(seq);
            }
            self.retrans.pop_front();
        }
        None
    }

    /// RACK has taken `seq` for lost, which takes it off Linux's list of what RACK looks at
    /// (`tcp_rack_detect_loss`).
    #[inline]
    fn unlist(&mut self, seq: u64) {
        if self.undo_by_linux {
            self.get_mut(seq).flags |= UNLISTED;
        }
    }

    /// Linux `tcp_mark_skb_lost`: the first mark leaves the retransmission counted as in the
    /// network, so that it is not resent; only a timeout marks it again.
    fn lose_exonerated(&mut self, seq: u64) {
        self.get_mut(seq).flags |= LOST;
        self.out.add_lost(1);
        self.note_loss(seq);
    }

    /// When the last transmission before `newest` (time and number) left that is neither SACKed nor
    /// lost: after both detections have stopped, what they may find later.
    /// `again` if a retransmission left before `newest`, too.
    pub fn last_suspect(&mut self, newest: (Time, u64), again: bool) -> Option<Time> {
        let original = self.last_suspected_original(newest);
        match again {
            true => self.last_suspected_retransmission(newest, original),
            false => original,
        }
    }

    /// The newest delivery is an earlier one again: what was sent before it is counted anew.
    pub fn forget_overtaken(&mut self) {
        self.overtaken = self.una;
    }

    /// The later one of `original` and the last retransmission before `newest`.
    fn last_suspected_retransmission(
        &mut self,
        newest: (Time, u64),
        original: Option<Time>,
    ) -> Option<Time> {
        let (mut again, mut stale) = (None, 0);
        let before = self.retrans.partition_point(|&(_, xmit)| xmit <= newest.0);
        for &(seq, xmit) in self.retrans.range(..before).rev() {
            if original.is_some_and(|at| at >= xmit) {
                break;
            }
            let current = self.is_current(seq, xmit);
            if current && order(xmit, seq) < order(newest.0, newest.1) {
                again = Some(xmit);
                break;
            }
            stale += usize::from(!current);
        }
        if stale > MOST_STALE {
            let mut retrans = mem::take(&mut self.retrans);
            retrans.retain(|&(seq, xmit)| self.is_current(seq, xmit));
            self.retrans = retrans;
        }
        original.max(again)
    }

    fn last_suspected_original(&mut self, newest: (Time, u64)) -> Option<Time> {
        let mut end = self.overtaken.max(self.una);
        while end < self.nxt {
            let sent = self.get(end);
            if !sent.retransmitted() && order(sent.xmit, end) >= order(newest.0, newest.1) {
                break;
            }
            end += 1;
        }
        self.overtaken = end;
        while end > self.checked.max(self.una) {
            let seq = end - 1;
            let sent = self.get(seq);
            if sent.flags & (MARKS | UNLISTED) == 0 {
                return Some(sent.xmit);
            }
            end = match self.sacked.holding(seq) {
                Some(run) => run.start,
                None => seq,
            };
        }
        None
    }

    /// The retransmission of `seq` that left at `xmit` is its last, and in the network.
    fn is_current(&self, seq: u64, xmit: Time) -> bool {
        seq >= self.una && {
            let sent = self.get(seq);
            sent.is_out_again() && sent.xmit == xmit
        }
    }

    pub(super) fn lose_retransmission(&mut self, seq: u64) {
        let sent = self.get_mut(seq);
        // A tail loss probe resends a segment that was not marked lost; after an undo neither mark
        // is set.
        let fresh = sent.flags & LOST == 0;
        let out = sent.flags & RETRANS_OUT != 0;
        sent.flags = (sent.flags | LOST) & !RETRANS_OUT;
        self.out.add_lost(u64::from(fresh));
        self.out.remove_retrans(u64::from(out));
        self.lost_retrans.push(Reverse(seq));
        self.note_loss(seq);
    }

    /// Keeps every segment that is marked lost from here on until
    /// [`Scoreboard::take_fresh_losses`].
    pub fn keep_losses(&mut self) {
        self.fresh_losses.get_or_insert_default();
    }

    /// [`Scoreboard::keep_losses`] was called.
    #[inline]
    pub fn keeps_losses(&self) -> bool {
        self.fresh_losses.is_some()
    }

    /// Segments marked lost since the last call, as they were sent last.
    pub fn take_fresh_losses(&mut self) -> Vec<(u64, Sent)> {
        self.fresh_losses.as_mut().map_or_else(Vec::new, mem::take)
    }

    #[inline]
    fn note_loss(&mut self, seq: u64) {
        let sent = *self.get(seq);
        if let Some(fresh) = &mut self.fresh_losses {
            fresh.push((seq, sent));
        }
    }

    /// Marks everything outstanding and not SACKed lost, retransmissions too (go-back-N after a
    /// timeout), except segments for which `spared` holds; the first outstanding one always goes.
    pub fn lose_all(&mut self, mut spared: impl FnMut(&Sent) -> bool) -> u64 {
        let mut lost = 0;
        self.lost.clear();
        self.lost_retrans.clear();
        self.checked = self.nxt;
        for seq in self.una..self.nxt {
            let sent = *self.get(seq);
            let flags = sent.flags;
            if flags & SACKED != 0 {
                continue;
            }
            let waiting = flags & (LOST | RETRANS_OUT) == LOST;
            if !waiting && seq != self.una && spared(&sent) {
                if flags & MARKS == 0 {
                    self.checked = self.checked.min(seq);
                }
                continue;
            }
            // The first one is resent at once whatever its marks are.
            if sent.is_exonerated() && seq != self.una {
                self.lose_exonerated(seq);
                continue;
            }
            self.get_mut(seq).flags = (flags | LOST) & !RETRANS_OUT;
            self.marked += u64::from(flags & MARKS == 0);
            self.out.remove_retrans(u64::from(flags & RETRANS_OUT != 0));
            lost += u64::from(flags & LOST == 0);
            if !waiting {
                self.note_loss(seq);
            }
            match self.lost.back_mut() {
                Some(run) if run.end == seq => run.end += 1,
                _ => self.lost.push_back(Range {
                    start: seq,
                    end: seq + 1,
                }),
            }
        }
        self.out.add_lost(lost);
        // Those that are resent at this very instant come back in their new order.
        let mut retrans = std::mem::take(&mut self.retrans);
        retrans.retain(|&(seq, xmit)| {
            seq >= self.una && {
                let sent = self.get(seq);
                sent.flags & RETRANS_OUT != 0 && sent.xmit == xmit
            }
        });
        self.retrans = retrans;
        lost
    }

    /// Undo after a spurious timeout or recovery: what is marked lost and was not resent is in the
    /// network after all. So is a retransmission that was taken to be lost: it is judged by its own
    /// send time again (RFC 8985 section 6.2 step 5).
    ///
    /// Linux takes the mark from everything, also from what is being resent, and never puts back
    /// what RACK has taken off its list: `tcp_undo_cwnd_reduction` clears `TCPCB_LOST` alone.
    pub fn forget_losses(&mut self) {
        let mut again = Vec::new();
        if self.undo_by_linux {
            self.exonerate_retransmissions();
        }
        while let Some(seq) = self.next_lost() {
            let sent = self.get_mut(seq);
            sent.flags &= !LOST;
            if sent.retransmitted() {
                again.push((seq, sent.xmit));
            }
            let clean = sent.flags & MARKS == 0;
            self.marked -= u64::from(clean);
            self.out.remove_lost(1);
        }
        if !again.is_empty() {
            again.extend(self.retrans.drain(..));
            again.sort_unstable_by_key(|&(seq, xmit)| (xmit, seq));
            again.dedup();
            self.retrans.extend(again);
        }
        self.checked = self.una;
        self.searched = self.una;
    }

    fn exonerate_retransmissions(&mut self) {
        for seq in self.una..self.nxt {
            let sent = self.get_mut(seq);
            if sent.flags & (LOST | RETRANS_OUT) == LOST | RETRANS_OUT {
                sent.flags = (sent.flags & !LOST) | EXONERATED;
                self.out.remove_lost(1);
            }
        }
    }
}

/// More retransmissions than this that have been delivered are not passed over twice.
const MOST_STALE: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::Delivered;
    use super::*;

    const RTT: u64 = 100;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Five segments; RACK takes 0 to 3 for lost, 1 for the second time; a timeout resends 0; an
    /// undo forgives it all. RACK then takes everything for lost that it still looks at.
    fn lost_and_forgiven(by_linux: bool) -> Scoreboard {
        let mut board = Scoreboard::default();
        if by_linux {
            board.undo_by_linux();
        }
        (0..5).for_each(|seq| _ = board.push(at(seq), 0, false));
        let mut lost = 0;
        board.mark_lost_originals(3, false, &mut lost, |_, _| true);
        board.resend(1, at(RTT), 0, false);
        board.lose_all(|_| false);
        board.resend(0, at(2 * RTT), 0, false);
        board.forget_losses();
        board.audit(false).unwrap();
        board.mark_lost_originals(5, false, &mut lost, |_, _| true);
        board.mark_lost_retransmissions(|_, _| true);
        board.audit(false).unwrap();
        board
    }

    fn waiting(board: &mut Scoreboard) -> Vec<u64> {
        let mut seqs = Vec::new();
        while let Some(seq) = board.next_lost() {
            board.resend(seq, at(9 * RTT), 0, false);
            seqs.push(seq);
        }
        seqs
    }

    /// RFC 8985 section 6.2 step 5: each is judged by its last transmission.
    #[test]
    fn what_an_undo_forgives_may_be_lost_again() {
        assert_eq!(waiting(&mut lost_and_forgiven(false)), [0, 1, 2, 3, 4]);
    }

    /// Linux 6.1: 2 is off RACK's list since it was first lost, 0 was in the network when it was
    /// forgiven (a first `tcp_mark_skb_lost` leaves `TCPCB_SACKED_RETRANS`). Only a timeout finds
    /// both; what was lost since the undo is resent.
    #[test]
    fn what_linux_forgives_waits_for_a_timeout() {
        let mut board = lost_and_forgiven(true);
        assert_eq!(waiting(&mut board), [1, 3, 4]);
        assert_eq!(board.pipe(), 5, "each hole counts as in the network");
        board.lose_all(|_| false);
        assert_eq!(waiting(&mut board), [0, 1, 2, 3, 4]);
    }

    /// It counts as resent and in the network until it is acknowledged in order
    /// (`tcp_sacktag_one`).
    #[test]
    fn what_linux_forgives_is_counted_until_it_is_acknowledged() {
        let mut board = Scoreboard::default();
        board.undo_by_linux();
        (0..3).for_each(|seq| _ = board.push(at(seq), 0, false));
        board.lose_all(|_| false);
        board.resend(1, at(RTT), 0, false);
        board.forget_losses();
        assert_eq!((board.pipe(), board.retrans_out()), (4, 1));
        let mut d = Delivered::default();
        board.sack(Range { start: 1, end: 2 }, &mut d);
        board.audit(false).unwrap();
        assert_eq!((board.pipe(), board.retrans_out()), (3, 1));
        board.ack_to(2, &mut d);
        board.audit(false).unwrap();
        assert_eq!((board.pipe(), board.retrans_out()), (1, 0));
    }
}
