//! Westwood+ as Linux 6.1 counts it (`net/ipv4/tcp_westwood.c`). What Grieco and Mascolo 2004 do
//! not say:
//!
//! - Time is in clock ticks: bandwidth is whole bytes per tick, an RTT is rounded up to ticks
//!   (`usecs_to_jiffies`; a sample of 0 us is none). At 250 Hz an RTT of 10.1 ms counts as 12 ms,
//!   and the window after a loss is a fifth too large.
//! - A sample ends with the first ACK more than `max(rtt, 50 ms)` after its start, by that ACK's
//!   own RTT; `50 ms` is `hz / 20`, 12 ticks at 250 Hz. What that ACK acknowledges belongs to the
//!   next sample. Until an ACK brings an RTT the bound is 20 s (`westwood_update_window`). In
//!   6.1.192 it runs after `pkts_acked`; the first kernels called 6.1 had it before, an ACK behind.
//! - Both filters cut off: seven eighths and an eighth come to rest up to 7 bytes per tick below a
//!   steady bandwidth, the second up to 7 below the first. The first sample fills both; so does any
//!   sample while both are 0.
//! - A reduction is Reno's half. The estimate becomes threshold and window when the reduction ends,
//!   of a mark too, and threshold alone at a timeout, whose half is never used
//!   (`tcp_westwood_event`). It may raise the window; only 2 segments bound it, no clamp.
//! - `bw_est * rtt_min` wraps at 4 GiB, the bytes of a sample too (`tcp_westwood_bw_rttmin`).
//! - A timeout has the smallest RTT learnt anew from the next ACK, duplicate or not; if that has no
//!   sample, from the last one before.
//! - A duplicate ACK counts a segment, to be taken from the next ACK that covers more than one; on
//!   the fast path nothing is taken, and an ACK that covers one segment takes nothing either
//!   (`westwood_acked_count`). The fast path is for ACKs that header prediction expects, so that a
//!   receiver whose advertised window stands still has its sender measure more. Without SACK its
//!   duplicates are expected, too, and count nothing.
//! - The connection's first ACK counts as a duplicate: one segment, whatever it covers.
//! - Idle time stays in the sample: nothing but an ACK begins one.

use crate::entry::Entry;
use crate::linux::module::{AckSample, Event, Module};
use crate::linux::socket::Socket;

/// Westwood+.
#[derive(Clone, Debug, Default)]
pub struct Westwood {
    /// Bandwidth after one and after two filters, bytes per tick.
    once: u32,
    twice: u32,
    /// Start of the sample, ticks.
    began: u32,
    /// Bytes of the sample.
    bytes: u32,
    /// Left edge when the last ACK was counted.
    counted_to: u64,
    /// Bytes counted for duplicates and not yet taken back.
    owed: u32,
    /// Ticks.
    rtt: u32,
    rtt_min: u32,
    first_ack: bool,
    relearn_rtt_min: bool,
}

impl Westwood {
    fn close_sample(&mut self, sk: &Socket) {
        if core::mem::take(&mut self.first_ack) {
            self.counted_to = sk.snd_una;
        }
        let now = sk.jiffies();
        let length = now.wrapping_sub(self.began);
        if self.rtt == 0 || length <= self.rtt.max(sk.hz / SHORTEST) {
            return;
        }
        let sample = self.bytes / length;
        if self.once == 0 && self.twice == 0 {
            self.once = sample;
            self.twice = sample;
        } else {
            self.once = smooth(self.once, sample);
            self.twice = smooth(self.twice, self.once);
        }
        self.bytes = 0;
        self.began = now;
    }

    /// Bytes by which the left edge moved.
    fn advance(&mut self, sk: &Socket) -> u32 {
        let segments = sk.snd_una - self.counted_to;
        self.counted_to = sk.snd_una;
        (segments as u32).wrapping_mul(sk.mss)
    }

    /// Bytes that the ACK stands for, duplicates counted once.
    fn advance_or_duplicate(&mut self, sk: &Socket) -> u32 {
        let bytes = self.advance(sk);
        if bytes == 0 {
            self.owed = self.owed.wrapping_add(sk.mss);
            sk.mss
        } else if bytes <= sk.mss {
            bytes
        } else if self.owed >= bytes {
            self.owed -= bytes;
            sk.mss
        } else {
            bytes - core::mem::take(&mut self.owed)
        }
    }

    fn note_rtt(&mut self) {
        self.rtt_min = if core::mem::take(&mut self.relearn_rtt_min) {
            self.rtt
        } else {
            self.rtt_min.min(self.rtt)
        };
    }

