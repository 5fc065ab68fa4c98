//! What was sent and what became of it: one 32-byte record per outstanding segment in a ring, counters kept up to date.
//!
//! Nothing here walks the window on an ACK. A cumulative ACK over a clean window touches one record; otherwise each segment
//! is visited a bounded number of times in its life: when SACKed, when judged for loss, when removed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fullpipe_units::Time;

use crate::ranges::{Range, RangeSet};

/// Record of an outstanding segment.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Last transmission.
    pub xmit: Time,
    /// Time of the newest delivery when it was sent (delivery-rate estimation).
    pub delivered_time: Time,
    /// Send time of the oldest segment of the rate sample's flight.
    pub first_sent: Time,
    /// Low 32 bits of the delivered count when it was sent.
    pub delivered: u32,
    flags: u8,
}

/// SACKed.
const SACKED: u8 = 1;
/// Judged lost and not delivered since.
const LOST: u8 = 2;
/// A retransmission is in the network.
const IN_FLIGHT_AGAIN: u8 = 4;
/// Retransmitted at least once.
const RETRANSMITTED: u8 = 8;
/// Sent while the application limited the sender.
const APP_LIMITED: u8 = 16;
/// Any of these makes a cumulative ACK look at every record.
const MARKS: u8 = SACKED | LOST | IN_FLIGHT_AGAIN | RETRANSMITTED;

impl Sent {
    /// Retransmitted at least once.
    pub fn retransmitted(&self) -> bool {
        self.flags & RETRANSMITTED != 0
    }

    /// Sent while the application limited the sender.
    pub fn app_limited(&self) -> bool {
        self.flags & APP_LIMITED != 0
    }
}

/// What one ACK newly delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivered {
    /// Segments acknowledged cumulatively that had not been SACKed.
    pub acked: u64,
    /// Segments newly SACKed.
    pub sacked: u64,
    /// The most recently sent of them, with its number.
    pub newest: Option<(u64, Sent)>,
    /// Of these, the highest number that was never retransmitted, if any.
    pub original: Option<u64>,
    /// When the lowest of the segments acknowledged cumulatively was sent, and the highest; only those never retransmitted and
    /// not SACKed before. Not filled in for a clean window, whose records are still there.
    pub acked_sent: Option<(Time, Time)>,
    /// The same of the segments newly SACKed.
    pub sacked_sent: Option<(Time, Time)>,
    /// The window was clean: every segment acknowledged was sent once and none SACKed.
    pub clean: bool,
    /// A retransmission was acknowledged cumulatively.
    pub covers_retransmission: bool,
    /// Lowest number newly delivered that was below an already delivered one and never retransmitted: reordering.
    pub reordered: bool,
}

/// Extends the send times of a run of segments by a later one.
fn extend(times: &mut Option<(Time, Time)>, sent: Time) {
    let first = times.map_or(sent, |(first, _)| first);
    *times = Some((first, sent));
}

impl Delivered {
    fn note(&mut self, seq: u64, sent: Sent) {
        if self
            .newest
            .is_none_or(|(s, n)| (sent.xmit, seq) > (n.xmit, s))
        {
            self.newest = Some((seq, sent));
        }
        if !sent.retransmitted() {
            self.original = Some(self.original.map_or(seq, |o| o.max(seq)));
        }
    }
}

/// The sender's view of its window.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    ring: Vec<Sent>,
    mask: u64,
    una: u64,
    nxt: u64,
    sacked: RangeSet,
    sacked_out: u64,
    lost_out: u64,
    again_out: u64,
    /// Outstanding records with any mark.
    marked: u64,
    /// Highest segment delivered so far, plus one (`fack`).
    fack: u64,
    /// Originals below this number have been judged by the loss detector.
    judged: u64,
    /// Below this number there is no hole that is neither lost nor resent.
    searched: u64,
    /// Retransmissions in the network in the order they were sent.
    again: VecDeque<(u64, Time)>,
    /// Lost and not yet resent, in order of judgement (ascending runs).
    lost: VecDeque<Range>,
    /// Lost again: retransmissions judged lost.
    lost_again: BinaryHeap<Reverse<u64>>,
}

impl Default for Scoreboard {
    fn default() -> Self {
        let empty = Sent {
            xmit: Time::ZERO,
            delivered_time: Time::ZERO,
            first_sent: Time::ZERO,
            delivered: 0,
            flags: 0,
        };
        Self {
            ring: vec![empty; 64],
            mask: 63,
            una: 0,
            nxt: 0,
            sacked: RangeSet::default(),
            sacked_out: 0,
            lost_out: 0,
            again_out: 0,
            marked: 0,
            fack: 0,
            judged: 0,
            searched: 0,
            again: VecDeque::new(),
            lost: VecDeque::new(),
            lost_again: BinaryHeap::new(),
        }
    }
}

