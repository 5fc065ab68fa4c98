//! Laws driven without a controller: one ACK a round, and deterministic cycles.

use crate::rounds::{Rounds, ack, law, loss};
use fullpipe_cc::classic::Window;
use fullpipe_cc::law::{Law, WindowLaw};
use fullpipe_cc::{Controller, Setup};
use fullpipe_units::{Span, Time};

/// One round from window `w`, all segments in one step; `now` is the time of the ACK.
pub fn step(law: &mut Law, w: f64, now: Time) -> f64 {
    let mut win = Window { w, ssth: 1.0 };
    let ev = ack(now, w as u64);
    law.observe(&mut win, &ev);
    law.increase(&mut win, w, &ev);
    win.w
}

/// Window after a loss at `w`.
pub fn cut(law: &mut Law, w: f64) -> f64 {
    law.decrease(w, w, &loss(Time::ZERO, w as u64))
}

/// Rounds in one step each until the window is `to`.
pub fn rounds(law: &mut Law, from: f64, to: f64, rtt: f64) -> u64 {
    let mut w = from;
    let mut count = 0;
    while w < to {
        count += 1;
        w = step(law, w, Time::from_secs_f64(count as f64 * rtt));
        assert!(count < 20_000, "stuck at {w}");
    }
    count
}

/// Rounds to return to `w` after a loss at `w`.
pub fn reopen(name: &str, params: &[(&str, &str)], w: f64) -> u64 {
    let mut law = law(name, params);
    let from = cut(&mut law, w);
    rounds(&mut law, from, w, 0.1)
}

/// A flow of the law past start-up at window `w`, driven per segment.
pub fn avoiding(spelling: &str, w: f64, rtt: Span, setup: Setup) -> Rounds {
    let mut flow = Rounds::with(
        spelling,
        rtt,
        Setup {
            initial_window: w,
            ..setup
        },
    );
    flow.stack.exit_start_up(Time::ZERO);
    flow
}

/// Seconds from 10 to 3500 segments at 80 ms in steps of one round, without a loss.
pub fn climb(name: &str, params: &[(&str, &str)]) -> f64 {
    0.08 * rounds(&mut law(name, params), 10.0, 3500.0, 0.08) as f64
}

/// One deterministic cycle: from a loss at `peak` until the window is back at `until`. Each round
/// sends the window at its start.
pub struct Cycle {
    /// Mean window over the rounds, segments.
    pub mean: f64,
    /// Congestion events per segment.
    pub p: f64,
    /// Rounds.
    pub rounds: u64,
    /// Window after the loss and at the end.
    pub ends: (f64, f64),
}

impl Cycle {
    /// The same cycle when each round is counted with the window at its end.
    pub fn counted_at_round_ends(&self) -> Self {
        let sent = 1.0 / self.p - self.ends.0 + self.ends.1;
        Self {
            mean: sent / self.rounds as f64,
            p: 1.0 / sent,
            ..*self
        }
    }
}

pub fn cycle(law: &mut Law, peak: f64, until: f64, rtt: f64) -> Cycle {
    let from = cut(law, peak);
    law.on_recovery_exit(
        &mut Window {
            w: from,
            ssth: from,
        },
        Time::ZERO,
    );
    let (mut w, mut sent, mut rounds) = (from, 0.0, 0);
    while w < until {
        sent += w;
        // The increase at the round's start.
        w = step(law, w, Time::from_secs_f64(rounds as f64 * rtt));
        rounds += 1;
        assert!(rounds < 1_000_000, "stuck at {w}");
    }
    Cycle {
        mean: sent / rounds as f64,
        p: 1.0 / sent,
        rounds,
        ends: (from, w),
    }
}
