//! The send buffer of a Linux host and the application that keeps it full.
//!
//! A segment stays in the buffer until it is acknowledged in order. The buffer counts memory: two
//! windows, BBR's three (`tcp_sndbuf_expand`), and it never shrinks. SACKed segments that follow
//! one another share one buffer, so that only their payload counts (`tcp_shift_skb_data`). The
//! application sleeps when the buffer is full and writes again when a third of it is free
//! (`tcp_sendmsg_locked`, `sk_stream_write_space`). The last segment of a write carries PSH, which
//! the receiver acknowledges at once, and so does one with which more than half of the largest
//! window that the peer has advertised is written since the last push (`forced_push`).

use crate::config::{self, SenderConfig};

/// `MAX_TCP_HEADER` and `skb_shared_info`, 64-bit, without wireless drivers and tunnels, bytes.
const OVERHEAD: u64 = 192 + 320;
/// `sk_buff`, bytes.
const SK_BUFF: u64 = 256;
/// `TCP_INIT_CWND`: the least window that the buffer is for, segments.
const LEAST_WINDOW: u64 = 10;
/// Largest buffer (`tcp_wmem`): never the limit, as on hosts set up for long paths, bytes.
const MOST: u64 = 256 << 20;
/// Writes whose last segments have not left: each fills a third of the buffer.
const WRITES: usize = 4;

/// The buffer, if the application uses one.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    /// First unacknowledged segment at which the application may wake; [`u64::MAX`]: it has nothing
    /// to write, or no buffer.
    wake: u64,
    /// Largest window that the buffer was sized for, segments; [`u64::MAX`]: no buffer.
    sized: u64,
    /// No segment before this one is pushed; [`u64::MAX`]: none at all.
    next_push: u64,
    /// One past the last segment pushed.
    pushed: u64,
    /// Last segments of the writes that are not sent, oldest first; [`u64::MAX`]: no more.
    lasts: [u64; WRITES],
    /// One past the last segment written.
    end: u64,
    /// Size of the buffer, bytes of memory.
    size: u64,
    /// Memory of a full segment, bytes.
    segment: u64,
    /// Memory of a segment without payload, bytes.
    empty: u64,
    /// Memory that a segment of the window is worth, bytes.
    share: u64,
    is_on: bool,
}

/// State of the sender on which the next write depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// First unacknowledged segment.
    pub(super) una: u64,
    /// Outstanding segments that share the buffer of the one before.
    pub(super) merged: u64,
    /// One past the last segment that the application has.
    pub(super) app_end: u64,
    /// Window in force, segments.
    pub(super) window: u64,
    /// Windows that the buffer holds.
    pub(super) windows: u64,
}

impl SendBuffer {
    /// Empty; sizes are in bytes of memory, segments are those of `cfg`.
    pub(super) fn new(cfg: &SenderConfig) -> Self {
        let is_on = cfg.host.send_buffer;
        let (mss, empty) = (u64::from(cfg.mss), u64::from(cfg.host.segment_overhead));
        let packet = mss + u64::from(cfg.header);
        // The clamp of the segment size counts no options.
        let clamp = packet.saturating_sub(u64::from(config::HEADERS)).max(mss);
        Self {
            wake: u64::MAX,
            sized: if is_on { 0 } else { u64::MAX },
            next_push: if is_on { 0 } else { u64::MAX },
            pushed: 0,
            lasts: [u64::MAX; WRITES],
            end: 0,
            size: 0,
            segment: mss + empty,
            empty,
            share: (clamp + OVERHEAD).next_power_of_two() + SK_BUFF,
            is_on,
        }
    }

