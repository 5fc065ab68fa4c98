//! DCTCP as Linux 6.1 counts it (`net/ipv4/tcp_dctcp.c`). What RFC 8257 does not say:
//!
//! - Alpha is in units of 1/1024. A window without marks takes `alpha >> 4` from it, and all
//!   of it where that is nothing; one with marks adds `floor(marked 2^6 / delivered)`.
//! - A mark keeps `cwnd - floor(cwnd alpha / 2048)`, in 32 bits, at least two segments.
//! - A recovery halves, after the mark's rule has been asked (`dctcp_state`), and a timeout too,
//!   before it (`dctcp_cwnd_event`).
//! - A timeout's reduction, as a loss', returns to the window of before it when it is undone.
//!
//! Without ECN the kernel takes Reno in its place (`dctcp_init`), which is what is left of it.

use crate::controller::Phase;
use crate::entry::Entry;
use crate::linux::module::{Event, Module};
use crate::linux::socket::Socket;

/// DCTCP.
#[derive(Clone, Debug)]
pub struct Dctcp {
    /// Fraction of marked segments, 1/1024.
    alpha: u32,
    shift_g: u32,
    /// The window ends when this segment is the first unacknowledged one.
    next_seq: u64,
    /// `delivered` and `delivered_ce` when it began.
    before: (u64, u64),
    /// Window before the last reduction.
    loss_cwnd: u32,
}

impl Dctcp {
    fn new(shift_g: u32, alpha: u32) -> Self {
        Self {
            alpha: alpha.min(MAX_ALPHA),
            shift_g,
            next_seq: 0,
            before: (0, 0),
            loss_cwnd: 0,
        }
    }

    /// A new window of data begins.
    fn reset(&mut self, sk: &Socket) {
        self.next_seq = sk.snd_nxt;
        self.before = (sk.delivered, sk.delivered_ce);
    }

    /// `dctcp_react_to_loss`, at a window of `cwnd`.
    fn halve(&mut self, sk: &mut Socket, cwnd: u32) {
        self.loss_cwnd = cwnd;
        sk.ssthresh = (cwnd >> 1).max(LEAST);
    }
}

impl Module for Dctcp {
    fn needs_ecn(&self) -> bool {
        true
    }

    fn init(&mut self, sk: &mut Socket) {
        self.loss_cwnd = 0;
        self.reset(sk);
    }

    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        self.loss_cwnd = sk.cwnd;
        let taken = sk.cwnd.wrapping_mul(self.alpha) >> 11;
        (sk.cwnd - taken).max(LEAST)
    }

    fn on_ack_event(&mut self, sk: &mut Socket, _slow_path: bool) {
        if sk.snd_una < self.next_seq {
            return;
        }
        let taken = match self.alpha >> self.shift_g {
            0 => self.alpha,
            taken => taken.min(self.alpha),
        };
        self.alpha -= taken;
        let marked = (sk.delivered_ce - self.before.1) as u32;
        if marked > 0 {
            let delivered = (sk.delivered - self.before.0) as u32;
            let marked = marked.wrapping_shl(10 - self.shift_g) / delivered.max(1);
            self.alpha = (self.alpha + marked).min(MAX_ALPHA);
        }
        self.reset(sk);
    }

    fn set_state(&mut self, sk: &mut Socket, new: Phase) {
        if new == Phase::Recovery && sk.state != Phase::Recovery {
            // A reduction that begins has lowered the window by the mark's rule already; one that a
            // mark has begun is on its way down.
            let cwnd = match sk.state {
                Phase::Cwr => sk.cwnd,
                _ => sk.prior_cwnd,
            };
            self.halve(sk, cwnd);
            sk.cwnd = sk.cwnd.min(sk.ssthresh);
        }
    }

    fn on_event(&mut self, sk: &mut Socket, event: Event) {
        if event == Event::Loss {
            let cwnd = sk.cwnd;
            self.halve(sk, cwnd);
        }
    }

    fn undo_cwnd(&mut self, sk: &mut Socket) -> u32 {
        sk.cwnd.max(self.loss_cwnd)
    }

    fn report(&self, _sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("alpha", f64::from(self.alpha) / f64::from(MAX_ALPHA));
    }
}

