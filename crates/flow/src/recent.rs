//! The blocks that a receiver reported last, the most recent first: what its next ACK reports (RFC
//! 2018 section 4).
//!
//! Those that have been acknowledged since stay until others take their places: they begin below
//! the next segment expected, which every question for the rest names.

use crate::ranges::Range;
use crate::segment::SackBlocks;

/// Blocks reported last.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    blocks: [Range; 4],
}

impl Recent {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            blocks: [Range::EMPTY; 4],
        }
    }

    /// One past the last segment of the most recent block.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.blocks[0].end
    }

    /// The segment behind the most recent block has joined it.
    #[inline]
    pub(crate) fn extend(&mut self) {
        self.blocks[0].end += 1;
    }

    /// `block` holds the newest segment, and what was reported of it before.
    pub(crate) fn remember(&mut self, block: Range) {
        // The slot of what it covers moves to the front; otherwise the oldest falls off.
        let mut from = self.blocks.len() - 1;
        for (i, r) in self.blocks.iter_mut().enumerate().rev() {
            if block.start <= r.start && r.end <= block.end {
                *r = Range::EMPTY;
                from = i;
            }
        }
        for i in (0..from).rev() {
            self.blocks[i + 1] = self.blocks[i];
        }
        self.blocks[0] = block;
    }

    /// As [`Recent::remember`], of what is remembered alone: the segment joins the blocks that it
    /// touches, or is one of its own. What has been acknowledged takes no slot (Linux
    /// `tcp_sack_remove`).
    pub(crate) fn recall(&mut self, alone: Range, next: u64) {
        let mut block = alone;
        let mut blocks = [Range::EMPTY; 4];
        let mut used = 1;
        for r in self.blocks {
            if r.start <= next {
                continue;
            }
            if r.start <= alone.end && alone.start <= r.end {
                block.start = block.start.min(r.start);
                block.end = block.end.max(r.end);
            } else if used < blocks.len() {
                blocks[used] = r;
                used += 1;
            }
        }
        blocks[0] = block;
        self.blocks = blocks;
    }

    /// How many blocks were reported since the one that `seq` extends, or all of them if it begins
    /// a new one.
    pub(crate) fn slot(&self, seq: u64, next: u64) -> usize {
        let touches = |r: &Range| r.start <= seq + 1 && seq <= r.end;
        let mut above = self.blocks.iter().filter(|r| r.start > next);
        let all = above.clone().count();
        above.position(touches).unwrap_or(all)
    }

    /// Appends what is not acknowledged until there are `most` blocks.
    #[inline(always)]
    pub(crate) fn report(&self, next: u64, most: usize, sacks: &mut SackBlocks) {
        for block in &self.blocks {
            if block.start > next && sacks.len() < most {
                sacks.push(*block);
            }
        }
    }
}
