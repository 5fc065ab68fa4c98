//! RFC 6298: computing the retransmission timeout.

use super::Ns;
use super::choices::Choices;

/// The estimator and the timeout.
#[derive(Clone, Debug)]
pub struct Rto {
    min: Ns,
    max: Ns,
    initial: Ns,
    /// Every ACK's sample.
    pub acks: Estimator,
    /// One segment timed at a time ("typically, once per RTT", section 3).
    rounds: Option<Estimator>,
    /// The next one to be timed was the first to leave after the last sample.
    timed: u64,
    /// Doublings since the last sample.
    backoff: u32,
}

/// SRTT and RTTVAR.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    /// Clock granularity `G`.
    g: Ns,
    /// Zero before the first sample.
    pub srtt: Ns,
    pub rttvar: Ns,
}

impl Estimator {
    /// Sections 2.2 and 2.3.
    fn sample(&mut self, r: Ns) {
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (r, r / 2);
            return;
        }
        self.rttvar = (3 * self.rttvar + self.srtt.abs_diff(r)) / 4;
        self.srtt = (7 * self.srtt + r) / 8;
    }

    fn rto(&self) -> Ns {
        self.srtt + self.g.max(4 * self.rttvar)
    }
}

impl Rto {
    pub fn new(c: &Choices) -> Self {
        let empty = Estimator {
            g: c.granularity,
            ..Estimator::default()
        };
        Self {
            min: c.rto_min,
            max: c.rto_max,
            initial: c.rto_initial,
            acks: empty.clone(),
            rounds: c.rto_rounds.then_some(empty),
            timed: 0,
            backoff: 0,
        }
    }

    /// Segment `n` tells `r`, and `nxt` is the next new one. A sample of an unambiguous segment
    /// also ends the backoff (section 5, last paragraph; Karn's algorithm, section 3).
    pub fn sample(&mut self, r: Ns, n: u64, nxt: u64) {
        self.backoff = 0;
        self.acks.sample(r);
        if let Some(rounds) = &mut self.rounds
            && n >= self.timed
        {
            rounds.sample(r);
            self.timed = nxt;
        }
    }

    /// RFC 4015 section 3.2 step 11.
    pub fn adapt(&mut self, r: Ns, srtt: Ns, rttvar: Ns) {
        for e in [Some(&mut self.acks), self.rounds.as_mut()]
            .into_iter()
            .flatten()
        {
            (e.srtt, e.rttvar) = (srtt.max(r), rttvar.max(r / 2));
        }
    }

    /// Sections 2.1 to 2.5.
    pub fn rto(&self) -> Ns {
        let base = match self.acks.srtt {
            0 => self.initial,
            _ => self
                .acks
                .rto()
                .max(self.rounds.as_ref().map_or(0, Estimator::rto)),
        };
        (base.max(self.min) << self.backoff.min(20)).min(self.max)
    }

    /// Section 5.5.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }
}
