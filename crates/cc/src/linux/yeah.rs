//! YeAH as Linux 6.1 counts it (`net/ipv4/tcp_yeah.c`). What Baiocchi, Castellani and Vacirca 2007 do not say:
//!
//! - The backlog divides by the round's RTT (Vegas' module by the base), the limit on delay is an eighth of the base rounded down to
//!   whole microseconds, and the drained part is the whole backlog (`tcp_yeah_cong_avoid`).
//! - Rounds end only with ACKs of a window-limited flow; what Vegas does outside the open state is measured but not asked: the rule
//!   works in disorder and loss too.
//! - Slow start is under the rule as well: 80 segments of backlog end it, and a delay of an eighth of the base makes what follows it
//!   Reno.
//! - The competing Reno flow's window is set to half of this flow's at the first slow round, then grows by one per slow round, and
//!   stays through fast ones until 51 of them have passed since the last loss or reset; draining stops at it.
//! - The backlog that a loss removes is the last measured one, however old (`tcp_yeah_ssthresh`), and its part is cut off at half
//!   the window before an eighth is made the least.
//! - A reduction halves the Reno estimate, one that is undone too, and one for a mark.
//! - Transmission with nothing in flight forgets the base, but neither mode nor backlog (`tcp_vegas_cwnd_event`).
//! - The window is clamped to `(2^32 - 1) / 128` segments (`tcp_yeah_init`).

use super::round_delay::RoundDelay;
use super::{AckSample, Event, Module, Socket};
use crate::controller::Phase;
use crate::params::Params;
use crate::registry::{Component, Entry, Kind};

/// YeAH.
#[derive(Clone, Debug)]
pub struct Yeah {
    delay: RoundDelay,
    /// Backlog of the last measured round (`lastQ`).
    queue: u32,
    /// Slow rounds in a row (`doing_reno_now`).
    slow_rounds: u32,
    /// Fast rounds since the last loss or reset (`fast_count`).
    fast_rounds: u32,
    /// Window of a competing Reno flow (`reno_count`).
    reno: u32,
}

impl Yeah {
    fn new() -> Self {
        Self {
            delay: RoundDelay::NEW,
            queue: 0,
            slow_rounds: 0,
            fast_rounds: 0,
            reno: NO_RENO,
        }
    }

    fn grow(&self, sk: &mut Socket, acked: u32) {
        let fast = self.slow_rounds == 0;
        let per = if fast { sk.cwnd.min(AI_CNT) } else { sk.cwnd };
        sk.cong_avoid_ai(per, acked);
    }

    fn judge_round(&mut self, sk: &mut Socket) {
        let queue = backlog(sk.cwnd, &self.delay);
        if queue > Q_MAX || self.delay.queueing() > self.delay.base / PHY {
            if queue > Q_MAX && sk.cwnd > self.reno {
                sk.cwnd = (sk.cwnd - queue.min(sk.cwnd / 2)).max(self.reno);
                sk.ssthresh = sk.cwnd;
            }
            self.reno = if self.reno <= NO_RENO {
                (sk.cwnd / 2).max(2)
            } else {
                self.reno.wrapping_add(1)
            };
            self.slow_rounds = (self.slow_rounds + 1).min(0xff_ffff);
        } else {
            self.fast_rounds += 1;
            if self.fast_rounds > ZETA {
                self.reno = NO_RENO;
                self.fast_rounds = 0;
            }
            self.slow_rounds = 0;
        }
        self.queue = queue;
    }
}

/// Segments in the queue, `w (rtt - base) / rtt`.
fn backlog(cwnd: u32, delay: &RoundDelay) -> u32 {
    (u64::from(cwnd) * u64::from(delay.queueing()) / u64::from(delay.min)) as u32
}

impl Module for Yeah {
    fn init(&mut self, sk: &mut Socket) {
        self.delay.restart(sk);
        self.slow_rounds = 0;
        self.queue = 0;
        self.reno = NO_RENO;
        sk.clamp = sk.clamp.min(u32::MAX / 128);
    }

    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        let half = sk.half();
        let cut = if self.slow_rounds < RHO {
            self.queue.min(half).max(sk.cwnd >> DELTA)
        } else {
            half
        };
        self.fast_rounds = 0;
        self.reno = (self.reno / 2).max(2);
        sk.cwnd.saturating_sub(cut).max(2)
    }

    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if !sk.is_cwnd_limited() {
            return;
        }
        if let Some(left) = sk.past_slow_start(acked) {
            self.grow(sk, left);
        }
        if self.delay.is_over(sk) {
            if self.delay.is_measured() {
                self.judge_round(sk);
            }
            self.delay.end = sk.snd_nxt;
            self.delay.forget_round();
        }
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
        visit("queue", f64::from(self.queue));
        visit("slow_rounds", f64::from(self.slow_rounds));
        visit("fast_rounds", f64::from(self.fast_rounds));
        visit("reno", f64::from(self.reno));
        visit("base_us", f64::from(self.delay.base));
    }
}

