//! RFC 3522 section 3.2: was a recovery unnecessary?

use super::Ns;

/// The algorithm, begun with a loss recovery.
#[derive(Clone, Debug, Default)]
pub struct Eifel {
    /// Steps 1 to 3: begun and not done.
    waiting: bool,
    /// RetransmitTS of step 2, once the retransmission has left.
    retransmit_ts: Option<Ns>,
    /// An ACK has carried a DSACK block since the connection began (step 5).
    dsack_seen: bool,
}

impl Eifel {
    /// Loss recovery begins; `already`: the first outstanding segment was retransmitted then, by a
    /// recovery before, and an ACK of that copy proves nothing (section 3.1).
    pub fn begin(&mut self, already: Option<Ns>) {
        (self.waiting, self.retransmit_ts) = (true, already);
    }

    /// A retransmission leaves (step 2: only the first counts).
    pub fn retransmits(&mut self, now: Ns) {
        if self.waiting {
            self.retransmit_ts.get_or_insert(now);
        }
    }

    pub fn end(&mut self) {
        self.waiting = false;
    }

    /// Steps 3 to 6 for an ACK; true: the recovery was spurious.
    /// `echo`: of an ACK that moved SND.UNA.
    pub fn on_ack(&mut self, echo: Option<Ns>, dsack: bool, covers_all: bool) -> bool {
        let seen_before = self.dsack_seen;
        self.dsack_seen |= dsack;
        let stamp = self.retransmit_ts.filter(|_| self.waiting);
        let (Some(stamp), Some(echo)) = (stamp, echo) else {
            return false;
        };
        // Whatever it says, this ACK decides.
        self.waiting = false;
        echo < stamp && !dsack && (seen_before || !covers_all)
    }
}
