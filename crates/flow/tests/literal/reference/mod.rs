//! The literal sender.
//!
//! Times are nanoseconds, windows are segments, every segment is full. Numbers are of segments: an
//! octet number of an RFC that is "the highest" of something is here the number after it, as
//! SND.NXT is.

mod choices;
mod dsack;
mod eifel;
mod frto;
mod prr;
mod rack;
mod rto;
mod sack;
mod sender;
mod tlp;

pub use choices::{Choices, Departures, Detector, OnTimeout, Reduction};
pub use sender::{Reference, State};

/// Nanoseconds.
pub type Ns = u64;

/// One segment of the scoreboard.
#[derive(Clone, Copy, Debug)]
pub struct Seg {
    /// Time of the last transmission, retransmissions included (RFC 8985 section 5.2).
    pub xmit: Ns,
    /// SACKed (RFC 2018).
    pub sacked: bool,
    /// The last transmission was marked lost, and nothing followed it (RFC 8985 section 5.2).
    pub lost: bool,
    /// Marked lost since it was first sent, and not delivered since.
    pub missing: bool,
    /// Sent again although not lost (a probe, a rescue): two copies are in the network.
    pub twice: bool,
    /// Sent again, and since then not marked lost.
    pub out: bool,
    /// Ever sent again (RFC 8985 section 5.2).
    pub retransmitted: bool,
    /// How often it was sent again (RFC 3708 section 3, rules A.2 to A.4).
    pub resent: u64,
    /// Sent again by the retransmission timer (RFC 5681 section 3.1, equation 4).
    pub timed_out: bool,
}

impl Seg {
    fn sent(now: Ns) -> Self {
        Self {
            xmit: now,
            sacked: false,
            lost: false,
            missing: false,
            twice: false,
            out: false,
            retransmitted: false,
            resent: 0,
            timed_out: false,
        }
    }

    /// RFC 8985 section 6.1.
    fn sent_again(&mut self, now: Ns) {
        self.twice |= !self.lost && !self.missing;
        (self.xmit, self.retransmitted, self.out, self.lost) = (now, true, true, false);
        self.resent += 1;
    }

    fn lose(&mut self) {
        (self.lost, self.missing, self.twice, self.out) = (true, true, false, false);
    }
}
