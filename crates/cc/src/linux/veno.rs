//! Veno as Linux 6.1 counts it (`net/ipv4/tcp_veno.c`). What Fu and Liew 2003 do not say:
//!
//! - The backlog is not one of a round: the smallest RTT is forgotten with every ACK that
//!   `tcp_veno_cong_avoid` handles, so that one ACK's sample decides what that ACK does, and the
//!   last one before a loss decides what the loss takes. An ACK without a sample finds no RTT at
//!   all, a backlog of the whole window. ACKs that do not reach the rule (recovery, disorder, a
//!   flow that is not window-limited) hand their smallest sample on to the next that does.
//! - The count of samples is never set back: the rule starts with the third sample of the
//!   connection, the handshake's included, and rests for three ACKs out of 65536, when its 16 bits
//!   have wrapped.
//! - The backlog `2 w - floor(2 w base / rtt)` is in half segments, against 6; every RTT counts a
//!   microsecond more than measured.
//! - With a backlog the window grows in every second run of `w` acknowledged segments; the ACK that
//!   completes a run is not counted into the next, nor what the run exceeded `w` by. The
//!   alternation outlives reductions and ends only when sending starts anew.
//! - A loss or a mark without backlog keeps `floor(4 w / 5)`, in 32 bits; a timeout too
//!   (`tcp_veno_ssthresh`). The backlog may be an old one: neither states nor restarts clear it.
//! - Any state but open, disorder included, grows as Reno (`tcp_veno_state`), except in the loss
//!   state after the retransmission that a timeout sends into an empty network, which also forgets
//!   the base (`tcp_veno_cwnd_event`).

use super::round_delay::UNKNOWN;
use crate::controller::Phase;
use crate::entry::Entry;
use crate::linux::module::{AckSample, Event, Module};
use crate::linux::socket::Socket;

/// Veno.
#[derive(Clone, Debug)]
pub struct Veno {
    /// The rule applies (`doing_veno_now`).
    on: bool,
    /// Samples of the connection.
    samples: u16,
    /// Smallest RTT since the rule last ran, microseconds plus one.
    min: u32,
    /// Smallest RTT since transmission began with nothing in flight.
    base: u32,
    /// The next full run of acknowledged segments grows the window.
    grow_next: bool,
    /// Backlog, half segments.
    diff: u32,
}

impl Veno {
    fn new() -> Self {
        Self {
            on: true,
            samples: 0,
            min: UNKNOWN,
            base: UNKNOWN,
            grow_next: true,
            diff: 0,
        }
    }

    fn restart(&mut self) {
        self.base = UNKNOWN;
        self.grow_next = true;
        self.enable();
    }

    fn enable(&mut self) {
        self.on = true;
        self.min = UNKNOWN;
    }

    fn is_congested(&self) -> bool {
        self.diff >= BETA
    }

    /// One segment every second window.
    fn crawl(&mut self, sk: &mut Socket, acked: u32) {
        if sk.cwnd_cnt < sk.cwnd {
            sk.cwnd_cnt += acked;
            return;
        }
        if self.grow_next && sk.cwnd < sk.clamp {
            sk.cwnd += 1;
            self.grow_next = false;
        } else {
            self.grow_next = true;
        }
        sk.cwnd_cnt = 0;
    }

    fn by_backlog(&mut self, sk: &mut Socket, acked: u32) {
        self.diff = backlog(sk.cwnd, self.base, self.min);
        if let Some(left) = sk.past_slow_start(acked) {
            if self.is_congested() {
                self.crawl(sk, left);
            } else {
                sk.cong_avoid_ai(sk.cwnd, left);
            }
        }
        sk.bound();
    }
}

/// Half segments in the queue.
fn backlog(cwnd: u32, base: u32, rtt: u32) -> u32 {
    let uncongested = u64::from(cwnd) * u64::from(base) * 2 / u64::from(rtt);
    (cwnd << 1).wrapping_sub(uncongested as u32)
}

