//! What was sent and what became of it: one 16-byte record per outstanding segment in a ring,
//! counters kept up to date.
//!
//! Nothing here walks the window on an ACK. A cumulative ACK over a clean window touches one
//! record; otherwise each segment is visited a bounded number of times in its life: when SACKed,
//! when checked for loss, when removed.

mod audit;
mod delivered;
mod lost;
mod next;
mod out;
mod record;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fullpipe_units::Time;

pub use delivered::Delivered;
pub use record::{Sent, order};

use crate::ranges::{Range, RangeSet};
use out::Out;
use record::{
    APP_LIMITED, EXONERATED, MARKS, RESENT_AGAIN, RETRANS_OUT, RETRANSMITTED, SACKED, UNLISTED,
};

/// The sender's view of its window. What every segment touches comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Scoreboard {
    una: u64,
    nxt: u64,
    out: Out,
    /// Outstanding records with any mark.
    marked: u64,
    mask: u64,
    ring: Vec<Sent>,
    /// Highest segment delivered so far, plus one (`fack`).
    fack: u64,
    /// Originals below this number have been checked by the loss detector.
    checked: u64,
    /// Originals below this number were sent before RACK.segment, as of the last look.
    overtaken: u64,
    /// Records below this number did not outlive the growth of the ring.
    recorded_from: u64,
    /// Below this number there is no hole that is neither lost nor resent.
    searched: u64,
    sacked: RangeSet,
    /// Blocks that ACKs reported lately, all in `sacked` or below `una` (Linux `recv_sack_cache`).
    reported: [Range; 4],
    /// Retransmissions in the network in the order they were sent.
    retrans: VecDeque<(u64, Time)>,
    /// Lost and not yet resent, in the order of detection (ascending runs).
    lost: VecDeque<Range>,
    /// Retransmissions marked lost, by number.
    lost_retrans: BinaryHeap<Reverse<u64>>,
    /// What was marked lost since the last look, for whoever wants each of them.
    fresh_losses: Option<Vec<(u64, Sent)>>,
    /// An undo is Linux's ([`Scoreboard::forget_losses`]).
    undo_by_linux: bool,
}

impl Default for Scoreboard {
    fn default() -> Self {
        let empty = Sent {
            xmit: Time::ZERO,
            delivered: 0,
            flags: 0,
        };
        Self {
            ring: vec![empty; 64],
            mask: 63,
            una: 0,
            nxt: 0,
            sacked: RangeSet::default(),
            reported: [Range::EMPTY; 4],
            out: Out::default(),
            marked: 0,
            fack: 0,
            checked: 0,
            overtaken: 0,
            recorded_from: 0,
            searched: 0,
            retrans: VecDeque::new(),
            lost: VecDeque::new(),
            lost_retrans: BinaryHeap::new(),
            fresh_losses: None,
            undo_by_linux: false,
        }
    }
}

impl Scoreboard {
    /// Undoes as Linux does ([`Scoreboard::forget_losses`]).
    pub fn undo_by_linux(&mut self) {
        self.undo_by_linux = true;
    }

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
        self.out.pipe(self.flight())
    }

    /// SACKed segments above `una`.
    /// SACKed segments that follow another one.
    pub fn sacked_behind(&self) -> u64 {
        self.out
            .sacked()
            .saturating_sub(self.sacked.ranges() as u64)
    }

    #[inline]
    pub fn sacked_out(&self) -> u64 {
        self.out.sacked()
    }

    /// One past the highest segment delivered so far.
    pub fn fack(&self) -> u64 {
        self.fack
    }

    /// Segments marked lost and not delivered yet.
    pub fn lost_out(&self) -> u64 {
        self.out.lost()
    }

    /// Retransmissions in the network (Linux `retrans_out`).
    pub fn retrans_out(&self) -> u64 {
        self.out.retrans()
    }

    /// A retransmission is in the network, or the first outstanding segment was resent (Linux
    /// `tcp_any_retrans_done`).
    pub fn has_resent(&self) -> bool {
        self.retrans_out() > 0 || (self.flight() > 0 && self.get(self.una).retransmitted())
    }

    /// Segments whose last retransmission is in the network, in the order of sending.
    pub fn retransmissions_out(&self) -> impl Iterator<Item = u64> {
        let current = |&&(seq, xmit): &&(u64, Time)| {
            seq >= self.una && {
                let sent = self.get(seq);
                sent.flags & (RETRANS_OUT | SACKED) == RETRANS_OUT && sent.xmit == xmit
            }
        };
        self.retrans.iter().filter(current).map(|&(seq, _)| seq)
    }

    /// The record of `seq`, which may be acknowledged; `None` if it is gone.
    pub fn recorded(&self, seq: u64) -> Option<&Sent> {
        let kept = self
            .nxt
            .saturating_sub(self.mask + 1)
            .max(self.recorded_from);
        (kept..self.nxt).contains(&seq).then(|| self.get(seq))
    }

    /// No segment of the window is SACKed, lost or retransmitted, and no duplicate ACK without SACK
    /// counts in it.
    #[inline]
    pub fn is_untouched(&self) -> bool {
        self.marked | self.out.sacked() == 0
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
    pub fn push(&mut self, xmit: Time, delivered: u64, app_limited: bool) -> u64 {
        if self.nxt - self.una > self.mask {
            self.grow();
        }
        let seq = self.nxt;
        let flags = if app_limited { APP_LIMITED } else { 0 };
        *self.get_mut(seq) = Sent {
            xmit,
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
        self.recorded_from = self.una;
        let old = self.ring.len();
        let mut ring = vec![self.ring[0]; old * 2];
        let mask = (old * 2 - 1) as u64;
        for seq in self.una..self.nxt {
            ring[(seq & mask) as usize] = self.ring[(seq & self.mask) as usize];
        }
        self.ring = ring;
        self.mask = mask;
    }

    /// Sends `seq` again.
    #[inline]
    pub fn resend(&mut self, seq: u64, xmit: Time, delivered: u64, app_limited: bool) {
        let flags = self.get(seq).flags;
        if flags & SACKED != 0 {
            // A probe of Linux: nothing waits for it (`__tcp_retransmit_skb`).
            self.get_mut(seq).flags |= RETRANSMITTED;
            return;
        }
        let old = flags & MARKS;
        self.marked += u64::from(old == 0);
        self.out.add_retrans(u64::from(flags & RETRANS_OUT == 0));
        let limited = if app_limited { APP_LIMITED } else { 0 };
        let again = match flags & RETRANSMITTED {
            0 => 0,
            _ => RESENT_AGAIN,
        };
        let kept = flags & !(APP_LIMITED | EXONERATED | UNLISTED);
        let flags = kept | RETRANS_OUT | RETRANSMITTED | again | limited;
        *self.get_mut(seq) = Sent {
            xmit,
            delivered: delivered as u32,
            flags,
        };
        self.retrans.push_back((seq, xmit));
    }

    /// Takes back a retransmission that never left the host: it waits to be resent.
    pub fn unsend_retransmission(&mut self, seq: u64) {
        if self.get(seq).flags & RETRANS_OUT != 0 {
            self.retrans.pop_back();
            self.lose_retransmission(seq);
        }
    }
}
