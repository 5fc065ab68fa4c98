//! Tail loss probes (RFC 8985 section 7).

use fullpipe_cc::Phase;

use super::{Irregular, Recovery};
use crate::config::SpuriousRule;
use crate::sender::scoreboard::Scoreboard;

/// State of tail loss probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    on: bool,
    /// The probe that waits for its answer.
    out: Option<Probe>,
    /// The timer went off: the probe is to be sent.
    due: bool,
    /// An RTT sample arrived since the last probe.
    allowed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    /// One past the probe's segment (`TLP.end_seq`).
    end: u64,
    retransmission: bool,
}

impl TailProbe {
    pub(super) fn new(on: bool) -> Self {
        Self {
            on,
            out: None,
            due: false,
            allowed: true,
        }
    }

    #[inline]
    pub(super) fn is_out(&self) -> bool {
        self.out.is_some()
    }

    /// The probe that is out is a retransmission of `seq`.
    pub(super) fn is_of(&self, seq: u64) -> bool {
        self.out.is_some_and(|probe| probe.end == seq + 1)
    }

    /// The reduction that begins answers for the probe too.
    pub(super) fn confirm(&mut self) {
        self.out = None;
    }

    /// A timeout is more than any probe.
    pub(super) fn cancel(&mut self) {
        self.out = None;
        self.due = false;
    }
}

impl Recovery {
    /// Probes are sent at all.
    #[inline]
    pub(in crate::sender) fn has_probes(&self) -> bool {
        self.probe.on
    }

    /// The probe's timer may be set (section 7.2); Linux asks for the state alone
    /// (`tcp_schedule_loss_probe`), which SACKs leave as it is while the window comes down.
    #[inline]
    pub(in crate::sender) fn may_arm_probe(&self, board: &Scoreboard) -> bool {
        self.may_probe() && (board.sacked_out() == 0 || self.probes_anyway())
    }

    /// No loss is being repaired (RFC 8985 section 7.2): while the window comes down for a mark
    /// there are probes, too.
    fn may_probe(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Cwr)
    }

    /// An RTT sample arrived: the next probe is allowed (section 7.3).
    #[inline]
    pub(in crate::sender) fn on_rtt_sample(&mut self) {
        self.probe.allowed = true;
    }

    /// Its timer went off; true if a probe is to be sent (section 7.3). Linux asks neither for a
    /// sample since the last one nor for the state: another timer would have taken the place of
    /// this one (`tcp_send_loss_probe`).
    pub(in crate::sender) fn on_probe_timer(&mut self, board: &Scoreboard) -> bool {
        let idle = self.probe.out.is_none() && (self.probe.allowed || self.probes_anyway());
        let due = idle && (self.may_probe() || self.probes_anyway()) && board.flight() > 0;
        if due {
            self.probe.due = true;
            self.probe.allowed = false;
        }
        due
    }

    /// A probe is to leave now.
    #[inline]
    pub(in crate::sender) fn probe_is_due(&self) -> bool {
        self.probe.due
    }

    /// Takes up the due probe; false if there is nothing left to probe for.
    pub(in crate::sender) fn take_probe(&mut self, board: &Scoreboard) -> bool {
        self.probe.due = false;
        board.flight() > 0 && (self.may_probe() || self.probes_anyway())
    }

    fn probes_anyway(&self) -> bool {
        self.cfg.reordering_by == SpuriousRule::Linux
    }

    /// The probe leaves as the segment before `end`.
    pub(in crate::sender) fn probe_sent(&mut self, end: u64, retransmission: bool) {
        self.probe.out = Some(Probe {
            end,
            retransmission,
        });
    }

    /// True if this ACK shows that the probe repaired a loss (section 7.4.2), which then counts.
    pub(in crate::sender) fn probe_repaired_loss(&mut self, ir: &Irregular<'_>) -> bool {
        let Some(probe) = self.probe.out else {
            return false;
        };
        let cum = ir.ack.cum;
        let mut repaired = false;
        let answered = if cum < probe.end {
            false
        } else if !probe.retransmission || ir.dsack.is_some_and(|seq| seq + 1 == probe.end) {
            true
        } else if cum > probe.end {
            repaired = true;
            true
        } else {
            // A duplicate ACK for the probe from a receiver without DSACK: original and
            // retransmission both arrived.
            !ir.advanced && !ir.window_update && ir.ack.sacks.is_empty()
        };
        if answered {
            self.probe.out = None;
        }
        repaired
    }
}
