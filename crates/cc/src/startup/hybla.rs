//! Hybla's slow start: `2^rho - 1` segments per acknowledged segment, `rho = RTT/RTT0`.
//!
//! Documents: Linux `tcp_hybla.c`; ns-3 `tcp-hybla.cc`. What differs: growth is capped at a factor
//! of four per round unless `uncapped=on`, because the raw law multiplies the window by 2^24 in one
//! round at 600 ms. The smallest RTT seen gives `rho`, as in Linux. It should be paced (`+paced`):
//! without pacing it sends the growth of a round as bursts.

use fullpipe_units::Span;

use crate::classic::{StartUp, Window};
use crate::controller::AckEvent;
use crate::entry::Entry;
use crate::params::ParamSpec;

/// `max(min_rtt/rtt0, 1)`; 1 before the first sample.
pub fn rho(min_rtt: Span, rtt0: Span) -> f64 {
    if min_rtt == Span::MAX {
        return 1.0;
    }
    min_rtt.ratio(rtt0).max(1.0)
}

/// Slow start that takes as long in seconds as on a path of `rtt0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyblaStart {
    rtt0: Span,
    /// Largest factor per round.
    cap: f64,
    /// `min_rtt` for which `per_segment` was computed.
    at: Span,
    per_segment: f64,
}

impl HyblaStart {
    /// Hybla's slow start relative to `rtt0`.
    pub fn new(rtt0: Span, uncapped: bool) -> Self {
        let cap = if uncapped { f64::INFINITY } else { CAP };
        Self {
            rtt0,
            cap,
            at: Span::MAX,
            per_segment: 1.0,
        }
    }

    /// Segments added per acknowledged segment on a path of `min_rtt`: `2^rho - 1`, the factor
    /// `2^rho` capped.
    pub fn increment(&self, min_rtt: Span) -> f64 {
        libm::exp2(rho(min_rtt, self.rtt0).min(LARGEST_POWER)).min(self.cap) - 1.0
    }
}

impl StartUp for HyblaStart {
    #[inline]
    fn grow(&mut self, win: &mut Window, n: f64, ev: &AckEvent) -> f64 {
        if ev.min_rtt != self.at {
            self.at = ev.min_rtt;
            self.per_segment = self.increment(ev.min_rtt);
        }
        win.climb(n, self.per_segment)
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("start_increment", self.per_segment);
    }
}

/// Largest exponent; ours. 2^1024 is no number, and no reduction brings a window back from there.
const LARGEST_POWER: f64 = 32.0;
/// Default cap of the growth per round; ours.
const CAP: f64 = 4.0;

/// `rtt0`, for the law too.
pub(crate) const RTT0: ParamSpec = param!(rtt0: time =
    Span::from_millis(25), Span::from_micros(100)..=Span::from_secs(10),
    "RTT of the path whose growth is imitated",
    "Linux tcp_hybla.c; ns-3 tcp-hybla.cc");

/// `uncapped`, for the law too.
pub(crate) const UNCAPPED: ParamSpec = param!(uncapped: flag = false,
    "slow start by the raw 2^rho per round instead of at most a factor of four",
    "Linux tcp_hybla.c (on); ours (off)");

/// `hybla-start`.
pub const HYBLA_START: Entry<HyblaStart> = Entry {
    name: "hybla-start",
    aliases: &[],
    about: "Hybla's slow start for another window law: 2^rho - 1 segments per segment, \
        rho = RTT/rtt0",
    source: "Linux tcp_hybla.c",
    params: &[RTT0, UNCAPPED],
    build: |p| {
        let start = HyblaStart::new(p.time("rtt0"), p.flag("uncapped"));
        Ok(start)
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::rounds::Rounds;

    #[test]
    fn growth_is_capped_at_a_factor_of_four_per_round() {
        for (rtt, factor) in [
            (20, 2.0),
            (25, 2.0),
            (37, 2.0_f64.powf(37.0 / 25.0)),
            (50, 4.0),
            (600, 4.0),
        ] {
            let mut flow = Rounds::starting("hybla", Span::from_millis(rtt), 10.0);
            flow.round();
            assert!(
                (flow.w() - 10.0 * factor).abs() < 1e-9,
                "{rtt} ms: {}",
                flow.w()
            );
        }
    }

    #[test]
    fn uncapped_it_stops_at_ssthresh_all_the_same() {
        let mut flow = Rounds::starting("hybla(uncapped=on)", Span::from_millis(600), 1000.0);
        flow.time_out();
        flow.round();
        flow.round();
        assert!(
            flow.w() >= 500.0 && flow.w() < 500.0 + 2.0 * 576.0,
            "{}",
            flow.w()
        );
        assert!(!flow.stack.in_start_up());
    }

    /// Losses bring back what 30 s over 25 ms, `2^1200`, have added.
    #[test]
    fn uncapped_it_leaves_a_window_that_can_be_reduced() {
        let mut flow = Rounds::starting("hybla(uncapped=on)", Span::from_secs(30), 10.0);
        flow.acks(1);
        assert!(flow.w().is_finite(), "{}", flow.w());
    }

    #[test]
    fn a_smaller_rtt_lowers_rho_and_a_larger_one_does_not_raise_it() {
        let mut flow = Rounds::starting("reno+hybla-start", Span::from_millis(50), 10.0);
        flow.rtt = Span::from_millis(25);
        flow.round();
        assert_eq!(flow.w(), 20.0);
        flow.rtt = Span::from_millis(50);
        flow.round();
        assert_eq!(flow.w(), 40.0);
    }
}
