//! Window laws: how a window grows in congestion avoidance and what a congestion event takes.
//!
//! One file per law. A law sees real-valued segments; [`Classic`](crate::Classic) owns slow start, the
//! base of a decrease (C-BASE), floors and undo.

use fullpipe_units::Time;

use crate::classic::Window;
use crate::controller::{AckEvent, CongestionEvent, IdleEvent, RtoEvent};

pub mod aimd;
pub mod bic;
pub mod cubic;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
pub mod illinois;
pub mod scalable;
pub mod westwood;

/// What a paper about a window law defines.
pub trait WindowLaw: Clone {
    /// False for a law that has no slow start at all (LEDBAT): its `increase` runs from the first ACK.
    fn has_slow_start(&self) -> bool {
        true
    }

    /// Every ACK in every phase, before growth: RTT filters, bandwidth samples, round ends. A delay-based law may move
    /// `win` here (Vegas' round end, TCP-LP's early back-off).
    fn observe(&mut self, _win: &mut Window, _ev: &AckEvent) {}

    /// Congestion avoidance for `n` effective segments (already limited to the window): raise `win.w`.
    fn increase(&mut self, win: &mut Window, n: f64, ev: &AckEvent);

    /// True while the law forbids any growth, that of a start-up included (TCP-LP's inference time).
    fn holds(&self, _now: Time) -> bool {
        false
    }

    /// A congestion event at window `w`: returns the new `ssthresh` (segments, before the floor), a fraction of `base`.
    fn decrease(&mut self, w: f64, base: f64, ev: &CongestionEvent) -> f64;

    /// First timeout of a segment: returns the new `ssthresh` and resets the law's epoch. Each law states its own rule.
    fn on_rto(&mut self, w: f64, base: f64, ev: &RtoEvent) -> f64;

    /// Recovery ended.
    fn on_recovery_exit(&mut self, _win: &mut Window, _now: Time) {}

    /// The law's state has just been restored from the snapshot of a spurious reduction.
    fn on_undo(&mut self, _win: &mut Window, _now: Time) {}

    /// The flow restarts after idle time.
    fn on_idle(&mut self, _ev: &IdleEvent) {}

    /// The segment size changed: windows that the law remembers are multiplied by `ratio` (old over new).
    fn on_mss_change(&mut self, _ratio: f64) {}

    /// Named variables for traces; `w` is the present window.
    fn report(&self, w: f64, visit: &mut dyn FnMut(&'static str, f64));
}

/// Declares the enum that dispatches to every law without a pointer.
macro_rules! laws {
    ($($(#[$doc:meta])* $variant:ident($type:ty)),+ $(,)?) => {
        /// Every window law of the registry.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)] // one per flow; a pointer would cost a miss per ACK
        pub enum Law { $($(#[$doc])* $variant($type)),+ }

        $(impl From<$type> for Law { fn from(law: $type) -> Self { Law::$variant(law) } })+

        impl WindowLaw for Law {
            fn has_slow_start(&self) -> bool {
                match self { $(Law::$variant(l) => l.has_slow_start()),+ }
            }
            #[inline]
            fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
                match self { $(Law::$variant(l) => l.observe(win, ev)),+ }
            }
            #[inline]
            fn increase(&mut self, win: &mut Window, n: f64, ev: &AckEvent) {
                match self { $(Law::$variant(l) => l.increase(win, n, ev)),+ }
            }
            #[inline]
            fn holds(&self, now: Time) -> bool {
                match self { $(Law::$variant(l) => l.holds(now)),+ }
            }
            fn decrease(&mut self, w: f64, base: f64, ev: &CongestionEvent) -> f64 {
                match self { $(Law::$variant(l) => l.decrease(w, base, ev)),+ }
            }
            fn on_rto(&mut self, w: f64, base: f64, ev: &RtoEvent) -> f64 {
                match self { $(Law::$variant(l) => l.on_rto(w, base, ev)),+ }
            }
            fn on_recovery_exit(&mut self, win: &mut Window, now: Time) {
                match self { $(Law::$variant(l) => l.on_recovery_exit(win, now)),+ }
            }
            fn on_undo(&mut self, win: &mut Window, now: Time) {
                match self { $(Law::$variant(l) => l.on_undo(win, now)),+ }
            }
            fn on_idle(&mut self, ev: &IdleEvent) {
                match self { $(Law::$variant(l) => l.on_idle(ev)),+ }
            }
            fn on_mss_change(&mut self, ratio: f64) {
                match self { $(Law::$variant(l) => l.on_mss_change(ratio)),+ }
            }
            fn report(&self, w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
                match self { $(Law::$variant(l) => l.report(w, visit)),+ }
            }
        }
    };
}

laws! {
    /// Constant increase and decrease: Reno, tuned AIMD, N-stream emulation.
    Aimd(aimd::Aimd),
    /// HighSpeed TCP (RFC 3649).
    HighSpeed(highspeed::HighSpeed),
    /// Scalable TCP.
    Scalable(scalable::Scalable),
    /// BIC.
    Bic(bic::Bic),
    /// H-TCP.
    Htcp(htcp::Htcp),
    /// CUBIC (RFC 9438).
    Cubic(cubic::Cubic),
    /// TCP Hybla's congestion avoidance.
    Hybla(hybla::Hybla),
    /// Vegas.
    Vegas(crate::delay::vegas::Vegas),
    /// FAST TCP.
    Fast(crate::delay::fast::Fast),
    /// TCP-LP.
    Lp(crate::delay::lp::Lp),
    /// HSTCP-LP.
    HsLp(crate::delay::hslp::HsLp),
    /// Westwood+.
    Westwood(westwood::Westwood),
    /// Illinois.
    Illinois(illinois::Illinois),
    /// YeAH.
    Yeah(crate::delay::yeah::Yeah),
    /// Veno.
    Veno(crate::delay::veno::Veno),
    /// LEDBAT (RFC 6817).
    Ledbat(crate::delay::ledbat::Ledbat),
}
