//! What a controller does with a loss at a window: its a(w), b(w) and response function, found by
//! driving it, not from a formula.
//!
//! [`cycle`] runs the sawtooth of the window models (Mathis et al. 1997; RFC 3649 section 5): a
//! flow alone on a path of constant round-trip time loses one segment whenever its window reaches
//! `w`, and the repair takes no time. What comes out is the law itself, without recovery, queues or
//! timers; the laws that read a delay see an empty queue.
//!
//! ```
//! use fullpipe_cc::StackSpec;
//! use fullpipe_cc::response::{Conditions, cycle};
//!
//! let reno = StackSpec::parse("reno").unwrap();
//! let at_100 = cycle(&reno, 100.0, &Conditions::default()).unwrap();
//! assert_eq!(at_100.decrease, 0.5);
//! assert!((at_100.rounds / 50.0 - 1.0).abs() < 0.02);
//! // Mathis' 3/8 w^2 segments per loss, and a mean of 3/4 w.
//! assert!((at_100.segments / 3750.0 - 1.0).abs() < 0.02);
//! assert!((at_100.mean_window / 75.0 - 1.0).abs() < 0.02);
//! ```

use fullpipe_units::{Span, Time};

use crate::classic::Setup;
use crate::controller::{
    AckEvent, CongestionEvent, CongestionKind, Controller, RateSample, RestartEvent, Stamps,
};
use crate::registry::{Kind, Stack, StackSpec};

/// What the path and the host fix.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Round-trip time, constant. CUBIC, H-TCP and Hybla depend on it.
    pub rtt: Span,
    /// Segment size, bytes of payload.
    pub mss: u32,
    /// Ticks per second of the clock that kernel modules read.
    pub hz: u32,
    /// ACKs of one cycle, of a law that is no kernel module, after which a round trip has no more
    /// than 64: fewer are sooner done. Laws that take so many as by default grow by about a segment
    /// per round trip, and do not care how many segments an ACK covers.
    pub most_acks: u64,
}

impl Default for Conditions {
    /// 100 ms, 1448 bytes, 250 Hz, four million ACKs.
    fn default() -> Self {
        Self {
            rtt: Span::from_millis(100),
            mss: 1448,
            hz: 250,
            most_acks: 1 << 22,
        }
    }
}

/// One settled cycle: from a loss at a window until that window is back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycle {
    /// Window at the loss, segments.
    pub window: f64,
    /// Growth during the first round trip after the loss, segments.
    pub increase_first: f64,
    /// Growth during the last whole round trip before the next one, segments; the first if there is
    /// but one. This is a(w) of the laws that are written so.
    pub increase_last: f64,
    /// Fraction of the window that the loss takes: b(w).
    pub decrease: f64,
    /// Round trips until the window is back.
    pub rounds: f64,
    /// Segments sent from loss to loss: the inverse of the loss rate.
    pub segments: f64,
    /// Mean window, segments.
    pub mean_window: f64,
    /// False if cycles keep differing by more than 0.1 %: then these are means.
    pub settled: bool,
}

impl Cycle {
    /// Losses per segment, `p`.
    pub fn loss_rate(&self) -> f64 {
        1.0 / self.segments
    }

    /// Growth per round trip over the whole cycle, segments: the `a` of an AIMD with this `b` that
    /// is as fast.
    pub fn increase_mean(&self) -> f64 {
        self.window * self.decrease / self.rounds
    }

    /// Reno flows that together have this mean window at this loss rate; one has `sqrt(3 / 2p)`
    /// (Mathis et al. 1997).
    pub fn reno_flows(&self) -> f64 {
        self.mean_window / libm::sqrt(1.5 * self.segments)
    }
}

