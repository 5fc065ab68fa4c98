//! Start-ups: how the window climbs while it is below `ssthresh`.

use crate::classic::Window;
use crate::controller::{AckEvent, IdleEvent};

pub mod gamma;
pub mod hybla;
pub mod hystart;
pub mod hystart_pp;
pub mod limited;
pub mod standard;

/// What a document about slow start defines.
pub trait StartUp: Clone {
    /// Every ACK while in start-up, grown or not: RTT rounds and exit tests. Leaving means lowering `win.ssth`.
    fn observe(&mut self, _win: &mut Window, _ev: &AckEvent) {}

    /// Raise `win.w` for `n` effective segments (already limited by `L`), never past `win.ssth`; returns the segments left
    /// over for congestion avoidance.
    fn grow(&mut self, win: &mut Window, n: f64, ev: &AckEvent) -> f64;

    /// A congestion event or a timeout ended start-up, or one begins again after a timeout.
    fn on_congestion(&mut self) {}

    /// The flow restarts after idle time.
    fn on_idle(&mut self, _ev: &IdleEvent) {}

    /// The sender's segment size changed; `ratio` is old over new. Scale what is kept in segments.
    fn on_mss_change(&mut self, _ratio: f64) {}

    /// Named variables for traces.
    fn report(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}

/// Adds `step` segments per effective segment up to `ssth`; returns the effective segments not used.
pub fn climb(win: &mut Window, n: f64, step: f64) -> f64 {
    let room = win.ssth - win.w;
    if n * step <= room {
        win.w += n * step;
        0.0
    } else {
        win.w = win.ssth;
        n - room / step
    }
}

/// Declares the enum that dispatches to every start-up without a pointer.
macro_rules! startups {
    ($($(#[$doc:meta])* $variant:ident($type:ty)),+ $(,)?) => {
        /// Every start-up of the registry.
        #[derive(Clone, Debug)]
        pub enum Start { $($(#[$doc])* $variant($type)),+ }

        impl StartUp for Start {
            #[inline]
            fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
                match self { $(Start::$variant(s) => s.observe(win, ev)),+ }
            }
            #[inline]
            fn grow(&mut self, win: &mut Window, n: f64, ev: &AckEvent) -> f64 {
                match self { $(Start::$variant(s) => s.grow(win, n, ev)),+ }
            }
            fn on_congestion(&mut self) {
                match self { $(Start::$variant(s) => s.on_congestion()),+ }
            }
            fn on_idle(&mut self, ev: &IdleEvent) {
                match self { $(Start::$variant(s) => s.on_idle(ev)),+ }
            }
            fn on_mss_change(&mut self, ratio: f64) {
                match self { $(Start::$variant(s) => s.on_mss_change(ratio)),+ }
            }
            fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
                match self { $(Start::$variant(s) => s.report(visit)),+ }
            }
        }
    };
}

startups! {
    /// Exponential growth to `ssthresh`.
    Standard(standard::Standard),
    /// Limited Slow-Start (RFC 3742).
    Limited(limited::Limited),
    /// Slow start of TCP Hybla.
    Hybla(hybla::HyblaStart),
    /// Slow start with Vegas' test.
    Gamma(gamma::Gamma),
    /// HyStart of Linux.
    HyStart(hystart::HyStart),
    /// HyStart++ (RFC 9406).
    HyStartPp(hystart_pp::HyStartPp),
}
