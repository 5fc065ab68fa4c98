//! What ACKs say of the window: cumulative numbers, SACK blocks, duplicates without SACK, and a
//! receiver that takes SACKs back.

use fullpipe_units::Time;

use super::Scoreboard;
use super::record::{LOST, MARKS, RETRANS_OUT, RETRANSMITTED, SACKED, Sent, order};
use crate::ranges::Range;

/// Segments that one ACK newly delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivered {
    /// Segments acknowledged cumulatively that had not been SACKed.
    pub acked: u64,
    /// Segments newly SACKed.
    pub sacked: u64,
    /// The most recently sent of them, with its number.
    pub newest: Option<(u64, Sent)>,
    /// A retransmission that left after this time and is acknowledged cumulatively may be taken for
    /// its original.
    trusted: Time,
    /// The same of one that is SACKed: Linux holds no time stamp against it (`tcp_sacktag_one`).
    trusted_sack: Time,
    /// One of them is such a retransmission; then, the most recently sent of the others.
    doubtful: bool,
    certain: Option<(u64, Sent)>,
    /// Departure of the highest of those acknowledged cumulatively that is no such retransmission.
    /// Not filled in by [`Scoreboard::ack_clean`].
    pub acked_last: Option<Time>,
    /// Number and departure of the highest of those newly SACKed that is none.
    pub sacked_last: Option<(u64, Time)>,
    /// Of these, the highest number that was never retransmitted, if any.
    pub original: Option<u64>,
    /// When the lowest of the segments acknowledged cumulatively was sent, and the highest; only
    /// those never retransmitted and not SACKed before. Not filled in for a clean window, whose
    /// records are still there.
    pub acked_sent: Option<(Time, Time)>,
    /// The same of the segments newly SACKed.
    pub sacked_sent: Option<(Time, Time)>,
    /// The window was clean: every segment acknowledged was sent once and none SACKed.
    pub clean: bool,
    /// A retransmission was acknowledged cumulatively.
    pub covers_retransmission: bool,
    /// Lowest number newly delivered that was below an already delivered one and never
    /// retransmitted: reordering.
    pub reordered: Option<u64>,
}

impl Delivered {
    /// Nothing yet, of an ACK that trusts retransmissions as far as [`Delivered::trusted`] and
    /// [`Delivered::trusted_sack`] say.
    pub fn trusting(trusted: Time, trusted_sack: Time) -> Self {
        Self {
            trusted,
            trusted_sack,
            ..Self::default()
        }
    }

    /// Departure of the segment that Linux processes last: SACKed ones come first, each kind in the
    /// order of numbers (`tcp_sacktag_write_queue`, `tcp_clean_rtx_queue`).
    pub fn processed_last(&self) -> Option<Time> {
        self.acked_last.or(self.sacked_last.map(|(_, xmit)| xmit))
    }

    /// The most recently sent of those that are no retransmission which may be taken for its
    /// original.
    pub fn certain(&self) -> Option<(u64, Sent)> {
        match self.doubtful {
            true => self.certain,
            false => self.newest,
        }
    }

    /// Notes a delivery; `certain`: it is no retransmission that may be taken for its original.
    fn note(&mut self, seq: u64, sent: Sent, certain: bool) {
        if !certain && !self.doubtful {
            self.doubtful = true;
            self.certain = self.newest;
        }
        if certain && self.doubtful {
            keep_newest(&mut self.certain, seq, sent);
        }
        keep_newest(&mut self.newest, seq, sent);
        if !sent.retransmitted() {
            self.original = Some(self.original.map_or(seq, |o| o.max(seq)));
        }
    }

    fn note_reordered(&mut self, seq: u64) {
        self.reordered = Some(self.reordered.map_or(seq, |lowest| lowest.min(seq)));
    }
}

fn is_certain(sent: &Sent, trusted: Time) -> bool {
    !sent.retransmitted() || sent.xmit <= trusted
}

/// Keeps the one of the two that was sent last; of one instant, that with the higher number.
fn keep_newest(newest: &mut Option<(u64, Sent)>, seq: u64, sent: Sent) {
    if newest.is_none_or(|(s, n)| order(sent.xmit, seq) > order(n.xmit, s)) {
        *newest = Some((seq, sent));
    }
}

/// Extends the send times of a run of segments by a later one.
fn extend(times: &mut Option<(Time, Time)>, sent: Time) {
    let first = times.map_or(sent, |(first, _)| first);
    *times = Some((first, sent));
}

