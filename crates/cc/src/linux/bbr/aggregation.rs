//! How much arrives acknowledged in one go: the largest excess of deliveries over the estimated
//! bandwidth in the last 5 to 10 rounds. The window is raised by it, so that the sender does not
//! stall between bursts of ACKs.

use fullpipe_units::Time;

/// The estimator of ACK aggregation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    /// Largest excess of the present half of the window and of the one before, segments.
    extra: [u32; 2],
    half: usize,
    /// Rounds that the present half has lasted.
    rounds: u32,
    /// Start of the sampling epoch, and what it delivered.
    epoch: Time,
    acked: u32,
}

impl Aggregation {
    pub(super) fn new(now: Time) -> Self {
        Self {
            extra: [0; 2],
            half: 0,
            rounds: 0,
            epoch: now,
            acked: 0,
        }
    }

    /// Largest excess of the window, segments (`bbr_extra_acked`).
    #[inline]
    pub(super) fn extra(&self) -> u32 {
        self.extra[0].max(self.extra[1])
    }

    /// Sending starts again after idle time.
    pub(super) fn restart(&mut self, now: Time) {
        self.epoch = now;
        self.acked = 0;
    }

    /// `bbr_update_ack_aggregation`: `acked` segments were delivered at `now`; `bw` is the
    /// bandwidth estimate, segments per microsecond and 2^24.
    #[inline]
    pub(super) fn update(&mut self, now: Time, round_start: bool, acked: u32, bw: u32, cwnd: u32) {
        if round_start {
            self.rounds = (self.rounds + 1).min(0x1f);
            if self.rounds >= HALF_ROUNDS {
                self.rounds = 0;
                self.half ^= 1;
                self.extra[self.half] = 0;
            }
        }
        let us = |t: Time| t.as_nanos() / 1000;
        // A `u32` in the kernel, too (`tcp_stamp_us_delta`).
        let elapsed = us(now).saturating_sub(us(self.epoch)) as u32;
        let mut expected = ((u64::from(bw) * u64::from(elapsed)) >> super::BW_SCALE) as u32;
        if self.acked <= expected || self.acked + acked >= LARGEST_EPOCH {
            self.acked = 0;
            self.epoch = now;
            expected = 0;
        }
        self.acked = (self.acked + acked).min(LARGEST_EPOCH - 1);
        let excess = self.acked.saturating_sub(expected).min(cwnd).min(0xffff);
        self.extra[self.half] = self.extra[self.half].max(excess);
    }
}

/// Rounds of half the window (`bbr_extra_acked_win_rtts`).
const HALF_ROUNDS: u32 = 5;
/// An epoch with this many deliveries starts anew (`bbr_ack_epoch_acked_reset_thresh`).
const LARGEST_EPOCH: u32 = 1 << 20;
