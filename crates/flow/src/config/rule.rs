//! The choices between rules: which RFC, or what a kernel does in its place.

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::{RecoveryConfig, TimerConfig};

/// How losses are detected and which segment is sent next in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detector {
    /// RACK with SACK (RFC 8985).
    Rack,
    /// Three SACKed segments above a hole (RFC 6675); see [`RecoveryConfig::reordering_by`].
    Sack,
    /// Three duplicate ACKs, without SACK (RFC 6582); see [`RecoveryConfig::reordering_by`].
    NewReno,
}

/// By whose rules a reduction proves spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpuriousRule {
    /// The first ACK that advances after the first retransmission decides, by its time stamp (RFC
    /// 3522); later ones by DSACK (RFC 3708).
    Rfc,
    /// Every ACK that advances may decide, by a time stamp in whole milliseconds; a count of DSACKs
    /// decides too (Linux 6.1 `tcp_may_undo`, `net/ipv4/tcp_input.c`).
    Linux,
}

/// How a paced segment waits for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PacerRule {
    /// Virtual scheduling: a segment that leaves late moves no later one, but no more than two
    /// segments or a millisecond of data are made up for, whichever is more.
    Credit,
    /// The first ten segments leave unpaced; behind one that leaves late the next one waits at
    /// least half of its time (Linux `tcp_update_skb_after_send`, `net/ipv4/tcp_output.c`). The
    /// rate of window and RTT changes with ACKs, not with what leaves between them.
    Linux,
}

/// What the sender does when its own interface queue refuses a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocalDrop {
    /// Reduce once per window: enter CWR, without undo (Linux `tcp_enter_cwr`).
    React,
    /// Wait for the queue to drain; the window stays (the Net100 daemon's switch).
    Ignore,
    /// Leave slow start without a reduction.
    ExitSlowStart,
}

/// How the window comes down during a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reduction {
    /// To `ssthresh` at once (RFC 5681, RFC 6675).
    Immediate,
    /// Proportional rate reduction: in proportion to what was outstanding and not SACKed (RFC
    /// 9937).
    Prr,
    /// Proportional rate reduction in proportion to the window before it (RFC 6937; Linux
    /// `tcp_cwnd_reduction`).
    PrrWindow,
}

/// Which segments of one ACK give the RTT samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RttSample {
    /// The most recently sent one, for SRTT and controller alike.
    Newest,
    /// SRTT and RTO: the oldest newly acknowledged one, so that a delayed ACK's wait counts.
    /// Controller: the newest. An ACK that covers a retransmission samples its SACKed segments, or
    /// its time stamp in milliseconds (Linux `tcp_clean_rtx_queue`, `tcp_ack_update_rtt`).
    Oldest,
}

/// How the retransmission timeout follows from the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RtoRule {
    /// `SRTT + 4 RTTVAR`, at least the minimum (RFC 6298).
    Rfc6298,
    /// The larger of two: the same, and the same with one sample per round trip, for which RFC
    /// 6298's gains are meant. With a sample per ACK alone they keep "an inadequate RTT history"
    /// (section 3), with a window of a thousand segments that of its last eight ACKs.
    Rounds,
    /// `SRTT + RTTVAR` with RTTVAR the largest deviation of a window, at least the minimum; the
    /// deviation grows an eighth as fast when the RTT falls (Linux `tcp_rtt_estimator`).
    Linux,
}

/// When a timer that is set for a span of time goes off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimerGrain {
    /// Exactly then.
    Exact,
    /// On a tick of a clock of [`TimerConfig::hz`]: the span is rounded up to ticks, and one more
    /// tick passes because the present one has begun; spans of 63 ticks and more end on every
    /// eighth tick (Linux `kernel/time/timer.c`).
    Wheel,
}

/// The window after a retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LossWindow {
    /// One segment; everything outstanding is taken to be lost (RFC 5681 section 3.1).
    One,
    /// One segment more than what is still in flight; segments sent less than an RTT ago are not
    /// taken to be lost (RFC 8985 section 6.3, Linux `tcp_enter_loss`).
    FlightPlusOne,
}

/// Window validation after idle or application-limited time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Validation {
    /// Keep the window (ns-2).
    None,
    /// Restart window after an idle RTO (RFC 5681 section 4.1).
    Rfc5681,
    /// Halve per idle RTO, remember 3/4 of the window (RFC 2861, Linux `tcp_cwnd_restart`).
    Rfc2861,
    /// Non-validated phase with pipeACK (RFC 7661).
    Rfc7661,
}