impl Scoreboard {
    /// Cumulative acknowledgement up to `cum` of a window in which nothing is marked
    /// ([`Scoreboard::is_untouched`]); as [`Scoreboard::ack_to`].
    #[inline(always)]
    pub fn ack_clean(&mut self, cum: u64) -> Delivered {
        let newest = *self.get(cum - 1);
        let d = Delivered {
            acked: cum - self.una,
            newest: Some((cum - 1, newest)),
            original: Some(cum - 1),
            clean: true,
            ..Delivered::default()
        };
        self.una = cum;
        self.fack = self.fack.max(cum);
        d
    }

    /// Cumulative acknowledgement up to `cum` (exclusive), which lies above `una` and not above
    /// `nxt`.
    #[inline]
    pub fn ack_to(&mut self, cum: u64, d: &mut Delivered) {
        if self.marked == 0 {
            d.acked += cum - self.una;
            let newest = *self.get(cum - 1);
            d.newest = Some((cum - 1, newest));
            d.acked_last = Some(newest.xmit);
            d.clean = true;
            d.original = Some(cum - 1);
            self.una = cum;
        } else {
            self.ack_marked(cum, d);
        }
        self.fack = self.fack.max(cum);
    }

    fn ack_marked(&mut self, cum: u64, d: &mut Delivered) {
        for seq in self.una..cum {
            let sent = *self.get(seq);
            if sent.flags & MARKS != 0 {
                self.marked -= 1;
            }
            d.covers_retransmission |= sent.flags & RETRANSMITTED != 0;
            if sent.flags & SACKED != 0 {
                self.out.remove_sacked(1);
                // Linux counts an exonerated one until here.
                let again = sent.flags & RETRANS_OUT != 0;
                self.out.remove_retrans(u64::from(again));
                continue;
            }
            if sent.flags & RETRANSMITTED == 0 {
                extend(&mut d.acked_sent, sent.xmit);
            }
            if sent.flags & LOST != 0 {
                self.out.remove_lost(1);
            }
            if sent.flags & RETRANS_OUT != 0 {
                self.out.remove_retrans(1);
            }
            d.acked += 1;
            let certain = is_certain(&sent, d.trusted);
            d.note(seq, sent, certain);
            if certain {
                d.acked_last = Some(sent.xmit);
            }
            if seq < self.fack && sent.flags & RETRANSMITTED == 0 {
                d.note_reordered(seq);
            }
        }
        self.una = cum;
        self.sacked.trim_below(cum);
        self.checked = self.checked.max(cum);
    }

    /// Selective acknowledgement of one block; parts already known cost nothing.
    #[inline]
    pub fn sack(&mut self, block: Range, d: &mut Delivered) {
        // Of the blocks of an ACK most were in the ACK before.
        if !self.reported.contains(&block) {
            self.sack_unreported(block, d);
        }
    }

    fn sack_unreported(&mut self, block: Range, d: &mut Delivered) {
        self.note_reported(block);
        let block = Range {
            start: block.start.max(self.una),
            end: block.end.min(self.nxt),
        };
        if block.is_empty() {
            return;
        }
        if let Some(new) = self.sacked.add_at_end(block) {
            // The frequent case: nothing to look for.
            for seq in new.start..new.end {
                self.mark_sacked(seq, d);
            }
            return;
        }
        let known = self.sacked.holding(block.start);
        if known.is_some_and(|range| block.end <= range.end) {
            return;
        }
        let mut sacked = std::mem::take(&mut self.sacked);
        sacked.insert(block, |fresh| {
            for seq in fresh.start..fresh.end {
                self.mark_sacked(seq, d);
            }
        });
        self.sacked = sacked;
    }

    /// A duplicate of `seq` arrived, which is SACKed and was resent: it was late, not lost
    /// (`tcp_sacktag_one`).
    pub fn note_duplicate(&mut self, seq: u64, d: &mut Delivered) {
        if seq < self.una || seq >= self.nxt {
            return;
        }
        let flags = self.get(seq).flags;
        if flags & SACKED != 0 && flags & RETRANSMITTED != 0 {
            d.note_reordered(seq);
        }
    }

    /// The blocks of an ACK are known. Only now the highest counts as delivered before others: two
    /// segments that one ACK reports may be listed in any order (RFC 8985 section 6.2 step 3).
    #[inline]
    pub fn end_sacks(&mut self) {
        if let Some(last) = self.sacked.last() {
            self.fack = self.fack.max(last.end);
        }
    }

