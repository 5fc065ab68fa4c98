//! TCP-LP in the kernel's integers (Linux 6.1 `net/ipv4/tcp_lp.c`).
//!
//! The law of Kuzmanovic and Knightly 2003: Reno that yields when the smoothed one-way delay `sd`
//! rises above `d_min + delta (d_max - d_min)`, halves its window at such an early congestion
//! indication and watches for the inference time `itt` whether another follows. What the kernel's
//! delays add to it is said in `delay`; of the indications:
//!
//! - An indication makes `sd` the smallest delay and twice `sd` the largest. With `sd` of 6 ms or
//!   less, 15 % of the difference round to 0: every ACK that follows is an indication until a
//!   smaller delay arrives, and the window stays at 1.
//! - An indication leaves the threshold alone, so that growth resumes as slow start, and the ACK
//!   that brings it still grows the window; only the ACKs after it find the inference phase,
//!   `3 (now - TSecr)` ms from the last indication, measured anew by each ACK.
//! - Indications act in every state; during recovery the sender owns the window and forgets them.

mod delay;

use fullpipe_units::Time;

use self::delay::{Clocks, Delays, RemoteClock};
use crate::entry::Entry;
use crate::linux::module::{AckSample, Module};
use crate::linux::socket::Socket;

/// TCP-LP.
#[derive(Clone, Debug)]
pub struct Lp {
    /// Both hosts' clocks at time zero, ms since they were switched on.
    pub clock_origin: u32,
    /// What the receiver adds to its stamps, ms; `None`: drawn for each connection.
    pub stamp_offset: Option<u32>,
    /// The number in use.
    offset: u32,
    remote: RemoteClock,
    delays: Delays,
    inference: Inference,
}

/// The time after an indication in which the flow finds out whether the delay yields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Inference {
    /// The last indication, ms; 0: none.
    began: u32,
    /// `itt`, ms.
    itt: u32,
    /// The last ACK came within it.
    runs: bool,
}

impl Inference {
    /// The ACK's own round-trip time, unless its echo is of this very millisecond, sets `itt`.
    fn observe(&mut self, at: Clocks) {
        let rtt = at.now.wrapping_sub(at.echo);
        if rtt.cast_signed() > 0 {
            self.itt = rtt.wrapping_mul(ITT_RTTS);
        }
        self.runs = match self.began {
            0 => false,
            began => at.now.wrapping_sub(began) < self.itt,
        };
    }
}

impl Lp {
    fn new(clock_origin: u32, stamp_offset: Option<u32>) -> Self {
        Self {
            clock_origin,
            stamp_offset,
            offset: stamp_offset.unwrap_or(0),
            remote: RemoteClock::default(),
            delays: Delays::NONE,
            inference: Inference::default(),
        }
    }

    /// The stamps of the ACK at hand.
    fn clocks(&self, sk: &Socket) -> Clocks {
        let local = |t: Time| ((t.as_nanos() / 1_000_000) as u32).wrapping_add(self.clock_origin);
        Clocks {
            now: local(sk.now),
            value: sk
                .stamps
                .value_ms
                .wrapping_add(self.clock_origin)
                .wrapping_add(self.offset),
            echo: local(sk.stamps.echo),
        }
    }

    /// Early congestion indication: half the window, or one segment within the inference time.
    fn yield_window(&mut self, sk: &mut Socket, now: u32) {
        let kept = if self.inference.runs { 0 } else { sk.cwnd / 2 };
        sk.cwnd = kept.max(1);
        self.inference.began = now;
        self.delays.start_over();
    }
}

impl Module for Lp {
    fn init(&mut self, sk: &mut Socket) {
        *self = Self::new(self.clock_origin, self.stamp_offset);
        if self.stamp_offset.is_none() {
            self.offset = sk.draw(u32::MAX);
        }
    }

    fn pkts_acked(&mut self, sk: &mut Socket, sample: &AckSample) {
        let at = self.clocks(sk);
        if sample.rtt_us.unwrap_or(0) > 0
            && let Some(d) = self.remote.one_way_delay(at)
        {
            self.delays.take(d);
        }
        self.inference.observe(at);
        if self.delays.indicate_congestion() {
            self.yield_window(sk, at.now);
        }
    }

    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if !self.inference.runs {
            sk.reno_cong_avoid(acked);
        }
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("sowd", f64::from(self.delays.sd_eighths) / 8.0);
        visit("owd_min", f64::from(self.delays.d_min));
        visit("owd_max", f64::from(self.delays.d_max));
        visit("remote_hz", f64::from(self.remote.hz));
        visit("inference", f64::from(u8::from(self.inference.runs)));
    }
}

