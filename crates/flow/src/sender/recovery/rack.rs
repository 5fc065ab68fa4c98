//! RACK's clock: which delivery is the newest sent, and how much reordering is tolerated (RFC 8985
//! section 6).

use fullpipe_units::{Span, Time};

use crate::config::SpuriousRule;
use crate::sender::scoreboard::order;

/// Time of transmission and number of the newest sent segment that was delivered.
type Newest = (Time, u64);

/// State of RACK that is not in the scoreboard. What every ACK touches comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Rack {
    xmit: Time,
    seq: u64,
    rtt: Span,
    by: SpuriousRule,
    /// A segment was delivered, or a reduction undone, since the last look for losses (Linux
    /// `rack.advanced`).
    news: bool,
    /// The next delivery may change the window ([`Rack::on_delivery`]).
    awaits_delivery: bool,
    reordering_seen: bool,
    /// The last ACK widened the window.
    widened: bool,
    /// A DSACK has yet to widen the window (Linux `dsack_seen`).
    dsack_waits: bool,
    persist: u32,
    mult: u64,
    /// `snd_nxt` when the window last widened for a DSACK: once per round.
    dsack_round: Option<u64>,
    /// Linux `reordering`, segments: the largest distance over which one was overtaken, at least 3.
    distance: u64,
    /// Deliveries when the window last widened (Linux `last_delivered`).
    widened_at: u64,
    /// The last retransmission that was the newest delivery, and the newest before such ones.
    resent: Option<[Newest; 2]>,
}

impl Rack {
    /// At the start of a connection.
    pub fn new(by: SpuriousRule) -> Self {
        Self {
            by,
            xmit: Time::ZERO,
            seq: 0,
            rtt: Span::ZERO,
            resent: None,
            reordering_seen: false,
            mult: 1,
            persist: match by {
                SpuriousRule::Rfc => PERSIST,
                SpuriousRule::Linux => 0,
            },
            widened: false,
            dsack_round: None,
            awaits_delivery: false,
            news: false,
            distance: DISTANCE,
            dsack_waits: false,
            widened_at: 0,
        }
    }

    /// Step 2: the newest sent segment that this ACK delivered, ambiguous retransmissions aside.
    #[inline]
    pub fn advance(&mut self, now: Time, seq: u64, xmit: Time) {
        self.news = true;
        self.rtt = now.saturating_since(xmit);
        if order(xmit, seq) > order(self.xmit, self.seq) {
            self.xmit = xmit;
            self.seq = seq;
        }
    }

    /// The same of a retransmission, which may yet turn out to be its original.
    pub fn advance_by_retransmission(&mut self, now: Time, seq: u64, xmit: Time) {
        let prior = self.newest();
        self.advance(now, seq, xmit);
        if self.newest() != prior {
            let before = match self.resent {
                Some([last, before]) if last == prior => before,
                _ => prior,
            };
            self.resent = Some([self.newest(), before]);
        }
    }

    /// Retransmissions were needless: if the newest delivery is that of one, the newest is again
    /// what it was before. True if so.
    pub fn take_back(&mut self) -> bool {
        let newest = self.newest();
        match self.resent.take() {
            Some([last, before]) if last == newest => {
                (self.xmit, self.seq) = before;
                true
            }
            _ => false,
        }
    }

    /// The round trip is that of the delivery that Linux processes last, which left at `xmit`
    /// (`tcp_rack_advance`).
    pub fn time(&mut self, now: Time, xmit: Time) {
        self.rtt = now.saturating_since(xmit);
    }

    /// Step 3: a segment never retransmitted was delivered below an already delivered one, which is
    /// `distance` segments above it.
    pub fn saw_reordering(&mut self, distance: u64) {
        self.reordering_seen = true;
        self.distance = self.distance.max(distance.min(MOST_DISTANCE));
    }

    /// A timeout with so many segments SACKed outside of a recovery: the measured distance was too
    /// much (Linux `tcp_enter_loss`).
    pub fn forget_distance(&mut self, sacked: u64) {
        if sacked >= DISTANCE {
            self.distance = DISTANCE;
        }
    }

    /// The window may grow on SACKs too (Linux `tcp_may_raise_cwnd`).
    pub fn is_reordering_high(&self) -> bool {
        self.by == SpuriousRule::Linux && self.distance > DISTANCE
    }