/// A stack of which no cycle is drawn, by its cause.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCycle {
    /// BBR and its like set a rate and a window from a model of the path.
    #[error(
        "it sets a rate from what it measures of the path; a(w) and b(w) belong to a law of the window"
    )]
    Model,
    /// The user's own module.
    #[error("a module for the kernel of ground linux, nothing to drive here")]
    InAKernel,
    /// Westwood, where a loss without a queue is taken for no congestion.
    #[error("a loss takes nothing off the window while the path has no queue")]
    KeepsWindow,
    /// The window has come to rest below.
    #[error("the window does not grow ({reached:.1} segments after {rounds} round trips)")]
    NoGrowth {
        /// Largest window after the loss, segments.
        reached: f64,
        /// Round trips waited.
        rounds: u64,
    },
    /// The window stays below.
    #[error("it does not come back: {reached:.1} segments after {rounds} round trips")]
    NeverBack {
        /// Largest window after the loss, segments.
        reached: f64,
        /// Round trips waited.
        rounds: u64,
    },
    /// Laws do not go below two segments; a window above 10^7 takes minutes.
    #[error("a window of at least 4 and at most 10,000,000 segments is needed")]
    Window,
}

/// The settled cycle of a stack that loses one segment at `window` segments.
///
/// # Errors
/// If the stack has no such cycle.
pub fn cycle(spec: &StackSpec, window: f64, conditions: &Conditions) -> Result<Cycle, NoCycle> {
    if !(SMALLEST..=LARGEST).contains(&window) {
        return Err(NoCycle::Window);
    }
    if !spec.has_law() {
        return Err(NoCycle::InAKernel);
    }
    // A module counts whole segments: it never reaches a part of one.
    let window = match spec.kind() {
        Kind::Module => window.floor(),
        _ => window,
    };
    let mut flow = Sawtooth::at(spec, window, conditions);
    if flow.stack.owns_window() {
        return Err(NoCycle::Model);
    }
    settle(|| flow.lose_and_return())
}

/// Cycles until they repeat, and the last of them; the mean of the later half if they do not.
///
/// Two equal cycles prove nothing: a law may wait to see that the path is steady before it turns
/// to another decrease, as H-TCP does for two (`learn_beta`). Each cycle is held against the first
/// of those that it repeats, so that a slow drift does not pass for rest.
fn settle(mut next: impl FnMut() -> Result<Cycle, NoCycle>) -> Result<Cycle, NoCycle> {
    let mut first = next()?;
    let (mut sum, mut equal) = (first, 1);
    for cycles in 2..=MOST_CYCLES {
        let now = next()?;
        if now.repeats(&first) {
            equal += 1;
            if equal == EQUAL_CYCLES {
                return Ok(now);
            }
        } else {
            (first, equal) = (now, 1);
        }
        // Transients of the start are not part of the mean.
        sum = if cycles == MOST_CYCLES / 2 {
            now
        } else {
            sum.plus(&now)
        };
    }
    Ok(sum.divided(f64::from(MOST_CYCLES - MOST_CYCLES / 2 + 1)))
}

impl Cycle {
    fn repeats(&self, other: &Self) -> bool {
        let change = (self.segments / other.segments - 1.0).abs();
        change < SETTLED && (self.decrease - other.decrease).abs() < SETTLED
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            window: self.window,
            increase_first: f(self.increase_first),
            increase_last: f(self.increase_last),
            decrease: f(self.decrease),
            rounds: f(self.rounds),
            segments: f(self.segments),
            mean_window: f(self.mean_window),
            settled: false,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            increase_first: self.increase_first + other.increase_first,
            increase_last: self.increase_last + other.increase_last,
            decrease: self.decrease + other.decrease,
            rounds: self.rounds + other.rounds,
            segments: self.segments + other.segments,
            mean_window: self.mean_window + other.mean_window,
            ..*self
        }
    }

    fn divided(&self, n: f64) -> Self {
        self.map(|x| x / n)
    }
}

/// Twice the smallest window after a loss (RFC 5681 section 3.1), segments.
const SMALLEST: f64 = 4.0;

/// Largest window that is worth the time, segments.
const LARGEST: f64 = 1e7;

/// Relative change from cycle to cycle below which they are the same.
const SETTLED: f64 = 1e-3;

const MOST_CYCLES: u32 = 24;

/// Cycles in a row that have to be the same: twice as many as H-TCP, which waits the longest, has
/// before it turns to another decrease.
const EQUAL_CYCLES: u32 = 4;

/// Round trips after which a window does not come back: Reno needs half as many as segments.
const MOST_ROUNDS: u64 = 10_000_000;

/// Round trips, and time, in which a window that comes back has grown: CUBIC in whole segments
/// stands still for seconds near its plateau.
const STANDS_STILL: (u64, Span) = (10_000, Span::from_secs(1_000));

