//! RFC 6675: loss recovery with SACK. The scoreboard's routines of section 4.

use super::Seg;

/// DupThresh (section 2).
pub const DUP_THRESH: u64 = 3;

/// The variables of section 2 beside the scoreboard.
#[derive(Clone, Debug, Default)]
pub struct Sack {
    /// Duplicate ACKs since the last cumulative one.
    pub dup_acks: u64,
    /// HighRxt: everything below was retransmitted in this recovery, as far as it was a hole.
    pub high_rxt: u64,
    /// RescueRxt.
    pub rescue_rxt: Option<u64>,
}

/// Section 4, IsLost: DupThresh runs of SACKed segments above `n`, or more than DupThresh - 1
/// segments SACKed above it.
pub fn is_lost(segs: &[Seg], n: u64) -> bool {
    let (mut runs, mut sacked, mut before) = (0, 0, false);
    for seg in &segs[n as usize + 1..] {
        sacked += u64::from(seg.sacked);
        runs += u64::from(seg.sacked && !before);
        before = seg.sacked;
    }
    runs >= DUP_THRESH || sacked > DUP_THRESH - 1
}

/// Section 4, SetPipe: what is not SACKed counts once unless it is lost, and once more if it was
/// retransmitted.
pub fn set_pipe(segs: &[Seg], una: u64, high_rxt: u64) -> u64 {
    (una..segs.len() as u64)
        .filter(|&n| !segs[n as usize].sacked)
        .map(|n| u64::from(!is_lost(segs, n)) + u64::from(n < high_rxt))
        .sum()
}

/// The segment to send next, by the rule of NextSeg (section 4) that chose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Rules 1 and 3.
    Again(u64),
    /// Rule 2.
    New,
    /// Rule 4.
    Rescue(u64),
}

impl Sack {
    /// Section 4, NextSeg; `new` says whether rule 2 has something to send.
    pub fn next_seg(&self, segs: &[Seg], una: u64, new: bool) -> Option<Next> {
        let highest_sacked = segs.iter().rposition(|s| s.sacked).map_or(0, |n| n as u64);
        let hole = |n: &u64| !segs[*n as usize].sacked;
        // 1.a and 1.b.
        let mut candidates = (una.max(self.high_rxt)..highest_sacked).filter(hole);
        let s3 = candidates.clone().next();
        // Rule 1.
        if let Some(s2) = candidates.find(|&n| is_lost(segs, n)) {
            return Some(Next::Again(s2));
        }
        // Rule 2.
        if new {
            return Some(Next::New);
        }
        // Rule 3.
        if let Some(s3) = s3 {
            return Some(Next::Again(s3));
        }
        // Rule 4: HighACK is the last segment below SND.UNA.
        let outstanding = (una..segs.len() as u64).rev().find(hole)?;
        let allowed = self.rescue_rxt.is_none_or(|r| una > r);
        allowed.then_some(Next::Rescue(outstanding))
    }
}
