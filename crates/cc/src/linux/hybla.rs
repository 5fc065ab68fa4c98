//! Hybla in the kernel's integers (Linux 6.1 `net/ipv4/tcp_hybla.c`).
//!
//! The law of Caini and Firrincieli 2004: with `rho = RTT / RTT0` an ACK adds `2^rho - 1` segments
//! in slow start and `rho^2 / W` in congestion avoidance, so that a long path grows in seconds as
//! the reference path of `RTT0` does. What differs from the paper:
//!
//! - Growth is added once per ACK, whatever it acknowledges: delayed ACKs halve it
//!   (`hybla_cong_avoid`).
//! - The first window is `rho` segments, not `rho` times the initial one, which it replaces; the
//!   threshold is not scaled (`hybla_init`). The window ends at 65,535 segments. That
//!   replaces a smaller clamp in the kernel; here a cap that somebody asks for stays.
//! - `rho` is in whole eighths, from the smoothed RTT, and only a new minimum of that lowers it;
//!   never below 1 (`hybla_recalc_param`). The handshake's sample counts: an inflated one raises
//!   the first growth.
//! - `2^rho` is a power of two, at most 2^16, times an eighth step from a table in 1/128
//!   (`hybla_fraction`).
//! - `rho^2 / W` is rounded down to 1/128; below 1/128 a window of ACKs gives one segment, as Reno
//!   (`hybla_cong_avoid`).
//! - Outside the open state it is Reno, one segment per segment, with Reno's carry (`hybla_state`).
//! - Decrease and undo are Reno's: half.

use crate::controller::Phase;
use crate::entry::Entry;
use crate::linux::module::Module;
use crate::linux::socket::Socket;

/// Hybla.
#[derive(Clone, Debug)]
pub struct Hybla {
    /// `RTT0`, ms.
    rtt0_ms: u32,
    /// `rho` in eighths; 0: not yet known.
    rho: u32,
    /// The smoothed RTT that `rho` stands for, the smallest so far, 1/8 us.
    least_srtt: u32,
    /// Growth earned and not yet paid out, below [`SEGMENT`].
    purse: u32,
    /// The state is open.
    open: bool,
}

impl Hybla {
    fn new(rtt0_ms: u32) -> Self {
        Self {
            rtt0_ms,
            rho: 0,
            least_srtt: 0,
            purse: 0,
            open: true,
        }
    }

    /// `rho = RTT / RTT0`, at least 1. The smoothed RTT is in eighths, and so is the quotient.
    fn set_rho(&mut self, srtt_us: u32) {
        self.rho = (srtt_us / (1000 * self.rtt0_ms)).max(8);
    }

    fn follow_least_srtt(&mut self, srtt_us: u32) {
        if self.least_srtt > srtt_us {
            self.least_srtt = srtt_us;
            self.set_rho(srtt_us);
        }
    }

    /// Slow start: `W + 2^rho - 1`, up to the threshold.
    fn slow_start(&mut self, sk: &mut Socket) {
        let grown = sk.cwnd + self.earn(sk, power_of_two(self.rho) - SEGMENT);
        sk.cwnd = grown.min(sk.ssthresh);
    }

    /// Congestion avoidance: `W + rho^2 / W`. Where that is less than a segment the ACK counts
    /// towards Reno's growth too, which is what remains when it rounds to nothing.
    fn avoid(&mut self, sk: &mut Socket) {
        let increment = square(self.rho) / sk.cwnd;
        sk.cwnd_cnt += u32::from(increment < SEGMENT);
        if increment > 0 {
            sk.cwnd += self.earn(sk, increment);
        } else if sk.cwnd_cnt >= sk.cwnd {
            sk.cwnd += 1;
            sk.cwnd_cnt = 0;
        }
    }

    /// Puts `increment` into the purse and takes the whole segments out. Where the fractions of
    /// several ACKs make one of them, Reno's count begins again.
    fn earn(&mut self, sk: &mut Socket, increment: u32) -> u32 {
        let fractions = self.purse + increment % SEGMENT;
        if fractions >= SEGMENT {
            sk.cwnd_cnt = 0;
        }
        self.purse = fractions % SEGMENT;
        increment / SEGMENT + fractions / SEGMENT
    }
}

