//! The sender's side of ECN (RFC 3168 section 6.1.2).

/// ECN state of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ecn {
    on: bool,
    /// The next new segment carries CWR.
    cwr: bool,
}

impl Ecn {
    pub(super) fn new(on: bool) -> Self {
        Self { on, cwr: false }
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
