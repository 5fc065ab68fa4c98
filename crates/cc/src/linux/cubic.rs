//! CUBIC with HyStart as Linux has them (`net/ipv4/tcp_cubic.c`, Linux 6.1), where it differs from RFC 9438 and from the HyStart paper:
//!
//! - The curve gives no target but `cnt`, the segments to be acknowledged for one segment of growth, at least 2; it is computed anew when
//!   the window has changed or more than `HZ/32` ticks have passed, and at most once per tick (`bictcp_update`).
//! - The clock of the curve is the tick, and the smallest RTT, rounded up to ticks, stands for the RFC's one RTT of foresight
//!   (`bictcp_update`). `K` is in 1/1024 s, from a table and one Newton step, up to 0.15 % off (`cubic_root`).
//! - `beta` is 717/1024; the friendly window takes one segment per `15/8` windows, not `3(1-beta)/(1+beta)`, and never goes over to one
//!   per window (`cubictcp_register`, `bictcp_update`).
//! - Before the first loss, and again after a timeout, the window grows by a twentieth per RTT at least (`bictcp_update`).
//! - A timeout forgets everything the reduction has just noted, the RTT's minimum included, and arms HyStart again
//!   (`cubictcp_state`). After a loss HyStart stays off for good if it has found its exit.
//! - RTT samples of the first second of an epoch are not looked at, whoever sent them (`cubictcp_acked`).
//! - Below the origin the curve is subtracted in 32 bits: a target below zero wraps and gives the fastest growth (`bictcp_update`).
//! - HyStart's ACK train need not begin with the round: it ends start-up once ACKs no further apart than 2 ms reach half the smallest
//!   RTT into it (the whole RTT if the sender paces), plus what four of the device's largest bursts take at the pacing rate, at
//!   most 1 ms (`hystart_update`, `hystart_ack_delay`).
//! - The delay test keeps lowering the round's RTT after its eight samples and can fire on any later ACK of the round (`hystart_update`).
//! - A pause shifts the epoch by the ticks between transmissions, never past now (`cubictcp_cwnd_event`).
//!
//! Undo gives back the window and nothing else (`tcp_reno_undo_cwnd`).

use super::{AckSample, Event, Module, Socket};
use crate::controller::Phase;
use crate::params::{ParamSpec, Params};
use crate::registry::{Component, Entry, Kind};

/// Module parameters and what the module makes of them when it is loaded.
#[derive(Clone, Copy, Debug)]
struct Settings {
    fast_convergence: bool,
    /// Kept on a reduction, 1/1024.
    beta: u32,
    initial_ssthresh: u32,
    /// `C` over the 100 ms the kernel takes for an RTT, 1/1024.
    curve: u32,
    /// What a distance in segments is multiplied by before the cube root gives 1/1024 s.
    inverse_curve: u64,
    friendly: bool,
    /// Eighths of a window to be acknowledged for one segment of the friendly window.
    friendly_pace: u32,
    hystart: bool,
    ack_train: bool,
    delay: bool,
    low_window: u32,
    ack_delta_us: u32,
    /// Largest burst of the device as the socket sees it, bytes.
    burst: u64,
}

/// CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    settings: Settings,
    curve: Curve,
    start: HyStart,
}

/// What a timeout forgets.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// Segments to be acknowledged for one segment of growth.
    cnt: u32,
    /// Window of the last loss, lowered by fast convergence; 0 before any.
    w_max: u32,
    /// Window and tick of the last computation.
    seen: (u32, u32),
    /// Height of the curve's flat part.
    origin: u32,
    /// Time from the epoch's start to the flat part, 1/1024 s.
    k: u32,
    /// Smallest RTT, microseconds; 0 before the first sample.
    delay_min: u32,
    /// Tick at which the epoch began; 0 between a reduction and the next growth.
    epoch: u32,
    /// Segments acknowledged and not yet credited to `w_est`.
    acked: u32,
    /// Window of a Reno flow with the same decrease.
    w_est: u32,
}

