//! Scalable TCP as Linux has it (`net/ipv4/tcp_scalable.c`, Linux 6.1), where it differs from
//! Kelly's paper:
//!
//! - The 0.01 of the paper is a whole segment per 100 acknowledged ones, with the carry shared with
//!   every other module (`tcp_scalable_cong_avoid`, `tcp_cong_avoid_ai`); kernels that counted ACKs
//!   used 50.
//! - Below 100 segments the increase is Reno's, and the decrease is an eighth at every window: no
//!   `lwnd` (`tcp_scalable_cong_avoid`, `tcp_scalable_ssthresh`).
//! - The eighth is rounded down: up to 7 segments a reduction takes nothing at all
//!   (`tcp_scalable_ssthresh`).

use crate::entry::Entry;
use crate::linux::module::Module;
use crate::linux::socket::Socket;

/// No state of its own.
#[derive(Clone, Debug)]
pub struct Scalable;

impl Module for Scalable {
    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        (sk.cwnd - (sk.cwnd >> DECREASE_SHIFT)).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if !sk.is_cwnd_limited() {
            return;
        }
        let Some(left) = sk.past_slow_start(acked) else {
            return;
        };
        sk.cong_avoid_ai(sk.cwnd.min(PER_SEGMENT), left);
    }

    fn report(&self, sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("cnt", f64::from(sk.cwnd.min(PER_SEGMENT)));
        visit("carry", f64::from(sk.cwnd_cnt));
    }
}

/// Acknowledged segments per segment of growth, at most (`TCP_SCALABLE_AI_CNT`).
const PER_SEGMENT: u32 = 100;

/// A reduction takes 2^-3 of the window (`TCP_SCALABLE_MD_SCALE`).
const DECREASE_SHIFT: u32 = 3;

/// `scalable-linux`.
pub const SCALABLE_LINUX: Entry<Scalable> = Entry {
    name: "scalable-linux",
    aliases: &["stcp-linux"],
    about: "Scalable TCP to the integer: a segment per min(w, 100), 1/8 less at every window",
    source: "Linux 6.1 net/ipv4/tcp_scalable.c",
    params: &[],
    build: |_| Ok(Scalable),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::testing::Bench;

    fn bench(w: u32) -> Bench {
        Bench::avoiding(&SCALABLE_LINUX, &[], 100, w)
    }

    #[test]
    fn a_segment_per_hundred_and_renos_pace_below() {
        for (w, acks) in [(50, 50), (99, 99), (100, 100), (101, 100), (1000, 100)] {
            let mut b = bench(w);
            b.acks(acks - 1);
            assert_eq!(b.sk.cwnd, w);
            b.acks(1);
            assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (w + 1, 0));
        }
        let mut b = bench(1000);
        b.ack(1000);
        assert_eq!(b.sk.cwnd, 1010);
    }

    #[test]
    fn a_reduction_takes_an_eighth_rounded_down() {
        for (w, kept) in [
            (1000, 875),
            (100, 88),
            (16, 14),
            (8, 7),
            (7, 7),
            (3, 3),
            (1, 2),
        ] {
            let mut b = bench(w);
            b.lose();
            assert_eq!(b.sk.ssthresh, kept, "{w}");
            b.undo();
            assert_eq!(b.sk.cwnd, w);
        }
    }

    #[test]
    fn slow_start_hands_the_rest_on_and_an_unused_window_stays() {
        let mut b = bench(10);
        b.sk.ssthresh = 12;
        b.ack(15);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (13, 1));
        b.sk.cwnd_limited = false;
        b.acks(100);
        assert_eq!((b.sk.cwnd, b.reported("carry")), (13, 1.0));
        assert_eq!(b.reported("cnt"), 13.0);
    }
}
