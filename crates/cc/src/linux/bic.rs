//! BIC as Linux has it (`net/ipv4/tcp_bic.c`, Linux 6.1), where it differs from the paper:
//!
//! - The search goes a quarter of the distance, not half of it; increments end at 16 segments per
//!   RTT, the last ones are 1/5, a reduction keeps 819/1024 (`bictcp_update`,
//!   `bictcp_recalc_ssthresh`).
//! - Increments are `cnt`, whole segments to be acknowledged per segment of growth, computed when
//!   the window has changed or more than `HZ/32` ticks have passed (`bictcp_update`).
//! - `cnt` is divided by an estimate of segments per ACK, a relic of counting ACKs: it is
//!   multiplied with the segments that an ACK acknowledges, so a receiver that delays ACKs makes
//!   the window grow twice as fast (`bictcp_acked`, `bictcp_update`). The estimate starts at 2;
//!   ACKs that acknowledge nothing pull it towards 15/16.
//! - Up to `low_window` the window is Reno's and that division is left out (`bictcp_update`).
//! - Before the first loss, and again after a timeout, the window grows by a twentieth per RTT at
//!   least, times the segments per ACK (`bictcp_update`).
//! - A timeout forgets the maximum that the reduction has just noted (`bictcp_state`).
//! - `initial_ssthresh` holds at once (`bictcp_init`).
//!
//! Undo gives back the window and nothing else (`tcp_reno_undo_cwnd`).

use crate::controller::Phase;
use crate::entry::Entry;
use crate::linux::module::{AckSample, Module};
use crate::linux::socket::Socket;

/// Module parameters.
#[derive(Clone, Copy, Debug)]
struct Settings {
    fast_convergence: bool,
    max_increment: u32,
    low_window: u32,
    /// Kept on a reduction, 1/1024.
    beta: u32,
    initial_ssthresh: u32,
    /// RTTs to cover the last `SEARCH` segments.
    smooth_part: u32,
}

/// BIC.
#[derive(Clone, Debug)]
pub struct Bic {
    settings: Settings,
    state: State,
}

/// State that `bictcp_reset` clears on a timeout.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Segments to be acknowledged for one segment of growth.
    cnt: u32,
    /// Window of the last loss, lowered by fast convergence; 0 before any.
    w_max: u32,
    /// Window and tick of the last computation.
    seen: (u32, u32),
    /// Segments per ACK, 1/16.
    ack_ratio: u32,
}

impl State {
    const NEW: Self = Self {
        cnt: 0,
        w_max: 0,
        seen: (0, 0),
        ack_ratio: 2 << RATIO_SHIFT,
    };
}

impl Settings {
    /// `cnt` at window `w` with the last maximum `w_max`, before the ACK ratio.
    fn count(&self, w: u32, w_max: u32) -> u32 {
        let slowest = w.wrapping_mul(self.smooth_part) / SEARCH;
        let fastest = w / self.max_increment;
        if w < w_max {
            match (w_max - w) / SEARCH {
                step if step > self.max_increment => fastest,
                0 | 1 => slowest,
                step => w / step,
            }
        } else {
            match w - w_max {
                beyond if beyond < SEARCH => slowest,
                beyond if beyond < self.max_increment * (SEARCH - 1) => {
                    w.wrapping_mul(SEARCH - 1) / beyond
                }
                _ => fastest,
            }
        }
    }
}

impl Bic {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: State::NEW,
        }
    }

    #[inline]
    fn update(&mut self, sk: &Socket) {
        let (w, now) = (sk.cwnd, sk.jiffies());
        let s = &mut self.state;
        let age = now.wrapping_sub(s.seen.1) as i32;
        if s.seen.0 == w && age <= (sk.hz / 32) as i32 {
            return;
        }
        s.seen = (w, now);
        if w <= self.settings.low_window {
            s.cnt = w;
            return;
        }
        let mut cnt = self.settings.count(w, s.w_max);
        if s.w_max == 0 {
            cnt = cnt.min(FIRST_GROWTH);
        }
        s.cnt = ((cnt << RATIO_SHIFT) / s.ack_ratio).max(1);
    }
}