/// Segments per ACK (RFC 1122 section 4.2.3.2).
const PER_ACK: u64 = 2;

/// [`Conditions::most_acks`] of kernel modules, of which BIC counts the segments of an ACK
/// (`delayed_ack`).
const MANY_ACKS_OF_A_MODULE: u64 = 1 << 26;

const ACKS_OF_A_LONG_ROUND: u64 = 64;

/// A flow that its window alone limits.
struct Sawtooth {
    stack: Stack,
    conditions: Conditions,
    window: f64,
    many_acks: u64,
    now: Time,
    round: u64,
    delivered: u64,
}

impl Sawtooth {
    fn at(spec: &StackSpec, window: f64, conditions: &Conditions) -> Self {
        let setup = Setup {
            initial_window: window,
            max_window: window,
            mss: conditions.mss,
            hz: conditions.hz,
            ..Setup::default()
        };
        let mut flow = Self {
            stack: spec.controller(setup),
            conditions: *conditions,
            window,
            many_acks: match spec.kind() {
                Kind::Module => MANY_ACKS_OF_A_MODULE,
                _ => conditions.most_acks,
            },
            // Kernel modules take time zero for "never".
            now: Time::from_nanos(1_000_000_000),
            round: 1,
            delivered: 0,
        };
        let mut open = RestartEvent::new(flow.now);
        open.srtt = conditions.rtt;
        flow.stack.on_established(&open);
        flow.stack.exit_start_up(flow.now);
        // Estimators of rate and delay see the path before the first loss.
        for _ in 0..3 {
            flow.round_trip(ACKS_OF_A_LONG_ROUND, f64::INFINITY);
        }
        flow
    }

    /// One loss at the present window, and the way back to where the cycle began.
    fn lose_and_return(&mut self) -> Result<Cycle, NoCycle> {
        let before = self.stack.window();
        let mut loss =
            CongestionEvent::new(self.now, CongestionKind::Loss, libm::ceil(before) as u64);
        (loss.lost, loss.srtt, loss.min_rtt) = (1, self.conditions.rtt, self.conditions.rtt);
        self.stack.on_congestion(&loss);
        self.stack.on_recovery_exit(self.now);
        let low = self.stack.window();
        if before - low < SETTLED * before {
            return Err(NoCycle::KeepsWindow);
        }
        let mut out = Cycle {
            window: self.window,
            increase_first: 0.0,
            increase_last: 0.0,
            decrease: 1.0 - low / before,
            rounds: 0.0,
            segments: 0.0,
            mean_window: 0.0,
            settled: true,
        };
        let (mut acks, mut whole, mut highest) = (0, 0_u64, low);
        let mut grown_at = (0, self.now);
        loop {
            let from = self.stack.window();
            let most = if acks < self.many_acks {
                u64::MAX
            } else {
                ACKS_OF_A_LONG_ROUND
            };
            let trip = self.round_trip(most, self.window);
            let growth = (self.stack.window() - from) / trip.fraction;
            if whole == 0 {
                (out.increase_first, out.increase_last) = (growth, growth);
            } else if trip.fraction == 1.0 && self.stack.window() < self.window {
                // The round trip that brings the window back is cut short there.
                out.increase_last = growth;
            }
            out.rounds += trip.fraction;
            out.segments += trip.segments as f64;
            acks += trip.acks;
            whole += 1;
            if self.stack.window() > highest {
                highest = self.stack.window();
                grown_at = (whole, self.now);
            }
            if self.stack.window() >= self.window {
                break;
            }
            let (rounds, time) = (whole - grown_at.0, self.now - grown_at.1);
            if rounds >= STANDS_STILL.0 && time >= STANDS_STILL.1 {
                return Err(NoCycle::NoGrowth {
                    reached: highest,
                    rounds: whole,
                });
            }
            if whole == MOST_ROUNDS {
                return Err(NoCycle::NeverBack {
                    reached: highest,
                    rounds: whole,
                });
            }
        }
        out.mean_window = out.segments / out.rounds;
        Ok(out)
    }

