//! Was the window the limit during the last window of data? Linux' rule; RFC 7661 has the same aim.

use fullpipe_cc::Controller;

use super::Sender;

/// Its use during the last window of data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    limited: bool,
    most: u64,
    until: u64,
}

impl<C: Controller> Sender<C> {
    #[inline]
    pub(super) fn note_usage(&mut self, limited: bool) {
        let out = self.board.flight();
        let u = &mut self.usage;
        if self.board.una() >= u.until || limited || (!u.limited && out > u.most) {
            *u = Usage {
                limited,
                most: out,
                until: self.board.nxt(),
            };
        }
    }

    #[inline]
    pub(super) fn cwnd_limited(&self) -> bool {
        self.usage.limited
            || (self.cc.in_start_up() && self.cc.window() < 2.0 * self.usage.most as f64)
    }
}
