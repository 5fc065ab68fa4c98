//! One-way delays from two clocks in milliseconds, their extremes and their threshold; what the paper does not say:
//!
//! - One-way delays are differences of the two hosts' time-stamp clocks in whole milliseconds, `TSval * (1000 / hz) - TSecr` in 32 bits,
//!   with `hz` an estimate of the receiver's clock rate (`tcp_lp_owd_calculator`). The integer quotient multiplies the clock
//!   itself: while `hz` is 501 to 1000 the difference is the delay, at 334 to 500 it is the receiver's uptime and the delay, above
//!   1000 it is minus the sender's uptime. Hence [`Lp::clock_origin`]. A delay of 0 ms is no delay.
//! - The estimate moves by a 64th of each error, and what is below 1 Hz is thrown away each time, downwards: an error of -1 Hz takes
//!   a whole hertz, one of +63 Hz adds none (`tcp_lp_remote_hz_estimator`). Each sample is a quotient of the differences between two ACKs,
//!   one or two milliseconds long on a busy path, so that estimates wander.
//! - The smallest and the largest delay begin as the first one, the smoothed delay as well, and "within" means below: the very first
//!   valid delay is an early indication (`tcp_lp_pkts_acked`).
//! - Nothing but the first ACK's `TSecr = 0` is told from an unset one: time 0 is never a reference, nor an indication's time.
//! - `tcp_timestamps = 1` shifts the receiver's stamps by a random number for each connection, of which TSecr is freed and TSval is not.
//!   The delay is then that number plus the delay. Eight times it overflows 32 bits for seven connections in eight: the smoothed
//!   delay loses its upper three bits, lies below the smallest delay and stays there, and LP is Reno. In the eighth, the
//!   extremes after the first indication are far apart, and their 15 % too many milliseconds for a queue to reach. The parameter
//!   `stamp_offset` is that number; its default is `tcp_timestamps = 2`, without one.

use fullpipe_units::Time;

use super::Lp;
use crate::linux::Socket;

/// The stamps of an ACK, as the module reads them, ms.
#[derive(Clone, Copy)]
pub(super) struct Clocks {
    pub(super) now: u32,
    pub(super) value: u32,
    pub(super) echo: u32,
}

impl Lp {
    pub(super) fn clocks(&self, sk: &Socket) -> Clocks {
        let local = |t: Time| ((t.as_nanos() / 1_000_000) as u32).wrapping_add(self.clock_origin);
        Clocks {
            now: local(sk.now),
            value: sk
                .stamps
                .value_ms
                .wrapping_add(self.clock_origin)
                .wrapping_add(self.stamp_offset),
            echo: local(sk.stamps.echo),
        }
    }

    fn estimate_hz(&mut self, at: Clocks) {
        let known = self.last_value != 0 && self.last_echo != 0;
        let mut hz64 = i64::from(self.remote_hz << 6);
        if known && at.value != self.last_value && at.echo != self.last_echo {
            let ticks = at.value.wrapping_sub(self.last_value);
            let ms = at.echo.wrapping_sub(self.last_echo);
            let sample = i64::from(ticks.wrapping_mul(LOCAL_HZ) / ms);
            if hz64 > 0 {
                hz64 += sample - (hz64 >> 6);
            } else {
                hz64 = sample << 6;
            }
        }
        self.valid_hz = hz64 >> 6 > 0;
        self.last_value = at.value;
        self.last_echo = at.echo;
        self.remote_hz = (hz64 >> 6) as u32;
    }

    /// The delay in ms, if there is one.
    pub(super) fn delay(&mut self, at: Clocks) -> Option<u32> {
        self.estimate_hz(at);
        if !self.valid_hz {
            return None;
        }
        let scaled = at.value.wrapping_mul(LOCAL_HZ / self.remote_hz);
        Some(scaled.wrapping_sub(at.echo)).filter(|owd| *owd > 0)
    }

    pub(super) fn take_delay(&mut self, owd: u32) {
        self.owd_min = self.owd_min.min(owd);
        if owd > self.owd_max {
            self.owd_max = owd;
            if owd > self.owd_max_reserve {
                let reserve = std::mem::replace(&mut self.owd_max_reserve, owd);
                if reserve != 0 {
                    self.owd_max = reserve;
                }
            }
        }
        self.sowd = if self.sowd == 0 {
            owd << 3
        } else {
            self.sowd.wrapping_add(owd).wrapping_sub(self.sowd >> 3)
        };
    }

    /// Below this the smoothed delay is no indication, ms.
    pub(super) fn threshold(&self) -> u32 {
        let range = self.owd_max.wrapping_sub(self.owd_min);
        self.owd_min
            .wrapping_add(range.wrapping_mul(DELTA_PERCENT) / 100)
    }
}

/// Ticks per second of the sender's time stamps (`LP_RESOL`).
const LOCAL_HZ: u32 = 1000;