    /// Losses are looked for now; false if nothing has changed (Linux `tcp_rack_mark_lost`).
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news) || self.by == SpuriousRule::Rfc
    }

    /// What is lost is to be judged anew.
    pub fn look_again(&mut self) {
        self.news = true;
    }

    /// Step 4: a DSACK widens the window once per round. To be called for every ACK that may end a
    /// recovery; `dsack`: it has one.
    #[inline]
    pub fn on_ack(&mut self, dsack: bool, una: u64, nxt: u64) {
        self.widened = dsack && self.dsack_round.is_none_or(|end| una >= end);
        if self.widened {
            self.dsack_round = Some(nxt);
            self.mult += 1;
            self.persist = PERSIST;
        }
    }

    /// Linux (`tcp_dsack_seen`): the next delivery may widen the window.
    pub fn note_dsack(&mut self) {
        self.dsack_waits |= self.reordering_seen;
        self.awaits_delivery |= self.dsack_waits;
    }

    /// Linux (`tcp_rack_update_reo_wnd`): of `deliveries` in all, this one is of a segment that
    /// left after `prior`. It widens the window for a DSACK unless that was done since; a widened
    /// window whose recoveries are over ends with it.
    pub fn on_delivery(&mut self, prior: u64, deliveries: u64) {
        self.awaits_delivery = false;
        if std::mem::take(&mut self.dsack_waits) && prior >= self.widened_at {
            self.mult = (self.mult + 1).min(MOST_STEPS);
            self.widened_at = deliveries;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.mult = 1;
        }
    }

    /// The largest distance over which a segment was overtaken, segments.
    pub fn distance(&self) -> u64 {
        self.distance
    }

    /// The next delivery may change the window ([`Rack::on_delivery`]).
    #[inline]
    pub fn awaits_delivery(&self) -> bool {
        self.awaits_delivery
    }

    /// Linux (`tcp_try_undo_dsack`): a reduction that DSACKs undid is one recovery less.
    pub fn on_dsack_undo(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// Leaving fast or RTO recovery lets a widened window fade after 16 of them, but for those that
    /// end with the ACK that widened it.
    pub fn on_recovery_exit(&mut self) {
        if self.widened {
            return;
        }
        self.persist = self.persist.saturating_sub(1);
        // By Linux the next delivery ends it: what this ACK shows is judged by the window as it was
        // (`tcp_rack_update_reo_wnd` comes before `tcp_try_undo_recovery`).
        match self.by {
            SpuriousRule::Rfc if self.persist == 0 => self.mult = 1,
            SpuriousRule::Rfc => {}
            SpuriousRule::Linux => self.awaits_delivery |= self.persist == 0 && self.mult > 1,
        }
    }

    /// Tolerated reordering.
    pub fn window(&self, min_rtt: Span, srtt: Span, recovering: bool, sacked: u64) -> Span {
        if !self.reordering_seen && (recovering || sacked >= 3) {
            return Span::ZERO;
        }
        match self.by {
            SpuriousRule::Rfc => (min_rtt * self.mult / 4).min(srtt),
            // A quarter in whole microseconds (`tcp_rack_reo_wnd`).
            SpuriousRule::Linux => {
                let quarter = min_rtt.as_nanos() / 4_000;
                Span::from_micros(quarter * self.mult).min(srtt)
            }
        }
    }

    /// Sent before the newest delivered segment.
    #[inline]
    pub fn is_before(&self, xmit: Time, seq: u64) -> bool {
        order(xmit, seq) < order(self.xmit, self.seq)
    }

    /// Time of transmission of the newest delivered segment, and its number.
    pub fn newest(&self) -> Newest {
        (self.xmit, self.seq)
    }

    /// When a segment sent at `xmit` is lost.
    #[inline]
    pub fn lost_at(&self, xmit: Time, window: Span) -> Time {
        xmit + self.rtt + window
    }
}

/// Recoveries for which a widened window stays (RFC 8985 section 6.2 step 4, Linux
/// `TCP_RACK_RECOVERY_THRESH`).
const PERSIST: u32 = 16;
/// Linux `tcp_reordering` and `tcp_max_reordering`, segments.
const DISTANCE: u64 = 3;
pub(super) const MOST_DISTANCE: u64 = 300;
/// Linux keeps the steps in a byte.
const MOST_STEPS: u64 = 0xFF;

/// A retransmission that left later than this may not be what was delivered (section 6.2 step 2):
/// the echoed time stamp is older, or the RTT would be the smallest.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Trust {
    /// Latest departure of a retransmission that is acknowledged cumulatively.
    pub acked: Time,
    /// Latest departure of one that is SACKed.
    pub sacked: Time,
}

