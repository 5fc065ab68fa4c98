//! One-way delays from two clocks in milliseconds, their extremes and their threshold; what the
//! paper does not say:
//!
//! - One-way delays are differences of the two hosts' time-stamp clocks in whole milliseconds,
//!   `TSval * (1000 / hz) - TSecr` in 32 bits, with `hz` an estimate of the receiver's clock rate
//!   (`tcp_lp_owd_calculator`). The integer quotient multiplies the clock itself: while `hz` is 501
//!   to 1000 the difference is the delay, at 334 to 500 it is the receiver's uptime and the delay,
//!   above 1000 it is minus the sender's uptime. Hence the parameter `clock_origin`. A delay of 0
//!   ms is no delay.
//! - The estimate moves by a 64th of each error, rounded down to whole hertz each time: an error of
//!   -1 Hz takes a whole hertz, one of +63 Hz adds none (`tcp_lp_remote_hz_estimator`). Each sample
//!   is a quotient of the differences between two ACKs, one or two milliseconds long on a busy
//!   path, so that estimates wander.
//! - The smallest and the largest delay begin as the first one, the smoothed delay as well, and
//!   "within" means below: the very first valid delay is an early indication
//!   (`tcp_lp_pkts_acked`).
//! - The largest delay is the largest but one: a single packet that was held up moves nothing.
//! - A stamp of 0 counts as unset, also where a clock has come round to it: time 0 is never a
//!   reference, nor an indication's time.
//! - `tcp_timestamps = 1` shifts the receiver's stamps by a random number for each connection, of
//!   which TSecr is freed and TSval is not. The delay is then that number plus the delay. Eight
//!   times it overflows 32 bits for seven connections in eight: the smoothed delay loses its upper
//!   three bits, lies below the smallest delay and stays there, and LP is Reno. In the eighth, the
//!   extremes after the first indication are far apart, and their 15 % too many milliseconds for a
//!   queue to reach. The parameter `stamp_offset` is that number; its default is
//!   the kernel's, `tcp_timestamps = 1`: every connection draws its own.

/// The stamps of an ACK, as the module reads them, ms.
#[derive(Clone, Copy)]
pub(super) struct Clocks {
    pub(super) now: u32,
    pub(super) value: u32,
    pub(super) echo: u32,
}

/// The clock behind the receiver's stamps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RemoteClock {
    /// Its estimated rate, ticks per second; 0 before two ACKs.
    pub(super) hz: u32,
    /// Value and echo of the ACK before.
    before: (u32, u32),
}

impl RemoteClock {
    /// The delay of the ACK in ms, if the clock's rate is known and there is one.
    pub(super) fn one_way_delay(&mut self, at: Clocks) -> Option<u32> {
        self.learn(at);
        let ms_per_tick = LOCAL_HZ.checked_div(self.hz)?;
        let sent = at.value.wrapping_mul(ms_per_tick);
        Some(sent.wrapping_sub(at.echo)).filter(|d| *d > 0)
    }

    fn learn(&mut self, at: Clocks) {
        // In 64ths the old rate has 32 bits, too: its upper six are lost.
        let known = self.hz & (u32::MAX >> 6);
        self.hz = match self.rate(at) {
            None => known,
            Some(rate) if known == 0 => rate,
            Some(rate) => {
                let error = i64::from(rate) - i64::from(known);
                (i64::from(known) + error.div_euclid(64)) as u32
            }
        };
        self.before = (at.value, at.echo);
    }

    /// Ticks per second between the ACK before and this one, if both clocks have moved.
    fn rate(&self, at: Clocks) -> Option<u32> {
        let (value, echo) = self.before;
        let ticks = at.value.wrapping_sub(value);
        let ms = at.echo.wrapping_sub(echo);
        let known = value != 0 && echo != 0;
        (known && ticks != 0 && ms != 0).then(|| ticks.wrapping_mul(LOCAL_HZ) / ms)
    }
}

/// What has been seen of the delays, ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delays {
    pub(super) d_min: u32,
    /// The largest delay but one.
    pub(super) d_max: u32,
    /// The largest, never below `d_max`; 0: none.
    d_top: u32,
    /// `sd`, the smoothed delay, 1/8 ms.
    pub(super) sd_eighths: u32,
}

impl Delays {
    pub(super) const NONE: Self = Self {
        d_min: u32::MAX,
        d_max: 0,
        d_top: 0,
        sd_eighths: 0,
    };

