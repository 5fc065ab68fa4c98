//! YeAH in the kernel's integers (Linux 6.1 `net/ipv4/tcp_yeah.c`).
//!
//! The law of Baiocchi, Castellani and Vacirca 2007: fast rounds grow as Scalable TCP does, slow
//! ones as Reno, and a slow round with a long queue `Q` gives the queue back. What the integers and
//! the kernel's call sites add to it:
//!
//! - `Q` divides by the round's RTT (Vegas' module by the base); `1/phi` of the base is rounded
//!   down to whole microseconds; the part given back is all of `Q`, at most half of the window
//!   (`tcp_yeah_cong_avoid`).
//! - Rounds end only with ACKs of a window-limited flow; what Vegas measures outside the open state
//!   counts: the rule works in disorder and loss too.
//! - Slow start is under the rule as well: 80 queued segments end it, and a queueing delay of an
//!   eighth of the base makes what follows it Reno.
//! - The first slow round takes the competing Reno flow to have half of this flow's window; it
//!   grows by one per slow round, keeps its window through fast ones, and is forgotten after 51 of
//!   those since the last loss. What is given back stops at its window.
//! - A loss removes the last measured `Q`, however old (`tcp_yeah_ssthresh`).
//! - Each reduction halves the Reno flow too, one that is undone and one for a mark included.
//! - Transmission with nothing in flight forgets the base, but neither the mode nor `Q`
//!   (`tcp_vegas_cwnd_event`).
//! - The window is clamped to `(2^32 - 1) / 128` segments (`tcp_yeah_init`).

use super::round_delay::RoundDelay;
use crate::controller::Phase;
use crate::entry::Entry;
use crate::linux::module::{AckSample, Event, Module};
use crate::linux::socket::Socket;

/// YeAH.
#[derive(Clone, Debug)]
pub struct Yeah {
    delay: RoundDelay,
    /// `Q` of the last measured round, segments.
    q: u32,
    /// Slow rounds in a row; 0 in the fast mode.
    slow_rounds: u32,
    rival: Rival,
}

/// The Reno flow that may share the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rival {
    /// `cwnd_reno`, segments; [`Rival::UNSEEN`] if there is none.
    window: u32,
    /// Fast rounds since the last loss, up to `zeta`.
    fast_rounds: u32,
}

impl Rival {
    const UNSEEN: u32 = 2;
    const NONE: Self = Self {
        window: Self::UNSEEN,
        fast_rounds: 0,
    };

    /// A slow round, which ended with `w` segments for this flow.
    fn slow_round(&mut self, w: u32) {
        self.window = match self.window {
            0..=Self::UNSEEN => halved(w),
            seen => seen.wrapping_add(1),
        };
    }

    fn fast_round(&mut self) {
        self.fast_rounds += 1;
        if self.fast_rounds > ZETA {
            *self = Self::NONE;
        }
    }

    fn loss(&mut self) {
        *self = Self {
            window: halved(self.window),
            fast_rounds: 0,
        };
    }
}

impl Yeah {
    fn new() -> Self {
        Self {
            delay: RoundDelay::NEW,
            q: 0,
            slow_rounds: 0,
            rival: Rival::NONE,
        }
    }

    fn end_round(&mut self, sk: &mut Socket) {
        if self.delay.is_measured() {
            self.q = queued(sk.cwnd, &self.delay);
            if self.q > Q_MAX {
                self.decongest(sk);
            }
            self.choose_mode(sk.cwnd);
        }
        self.delay.end = sk.snd_nxt;
        self.delay.forget_round();
    }

    /// Precautionary decongestion: `Q` leaves the window, unless that falls behind the rival.
    fn decongest(&self, sk: &mut Socket) {
        let without_queue = sk.cwnd - self.q.min(sk.cwnd / 2);
        if self.rival.window < sk.cwnd {
            sk.cwnd = without_queue.max(self.rival.window);
            sk.ssthresh = sk.cwnd;
        }
    }

    /// Fast while both `Q <= Q_max` and `L <= 1/phi`, with `L` the queueing delay over the base.
    fn choose_mode(&mut self, w: u32) {
        let fast = self.q <= Q_MAX && self.delay.queueing() <= self.delay.base / PHI;
        if fast {
            self.slow_rounds = 0;
            self.rival.fast_round();
        } else {
            self.slow_rounds = COUNT_END.min(self.slow_rounds + 1);
            self.rival.slow_round(w);
        }
    }

    /// Segments to be acknowledged for one segment of growth.
    fn acks_per_segment(&self, w: u32) -> u32 {
        if self.slow_rounds > 0 {
            w
        } else {
            w.min(SCALABLE)
        }
    }

    /// Segments that a loss removes: `min(max(w/delta, Q), w/2)`, or half against a rival.
    fn removed(&self, w: u32) -> u32 {
        let half = halved(w);
        if self.slow_rounds < RHO {
            half.min(self.q.max(w / DELTA))
        } else {
            half
        }
    }
}

/// `Q = w (rtt - base) / rtt`, segments.
fn queued(w: u32, delay: &RoundDelay) -> u32 {
    (u64::from(w) * u64::from(delay.queueing()) / u64::from(delay.min)) as u32
}