/// `2^rho` for `rho` in eighths, 1/128 segments.
fn power_of_two(rho: u32) -> u32 {
    let step = u32::from(EIGHTHS[(rho % 8) as usize]);
    step << LARGEST_POWER.min(rho / 8)
}

/// `rho^2` for `rho` in eighths: 64ths, twice that in 1/128.
fn square(rho: u32) -> u32 {
    rho.wrapping_mul(rho) << 1
}

impl Module for Hybla {
    fn init(&mut self, sk: &mut Socket) {
        *self = Self::new(self.rtt0_ms);
        self.least_srtt = sk.srtt_us;
        self.set_rho(sk.srtt_us);
        sk.cwnd = self.rho / 8;
        sk.clamp = sk.clamp.min(LARGEST);
    }

    fn set_state(&mut self, _sk: &mut Socket, new: Phase) {
        self.open = new == Phase::Open;
    }

    #[inline]
    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        self.follow_least_srtt(sk.srtt_us);
        if !self.open {
            sk.reno_cong_avoid(acked);
        } else if sk.is_cwnd_limited() {
            if self.rho == 0 {
                self.set_rho(sk.srtt_us);
            }
            if sk.in_slow_start() {
                self.slow_start(sk);
            } else {
                self.avoid(sk);
            }
            sk.cwnd = sk.cwnd.min(sk.clamp);
        }
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("rho", f64::from(self.rho) / 8.0);
        visit("a", f64::from(square(self.rho)) / f64::from(SEGMENT));
        visit("carry", f64::from(self.purse) / f64::from(SEGMENT));
    }
}

/// One segment of growth.
const SEGMENT: u32 = 128;

/// `128 * 2^(k/8)`, rounded down.
const EIGHTHS: [u8; 8] = [128, 139, 152, 165, 181, 197, 215, 234];

/// Largest power of two that one ACK adds in slow start.
const LARGEST_POWER: u32 = 16;

/// Largest window, segments.
const LARGEST: u32 = 65_535;

const SOURCE: &str = "Linux 6.1 net/ipv4/tcp_hybla.c";

