//! How the window grows (`bictcp_update`), where it differs from RFC 9438:
//!
//! - The curve gives no target but `cnt`, the segments to be acknowledged for one segment of
//!   growth, at least 2; it is computed anew when the window has changed or more than `HZ/32` ticks
//!   have passed, and at most once per tick.
//! - The clock of the curve is the tick, and the smallest RTT, rounded up to ticks, stands for the
//!   RFC's one RTT of foresight. `K` is in 1/1024 s, from a table and one Newton step, up to 0.15 %
//!   off (`cubic_root`).
//! - `beta` is 717/1024; the friendly window takes one segment per `15/8` windows, not
//!   `3(1-beta)/(1+beta)`, and never goes over to one per window (`cubictcp_register`).
//! - Before the first loss, and again after a timeout, the window grows by a twentieth per RTT at
//!   least.
//! - Below the origin the curve is subtracted in 32 bits: a target below zero wraps and gives the
//!   fastest growth.

use super::Cubic;
use crate::linux::socket::Socket;

/// State that `bictcp_reset` clears on a timeout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Curve {
    /// Segments to be acknowledged for one segment of growth.
    pub(super) cnt: u32,
    /// Window of the last loss, lowered by fast convergence; 0 before any.
    pub(super) w_max: u32,
    /// Window and tick of the last computation.
    seen: (u32, u32),
    /// Height of the curve's flat part.
    origin: u32,
    /// Time from the epoch's start to the flat part, 1/1024 s.
    pub(super) k: u32,
    /// Smallest RTT, microseconds; 0 before the first sample.
    pub(super) delay_min: u32,
    /// Tick at which the epoch began; 0 between a reduction and the next growth.
    pub(super) epoch: u32,
    /// Segments acknowledged and not yet credited to `w_est`.
    acked: u32,
    /// Window of a Reno flow with the same decrease.
    pub(super) w_est: u32,
}

impl Cubic {
    /// Brings `cnt` up to date.
    #[inline]
    pub(super) fn update(&mut self, sk: &Socket, acked: u32) {
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
}

/// Cube root of `a`. Below 64 rounded to the nearest (but 4 for 42); from there on a guess by the
/// leading four to six bits and one Newton step, at most 0.15 % off where roots are long.
fn cube_root(a: u64) -> u32 {
    let bits = u64::BITS - a.leading_zeros();
    if bits < 7 {
        return (u32::from(GUESSES[a as usize]) + 35) >> 6;
    }
    let octaves = ((bits * 84) >> 8) - 1; // a third of the bits
    let leading = (a >> (3 * octaves)) as usize;
    let guess = ((u32::from(GUESSES[leading]) + 10) << octaves) >> 6;
    let quotient = a / (u64::from(guess) * u64::from(guess - 1));
    ((2 * guess).wrapping_add(quotient as u32)).wrapping_mul(341) >> 10 // 341/1024 for a third
}

/// First guesses of the cube root by the leading bits of a number, each 64 times the guess, less
/// 10.
///
/// Rows 1 to 7 guess the root to the nearest integer, 1 or 2. A row from 8 on serves the numbers
/// from `row` to `row + 1`, times a power of eight, and guesses 1.8 to 4.0 % above the root in the
/// middle of them, 3.1 % on average: the Newton step takes 341/1024 for a third, 0.1 % too little,
/// and the two errors cancel over the row. Where they do so exactly is within 1.1 of each number
/// (rows 8 and 15: 1.6), but no rule that we know gives the numbers themselves. They are those of
/// Linux 6.1 `net/ipv4/tcp_cubic.c`, "refined by hand" there, and of Chromium's
/// `net/quic/congestion_control/cube_root.cc`, Copyright (c) 2013 The Chromium Authors, which
/// publishes them under a BSD licence (NOTICE, part 1).
#[rustfmt::skip]
const GUESSES: [u8; 64] = [
    0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156,
    157, 161, 164, 168, 170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199,
    200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221, 222, 224, 225, 227, 229,
    231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
];

/// Smallest `cnt`: half a segment of growth per acknowledged one (`bictcp_update`).
const FASTEST: u32 = 2;

/// Windows to be acknowledged per segment where the curve asks for none (`bictcp_update`).
const FLAT: u32 = 100;

/// Largest `cnt` before the first loss (`bictcp_update`).
const FIRST_GROWTH: u32 = 20;

#[cfg(test)]
mod tests {
    use fullpipe_units::Span;

    use super::super::tests::bench;
    use super::*;

    #[test]
    fn before_a_loss_it_grows_by_a_twentieth() {
        let mut b = bench(100, 1000, &[]);
        b.acks(19);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (1000, 19));
        assert_eq!(b.reported("cnt"), 20.0);
        b.acks(1);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (1001, 0));
    }

    /// From 700 to 1000 segments, HZ 100: K = 9294/1024 s (9.0856 s by the formula); heights of
    /// 410 t^3 / 2^40.
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

    /// At one segment below a maximum of 1642 the rounded `K` puts the start of the curve at -1:
    /// fastest growth.
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

    /// Mean error of the refined root over the numbers of a row, for an entry of `v`.
    fn mean_error(row: u8, v: f64) -> f64 {
        let guess = (v + 10.0) / 64.0;
        let error = |part: u32| {
            let a = f64::from(row) + (f64::from(part) + 0.5) / 64.0;
            341.0 / 1024.0 * (2.0 * guess + a / (guess * guess)) / libm::cbrt(a) - 1.0
        };
        (0..64).map(error).sum::<f64>() / 64.0
    }

    #[test]
    fn guesses_are_near_those_that_leave_no_mean_error() {
        for row in 8..64 {
            let near = if matches!(row, 8 | 15) { 1.6 } else { 1.1 };
            let v = f64::from(GUESSES[usize::from(row)]);
            assert!(mean_error(row, v - near) < 0.0, "{row}");
            assert!(mean_error(row, v + near) > 0.0, "{row}");
            let above = (v + 10.0) / 64.0 / libm::cbrt(f64::from(row) + 0.5) - 1.0;
            assert!((0.018..0.0405).contains(&above), "{row}: {above}");
        }
        for (row, guess) in GUESSES.iter().enumerate().take(8).skip(1) {
            let root = libm::round(libm::cbrt(row as f64));
            assert_eq!(f64::from(*guess), 64.0 * root - 10.0, "{row}");
        }
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
        // Every row that is ever refined, 32 times; the sum is that of the kernel's function
        // written anew in another language. A row that is off by one changes it.
        let of_row = |row: u64| (0..32).map(move |part| (row << 30) + (part << 25) + 12_345);
        let sum: u32 = (8..64).flat_map(of_row).map(cube_root).sum();
        assert_eq!(sum, 5_896_502);
    }
}
