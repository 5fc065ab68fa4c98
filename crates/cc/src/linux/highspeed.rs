//! HighSpeed TCP as Linux has it (`net/ipv4/tcp_highspeed.c`, Linux 6.1), where it differs from RFC
//! 3649:
//!
//! - The table of Appendix B is read upwards, the first row whose window is at least the present
//!   one, and ends at 89,053 segments, one row early (`hstcp_cong_avoid`). Its decreases are 1/256,
//!   rounded down.
//! - The row is looked up by ACKs in congestion avoidance only: a loss in the first slow start
//!   finds row 0 and halves, later ones the row of some earlier window (`hstcp_ssthresh`).
//! - `a(w)` is added once per ACK, whatever it acknowledges, and an ACK gives one segment at most
//!   (`hstcp_cong_avoid`): delayed ACKs halve the growth. Slow start drops what it has left at the
//!   threshold.
//! - The carry is not cut when the window shrinks, only paid out one window at a time
//!   (`hstcp_cong_avoid`).
//! - The window ends at 33,554,431 segments so that the decrease fits 32 bits (`hstcp_init`).

use crate::entry::Entry;
use crate::law::highspeed::WINDOWS;
use crate::linux::module::Module;
use crate::linux::socket::Socket;

/// HighSpeed TCP.
#[derive(Clone, Debug)]
pub struct HighSpeed {
    /// Row of the table; `a(w)` is one more.
    row: usize,
}

impl HighSpeed {
    /// Moves to the first row whose window is at least `w`, from the last one.
    #[inline]
    fn look_up(&mut self, w: u32) {
        while w > WINDOWS[self.row] && self.row + 1 < DECREASES.len() {
            self.row += 1;
        }
        while self.row > 0 && w <= WINDOWS[self.row - 1] {
            self.row -= 1;
        }
    }
}

impl Module for HighSpeed {
    fn init(&mut self, sk: &mut Socket) {
        self.row = 0;
        sk.clamp = sk.clamp.min(LARGEST);
    }

    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        let cut = sk.cwnd.wrapping_mul(u32::from(DECREASES[self.row])) >> 8;
        (sk.cwnd - cut).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        if !sk.is_cwnd_limited() {
            return;
        }
        if sk.in_slow_start() {
            sk.slow_start(acked);
            return;
        }
        self.look_up(sk.cwnd);
        if sk.cwnd < sk.clamp {
            sk.cwnd_cnt += self.row as u32 + 1;
            if sk.cwnd_cnt >= sk.cwnd {
                sk.cwnd_cnt -= sk.cwnd;
                sk.cwnd += 1;
            }
        }
    }

    fn report(&self, sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("a", self.row as f64 + 1.0);
        visit("b", f64::from(DECREASES[self.row]) / 256.0);
        visit("carry", f64::from(sk.cwnd_cnt));
    }
}

/// Largest window, segments: 2^32 over the largest decrease (`hstcp_init`).
const LARGEST: u32 = u32::MAX / 128;

/// Decrease of each row, 1/256: `b(w)` of the row's window, rounded down.
#[rustfmt::skip]
const DECREASES: [u8; 72] = [
    128, 112, 104, 98, 93, 89, 86, 83, 81, 78, 76, 74, 72, 71, 69, 68, 66, 65, 64, 62, 61, 60, 59, 58, 57, 56, 55,
    54, 53, 52, 52, 51, 50, 49, 48, 48, 47, 46, 45, 45, 44, 43, 43, 42, 41, 41, 40, 39, 39, 38, 38, 37, 36, 36,
    35, 35, 34, 33, 33, 32, 32, 31, 30, 30, 29, 28, 28, 27, 26, 26, 25, 24,
];

/// `highspeed-linux`.
pub const HIGHSPEED_LINUX: Entry<HighSpeed> = Entry {
    name: "highspeed-linux",
    aliases: &["hstcp-linux"],
    about: "HighSpeed TCP to the integer: table read upwards, one step per ACK, first loss halves",
    source: "Linux 6.1 net/ipv4/tcp_highspeed.c",
    params: &[],
    build: |_| Ok(HighSpeed { row: 0 }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::highspeed::{Form, HighSpeed as Rfc};
    use crate::linux::testing::Bench;

    fn bench(w: u32) -> Bench {
        Bench::avoiding(&HIGHSPEED_LINUX, &[], 100, w)
    }

    #[test]
    fn decreases_are_the_rfcs_rounded_down() {
        let rfc = Rfc::rfc(Form::Exact);
        for (window, decrease) in WINDOWS.into_iter().zip(DECREASES) {
            let b = rfc.b(f64::from(window));
            assert_eq!((256.0 * b) as u8, decrease, "{window}");
        }
    }

    #[test]
    fn rows_are_read_upwards() {
        let mut b = bench(2);
        let rows = [
            (38, 1, 128),
            (39, 2, 112),
            (118, 2, 112),
            (119, 3, 104),
            (833, 7, 86),
            (851, 7, 86),
            (852, 8, 83),
            (1000, 8, 83),
            (84_035, 71, 25),
            (84_036, 72, 24),
            (89_054, 72, 24),
            (1_000_000, 72, 24),
        ];
        // Up and down again: the search starts from the last row.
        for (w, a, decrease) in rows.into_iter().chain(rows.into_iter().rev()) {
            b.sk.cwnd = w;
            b.ack(1);
            assert_eq!(b.reported("a"), f64::from(a), "{w}");
            assert_eq!(b.reported("b"), f64::from(decrease) / 256.0, "{w}");
        }
    }

    #[test]
    fn an_ack_adds_the_rows_increase_once_and_a_segment_at_most() {
        let mut b = bench(833);
        b.acks(118);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (833, 826));
        b.ack(1000);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (834, 0));
        b.sk.cwnd = 100;
        b.sk.cwnd_cnt = 900;
        b.ack(1);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (101, 802)); // a carry of nine windows
        b.ack(1);
        assert_eq!((b.sk.cwnd, b.reported("carry")), (102, 703.0));
    }

    #[test]
    fn a_loss_cuts_by_the_row_last_seen_in_avoidance() {
        let mut b = Bench::new(&HIGHSPEED_LINUX, &[], 100, 1000);
        b.init();
        b.ack(1);
        b.lose();
        assert_eq!(b.sk.ssthresh, 501, "half of 1001: row 0");
        let mut b = bench(1000);
        b.ack(1);
        b.lose();
        assert_eq!(b.sk.ssthresh, 676); // 1000 - (1000 * 83 >> 8)
        b.sk.cwnd = 100; // slow start after a timeout, and another loss
        b.lose();
        assert_eq!(b.sk.ssthresh, 68); // 100 - (100 * 83 >> 8)
        b.init();
        b.sk.cwnd = 3;
        b.lose();
        assert_eq!(b.sk.ssthresh, 2);
    }

    #[test]
    fn slow_start_drops_the_rest_and_limits_hold() {
        let mut b = bench(10);
        b.sk.ssthresh = 12;
        b.ack(15);
        assert_eq!((b.sk.cwnd, b.sk.cwnd_cnt), (12, 0));
        b.sk.cwnd_limited = false;
        b.ack(1);
        assert_eq!(b.sk.cwnd_cnt, 0);
        assert_eq!(b.sk.clamp, 33_554_431);
        b.sk.cwnd_limited = true;
        b.sk.clamp = 12;
        b.ack(1);
        assert_eq!(b.sk.cwnd_cnt, 0, "nothing is counted at the clamp");
    }
}
