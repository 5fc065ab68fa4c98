//! The formulas of H-TCP, their parameters, and what the registry says of them.

use fullpipe_units::Span;

use super::Htcp;
use crate::entry::Entry;

/// Parameters of H-TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HtcpParams {
    /// Time after an event during which the increase is Reno's, s (`Delta_L`).
    pub delta_l: f64,
    /// Smallest fraction kept.
    pub beta_min: f64,
    /// Largest fraction kept.
    pub beta_max: f64,
    /// Relative change of the throughput that makes the decrease `beta_min`; 0: not tested.
    pub bandwidth_switch: f64,
    /// Keep `RTTmin/RTTmax` instead of `beta_min`.
    pub adaptive_backoff: bool,
    /// Multiply the increase by `RTTmin/100 ms`, between 0.1 and 2.
    pub rtt_scaling: bool,
}

impl HtcpParams {
    /// The defaults of the registry.
    pub const DEFAULT: Self = Self {
        delta_l: 1.0,
        beta_min: 0.5,
        beta_max: 0.8,
        bandwidth_switch: 0.2,
        adaptive_backoff: true,
        rtt_scaling: false,
    };

    /// Increase factor `delta` seconds after the last event: `1 + 10 (D - D_L) + ((D - D_L)/2)^2`.
    pub fn f(&self, delta: f64) -> f64 {
        if delta <= self.delta_l {
            return 1.0;
        }
        let late = delta - self.delta_l;
        let half = 0.5 * late;
        1.0 + LINEAR * late + half * half
    }

    /// Factor of the RTT scaling.
    pub fn scale(min_rtt: Span) -> f64 {
        min_rtt.ratio(REFERENCE_RTT).clamp(0.1, 2.0)
    }

    /// Increase per RTT, segments: `2 (1 - beta) f(delta)`, scaled.
    pub fn alpha(&self, delta: f64, beta: f64, min_rtt: Span) -> f64 {
        let mut factor = self.f(delta);
        if self.rtt_scaling && min_rtt != Span::MAX {
            factor = (factor * Self::scale(min_rtt)).max(1.0);
        }
        2.0 * (1.0 - beta) * factor
    }

    /// Fraction kept when the RTT ranges from `min_rtt` to `max_rtt`.
    pub fn beta(&self, min_rtt: Span, max_rtt: Span) -> f64 {
        min_rtt.ratio(max_rtt).clamp(self.beta_min, self.beta_max)
    }
}

/// Linear coefficient of `f`, 1/s (Linux `htcp_alpha_update`).
const LINEAR: f64 = 10.0;

/// RTT at which scaling changes nothing (Linux `htcp_alpha_update`).
const REFERENCE_RTT: Span = Span::from_millis(100);

/// `htcp`.
pub const HTCP: Entry<Htcp> = Entry {
    name: "htcp",
    aliases: &["h-tcp"],
    about: "H-TCP: increase grows with the time since the last congestion event",
    source: "Linux tcp_htcp.c; FreeBSD cc_htcp",
    params: &[
        param!(delta_l: time = Span::from_secs(1), Span::ZERO..=Span::from_secs(60),
            "time after an event during which the increase is Reno's",
            "Linux tcp_htcp.c; FreeBSD cc_htcp"),
        param!(beta_min: number = HtcpParams::DEFAULT.beta_min, 0.01..=0.99, "fraction",
            "smallest fraction kept on loss", "Linux tcp_htcp.c; FreeBSD cc_htcp")
        .kept(),
        param!(beta_max: number = HtcpParams::DEFAULT.beta_max, 0.01..=0.99, "fraction",
            "largest fraction kept on loss", "Linux tcp_htcp.c; FreeBSD cc_htcp")
        .kept(),
        param!(bandwidth_switch: number =
            HtcpParams::DEFAULT.bandwidth_switch, 0.0..=10.0, "fraction",
            "relative change of the throughput between two events that resets the decrease; 0: \
            never",
            "Linux tcp_htcp.c: 4/5 to 6/5"),
        param!(adaptive_backoff: flag = true,
            "keep RTTmin/RTTmax when the throughput is steady, not always beta_min",
            "Linux tcp_htcp.c (on); FreeBSD cc_htcp (off)"),
        param!(rtt_scaling: flag = false,
            "multiply the increase by RTTmin/100 ms, between 0.1 and 2",
            "FreeBSD cc_htcp (off); Linux tcp_htcp.c (on)"),
    ],
    build: |p| {
        let params = HtcpParams {
            delta_l: p.time("delta_l").as_secs_f64(),
            beta_min: p.number("beta_min"),
            beta_max: p.number("beta_max"),
            bandwidth_switch: p.number("bandwidth_switch"),
            adaptive_backoff: p.flag("adaptive_backoff"),
            rtt_scaling: p.flag("rtt_scaling"),
        };
        if params.beta_min > params.beta_max {
            return Err(format!(
                "beta_min ({}) must not be above beta_max ({})",
                params.beta_min, params.beta_max
            ));
        }
        Ok(Htcp::new(params))
    },
};

#[cfg(test)]
mod tests {
    #[test]
    fn betas_out_of_order_are_refused() {
        let why = crate::rounds::try_law("htcp", &[("beta_min", "0.9")]).unwrap_err();
        assert!(why.contains("must not be above"), "{why}");
    }
}
