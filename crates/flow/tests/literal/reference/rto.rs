//! RFC 6298: computing the retransmission timeout.

use super::Ns;

/// The estimator and the timeout.
#[derive(Clone, Debug)]
pub struct Rto {
    min: Ns,
    max: Ns,
    /// Clock granularity `G`.
    g: Ns,
    initial: Ns,
    /// Zero before the first sample.
    pub srtt: Ns,
    pub rttvar: Ns,
    /// Doublings since the last sample.
    backoff: u32,
}

impl Rto {
    pub fn new(min: Ns, max: Ns, g: Ns, initial: Ns) -> Self {
        Self {
            min,
            max,
            g,
            initial,
            srtt: 0,
            rttvar: 0,
            backoff: 0,
        }
    }

    /// Sections 2.2 and 2.3. A sample of an unambiguous segment also ends the backoff (section 5,
    /// last paragraph; Karn's algorithm, section 3).
    pub fn sample(&mut self, r: Ns) {
        self.backoff = 0;
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (r, r / 2);
            return;
        }
        self.rttvar = (3 * self.rttvar + self.srtt.abs_diff(r)) / 4;
        self.srtt = (7 * self.srtt + r) / 8;
    }

    /// Sections 2.1 to 2.5.
    pub fn rto(&self) -> Ns {
        let base = match self.srtt {
            0 => self.initial,
            srtt => srtt + self.g.max(4 * self.rttvar),
        };
        (base.max(self.min) << self.backoff.min(20)).min(self.max)
    }

    /// Section 5.5.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }
}