    /// The application writes through a buffer.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Without SACKs: so much is acknowledged that the application wakes, or the buffer grows.
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
        let shared = need.merged * self.empty;
        let queued = (self.end.saturating_sub(need.una) * self.segment).saturating_sub(shared);
        if self.size.saturating_sub(queued) >= queued / 2 {
            let full = need.una + (self.size + shared).div_ceil(self.segment);
            let end = full.min(need.app_end);
            if end > self.end {
                self.end = end;
                self.note_last(end - 1);
            }
        }
        // Three halves of what may be queued when it wakes fill the buffer.
        let low = (2 * self.size / 3 + shared) / self.segment;
        self.wake = match self.end >= need.app_end {
            true => u64::MAX,
            false => self.end.saturating_sub(low),
        };
        self.end
    }

    fn note_last(&mut self, last: u64) {
        self.next_push = self.next_push.min(last);
        let free = self.lasts.iter_mut().find(|l| **l == u64::MAX);
        if let Some(free) = free {
            *free = last;
        }
    }

    /// New segment `seq` leaves; `advertised` is the largest window of the peer, segments. True if
    /// it carries PSH.
    #[inline]
    pub(super) fn takes(&mut self, seq: u64, advertised: u64) -> bool {
        seq >= self.next_push && self.pushes(seq, advertised)
    }

    #[cold]
    fn pushes(&mut self, seq: u64, advertised: u64) -> bool {
        let half = advertised / 2;
        let push = seq >= self.lasts[0] || seq.saturating_sub(self.pushed) >= half;
        if push {
            self.pushed = seq + 1;
        }
        while self.lasts[0] <= seq {
            self.lasts.rotate_left(1);
            self.lasts[WRITES - 1] = u64::MAX;
        }
        self.next_push = self.lasts[0].min(self.pushed.saturating_add(half));
        push
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;

    fn linux() -> SenderConfig {
        SenderConfig::preset(Preset::Linux, 1500)
    }

    /// Two windows of 100 are 200 times 2304 bytes: 208 segments of 2216, 203 of 2280.
    #[test]
    fn a_segment_takes_its_payload_and_its_overhead() {
        let ends = |overhead| {
            let cfg = linux().with(|c| c.host.segment_overhead = overhead);
            SendBuffer::new(&cfg).write(need(0, 100))
        };
        assert_eq!((ends(768), ends(832)), (208, 203));
    }

    fn need(una: u64, window: u64) -> Need {
        Need {
            una,
            merged: 0,
            app_end: u64::MAX,
            window,
            windows: 2,
        }
    }

    fn pushed(b: &mut SendBuffer, most: u64, advertised: u64) -> Vec<u64> {
        (0..most).filter(|seq| b.takes(*seq, advertised)).collect()
    }

    /// Segments of 1448 bytes take 2216 bytes of memory, a window's 2304: ten of them twice are
    /// 46,080, the 21st segment fills that; a third is free when 13 are left (43,212 bytes and half
    /// of those 28,808 are less). With a window of ten Linux 6.1 pushes segments 20, 28, 36.
    #[test]
    fn the_application_fills_two_windows_and_wakes_at_two_thirds() {
        let mut b = SendBuffer::new(&linux());
        assert_eq!(b.write(need(0, 10)), 21);
        assert!(!b.is_due(7, 10) && b.is_due(8, 10));
        assert_eq!(b.write(need(8, 10)), 29);
        // Twelve windows' worth: 55,296 bytes, 25 segments and 16 that wake.
        assert!(b.is_due(8, 12));
        assert_eq!(b.write(need(8, 12)), 29, "no room yet");
        assert!(!b.is_due(12, 12) && b.is_due(13, 12));
        assert_eq!(b.write(need(13, 9)), 38);
        assert_eq!(pushed(&mut b, 38, u64::MAX), [20, 28, 37]);
    }

    /// Each SACKed segment that shares a buffer gives back 768 bytes: 21 segments, 46,536 bytes,
    /// are 30,408 with 21 of them, and of 46,080 bytes a third is free then.
    #[test]
    fn sacked_segments_share_a_buffer() {
        let mut b = SendBuffer::new(&linux());
        let merged = |merged| Need {
            merged,
            ..need(0, 10)
        };
        assert_eq!(b.write(merged(0)), 21);
        assert_eq!(b.write(merged(9)), 21);
        assert_eq!(
            b.write(merged(20)),
            21,
            "31,176 bytes and half of that are more"
        );
        assert_eq!(
            b.write(merged(21)),
            29,
            "30,408 are not; 62,208 bytes of segments fit"
        );
    }

    #[test]
    fn the_last_segment_of_a_transfer_is_pushed() {
        let mut b = SendBuffer::new(&linux());
        let need = Need {
            app_end: 7,
            ..need(0, 10)
        };
        assert_eq!(b.write(need), 7);
        assert!(!b.is_due(7, 10));
        assert_eq!(pushed(&mut b, 7, u64::MAX), [6]);
    }

    /// More than half of the window written since the last push: of 2 and 3 segments two, of 4 and
    /// 5 three, of 8 five; and the last of the write.
    #[test]
    fn half_of_a_small_advertised_window_is_pushed() {
        for (advertised, every) in [(2, 2), (3, 2), (4, 3), (5, 3), (8, 5)] {
            let mut b = SendBuffer::new(&linux());
            assert_eq!(b.write(need(0, 10)), 21);
            let seen = pushed(&mut b, 21, advertised);
            let mut expected: Vec<u64> = (1..=20 / every).map(|n| n * every - 1).collect();
            expected.push(20);
            assert_eq!(seen, expected, "{advertised}");
        }
    }
}