    pub(super) fn take(&mut self, d: u32) {
        self.smooth(d);
        self.d_min = self.d_min.min(d);
        self.d_max = match self.d_top {
            0 => d,
            top => d.clamp(self.d_max, top),
        };
        self.d_top = self.d_top.max(d);
    }

    /// `sd = (1 - gamma) sd + gamma d` with `gamma = 1/8`.
    fn smooth(&mut self, d: u32) {
        self.sd_eighths = match self.sd_eighths {
            0 => d.wrapping_mul(8),
            sd => (sd - sd / 8).wrapping_add(d),
        };
    }

    /// The smoothed delay has reached `d_min + delta (d_max - d_min)`.
    pub(super) fn indicate_congestion(&self) -> bool {
        self.sd_eighths / 8 >= self.threshold()
    }

    pub(super) fn threshold(&self) -> u32 {
        let range = self.d_max.wrapping_sub(self.d_min);
        let part = range.wrapping_mul(DELTA_PERCENT) / 100;
        self.d_min.wrapping_add(part)
    }

    /// After an indication the extremes are the smoothed delay and twice that.
    pub(super) fn start_over(&mut self) {
        let (sd, twice) = (self.sd_eighths / 8, self.sd_eighths / 4);
        (self.d_min, self.d_max, self.d_top) = (sd, twice, twice);
    }
}

/// Ticks per second of the sender's time stamps.
const LOCAL_HZ: u32 = 1000;

/// `delta`: part of the range of delays above which `sd` is an indication, per cent.
const DELTA_PERCENT: u32 = 15;

#[cfg(test)]
mod tests {
    use super::*;

    impl Delays {
        /// Extremes and smoothed delay, ms.
        pub(in crate::linux::lp) fn between(d_min: u32, d_max: u32, sd: u32) -> Self {
            Self {
                d_min,
                d_max,
                d_top: d_max,
                sd_eighths: 8 * sd,
            }
        }
    }

    #[test]
    fn the_rate_falls_by_whole_hertz_and_rises_by_64ths() {
        let mut remote = RemoteClock::default();
        let mut at = Clocks {
            now: 0,
            value: 5000,
            echo: 4000,
        };
        remote.learn(at);
        assert_eq!(remote.hz, 0);
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
            remote.learn(at);
            assert_eq!(remote.hz, hz, "{ticks} {ms}");
            assert_eq!(remote.before, (at.value, at.echo));
        }
        // An echo that goes back is a difference of 2^32 ms: a sample of 0.
        at.value += 5;
        at.echo -= 1;
        remote.learn(at);
        assert_eq!(remote.hz, 989); // 1005 - 1005/64, rounded down
        // A thousand times 4 294 968 ms wraps.
        at.value += 4_294_968;
        at.echo += 1;
        remote.learn(at);
        assert_eq!(remote.hz, 984); // a sample of 704
    }

    #[test]
    fn time_zero_is_no_reference() {
        let mut remote = RemoteClock::default();
        for (value, echo) in [(10, 0), (20, 10), (30, 20)] {
            assert_eq!(remote.hz, 0);
            remote.learn(Clocks {
                now: 0,
                value,
                echo,
            });
        }
        assert_eq!(remote.hz, 1000);
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
            let mut remote = RemoteClock {
                hz,
                before: (at.value, at.echo),
            };
            assert_eq!(remote.one_way_delay(at), owd, "{hz}");
        }
        let mut remote = RemoteClock {
            hz: 1000,
            ..RemoteClock::default()
        };
        let none = Clocks {
            value: 70_000,
            ..at
        };
        assert_eq!(remote.one_way_delay(none), None);
    }

    #[test]
    fn the_largest_delay_is_the_second_largest() {
        let mut delays = Delays::NONE;
        for (owd, min, max, top) in [
            (50, 50, 50, 50),
            (70, 50, 50, 70),
            (60, 50, 60, 70),
            (40, 40, 60, 70),
            (90, 40, 70, 90),
        ] {
            delays.take(owd);
            assert_eq!((delays.d_min, delays.d_max, delays.d_top), (min, max, top));
        }
    }

    #[test]
    fn the_smoothed_delay_is_in_eighths() {
        let mut delays = Delays::NONE;
        for (owd, sd) in [(10, 80), (17, 87), (10, 87), (0, 77)] {
            delays.take(owd);
            assert_eq!(delays.sd_eighths, sd);
        }
        delays.sd_eighths = 8;
        delays.take(0); // down to 7 eighths, and 0 again is taken as unset
        assert_eq!(delays.sd_eighths, 7);
    }
}
