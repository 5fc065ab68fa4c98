//! Proportional Rate Reduction (RFC 9937 section 6): how many segments each ACK of a reduction may
//! release.
//!
//! Linux (RFC 6937) is the same with the window before the reduction as `recover_fs`.

/// State of one reduction, segments.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    ssthresh: u64,
    recover_fs: u64,
    delivered: u64,
    out: u64,
    cwnd: u64,
}

/// What PRR needs of one ACK, after it was processed.
#[derive(Clone, Copy, Debug)]
pub struct PrrAck {
    /// Segments newly acknowledged or SACKed.
    pub delivered: u64,
    /// Segments in the network.
    pub inflight: u64,
    /// `snd_una` advanced and nothing was newly marked lost.
    pub good: bool,
}

impl Prr {
    /// At recovery's start: `recover_fs` is what was outstanding and not SACKed just before the ACK
    /// that started it.
    pub fn new(ssthresh: u64, recover_fs: u64, cwnd: u64) -> Self {
        Self {
            ssthresh,
            recover_fs: recover_fs.max(1),
            delivered: 0,
            out: 0,
            cwnd,
        }
    }

    /// Window after this ACK.
    #[inline]
    pub fn on_ack(&mut self, ack: PrrAck) {
        if ack.delivered == 0 {
            return;
        }
        self.delivered += ack.delivered;
        let mut count = if ack.inflight > self.ssthresh {
            (self.delivered * self.ssthresh).div_ceil(self.recover_fs) as i64 - self.out as i64
        } else {
            let mut count = (self.delivered as i64 - self.out as i64).max(ack.delivered as i64);
            count += i64::from(ack.good);
            count.min((self.ssthresh - ack.inflight) as i64)
        };
        if self.out == 0 && count <= 0 {
            // The fast retransmit leaves whatever the arithmetic says.
            count = 1;
        }
        self.cwnd = ack.inflight + count.max(0) as u64;
    }

    /// The window is to come down to another threshold.
    pub fn aim_at(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh;
    }

    /// A segment left.
    pub fn on_sent(&mut self) {
        self.out += 1;
    }

    /// A segment did not leave after all. Of several refused at once the first to come back may
    /// have begun this reduction: the others were polled before it and are not in the count.
    pub fn on_unsent(&mut self) {
        self.out = self.out.saturating_sub(1);
    }

    /// Present window, segments.
    pub fn cwnd(&self) -> u64 {
        self.cwnd
    }
}
