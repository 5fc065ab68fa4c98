//! RFC 9937: proportional rate reduction.

/// One episode, in segments.
#[derive(Clone, Debug)]
pub struct Prr {
    pub ssthresh: u64,
    recover_fs: u64,
    delivered: u64,
    pub out: u64,
    pub cwnd: i64,
}

impl Prr {
    /// Section 6.1. RecoverFS is what was outstanding and not SACKed before the ACK that began the
    /// episode: what it SACKed or acknowledged for the first time is added back.
    pub fn new(ssthresh: u64, outstanding: u64, sacked: u64, newly: u64) -> Self {
        Self {
            ssthresh,
            recover_fs: (outstanding - sacked + newly).max(1),
            delivered: 0,
            out: 0,
            cwnd: 0,
        }
    }

    /// Section 6.2. `safe`: SND.UNA moved and nothing more was lost.
    pub fn on_ack(&mut self, delivered_data: u64, inflight: u64, safe: bool) {
        self.delivered += delivered_data;
        let (out, ssthresh) = (self.out as i64, self.ssthresh as i64);
        let mut snd_cnt = if inflight > self.ssthresh {
            (self.delivered * self.ssthresh).div_ceil(self.recover_fs) as i64 - out
        } else {
            let mut count = (self.delivered as i64 - out).max(delivered_data as i64);
            if safe {
                count += 1;
            }
            count.min(ssthresh - inflight as i64)
        };
        if self.out == 0 && snd_cnt == 0 {
            snd_cnt = 1;
        }
        self.cwnd = inflight as i64 + snd_cnt.max(0);
    }
}
