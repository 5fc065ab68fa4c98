//! What the RFCs leave to the sender, each a parameter.

use super::Ns;

/// The algorithm that marks segments lost before a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detector {
    /// RFC 6675.
    Sack,
    /// RFC 8985.
    Rack,
    /// RFC 6582, without SACK.
    NewReno,
}

/// How the window comes down in fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// At once (RFC 6675 section 5 step 4.2).
    Immediate,
    /// RFC 9937.
    Prr,
}

/// Which outstanding segments an expiry of the retransmission timer marks lost: the RFCs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTimeout {
    /// Everything outstanding (RFC 5681 section 3.1: the sender goes back to SND.UNA).
    All,
    /// What is old (RFC 8985 section 6.3).
    Old,
}

/// The parameters of the reference.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    pub detector: Detector,
    pub reduction: Reduction,
    /// RFC 8985 section 7.
    pub tlp: bool,
    /// RFC 5682.
    pub frto: bool,
    /// RFC 3522, and an answer to what it or RFC 5682 finds.
    pub undo: bool,
    pub on_timeout: OnTimeout,
    /// A lost retransmission reduces once more, in fast recovery and after a timeout (RFC 5681
    /// section 4.3).
    pub reduce_again: bool,
    /// RFC 6298 sections 2.4, 2.5, 2.3 and 2.1.
    pub rto_min: Ns,
    pub rto_max: Ns,
    pub granularity: Ns,
    pub rto_initial: Ns,
    /// A second estimator, with one sample per round trip.
    pub rto_rounds: bool,
    /// RFC 8985 section 7.2.
    pub max_ack_delay: Ns,
    pub departs: Departures,
}

/// Where `flow` departs from the documents and is imitated, so that the search sees what lies
/// behind: the known differences, each with its history in `known`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departures {
    /// RFC 6675 section 4: what was retransmitted is known by HighRxt, of this recovery alone, and
    /// SetPipe counts a segment sent again but not lost twice; a duplicate ACK begins the next
    /// recovery. Here each segment is marked lost and sent again, counts once, and is not found
    /// lost a second time; what rule 3 sends again counts as lost, and any ACK begins recovery.
    pub sack_marks: bool,
    /// RFC 8985 section 6.2 step 3: only segments out of order show reordering. Here an undone
    /// reduction does.
    pub undo_is_reordering: bool,
    /// RFC 8985 section 6.2 step 2 takes a SACKed retransmission for delivered after a smallest
    /// round trip, and RFC 3522 gives a window back that the next such ACK takes again. Here a
    /// stamp that undoes a reduction takes back what retransmissions showed, and until what was
    /// outstanding then is acknowledged a retransmission counts only with a stamp of its own.
    pub undo_asks_stamps: bool,
    /// RFC 6582 section 3.2: each duplicate ACK inflates cwnd, after Limited Transmit's two of the
    /// third only in fast recovery, and a partial ACK deflates it by what it acknowledges. Here a
    /// duplicate stands for a delivered segment whatever the phase, for no more than are
    /// outstanding and not lost, and those that a partial ACK covers count no more.
    pub newreno_counts: bool,
}

impl Departures {
    /// All of them.
    pub const TODAY: Self = Self {
        sack_marks: true,
        undo_is_reordering: true,
        undo_asks_stamps: true,
        newreno_counts: true,
    };
}