impl Module for Bic {
    fn init(&mut self, sk: &mut Socket) {
        self.state = State::NEW;
        if self.settings.initial_ssthresh > 0 {
            sk.ssthresh = self.settings.initial_ssthresh;
        }
    }

    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        let beta = self.settings.beta;
        let s = &mut self.state;
        s.w_max = if sk.cwnd < s.w_max && self.settings.fast_convergence {
            sk.cwnd.wrapping_mul(SCALE + beta) / (2 * SCALE)
        } else {
            sk.cwnd
        };
        if sk.cwnd <= self.settings.low_window {
            sk.half()
        } else {
            (sk.cwnd.wrapping_mul(beta) / SCALE).max(2)
        }
    }

    #[inline]
    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if !sk.is_cwnd_limited() {
            return;
        }
        let Some(left) = sk.past_slow_start(acked) else {
            return;
        };
        self.update(sk);
        sk.cong_avoid_ai(self.state.cnt, left);
    }

    fn set_state(&mut self, _sk: &mut Socket, new: Phase) {
        if new == Phase::Loss {
            self.state = State::NEW;
        }
    }

    #[inline]
    fn pkts_acked(&mut self, sk: &mut Socket, sample: &AckSample) {
        if sk.state == Phase::Open {
            let r = &mut self.state.ack_ratio;
            *r = r
                .wrapping_add(sample.pkts_acked)
                .wrapping_sub(*r >> RATIO_SHIFT);
        }
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("w_max", f64::from(self.state.w_max));
        visit("cnt", f64::from(self.state.cnt));
        visit("ack_ratio", f64::from(self.state.ack_ratio) / 16.0);
    }
}

/// Unit of `beta` (`BICTCP_BETA_SCALE`).
const SCALE: u32 = 1024;

/// Divisor of the search (`BICTCP_B`).
const SEARCH: u32 = 4;

/// Largest `cnt` before the first loss.
const FIRST_GROWTH: u32 = 20;

/// Fraction bits of the ACK ratio, and the weight of a new sample (`ACK_RATIO_SHIFT`).
const RATIO_SHIFT: u32 = 4;

const SOURCE: &str = "Linux 6.1 net/ipv4/tcp_bic.c";

/// `bic-linux`.
pub const BIC_LINUX: Entry<Bic> = Entry {
    name: "bic-linux",
    aliases: &[],
    about: "BIC to the integer: whole segments per segment of growth, divided by the ACK ratio",
    source: SOURCE,
    params: &[
        param!(fast_convergence: flag = true,
            "after a loss below the last maximum remember less than the window", SOURCE),
        param!(max_increment: number = 16.0, 1.0..=1e6, "segments/RTT", "largest increase", SOURCE),
        param!(low_window: number = 14.0, 0.0..=1e6, "segments",
            "window up to which the flow is Reno", SOURCE),
        param!(beta: number = 819.0, 1.0..=1024.0, "1/1024", "kept on a reduction", SOURCE)
            .kept_of(1024.0),
        param!(initial_ssthresh: number = 0.0, 0.0..=1e9, "segments",
            "first threshold; 0: none", SOURCE),
        param!(smooth_part: number = 20.0, 1.0..=1e6, "RTT",
            "time to cover the last 4 segments below the maximum", SOURCE),
    ],
    build: |p| {
        let settings = Settings {
            fast_convergence: p.flag("fast_convergence"),
            max_increment: p.whole("max_increment")?,
            low_window: p.whole("low_window")?,
            beta: p.whole("beta")?,
            initial_ssthresh: p.whole("initial_ssthresh")?,
            smooth_part: p.whole("smooth_part")?,
        };
        Ok(Bic::new(settings))
    },
};

#[cfg(test)]
mod tests {
    use fullpipe_units::Span;

    use super::*;
    use crate::linux::AnyModule;
    use crate::linux::testing::Bench;

    /// Past slow start, in disorder: the ACK ratio stays at its first 2.
    fn bench(w: u32, params: &[(&str, &str)]) -> Bench {
        let mut b = Bench::avoiding(&BIC_LINUX, params, 100, w);
        b.state(Phase::Disorder);
        b
    }

    /// `w_max` is remembered, then the window is `w`.
    fn below(w_max: u32, w: u32, params: &[(&str, &str)]) -> Bench {
        let mut b = bench(w_max, params);
        b.lose();
        b.state(Phase::Disorder);
        (b.sk.cwnd, b.sk.ssthresh) = (w, 1);
        b
    }

    fn settings(b: &Bench) -> Settings {
        match &b.module {
            AnyModule::Bic(m) => m.settings,
            other => panic!("{other:?}"),
        }
    }

    /// The reference's ten windows around a last maximum of 1000, without the ACK ratio.
    #[test]
    fn segments_per_segment_of_growth() {
        let settings = settings(&bench(10, &[]));
        for (w, cnt) in [
            (800, 50),
            (937, 62),
            (950, 79),
            (991, 495), // 9 segments: a step of 2
            (992, 496),
            (993, 4965),
            (997, 4985),
            (1000, 5000),
            (1002, 5010),
            (1003, 5015),
            (1004, 753),
            (1020, 153),
            (1047, 66),
            (1048, 65),
            (1100, 68),
        ] {
            assert_eq!(settings.count(w, 1000), cnt, "{w}");
        }
    }