/// `itt` in RTTs.
const ITT_RTTS: u32 = 3;

/// `lp-linux`.
pub const LP_LINUX: Entry<Lp> = Entry {
    name: "lp-linux",
    aliases: &[],
    about: "TCP-LP in milliseconds of the hosts' clocks: yields to growing one-way delay",
    source: "Linux 6.1 net/ipv4/tcp_lp.c",
    params: &[
        param!(clock_origin: number = 0.0, 0.0..=4_294_967_295.0, "ms",
            "uptime of both hosts at time zero of the run: the module multiplies absolute times",
            "Linux 6.1 include/net/tcp.h tcp_time_stamp"),
        param!(stamp_offset: number = -1.0, -1.0..=4_294_967_295.0, "ms",
            "number that the receiver adds to its time stamps: 0 with tcp_timestamps = 2; -1: \
            drawn for each connection, as with tcp_timestamps = 1, the kernel's default",
            "Linux 6.1 net/core/secure_seq.c secure_tcp_ts_off"),
    ],
    build: |p| {
        let offset = match p.number("stamp_offset") {
            x if x <= -1.0 => None,
            _ => Some(p.whole("stamp_offset")?),
        };
        Ok(Lp::new(p.whole("clock_origin")?, offset))
    },
};

#[cfg(test)]
mod tests {
    use super::super::AnyModule;
    use super::*;
    use crate::controller::Stamps;
    use crate::linux::testing::{Bench, built};
    use fullpipe_units::Span;