/// Backlog that makes a round slow, segments (`TCP_YEAH_ALPHA`).
const Q_MAX: u32 = 80;
/// A queueing delay above the base over this makes a round slow (`TCP_YEAH_PHY`).
const PHY: u32 = 8;
/// Fast rounds after which no Reno flow is believed to compete (`TCP_YEAH_ZETA`).
const ZETA: u32 = 50;
/// Slow rounds after which a loss halves (`TCP_YEAH_RHO`).
const RHO: u32 = 16;
/// A loss removes at least the window shifted by this (`TCP_YEAH_DELTA`).
const DELTA: u32 = 3;
/// Segments acknowledged per segment of growth in fast rounds (`TCP_SCALABLE_AI_CNT`).
const AI_CNT: u32 = 100;
/// No Reno flow seen.
const NO_RENO: u32 = 2;

/// `yeah-linux`.
pub const YEAH_LINUX: Entry = Entry {
    name: "yeah-linux",
    aliases: &[],
    kind: Kind::Module,
    about: "YeAH in whole segments: fast below 80 queued, Reno and draining above",
    source: "Linux 6.1 net/ipv4/tcp_yeah.c",
    params: &[],
    build: |_: &Params| Ok(Component::Module(Yeah::new().into())),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::testing::Bench;

    /// A flow in avoidance with a base of 100 ms and five samples at `rtt`, before the ACK that ends the round.
    fn at_round_end(cwnd: u32, rtt: u32) -> Bench<Yeah> {
        let mut t = Bench::past_start_up(Yeah::new(), cwnd);
        t.module.delay = RoundDelay {
            base: 100_000,
            min: rtt,
            samples: 5,
            ..RoundDelay::NEW
        };
        t
    }

    /// The ACK that ends a round.
    fn end(t: &mut Bench<Yeah>) {
        t.module.delay.end = t.sk.snd_una;
        t.ack_rtt(1, None);
    }

    /// Another round, all of it at `rtt`.
    fn next(t: &mut Bench<Yeah>, rtt: u32) {
        t.module.delay.min = rtt;
        t.module.delay.samples = 5;
        end(t);
    }

    #[test]
    fn published_backlogs_and_what_they_drain() {
        for (rtt, queue, w, slow) in [
            (105_000, 47, 1000, 0),
            (110_000, 90, 910, 1),
            (120_000, 166, 834, 1),
            (250_000, 600, 500, 1), // at most half
        ] {
            let mut t = at_round_end(1000, rtt);
            end(&mut t);
            assert_eq!(t.reported("queue"), f64::from(queue));
            assert_eq!(t.sk.cwnd, w);
            assert_eq!(t.module.slow_rounds, slow);
            if slow > 0 {
                assert_eq!((t.sk.ssthresh, t.module.reno), (w, w / 2));
            }
        }
    }

    #[test]
    fn eighty_segments_or_an_eighth_of_the_base_are_still_fast() {
        for (cwnd, rtt, slow) in [
            (890, 110_000, 0), // 80.9 -> 80
            (891, 110_000, 1), // 81
            (100, 112_500, 0), // 12 500 us
            (100, 112_501, 1),
        ] {
            let mut t = at_round_end(cwnd, rtt);
            end(&mut t);
            assert_eq!(t.module.slow_rounds, slow, "{cwnd} {rtt}");
        }
        let mut t = at_round_end(10, 112_506);
        t.module.delay.base = 100_007; // an eighth is 12 500.875
        t.module.delay.min = 112_507;
        end(&mut t);
        assert_eq!(t.module.slow_rounds, 0);
        t.module.delay.base = 100_007;
        next(&mut t, 112_508);
        assert_eq!(t.module.slow_rounds, 1);
    }

    #[test]
    fn delay_without_backlog_slows_but_does_not_drain() {
        let mut t = at_round_end(100, 150_000);
        end(&mut t);
        assert_eq!((t.sk.cwnd, t.module.reno), (100, 50));
    }

    #[test]
    fn fast_rounds_grow_by_a_segment_per_hundred_slow_ones_as_reno() {
        let mut t = at_round_end(1000, 100_000);
        t.module.delay.end = u64::MAX;
        t.acks_rtt(99, 100_000);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (1000, 99));
        t.ack_rtt(1, 100_000);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (1001, 0));
        t.ack_rtt(1000, 100_000);
        assert_eq!(t.sk.cwnd, 1011);
        t.module.slow_rounds = 1;
        t.ack_rtt(1010, 100_000);
        assert_eq!(t.sk.cwnd, 1011);
        t.ack_rtt(1, 100_000);
        assert_eq!(t.sk.cwnd, 1012);
        // An ACK for SACKed segments alone.
        t.sk.cwnd_cnt = 1012;
        t.module.cong_avoid(&mut t.sk, 0);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (1013, 0));
        let mut small = at_round_end(30, 100_000);
        small.module.delay.end = u64::MAX;
        small.acks_rtt(30, 100_000);
        assert_eq!(small.sk.cwnd, 31);
    }

    #[test]
    fn draining_stops_at_the_reno_estimate() {
        let mut t = at_round_end(1000, 200_000); // 500 queued
        t.module.reno = 700;
        end(&mut t);
        assert_eq!((t.sk.cwnd, t.sk.ssthresh, t.module.reno), (700, 700, 701));
        next(&mut t, 200_000);
        assert_eq!((t.sk.cwnd, t.module.reno), (700, 702)); // not above the estimate: nothing to drain
    }

    #[test]
    fn fifty_one_fast_rounds_forget_the_reno_flow() {
        let mut t = at_round_end(100, 150_000);
        end(&mut t);
        for _ in 0..50 {
            next(&mut t, 100_000);
        }
        assert_eq!((t.module.reno, t.module.fast_rounds), (50, 50));
        next(&mut t, 150_000); // a slow round does not start the count again
        assert_eq!((t.module.reno, t.module.fast_rounds), (51, 50));
        next(&mut t, 100_000);
        assert_eq!((t.module.reno, t.module.fast_rounds), (2, 0));
    }

    #[test]
    fn published_losses() {
        for (queue, left) in [(10, 875), (200, 800), (700, 500)] {
            let mut t = at_round_end(1000, 100_000);
            t.module.queue = queue;
            assert_eq!(t.ssthresh(), left);
        }
        for (rounds, left) in [(15, 875), (16, 500)] {
            let mut t = at_round_end(1000, 100_000);
            t.module.slow_rounds = rounds;
            t.module.reno = 9;
            t.module.fast_rounds = 40;
            assert_eq!(t.ssthresh(), left);
            assert_eq!((t.module.reno, t.module.fast_rounds), (4, 0));
        }
    }

    #[test]
    fn small_windows_leave_two() {
        for (w, left) in [(1, 2), (2, 2), (3, 2), (9, 8)] {
            let mut t = at_round_end(w, 100_000);
            t.module.queue = if w < 4 { 50 } else { 0 };
            assert_eq!(t.ssthresh(), left);
            assert_eq!(t.module.reno, 2);
        }
    }

    #[test]
    fn a_backlog_ends_slow_start_and_the_delay_makes_it_renos() {
        let mut t = at_round_end(1000, 110_000);
        t.sk.ssthresh = Socket::INFINITE;
        end(&mut t); // 1001 after slow start, 91 queued
        assert_eq!((t.sk.cwnd, t.sk.ssthresh), (910, 910));
        let mut t = at_round_end(100, 113_000);
        t.sk.ssthresh = Socket::INFINITE;
        end(&mut t);
        assert_eq!((t.sk.cwnd, t.sk.ssthresh), (101, Socket::INFINITE));
        assert_eq!(t.module.slow_rounds, 1);
        // What slow start leaves over grows by the mode.
        t.sk.ssthresh = 110;
        t.module.delay.end = u64::MAX;
        t.ack_rtt(10, None);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (110, 1));
    }

    #[test]
    fn rounds_of_a_flow_that_is_not_window_limited_do_not_end() {
        let mut t = at_round_end(1000, 200_000);
        t.sk.cwnd_limited = false;
        end(&mut t);
        assert_eq!(
            (t.sk.cwnd, t.module.slow_rounds, t.module.delay.samples),
            (1000, 0, 5)
        );
    }

    #[test]
    fn too_few_samples_judge_nothing() {
        let mut t = at_round_end(1000, 200_000);
        t.module.delay.samples = 2;
        end(&mut t);
        assert_eq!((t.sk.cwnd, t.module.slow_rounds), (1000, 0));
        assert_eq!(
            (t.module.delay.samples, t.module.delay.end),
            (0, t.sk.snd_nxt)
        );
    }

    #[test]
    fn the_rule_works_outside_the_open_state() {
        let mut t = at_round_end(1000, 200_000);
        t.module.set_state(&mut t.sk, Phase::Disorder);
        end(&mut t);
        assert_eq!(t.sk.cwnd, 500);
    }

    #[test]
    fn starting_again_keeps_the_mode() {
        let mut t = at_round_end(1000, 110_000);
        end(&mut t);
        t.module.on_event(&mut t.sk, Event::TxStart);
        assert_eq!(
            (t.module.queue, t.module.slow_rounds, t.module.reno),
            (90, 1, 455)
        );
        assert_eq!(t.module.delay.samples, 0);
        assert!(t.module.delay.base > 100_000);
    }

    #[test]
    fn slow_rounds_stop_counting() {
        let mut t = at_round_end(100, 150_000);
        t.module.slow_rounds = 0xff_fffe;
        end(&mut t);
        next(&mut t, 150_000);
        assert_eq!(t.module.slow_rounds, 0xff_ffff);
    }

    #[test]
    fn the_window_is_clamped() {
        assert_eq!(Bench::of(Yeah::new(), 10).sk.clamp, 33_554_431);
    }
}
