//! The long-term estimator, which finds token-bucket policers (Flach et al., SIGCOMM 2016): two
//! intervals in a row that lose a fifth of what they deliver, at nearly the same rate, are a
//! policer's, and their mean is its rate.

use super::{UNIT, bytes_per_second};
use crate::linux::socket::Socket;

/// The long-term estimator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    /// Rate of the last interval, or of the policer (`lt_bw`).
    bw: u32,
    /// A policer was found: its rate is the one to use (`lt_use_bw`).
    found: bool,
    sampling: bool,
    /// Rounds of the present interval, or since the policer was found.
    rounds: u32,
    /// Start of the interval: milliseconds, deliveries and losses.
    from_ms: u64,
    delivered: u64,
    lost: u64,
}

/// What the estimator sees of an ACK or a timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) round_start: bool,
    /// Something was marked lost.
    pub(super) losses: bool,
    pub(super) app_limited: bool,
    pub(super) probing: bool,
    /// Time of the last delivery (`delivered_mstamp`), milliseconds.
    pub(super) delivered_ms: u64,
}

/// How the long-term sampling ends at an ACK (`bbr_lt_bw_sampling`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Nothing,
    /// A policer: pace at its rate.
    Policed,
    /// It has been obeyed for long enough: probe again.
    Released,
}

impl Policer {
    /// The policer's rate, if one was found.
    #[inline]
    pub(super) fn rate(&self) -> Option<u32> {
        self.found.then_some(self.bw)
    }

    /// `bbr_reset_lt_bw_sampling`.
    pub(super) fn reset(&mut self, sk: &Socket, delivered_ms: u64) {
        *self = Self::default();
        self.begin_interval(sk, delivered_ms);
    }

    /// `bbr_reset_lt_bw_sampling_interval`.
    fn begin_interval(&mut self, sk: &Socket, delivered_ms: u64) {
        self.from_ms = delivered_ms;
        self.delivered = sk.delivered;
        self.lost = sk.lost;
        self.rounds = 0;
    }

    /// `bbr_lt_bw_sampling`.
    #[inline]
    pub(super) fn look(&mut self, sk: &Socket, at: &Look) -> Verdict {
        if !self.found && !self.sampling && !at.losses {
            return Verdict::Nothing;
        }
        self.look_closer(sk, at)
    }

    fn look_closer(&mut self, sk: &Socket, at: &Look) -> Verdict {
        if self.found {
            self.rounds += u32::from(at.probing && at.round_start);
            if at.probing && at.round_start && self.rounds >= OBEYED_ROUNDS {
                self.reset(sk, at.delivered_ms);
                return Verdict::Released;
            }
            return Verdict::Nothing;
        }
        if !self.sampling {
            self.begin_interval(sk, at.delivered_ms);
            self.sampling = true;
        }
        if at.app_limited {
            self.reset(sk, at.delivered_ms);
            return Verdict::Nothing;
        }
        self.rounds += u32::from(at.round_start);
        if self.rounds < INTERVAL_ROUNDS {
            return Verdict::Nothing;
        }
        if self.rounds > 4 * INTERVAL_ROUNDS {
            self.reset(sk, at.delivered_ms);
            return Verdict::Nothing;
        }
        if !at.losses {
            return Verdict::Nothing; // the tokens may not be spent yet
        }
        let lost = sk.lost - self.lost;
        let delivered = sk.delivered - self.delivered;
        if delivered == 0 || (lost << super::SCALE) < LOSSY * delivered {
            return Verdict::Nothing;
        }
        let ms = at.delivered_ms.saturating_sub(self.from_ms);
        if ms < 1 {
            return Verdict::Nothing;
        }
        if ms >= LONGEST_MS {
            self.reset(sk, at.delivered_ms);
            return Verdict::Nothing;
        }
        let bw = (delivered << super::BW_SCALE) / (ms * 1000);
        self.end_interval(sk, at, bw as u32)
    }

    /// `bbr_lt_bw_interval_done`.
    fn end_interval(&mut self, sk: &Socket, at: &Look, bw: u32) -> Verdict {
        if self.bw > 0 {
            let apart = bw.abs_diff(self.bw);
            let near = u64::from(apart) * u64::from(UNIT) <= u64::from(RATIO) * u64::from(self.bw);
            if near || bytes_per_second(sk.mss, apart, UNIT) <= APART {
                self.bw = ((u64::from(bw) + u64::from(self.bw)) / 2) as u32;
                self.found = true;
                self.rounds = 0;
                return Verdict::Policed;
            }
        }
        self.bw = bw;
        self.begin_interval(sk, at.delivered_ms);
        Verdict::Nothing
    }
}

/// Fewest rounds of an interval (`bbr_lt_intvl_min_rtts`).
const INTERVAL_ROUNDS: u32 = 4;
/// Lost per delivered segment of a lossy interval, 1/256 (`bbr_lt_loss_thresh`).
const LOSSY: u64 = 50;
/// Two rates this close, 1/256 of the older, are the same (`bbr_lt_bw_ratio`).
const RATIO: u32 = UNIT / 8;
/// Or this close, bytes/s (`bbr_lt_bw_diff`).
const APART: u64 = 4000 / 8;
/// A policer's rate is used for this many rounds (`bbr_lt_bw_max_rtts`).
const OBEYED_ROUNDS: u32 = 48;
/// Milliseconds that still fit 32 bits as microseconds.
const LONGEST_MS: u64 = u32::MAX as u64 / 1000;
