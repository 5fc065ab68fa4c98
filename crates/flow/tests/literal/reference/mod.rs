//! The literal sender.
//!
//! Times are nanoseconds, windows are segments, every segment is full. Numbers are of segments: an
//! octet number of an RFC that is "the highest" of something is here the number after it, as
//! SND.NXT is.

mod choices;
mod dsack;
mod eifel;
mod frto;
mod newreno;
mod prr;
mod rack;
mod rto;
mod sack;
mod sender;
mod tlp;

pub use choices::{Choices, Departures, Detector, OnTimeout, Reduction};
pub use newreno::NewReno;
pub use sender::{Reference, State};

use fullpipe_flow::Ack;

use crate::law::Law;
use rto::Rto;

/// Nanoseconds.
pub type Ns = u64;

/// A sender that is compared with the real one, and what is compared.
pub trait Literal {
    /// SND.UNA.
    fn una(&self) -> u64;
    /// One past the highest segment sent.
    fn nxt(&self) -> u64;
    /// Everything is acknowledged.
    fn is_done(&self) -> bool;
    fn law(&self) -> &Law;
    fn rto(&self) -> &Rto;
    fn state(&self) -> State;
    /// The window in force.
    fn cwnd(&self) -> f64;
    /// Segments that count against it.
    fn pipe(&self) -> u64;
    /// The next segment to leave, and whether it left before.
    fn poll(&mut self, now: Ns) -> Option<(u64, bool)>;
    fn next_timer(&self) -> Option<Ns>;
    fn on_timer(&mut self, now: Ns);
    fn on_ack(&mut self, now: Ns, ack: &Ack);
    /// The scoreboard in a line, for failures.
    fn board(&self) -> String;
}

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