/// Part of the range of delays above which a smoothed delay is an indication, per cent (`tcp_lp_pkts_acked`).
const DELTA_PERCENT: u32 = 15;

#[cfg(test)]
mod tests {
    use super::super::tests::lp;
    use super::*;
    use crate::controller::Stamps;
    use crate::linux::Module;
    use crate::linux::testing::Bench;

    #[test]
    fn the_rate_falls_by_whole_hertz_and_rises_by_64ths() {
        let mut lp = Lp::default();
        let mut at = Clocks {
            now: 0,
            value: 5000,
            echo: 4000,
        };
        lp.estimate_hz(at);
        assert!(!lp.valid_hz);
        for (ticks, ms, hz) in [
            (1000, 1000, 1000),
            (1063, 1000, 1000),
            (1064, 1000, 1001),
            (1000, 1000, 1000),
            (999, 1000, 999),
            (2, 1, 1014), // 999 + floor(1001 / 64)
            (1, 2, 1005), // (64 x 1014 - 514) / 64 = 1005.97
            (0, 10, 1005),
            (10, 0, 1005),
        ] {
            at.value += ticks;
            at.echo += ms;
            lp.estimate_hz(at);
            assert_eq!(lp.remote_hz, hz, "{ticks} {ms}");
            assert_eq!((lp.last_value, lp.last_echo), (at.value, at.echo));
        }
        // An echo that goes back is a difference of 2^32 ms: a sample of 0.
        at.value += 5;
        at.echo -= 1;
        lp.estimate_hz(at);
        assert_eq!(lp.remote_hz, 989); // 1005 - 1005/64, rounded down
        // A thousand times 4 294 968 ms wraps.
        at.value += 4_294_968;
        at.echo += 1;
        lp.estimate_hz(at);
        assert_eq!(lp.remote_hz, 984); // a sample of 704
    }

    #[test]
    fn time_zero_is_no_reference() {
        let mut lp = Lp::default();
        for (value, echo) in [(10, 0), (20, 10), (30, 20)] {
            assert_eq!(lp.remote_hz, 0);
            lp.estimate_hz(Clocks {
                now: 0,
                value,
                echo,
            });
        }
        assert_eq!(lp.remote_hz, 1000);
    }

    #[test]
    fn the_quotient_multiplies_the_clock() {
        let at = Clocks {
            now: 0,
            value: 70_020,
            echo: 70_000,
        };
        for (hz, owd) in [
            (1000, Some(20)),
            (501, Some(20)),
            (500, Some(70_040)),
            (334, Some(70_040)),
            (333, Some(140_060)),
            (1001, Some(u32::MAX - 69_999)),
        ] {
            let mut lp = Lp {
                remote_hz: hz,
                last_value: at.value,
                last_echo: at.echo,
                ..Lp::default()
            };
            assert_eq!(lp.delay(at), owd, "{hz}");
        }
        let mut lp = Lp {
            remote_hz: 1000,
            ..Lp::default()
        };
        let none = Clocks {
            value: 70_000,
            ..at
        };
        assert_eq!(lp.delay(none), None);
    }

    #[test]
    fn clocks_count_from_the_origin_and_wrap() {
        let mut t = Bench::of(lp(&[("clock_origin", "4294967290")]), 10);
        t.sk.now = Time::from_nanos(7_999_999);
        t.sk.stamps = Stamps {
            value_ms: 4,
            echo: Time::from_nanos(2_999_999),
        };
        let at = t.module.clocks(&t.sk);
        assert_eq!(
            (at.now, at.value, at.echo),
            (1, 4_294_967_294, 4_294_967_292)
        );
        t.module.init(&mut t.sk);
        assert_eq!(t.module.clock_origin, 4_294_967_290);
    }

    #[test]
    fn the_largest_delay_is_the_second_largest() {
        let mut lp = Lp {
            owd_min: u32::MAX,
            ..Lp::default()
        };
        for (owd, min, max, reserve) in [
            (50, 50, 50, 50),
            (70, 50, 50, 70),
            (60, 50, 60, 70),
            (40, 40, 60, 70),
            (90, 40, 70, 90),
        ] {
            lp.take_delay(owd);
            assert_eq!(
                (lp.owd_min, lp.owd_max, lp.owd_max_reserve),
                (min, max, reserve)
            );
        }
    }

    #[test]
    fn the_smoothed_delay_is_in_eighths() {
        let mut lp = Lp::default();
        for (owd, sowd) in [(10, 80), (17, 87), (10, 87), (0, 77)] {
            lp.take_delay(owd);
            assert_eq!(lp.sowd, sowd);
        }
        lp.sowd = 8;
        lp.take_delay(0); // down to 7 eighths, and 0 again is taken as unset
        assert_eq!(lp.sowd, 7);
    }
}
