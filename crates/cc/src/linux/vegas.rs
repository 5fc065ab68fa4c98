//! Vegas as Linux 6.1 counts it (`net/ipv4/tcp_vegas.c`). What Brakmo and Peterson 1995 do not say:
//!
//! - The backlog is `w (rtt - base) / base`, not `/ rtt`, in whole segments
//!   (`tcp_vegas_cong_avoid`), and the product wraps at 32 bits: 50 000 segments and 86 ms of queue
//!   look like none.
//! - Every RTT counts as one microsecond more than measured (`tcp_vegas_pkts_acked`).
//! - `alpha`, `beta`, `gamma` are 2, 4, 1, and slow start doubles every RTT.
//! - The sample of the ACK that ends a round belongs to the round it ends. A round of at most two
//!   samples, of 65536 to 65538 too (the count has 16 bits), grows as Reno, by that one ACK: the
//!   ACKs inside a round never grow the window in avoidance.
//! - Growth asks whether the window was the limit only where it is Reno's: the rule itself and slow
//!   start grow idle windows.
//! - Leaving slow start takes `w = min(w, floor(w base / rtt) + 1)`, with `w` the window at the end
//!   of the round. The threshold then rises to three quarters of the window, as at the end of every
//!   measured round; nothing but that follows a growing window.
//! - Any state but open, disorder included, is Reno (`tcp_vegas_state`). `base` survives that, but
//!   not a transmission with nothing in flight, such as the first after a timeout, which turns the
//!   rule on in the loss state as well (`tcp_vegas_cwnd_event`).
//! - A reduction is Reno's half of the window.

use super::round_delay::RoundDelay;
use crate::controller::Phase;
use crate::entry::Entry;
use crate::linux::module::{AckSample, Event, Module};
use crate::linux::socket::Socket;

/// Vegas.
#[derive(Clone, Debug)]
pub struct Vegas {
    alpha: u32,
    beta: u32,
    gamma: u32,
    delay: RoundDelay,
    diff: u32,
}

impl Vegas {
    fn adjust(&mut self, sk: &mut Socket, acked: u32) {
        self.diff = backlog(sk.cwnd, &self.delay);
        if sk.in_slow_start() {
            if self.diff > self.gamma {
                sk.cwnd = sk.cwnd.min(drained(sk.cwnd, &self.delay));
                sk.ssthresh = sk.ssthresh.min(sk.cwnd);
            } else {
                sk.slow_start(acked);
            }
        } else if self.diff > self.beta {
            sk.cwnd -= 1;
            sk.ssthresh = sk.ssthresh.min(sk.cwnd);
        } else if self.diff < self.alpha {
            sk.cwnd += 1;
        }
        sk.bound();
        sk.ssthresh = sk.current_ssthresh();
    }
}

/// Segments in the queue, `w (rtt - base) / base`.
fn backlog(cwnd: u32, delay: &RoundDelay) -> u32 {
    cwnd.wrapping_mul(delay.queueing()) / delay.base
}

/// The window that would keep the queue empty at the measured rate, and one segment for the
/// truncation.
fn drained(cwnd: u32, delay: &RoundDelay) -> u32 {
    let window = u64::from(cwnd) * u64::from(delay.base) / u64::from(delay.min);
    (window as u32).wrapping_add(1)
}

impl Module for Vegas {
    fn init(&mut self, sk: &mut Socket) {
        self.delay.restart(sk);
    }

    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if !self.delay.on {
            return sk.reno_cong_avoid(acked);
        }
        if !self.delay.is_over(sk) {
            if sk.in_slow_start() {
                sk.slow_start(acked);
            }
            return;
        }
        self.delay.end = sk.snd_nxt;
        if self.delay.is_measured() {
            self.adjust(sk, acked);
        } else {
            sk.reno_cong_avoid(acked);
        }
        self.delay.forget_round();
    }

    fn set_state(&mut self, sk: &mut Socket, new: Phase) {
        self.delay.enter(sk, new);
    }

    fn on_event(&mut self, sk: &mut Socket, event: Event) {
        self.delay.on_event(sk, event);
    }

    fn pkts_acked(&mut self, _sk: &mut Socket, sample: &AckSample) {
        self.delay.sample(sample);
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("diff", f64::from(self.diff));
        visit("base_us", f64::from(self.delay.base));
        visit("on", f64::from(u8::from(self.delay.on)));
    }
}

