//! The host's own queue: what it refuses was never sent, and the switch says what that means for the window.

use fullpipe_cc::Controller;
use fullpipe_units::Time;

use super::{Connection, Sender};
use crate::config::LocalDrop;
use crate::episode::EpisodeKind;
use crate::segment::Segment;

impl<C: Controller> Sender<C> {
    /// The local queue refused `segment`, the last one polled: it never left the host. Of several that it refused at once the
    /// newest comes back first.
    pub fn refuse(&mut self, now: Time, segment: &Segment) {
        self.stalled = true;
        self.ready = false;
        if let Connection::SynSent { tries, .. } = self.connection {
            self.connection = Connection::Opening { tries };
            self.rto_at = Time::MAX;
            return;
        }
        self.counts.local_stalls += 1;
        if segment.seq < self.board.una() {
            return self.unsend_window_probe(now);
        }
        // The local queue held the sender back, not the window (C-GATE).
        self.note_usage(false);
        self.counts.sent -= 1;
        if segment.retransmission {
            self.counts.retransmits -= 1;
            self.board.unsend_again(segment.seq);
            if let Some(undo) = &mut self.undo {
                undo.on_unsent();
            }
        } else {
            self.board.unsend_new();
            self.cwr_pending |= segment.cwr;
        }
        if self.board.flight() == 0 {
            self.rto_at = Time::MAX;
            self.probe_at = Time::MAX;
        }
        if let Some(prr) = &mut self.prr {
            prr.on_unsent();
        }
        match self.cfg.host.local_drop {
            LocalDrop::Ignore => {}
            LocalDrop::ExitSlowStart => {
                if self.cc.in_start_up() {
                    let w = self.cc.window();
                    self.cc.exit_start_up(now);
                    self.note(now, EpisodeKind::StartUpExit, w);
                }
            }
            LocalDrop::React => self.reduce_for_local_drop(now),
        }
        self.refresh_budget();
    }

    /// The local queue has room again.
    pub fn resume(&mut self) {
        self.stalled = false;
        self.refresh_ready();
    }

    /// True between [`Sender::refuse`] and [`Sender::resume`].
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }
}
