//! What Vegas and YeAH measure of each round (`tcp_vegas.c`, Linux 6.1; `tcp_yeah.c` takes it from
//! there).

use crate::controller::Phase;
use crate::linux::module::{AckSample, Event};
use crate::linux::socket::Socket;

/// The smallest RTT of the running round and of the flow, microseconds plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundDelay {
    /// The rule applies (`doing_vegas_now`).
    pub on: bool,
    /// The round ends with an ACK beyond this segment.
    pub end: u64,
    /// Samples of the round.
    pub samples: u16,
    /// Smallest of the round.
    pub min: u32,
    /// Smallest since transmission began with nothing in flight.
    pub base: u32,
}

impl RoundDelay {
    /// Nothing measured.
    pub const NEW: Self = Self {
        on: true,
        end: 0,
        samples: 0,
        min: UNKNOWN,
        base: UNKNOWN,
    };

    /// Forgets everything; the round ends with what is sent next.
    pub fn restart(&mut self, sk: &Socket) {
        self.base = UNKNOWN;
        self.enable(sk);
    }

    fn enable(&mut self, sk: &Socket) {
        self.on = true;
        self.end = sk.snd_nxt;
        self.forget_round();
    }

    /// Drops the round's samples.
    pub fn forget_round(&mut self) {
        self.samples = 0;
        self.min = UNKNOWN;
    }

    /// Takes an ACK's sample.
    pub fn sample(&mut self, sample: &AckSample) {
        let Some(rtt) = sample.rtt_us else { return };
        let rtt = rtt.wrapping_add(1);
        self.base = self.base.min(rtt);
        self.min = self.min.min(rtt);
        self.samples = self.samples.wrapping_add(1);
    }

    /// The rule rests outside the open state.
    pub fn enter(&mut self, sk: &Socket, state: Phase) {
        if state == Phase::Open {
            self.enable(sk);
        } else {
            self.on = false;
        }
    }

    /// Transmission begins anew.
    pub fn on_event(&mut self, sk: &Socket, event: Event) {
        if matches!(event, Event::TxStart | Event::CwndRestart) {
            self.restart(sk);
        }
    }

    /// The round is over.
    pub fn is_over(&self, sk: &Socket) -> bool {
        sk.snd_una > self.end
    }

    /// Enough samples that not all were stretched by delayed ACKs.
    pub fn is_measured(&self) -> bool {
        self.samples > 2
    }

    /// Delay beyond the smallest, microseconds.
    pub fn queueing(&self) -> u32 {
        self.min.wrapping_sub(self.base)
    }
}

/// No RTT yet.
pub(super) const UNKNOWN: u32 = 0x7fff_ffff;