const SOURCE: &str = "Linux 6.1 net/ipv4/tcp_vegas.c";
/// Largest parameter: the kernel's are signed.
const LARGEST: f64 = 2_147_483_647.0;

/// `vegas-linux`.
pub const VEGAS_LINUX: Entry<Vegas> = Entry {
    name: "vegas-linux",
    aliases: &[],
    about: "Vegas in whole segments: 2 to 4 queued, doubling every round",
    source: SOURCE,
    params: &[
        param!(alpha: number = 2.0, 0.0..=LARGEST, "segments", "grow below this backlog", SOURCE),
        param!(beta: number = 4.0, 0.0..=LARGEST, "segments", "shrink above this backlog", SOURCE),
        param!(gamma: number = 1.0, 0.0..=LARGEST, "segments",
            "leave slow start above this backlog", SOURCE),
    ],
    build: |p| {
        let vegas = Vegas {
            alpha: p.whole("alpha")?,
            beta: p.whole("beta")?,
            gamma: p.whole("gamma")?,
            delay: RoundDelay::NEW,
            diff: 0,
        };
        Ok(vegas)
    },
};

#[cfg(test)]
mod tests {
    use super::super::AnyModule;
    use super::*;
    use crate::linux::round_delay::UNKNOWN;
    use crate::linux::testing::{Bench, built};

    fn vegas() -> Vegas {
        match built(&VEGAS_LINUX, &[]) {
            AnyModule::Vegas(vegas) => vegas,
            other => panic!("{other:?}"),
        }
    }

    /// RTT samples that the module takes for these, after its one microsecond.
    const BASE: u32 = 99_999;

    fn measured(base: u32, min: u32) -> RoundDelay {
        RoundDelay {
            base,
            min,
            ..RoundDelay::NEW
        }
    }

    /// A flow in avoidance with a base of 100 ms and a round of ten samples at `rtt`, before the
    /// ACK that ends it.
    fn at_round_end(cwnd: u32, rtt: u32) -> Bench<Vegas> {
        let mut t = Bench::past_start_up(vegas(), cwnd);
        t.sk.ssthresh = cwnd;
        t.module.delay.base = BASE + 1;
        t.module.delay.end = u64::MAX;
        t.acks_rtt(10, rtt);
        t.module.delay.end = t.sk.snd_una;
        t
    }

    #[test]
    fn published_backlogs_in_whole_segments() {
        for (w, base, rtt, diff) in [
            (100, 100_000, 101_000, 1),
            (100, 100_000, 102_000, 2),
            (100, 100_000, 105_000, 5),
            (20, 100_000, 110_000, 2),
            (2000, 77_000, 80_000, 77),
        ] {
            assert_eq!(backlog(w, &measured(base, rtt)), diff);
        }
        assert_eq!(drained(100, &measured(100_000, 101_000)), 100);
        assert_eq!(drained(100, &measured(100_000, 102_000)), 99);
    }

    #[test]
    fn a_long_queue_at_a_large_window_wraps_to_none() {
        assert_eq!(backlog(50_000, &measured(1000, 86_899)), 4_294_950);
        // 50 000 x 85 900 is 32 704 beyond 2^32.
        assert_eq!(backlog(50_000, &measured(1000, 86_900)), 32);
    }

    #[test]
    fn grows_below_two_and_shrinks_above_four() {
        // 100 segments: 1 ms over the base of 100 ms is one segment of backlog, the sample itself
        // is a microsecond short.
        for (rtt, w) in [
            (101_998, 101), // backlog 1.999 -> 1
            (101_999, 100), // 2
            (104_998, 100), // 4.999 -> 4
            (104_999, 99),  // 5
        ] {
            let mut t = at_round_end(100, rtt);
            t.ack_rtt(1, rtt);
            assert_eq!(t.sk.cwnd, w, "{rtt}");
        }
    }

    #[test]
    fn the_threshold_follows_at_three_quarters() {
        let mut t = at_round_end(100, 110_000);
        t.ack_rtt(1, 110_000);
        assert_eq!((t.sk.cwnd, t.sk.ssthresh), (99, 99));
        let mut t = at_round_end(100, BASE);
        t.sk.ssthresh = 50;
        t.ack_rtt(1, BASE);
        assert_eq!((t.sk.cwnd, t.sk.ssthresh), (101, 75)); // 101/2 + 101/4
    }

