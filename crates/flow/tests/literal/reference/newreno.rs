//! RFC 6582: NewReno, a sender without SACK. RFC 5681 around it, its timer by RFC 6298.

use fullpipe_flow::Ack;

use super::rto::Rto;
use super::{Choices, Departures, Literal, Ns, Seg, State};
use crate::law::Law;

/// RFC 5681 section 3.2.
const DUP_THRESH: u64 = 3;

/// The sender. The law holds ssthresh and cwnd; what fast recovery adds to cwnd is kept apart.
#[derive(Clone, Debug)]
pub struct NewReno {
    law: Law,
    /// Every segment ever sent.
    segs: Vec<Seg>,
    una: u64,
    /// SND.NXT: behind the highest segment sent after a timeout (RFC 5681 section 3.1).
    nxt: u64,
    transfer: u64,
    window_end: u64,
    state: State,
    /// `recover` (section 3.2 step 1).
    recover: Option<u64>,
    dup_acks: u64,
    /// cwnd less ssthresh in fast recovery (RFC 5681 section 3.2 steps 3 and 4, RFC 6582 section
    /// 3.2 step 3), and what Limited Transmit adds before.
    inflation: i64,
    /// Segments of Limited Transmit since the window was last open (RFC 5681 section 3.2 step 2).
    limited: u64,
    partial_seen: bool,
    /// The segment that leaves whatever the window.
    at_once: Option<u64>,
    rto: Rto,
    rto_at: Option<Ns>,
    departs: Departures,
}

impl NewReno {
    pub fn new(c: Choices, law: Law, transfer: u64, window_end: u64) -> Self {
        Self {
            law,
            segs: Vec::new(),
            una: 0,
            nxt: 0,
            transfer,
            window_end,
            state: State::Open,
            recover: None,
            dup_acks: 0,
            inflation: 0,
            limited: 0,
            partial_seen: false,
            at_once: None,
            rto: Rto::new(&c),
            rto_at: None,
            departs: c.departs,
        }
    }

    /// One past the highest segment sent.
    fn max(&self) -> u64 {
        self.segs.len() as u64
    }

    fn send(&mut self, now: Ns, n: u64) -> (u64, bool) {
        let again = n < self.max();
        match again {
            true => self.segs[n as usize].sent_again(now),
            false => {
                self.segs.push(Seg::sent(now));
                self.limited += u64::from(self.state == State::Open && self.dup_acks > 0);
            }
        }
        self.nxt = self.nxt.max(n + 1);
        // RFC 6298 step 5.1.
        self.rto_at.get_or_insert(now + self.rto.rto());
        (n, again)
    }

    /// FlightSize before the last `new` duplicates: each segment of Limited Transmit answers an
    /// earlier one, and is none of it (RFC 5681 section 3.2 step 2).
    fn flight_size(&self, new: u64) -> u64 {
        self.max() - self.una - self.limited.min(self.dup_acks - new)
    }

    /// A duplicate ACK.
    fn duplicate(&mut self) {
        if self.departs.newreno_counts {
            return self.delivered();
        }
        self.dup_acks += 1;
        match self.state {
            // RFC 5681 section 3.2 step 4.
            State::Recovery => self.inflation += 1,
            // Step 1: Limited Transmit.
            State::Open if self.dup_acks < DUP_THRESH => self.inflation += 1,
            // RFC 6582 section 3.2 step 2.
            State::Open if self.dup_acks == DUP_THRESH => self.fast_retransmit(),
            // Step 4: none until recover is acknowledged.
            _ => {}
        }
    }

    fn fast_retransmit(&mut self) {
        if self.recover.is_none_or(|recover| self.una > recover) {
            self.recover = Some(self.max());
            // RFC 5681 section 3.2 steps 2 and 3.
            self.law.lost(self.flight_size(1), true);
            self.inflation = DUP_THRESH as i64;
            self.state = State::Recovery;
            self.partial_seen = false;
            self.at_once = Some(self.una);
        }
    }

    /// The same with [`Departures::newreno_counts`].
    fn delivered(&mut self) {
        let (max, una) = (self.max(), self.una);
        let lost = match self.state {
            State::Recovery => 1,
            State::Timeout => self.recover.unwrap_or(una) - una,
            _ => 0,
        };
        self.dup_acks += u64::from(max - una > self.dup_acks + lost);
        if self.state == State::Open && self.dup_acks >= DUP_THRESH {
            self.fast_retransmit();
        }
        self.bound();
    }

    /// What a partial ACK covers, and the hole that it shows, are none of the delivered.
    fn bound(&mut self) {
        let hole = u64::from(self.state == State::Recovery);
        self.dup_acks = self.dup_acks.min(self.max() - self.una - hole);
        self.inflation = self.dup_acks as i64;
    }

