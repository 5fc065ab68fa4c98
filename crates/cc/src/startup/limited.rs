//! Limited Slow-Start: above `max_ssthresh` the window grows by about half of it per RTT instead of
//! doubling.
//!
//! Documents: RFC 3742 section 2; Linux 2.6.22 `tcp_cong.c`; Net100 2003. The RFC's "836 RTTs" to
//! 83,000 segments contradicts its own formula, which gives 1664.6; the tests hold the formula.
//!
//! - The rule is evaluated segment by segment as in the RFC, whatever an ACK covers, at the cost of
//!   one step per piece on which `K` is constant. Fractions of a segment are kept: the byte form's
//!   `floor(SMSS/K)` stalls for large `K`.
//! - A loss, a mark or `ssthresh` end it as they end slow start; after a timeout it limits the next
//!   slow start too.

use crate::classic::{StartUp, Window};
use crate::controller::AckEvent;
use crate::entry::Entry;

/// Growth per acknowledged segment above `max_ssthresh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `1/K` per segment, `K = floor(w / (max_ssthresh/2))`.
    Rfc,
    /// `(max_ssthresh/2) / w` per segment.
    Exact,
    /// Whole segments through a counter that gains `max_ssthresh/2` per ACK, twice that if the ACK
    /// covers two segments.
    Linux26,
}

/// Limited Slow-Start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limited {
    /// Segments up to which slow start is the standard one.
    pub max_ssthresh: f64,
    /// Growth above it.
    pub rule: Rule,
    /// Linux's counter, in units of 1/w segment.
    count: f64,
}

impl Limited {
    /// Limited Slow-Start above `max_ssthresh` segments.
    pub fn new(max_ssthresh: f64, rule: Rule) -> Self {
        Self {
            max_ssthresh,
            rule,
            count: 0.0,
        }
    }

    /// The RFC's `K`: segments that must be acknowledged for one segment of growth.
    pub fn k(&self, w: f64) -> f64 {
        if w <= self.max_ssthresh {
            1.0
        } else {
            libm::floor(w / (0.5 * self.max_ssthresh))
        }
    }

    /// Whole segments, at least one, whose growth of `1/k` starts at a window where `K` is still
    /// `k`.
    fn piece(&self, w: f64, k: f64) -> f64 {
        if w <= self.max_ssthresh {
            libm::floor(self.max_ssthresh - w) + 1.0
        } else {
            libm::ceil(((k + 1.0) * 0.5 * self.max_ssthresh - w) * k).max(1.0)
        }
    }

    fn grow_rfc(&self, win: &mut Window, mut n: f64) -> f64 {
        while n > 0.0 && win.w < win.ssth {
            let k = self.k(win.w);
            let piece = self.piece(win.w, k).min(n);
            let left = win.climb(piece, 1.0 / k);
            n -= piece - left;
        }
        n
    }

    fn grow_exact(&self, win: &mut Window, n: f64) -> f64 {
        let doubling = if win.w <= self.max_ssthresh {
            self.piece(win.w, 1.0).min(n)
        } else {
            0.0
        };
        let left = n - doubling + win.climb(doubling, 1.0);
        if left > 0.0 && win.w < win.ssth {
            win.climb(left, 0.5 * self.max_ssthresh / win.w)
        } else {
            left
        }
    }

    fn grow_linux(&mut self, win: &mut Window, n: f64) -> f64 {
        let gain = if win.w > self.max_ssthresh {
            libm::floor(0.5 * self.max_ssthresh)
        } else {
            win.w
        };
        self.count += if n >= 2.0 { 2.0 * gain } else { gain };
        // At most twice: the gain is at most twice the window.
        while self.count >= win.w && win.w < win.ssth {
            self.count -= win.w;
            win.w = (win.w + 1.0).min(win.ssth);
        }
        0.0
    }
}

impl StartUp for Limited {
    #[inline]
    fn grow(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) -> f64 {
        match self.rule {
            Rule::Rfc => self.grow_rfc(win, n),
            Rule::Exact => self.grow_exact(win, n),
            Rule::Linux26 => self.grow_linux(win, n),
        }
    }

    fn on_congestion(&mut self) {
        self.count = 0.0;
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("max_ssthresh", self.max_ssthresh);
    }
}

/// `limited`.
pub const LIMITED: Entry<Limited> = Entry {
    name: "limited",
    aliases: &["lss", "limited-slow-start"],
    about: "slow start whose growth is limited to max_ssthresh/2 segments per RTT above \
        max_ssthresh",
    source: "RFC 3742 section 2",
    params: &[
        param!(max_ssthresh: number = 100.0, 2.0..=1e9, "segments",
            "window above which growth is limited", "RFC 3742 section 2; Net100 2003 also 200"),
        param!(rule: choice = &["rfc", "exact", "linux26"],
            "1/K per segment with the RFC's floor; exactly max_ssthresh/2 per RTT; or the counter \
            of Linux 2.6",
            "RFC 3742 section 2; Linux 2.6.22 tcp_cong.c"),
    ],
    build: |p| {
        let rule = match p.word("rule") {
            "exact" => Rule::Exact,
            "linux26" => Rule::Linux26,
            _ => Rule::Rfc,
        };
        Ok(Limited::new(p.number("max_ssthresh"), rule))
    },
};