impl Scoreboard {
    /// First unacknowledged segment.
    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Next new segment.
    #[inline]
    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Sent, not cumulatively acknowledged (FlightSize).
    #[inline]
    pub fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    /// Estimate of what is in the network (RFC 6675 `pipe`).
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.flight() + self.again_out - self.sacked_out - self.lost_out
    }

    /// SACKed segments above `una`.
    #[inline]
    pub fn sacked_out(&self) -> u64 {
        self.sacked_out
    }

    /// Segments judged lost and not delivered yet.
    pub fn lost_out(&self) -> u64 {
        self.lost_out
    }

    /// Retransmissions in the network.
    pub fn retransmissions_out(&self) -> u64 {
        self.again_out
    }

    /// No segment of the window is SACKed, lost or retransmitted.
    #[inline]
    pub fn is_clean(&self) -> bool {
        self.marked == 0
    }

    /// Record of an outstanding segment.
    #[inline]
    pub fn get(&self, seq: u64) -> &Sent {
        &self.ring[(seq & self.mask) as usize]
    }

    #[inline]
    fn get_mut(&mut self, seq: u64) -> &mut Sent {
        &mut self.ring[(seq & self.mask) as usize]
    }

    /// Sends the next new segment.
    #[inline]
    pub fn push(
        &mut self,
        xmit: Time,
        delivered: u64,
        delivered_time: Time,
        first_sent: Time,
        app_limited: bool,
    ) -> u64 {
        if self.nxt - self.una > self.mask {
            self.grow();
        }
        let seq = self.nxt;
        let flags = if app_limited { APP_LIMITED } else { 0 };
        *self.get_mut(seq) = Sent {
            xmit,
            delivered_time,
            first_sent,
            delivered: delivered as u32,
            flags,
        };
        self.nxt += 1;
        seq
    }

    /// Takes back the newest segment, which never left the host.
    pub fn unsend_new(&mut self) {
        self.nxt -= 1;
    }

    #[cold]
    fn grow(&mut self) {
        let old = self.ring.len();
        let mut ring = vec![self.ring[0]; old * 2];
        let mask = (old * 2 - 1) as u64;
        for seq in self.una..self.nxt {
            ring[(seq & mask) as usize] = self.ring[(seq & self.mask) as usize];
        }
        self.ring = ring;
        self.mask = mask;
    }

    /// Cumulative acknowledgement up to `cum` (exclusive), which lies above `una` and not above `nxt`.
    #[inline]
    pub fn ack_to(&mut self, cum: u64, d: &mut Delivered) {
        if self.marked == 0 {
            d.acked += cum - self.una;
            let newest = *self.get(cum - 1);
            d.newest = Some((cum - 1, newest));
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
                self.sacked_out -= 1;
                continue;
            }
            if sent.flags & RETRANSMITTED == 0 {
                extend(&mut d.acked_sent, sent.xmit);
            }
            if sent.flags & LOST != 0 {
                self.lost_out -= 1;
            }
            if sent.flags & IN_FLIGHT_AGAIN != 0 {
                self.again_out -= 1;
            }
            d.acked += 1;
            d.note(seq, sent);
            if seq < self.fack && sent.flags & RETRANSMITTED == 0 {
                d.reordered = true;
            }
        }
        self.una = cum;
        self.sacked.trim_below(cum);
        self.judged = self.judged.max(cum);
    }

    /// Selective acknowledgement of one block; parts already known cost nothing.
    pub fn sack(&mut self, block: Range, d: &mut Delivered) {
        let block = Range {
            start: block.start.max(self.una),
            end: block.end.min(self.nxt),
        };
        if block.is_empty() {
            return;
        }
        let mut sacked = std::mem::take(&mut self.sacked);
        sacked.insert(block, |fresh| {
            for seq in fresh.start..fresh.end {
                self.mark_sacked(seq, d);
            }
        });
        self.sacked = sacked;
        self.fack = self.fack.max(block.end);
    }

    fn mark_sacked(&mut self, seq: u64, d: &mut Delivered) {
        let sent = *self.get(seq);
        let below = seq < self.fack;
        if sent.flags & MARKS == 0 {
            self.marked += 1;
        }
        if sent.flags & LOST != 0 {
            self.lost_out -= 1;
        }
        if sent.flags & IN_FLIGHT_AGAIN != 0 {
            self.again_out -= 1;
        }
        self.get_mut(seq).flags = (sent.flags & !(LOST | IN_FLIGHT_AGAIN)) | SACKED;
        self.sacked_out += 1;
        d.sacked += 1;
        d.note(seq, sent);
        if sent.flags & RETRANSMITTED == 0 {
            extend(&mut d.sacked_sent, sent.xmit);
        }
        if below && sent.flags & RETRANSMITTED == 0 {
            d.reordered = true;
        }
    }

    /// NewReno: a duplicate ACK stands for one delivered segment of unknown number.
    pub fn add_duplicate(&mut self) -> bool {
        let room = self.flight() > self.sacked_out + self.lost_out;
        if room {
            self.sacked_out += 1;
        }
        room
    }

    /// NewReno: forget `n` duplicates (all: `u64::MAX`).
    pub fn remove_duplicates(&mut self, n: u64) {
        self.sacked_out -= n.min(self.sacked_out);
    }

    /// NewReno: duplicates beyond what is outstanding and not lost were the network's own. Returns what is left.
    pub fn bound_duplicates(&mut self) -> u64 {
        self.sacked_out = self.sacked_out.min(self.flight() - self.lost_out);
        self.sacked_out
    }

    /// Judges one segment lost; returns true if that is news.
    pub fn mark_lost(&mut self, seq: u64) -> bool {
        let flags = self.get(seq).flags;
        if flags & (SACKED | LOST) != 0 {
            return false;
        }
        if flags & MARKS == 0 {
            self.marked += 1;
        }
        self.get_mut(seq).flags |= LOST;
        self.lost_out += 1;
        match self.lost.back_mut() {
            Some(run) if run.end == seq => run.end += 1,
            Some(run) if run.end > seq => self.lost_again.push(Reverse(seq)),
            _ => self.lost.push_back(Range {
                start: seq,
                end: seq + 1,
            }),
        }
        true
    }

    /// Judges, in the order they were sent, original transmissions below `limit` that `is_lost` condemns; stops at the first
    /// acquitted one and returns its send time. Each original is judged at most once per acquittal.
    pub fn judge_originals(
        &mut self,
        limit: u64,
        lost: &mut u64,
        mut is_lost: impl FnMut(u64, &Sent) -> bool,
    ) -> Option<Time> {
        let mut seq = self.judged.max(self.una);
        let limit = limit.min(self.nxt);
        let mut pending = None;
        while seq < limit {
            let sent = *self.get(seq);
            if sent.flags & MARKS == 0 {
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
        self.judged = seq;
        pending
    }

    /// Judges retransmissions in the order they were sent; the same contract as [`Scoreboard::judge_originals`].
    pub fn judge_retransmissions(
        &mut self,
        lost: &mut u64,
        mut is_lost: impl FnMut(u64, &Sent) -> bool,
    ) -> Option<Time> {
        while let Some(&(seq, xmit)) = self.again.front() {
            let current = seq >= self.una && {
                let s = self.get(seq);
                s.flags & IN_FLIGHT_AGAIN != 0 && s.xmit == xmit
            };
            if current {
                let sent = *self.get(seq);
                if !is_lost(seq, &sent) {
                    return Some(xmit);
                }
                self.lose_again(seq);
                *lost += 1;
            }
            self.again.pop_front();
        }
        None
    }

    fn lose_again(&mut self, seq: u64) {
        let sent = self.get_mut(seq);
        // A tail loss probe resends a segment that was not judged lost.
        let fresh = sent.flags & LOST == 0;
        sent.flags = (sent.flags | LOST) & !IN_FLIGHT_AGAIN;
        self.lost_out += u64::from(fresh);
        self.again_out -= 1;
        self.lost_again.push(Reverse(seq));
    }

    /// Judges everything outstanding and not SACKed lost, retransmissions too (go-back-N after a timeout), except what `spared`
    /// acquits; the first outstanding segment always goes.
    pub fn lose_all(&mut self, mut spared: impl FnMut(&Sent) -> bool) -> u64 {
        let mut lost = 0;
        self.lost.clear();
        self.lost_again.clear();
        self.judged = self.nxt;
        for seq in self.una..self.nxt {
            let sent = *self.get(seq);
            let flags = sent.flags;
            if flags & SACKED != 0 {
                continue;
            }
            let waiting = flags & (LOST | IN_FLIGHT_AGAIN) == LOST;
            if !waiting && seq != self.una && spared(&sent) {
                if flags & MARKS == 0 {
                    self.judged = self.judged.min(seq);
                }
                continue;
            }
            self.get_mut(seq).flags = (flags | LOST) & !IN_FLIGHT_AGAIN;
            self.marked += u64::from(flags & MARKS == 0);
            self.again_out -= u64::from(flags & IN_FLIGHT_AGAIN != 0);
            lost += u64::from(flags & LOST == 0);
            match self.lost.back_mut() {
                Some(run) if run.end == seq => run.end += 1,
                _ => self.lost.push_back(Range {
                    start: seq,
                    end: seq + 1,
                }),
            }
        }
        self.lost_out += lost;
        lost
    }

    /// The receiver reneged: what was SACKed is treated as not received (RFC 2018 section 8).
    pub fn forget_sacks(&mut self) {
        for r in std::mem::take(&mut self.sacked).rev() {
            for seq in r.start.max(self.una)..r.end {
                let sent = self.get_mut(seq);
                sent.flags &= !SACKED;
                let clean = sent.flags & MARKS == 0;
                self.marked -= u64::from(clean);
                self.sacked_out -= 1;
            }
        }
        self.judged = self.una;
        self.searched = self.una;
    }

    /// True if the first outstanding segment is known to have been received: only a reneging receiver causes that.
    pub fn front_is_sacked(&self) -> bool {
        self.flight() > 0 && self.get(self.una).flags & SACKED != 0
    }

    /// Lowest segment judged lost and not yet resent.
    pub fn next_lost(&mut self) -> Option<u64> {
        let waiting = |board: &Self, seq: u64| {
            seq >= board.una && board.get(seq).flags & (LOST | IN_FLIGHT_AGAIN | SACKED) == LOST
        };
        while let Some(&Reverse(seq)) = self.lost_again.peek() {
            if waiting(self, seq) {
                break;
            }
            self.lost_again.pop();
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
        let again = self.lost_again.peek().map(|r| r.0);
        match (first, again) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Sends `seq` again.
    pub fn resend(
        &mut self,
        seq: u64,
        xmit: Time,
        delivered: u64,
        delivered_time: Time,
        first_sent: Time,
    ) {
        let flags = self.get(seq).flags;
        let old = flags & MARKS;
        self.marked += u64::from(old == 0);
        self.again_out += u64::from(flags & IN_FLIGHT_AGAIN == 0);
        let flags = flags | IN_FLIGHT_AGAIN | RETRANSMITTED;
        *self.get_mut(seq) = Sent {
            xmit,
            delivered_time,
            first_sent,
            delivered: delivered as u32,
            flags,
        };
        self.again.push_back((seq, xmit));
    }

    /// Takes back a retransmission that never left the host: it waits to be resent.
    pub fn unsend_again(&mut self, seq: u64) {
        if self.get(seq).flags & IN_FLIGHT_AGAIN != 0 {
            self.again.pop_back();
            self.lose_again(seq);
        }
    }

    /// One below the number from which at least `threshold` SACKed segments lie above: below it RFC 6675 calls a hole lost.
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

    /// A segment below the highest SACKed one that is neither SACKed, lost nor resent (RFC 6675 NextSeg rule 3). The search
    /// goes on where it stopped, over a SACKed run in one step.
    pub fn next_hole(&mut self) -> Option<u64> {
        let top = self.sacked.last()?.start;
        let mut seq = self.searched.max(self.judged).max(self.una);
        while seq < top {
            let flags = self.get(seq).flags;
            if flags & (SACKED | LOST | IN_FLIGHT_AGAIN) == 0 {
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

    /// Undo after a spurious timeout or recovery: what is marked lost and was not resent is in the network after all.
    pub fn forget_losses(&mut self) {
        while let Some(seq) = self.next_lost() {
            let sent = self.get_mut(seq);
            sent.flags &= !LOST;
            let clean = sent.flags & MARKS == 0;
            self.marked -= u64::from(clean);
            self.lost_out -= 1;
        }
        self.judged = self.una;
        self.searched = self.una;
    }

    /// Recounts everything from the records: what the counters must equal. Duplicates without SACK have no record.
    pub fn audit(&self, without_sack: bool) -> Result<(), String> {
        let (mut sacked, mut lost, mut again, mut marked) = (0, 0, 0, 0);
        for seq in self.una..self.nxt {
            let f = self.get(seq).flags;
            sacked += u64::from(f & SACKED != 0);
            lost += u64::from(f & LOST != 0);
            again += u64::from(f & IN_FLIGHT_AGAIN != 0);
            marked += u64::from(f & MARKS != 0);
            let known = self.sacked.holding(seq).is_some();
            if known != (f & SACKED != 0) {
                return Err(format!(
                    "segment {seq}: SACKed in the ranges: {known}, flags {f}"
                ));
            }
            if f & SACKED != 0 && f & (LOST | IN_FLIGHT_AGAIN) != 0 {
                return Err(format!("segment {seq}: delivered and lost, flags {f}"));
            }
        }
        if without_sack {
            sacked = self.sacked_out;
        }
        let have = (self.sacked_out, self.lost_out, self.again_out, self.marked);
        if (sacked, lost, again, marked) == have {
            Ok(())
        } else {
            Err(format!(
                "counted {:?}, kept {have:?}",
                (sacked, lost, again, marked)
            ))
        }
    }
}
