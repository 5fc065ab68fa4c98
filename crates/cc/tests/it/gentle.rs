//! Gentle: half a segment per RTT, a quarter removed on loss (Gentle TCP 2026, section 2).

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, RtoEvent};
use crate::entry::Entry;

/// Gentle TCP's window law.
#[derive(Clone, Copy, Debug)]
pub struct Gentle {
    /// Segments per RTT.
    increase: f64,
}

impl WindowLaw for Gentle {
    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        win.w += self.increase * n / win.w;
    }

    fn decrease(&mut self, _w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        KEPT * base
    }

    fn on_rto(&mut self, _w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        KEPT * base
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("a", self.increase);
    }
}

/// Fraction kept on loss and timeout (section 2).
const KEPT: f64 = 0.75;

/// `gentle(increase)`.
pub const GENTLE: Entry<Gentle> = Entry {
    name: "gentle",
    aliases: &[],
    about: "half of Reno's increase, half of its decrease",
    source: "Gentle TCP 2026 section 2",
    params: &[
        param!(increase: number = 0.5, 1e-3..=1e3, "segments/RTT", "increase a", "section 2"),
    ],
    build: |p| {
        Ok(Gentle {
            increase: p.number("increase"),
        })
    },
};
