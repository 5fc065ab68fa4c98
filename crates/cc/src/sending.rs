//! How the initial window leaves the host (Initial Spreading 2014) and how the connection is paced
//! afterwards.

use fullpipe_units::Span;

use crate::entry::Entry;
use crate::params::ParamSpec;

/// Sending rule for the initial window.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum InitialSending {
    /// All segments back to back (RFC 6928 on an unpaced stack).
    Burst,
    /// One segment every RTT/IW, for the initial window only, spacing capped at `t_max` if given.
    Spread {
        /// Cap of the spacing; `None`: variable spreading.
        t_max: Option<Span>,
        /// Timer resolution; below it nothing is spread.
        jiffy: Span,
    },
}

impl InitialSending {
    /// Timer resolution where none is given.
    pub const JIFFY: Span = Span::from_millis(1);

    /// Gap between the segments of an initial window of `iw` segments on a path whose handshake
    /// took `rtt`.
    ///
    /// `x = RTT/IW`; below one jiffy nothing is spread (zero); otherwise `min(x, t_max)`. A cap
    /// below one jiffy cannot be kept by a timer of that grain: the gap is then one jiffy.
    pub fn spacing(&self, rtt: Span, iw: u64) -> Span {
        let InitialSending::Spread { t_max, jiffy } = *self else {
            return Span::ZERO;
        };
        let x = rtt / iw.max(1);
        if x < jiffy || iw <= 1 {
            return Span::ZERO;
        }
        t_max.map_or(x, |t| x.min(t)).max(jiffy)
    }
}

/// Gains of the window-derived pacing rate `gain * max(w, flight) * mss / srtt` (Linux defaults).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PacingGains {
    /// While `w < ssthresh / 2`.
    pub slow_start: f64,
    /// Otherwise.
    pub avoidance: f64,
}

impl Default for PacingGains {
    fn default() -> Self {
        Self {
            slow_start: 2.0,
            avoidance: 1.2,
        }
    }
}

const IW: ParamSpec = param!(iw: number = 10.0, 1.0..=64.0, "segments",
    "initial window; the flow's `initial_window` applies when not given",
    "RFC 6928");
const JIFFY: ParamSpec = param!(jiffy: time =
    InitialSending::JIFFY, Span::from_micros(1)..=Span::from_millis(100),
    "timer resolution: below one jiffy per segment nothing is spread",
    "Initial Spreading 2014");
const SOURCE: &str = "Initial Spreading 2014; RFC 6928";

/// `burst`.
pub const BURST: Entry<InitialSending> = Entry {
    name: "burst",
    aliases: &[],
    about: "initial window back to back",
    source: "RFC 6928",
    params: &[IW],
    build: |_| Ok(InitialSending::Burst),
};

/// `spread`.
pub const SPREAD: Entry<InitialSending> = Entry {
    name: "spread",
    aliases: &["spread-bounded"],
    about: "initial window spread by min(RTT/IW, t_max), conventional afterwards",
    source: SOURCE,
    params: &[
        IW,
        param!(t_max: time = Span::from_millis(4), Span::from_micros(1)..=Span::from_secs(10),
            "largest gap between two segments", "Initial Spreading 2014"),
        JIFFY,
    ],
    build: |p| {
        Ok(InitialSending::Spread {
            t_max: Some(p.time("t_max")),
            jiffy: p.time("jiffy"),
        })
    },
};

/// `spread-variable`.
pub const SPREAD_VARIABLE: Entry<InitialSending> = Entry {
    name: "spread-variable",
    aliases: &[],
    about: "initial window spread over the whole first RTT, conventional afterwards",
    source: SOURCE,
    params: &[IW, JIFFY],
    build: |p| {
        Ok(InitialSending::Spread {
            t_max: None,
            jiffy: p.time("jiffy"),
        })
    },
};

/// `paced`.
pub const PACED: Entry<PacingGains> = Entry {
    name: "paced",
    aliases: &["pacing"],
    about: "every segment paced at gain * w / srtt for the whole connection, initial window \
        included",
    source: "Linux 6.8 tcp_input.c; RFC 9002 section 7.7",
    params: &[
        IW,
        param!(ss_gain: number = 2.0, 0.5..=10.0, "", "gain while w < ssthresh/2", "Linux 6.8"),
        param!(ca_gain: number = 1.2, 0.5..=10.0, "", "gain otherwise", "Linux 6.8"),
    ],
    build: |p| {
        Ok(PacingGains {
            slow_start: p.number("ss_gain"),
            avoidance: p.number("ca_gain"),
        })
    },
};

/// Every rule for the initial window, for a registry whose components are `C`.
#[cfg(feature = "registry")]
pub(crate) const fn initial<C: From<InitialSending>>() -> [Entry<C>; 3] {
    [
        BURST.built_by(|p| (BURST.build)(p).map(C::from)),
        SPREAD.built_by(|p| (SPREAD.build)(p).map(C::from)),
        SPREAD_VARIABLE.built_by(|p| (SPREAD_VARIABLE.build)(p).map(C::from)),
    ]
}

/// Pacing of the connection, for a registry whose components are `C`.
#[cfg(feature = "registry")]
pub(crate) const fn pacing<C: From<PacingGains>>() -> [Entry<C>; 1] {
    [PACED.built_by(|p| (PACED.build)(p).map(C::from))]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Initial Spreading 2014: RTT, jiffy -> bounded and variable gap, ms, IW = 10.
    #[test]
    fn spreading_follows_the_published_rule() {
        let ms = Span::from_millis;
        let cases = [
            (8, 1, 0, 0),
            (8, 4, 0, 0),
            (20, 1, 2, 2),
            (20, 4, 0, 0),
            (40, 1, 4, 4),
            (40, 4, 4, 4),
            (40, 10, 0, 0),
            (80, 1, 4, 8),
            (80, 4, 4, 8),
            (250, 1, 4, 25),
            (500, 1, 4, 50),
            (600, 4, 4, 60),
        ];
        for (rtt, jiffy, bounded, variable) in cases {
            let rule = |t_max| InitialSending::Spread {
                t_max,
                jiffy: ms(jiffy),
            };
            assert_eq!(
                rule(Some(ms(4))).spacing(ms(rtt), 10),
                ms(bounded),
                "{rtt} {jiffy}"
            );
            assert_eq!(
                rule(None).spacing(ms(rtt), 10),
                ms(variable),
                "{rtt} {jiffy}"
            );
        }
    }

    #[test]
    fn a_tick_coarser_than_the_cap_is_the_gap() {
        let rule = InitialSending::Spread {
            t_max: Some(Span::from_millis(4)),
            jiffy: Span::from_millis(10),
        };
        let gap = rule.spacing(Span::from_millis(100), 10);
        assert_eq!(gap, Span::from_millis(10));
    }

    #[test]
    fn three_segments_on_twenty_milliseconds() {
        let rule = InitialSending::Spread {
            t_max: Some(Span::from_millis(4)),
            jiffy: Span::from_millis(4),
        };
        assert_eq!(rule.spacing(Span::from_millis(20), 3), Span::from_millis(4));
    }
}
