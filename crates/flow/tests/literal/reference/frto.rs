//! RFC 5682 section 3.1: forward RTO recovery with SACK.

/// The step of section 3.1 that handles the next ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frto {
    /// Not running: conventional recovery, or none.
    Off,
    /// Step 2: waits for the ACK of the retransmission.
    Step2,
    /// Step 3: so many new segments may leave; waits for the verdict.
    Step3 { may_send: u64 },
}

/// Outcome of steps 2 and 3 for one ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet.
    Wait,
    /// Conventional recovery. The law's slow start keeps the window within the bounds of steps 2a
    /// and 3a.
    Conventional,
    /// Step 2b: up to two new segments.
    SendNew,
    /// Step 3b.
    Spurious,
}

/// What steps 2 and 3 read of an ACK.
#[derive(Clone, Copy, Debug)]
pub struct AckView {
    /// SND.UNA moved.
    pub advanced: bool,
    /// A duplicate ACK: it did not, and data is outstanding.
    pub duplicate: bool,
    /// The cumulative number.
    pub cum: u64,
    /// The end of the highest segment that the ACK covers, cumulatively or by SACK.
    pub covers: u64,
    /// It acknowledges, either way, something below RecoveryPoint for the first time.
    pub new_below: bool,
    /// RecoveryPoint: for step 2 SND.NXT, as this ACK sets it.
    pub recovery_point: u64,
    /// Unsent data and a window for it.
    pub can_send: bool,
}

impl Frto {
    pub fn on_ack(&mut self, a: AckView) -> Verdict {
        let verdict = match *self {
            Frto::Off => return Verdict::Wait,
            // Step 2: duplicates change nothing.
            Frto::Step2 if !a.advanced => Verdict::Wait,
            // 2a.
            Frto::Step2 if a.cum >= a.recovery_point => Verdict::Conventional,
            // 2b.
            Frto::Step2 if !a.can_send => Verdict::Conventional,
            Frto::Step2 => Verdict::SendNew,
            // Step 3: neither a duplicate nor new.
            Frto::Step3 { .. } if !a.advanced && !a.duplicate => Verdict::Wait,
            // 3a.
            Frto::Step3 { .. } if a.covers > a.recovery_point || !a.new_below => {
                Verdict::Conventional
            }
            // 3b.
            Frto::Step3 { .. } => Verdict::Spurious,
        };
        match verdict {
            Verdict::Wait => {}
            Verdict::SendNew => *self = Frto::Step3 { may_send: 2 },
            Verdict::Conventional | Verdict::Spurious => *self = Frto::Off,
        }
        verdict
    }
}
