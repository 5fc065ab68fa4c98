//! RACK's clock: which delivery is the newest sent, and how much reordering is tolerated (RFC 8985
//! section 6).

use fullpipe_units::{Span, Time};

use crate::sender::scoreboard::Sent;

/// State of RACK that is not in the scoreboard.
#[derive(Clone, Debug)]
pub struct Rack {
    xmit: Time,
    seq: u64,
    rtt: Span,
    reordering_seen: bool,
    mult: u64,
    persist: u32,
    /// `snd_nxt` when the window last widened for a DSACK: once per round.
    dsack_round: Option<u64>,
}

impl Rack {
    /// At the start of a connection.
    pub fn new() -> Self {
        Self {
            xmit: Time::ZERO,
            seq: 0,
            rtt: Span::ZERO,
            reordering_seen: false,
            mult: 1,
            persist: 16,
            dsack_round: None,
        }
    }

    /// Step 2: the newest sent segment that this ACK delivered. `echo` is the echoed time stamp of
    /// a cumulative ACK; a retransmission whose echo or RTT betrays the original is ignored.
    #[inline]
    pub fn advance(&mut self, now: Time, seq: u64, sent: &Sent, echo: Option<Time>, min_rtt: Span) {
        let rtt = now.saturating_since(sent.xmit);
        if sent.retransmitted() && (echo.is_some_and(|e| e < sent.xmit) || rtt < min_rtt) {
            return;
        }
        self.rtt = rtt;
        if (sent.xmit, seq) > (self.xmit, self.seq) {
            self.xmit = sent.xmit;
            self.seq = seq;
        }
    }

    /// Step 3: a segment never retransmitted was delivered below an already delivered one.
    pub fn saw_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Step 4: a DSACK widens the window once per round.
    pub fn on_dsack(&mut self, una: u64, nxt: u64) {
        if self.dsack_round.is_none_or(|end| una >= end) {
            self.dsack_round = Some(nxt);
            self.mult += 1;
            self.persist = 16;
        }
    }

    /// Leaving recovery lets a widened window fade after 16 of them.
    pub fn on_recovery_exit(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.mult = 1;
        }
    }

    /// Tolerated reordering.
    pub fn window(&self, min_rtt: Span, srtt: Span, recovering: bool, sacked: u64) -> Span {
        if !self.reordering_seen && (recovering || sacked >= 3) {
            return Span::ZERO;
        }
        (min_rtt * self.mult / 4).min(srtt)
    }

    /// Sent before the newest delivered segment.
    #[inline]
    pub fn is_before(&self, seq: u64, sent: &Sent) -> bool {
        (sent.xmit, seq) < (self.xmit, self.seq)
    }

    /// Time of transmission of the newest delivered segment.
    pub fn xmit(&self) -> Time {
        self.xmit
    }

    /// When a segment sent at `xmit` is lost.
    #[inline]
    pub fn lost_at(&self, xmit: Time, window: Span) -> Time {
        xmit + self.rtt + window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known numbers: min RTT 80 ms, SRTT 84 ms: 20 ms; after one DSACK round 40; three 80; four 84
    /// (capped by SRTT).
    #[test]
    fn the_window_widens_with_dsack_rounds() {
        let ms = Span::from_millis;
        let mut rack = Rack::new();
        let window = |r: &Rack| r.window(ms(80), ms(84), false, 0);
        assert_eq!(window(&rack), ms(20));
        let mut seen = Vec::new();
        for round in 1..=4 {
            rack.on_dsack(round * 10, round * 10 + 10);
            rack.on_dsack(round * 10 + 5, round * 10 + 15); // the same round: no effect
            seen.push(window(&rack));
        }
        assert_eq!(seen, [ms(40), ms(60), ms(80), ms(84)]);
        for _ in 0..16 {
            rack.on_recovery_exit();
        }
        assert_eq!(window(&rack), ms(20));
        assert_eq!(rack.window(ms(80), ms(84), true, 0), Span::ZERO);
    }
}