    #[test]
    fn cnt_is_divided_by_the_ack_ratio() {
        let mut b = below(1000, 800, &[]);
        b.acks(1);
        assert_eq!(b.reported("cnt"), 25.0);
        b.acks(24);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (801, 0));
        let mut b = bench(1000, &[]);
        b.state(Phase::Open);
        assert_eq!(b.reported("ack_ratio"), 2.0);
        b.ack(1);
        assert_eq!(b.reported("ack_ratio"), 31.0 / 16.0); // 32 + 1 - 2
        for _ in 0..100 {
            b.ack(3);
        }
        assert_eq!(b.reported("ack_ratio"), 48.0 / 16.0);
        for _ in 0..100 {
            b.ack(0);
        }
        assert_eq!(b.reported("ack_ratio"), 15.0 / 16.0);
    }

    #[test]
    fn before_a_loss_it_grows_by_a_twentieth() {
        let mut b = bench(1000, &[]);
        b.acks(10); // 20 over a ratio of 2
        assert_eq!((b.sk.cwnd, b.reported("cnt")), (1001, 10.0));
        let mut b = bench(15, &[]);
        b.ack(1); // 15 * 3 / 15 over 2
        assert_eq!((b.sk.cwnd, b.reported("cnt")), (16, 1.0));
    }

    #[test]
    fn growth_is_sixteen_segments_per_rtt_at_most_and_one_per_segment() {
        let mut b = below(100_000, 1600, &[("max_increment", "32")]);
        b.ack(1);
        assert_eq!(b.reported("cnt"), 25.0); // 50 over 2
        let mut b = below(1000, 15, &[]);
        b.ack(1); // 15 / 16 = 0, made 1
        assert_eq!((b.sk.cwnd, b.reported("cnt")), (16, 1.0));
        let mut b = below(1000, 998, &[("smooth_part", "10")]);
        b.ack(1);
        assert_eq!(b.reported("cnt"), 1247.0); // 998 * 10 / 4 over 2
    }

    #[test]
    fn up_to_fourteen_segments_it_is_reno() {
        let mut b = below(1000, 14, &[]);
        b.acks(13);
        assert_eq!((b.sk.cwnd, b.reported("cnt")), (14, 14.0));
        b.acks(1);
        assert_eq!(b.sk.cwnd, 15);
        for (w, kept) in [(14, 7), (15, 11), (3, 2), (1000, 799)] {
            let mut b = bench(w, &[]);
            b.lose();
            assert_eq!(b.sk.ssthresh, kept, "{w}");
        }
        let mut b = bench(15, &[("low_window", "15"), ("beta", "1000")]);
        b.lose();
        assert_eq!(b.sk.ssthresh, 7);
    }

    #[test]
    fn fast_convergence_remembers_1843_of_2048() {
        for (params, w_max) in [(&[][..], 809.0), (&[("fast_convergence", "off")], 900.0)] {
            let mut b = below(1000, 900, params);
            b.lose();
            assert_eq!(b.reported("w_max"), w_max);
        }
    }

    #[test]
    fn cnt_waits_for_a_changed_window_or_more_than_a_thirtysecond_of_a_second() {
        let mut b = below(1000, 950, &[]);
        b.ack(1);
        assert_eq!(b.reported("cnt"), 39.0); // 79 over 2
        b.state(Phase::Open);
        for _ in 0..100 {
            b.ack(0);
        }
        b.wait(Span::from_millis(30));
        b.ack(0);
        assert_eq!(b.reported("cnt"), 39.0);
        b.wait(Span::from_millis(10));
        b.ack(0);
        assert_eq!(b.reported("cnt"), 84.0); // 79 * 16 / 15
    }

    #[test]
    fn a_timeout_forgets_the_maximum_and_the_ratio() {
        let mut b = bench(1000, &[]);
        b.state(Phase::Open);
        for _ in 0..50 {
            b.ack(0);
        }
        b.time_out();
        assert_eq!(b.sk.ssthresh, 799);
        assert_eq!((b.reported("w_max"), b.reported("ack_ratio")), (0.0, 2.0));
    }

    #[test]
    fn undo_gives_back_the_window_alone() {
        let mut b = bench(1000, &[]);
        b.lose();
        b.undo();
        assert_eq!((b.sk.cwnd, b.reported("w_max")), (1000, 1000.0));
    }

    #[test]
    fn slow_start_hands_the_rest_on_and_an_unused_window_stays() {
        let mut b = bench(10, &[]);
        b.sk.ssthresh = 12;
        b.ack(15);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (13, 1));
        b.sk.cwnd_limited = false;
        b.acks(100);
        assert_eq!(b.sk.cwnd, 13);
    }

    #[test]
    fn a_first_threshold_holds_at_once() {
        for (params, ssthresh) in [
            (&[][..], Socket::INFINITE),
            (&[("initial_ssthresh", "80")], 80),
        ] {
            let mut b = Bench::new(&BIC_LINUX, params, 100, 10);
            b.init();
            assert_eq!(b.sk.ssthresh, ssthresh);
        }
    }
}
