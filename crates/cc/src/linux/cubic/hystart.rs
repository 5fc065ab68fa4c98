//! When slow start ends (`hystart_update`), where it differs from the HyStart paper:
//!
//! - HyStart's ACK train need not begin with the round: it ends start-up once ACKs no further apart
//!   than 2 ms reach half the smallest RTT into it (the whole RTT if the sender paces), plus what
//!   four of the device's largest bursts take at the pacing rate, at most 1 ms (`hystart_update`,
//!   `hystart_ack_delay`).
//! - The delay test keeps lowering the round's RTT after its eight samples and can fire on any
//!   later ACK of the round (`hystart_update`).

use super::Cubic;
use crate::linux::socket::Socket;

/// Hybrid slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    pub(super) found: bool,
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
    /// Before the connection.
    pub(super) const NEW: Self = Self {
        found: false,
        samples: 0,
        round_start: 0,
        round_end: 0,
        train: 0,
        round_rtt: u32::MAX,
    };

    pub(super) fn next_round(&mut self, sk: &Socket) {
        self.round_start = sk.now_us() as u32;
        self.train = self.round_start;
        self.round_end = sk.snd_nxt;
        self.round_rtt = u32::MAX;
        self.samples = 0;
    }
}

impl Cubic {
    /// One RTT sample in slow start.
    pub(super) fn look_for_exit(&mut self, sk: &mut Socket, rtt: u32) {
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

/// Samples of a round before its RTT is judged (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u8 = 8;

/// Bounds of the rise that ends start-up, an eighth of the smallest RTT, microseconds
/// (`HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`).
const MIN_DELAY_US: u32 = 4_000;

const MAX_DELAY_US: u32 = 16_000;

/// Most that bursts may lengthen the train, microseconds (`hystart_ack_delay`).
const MAX_BURST_US: u64 = 1_000;

#[cfg(test)]
mod tests {
    use fullpipe_units::Span;

    use super::super::CUBIC_LINUX;
    use super::*;
    use crate::linux::testing::Bench;

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

    /// Unpaced: half of 100 ms and half of four bursts at twice the window's rate, 5.284 kB / 2.896
    /// MB/s = 1.8 ms, at most 1 ms.
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
        // 1448 B * 1000 / 100 ms, doubled: 28.96 MB/s; 4 * 1321 B take 182 us; with
        // gso_max_size=9014 4 * 8821 B take 1218 us.
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
}