impl Trust {
    /// Linux asks the time stamp, which has milliseconds, only of what is acknowledged cumulatively
    /// (`tcp_clean_rtx_queue`, `tcp_skb_spurious_retrans`); an ACK that advances and SACKs at once
    /// echoes a stamp of what advanced (`tcp_sacktag_one`).
    ///
    /// `strict`: without a stamp nothing is trusted.
    #[inline]
    pub fn new(
        by: SpuriousRule,
        now: Time,
        echo: Option<Time>,
        min_rtt: Span,
        strict: bool,
    ) -> Self {
        let since = Time::ZERO + now.saturating_since(Time::ZERO).saturating_sub(min_rtt);
        let unstamped = if strict { Time::ZERO } else { since };
        let until = |echo: Option<Time>| echo.map_or(unstamped, |echo| echo.min(since));
        match by {
            SpuriousRule::Rfc => Self {
                acked: until(echo),
                sacked: until(echo),
            },
            SpuriousRule::Linux => Self {
                acked: until(echo.map(end_of_tick)),
                sacked: since,
            },
        }
    }
}

/// The last instant with the time stamp that this one has.
#[inline]
fn end_of_tick(at: Time) -> Time {
    let ms = Span::from_millis(1).as_nanos();
    Time::from_nanos(at.as_nanos() / ms * ms + ms - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known numbers: min RTT 80 ms, SRTT 84 ms: 20 ms; after one DSACK round 40; three 80; four 84
    /// (capped by SRTT).
    #[test]
    fn the_window_widens_with_dsack_rounds() {
        let ms = Span::from_millis;
        let mut rack = Rack::new(SpuriousRule::Rfc);
        let window = |r: &Rack| r.window(ms(80), ms(84), false, 0);
        assert_eq!(window(&rack), ms(20));
        let mut seen = Vec::new();
        for round in 1..=4 {
            rack.on_ack(true, round * 10, round * 10 + 10);
            rack.on_ack(true, round * 10 + 5, round * 10 + 15); // the same round: no effect
            seen.push(window(&rack));
        }
        assert_eq!(seen, [ms(40), ms(60), ms(80), ms(84)]);
        // A recovery that ends with the ACK that widens it does not count.
        rack.on_ack(true, 60, 70);
        rack.on_recovery_exit();
        for recovery in 0..16 {
            assert_eq!(window(&rack), ms(84), "{recovery}");
            rack.on_ack(false, 65, 75);
            rack.on_recovery_exit();
        }
        assert_eq!(window(&rack), ms(20));
        assert_eq!(rack.window(ms(80), ms(84), true, 0), Span::ZERO);
    }

    /// The same numbers by Linux's rules: a DSACK before any reordering counts for nothing, one
    /// about what left before the last step neither (`tcp_rack_update_reo_wnd`); 16 recoveries end
    /// it, and one that DSACKs undid is one less.
    #[test]
    fn linux_widens_the_window_only_after_reordering() {
        let ms = Span::from_millis;
        let mut rack = Rack::new(SpuriousRule::Linux);
        // A quarter of 80,003 us is 20,000 us, three quarters are 60,000.
        let min_rtt = ms(80) + Span::from_micros(3);
        let window = |r: &Rack| r.window(min_rtt, ms(84), false, 0);
        rack.note_dsack();
        rack.on_delivery(0, 10);
        assert_eq!(window(&rack), ms(20));
        rack.saw_reordering(2);
        assert!(!rack.is_reordering_high());
        let mut seen = Vec::new();
        for (prior, deliveries) in [(10, 20), (19, 30), (20, 40)] {
            rack.note_dsack();
            rack.on_delivery(prior, deliveries);
            rack.on_delivery(deliveries, deliveries);
            seen.push(window(&rack));
        }
        assert_eq!(seen, [ms(40), ms(40), ms(60)]);
        for _ in 0..8 {
            rack.on_recovery_exit();
        }
        rack.on_dsack_undo();
        for _ in 0..8 {
            rack.on_recovery_exit();
        }
        assert_eq!(window(&rack), ms(60));
        rack.on_recovery_exit();
        // What the ACK that ends the last one shows is judged by the window as it was.
        assert_eq!(window(&rack), ms(60));
        rack.on_delivery(40, 41);
        assert_eq!(window(&rack), ms(20));
        rack.saw_reordering(1000);
        assert!(rack.is_reordering_high());
        rack.forget_distance(2);
        assert!(rack.is_reordering_high());
        rack.forget_distance(3);
        assert!(!rack.is_reordering_high());
    }
}
