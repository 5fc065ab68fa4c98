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
    /// The host takes no more for now, although there may be more to send: it is the host that limits, not the window. A window in
    /// which that was so throughout does not grow, as in Linux (`tcp_cwnd_validate`) and RFC 7661.
    pub fn yielded(&mut self) {
        self.note_usage(false);
    }

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
