//! Standard slow start: one segment per acknowledged segment (RFC 5681 section 3.1).

use crate::classic::{StartUp, Window};
use crate::controller::AckEvent;
use crate::entry::Entry;

/// Exponential growth until `ssthresh` or a congestion event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standard {
    /// Threshold of the first slow start, segments; infinite: what RFC 5681 advises, as high as can
    /// be.
    ssthresh: f64,
}

impl Standard {
    /// Slow start until a congestion event.
    pub const UNLIMITED: Self = Self {
        ssthresh: f64::INFINITY,
    };

    /// The first slow start ends at `ssthresh` segments, as where a host remembers a threshold of
    /// the path (Linux: `tcp_metrics`, `ip route ... ssthresh`). At the initial window or below
    /// there is none.
    pub fn up_to(ssthresh: f64) -> Self {
        Self { ssthresh }
    }
}

impl StartUp for Standard {
    fn initial_ssthresh(&self) -> f64 {
        self.ssthresh
    }

    #[inline]
    fn grow(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) -> f64 {
        win.climb(n, 1.0)
    }
}

/// No window gets there.
const NONE: f64 = 1e9;

/// `standard`.
pub const STANDARD: Entry<Standard> = Entry {
    name: "standard",
    aliases: &["slowstart"],
    about: "slow start: the window doubles every RTT",
    source: "RFC 5681 section 3.1, RFC 3465 section 2.2",
    params: &[param!(ssthresh: number = NONE, 1.0..=NONE, "segments",
        "threshold at which the first slow start ends; at the initial window there is none, 1e9 is \
        no threshold",
        "RFC 5681 section 3.1; draft-irtf-iccrg-tcpeval-01 section 5.2.2")],
    build: |p| {
        Ok(match p.number("ssthresh") {
            NONE => Standard::UNLIMITED,
            ssthresh => Standard::up_to(ssthresh),
        })
    },
};

#[cfg(test)]
mod tests {
    use fullpipe_units::Time;

    use super::*;
    use crate::Classic;
    use crate::classic::Setup;
    use crate::controller::Controller;
    use crate::law::aimd::Aimd;
    use crate::rounds::ack;

    /// Windows after each of four rounds from ten segments, every segment acknowledged by itself.
    fn rounds(start: Standard) -> [f64; 4] {
        let mut cc = Classic::new(start, Aimd::RENO, None, Setup::default());
        core::array::from_fn(|_| {
            for _ in 0..cc.window() as u64 {
                cc.on_ack(&ack(Time::ZERO, 1));
            }
            cc.window()
        })
    }

    #[test]
    fn the_first_slow_start_ends_at_its_threshold() {
        assert_eq!(rounds(Standard::UNLIMITED), [20.0, 40.0, 80.0, 160.0]);
        let limited = rounds(Standard::up_to(32.0));
        assert_eq!(limited[0], 20.0);
        assert!((32.0..33.0).contains(&limited[1]), "{limited:?}");
        assert!((33.0..34.0).contains(&limited[2]), "{limited:?}");
        // None at all: a segment per round from the first.
        let none = rounds(Standard::up_to(10.0));
        let steps = none.windows(2).map(|w| w[1] - w[0]);
        assert!(
            none[0] > 10.8 && steps.clone().all(|d| (0.8..=1.0).contains(&d)),
            "{none:?}"
        );
    }
}