/// Hybrid slow start.
#[derive(Clone, Copy, Debug)]
struct HyStart {
    found: bool,
    samples: u8,
    /// Microseconds.
    round_start: u32,
    round_end: u64,
    /// The last ACK of the train, microseconds.
    train: u32,
    /// Smallest RTT of the round, microseconds.
    round_rtt: u32,
}

impl HyStart {
    fn next_round(&mut self, sk: &Socket) {
        self.round_start = sk.now_us() as u32;
        self.train = self.round_start;
        self.round_end = sk.snd_nxt;
        self.round_rtt = u32::MAX;
        self.samples = 0;
    }
}

impl Cubic {
    fn new(settings: Settings) -> Self {
        let start = HyStart {
            found: false,
            samples: 0,
            round_start: 0,
            round_end: 0,
            train: 0,
            round_rtt: u32::MAX,
        };
        Self {
            settings,
            curve: Curve::default(),
            start,
        }
    }

    /// Brings `cnt` up to date.
    #[inline]
    fn update(&mut self, sk: &Socket, acked: u32) {
        let (w, now) = (sk.cwnd, sk.jiffies());
        let c = &mut self.curve;
        c.acked = c.acked.wrapping_add(acked);
        let age = now.wrapping_sub(c.seen.1) as i32;
        if c.seen.0 == w && age <= (sk.hz / 32) as i32 {
            return;
        }
        if c.epoch == 0 || now != c.seen.1 {
            c.seen = (w, now);
            if c.epoch == 0 {
                self.begin_epoch(w, acked, now);
            }
            self.curve.cnt = self.cubic_count(sk, w, now);
        }
        if self.settings.friendly {
            self.be_friendly(w);
        }
        self.curve.cnt = self.curve.cnt.max(FASTEST);
    }

    fn begin_epoch(&mut self, w: u32, acked: u32, now: u32) {
        let c = &mut self.curve;
        (c.epoch, c.acked, c.w_est) = (now, acked, w);
        if w < c.w_max {
            let distance = u64::from(c.w_max - w);
            c.k = cube_root(self.settings.inverse_curve.wrapping_mul(distance));
            c.origin = c.w_max;
        } else {
            (c.k, c.origin) = (0, w);
        }
    }

    /// `cnt` of the curve one smallest RTT from now.
    fn cubic_count(&self, sk: &Socket, w: u32, now: u32) -> u32 {
        let c = &self.curve;
        let ticks =
            u64::from(now.wrapping_sub(c.epoch)) + u64::from(sk.usecs_to_jiffies(c.delay_min));
        let t = (ticks << 10) / u64::from(sk.hz);
        let k = u64::from(c.k);
        let off = t.abs_diff(k);
        let cube = u64::from(self.settings.curve)
            .wrapping_mul(off)
            .wrapping_mul(off)
            .wrapping_mul(off);
        let height = (cube >> 40) as u32;
        let target = if t < k {
            c.origin.wrapping_sub(height)
        } else {
            c.origin.wrapping_add(height)
        };
        let cnt = if target > w {
            w / (target - w)
        } else {
            w.wrapping_mul(FLAT)
        };
        if c.w_max == 0 {
            cnt.min(FIRST_GROWTH)
        } else {
            cnt
        }
    }

    /// Lowers `cnt` where a Reno flow with the same decrease would be ahead.
    fn be_friendly(&mut self, w: u32) {
        let c = &mut self.curve;
        let pace = w.wrapping_mul(self.settings.friendly_pace) >> 3;
        if c.acked > pace && pace > 0 {
            let grown = (c.acked - 1) / pace; // the last `pace` segments wait for one more
            c.acked -= grown * pace;
            c.w_est = c.w_est.wrapping_add(grown);
        }
        if c.w_est > w {
            c.cnt = c.cnt.min(w / (c.w_est - w));
        }
    }

    /// One RTT sample in slow start.
    fn look_for_exit(&mut self, sk: &mut Socket, rtt: u32) {
        if sk.snd_una > self.start.round_end {
            self.start.next_round(sk);
        }
        if sk.cwnd < self.settings.low_window {
            return;
        }
        let train = self.settings.ack_train && self.train_is_long(sk);
        let delay = self.settings.delay && self.delay_has_risen(rtt);
        if train || delay {
            self.start.found = true;
            sk.ssthresh = sk.cwnd;
        }
    }