#[cfg(test)]
mod tests {
    use fullpipe_units::{Span, Time};

    use super::*;
    use crate::classic::Setup;
    use crate::controller::{CongestionKind, Controller};
    use crate::rounds::{Rounds, ack};

    const RTT: Span = Span::from_millis(100);

    fn grown(rule: Rule, w: f64, ssth: f64, acks: &[u64]) -> (f64, f64) {
        let mut limited = Limited::new(100.0, rule);
        let mut win = Window { w, ssth };
        let mut left = 0.0;
        for &n in acks {
            left = limited.grow(&mut win, n as f64, &ack(Time::ZERO, n));
        }
        (win.w, left)
    }

    #[test]
    fn the_first_ack_doubles_as_slow_start_does() {
        assert_eq!(grown(Rule::Rfc, 1.0, f64::INFINITY, &[1]), (2.0, 0.0));
        assert_eq!(grown(Rule::Exact, 1.0, f64::INFINITY, &[1]), (2.0, 0.0));
        assert_eq!(grown(Rule::Linux26, 1.0, f64::INFINITY, &[1]), (2.0, 0.0));
    }

    #[test]
    fn one_ack_for_many_segments_is_the_same_as_many_acks() {
        for from in [64.0, 99.5, 100.0, 114.5, 949.9, 5000.25] {
            for n in [1, 2, 37, 700, 5000] {
                let once = grown(Rule::Rfc, from, f64::INFINITY, &[n]);
                let often = grown(Rule::Rfc, from, f64::INFINITY, &vec![1; n as usize]);
                // Rounding may move a segment across a change of K, by 1/K - 1/(K+1).
                assert!(
                    (once.0 - often.0).abs() < 0.1,
                    "{from} {n}: {once:?} {often:?}"
                );
            }
        }
    }

    #[test]
    fn the_segment_sent_at_max_ssthresh_still_counts_whole() {
        assert_eq!(grown(Rule::Rfc, 100.0, f64::INFINITY, &[1]).0, 101.0);
        assert_eq!(grown(Rule::Rfc, 101.0, f64::INFINITY, &[1]).0, 101.5);
        assert!((grown(Rule::Rfc, 150.0, f64::INFINITY, &[1]).0 - 150.0 - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn growth_stops_at_ssthresh_and_hands_on_the_rest() {
        assert_eq!(grown(Rule::Rfc, 99.0, 101.5, &[10]), (101.5, 7.0));
        let (w, left) = grown(Rule::Exact, 99.0, 101.5, &[10]);
        assert!(w == 101.5 && (left - 8.0 + 1.01).abs() < 1e-9, "{left}");
    }

    #[test]
    fn linux_counts_acks_and_doubles_for_two_segments() {
        // Gain 50 of 200 per ACK: one segment per four ACKs; per two ACKs when each covers two
        // segments.
        assert_eq!(
            grown(Rule::Linux26, 200.0, f64::INFINITY, &[1, 1, 1]).0,
            200.0
        );
        assert_eq!(
            grown(Rule::Linux26, 200.0, f64::INFINITY, &[1, 1, 1, 1]).0,
            201.0
        );
        assert_eq!(grown(Rule::Linux26, 200.0, f64::INFINITY, &[2, 2]).0, 201.0);
        // A round of 1000 ACKs gains 50,000, the price of 48 segments from 1000 on.
        assert_eq!(
            grown(Rule::Linux26, 1000.0, f64::INFINITY, &[1; 1000]).0,
            1048.0
        );
        // Below the threshold too: 100 of 50 is one segment, and what is left over counts for the
        // next ACK.
        assert_eq!(grown(Rule::Linux26, 50.0, f64::INFINITY, &[2]).0, 51.0);
        assert_eq!(grown(Rule::Linux26, 50.0, f64::INFINITY, &[2, 2]).0, 53.0);
        assert_eq!(grown(Rule::Linux26, 50.0, 51.0, &[2, 2]).0, 51.0);
    }

    #[test]
    fn a_loss_a_mark_or_the_application_end_or_stop_it() {
        for kind in [CongestionKind::Loss, CongestionKind::Ecn] {
            let mut flow = Rounds::starting("reno+limited", RTT, 400.0);
            flow.congest(kind);
            assert!(!flow.stack.in_start_up());
            flow.round();
            assert!((flow.w() - 201.0).abs() < 0.01, "{}", flow.w());
        }
        let mut flow = Rounds::starting("reno+limited", RTT, 400.0);
        flow.cwnd_limited = false;
        flow.round();
        assert_eq!(flow.w(), 400.0);
        let mut flow = Rounds::starting("reno+limited", RTT, 400.0);
        flow.lose();
        flow.stack.on_undo(Time::ZERO);
        flow.round();
        assert!(
            (flow.w() - 450.0).abs() < 0.2,
            "back in start-up: {}",
            flow.w()
        );
    }

    #[test]
    fn it_limits_the_slow_start_after_a_timeout_too() {
        let setup = Setup {
            initial_window: 1000.0,
            ..Setup::default()
        };
        let mut flow = Rounds::with("reno+limited", RTT, setup);
        flow.time_out();
        assert_eq!(flow.stack.ssthresh(), 500.0);
        for want in [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 114.5] {
            flow.round();
            assert_eq!(flow.w(), want);
        }
    }
}