    /// Segments that the estimate keeps in flight without a queue.
    fn window(&self, sk: &Socket) -> u32 {
        (self.twice.wrapping_mul(self.rtt_min) / sk.mss).max(2)
    }
}

/// Seven eighths of the old, one of the new.
fn smooth(old: u32, new: u32) -> u32 {
    old.wrapping_mul(7).wrapping_add(new) >> 3
}

impl Module for Westwood {
    fn init(&mut self, sk: &mut Socket) {
        *self = Self {
            began: sk.jiffies(),
            counted_to: sk.snd_una,
            rtt: INITIAL_RTT_S * sk.hz,
            rtt_min: INITIAL_RTT_S * sk.hz,
            first_ack: true,
            relearn_rtt_min: true,
            ..Self::default()
        };
    }

    fn on_event(&mut self, sk: &mut Socket, event: Event) {
        match event {
            Event::CompleteCwr => {
                sk.ssthresh = self.window(sk);
                sk.cwnd = sk.ssthresh;
            }
            Event::Loss => {
                sk.ssthresh = self.window(sk);
                self.relearn_rtt_min = true;
            }
            Event::TxStart | Event::CwndRestart => {}
        }
    }

    fn pkts_acked(&mut self, sk: &mut Socket, sample: &AckSample) {
        if let Some(us) = sample.rtt_us.filter(|us| *us > 0) {
            self.rtt = sk.usecs_to_jiffies(us);
        }
    }

    fn on_ack_event(&mut self, sk: &mut Socket, slow_path: bool) {
        self.close_sample(sk);
        let bytes = if slow_path {
            self.advance_or_duplicate(sk)
        } else {
            self.advance(sk)
        };
        self.bytes = self.bytes.wrapping_add(bytes);
        self.note_rtt();
    }

    fn report(&self, sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        let hz = f64::from(sk.hz);
        visit("bw_est", f64::from(self.twice) * hz);
        visit("bw_ns_est", f64::from(self.once) * hz);
        visit("rtt_min", f64::from(self.rtt_min) / hz);
        visit("bdp", f64::from(self.window(sk)));
    }
}

/// The shortest sample is a second over this (`TCP_WESTWOOD_RTT_MIN`).
const SHORTEST: u32 = 20;
/// RTT before the first sample, s (`TCP_WESTWOOD_INIT_RTT`).
const INITIAL_RTT_S: u32 = 20;

/// `westwood-linux`.
pub const WESTWOOD_LINUX: Entry<Westwood> = Entry {
    name: "westwood-linux",
    aliases: &[],
    about: "Westwood+ in clock ticks: after a loss the measured bandwidth-delay product",
    source: "Linux 6.1 net/ipv4/tcp_westwood.c",
    params: &[],
    build: |_| Ok(Westwood::default()),
};

#[cfg(test)]
mod tests {
    use super::super::Linux;
    use super::*;
    use crate::classic::Setup;
    use crate::controller::{AckEvent, Controller, RestartEvent};
    use crate::linux::testing::Bench;
    use fullpipe_units::{Span, Time};

    /// Segments of 1000 bytes, 250 ticks per second, at tick 1000 after one ACK.
    fn flow() -> Bench<Westwood> {
        let mut t = Bench::of(Westwood::default(), 100);
        t.module.on_ack_event(&mut t.sk, false);
        t
    }

    fn tick(t: &mut Bench<Westwood>, ticks: u64) {
        t.sk.now = Time::ZERO + Span::from_millis(4 * ticks);
    }

    /// An ACK for `n` segments with this RTT.
    fn ack(t: &mut Bench<Westwood>, n: u64, slow_path: bool, us: impl Into<Option<u32>>) {
        t.sk.snd_una += n;
        let sample = AckSample {
            pkts_acked: n as u32,
            rtt_us: us.into(),
        };
        t.module.pkts_acked(&mut t.sk, &sample);
        t.module.on_ack_event(&mut t.sk, slow_path);
    }

    #[test]
    fn published_filter_cut_off() {
        let (mut once, mut twice) = (1000, 1000);
        let mut seen = Vec::new();
        for _ in 0..4 {
            once = smooth(once, 2000);
            twice = smooth(twice, once);
            seen.push((once, twice));
        }
        assert_eq!(
            seen,
            [(1125, 1015), (1234, 1042), (1329, 1077), (1412, 1118)]
        );
        for _ in 0..200 {
            once = smooth(once, 2000);
            twice = smooth(twice, once);
        }
        assert_eq!((once, twice), (1993, 1986));
    }