    #[test]
    fn slow_start_ends_above_one_segment_of_backlog() {
        for (rtt, w, ssthresh) in [
            (101_998, 101, Socket::INFINITE), // 1.999 -> 1 is not above gamma
            (101_999, 99, 99),                // 2: floor(100 x 100 / 102) + 1
            (149_999, 67, 67),
        ] {
            let mut t = at_round_end(100, rtt);
            t.sk.ssthresh = Socket::INFINITE;
            t.sk.cwnd = 100;
            t.ack_rtt(1, rtt);
            assert_eq!((t.sk.cwnd, t.sk.ssthresh), (w, ssthresh), "{rtt}");
        }
    }

    #[test]
    fn two_segments_are_the_least() {
        let mut t = at_round_end(4, 300_000);
        for w in [3, 2, 2] {
            t.sk.ssthresh = 2;
            t.module.delay.end = t.sk.snd_una;
            t.module.delay.min = 300_000;
            t.module.delay.samples = 5;
            t.ack_rtt(1, 300_000); // backlog 2 w
            assert_eq!(t.sk.cwnd, w.max(2));
        }
        // Slow start from one segment, after a timeout: min(1, 0 + 1) becomes 2, the threshold
        // stays behind.
        let mut t = at_round_end(1, 300_000);
        t.sk.ssthresh = 20;
        t.ack_rtt(1, 300_000);
        assert_eq!((t.sk.cwnd, t.sk.ssthresh), (2, 1));
    }

    #[test]
    fn inside_a_round_avoidance_stands_and_slow_start_doubles() {
        let mut t = at_round_end(100, BASE);
        t.module.delay.end = u64::MAX;
        t.acks_rtt(300, BASE);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (100, 0));
        t.sk.ssthresh = 150;
        t.sk.cwnd_limited = false; // not asked
        t.ack_rtt(20, BASE);
        assert_eq!(t.sk.cwnd, 120);
    }

    #[test]
    fn two_samples_are_renos() {
        for (samples, w) in [(2, 11), (3, 9)] {
            let mut t = Bench::past_start_up(vegas(), 10);
            t.sk.cwnd_cnt = 9;
            t.module.delay.base = 50_000; // a backlog of 10
            t.module.delay.end = samples - 1;
            t.acks_rtt(samples as u32, 99_999);
            assert_eq!(t.sk.cwnd, w, "{samples}");
        }
    }

    #[test]
    fn the_count_of_samples_wraps() {
        let mut t = at_round_end(100, 110_000);
        t.module.delay.samples = u16::MAX;
        t.ack_rtt(1, 110_000);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (100, 1)); // Reno
    }

    #[test]
    fn disorder_is_reno_and_the_open_state_begins_a_round() {
        let mut t = at_round_end(10, BASE);
        t.module.set_state(&mut t.sk, Phase::Disorder);
        t.acks_rtt(10, BASE);
        assert_eq!(t.sk.cwnd, 11);
        let nxt = t.sk.snd_nxt;
        t.module.set_state(&mut t.sk, Phase::Open);
        assert_eq!(t.module.delay.base, BASE + 1);
        assert_eq!((t.module.delay.samples, t.module.delay.end), (0, nxt));
    }

    #[test]
    fn transmission_with_nothing_in_flight_forgets_the_base_and_turns_the_rule_on() {
        for event in [Event::TxStart, Event::CwndRestart] {
            let mut t = at_round_end(10, BASE);
            t.module.set_state(&mut t.sk, Phase::Loss);
            assert_eq!(t.reported("on"), 0.0);
            t.module.on_event(&mut t.sk, event);
            assert_eq!(t.reported("on"), 1.0);
            assert_eq!(t.module.delay.base, UNKNOWN);
            t.module.on_event(&mut t.sk, Event::CompleteCwr);
        }
        let mut t = at_round_end(10, BASE);
        t.module.on_event(&mut t.sk, Event::Loss);
        assert_eq!(t.reported("base_us"), 100_000.0);
    }

    #[test]
    fn a_missing_sample_is_no_sample() {
        let mut t = Bench::past_start_up(vegas(), 10);
        t.ack_rtt(1, None);
        assert_eq!(t.module.delay.samples, 0);
        t.ack_rtt(1, 0);
        assert_eq!((t.module.delay.samples, t.module.delay.base), (1, 1));
    }

    #[test]
    fn reductions_halve() {
        assert_eq!(at_round_end(99, BASE).ssthresh(), 49);
    }
}
