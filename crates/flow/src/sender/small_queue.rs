//! TCP small queues: a flow keeps so little in the queue of its own host that it need not fill it,
//! be refused and reduce its window for that (Linux since 3.6, `net/ipv4/tcp_output.c`,
//! `tcp_small_queue_check`; what has left the host makes it try again, `tcp_wfree` and
//! `tcp_tsq_handler`).

/// What a flow has in the queue of its host.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmallQueue {
    /// It matters: the host has a queue, and the flow is to keep it small.
    on: bool,
    /// A segment waits until another one has left the host.
    waits: bool,
    /// Segments of this flow in the queue, the one on the wire included.
    queued: u64,
}

/// What would enter the queue, and what the flow may keep there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Payload of a segment, bytes.
    pub(super) mss: u64,
    /// Segments that enter as one.
    pub(super) segments: u64,
    /// Segments sent and not acknowledged.
    pub(super) outstanding: u64,
    /// The pacing rate, which is computed whether the flow is paced or not, bytes of payload per
    /// second; infinite before the first RTT sample.
    pub(super) rate: f64,
    pub(super) paced: bool,
    pub(super) retransmission: bool,
}

impl SmallQueue {
    pub(super) fn new() -> Self {
        Self {
            on: false,
            waits: false,
            queued: 0,
        }
    }

    /// The host has a queue of its own and reports what leaves it.
    pub(super) fn attach(&mut self) {
        self.on = true;
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    #[inline]
    pub(super) fn enter(&mut self) {
        self.queued += 1;
    }

    /// A segment has left the host; true if another one waits for that.
    #[inline]
    pub(super) fn leave(&mut self) -> bool {
        debug_assert!(self.queued > 0, "more left than entered");
        self.queued = self.queued.saturating_sub(1);
        std::mem::take(&mut self.waits)
    }

    /// True if `entry` has to wait for something to leave.
    pub(super) fn holds(&mut self, entry: Entry) -> bool {
        // With one buffer outstanding the next one goes, however late the host says that the first
        // has left (`tcp_rtx_queue_empty_or_single_skb`).
        self.waits = entry.outstanding > entry.segments && self.bytes(entry) >= limit(entry);
        self.waits
    }

    /// What the queue holds of this flow, in buffers of the size of `entry`.
    fn bytes(&self, entry: Entry) -> u64 {
        let buffers = self.queued.div_ceil(entry.segments);
        self.queued * entry.mss + buffers * OVERHEAD
    }
}

/// Bytes from which on the flow waits: a millisecond of its rate, at least two buffers; twice as
/// many for a retransmission.
fn limit(entry: Entry) -> u64 {
    let two = 2 * (entry.segments * entry.mss + OVERHEAD);
    // The cast saturates.
    let millisecond = (entry.rate / MILLISECONDS) as u64;
    let limit = two.max(millisecond);
    let limit = match entry.paced {
        true => limit,
        false => limit.min(MOST),
    };
    limit << u32::from(entry.retransmission)
}

/// Bytes of a buffer beside its payload: head and bookkeeping on a machine of 64 bits, 1024 bytes
/// for 320 of headers and 320 of shared information, and 256 of the descriptor (Linux 6.1
/// `tcp_stream_alloc_skb`, `SKB_TRUESIZE`).
const OVERHEAD: u64 = 1280;

/// Parts of a second that count as a millisecond (`sk_pacing_shift` 10).
const MILLISECONDS: f64 = 1024.0;

/// Most bytes of a flow that is not paced (`tcp_limit_output_bytes`, 1 MiB in Linux 6.1 and 6.12).
const MOST: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments that a flow gets into its queue at once.
    fn most(entry: Entry) -> u64 {
        let mut queue = SmallQueue::new();
        queue.attach();
        let outstanding = |queued: u64| entry.outstanding + queued;
        while !queue.holds(Entry {
            outstanding: outstanding(queue.queued),
            ..entry
        }) {
            for _ in 0..entry.segments {
                queue.enter();
            }
        }
        queue.queued
    }

    const SLOW: Entry = Entry {
        mss: 1448,
        segments: 1,
        outstanding: 100,
        rate: 125_000.0,
        paced: false,
        retransmission: false,
    };

    /// Two buffers below the rate at which a millisecond holds more, whatever is in them.
    #[test]
    fn a_slow_flow_keeps_two_buffers() {
        assert_eq!(most(SLOW), 2);
        assert_eq!(
            most(Entry {
                segments: 44,
                ..SLOW
            }),
            88
        );
        let again = Entry {
            retransmission: true,
            ..SLOW
        };
        assert_eq!(most(again), 4);
    }

    /// 100 Mbit/s of payload are 12,207 bytes in 1/1024 s: five buffers of 2,728 bytes with
    /// their overhead, 10 Gbit/s of payload in buffers of 45 segments would be 1,220,703 bytes.
    #[test]
    fn a_fast_flow_keeps_a_millisecond_of_its_rate() {
        assert_eq!(
            most(Entry {
                rate: 12.5e6,
                ..SLOW
            }),
            5
        );
        let fast = Entry {
            rate: 1.25e9,
            segments: 45,
            ..SLOW
        };
        // 1 MiB, or what is paced 1.16 MiB, in buffers of 66,440 bytes: the one that passes the
        // limit still enters.
        assert_eq!(most(fast), 16 * 45);
        assert_eq!(
            most(Entry {
                paced: true,
                ..fast
            }),
            19 * 45
        );
        assert_eq!(
            most(Entry {
                rate: f64::INFINITY,
                ..fast
            }),
            16 * 45
        );
    }

    /// With nothing else outstanding a second buffer leaves whatever the queue holds.
    #[test]
    fn the_second_buffer_never_waits() {
        let mut queue = SmallQueue::new();
        for _ in 0..10 {
            queue.enter();
        }
        let entry = |outstanding| Entry {
            outstanding,
            ..SLOW
        };
        assert!(!queue.holds(entry(0)) && !queue.holds(entry(1)));
        assert!(!queue.leave());
        assert!(queue.holds(entry(2)));
        assert!(queue.leave() && !queue.leave());
    }
}