    /// With these parameters, and stamps that nothing is added to unless they say so.
    fn lp(params: &[(&str, &str)]) -> Lp {
        let given = params.iter().any(|(name, _)| *name == "stamp_offset");
        let none: &[_] = if given { &[] } else { &[("stamp_offset", "0")] };
        let all = [none, params].concat();
        match built(&LP_LINUX, &all) {
            AnyModule::Lp(lp) => lp,
            other => panic!("{other:?}"),
        }
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
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

    /// Seven random offsets in eight overflow the smoothed delay: there is no indication at all.
    #[test]
    fn a_large_stamp_offset_makes_it_reno() {
        let cuts = |offset| {
            let mut t = Bench::of(lp(&[("stamp_offset", offset)]), 64);
            let mut cuts = 0;
            for i in 0..200 {
                let before = t.sk.cwnd;
                let queue = i / 2;
                ack(&mut t, 1000 + 20 * i, 40 + queue, 20 + queue);
                cuts += i32::from(t.sk.cwnd <= before / 2 + 1);
            }
            cuts
        };
        assert_eq!(cuts("2147483648"), 0);
        assert!(cuts("0") > 1);
    }

    /// By default each connection draws a number of its own (`secure_tcp_ts_off`).
    #[test]
    fn the_stamp_offset_is_drawn_unless_it_is_given() {
        let offset = |params: &[(&str, &str)], seed| {
            let AnyModule::Lp(mut lp) = built(&LP_LINUX, params) else {
                unreachable!()
            };
            let mut sk = Socket::new(crate::Setup {
                seed,
                ..crate::Setup::default()
            });
            lp.init(&mut sk);
            lp.offset
        };
        let drawn: Vec<_> = (0..800).map(|seed| offset(&[], seed)).collect();
        // Eight times the number stays within 32 bits for one in eight: 100, deviation 9.4.
        let small = drawn.iter().filter(|x| **x < 1 << 29).count();
        assert!((60..140).contains(&small), "{small}");
        assert_eq!(offset(&[("stamp_offset", "7")], 1), 7);
        assert_eq!(offset(&[("stamp_offset", "0")], 1), 0);
    }

    /// An ACK at `now` for a segment that left `rtt` ago and arrived after `owd`, all in ms.
    fn ack(t: &mut Bench<Lp>, now: u64, rtt: u64, owd: u64) {
        t.sk.now = ms(now);
        t.sk.stamps = Stamps {
            value_ms: (now - rtt + owd) as u32,
            echo: ms(now - rtt),
        };
        t.ack_rtt(1, rtt as u32 * 1000);
    }

    /// In avoidance at `cwnd`, with extremes of 40 and 60 ms and a smoothed delay that stays at
    /// `owd`.
    fn between_40_and_60(cwnd: u32, owd: u32) -> Bench<Lp> {
        let mut t = Bench::past_start_up(lp(&[]), cwnd);
        t.module.remote.hz = 1000;
        t.module.delays = Delays::between(40, 60, owd);
        t
    }

    #[test]
    fn published_threshold_and_two_indications() {
        let mut t = between_40_and_60(100, 42);
        ack(&mut t, 1000, 100, 42);
        assert_eq!(
            (t.module.delays.threshold(), t.sk.cwnd, t.sk.cwnd_cnt),
            (43, 100, 1)
        );
        let mut t = between_40_and_60(100, 44);
        t.sk.ssthresh = 70;
        ack(&mut t, 1000, 100, 44);
        // 50, and one for the ACK itself: slow start, as the threshold stays.
        assert_eq!((t.sk.cwnd, t.sk.ssthresh), (51, 70));
        assert_eq!(t.module.delays, Delays::between(44, 88, 44));
        ack(&mut t, 1001, 100, 44);
        assert_eq!(t.sk.cwnd, 51); // within inference: no growth
        assert_eq!(t.module.delays.threshold(), 50);
        t.module.delays.sd_eighths = 8 * 60;
        ack(&mut t, 1299, 100, 60);
        assert_eq!((t.sk.cwnd, t.module.inference.began), (1, 1299));
    }

    #[test]
    fn the_inference_phase_is_three_rtts_of_the_ack_at_hand() {
        for (now, rtt, growing) in [
            (1299, 100, false),
            (1300, 100, true),
            (1300, 101, false),
            (1299, 99, true),
        ] {
            let mut t = between_40_and_60(100, 41);
            t.module.inference.began = 1000;
            ack(&mut t, now, rtt, 41);
            assert_eq!(t.sk.cwnd_cnt == 1, growing, "{now} {rtt}");
            assert_eq!(t.reported("inference") == 0.0, growing);
        }
        // An echo of this very millisecond leaves the last length.
        let mut t = between_40_and_60(100, 41);
        t.module.inference.itt = 77;
        ack(&mut t, 1000, 0, 41);
        assert_eq!(t.module.inference.itt, 77);
    }

    #[test]
    fn the_first_valid_delay_is_an_indication() {
        let mut t = Bench::of(lp(&[]), 100);
        for now in [100, 110] {
            ack(&mut t, now, 50, 20); // no two stamps yet, then the first rate
        }
        assert_eq!(t.module.remote.hz, 1000);
        assert_eq!(
            (t.module.delays.sd_eighths, t.module.inference.began),
            (160, 110)
        );
        // 101 after the first ACK, halved, and slow start's one.
        assert_eq!((t.sk.cwnd, t.sk.ssthresh), (51, Socket::INFINITE));
        assert_eq!((t.module.delays.d_min, t.module.delays.d_max), (20, 40));
        ack(&mut t, 120, 50, 20);
        assert_eq!((t.sk.cwnd, t.module.delays.threshold()), (51, 23));
    }

    #[test]
    fn delays_of_six_milliseconds_hold_the_window_at_one() {
        // At 7 ms the window halves once, and grows again after the inference phase of 150 ms.
        for (owd, w) in [(6, 1), (7, 75)] {
            let mut t = Bench::of(lp(&[]), 50);
            for i in 0..200 {
                ack(&mut t, 100 + i, 50, owd);
            }
            assert_eq!(t.sk.cwnd, w, "{owd}");
        }
    }

    /// What a random shift of the receiver's stamps would do.
    #[test]
    fn a_large_delay_overflows_the_smoothed_one_and_is_never_an_indication() {
        let mut flow = lp(&[]);
        for i in 0..1000 {
            flow.delays.take(0x3000_0000 + i % 200);
            assert!(!flow.delays.indicate_congestion(), "{i}");
        }
        // Below 2^29 there is one, and none later.
        let mut flow = lp(&[]);
        flow.delays.take(0x1800_0000);
        assert!(flow.delays.indicate_congestion());
        flow.yield_window(&mut Bench::of(flow.clone(), 10).sk, 1);
        for _ in 0..1000 {
            flow.delays.take(0x1800_0000 + 200);
            assert!(!flow.delays.indicate_congestion());
        }
    }

    #[test]
    fn an_ack_without_a_sample_still_judges() {
        let mut t = between_40_and_60(100, 44);
        t.sk.now = ms(1000);
        t.sk.stamps.echo = ms(900);
        t.ack_rtt(1, None);
        assert_eq!((t.sk.cwnd, t.module.inference.began), (50, 1000));
        t.sk.cwnd = 1;
        t.module.inference.began = 0;
        t.module.delays.d_max = 0;
        t.module.delays.d_min = 44;
        t.ack_rtt(0, 0); // a sample of 0 us is none; half of one is one
        assert_eq!(t.sk.cwnd, 1);
    }

    #[test]
    fn losses_halve() {
        assert_eq!(between_40_and_60(101, 41).ssthresh(), 50);
    }
}
