//! The sender's side of ECN (RFC 3168 section 6.1.2).

/// ECN state of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ecn {
    on: bool,
    /// Retransmissions are ECN-capable, too.
    all: bool,
    /// The next new segment carries CWR.
    cwr: bool,
}

impl Ecn {
    /// `on`: use ECN; `needed`: by a controller that lives on marks.
    pub(super) fn new(on: bool, needed: bool) -> Self {
        Self {
            on,
            all: on && needed,
            cwr: false,
        }
    }

    /// Whether a segment is ECN-capable. Retransmissions are not (RFC 3168 section 6.1.5), unless
    /// the controller lives on marks: its queues would drop them (RFC 8311 section 4.3, Linux
    /// `tcp_ecn_send`).
    #[inline]
    pub(super) fn is_capable(&self, retransmission: bool) -> bool {
        self.on && (!retransmission || self.all)
    }

    /// Segments are ECN-capable, and an echo counts.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// The window was reduced: the receiver is to hear of it.
    pub(super) fn note_reduction(&mut self) {
        self.cwr = self.on;
    }

    /// Whether the new segment that leaves now carries CWR.
    #[inline]
    pub(super) fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr)
    }

    /// The segment that took it never left the host.
    pub(super) fn put_back(&mut self, cwr: bool) {
        self.cwr |= cwr;
    }
}
