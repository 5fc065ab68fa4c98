//! The send buffer of a Linux host and the application that keeps it full.
//!
//! A segment stays in the buffer until it is acknowledged in order; SACKed ones wait behind a hole.
//! The application sleeps when the buffer is full and writes again when a third of it is free
//! (`tcp_sendmsg_locked`, `sk_stream_write_space`); the last segment of a write carries PSH, which
//! the receiver acknowledges at once. The buffer holds two windows, BBR's three, in bytes of memory
//! (`tcp_sndbuf_expand`), and never shrinks.

/// Memory of an empty buffer with its data (`SKB_TRUESIZE` of `MAX_TCP_HEADER`), bytes.
const EMPTY: u64 = 768;
/// `MAX_TCP_HEADER` and `skb_shared_info`, 64-bit, without wireless drivers and tunnels, bytes.
const HEADERS: u64 = 192 + 320;
/// `sk_buff`, bytes.
const SK_BUFF: u64 = 256;
/// IPv4 and TCP without options: the clamp of the segment size counts none, bytes.
const PLAIN_HEADERS: u64 = 40;
/// `TCP_INIT_CWND`: the least window that the buffer is for, segments.
const LEAST_WINDOW: u64 = 10;
/// Largest buffer (`tcp_wmem`): never the limit, as on hosts set up for long paths, bytes.
const MOST: u64 = 256 << 20;
/// Writes whose last segments have not left: each fills a third of the buffer.
const WRITES: usize = 4;

/// The buffer, if the application uses one.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    /// First unacknowledged segment at which the application wakes; [`u64::MAX`]: it has nothing to
    /// write, or no buffer.
    wake: u64,
    /// Largest window that the buffer was sized for, segments; [`u64::MAX`]: no buffer.
    sized: u64,
    /// Last segment of the oldest write that is not sent; [`u64::MAX`]: none.
    push: u64,
    /// Those of the writes after it, oldest first.
    later: [u64; WRITES],
    /// One past the last segment written.
    end: u64,
    /// Its size, bytes of memory.
    size: u64,
    /// Memory of a full segment, bytes.
    segment: u64,
    /// Memory that a segment of the window is worth, bytes.
    share: u64,
    is_on: bool,
}

/// What decides about the next write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// First unacknowledged segment.
    pub(super) una: u64,
    /// One past the last segment that the application has.
    pub(super) app_end: u64,
    /// Window in force, segments.
    pub(super) window: u64,
    /// Windows that the buffer holds.
    pub(super) windows: u64,
}

impl SendBuffer {
    /// For segments of `mss` bytes whose headers take `header`.
    pub(super) fn new(is_on: bool, mss: u32, header: u32) -> Self {
        let packet = u64::from(mss) + u64::from(header);
        let clamp = packet.saturating_sub(PLAIN_HEADERS).max(u64::from(mss));
        Self {
            wake: u64::MAX,
            sized: if is_on { 0 } else { u64::MAX },
            push: u64::MAX,
            later: [u64::MAX; WRITES],
            end: 0,
            size: 0,
            segment: u64::from(mss) + EMPTY,
            share: (clamp + HEADERS).next_power_of_two() + SK_BUFF,
            is_on,
        }
    }

    /// The application writes through a buffer.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// So much is acknowledged that the application wakes, or the buffer grows.
    #[inline]
    pub(super) fn is_due(&self, una: u64, window: u64) -> bool {
        una >= self.wake || window > self.sized
    }

    /// The buffer grows with the window, and the application writes if there is room. One past the
    /// last segment written.
    #[cold]
    pub(super) fn write(&mut self, need: Need) -> u64 {
        let windows = need.windows * need.window.max(LEAST_WINDOW);
        self.size = self.size.max((windows * self.share).min(MOST));
        self.sized = self.sized.max(need.window);
        let queued = self.end.saturating_sub(need.una) * self.segment;
        if self.size.saturating_sub(queued) >= queued / 2 {
            let full = need.una + self.size.div_ceil(self.segment);
            let end = full.min(need.app_end);
            if end > self.end {
                self.end = end;
                self.mark(end - 1);
            }
        }
        // Three halves of what may be queued when it wakes fill the buffer.
        let low = 2 * self.size / (3 * self.segment);
        self.wake = match self.end >= need.app_end {
            true => u64::MAX,
            false => self.end.saturating_sub(low),
        };
        self.end
    }

    fn mark(&mut self, last: u64) {
        if self.push == u64::MAX {
            self.push = last;
            return;
        }
        let free = self.later.iter_mut().find(|m| **m == u64::MAX);
        if let Some(free) = free {
            *free = last;
        }
    }

    /// New segment `seq` leaves. True if it carries PSH.
    #[inline]
    pub(super) fn takes(&mut self, seq: u64) -> bool {
        seq >= self.push && self.ends_write(seq)
    }

    #[cold]
    fn ends_write(&mut self, seq: u64) -> bool {
        let ends = seq == self.push;
        while self.push <= seq {
            self.push = self.later[0];
            self.later.rotate_left(1);
            self.later[WRITES - 1] = u64::MAX;
            if self.push == u64::MAX {
                break;
            }
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 1448 bytes take 2216 bytes of memory, a window's 2304: ten of them twice are
    /// 46,080, the 21st segment fills that; a third is free when 13 are left (43,212 bytes and half
    /// of those 28,808 are less). With a window of ten Linux 6.1 pushes segments 20, 28, 36.
    #[test]
    fn the_application_fills_two_windows_and_wakes_at_two_thirds() {
        let mut b = SendBuffer::new(true, 1448, 52);
        let need = |una, window| Need {
            una,
            app_end: u64::MAX,
            window,
            windows: 2,
        };
        assert_eq!(b.write(need(0, 10)), 21);
        assert!(!b.is_due(7, 10) && b.is_due(8, 10));
        assert_eq!(b.write(need(8, 10)), 29);
        // Twelve windows' worth: 55,296 bytes, 25 segments and 16 that wake.
        assert!(b.is_due(8, 12));
        assert_eq!(b.write(need(8, 12)), 29, "no room yet");
        assert!(!b.is_due(12, 12) && b.is_due(13, 12));
        assert_eq!(b.write(need(13, 9)), 38);
        let pushed: Vec<u64> = (0..40).filter(|seq| b.takes(*seq)).collect();
        assert_eq!(pushed, [20, 28, 37]);
    }

    #[test]
    fn the_last_segment_of_a_transfer_is_pushed() {
        let mut b = SendBuffer::new(true, 1448, 52);
        let need = Need {
            una: 0,
            app_end: 7,
            window: 10,
            windows: 2,
        };
        assert_eq!(b.write(need), 7);
        assert!(!b.is_due(7, 10));
        assert!(!b.takes(5) && b.takes(6));
    }
}
