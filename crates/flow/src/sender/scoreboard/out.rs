//! How many of the outstanding segments are SACKed, lost, and sent again.

/// Counts of outstanding segments, and what they leave in the network.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Out {
    sacked: u64,
    lost: u64,
    retrans: u64,
    /// SACKed and lost ones less retransmissions, modulo 2^64: what is outstanding and not in the
    /// network. Kept because every transmission asks for it several times.
    left: u64,
}

impl Out {
    /// SACKed and not yet acknowledged.
    #[inline]
    pub(super) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Marked lost and not delivered since.
    #[inline]
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Retransmissions in the network.
    pub(super) fn retrans(&self) -> u64 {
        self.retrans
    }

    /// What is in the network of `flight` outstanding segments (RFC 6675 `pipe`).
    #[inline]
    pub(super) fn pipe(&self, flight: u64) -> u64 {
        debug_assert_eq!(
            flight + self.retrans - self.sacked - self.lost,
            flight.wrapping_sub(self.left)
        );
        flight.wrapping_sub(self.left)
    }

    pub(super) fn add_sacked(&mut self, n: u64) {
        self.sacked += n;
        self.left = self.left.wrapping_add(n);
    }

    pub(super) fn remove_sacked(&mut self, n: u64) {
        self.sacked -= n;
        self.left = self.left.wrapping_sub(n);
    }

    pub(super) fn add_lost(&mut self, n: u64) {
        self.lost += n;
        self.left = self.left.wrapping_add(n);
    }

    pub(super) fn remove_lost(&mut self, n: u64) {
        self.lost -= n;
        self.left = self.left.wrapping_sub(n);
    }

    pub(super) fn add_retrans(&mut self, n: u64) {
        self.retrans += n;
        self.left = self.left.wrapping_sub(n);
    }

    pub(super) fn remove_retrans(&mut self, n: u64) {
        self.retrans -= n;
        self.left = self.left.wrapping_add(n);
    }
}
