//! What an ACK proves: that its segments have been received. (The idea is that of ECN's nonces, RFC
//! 3540, against receivers that acknowledge what they have not got.)
//!
//! Every segment of data carries three random bits. An ACK carries a sum over the bits of all
//! segments that it reports, which nobody knows who has not received each of them: who has not seen
//! `n` of them guesses it once in `8^n`, at most once in 2^32.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};

use fullpipe_flow::{Ack, Range};

/// What a segment adds to the sum: the low 32 bits of SplitMix64's output function (Steele, Lea and
/// Flood 2014) of 8 times its number plus its bits.
#[inline]
pub fn term(seq: u64, bits: u8) -> u32 {
    let mut z = (seq << 3 | u64::from(bits)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as u32
}

/// The blocks of an ACK that report segments: all but the duplicate of a DSACK.
fn reported(ack: &Ack) -> impl Iterator<Item = Range> {
    ack.sacks.iter().skip(usize::from(ack.dsack))
}

/// The sender's side: what it has put into its segments, and what ACKs have to say.
#[derive(Debug)]
pub struct Proofs {
    secret: RandomState,
    /// Sixteen segments, of which this is the first by number, and their bits.
    drawn: (u64, u64),
    /// The sum over all segments below `base`, and behind it over one more each.
    base_sum: u32,
    base: u64,
    sums: VecDeque<u32>,
    /// All below are acknowledged.
    acked: u64,
    right: u64,
    wrong: u64,
    sought: u64,
}

/// Segments whose bits are drawn at once: four of 64 bits for each, of which three are used.
const DRAWN: u64 = 16;
/// Segments below what is acknowledged whose sums are kept, for ACKs that were overtaken.
const OVERTAKEN: u64 = 1024;
/// Wrong sums that are taken for damage on the way, beside one in so many right ones.
const FEW: u64 = 64;
const RARE: u64 = 16;
/// Wrong sums in which a changed segment is sought, beside one in so many right ones: who guesses
/// the bits of one segment at a time gains no more.
const SOUGHT: u64 = 16;
const SELDOM: u64 = 1024;
/// Segments among which it is sought.
const NEAR: usize = 4096;

impl Default for Proofs {
    fn default() -> Self {
        Self {
            secret: RandomState::new(),
            drawn: (u64::MAX, 0),
            base_sum: 0,
            base: 0,
            sums: VecDeque::new(),
            acked: 0,
            right: 0,
            wrong: 0,
            sought: 0,
        }
    }
}

impl Proofs {
    /// The bits of a segment; the same each time it is sent.
    #[inline]
    pub fn bits(&mut self, seq: u64) -> u8 {
        let group = seq / DRAWN;
        if self.drawn.0 != group {
            // Keyed SipHash: who has seen some of it knows nothing of the rest.
            self.drawn = (group, self.secret.hash_one(group));
        }
        (self.drawn.1 >> (4 * (seq % DRAWN))) as u8 & 7
    }

    /// True if an ACK of segments that were sent has the sum that belongs to it. None is right
    /// after too many wrong ones.
    #[inline]
    pub fn admits(&mut self, ack: &Ack, proof: u32) -> bool {
        // Long overtaken: it says nothing new, or what can no longer be proven.
        if ack.cum < self.base {
            return reported(ack).next().is_none();
        }
        let highest = reported(ack).fold(ack.cum, |n, block| n.max(block.end));
        self.extend(highest);
        let sum = reported(ack).fold(self.sum(ack.cum), |sum, block| {
            let of_block = self.sum(block.end).wrapping_sub(self.sum(block.start));
            sum.wrapping_add(of_block)
        });
        let is_right = sum == proof || self.mend(ack, proof.wrapping_sub(sum));
        if !is_right || self.wrong > FEW + self.right / RARE {
            self.wrong += 1;
            return false;
        }
        self.right += 1;
        self.acked = self.acked.max(ack.cum);
        while self.base + OVERTAKEN < self.acked
            && let Some(sum) = self.sums.pop_front()
        {
            self.base_sum = sum;
            self.base += 1;
        }
        true
    }

    /// If one of the segments that `ack` newly reports came with other bits than it left with,
    /// which makes this difference: the receiver has it all the same, and this and every later sum
    /// has those bits. (The sums of a clear flow stand for all that came before, so that a single
    /// bit changed on the way would end it.)
    #[cold]
    fn mend(&mut self, ack: &Ack, difference: u32) -> bool {
        if self.sought >= SOUGHT + self.right / SELDOM {
            return false;
        }
        self.sought += 1;
        let below = Range {
            start: self.acked.max(self.base),
            end: ack.cum,
        };
        let reported = std::iter::once(below).chain(reported(ack));
        for seq in reported.flat_map(|r| r.start..r.end).take(NEAR) {
            let own = self.bits(seq);
            let came = |bits| term(seq, bits).wrapping_sub(term(seq, own)) == difference;
            if (0..8).any(came) {
                let after = (seq - self.base) as usize;
                let sums = self.sums.iter_mut().skip(after);
                sums.for_each(|sum| *sum = sum.wrapping_add(difference));
                return true;
            }
        }
        false
    }

    /// The sum over all segments below `end`, which is known.
    fn sum(&self, end: u64) -> u32 {
        match end.checked_sub(self.base + 1) {
            None => self.base_sum,
            Some(at) => self.sums[at as usize],
        }
    }

    fn extend(&mut self, end: u64) {
        let mut next = self.base + self.sums.len() as u64;
        while next < end {
            let term = term(next, self.bits(next));
            let last = self.sums.back().copied().unwrap_or(self.base_sum);
            self.sums.push_back(last.wrapping_add(term));
            next += 1;
        }
    }
}

/// The receiver's side: sums over what has come.
#[derive(Debug, Default)]
pub struct Heard {
    /// All below have come, and this is their sum.
    next: u64,
    sum: u32,
    /// What has come above, in order, and its sums.
    above: Vec<(Range, u32)>,
}

impl Heard {
    /// The first copy of a segment has come.
    #[inline]
    pub fn take(&mut self, seq: u64, bits: u8) {
        let term = term(seq, bits);
        if seq != self.next {
            return self.take_above(seq, term);
        }
        self.next += 1;
        self.sum = self.sum.wrapping_add(term);
        if let Some((range, _)) = self.above.first()
            && range.start == self.next
        {
            let (range, sum) = self.above.remove(0);
            self.next = range.end;
            self.sum = self.sum.wrapping_add(sum);
        }
    }

    #[cold]
    fn take_above(&mut self, seq: u64, term: u32) {
        let at = self.above.partition_point(|(range, _)| range.end < seq);
        let (start, end) = (seq, seq + 1);
        match self.above.get_mut(at) {
            Some((range, sum)) if range.end == start => {
                range.end = end;
                *sum = sum.wrapping_add(term);
                if self.above.get(at + 1).is_some_and(|(r, _)| r.start == end) {
                    let (joined, more) = self.above.remove(at + 1);
                    let (range, sum) = &mut self.above[at];
                    range.end = joined.end;
                    *sum = sum.wrapping_add(more);
                }
            }
            Some((range, sum)) if range.start == end => {
                range.start = start;
                *sum = sum.wrapping_add(term);
            }
            Some((range, _)) if range.start <= start && end <= range.end => {}
            _ => self.above.insert(at, (Range { start, end }, term)),
        }
    }

    /// What proves an ACK that reports what has come until now.
    #[inline]
    pub fn proof(&self, ack: &Ack) -> u32 {
        reported(ack).fold(self.sum, |sum, block| sum.wrapping_add(self.of(block)))
    }

    #[cold]
    fn of(&self, block: Range) -> u32 {
        let at = self.above.partition_point(|(r, _)| r.end < block.end);
        match self.above.get(at) {
            Some((range, sum)) if *range == block => *sum,
            // A receiver reports whole ranges; of others there is no proof.
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_flow::SackBlocks;
    use fullpipe_units::Time;
    use proptest::prelude::*;

    use super::*;

    fn ack(cum: u64, blocks: &[(u64, u64)], dsack: bool) -> Ack {
        let mut sacks = SackBlocks::default();
        for (start, end) in blocks.iter().copied() {
            sacks.push(Range { start, end });
        }
        Ack {
            cum,
            syn: false,
            echo: Time::ZERO,
            stamp_ms: 0,
            one_way: None,
            sacks,
            dsack,
            ece: false,
            window_end: u64::MAX,
        }
    }

    /// The values of docs/wire.md, computed by a program that is not ours.
    #[test]
    fn terms_are_those_of_the_page() {
        assert_eq!((term(0, 0), term(1, 5)), (0x7b1dcdaf, 0xf8ad8aff));
    }

    proptest! {
        /// In any order, with copies: what was received is admitted, anything else is not.
        #[test]
        fn what_came_is_proven_and_what_did_not_is_not(order in proptest::collection::vec(0u64..40, 1..120)) {
            let (mut proofs, mut heard) = (Proofs::default(), Heard::default());
            let mut come = std::collections::BTreeSet::new();
            for seq in order {
                let bits = proofs.bits(seq);
                if come.insert(seq) {
                    heard.take(seq, bits);
                }
                let cum = (0..).find(|n| !come.contains(n)).unwrap_or_default();
                let mut blocks: Vec<(u64, u64)> = Vec::new();
                for seq in come.range(cum..) {
                    match blocks.last_mut() {
                        Some((_, end)) if *end == *seq => *end += 1,
                        _ => blocks.push((*seq, seq + 1)),
                    }
                }
                blocks.truncate(4);
                let (first, count) = (seq, blocks.len());
                let right = ack(cum, &blocks, false);
                let proof = heard.proof(&right);
                prop_assert!(proofs.admits(&right, proof));
                prop_assert!(!proofs.admits(&right, proof ^ 1));
                // A duplicate proves nothing and costs nothing.
                if count < 4 {
                    let mut with = vec![(first, first + 1)];
                    with.extend(&blocks);
                    let duplicate = ack(cum, &with, true);
                    prop_assert_eq!(heard.proof(&duplicate), proof);
                    prop_assert!(proofs.admits(&duplicate, proof));
                }
                proofs.wrong = 0;
            }
        }
    }

    /// A bit that is changed on the way, of the bits or of the number, costs no more than the ACKs
    /// until then; so do sixteen.
    #[test]
    fn a_segment_that_came_with_other_bits_is_proven() {
        let (mut proofs, mut heard) = (Proofs::default(), Heard::default());
        for seq in 0..100 {
            let changed = u8::from(seq % 6 == 1 && seq < 96) * 5;
            heard.take(seq, proofs.bits(seq) ^ changed);
            // Every second ACK is lost, the first of all too.
            let claim = ack(seq + 1, &[], false);
            if seq % 2 == 0 && seq > 0 {
                assert!(proofs.admits(&claim, heard.proof(&claim)), "{seq}");
            }
        }
        // Above a hole, then below it.
        heard.take(105, proofs.bits(105) ^ 1);
        let claim = ack(100, &[(105, 106)], false);
        assert_eq!(proofs.sought, 16);
        proofs.sought = 0;
        assert!(proofs.admits(&claim, heard.proof(&claim)));
        (100..105).for_each(|seq| heard.take(seq, proofs.bits(seq)));
        let claim = ack(106, &[], false);
        assert!(proofs.admits(&claim, heard.proof(&claim)));
        assert_eq!(proofs.sought, 1);
    }

    /// Who acknowledges without having received gets nowhere: one of eight guesses is right, and
    /// soon none.
    #[test]
    fn guesses_move_a_sender_by_little() {
        for ahead in [1, 2, 100] {
            let mut proofs = Proofs::default();
            let mut guess = Heard::default();
            let (mut moved, mut dice) = (0, 1u64);
            for _ in 0..10_000 {
                let before = (guess.next, guess.sum);
                for _ in 0..ahead {
                    dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    guess.take(guess.next, (dice >> 61) as u8);
                }
                let claim = ack(guess.next, &[], false);
                if proofs.admits(&claim, guess.proof(&claim)) {
                    moved += ahead;
                } else {
                    (guess.next, guess.sum) = before;
                }
            }
            // 64 wrong ones and one in sixteen: some nine segments when each is guessed alone.
            assert!(moved < 40, "{moved}");
        }
    }
}