    fn train_is_long(&mut self, sk: &Socket) -> bool {
        let now = sk.now_us() as u32;
        let gap = now.wrapping_sub(self.start.train) as i32;
        if gap > self.settings.ack_delta_us as i32 {
            return false; // and so do all later ACKs of the round
        }
        self.start.train = now;
        let length = self.curve.delay_min.wrapping_add(self.burst_us(sk));
        let length = if sk.paced { length } else { length / 2 };
        now.wrapping_sub(self.start.round_start) > length
    }

    /// Four largest bursts at the pacing rate, microseconds.
    fn burst_us(&self, sk: &Socket) -> u32 {
        match sk.pacing_rate() {
            0 => 0,
            rate => (self.settings.burst * 4 * 1_000_000 / rate).min(MAX_BURST_US) as u32,
        }
    }

    fn delay_has_risen(&mut self, rtt: u32) -> bool {
        let s = &mut self.start;
        s.round_rtt = s.round_rtt.min(rtt);
        if s.samples < MIN_SAMPLES {
            s.samples += 1;
            return false;
        }
        let base = self.curve.delay_min;
        s.round_rtt > base + (base >> 3).clamp(MIN_DELAY_US, MAX_DELAY_US)
    }
}

impl Module for Cubic {
    fn init(&mut self, sk: &mut Socket) {
        self.curve = Curve::default();
        self.start.found = false;
        if self.settings.hystart {
            self.start.next_round(sk);
        } else if self.settings.initial_ssthresh > 0 {
            sk.ssthresh = self.settings.initial_ssthresh;
        }
    }

    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        let beta = self.settings.beta;
        let c = &mut self.curve;
        c.epoch = 0;
        c.w_max = if sk.cwnd < c.w_max && self.settings.fast_convergence {
            sk.cwnd.wrapping_mul(SCALE + beta) / (2 * SCALE)
        } else {
            sk.cwnd
        };
        (sk.cwnd.wrapping_mul(beta) / SCALE).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if !sk.is_cwnd_limited() {
            return;
        }
        let mut left = acked;
        if sk.in_slow_start() {
            left = sk.slow_start(acked);
            if left == 0 {
                return;
            }
        }
        self.update(sk, left);
        sk.cong_avoid_ai(self.curve.cnt, left);
    }

    fn set_state(&mut self, sk: &mut Socket, new: Phase) {
        if new == Phase::Loss {
            self.curve = Curve::default();
            self.start.found = false;
            self.start.next_round(sk);
        }
    }

    fn on_event(&mut self, sk: &mut Socket, event: Event) {
        if event == Event::TxStart && self.curve.epoch != 0 {
            let now = sk.jiffies();
            let shifted = self.curve.epoch.wrapping_add(sk.idle_jiffies());
            self.curve.epoch = if now.wrapping_sub(shifted) as i32 >= 0 {
                shifted
            } else {
                now
            };
        }
    }

    #[inline]
    fn pkts_acked(&mut self, sk: &mut Socket, sample: &AckSample) {
        let Some(rtt) = sample.rtt_us else { return };
        let c = &mut self.curve;
        if c.epoch != 0 && (sk.jiffies().wrapping_sub(c.epoch) as i32) < sk.hz as i32 {
            return;
        }
        let rtt = rtt.max(1);
        if c.delay_min == 0 || rtt < c.delay_min {
            c.delay_min = rtt;
        }
        if self.settings.hystart && !self.start.found && sk.in_slow_start() {
            self.look_for_exit(sk, rtt);
        }
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("w_max", f64::from(self.curve.w_max));
        visit("k", f64::from(self.curve.k) / 1024.0);
        visit("w_est", f64::from(self.curve.w_est));
        visit("cnt", f64::from(self.curve.cnt));
        visit("delay_min", f64::from(self.curve.delay_min) / 1e6);
    }
}

