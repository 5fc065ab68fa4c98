//! Which segments are marked lost, in the order they were sent, and what takes the mark back.

use std::cmp::Reverse;
use std::mem;

use fullpipe_units::Time;

use super::Scoreboard;
use super::record::{LOST, MARKS, RETRANS_OUT, SACKED, Sent};
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
    /// `is_lost` holds; stops at the first for which it does not and returns its send time. Those
    /// before it are never looked at again. `resent`: also those whose retransmission was taken to
    /// be lost, and no longer is.
    pub fn mark_lost_originals(
        &mut self,
        limit: u64,
        resent: bool,
        lost: &mut u64,
        mut is_lost: impl FnMut(u64, &Sent) -> bool,
    ) -> Option<Time> {
        let mut seq = self.checked.max(self.una);
        let limit = limit.min(self.nxt);
        let mut pending = None;
        while seq < limit {
            let sent = *self.get(seq);
            let judged = if resent {
                SACKED | LOST | RETRANS_OUT
            } else {
                MARKS
            };
            if sent.flags & judged == 0 {
                if !is_lost(seq, &sent) {
                    pending = Some(sent.xmit);
                    break;
                }
                *lost += u64::from(self.mark_lost(seq));
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
                self.lose_retransmission(seq);
            }
            self.retrans.pop_front();
        }
        None
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
            if current && (xmit, seq) < newest {
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
            if !sent.retransmitted() && (sent.xmit, end) >= newest {
                break;
            }
            end += 1;
        }
        self.overtaken = end;
        while end > self.checked.max(self.una) {
            let seq = end - 1;
            let sent = self.get(seq);
            if sent.flags & MARKS == 0 {
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
        self.fresh_losses = Some(Vec::new());
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
    pub fn forget_losses(&mut self) {
        let mut again = Vec::new();
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
}

/// More retransmissions than this that have been delivered are not passed over twice.
const MOST_STALE: usize = 64;
