//! RFC 3522 section 3.2: was a recovery unnecessary?

use super::Ns;

/// The algorithm, begun with a loss recovery.
#[derive(Clone, Debug, Default)]
pub struct Eifel {
    /// Begun and not done.
    waiting: bool,
    /// RetransmitTS of step 2.
    retransmit_ts: Option<Ns>,
    /// An ACK has carried a DSACK block since the connection began (step 5).
    dsack_seen: bool,
}

impl Eifel {
    /// Loss recovery begins; its retransmission has yet to leave.
    pub fn begin(&mut self) {
        (self.waiting, self.retransmit_ts) = (true, None);
    }

    /// A retransmission leaves at `now` (step 2: the first of this recovery counts alone).
    /// `before`: the first outstanding segment was retransmitted then, by an earlier recovery; an
    /// ACK of that copy is none of an original (section 3.1).
    pub fn retransmits(&mut self, now: Ns, before: Option<Ns>) {
        if self.waiting {
            self.retransmit_ts.get_or_insert(before.unwrap_or(now));
        }
    }

    pub fn end(&mut self) {
        self.waiting = false;
    }

    /// Steps 3 to 6 for an ACK; `echo`: of one that moved SND.UNA. True: the recovery was
    /// spurious.
    pub fn on_ack(&mut self, echo: Option<Ns>, dsack: bool, covers_all: bool) -> bool {
        let seen_before = self.dsack_seen;
        self.dsack_seen |= dsack;
        let stamp = self.retransmit_ts.filter(|_| self.waiting);
        let (Some(stamp), Some(echo)) = (stamp, echo) else {
            return false;
        };
        // Whatever it says, this ACK decides.
        self.waiting = false;
        // Step 5.
        let done = dsack || (!seen_before && covers_all);
        echo < stamp && !done
    }
}