    /// A window's ACKs, evenly over a round trip, until the window is back at `until`.
    fn round_trip(&mut self, most_acks: u64, until: f64) -> Trip {
        let window = (self.stack.window() as u64).max(1);
        let acks = window.div_ceil(PER_ACK).min(most_acks);
        let start = self.now;
        let mut sent = 0;
        for i in 1..=acks {
            let upto = (u128::from(window) * u128::from(i) / u128::from(acks)) as u64;
            let fraction = i as f64 / acks as f64;
            self.now = start + self.conditions.rtt.mul_f64(fraction);
            self.acknowledge(upto - sent, window, i == 1);
            sent = upto;
            if self.stack.window() >= until {
                self.round += 1;
                return Trip {
                    fraction,
                    segments: sent,
                    acks: i,
                };
            }
        }
        self.round += 1;
        Trip {
            fraction: 1.0,
            segments: sent,
            acks,
        }
    }

    fn acknowledge(&mut self, n: u64, window: u64, round_start: bool) {
        let rtt = self.conditions.rtt;
        let mut ack = AckEvent::new(self.now);
        self.delivered += n;
        (ack.acked, ack.acks, ack.advanced) = (n, n.div_ceil(PER_ACK), true);
        (ack.rtt, ack.srtt, ack.min_rtt) = (Some(rtt), rtt, rtt);
        ack.owd = Some(rtt.mul_f64(0.5));
        // A sender that its window limits has sent what the last ACK allowed.
        let flight = (self.stack.window() as u64).max(n);
        (ack.prior_flight, ack.flight) = (flight, flight - n);
        ack.stamps = Stamps {
            value_ms: (self.now.as_nanos() / 1_000_000) as u32,
            echo: self.now - rtt,
        };
        ack.delivered = self.delivered;
        let mut sample = RateSample::new(window, rtt);
        sample.prior_delivered = self.delivered.saturating_sub(window);
        sample.tx_in_flight = window;
        ack.rate = Some(sample);
        (ack.next_send, ack.cwnd_limited) = (self.now, true);
        (ack.round, ack.round_start) = (self.round, round_start);
        (ack.snd_una, ack.snd_nxt) = (self.delivered, self.delivered + window);
        self.stack.on_delivery(&ack);
        self.stack.on_ack(&ack);
    }
}

/// What part of a round trip brought.
struct Trip {
    /// Of the round trip, above 0 and at most 1.
    fraction: f64,
    segments: u64,
    acks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decreasing_by(decrease: f64) -> Cycle {
        Cycle {
            window: 1000.0,
            increase_first: 1.0,
            increase_last: 1.0,
            decrease,
            rounds: 1000.0 * decrease,
            segments: 1e6 * decrease * (1.0 - decrease / 2.0),
            mean_window: 1000.0 * (1.0 - decrease / 2.0),
            settled: true,
        }
    }

    #[test]
    fn a_module_reaches_whole_windows() {
        for name in ["reno-linux", "cubic-linux", "htcp-linux"] {
            let spec = StackSpec::parse(name).unwrap();
            let at = |window| cycle(&spec, window, &Conditions::default()).unwrap();
            assert_eq!(at(100.7), at(100.0), "{name}");
        }
    }

    /// What is found where the nth cycle, from 1 on, has this decrease.
    fn settled(decrease: impl Fn(u32) -> f64) -> Cycle {
        let mut cycles = 0;
        settle(|| {
            cycles += 1;
            Ok(decreasing_by(decrease(cycles)))
        })
        .unwrap()
    }

    #[test]
    fn a_decrease_that_changes_after_equal_cycles_is_waited_for() {
        for equal in 0..4 {
            let found = settled(|n| if n <= equal { 0.5 } else { 0.2 });
            assert_eq!(found, decreasing_by(0.2), "after {equal} equal cycles");
        }
    }

    #[test]
    fn what_swings_or_drifts_does_not_settle() {
        let swings = settled(|n| if n / 3 % 2 == 0 { 0.5 } else { 0.2 });
        assert!(!swings.settled && swings.decrease > 0.2 && swings.decrease < 0.5);
        // From cycle to cycle within what counts as the same.
        let drifts = settled(|n| 0.5 - f64::from(n) * SETTLED / 2.0);
        assert!(!drifts.settled, "{drifts:?}");
    }
}