    #[test]
    fn published_window() {
        let mut t = flow();
        t.sk.mss = 1460;
        t.module.twice = 50_000; // 12.5e6 bytes/s
        t.module.rtt_min = 25; // 100 ms
        assert_eq!(t.module.window(&t.sk), 856);
        t.module.rtt_min = 0;
        assert_eq!(t.module.window(&t.sk), 2);
        t.module.twice = 4_000_000; // 8 Gbit/s
        t.module.rtt_min = 1074; // 4 296 000 000 bytes
        assert_eq!(
            t.module.window(&t.sk),
            (4_296_000_000_u64 - (1 << 32)) as u32 / 1460
        );
    }

    #[test]
    fn a_sample_lasts_more_than_twelve_ticks_and_more_than_an_rtt() {
        for (us, ticks) in [(1000, 12), (48_000, 12), (48_001, 13), (100_000, 25)] {
            let mut t = flow();
            ack(&mut t, 10, false, us);
            tick(&mut t, ticks);
            ack(&mut t, 10, false, us);
            assert_eq!((t.module.once, t.module.bytes), (0, 20_000), "{us}");
            tick(&mut t, ticks + 1);
            ack(&mut t, 10, false, us);
            assert_eq!(t.module.twice, 20_000 / (ticks as u32 + 1), "{us}");
            assert_eq!(t.module.bytes, 10_000); // the closing ACK's own
            assert_eq!(t.module.began, t.sk.jiffies());
        }
    }

    #[test]
    fn the_length_is_judged_by_the_acks_own_rtt() {
        for (us, ends) in [(48_000, true), (52_000, false)] {
            let mut t = flow();
            ack(&mut t, 10, false, 100_000 - us);
            tick(&mut t, 13);
            ack(&mut t, 10, false, us);
            assert_eq!(t.module.twice > 0, ends);
        }
        // Before any RTT it is 20 s.
        for (ticks, sample) in [(5000, 0), (5001, 19)] {
            let mut t = flow();
            tick(&mut t, ticks);
            t.module.bytes = 100_000;
            ack(&mut t, 1, false, None);
            assert_eq!(t.module.twice, sample);
        }
    }

    #[test]
    fn the_first_sample_fills_both_filters_and_zero_is_empty() {
        let mut t = flow();
        t.module.rtt = 1;
        for (ticks, bytes, once, twice) in [
            (13, 12, 0, 0),
            (26, 13_000, 1000, 1000),
            (39, 26_000, 1125, 1015),
        ] {
            tick(&mut t, ticks);
            t.module.bytes = bytes;
            t.module.close_sample(&t.sk);
            assert_eq!((t.module.once, t.module.twice), (once, twice));
        }
        assert_eq!(t.reported("bw_est"), 253_750.0);
    }

    #[test]
    fn rtts_round_up_to_ticks_and_a_timeout_forgets_the_smallest() {
        let mut t = Bench::of(Westwood::default(), 100);
        for (us, rtt, min) in [
            (10_100, 3, 3),
            (30_000, 8, 3),
            (0, 8, 3),
            (8000, 2, 2),
            (8001, 3, 2),
        ] {
            ack(&mut t, 1, false, us);
            assert_eq!((t.module.rtt, t.module.rtt_min), (rtt, min), "{us}");
        }
        assert_eq!(t.reported("rtt_min"), 0.008);
        t.module.on_event(&mut t.sk, Event::Loss);
        ack(&mut t, 0, true, 400_000);
        assert_eq!(t.module.rtt_min, 100);
        ack(&mut t, 1, false, 40_000);
        t.module.on_event(&mut t.sk, Event::Loss);
        ack(&mut t, 1, false, None);
        assert_eq!(t.module.rtt_min, 10);
        // Twenty seconds if the first ACK brings none.
        assert_eq!(flow().module.rtt_min, 5000);
    }

    #[test]
    fn duplicates_count_once() {
        let mut t = flow();
        t.module.owed = 0;
        t.module.bytes = 0;
        for (n, slow, bytes, owed) in [
            (0, true, 1000, 1000),
            (0, true, 2000, 2000),
            (0, true, 3000, 3000),
            (1, true, 4000, 3000), // one segment takes nothing back
            (2, true, 5000, 1000), // less than is owed: counts one
            (5, true, 9000, 0),
            (0, true, 10_000, 1000),
            (4, false, 14_000, 1000), // the fast path never looks
            (1, false, 15_000, 1000),
        ] {
            ack(&mut t, n, slow, 1000);
            assert_eq!((t.module.bytes, t.module.owed), (bytes, owed));
        }
    }