/// `DCTCP_MAX_ALPHA`.
const MAX_ALPHA: u32 = 1024;
/// Smallest window that a reduction leaves, segments.
const LEAST: u32 = 2;

/// `dctcp-linux`.
pub const DCTCP_LINUX: Entry<Dctcp> = Entry {
    name: "dctcp-linux",
    aliases: &[],
    about: "DCTCP in whole segments, Alpha in units of 1/1024",
    source: "Linux 6.1 net/ipv4/tcp_dctcp.c",
    params: &[],
    build: |_| Ok(Dctcp::new(SHIFT_G, MAX_ALPHA)),
};

/// `dctcp_shift_g`: a window counts a sixteenth.
const SHIFT_G: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::testing::Bench;

    /// A flow in avoidance, whose windows are of 100 segments.
    fn flow(cwnd: u32) -> Bench<Dctcp> {
        let mut t = Bench::past_start_up(Dctcp::new(SHIFT_G, MAX_ALPHA), cwnd);
        t.sk.snd_nxt = t.sk.snd_una + 100;
        t.module.init(&mut t.sk);
        t
    }

    /// A window of which so many segments were marked ends.
    fn window(t: &mut Bench<Dctcp>, marked: u64) {
        t.sk.snd_una = t.sk.snd_nxt;
        t.sk.snd_nxt += 100;
        t.sk.delivered += 100;
        t.sk.delivered_ce += marked;
        t.module.on_ack_event(&mut t.sk, true);
    }

    #[test]
    fn alpha_counts_in_whole_units() {
        let mut t = flow(100);
        let mut seen = Vec::new();
        for marked in [100, 0, 0, 50] {
            window(&mut t, marked);
            seen.push((t.module.alpha, t.ssthresh()));
        }
        // 1024 - 64 + 64, - 64, - 60, - 56 + 32; taken is floor(100 alpha / 2048).
        assert_eq!(seen, [(1024, 50), (960, 54), (900, 57), (876, 58)]);
        t.module.alpha = 15; // less than a sixteenth of a unit: all of it goes
        window(&mut t, 0);
        assert_eq!(t.module.alpha, 0);
        window(&mut t, 1);
        assert_eq!(t.module.alpha, 0); // floor(64 / 100)
        window(&mut t, 2);
        assert_eq!(t.module.alpha, 1);
    }

    #[test]
    fn a_window_ends_with_its_last_segment() {
        let mut t = flow(100);
        t.sk.snd_una += 99;
        t.module.on_ack_event(&mut t.sk, true);
        assert_eq!(t.module.alpha, 1024);
        t.sk.snd_una += 1;
        t.module.on_ack_event(&mut t.sk, true);
        assert_eq!(t.module.alpha, 960);
    }

    #[test]
    fn losses_halve_and_marks_do_not() {
        let mut t = flow(100);
        t.module.alpha = 64;
        assert_eq!(t.ssthresh(), 97); // 100 - floor(6400 / 2048)
        t.sk.prior_cwnd = 100;
        t.sk.cwnd = 97;
        t.module.set_state(&mut t.sk, Phase::Recovery);
        assert_eq!((t.sk.cwnd, t.sk.ssthresh), (50, 50));
        assert_eq!(t.module.undo_cwnd(&mut t.sk), 100);
        // On the way down from 100 to 97.
        (t.sk.state, t.sk.cwnd) = (Phase::Cwr, 98);
        t.module.set_state(&mut t.sk, Phase::Recovery);
        assert_eq!(t.sk.ssthresh, 49);
        t.sk.state = Phase::Recovery;
        t.sk.cwnd = 80;
        t.module.on_event(&mut t.sk, Event::Loss);
        assert_eq!(t.sk.ssthresh, 40);
        t.sk.cwnd = 3;
        assert_eq!(t.ssthresh(), 3);
        t.module.alpha = 1024;
        assert_eq!(t.ssthresh(), 2);
    }
}
