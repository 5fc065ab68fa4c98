//! Was the window the limit during the last window of data? The rule is that of Linux
//! (`tcp_cwnd_validate`); RFC 7661 has the same aim.

/// Use of the window during the last window of data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// The window was the limit.
    limited: bool,
    /// Most segments in flight.
    most: u64,
    /// The window of data ends when this segment is acknowledged.
    until: u64,
}

impl Usage {
    /// Segments `una` to `nxt` are in flight, and the window is what holds the sender back, or not.
    #[inline]
    pub(super) fn note(&mut self, limited: bool, una: u64, nxt: u64) {
        let out = nxt - una;
        if una >= self.until || limited || (!self.limited && out > self.most) {
            *self = Self {
                limited,
                most: out,
                until: nxt,
            };
        }
    }

    #[inline]
    pub(super) fn was_limited(&self) -> bool {
        self.limited
    }

    /// In start-up half a window in flight is enough to call it the limit.
    #[inline]
    pub(super) fn was_half_used(&self, window: f64) -> bool {
        window < 2.0 * self.most as f64
    }
}
