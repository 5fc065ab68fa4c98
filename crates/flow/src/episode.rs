//! What a sender logs: every change of its window that was not growth.

use fullpipe_cc::CongestionKind;
use fullpipe_units::Time;

/// Something that changed the window downwards, or back.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Episode {
    /// Time of the change.
    pub at: Time,
    /// Cause of the change.
    pub kind: EpisodeKind,
    /// Window before, segments.
    pub before: f64,
    /// Window the controller set (`ssthresh` for a reduction, 1 for a timeout), segments.
    pub after: f64,
}

/// Kinds of [`Episode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum EpisodeKind {
    /// A congestion event.
    Congestion(CongestionKind),
    /// A further reduction for a lost retransmission.
    LostRetransmission,
    /// A retransmission timeout.
    Timeout,
    /// A spurious reduction undone.
    Undo,
    /// Start-up left without a reduction: at `ssthresh`, by the start-up's own test, or by a local
    /// drop.
    StartUpExit,
}
