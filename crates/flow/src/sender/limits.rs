//! How far new data may go: as far as the application has written it and the peer takes it.

/// Segment numbers; new data is sent below the smallest of the ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// One past the application's last segment; [`u64::MAX`]: it has no end.
    app: u64,
    /// One past the last segment that the advertised window admits; [`u64::MAX`]: never limiting.
    peer: u64,
    /// One past the last segment in the send buffer; [`u64::MAX`]: there is none.
    written: u64,
    /// The smallest of them.
    send: u64,
    /// Window that the last ACK advertised, segments; 0 before the first.
    advertised: u64,
    /// Largest window advertised so far, segments; [`u64::MAX`] before the first.
    largest: u64,
    /// The answer to the SYN has stated a window, and no ACK since.
    opened: bool,
}

impl Limits {
    /// `buffered`: the application writes through a send buffer, empty as yet.
    pub(super) fn new(transfer: Option<u64>, buffered: bool) -> Self {
        let app = transfer.unwrap_or(u64::MAX);
        let written = if buffered { 0 } else { u64::MAX };
        Self {
            app,
            peer: u64::MAX,
            written,
            send: app.min(written),
            advertised: 0,
            largest: u64::MAX,
            opened: false,
        }
    }

    fn follow(&mut self) {
        self.send = self.app.min(self.peer).min(self.written);
    }

    /// The send buffer holds what is below `end`.
    pub(super) fn write(&mut self, end: u64) {
        self.written = end;
        self.follow();
    }

    /// New data may be sent below this number.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.send
    }

    /// One past the application's last segment.
    #[inline]
    pub(super) fn app_end(&self) -> u64 {
        self.app
    }

    /// The application ends at `nxt`, if it has not ended before.
    pub(super) fn end_app(&mut self, nxt: u64) {
        self.app = self.app.min(nxt);
        self.follow();
    }

    /// The application's data ends at `end` for now.
    pub(super) fn extend_app(&mut self, end: u64) {
        self.app = self.app.max(end);
        self.follow();
    }

    /// The peer's first window. Into one that is closed from the start the first segment is the
    /// probe: its timer repeats it.
    pub(super) fn open(&mut self, window_end: u64) {
        self.peer = window_end.max(1);
        self.largest = self.peer;
        self.opened = true;
        self.follow();
    }

    /// An ACK for `cum` advertises `window_end`; true if that moves the window's end. Of two ACKs
    /// for the same number the one with the smaller window is the older (RFC 9293 section 3.10.7.4
    /// compares its sequence numbers).
    #[inline]
    pub(super) fn update(&mut self, una: u64, cum: u64, window_end: u64) -> bool {
        if window_end == self.peer {
            return false;
        }
        let newer = cum > una || window_end > self.peer || self.peer == u64::MAX;
        let moved = cum >= una && newer;
        if moved {
            let window = window_end.saturating_sub(cum);
            self.largest = match self.peer {
                u64::MAX => window,
                _ => self.largest.max(window),
            };
            self.peer = window_end;
            self.follow();
        }
        moved
    }

    /// True of the first ACK after the answer to the SYN. Its sequence number is one higher: Linux
    /// takes it for a window update, whatever it advertises (`tcp_may_update_window`).
    #[inline]
    pub(super) fn take_opened(&mut self) -> bool {
        core::mem::take(&mut self.opened)
    }

    /// Whether an ACK for `cum` repeats the window of the one before. A SYN states its window
    /// without a scale, so that the first ACK never does.
    #[inline]
    pub(super) fn is_steady(&mut self, cum: u64, window_end: u64) -> bool {
        let window = match window_end {
            u64::MAX => window_end,
            end => end.saturating_sub(cum),
        };
        window == core::mem::replace(&mut self.advertised, window)
    }

    /// Largest window that the peer has advertised, segments (Linux `max_window`);
    /// [`u64::MAX`]: never limiting.
    #[inline]
    pub(super) fn largest(&self) -> u64 {
        self.largest
    }

    /// There is data at `nxt` and the peer's window does not admit it.
    #[inline]
    pub(super) fn is_closed(&self, nxt: u64) -> bool {
        nxt >= self.peer && nxt < self.app
    }
}
