//! What to send again, and the numbers RFC 6675 asks of the SACKed ranges.

use std::cmp::Reverse;

use super::Scoreboard;
use super::record::{LOST, RETRANS_OUT, SACKED};

impl Scoreboard {
    /// False if nothing waits to be resent; true also of what [`Scoreboard::next_lost`] would have
    /// to pass over.
    #[inline]
    pub fn may_have_lost(&self) -> bool {
        self.lost_out() > 0 && !(self.lost.is_empty() && self.lost_retrans.is_empty())
    }

    /// Lowest segment marked lost and not yet resent.
    pub fn next_lost(&mut self) -> Option<u64> {
        let waiting = |board: &Self, seq: u64| {
            seq >= board.una && board.get(seq).flags & (LOST | RETRANS_OUT | SACKED) == LOST
        };
        while let Some(&Reverse(seq)) = self.lost_retrans.peek() {
            if waiting(self, seq) {
                break;
            }
            self.lost_retrans.pop();
        }
        while let Some(&run) = self.lost.front() {
            let start = run.start.max(self.una);
            if start >= run.end {
                self.lost.pop_front();
            } else if waiting(self, start) {
                self.lost[0].start = start;
                break;
            } else {
                self.lost[0].start = start + 1;
            }
        }
        let first = self.lost.front().map(|r| r.start);
        let again = self.lost_retrans.peek().map(|r| r.0);
        match (first, again) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// One below the number from which at least `threshold` SACKed segments lie above: below it RFC
    /// 6675 calls a hole lost.
    pub fn sacked_threshold(&self, threshold: u64) -> u64 {
        let mut need = threshold;
        for r in self.sacked.rev() {
            if r.len() >= need {
                return r.end - need;
            }
            need -= r.len();
        }
        0
    }

    /// Highest outstanding segment that is not SACKed (RFC 6675 NextSeg rule 4).
    pub fn highest_unsacked(&self) -> Option<u64> {
        let above = match self.sacked.last() {
            Some(last) if last.end == self.nxt => last.start,
            _ => self.nxt,
        };
        above.checked_sub(1).filter(|seq| *seq >= self.una)
    }

    /// A segment below the highest SACKed one that is neither SACKed, lost nor resent (RFC 6675
    /// NextSeg rule 3). The search goes on where it stopped, over a SACKed run in one step.
    pub fn next_hole(&mut self) -> Option<u64> {
        let top = self.sacked.last()?.start;
        let mut seq = self.searched.max(self.checked).max(self.una);
        while seq < top {
            let flags = self.get(seq).flags;
            if flags & (SACKED | LOST | RETRANS_OUT) == 0 {
                break;
            }
            seq = match self.sacked.holding(seq) {
                Some(run) if flags & SACKED != 0 => run.end,
                _ => seq + 1,
            };
        }
        self.searched = seq;
        (seq < top).then_some(seq)
    }
}