/// Cube root of `a` from its leading bits, refined once.
fn cube_root(a: u64) -> u32 {
    let bits = u64::BITS - a.leading_zeros();
    if bits < 7 {
        return (u32::from(ROOTS[a as usize]) + 35) >> 6;
    }
    let octaves = ((bits * 84) >> 8) - 1; // a third of the bits
    let leading = (a >> (3 * octaves)) as usize;
    let guess = ((u32::from(ROOTS[leading]) + 10) << octaves) >> 6;
    let quotient = a / (u64::from(guess) * u64::from(guess - 1));
    ((2 * guess).wrapping_add(quotient as u32)).wrapping_mul(341) >> 10 // 341/1024 for a third
}

/// `cubic_root`'s table: 64 times the cube root of the index, less 10, corrected by hand.
#[rustfmt::skip]
const ROOTS: [u8; 64] = [
    0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156, 157, 161, 164, 168, 170, 173,
    176, 179, 181, 185, 187, 190, 192, 194, 197, 199, 200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221, 222,
    224, 225, 227, 229, 231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
];

/// Unit of `beta`.
const SCALE: u32 = 1024;

/// Smallest `cnt`: half a segment of growth per acknowledged one.
const FASTEST: u32 = 2;

/// Windows to be acknowledged per segment where the curve asks for none.
const FLAT: u32 = 100;

/// Largest `cnt` before the first loss.
const FIRST_GROWTH: u32 = 20;

/// Samples of a round before its RTT is judged.
const MIN_SAMPLES: u8 = 8;

/// Bounds of the rise that ends start-up, an eighth of the smallest RTT, microseconds.
const MIN_DELAY_US: u32 = 4_000;
const MAX_DELAY_US: u32 = 16_000;

/// Most that bursts may lengthen the train, microseconds.
const MAX_BURST_US: u64 = 1_000;

/// What a socket takes off the device's largest burst for headers, bytes (`MAX_TCP_HEADER` + 1 without wireless or tunnel drivers).
const HEADERS: u64 = 193;

const SOURCE: &str = "Linux 6.1 net/ipv4/tcp_cubic.c";

/// `cubic-linux`.
pub const CUBIC_LINUX: Entry = Entry {
    name: "cubic-linux",
    aliases: &[],
    kind: Kind::Module,
    about: "CUBIC with HyStart to the integer: a cubic in ticks, a twentieth per RTT before the first loss",
    source: SOURCE,
    params: &[
        ParamSpec::flag(
            "fast_convergence",
            true,
            "after a loss below the last maximum remember less than the window",
            SOURCE,
        ),
        ParamSpec::number(
            "beta",
            717.0,
            512.0..=1023.0,
            "1/1024",
            "kept on a reduction; below 512 the kernel's friendly loop never ends at a window of one segment",
            SOURCE,
        ),
        ParamSpec::number(
            "initial_ssthresh",
            0.0,
            0.0..=1e9,
            "segments",
            "first threshold, read only with hystart=off; 0: none",
            SOURCE,
        ),
        ParamSpec::number(
            "bic_scale",
            41.0,
            1.0..=1e5,
            "1/1024",
            "the curve's C times 100 ms; 41: 0.4 segments/s^3",
            SOURCE,
        ),
        ParamSpec::flag(
            "tcp_friendliness",
            true,
            "never slower than a Reno flow with the same decrease",
            SOURCE,
        ),
        ParamSpec::flag("hystart", true, "leave slow start before a loss", SOURCE),
        ParamSpec::number(
            "hystart_detect",
            3.0,
            0.0..=3.0,
            "bits",
            "what ends slow start: 1 a train of ACKs, 2 a longer RTT, 3 either",
            SOURCE,
        ),
        ParamSpec::number(
            "hystart_low_window",
            16.0,
            0.0..=1e9,
            "segments",
            "window from which HyStart looks",
            SOURCE,
        ),
        ParamSpec::number(
            "hystart_ack_delta_us",
            2000.0,
            0.0..=1e9,
            "us",
            "largest gap between two ACKs of a train",
            SOURCE,
        ),
        ParamSpec::number(
            "gso_max_size",
            1514.0,
            194.0..=65_536.0,
            "bytes",
            "largest burst the device takes (`ip link set gso_max_size`), one frame by default; lengthens the train HyStart allows",
            "Linux 6.1 net/core/sock.c, sk_setup_caps",
        ),
    ],
    build: |p: &Params| {
        let beta = p.whole("beta")?;
        let curve = p.whole("bic_scale")? * 10;
        let detect = p.whole("hystart_detect")?;
        let settings = Settings {
            fast_convergence: p.flag("fast_convergence"),
            beta,
            initial_ssthresh: p.whole("initial_ssthresh")?,
            curve,
            inverse_curve: (1 << 40) / u64::from(curve),
            friendly: p.flag("tcp_friendliness"),
            friendly_pace: 8 * (SCALE + beta) / 3 / (SCALE - beta),
            hystart: p.flag("hystart"),
            ack_train: detect & 1 != 0,
            delay: detect & 2 != 0,
            low_window: p.whole("hystart_low_window")?,
            ack_delta_us: p.whole("hystart_ack_delta_us")?,
            burst: u64::from(p.whole("gso_max_size")?) - HEADERS,
        };
        Ok(Component::Module(Cubic::new(settings).into()))
    },
};

