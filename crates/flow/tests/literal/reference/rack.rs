//! RFC 8985 section 6: loss detection by time.

use super::{Ns, Seg};

/// The variables of section 5.3.
#[derive(Clone, Debug)]
pub struct Rack {
    pub xmit_ts: Ns,
    /// RACK.end_seq; zero before anything was delivered.
    pub end_seq: u64,
    pub rtt: Ns,
    pub min_rtt: Ns,
    fack: u64,
    pub reordering_seen: bool,
    dsack_round: Option<u64>,
    reo_wnd_mult: u64,
    reo_wnd_persist: i64,
    /// With [`Departures::undo_asks_stamps`](super::Departures::undo_asks_stamps): the last
    /// retransmission that was the newest, and what was before such ones.
    resent: Option<[(Ns, u64); 2]>,
    /// Without a stamp no retransmission is known to have arrived.
    pub strict: bool,
}

/// Where the connection stands, as step 4 reads it.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub una: u64,
    pub nxt: u64,
    pub srtt: Ns,
    /// In fast or RTO recovery.
    pub recovering: bool,
    /// Leaving either.
    pub exiting: bool,
    /// The ACK has a DSACK block.
    pub dsack: bool,
    pub segs_sacked: u64,
}

fn sent_after(t1: Ns, seq1: u64, t2: Ns, seq2: u64) -> bool {
    t1 > t2 || (t1 == t2 && seq1 > seq2)
}

impl Rack {
    pub fn new() -> Self {
        Self {
            xmit_ts: 0,
            end_seq: 0,
            rtt: 0,
            min_rtt: Ns::MAX,
            fack: 0,
            reordering_seen: false,
            dsack_round: None,
            reo_wnd_mult: 1,
            reo_wnd_persist: 16,
            resent: None,
            strict: false,
        }
    }

    /// Section 6.2 steps 2 and 3, for the segments `newly` delivered by an ACK. `echo`: its time
    /// stamp, if it says which copy arrived.
    pub fn delivered(&mut self, now: Ns, segs: &[Seg], newly: &[u64], echo: Option<Ns>) {
        let mut by_time = newly.to_vec();
        by_time.sort_by_key(|&n| (segs[n as usize].xmit, n));
        let prior = (self.xmit_ts, self.end_seq);
        for n in by_time {
            let seg = &segs[n as usize];
            let rtt = now - seg.xmit;
            let older = echo.map_or(self.strict, |echo| echo < seg.xmit);
            if seg.retransmitted && (older || rtt < self.min_rtt) {
                continue;
            }
            self.rtt = rtt;
            if sent_after(seg.xmit, n + 1, self.xmit_ts, self.end_seq) {
                (self.xmit_ts, self.end_seq) = (seg.xmit, n + 1);
            }
        }
        let newest = (self.xmit_ts, self.end_seq);
        if newest != prior && segs[newest.1 as usize - 1].retransmitted {
            let before = match self.resent {
                Some([last, before]) if last == prior => before,
                _ => prior,
            };
            self.resent = Some([newest, before]);
        }
        let mut by_number = newly.to_vec();
        by_number.sort_unstable();
        for n in by_number {
            if n + 1 > self.fack {
                self.fack = n + 1;
            } else if !segs[n as usize].retransmitted {
                self.reordering_seen = true;
            }
        }
    }

    /// The retransmissions were needless: the newest is what it was before them.
    pub fn take_back(&mut self) -> bool {
        let taken = self.resent.take();
        let taken = taken.filter(|[last, _]| *last == (self.xmit_ts, self.end_seq));
        if let Some([_, before]) = taken {
            (self.xmit_ts, self.end_seq) = before;
        }
        taken.is_some()
    }

    /// Section 6.2 step 4, first half: what an ACK does to the multiplier.
    pub fn adapt(&mut self, at: Standing) {
        if self.dsack_round.is_some_and(|r| at.una >= r) {
            self.dsack_round = None;
        }
        let grows = self.dsack_round.is_none() && at.dsack;
        if grows {
            self.dsack_round = Some(at.nxt);
            self.reo_wnd_mult += 1;
            self.reo_wnd_persist = 16;
        }
        if at.exiting && !grows {
            self.reo_wnd_persist -= 1;
            if self.reo_wnd_persist <= 0 {
                self.reo_wnd_mult = 1;
            }
        }
    }

    /// Step 4, second half: the reordering window.
    pub fn reo_wnd(&self, at: Standing) -> Ns {
        let aggressive = at.recovering || at.segs_sacked >= super::sack::DUP_THRESH;
        if self.min_rtt == Ns::MAX || (!self.reordering_seen && aggressive) {
            return 0;
        }
        (self.reo_wnd_mult * self.min_rtt / 4).min(at.srtt)
    }

    /// Step 5: marks what is lost, and says when to look again. Lost retransmissions count that
    /// left after the window came down, `since`.
    pub fn detect(&self, now: Ns, segs: &mut [Seg], una: u64, reo_wnd: Ns, since: Ns) -> Marked {
        let mut found = Marked::default();
        if self.end_seq == 0 {
            return found;
        }
        for (n, seg) in segs.iter_mut().enumerate().skip(una as usize) {
            // A lost one has no transmission in flight (section 5.2, INFINITE_TS).
            if seg.sacked || seg.lost {
                continue;
            }
            if sent_after(self.xmit_ts, self.end_seq, seg.xmit, n as u64 + 1) {
                let due = seg.xmit + self.rtt + reo_wnd;
                if due <= now {
                    seg.lose();
                    found.lost += 1;
                    let again = seg.retransmitted && seg.xmit >= since;
                    found.retransmissions += u64::from(again);
                } else {
                    found.look_again = found.look_again.max(Some(due));
                }
            }
        }
        found
    }

    /// Section 6.3: the first one, and what was sent a round trip and a reordering window ago.
    pub fn mark_on_rto(&self, now: Ns, segs: &mut [Seg], una: u64, reo_wnd: Ns) {
        for (n, seg) in segs.iter_mut().enumerate().skip(una as usize) {
            let old = seg.xmit + self.rtt + reo_wnd <= now;
            if !seg.sacked && (n as u64 == una || old) {
                seg.lose();
            }
        }
    }
}

/// Segments that step 5 of section 6.2 marked lost on one ACK or timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marked {
    pub lost: u64,
    /// Of them retransmissions that left since the window came down.
    pub retransmissions: u64,
    /// The latest moment at which one of the others is lost.
    pub look_again: Option<Ns>,
}
