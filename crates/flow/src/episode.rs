//! What a sender logs: every change of its window that was not growth, and of its parameters.

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
    /// A spurious reduction undone; by which proof, where that is known.
    Undo(Option<Proof>),
    /// Start-up left without a reduction: at `ssthresh`, by the start-up's own test, or by a local
    /// drop.
    StartUpExit,
    /// Parameters of the flow were changed from outside, which moves no window but one above its
    /// new cap.
    Change,
}

/// What showed that a reduction was spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Proof {
    /// An ACK echoed a stamp from before the retransmission (Eifel detection, RFC 3522; Linux
    /// `tcp_packet_delayed`, also where nothing was resent).
    Stamp,
    /// Every retransmission was reported as a duplicate (DSACK, RFC 3708; Linux `undo_retrans`).
    Duplicates,
    /// After a timeout something arrived that was not resent (F-RTO, RFC 5682; Linux
    /// `tcp_process_loss`).
    Forward,
}
