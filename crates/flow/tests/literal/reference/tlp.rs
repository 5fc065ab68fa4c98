//! RFC 8985 section 7: tail loss probes.

use super::Ns;

/// The variables of section 5.3, and what section 7.3 asks for.
#[derive(Clone, Debug, Default)]
pub struct Tlp {
    pub end_seq: Option<u64>,
    pub is_retrans: bool,
    /// A sample since the last probe, or since the start.
    pub sampled: bool,
}

/// What an ACK says of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Nothing,
    /// The probe repaired a loss.
    Repaired,
}

impl Tlp {
    /// Section 7.1.
    pub fn init(&mut self) {
        (self.end_seq, self.is_retrans) = (None, false);
    }

    /// Section 7.2, TLP_calc_PTO: how long to wait.
    pub fn pto(srtt: Ns, flight: u64, max_ack_delay: Ns) -> Ns {
        match srtt {
            0 => 1_000_000_000,
            srtt if flight == 1 => 2 * srtt + max_ack_delay,
            srtt => 2 * srtt,
        }
    }

    /// Section 7.4.2, TLP_process_ack. `dsack`: the end of the duplicate that is reported;
    /// `bare_duplicate`: a duplicate ACK without SACK option.
    pub fn process_ack(&mut self, cum: u64, dsack: Option<u64>, bare_duplicate: bool) -> Verdict {
        let Some(end) = self.end_seq.filter(|&end| cum >= end) else {
            return Verdict::Nothing;
        };
        if !self.is_retrans || dsack == Some(end) {
            self.end_seq = None;
        } else if cum > end {
            self.end_seq = None;
            return Verdict::Repaired;
        } else if bare_duplicate {
            self.end_seq = None;
        }
        Verdict::Nothing
    }
}