    #[test]
    fn the_first_ack_is_a_duplicate() {
        let mut t = Bench::of(Westwood::default(), 100);
        ack(&mut t, 10, true, 1000);
        assert_eq!((t.module.bytes, t.module.owed), (1000, 1000));
        ack(&mut t, 2, true, 1000);
        assert_eq!((t.module.bytes, t.module.owed), (2000, 0));
        let mut t = Bench::of(Westwood::default(), 100);
        ack(&mut t, 10, false, 1000);
        assert_eq!(t.module.bytes, 0);
    }

    #[test]
    fn the_bytes_of_a_sample_wrap() {
        let mut t = flow();
        t.module.bytes = u32::MAX - 999;
        ack(&mut t, 3, false, 1000);
        assert_eq!(t.module.bytes, 2000);
    }

    #[test]
    fn reductions_halve_and_end_at_the_estimate() {
        let mut t = flow();
        t.module.twice = 20_000;
        t.module.rtt_min = 10;
        assert_eq!(t.ssthresh(), 50);
        t.sk.ssthresh = 50;
        t.sk.clamp = 150;
        for event in [Event::TxStart, Event::CwndRestart] {
            t.module.on_event(&mut t.sk, event);
            assert_eq!((t.sk.cwnd, t.sk.ssthresh), (100, 50));
        }
        t.module.on_event(&mut t.sk, Event::CompleteCwr);
        // Above the window it had, and the clamp.
        assert_eq!((t.sk.cwnd, t.sk.ssthresh), (200, 200));
        t.sk.cwnd = 7;
        t.module.twice = 0;
        t.module.on_event(&mut t.sk, Event::Loss);
        assert_eq!((t.sk.cwnd, t.sk.ssthresh), (7, 2));
    }

    /// A sender's ACK for `n` segments at `ms`, RTT 10 ms.
    fn event(ms: u64, n: u64, una: u64) -> AckEvent {
        let now = Time::ZERO + Span::from_millis(ms);
        AckEvent {
            advanced: n > 0,
            snd_una: una,
            snd_nxt: una + 10,
            ..crate::law::delay::testing::ack(now, n, Span::from_millis(10))
        }
    }

    fn arrive(flow: &mut Linux<Westwood>, ev: &AckEvent) {
        flow.on_delivery(ev);
        flow.on_ack(ev);
    }

    fn bandwidth(flow: &Linux<Westwood>) -> f64 {
        let mut found = f64::NAN;
        flow.report(&mut |name, value| {
            if name == "bw_est" {
                found = value;
            }
        });
        found
    }

    #[test]
    fn predicted_acks_take_nothing_back() {
        for (predicted, bytes_per_tick) in [(true, 445), (false, 334)] {
            let mut flow = Linux::new(Westwood::default(), Setup::default());
            flow.on_established(&RestartEvent {
                now: Time::ZERO,
                idle: Span::ZERO,
                srtt: Span::from_millis(10),
                snd_una: 0,
                snd_nxt: 0,
                app_limited: false,
            });
            arrive(&mut flow, &event(0, 2, 2));
            arrive(&mut flow, &event(0, 900, 902)); // takes the first ACK's segment back
            arrive(&mut flow, &event(0, 300, 1202));
            arrive(&mut flow, &event(52, 0, 1202)); // a sample ends; a duplicate
            let mut two = event(52, 3, 1205);
            two.predicted = predicted;
            arrive(&mut flow, &two);
            let first = bandwidth(&flow);
            arrive(&mut flow, &event(104, 1, 1206));
            // 4 or 3 segments of 1448 bytes in 13 ticks.
            let once = smooth((first / 250.0) as u32, bytes_per_tick);
            let expected = smooth((first / 250.0) as u32, once);
            assert_eq!(bandwidth(&flow), f64::from(expected) * 250.0, "{predicted}");
        }
    }

    #[test]
    fn a_new_connection_measures_from_its_start() {
        let mut t = flow();
        tick(&mut t, 3);
        t.sk.snd_una = 77;
        t.module.owed = 5;
        t.module.init(&mut t.sk);
        assert_eq!(
            (t.module.began, t.module.counted_to, t.module.owed),
            (253, 77, 0)
        );
        assert_eq!((t.module.rtt, t.module.rtt_min), (5000, 5000));
    }
}