    /// Remembers a block that is about to be SACKed: in place of the one that it extends, else of
    /// the oldest. One beyond what was sent may come again when more of it was sent.
    #[inline]
    fn note_reported(&mut self, block: Range) {
        if block.end > self.nxt {
            return;
        }
        let same = self.reported.iter().position(|r| r.start == block.start);
        match same {
            Some(i) => self.reported[i] = block,
            None => {
                self.reported.rotate_right(1);
                self.reported[0] = block;
            }
        }
    }

    fn mark_sacked(&mut self, seq: u64, d: &mut Delivered) {
        let sent = *self.get(seq);
        let below = seq < self.fack;
        if sent.flags & MARKS == 0 {
            self.marked += 1;
        }
        if sent.flags & LOST != 0 {
            self.out.remove_lost(1);
        }
        let mut over = LOST | RETRANS_OUT;
        if sent.is_exonerated() {
            // "Believing that retransmission is still in flight" (`tcp_sacktag_one`).
            over = LOST;
        } else if sent.flags & RETRANS_OUT != 0 {
            self.out.remove_retrans(1);
        }
        self.get_mut(seq).flags = (sent.flags & !over) | SACKED;
        self.out.add_sacked(1);
        d.sacked += 1;
        let certain = is_certain(&sent, d.trusted_sack);
        d.note(seq, sent, certain);
        if certain && d.sacked_last.is_none_or(|(last, _)| seq > last) {
            d.sacked_last = Some((seq, sent.xmit));
        }
        if sent.flags & RETRANSMITTED == 0 {
            extend(&mut d.sacked_sent, sent.xmit);
        }
        if below && sent.flags & RETRANSMITTED == 0 {
            d.note_reordered(seq);
        }
    }

    /// NewReno: a duplicate ACK stands for one delivered segment of unknown number.
    /// To be bounded at once.
    pub fn add_duplicate(&mut self) {
        self.out.add_sacked(1);
    }

    /// NewReno: forget `n` duplicates (all: `u64::MAX`).
    pub fn remove_duplicates(&mut self, n: u64) {
        self.out.remove_sacked(n.min(self.out.sacked()));
    }

    /// NewReno: duplicates beyond what is outstanding and not lost, `holes` of it at least, were
    /// the network's own. True if there were any.
    pub fn bound_duplicates(&mut self, holes: u64) -> bool {
        let most = self.flight() - self.out.lost().max(holes).min(self.flight());
        let more = self.out.sacked().saturating_sub(most);
        self.out.remove_sacked(more);
        more > 0
    }

    /// The receiver reneged: what was SACKed is treated as not received (RFC 2018 section 8).
    pub fn forget_sacks(&mut self) {
        for r in std::mem::take(&mut self.sacked).rev() {
            for seq in r.start.max(self.una)..r.end {
                let sent = self.get_mut(seq);
                sent.flags &= !SACKED;
                let clean = sent.flags & MARKS == 0;
                self.marked -= u64::from(clean);
                self.out.remove_sacked(1);
            }
        }
        self.reported = [Range::EMPTY; 4];
        self.checked = self.una;
        self.searched = self.una;
    }

    /// True if the first outstanding segment is known to have been received: only a reneging
    /// receiver causes that.
    pub fn front_is_sacked(&self) -> bool {
        self.flight() > 0 && self.get(self.una).flags & SACKED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..segments).for_each(|_| _ = board.push(Time::ZERO, 0, false));
        board
    }

    fn sacked(board: &mut Scoreboard, start: u64, end: u64) -> u64 {
        let mut d = Delivered::default();
        board.sack(Range { start, end }, &mut d);
        board.audit(false).unwrap();
        d.sacked
    }

    #[test]
    fn a_block_reported_again_counts_once_unless_the_receiver_took_it_back() {
        let mut board = sent(10);
        assert_eq!(sacked(&mut board, 4, 6), 2);
        assert_eq!(sacked(&mut board, 4, 6), 0);
        board.forget_sacks();
        assert_eq!(sacked(&mut board, 4, 6), 2);
        // A block grows at either end, and swallows another.
        assert_eq!(sacked(&mut board, 8, 9), 1);
        assert_eq!(sacked(&mut board, 4, 7), 1);
        assert_eq!(sacked(&mut board, 3, 9), 2);
        assert_eq!(sacked(&mut board, 4, 7), 0);
    }

    /// A receiver that reports what was never sent: when it has been, the same block is news.
    #[test]
    fn a_block_beyond_what_was_sent_counts_again_when_more_of_it_was() {
        let mut board = sent(5);
        assert_eq!(sacked(&mut board, 4, 7), 1);
        board.push(Time::ZERO, 0, false);
        assert_eq!(sacked(&mut board, 4, 7), 1);
    }
}