    /// An ACK of `acked` new segments. True: it restarts the timer.
    fn advance(&mut self, acked: u64) -> bool {
        let before = std::mem::take(&mut self.dup_acks);
        let recover = self.recover.unwrap_or(0);
        match self.state {
            // RFC 6582 section 3.2 step 3, partial acknowledgements.
            State::Recovery if self.una < recover => {
                self.at_once = Some(self.una);
                self.inflation += 1 - acked as i64;
                if self.departs.newreno_counts {
                    self.dup_acks = before.saturating_sub(acked - 1);
                    self.bound();
                }
                return !std::mem::replace(&mut self.partial_seen, true);
            }
            // Full acknowledgements: cwnd is ssthresh, the second choice.
            State::Recovery => self.state = State::Open,
            State::Timeout if self.una >= recover => self.state = State::Open,
            _ => {}
        }
        self.inflation = 0;
        self.limited = 0;
        self.law.grow();
        true
    }
}

impl Literal for NewReno {
    fn una(&self) -> u64 {
        self.una
    }

    fn nxt(&self) -> u64 {
        self.max()
    }

    fn is_done(&self) -> bool {
        self.una == self.transfer
    }

    fn law(&self) -> &Law {
        &self.law
    }

    fn rto(&self) -> &Rto {
        &self.rto
    }

    fn state(&self) -> State {
        self.state
    }

    fn cwnd(&self) -> f64 {
        self.law.cwnd
    }

    /// What the window leaves of the outstanding: there is no other pipe without SACK.
    fn pipe(&self) -> u64 {
        (self.nxt as i64 - self.una as i64 - self.inflation).max(0) as u64
    }

    fn poll(&mut self, now: Ns) -> Option<(u64, bool)> {
        if self.is_done() {
            return None;
        }
        if let Some(n) = self.at_once.take() {
            return Some(self.send(now, n));
        }
        let flight = (self.nxt - self.una) as f64;
        let room = self.law.cwnd + self.inflation as f64 - flight >= 1.0;
        let more = self.nxt < self.transfer.min(self.window_end.max(self.max()));
        (room && more).then(|| self.send(now, self.nxt))
    }

    fn next_timer(&self) -> Option<Ns> {
        self.rto_at
    }

    /// RFC 6298 steps 5.4 to 5.6, RFC 5681 section 3.1, RFC 6582 section 3.2 step 4.
    fn on_timer(&mut self, now: Ns) {
        if self.rto_at.is_none_or(|at| at > now) {
            return;
        }
        let first = !self.segs[self.una as usize].timed_out;
        let flight = self.flight_size(0);
        self.rto.back_off();
        self.law.timed_out(flight, first, 0);
        self.recover = Some(self.max());
        self.state = State::Timeout;
        (self.dup_acks, self.inflation, self.limited) = (0, 0, 0);
        self.segs[self.una as usize].timed_out = true;
        self.nxt = self.una;
        self.at_once = Some(self.una);
        self.rto_at = Some(now + self.rto.rto());
    }

    fn on_ack(&mut self, now: Ns, ack: &Ack) {
        if ack.cum > self.max() || ack.cum < self.una {
            return;
        }
        self.window_end = match self.window_end {
            u64::MAX => ack.window_end,
            end => end.max(ack.window_end),
        };
        if ack.cum == self.una {
            if self.una < self.max() {
                self.duplicate();
            }
            return;
        }
        let newly = self.una..ack.cum;
        let newest = newly
            .clone()
            .max_by_key(|n| (self.segs[*n as usize].xmit, *n))
            .expect("it advanced");
        let (n, newest) = (newest, &self.segs[newest as usize]);
        // RFC 6298 section 3.
        if !newest.retransmitted || ack.echo.as_nanos() >= newest.xmit {
            self.rto.sample(now - newest.xmit, n, self.max());
        }
        self.una = ack.cum;
        self.nxt = self.nxt.max(self.una);
        let restarts = self.advance(newly.end - newly.start);
        // RFC 6298 steps 5.2 and 5.3.
        if self.una == self.max() {
            self.rto_at = None;
        } else if restarts {
            self.rto_at = Some(now + self.rto.rto());
        }
    }

    fn board(&self) -> String {
        let (una, nxt, max) = (self.una, self.nxt, self.max());
        let (dups, more) = (self.dup_acks, self.inflation);
        format!(
            "{una} {nxt} {max}, {dups} duplicates, cwnd {more:+}, {:?}",
            self.recover
        )
    }
}