/// `hybla-linux`.
pub const HYBLA_LINUX: Entry<Hybla> = Entry {
    name: "hybla-linux",
    aliases: &[],
    about: "Hybla to the integer: rho in eighths, once per ACK, first window rho",
    source: SOURCE,
    params: &[param!(rtt0: number = 25.0, 1.0..=10_000.0, "ms",
        "RTT of the path whose growth is imitated", SOURCE)],
    build: |p| Ok(Hybla::new(p.whole("rtt0")?)),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::testing::Bench;

    /// In slow start on a path of `rtt_us`, initialised; the window is `rho`.
    fn starting(rtt_us: u32) -> Bench {
        let mut b = Bench::new(&HYBLA_LINUX, &[], 100, 10);
        b.sk.srtt_us = 8 * rtt_us;
        b.init();
        b
    }

    fn avoiding(rtt_us: u32, w: u32) -> Bench {
        let mut b = starting(rtt_us);
        (b.sk.cwnd, b.sk.ssthresh) = (w, 1);
        b
    }

    #[test]
    fn the_first_window_is_rho() {
        for (rtt_us, w) in [
            (1000, 1),
            (25_000, 1),
            (49_999, 1),
            (50_000, 2),
            (600_000, 24),
        ] {
            let b = starting(rtt_us);
            assert_eq!((b.sk.cwnd, b.sk.clamp), (w, 65_535), "{rtt_us}");
        }
        // A cap of the user's.
        let mut b = starting(25_000);
        b.sk.clamp = 77;
        b.init();
        assert_eq!(b.sk.clamp, 77);
        let mut b = Bench::new(&HYBLA_LINUX, &[("rtt0", "50")], 100, 10);
        b.init(); // 100 ms
        assert_eq!((b.sk.cwnd, b.reported("a")), (2, 4.0));
    }

    /// `2^rho - 1` per ACK at the reference's RTTs, 2^16 at most; `rho^2` per window.
    #[test]
    fn increments_by_rtt() {
        for (ms, start, avoidance) in [
            (25, 1, 1.0),
            (50, 3, 4.0),
            (100, 15, 16.0),
            (250, 1023, 100.0),
            (600, 65_511, 576.0), // the clamp; 65,535 without
        ] {
            let mut b = starting(ms * 1000);
            let w = b.sk.cwnd;
            b.ack(1);
            assert_eq!(b.sk.cwnd - w, start, "{ms}");
            assert_eq!(b.reported("a"), avoidance, "{ms}");
        }
        let module = Hybla {
            rho: 8 * 24,
            ..Hybla::new(25)
        };
        assert_eq!(power_of_two(module.rho) - SEGMENT, 65_535 * 128);
    }

    #[test]
    fn eighths_of_a_power_are_rounded_down() {
        for (k, entry) in EIGHTHS.into_iter().enumerate() {
            assert_eq!(
                libm::floor(128.0 * libm::exp2(k as f64 / 8.0)),
                f64::from(entry)
            );
        }
        let mut b = starting(87_000); // 27 eighths
        assert_eq!((b.sk.cwnd, b.reported("rho")), (3, 3.375));
        b.ack(1); // (165 << 3) - 128 = 1192 = 9 * 128 + 40
        assert_eq!((b.sk.cwnd, b.reported("carry")), (12, 40.0 / 128.0));
        b.acks(3); // 40 more each: the fourth makes 160
        assert_eq!((b.sk.cwnd, b.reported("carry")), (40, 32.0 / 128.0));
    }

    #[test]
    fn growth_is_per_ack() {
        let mut b = avoiding(100_000, 1000);
        b.ack(500); // 2048 / 1000 = 2
        assert_eq!(b.reported("carry"), 2.0 / 128.0);
        b.acks(63);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (1001, 0));
        let mut b = avoiding(100_000, 16);
        b.ack(1);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (17, 0));
    }

    #[test]
    fn too_small_an_increment_gives_one_segment_per_window_of_acks() {
        let mut b = avoiding(100_000, 2049);
        b.acks(2048);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (2049, 2048));
        b.ack(1);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (2050, 0));
    }

    #[test]
    fn a_smaller_smoothed_rtt_lowers_rho_even_unused_and_a_larger_one_does_not_raise_it() {
        let mut b = avoiding(100_000, 1000);
        b.sk.cwnd_limited = false;
        b.sk.srtt_us = 8 * 200_000;
        b.ack(1);
        assert_eq!(b.reported("rho"), 4.0);
        b.sk.srtt_us = 8 * 50_000;
        b.ack(1);
        assert_eq!((b.reported("rho"), b.sk.cwnd_cnt), (2.0, 0));
        b.sk.srtt_us = 8;
        b.ack(1);
        assert_eq!(b.reported("rho"), 1.0);
    }

    #[test]
    fn outside_the_open_state_it_is_reno() {
        let mut b = avoiding(100_000, 10);
        b.state(Phase::Disorder);
        b.acks(10);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (11, 0));
        (b.sk.cwnd, b.sk.ssthresh) = (1, 100);
        b.state(Phase::Loss);
        b.ack(2);
        assert_eq!(b.sk.cwnd, 3);
        b.state(Phase::Open);
        b.ack(1);
        assert_eq!(b.sk.cwnd, 18);
    }

    #[test]
    fn slow_start_ends_at_the_threshold_and_a_loss_halves() {
        let mut b = starting(100_000);
        b.sk.ssthresh = 10;
        b.ack(1);
        assert_eq!(b.sk.cwnd, 10);
        b.sk.cwnd = 1001;
        b.lose();
        assert_eq!(b.sk.ssthresh, 500);
        b.undo();
        assert_eq!(b.sk.cwnd, 1001);
    }

    #[test]
    fn a_connection_without_a_handshake_learns_rho_at_the_first_growth() {
        let mut b = Bench::new(&HYBLA_LINUX, &[], 100, 10);
        b.ack(1);
        assert_eq!((b.sk.cwnd, b.reported("rho")), (25, 4.0));
    }
}