/// Half a window, two segments at least.
fn halved(w: u32) -> u32 {
    (w / 2).max(2)
}

impl Module for Yeah {
    fn init(&mut self, sk: &mut Socket) {
        self.q = 0;
        self.slow_rounds = 0;
        self.rival.window = Rival::UNSEEN;
        self.delay.restart(sk);
        sk.clamp = sk.clamp.min(LARGEST);
    }

    fn on_event(&mut self, sk: &mut Socket, event: Event) {
        self.delay.on_event(sk, event);
    }

    fn set_state(&mut self, sk: &mut Socket, new: Phase) {
        self.delay.enter(sk, new);
    }

    fn pkts_acked(&mut self, _sk: &mut Socket, sample: &AckSample) {
        self.delay.sample(sample);
    }

    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if !sk.is_cwnd_limited() {
            return;
        }
        if let Some(left) = sk.past_slow_start(acked) {
            sk.cong_avoid_ai(self.acks_per_segment(sk.cwnd), left);
        }
        if self.delay.is_over(sk) {
            self.end_round(sk);
        }
    }

    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        self.rival.loss();
        sk.cwnd.saturating_sub(self.removed(sk.cwnd)).max(2)
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("queue", f64::from(self.q));
        visit("slow_rounds", f64::from(self.slow_rounds));
        visit("fast_rounds", f64::from(self.rival.fast_rounds));
        visit("reno", f64::from(self.rival.window));
        visit("base_us", f64::from(self.delay.base));
    }
}

/// `Q_max`: a longer queue makes a round slow, segments.
const Q_MAX: u32 = 80;
/// `phi`: a queueing delay above the base over this makes a round slow.
const PHI: u32 = 8;
/// `zeta`: fast rounds after which no Reno flow is believed to compete.
const ZETA: u32 = 50;
/// `rho`: slow rounds after which a loss halves.
const RHO: u32 = 16;
/// `delta`: a loss removes at least the window over this.
const DELTA: u32 = 8;
/// Segments acknowledged per segment of growth in fast rounds: Scalable TCP's 1 % (Kelly 2003).
const SCALABLE: u32 = 100;
/// Where the count of slow rounds stays.
const COUNT_END: u32 = 0xff_ffff;
/// Largest window, segments.
const LARGEST: u32 = u32::MAX / 128;

/// `yeah-linux`.
pub const YEAH_LINUX: Entry<Yeah> = Entry {
    name: "yeah-linux",
    aliases: &[],
    about: "YeAH in whole segments: fast below 80 queued, Reno and draining above",
    source: "Linux 6.1 net/ipv4/tcp_yeah.c",
    params: &[],
    build: |_| Ok(Yeah::new()),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::testing::Bench;

    /// A flow in avoidance with a base of 100 ms and five samples at `rtt`, before the ACK that
    /// ends the round.
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
                assert_eq!((t.sk.ssthresh, t.module.rival.window), (w, w / 2));
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
        assert_eq!((t.sk.cwnd, t.module.rival.window), (100, 50));
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
        t.module.rival.window = 700;
        end(&mut t);
        assert_eq!(
            (t.sk.cwnd, t.sk.ssthresh, t.module.rival.window),
            (700, 700, 701)
        );
        next(&mut t, 200_000);
        // Not above the rival: nothing to give back.
        assert_eq!((t.sk.cwnd, t.module.rival.window), (700, 702));
    }

    #[test]
    fn fifty_one_fast_rounds_forget_the_reno_flow() {
        let mut t = at_round_end(100, 150_000);
        end(&mut t);
        for _ in 0..50 {
            next(&mut t, 100_000);
        }
        assert_eq!(
            (t.module.rival.window, t.module.rival.fast_rounds),
            (50, 50)
        );
        next(&mut t, 150_000); // a slow round does not start the count again
        assert_eq!(
            (t.module.rival.window, t.module.rival.fast_rounds),
            (51, 50)
        );
        next(&mut t, 100_000);
        assert_eq!((t.module.rival.window, t.module.rival.fast_rounds), (2, 0));
    }

    #[test]
    fn published_losses() {
        for (queue, left) in [(10, 875), (200, 800), (700, 500)] {
            let mut t = at_round_end(1000, 100_000);
            t.module.q = queue;
            assert_eq!(t.ssthresh(), left);
        }
        for (rounds, left) in [(15, 875), (16, 500)] {
            let mut t = at_round_end(1000, 100_000);
            t.module.slow_rounds = rounds;
            t.module.rival.window = 9;
            t.module.rival.fast_rounds = 40;
            assert_eq!(t.ssthresh(), left);
            assert_eq!((t.module.rival.window, t.module.rival.fast_rounds), (4, 0));
        }
    }

    #[test]
    fn small_windows_leave_two() {
        for (w, left) in [(1, 2), (2, 2), (3, 2), (9, 8)] {
            let mut t = at_round_end(w, 100_000);
            t.module.q = if w < 4 { 50 } else { 0 };
            assert_eq!(t.ssthresh(), left);
            assert_eq!(t.module.rival.window, 2);
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
            (t.module.q, t.module.slow_rounds, t.module.rival.window),
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
