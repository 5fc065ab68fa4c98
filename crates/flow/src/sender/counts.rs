//! What a sender remembers of itself: totals, and the log of changes of its window.

use fullpipe_units::Time;

use crate::episode::{Episode, EpisodeKind};

/// Totals of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Congestion events that reduced the window.
    pub loss_events: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Probes of a closed window; part of `sent`.
    pub window_probes: u64,
    /// Reductions undone.
    pub undone: u64,
    /// Refusals by the local queue.
    pub local_stalls: u64,
}

/// Totals and log of a sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    counts: SenderCounts,
    log: Vec<Episode>,
    /// Segments marked lost and when, where somebody wants them.
    verdicts: Option<Box<Verdicts>>,
}

/// Apart from a record that every segment touches.
#[derive(Clone, Debug, Default)]
struct Verdicts(Vec<(Time, u64)>);

impl Record {
    #[inline]
    pub(super) fn counts(&self) -> &SenderCounts {
        &self.counts
    }

    pub(super) fn keep_verdicts(&mut self) {
        self.verdicts.get_or_insert_default();
    }

    pub(super) fn verdicts(&self) -> &[(Time, u64)] {
        self.verdicts.as_deref().map_or(&[], |kept| &kept.0)
    }

    pub(super) fn verdict(&mut self, now: Time, seq: u64) {
        if let Some(kept) = &mut self.verdicts {
            kept.0.push((now, seq));
        }
    }

    #[inline]
    pub(super) fn has_log(&self) -> bool {
        !self.log.is_empty()
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Episode> + '_ {
        self.log.drain(..)
    }

    /// Logs and counts a change of the window.
    pub(super) fn episode(&mut self, episode: Episode) {
        match episode.kind {
            EpisodeKind::Congestion(_) => self.counts.loss_events += 1,
            EpisodeKind::Timeout => self.counts.timeouts += 1,
            EpisodeKind::Undo(_) => self.counts.undone += 1,
            EpisodeKind::LostRetransmission | EpisodeKind::StartUpExit | EpisodeKind::Change => {}
        }
        self.log.push(episode);
    }

    #[inline]
    pub(super) fn sent(&mut self) {
        self.counts.sent += 1;
    }

    pub(super) fn retransmitted(&mut self) {
        self.counts.retransmits += 1;
    }

    /// The last segment sent never left the host.
    pub(super) fn unsent(&mut self, retransmission: bool) {
        self.counts.sent -= 1;
        self.counts.retransmits -= u64::from(retransmission);
    }

    pub(super) fn tail_probe(&mut self) {
        self.counts.probes += 1;
    }

    pub(super) fn window_probe(&mut self) {
        self.counts.sent += 1;
        self.counts.window_probes += 1;
    }

    /// The last window probe never left the host.
    pub(super) fn window_probe_unsent(&mut self) {
        self.counts.sent -= 1;
        self.counts.window_probes -= 1;
    }

    pub(super) fn local_stall(&mut self) {
        self.counts.local_stalls += 1;
    }
}