impl Module for Veno {
    fn init(&mut self, sk: &mut Socket) {
        // The SYN's sample came before, and nothing takes it back.
        self.samples = u16::from(sk.srtt_us > 0);
        self.restart();
    }

    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        if self.is_congested() {
            sk.half()
        } else {
            (sk.cwnd.wrapping_mul(4) / 5).max(2)
        }
    }

    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if !self.on {
            return sk.reno_cong_avoid(acked);
        }
        if !sk.is_cwnd_limited() {
            return;
        }
        if self.samples > 2 {
            self.by_backlog(sk, acked);
        } else {
            sk.reno_cong_avoid(acked);
        }
        self.min = UNKNOWN;
    }

    fn set_state(&mut self, _sk: &mut Socket, new: Phase) {
        if new == Phase::Open {
            self.enable();
        } else {
            self.on = false;
        }
    }

    fn on_event(&mut self, _sk: &mut Socket, event: Event) {
        if matches!(event, Event::TxStart | Event::CwndRestart) {
            self.restart();
        }
    }

    fn pkts_acked(&mut self, _sk: &mut Socket, sample: &AckSample) {
        let Some(rtt) = sample.rtt_us else { return };
        let rtt = rtt.wrapping_add(1);
        self.base = self.base.min(rtt);
        self.min = self.min.min(rtt);
        self.samples = self.samples.wrapping_add(1);
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("backlog", f64::from(self.diff) / 2.0);
        visit("base_us", f64::from(self.base));
        visit("on", f64::from(u8::from(self.on)));
    }
}

/// Backlog from which the path is congested, half segments (`beta` of `tcp_veno.c`).
const BETA: u32 = 6;