#[cfg(test)]
mod tests {
    use fullpipe_units::Span;

    use super::*;
    use crate::linux::testing::Bench;

    fn bench(hz: u32, w: u32, params: &[(&str, &str)]) -> Bench {
        Bench::avoiding(&CUBIC_LINUX, params, hz, w)
    }

    const ROUND: u64 = 1_000_000;

    fn next_round(b: &mut Bench) {
        (b.sk.snd_una, b.sk.snd_nxt) = (ROUND, 2 * ROUND);
    }

    /// A bench in slow start with a smallest RTT of `rtt_us` and the round begun at time 0.
    fn starting(w: u32, rtt_us: u32, params: &[(&str, &str)]) -> Bench {
        let mut b = Bench::new(&CUBIC_LINUX, params, 100, w);
        b.rtt_us = Some(rtt_us);
        b.sk.snd_nxt = ROUND; // one for the whole test
        b.init();
        b.sk.snd_nxt = u64::from(w);
        b
    }

    #[test]
    fn before_a_loss_it_grows_by_a_twentieth() {
        let mut b = bench(100, 1000, &[]);
        b.acks(19);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (1000, 19));
        assert_eq!(b.reported("cnt"), 20.0);
        b.acks(1);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (1001, 0));
    }

    #[test]
    fn a_reduction_keeps_717_of_1024_and_at_least_two() {
        for (w, kept) in [(1000, 700), (10, 7), (3, 2), (2, 2), (1, 2)] {
            let mut b = bench(100, w, &[]);
            b.lose();
            assert_eq!(b.sk.ssthresh, kept, "{w}");
            assert_eq!(b.reported("w_max"), f64::from(w));
        }
        let mut b = bench(100, 1000, &[("beta", "819")]);
        b.lose();
        assert_eq!(b.sk.ssthresh, 799);
    }

    #[test]
    fn fast_convergence_remembers_1741_of_2048() {
        for (params, w_max) in [(&[][..], 680.0), (&[("fast_convergence", "off")], 800.0)] {
            let mut b = bench(100, 1000, params);
            b.lose();
            b.sk.cwnd = 800;
            b.lose();
            assert_eq!(b.reported("w_max"), w_max);
        }
    }

    /// From 700 to 1000 segments, HZ 100: K = 9294/1024 s (9.0856 s by the formula); heights of 410 t^3 / 2^40.
    #[test]
    fn the_curve_after_a_loss() {
        for (ticks, target, cnt) in [
            (0, 701, 700),
            (10, 711, 63),
            (50, 748, 14),
            (100, 790, 7),
            (200, 859, 4),
            (500, 973, 2),
            (1500, 1083, 2), // 700/383 = 1, and 2 is the least
        ] {
            let mut b = bench(100, 1000, &[("tcp_friendliness", "off")]);
            b.lose();
            b.open();
            b.acks(1); // the epoch begins
            assert_eq!(b.reported("k"), 9294.0 / 1024.0);
            b.wait(Span::from_millis(10 * ticks));
            b.sk.cwnd = 700;
            b.acks(1);
            assert_eq!(
                b.reported("cnt"),
                f64::from(cnt),
                "{ticks}: target {target}"
            );
        }
    }

    #[test]
    fn the_smallest_rtt_is_looked_ahead_in_whole_ticks() {
        let cnt = |rtt_us| {
            let mut b = bench(100, 1000, &[]);
            b.rtt_us = Some(rtt_us);
            b.acks(1);
            b.lose();
            b.open();
            b.sk.cwnd = 700;
            b.acks(1);
            b.reported("cnt")
        };
        assert_eq!(cnt(100_000), 63.0);
        assert_eq!(cnt(90_001), 63.0);
        assert_eq!(cnt(90_000), 70.0); // target 710
    }

    #[test]
    fn past_the_old_maximum_the_curve_begins_flat() {
        let mut b = bench(100, 1000, &[("tcp_friendliness", "off")]);
        b.lose();
        b.open();
        b.sk.cwnd = 1000;
        b.acks(1);
        assert_eq!((b.reported("k"), b.reported("cnt")), (0.0, 100_000.0));
    }

    #[test]
    fn cnt_waits_for_a_changed_window_or_more_than_a_thirtysecond_of_a_second() {
        let mut b = bench(100, 1000, &[("tcp_friendliness", "off")]);
        b.lose();
        b.open();
        b.acks(1);
        b.wait(Span::from_millis(30));
        b.acks(1);
        assert_eq!(b.reported("cnt"), 700.0, "HZ/32 is 3 ticks");
        b.wait(Span::from_millis(10));
        b.acks(1);
        assert_eq!(b.reported("cnt"), 140.0); // target 705 at 4 ticks
        b.wait(Span::from_millis(10));
        b.sk.cwnd = 701;
        b.acks(1);
        assert_eq!(b.reported("cnt"), 140.0); // target 706
        b.sk.cwnd = 704;
        b.acks(1);
        assert_eq!(b.reported("cnt"), 140.0, "once per tick");
        b.wait(Span::from_millis(10));
        b.acks(1);
        assert_eq!(b.reported("cnt"), 234.0); // 704 to 707
    }

    #[test]
    fn the_friendly_window_gains_a_segment_per_fifteen_eighths_of_a_window() {
        let mut b = bench(100, 140, &[]);
        b.lose(); // to 98
        b.open();
        b.sk.cwnd = 100;
        b.acks(1);
        assert_eq!(b.reported("w_est"), 100.0);
        let mut grown = None;
        for i in 2..400 {
            b.wait(Span::from_millis(40));
            b.sk.cwnd = 100;
            b.acks(1);
            if b.reported("w_est") > 100.0 {
                grown = Some(i);
                break;
            }
        }
        assert_eq!(grown, Some(188)); // more than 187 = 100 * 15 / 8
        let mut b = bench(100, 140, &[]);
        b.lose();
        b.open();
        b.sk.cwnd = 100;
        b.ack(1);
        b.sk.cwnd = 99; // a change, so that this tick is looked at
        b.ack(10 * 185);
        assert_eq!(b.reported("w_est"), 110.0);
        assert_eq!(b.reported("cnt"), 9.0); // 99 / 11
    }

    #[test]
    fn a_timeout_forgets_the_maximum_and_the_rtt_and_starts_over() {
        let mut b = bench(100, 1000, &[]);
        b.rtt_us = Some(50_000);
        b.acks(1);
        assert_eq!(b.reported("delay_min"), 0.05);
        b.time_out();
        assert_eq!(b.sk.ssthresh, 700);
        assert_eq!((b.reported("w_max"), b.reported("delay_min")), (0.0, 0.0));
        b.open();
        b.sk.cwnd = 700;
        b.acks(1);
        assert_eq!(b.reported("cnt"), 20.0, "as before the first loss");
    }

    #[test]
    fn for_a_second_after_an_epoch_begins_rtts_are_not_seen() {
        let mut b = bench(100, 1000, &[]);
        b.rtt_us = Some(50_000);
        b.acks(1);
        b.rtt_us = Some(40_000);
        b.wait(Span::from_millis(990));
        b.acks(1);
        assert_eq!(b.reported("delay_min"), 0.05);
        b.wait(Span::from_millis(10));
        b.acks(1);
        assert_eq!(b.reported("delay_min"), 0.04);
        b.rtt_us = Some(0);
        b.acks(1);
        assert_eq!(b.reported("delay_min"), 1e-6);
    }

    #[test]
    fn a_pause_shifts_the_epoch_but_not_past_now() {
        let mut b = bench(100, 1000, &[("tcp_friendliness", "off")]);
        b.lose();
        b.open();
        b.acks(1);
        b.wait(Span::from_millis(2_000));
        b.restart(Span::from_millis(1_500));
        b.acks(1);
        assert_eq!(b.reported("cnt"), 14.0); // 50 ticks
        b.restart(Span::from_millis(2_000));
        b.wait(Span::from_millis(100));
        b.sk.cwnd = 700;
        b.acks(1);
        assert_eq!(b.reported("cnt"), 63.0); // 10 ticks
    }

    /// At one segment below a maximum of 1642 the rounded `K` puts the start of the curve at -1: fastest growth.
    #[test]
    fn a_target_below_zero_wraps() {
        for (w_max, cnt) in [(1642, 2.0), (1616, 100.0)] {
            let mut b = bench(100, w_max, &[("tcp_friendliness", "off")]);
            b.lose();
            b.open();
            (b.sk.cwnd, b.sk.ssthresh) = (1, 1);
            b.acks(1);
            assert_eq!(b.reported("cnt"), cnt, "{w_max}");
        }
    }

    #[test]
    fn undo_gives_back_the_window_alone() {
        let mut b = bench(100, 1000, &[]);
        b.lose();
        b.undo();
        assert_eq!(b.sk.cwnd, 1000);
        assert_eq!(b.reported("w_max"), 1000.0);
    }

    #[test]
    fn slow_start_hands_the_rest_on_and_an_unused_window_stays() {
        let mut b = bench(100, 10, &[]);
        b.sk.ssthresh = 12;
        b.ack(25);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (13, 11)); // 2 to the threshold; 23 more than 22 = 12 * 15 / 8 make `cnt` 12
        b.sk.cwnd_limited = false;
        b.acks(100);
        assert_eq!(b.sk.cwnd, 13);
    }

    #[test]
    fn cube_roots() {
        for (a, root) in [
            (0, 0),
            (1, 1),
            (8, 2),
            (27, 3),
            (63, 4),
            (64, 4),
            (1_000_000, 100),
        ] {
            assert_eq!(cube_root(a), root, "{a}");
        }
        // Distances of 1, 10, 1000 and 100,000 segments in 1/1024 s.
        for (distance, k) in [(1, 1388), (10, 2991), (1000, 13_897), (100_000, 64_487)] {
            assert_eq!(cube_root(((1 << 40) / 410) * distance), k);
        }
        for distance in 1..20_000_u64 {
            let a = ((1 << 40) / 410) * distance;
            let error = f64::from(cube_root(a)) / libm::cbrt(a as f64) - 1.0;
            assert!(error.abs() < 0.001_522, "{distance}: {error}");
        }
    }

    /// Unpaced: half of 100 ms and half of four bursts at twice the window's rate, 5.284 kB / 2.896 MB/s = 1.8 ms, at most 1 ms.
    #[test]
    fn an_ack_train_of_half_an_rtt_ends_start_up() {
        for (paced, length) in [(false, 50_500), (true, 101_000)] {
            let mut b = starting(100, 100_000, &[]);
            b.sk.paced = paced;
            b.ack(1); // the pacing rate is known from here on
            let mut at = 0;
            while b.sk.in_slow_start() {
                b.wait(Span::from_micros(500));
                at += 500;
                b.sk.cwnd = 100;
                b.ack(1);
            }
            assert_eq!(at, length + 500, "{paced}");
            assert_eq!(b.sk.ssthresh, 100);
        }
    }

    #[test]
    fn bursts_lengthen_the_train_by_what_they_take() {
        // 1448 B * 1000 / 100 ms, doubled: 28.96 MB/s; 4 * 1321 B take 182 us; with gso_max_size=9014 4 * 8821 B take 1218 us.
        for (params, length) in [
            (&[][..], 50_091), // one frame of 1514 B
            (&[("gso_max_size", "3014")], 50_194),
            (&[("gso_max_size", "9014")], 50_500),
        ] {
            let mut b = starting(1000, 100_000, params);
            b.ack(1);
            for _ in 0..50 {
                b.wait(Span::from_micros(1000));
                b.sk.cwnd = 1000;
                b.ack(1);
                b.sk.update_pacing_rate();
            }
            let mut at = 50_000;
            while b.sk.in_slow_start() {
                b.wait(Span::from_micros(1));
                at += 1;
                b.sk.cwnd = 1000;
                b.ack(1);
            }
            assert_eq!(at, length + 1, "{params:?}");
        }
    }

    #[test]
    fn a_gap_breaks_the_train_until_the_next_round() {
        let mut b = starting(100, 100_000, &[("hystart_detect", "1")]);
        b.wait(Span::from_micros(2001));
        for _ in 0..200 {
            b.ack(1);
            b.wait(Span::from_micros(500));
        }
        assert!(b.sk.in_slow_start());
        next_round(&mut b);
        b.ack(1); // past the round's end: a new train begins here
        let mut at = 0;
        while b.sk.in_slow_start() {
            b.wait(Span::from_micros(2000));
            at += 2000;
            b.ack(1);
        }
        assert_eq!(at, 52_000);
    }

    #[test]
    fn eight_samples_above_a_bound_end_start_up() {
        // An eighth of the RTT, between 4 and 16 ms; the round's smallest counts.
        for (rtt, rise) in [(8_000, 4_000), (80_000, 10_000), (300_000, 16_000)] {
            for (extra, ends) in [(0, false), (1, true)] {
                let mut b = starting(100, rtt, &[("hystart_detect", "2")]);
                b.sk.cwnd = 15;
                b.ack(1); // sets the smallest RTT, and the window is too small to look
                b.sk.cwnd = 100;
                b.rtt_us = Some(rtt + rise + extra);
                for _ in 0..8 {
                    b.ack(1);
                    assert!(b.sk.in_slow_start());
                }
                b.ack(1);
                assert_eq!(!b.sk.in_slow_start(), ends, "{rtt} {rise} {extra}");
            }
        }
    }

    #[test]
    fn hystart_looks_from_sixteen_segments_on() {
        for (w, ends) in [(15, false), (16, true)] {
            let mut b = starting(w, 20_000, &[("hystart_detect", "2")]);
            b.ack(1);
            b.rtt_us = Some(40_000);
            next_round(&mut b);
            for _ in 0..10 {
                b.sk.cwnd = w;
                b.ack(1);
            }
            assert_eq!(b.sk.ssthresh == w, ends, "{w}");
        }
    }

    #[test]
    fn hystart_finds_one_exit_until_a_timeout() {
        let mut b = starting(100, 20_000, &[]);
        b.ack(1);
        b.rtt_us = Some(40_000);
        next_round(&mut b);
        b.acks(20);
        assert_eq!(b.sk.ssthresh, 109);
        b.sk.ssthresh = 10_000;
        b.acks(20);
        assert_eq!(b.sk.ssthresh, 10_000);
        b.time_out();
        (b.sk.cwnd, b.sk.ssthresh) = (15, 10_000);
        b.rtt_us = Some(20_000);
        b.ack(1); // seen, but too small a window to look
        b.rtt_us = Some(40_000);
        b.acks(20);
        assert_eq!(b.sk.ssthresh, 24);
    }

    #[test]
    fn a_first_threshold_needs_hystart_off() {
        for (hystart, ssthresh) in [("on", Socket::INFINITE), ("off", 80)] {
            let params = [("hystart", hystart), ("initial_ssthresh", "80")];
            let mut b = Bench::new(&CUBIC_LINUX, &params, 100, 10);
            b.init();
            assert_eq!(b.sk.ssthresh, ssthresh);
        }
    }

    #[test]
    fn parameters_are_whole_numbers() {
        let why = crate::rounds::try_component("cubic-linux", &[("hystart_low_window", "1.5")])
            .unwrap_err();
        assert_eq!(why, "hystart_low_window takes whole numbers, not 1.5");
    }
}