/// `veno-linux`.
pub const VENO_LINUX: Entry<Veno> = Entry {
    name: "veno-linux",
    aliases: &[],
    about: "Veno in whole segments: a loss without a queue of three takes a fifth",
    source: "Linux 6.1 net/ipv4/tcp_veno.c",
    params: &[],
    build: |_| Ok(Veno::new()),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::testing::Bench;

    /// A flow in avoidance with a base of 100 ms and enough samples.
    fn flow(cwnd: u32) -> Bench<Veno> {
        let mut t = Bench::past_start_up(Veno::new(), cwnd);
        t.module.base = 100_000;
        t.module.samples = 3;
        t
    }

    #[test]
    fn three_segments_of_backlog_decide() {
        // 100 segments: floor(200 x 100 / rtt).
        for (rtt, diff, left) in [
            (102_562, 5, 80), // 195.004
            (102_565, 6, 50), // 194.999
            (103_092, 6, 50), // 194.002
            (103_093, 7, 50),
        ] {
            let mut t = flow(100);
            t.ack_rtt(1, rtt - 1);
            assert_eq!((t.module.diff, t.ssthresh()), (diff, left), "{rtt}");
        }
        assert_eq!(flow(99).ssthresh(), 79); // floor(396 / 5)
        assert_eq!(flow(1).ssthresh(), 2);
        assert_eq!(backlog(100, 97_100, 100_000), 6); // 2.9 segments round up to three
        assert_eq!(backlog(100, 97_500, 100_000), 5);
    }

    #[test]
    fn four_times_a_huge_window_wraps() {
        assert_eq!(flow((1 << 30) + 5).ssthresh(), 4);
    }

    #[test]
    fn without_backlog_it_is_reno() {
        let mut t = flow(10);
        t.acks_rtt(10, 100_000);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (11, 0));
    }

    #[test]
    fn with_backlog_it_grows_in_every_second_run_and_drops_the_completing_acks() {
        let mut t = flow(10);
        t.acks_rtt(10, 300_000);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (10, 10));
        t.ack_rtt(7, 300_000); // grows; its seven segments are not counted
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (11, 0));
        t.acks_rtt(11, 300_000);
        t.ack_rtt(1, 300_000); // this run does not
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (11, 0));
        t.ack_rtt(25, 300_000); // more than two runs at once
        t.ack_rtt(1, 300_000);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (12, 0));
        assert!(!t.module.grow_next);
        t.sk.cwnd_cnt = 12; // an ACK for SACKed segments alone completes a run
        t.module.cong_avoid(&mut t.sk, 0);
        assert!(t.module.grow_next);
        t.sk.cwnd_cnt = 12;
        t.module.cong_avoid(&mut t.sk, 0);
        assert_eq!(t.sk.cwnd, 13);
        t.module.set_state(&mut t.sk, Phase::Recovery);
        t.module.set_state(&mut t.sk, Phase::Open);
        assert!(!t.module.grow_next);
        t.module.on_event(&mut t.sk, Event::TxStart);
        assert!(t.module.grow_next);
    }

    #[test]
    fn at_the_clamp_it_only_alternates() {
        let mut t = flow(10);
        t.sk.clamp = 10;
        t.sk.cwnd_cnt = 10;
        t.ack_rtt(1, 300_000);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (10, 0));
        assert!(t.module.grow_next);
    }

    #[test]
    fn each_ack_judges_by_its_own_sample() {
        let mut t = flow(100);
        t.ack_rtt(1, 200_000);
        assert_eq!(t.module.diff, 101); // 200 - floor(200 x 100 000 / 200 001)
        t.ack_rtt(1, 99_999);
        assert_eq!(t.module.diff, 0);
        t.ack_rtt(1, None);
        assert_eq!(t.module.diff, 200);
        assert_eq!(t.ssthresh(), 50);
    }

    #[test]
    fn acks_that_the_rule_skips_hand_their_sample_on() {
        let mut t = flow(100);
        t.sk.cwnd_limited = false;
        t.ack_rtt(1, 99_999);
        assert_eq!((t.sk.cwnd_cnt, t.module.min), (0, 100_000));
        t.sk.cwnd_limited = true;
        t.ack_rtt(1, 200_000);
        assert_eq!(t.module.diff, 0);
        t.module.set_state(&mut t.sk, Phase::Disorder);
        t.ack_rtt(1, 99_999);
        assert_eq!((t.sk.cwnd_cnt, t.module.min), (2, 100_000));
        t.module.set_state(&mut t.sk, Phase::Open); // forgets the sample, and nothing else
        assert_eq!(
            (t.module.min, t.module.base, t.module.diff),
            (UNKNOWN, 100_000, 0)
        );
    }

    #[test]
    fn the_third_sample_of_the_connection_begins_the_rule() {
        let mut t = Bench::past_start_up(Veno::new(), 100);
        t.module.base = 50_000;
        t.acks_rtt(2, 99_999);
        assert_eq!((t.module.samples, t.module.diff), (2, 0));
        t.ack_rtt(1, 99_999);
        assert_eq!(t.module.diff, 100);
        // The handshake's sample is one of them.
        t.sk.srtt_us = 8;
        t.module.init(&mut t.sk);
        assert_eq!(t.module.samples, 1);
        t.acks_rtt(2, 99_999);
        t.module.on_event(&mut t.sk, Event::CwndRestart);
        assert_eq!((t.module.samples, t.module.base), (3, UNKNOWN));
    }

    #[test]
    fn the_count_of_samples_wraps() {
        let mut t = flow(100);
        t.module.samples = u16::MAX;
        t.acks_rtt(3, 300_000);
        assert_eq!(t.module.diff, 0);
        t.ack_rtt(1, 300_000);
        assert_eq!(t.module.diff, 134); // 200 - floor(66.67)
    }

    #[test]
    fn slow_start_doubles_whatever_the_backlog_and_what_is_left_crawls() {
        let mut t = flow(10);
        t.sk.ssthresh = 15;
        t.ack_rtt(8, 300_000);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (15, 3));
        t.sk.ssthresh = 100;
        t.ack_rtt(5, 300_000);
        assert_eq!((t.sk.cwnd, t.sk.cwnd_cnt), (20, 3));
    }

    #[test]
    fn a_restart_forgets_the_base_and_turns_the_rule_on_but_keeps_the_verdict() {
        let mut t = flow(100);
        t.ack_rtt(1, 300_000);
        t.module.set_state(&mut t.sk, Phase::Loss);
        assert_eq!(t.reported("on"), 0.0);
        t.module.on_event(&mut t.sk, Event::TxStart);
        assert_eq!((t.reported("on"), t.module.base), (1.0, UNKNOWN));
        assert_eq!(t.ssthresh(), 50);
        assert_eq!(t.reported("backlog"), 67.0);
    }

    #[test]
    fn the_rule_leaves_two_segments() {
        let mut t = flow(1);
        t.ack_rtt(1, 100_000);
        assert_eq!(t.sk.cwnd, 2);
        let mut t = flow(1);
        t.sk.cwnd_cnt = 0;
        t.ack_rtt(1, 300_000); // a backlog of two half segments, Reno's growth
        assert_eq!(t.sk.cwnd, 2);
    }
}
