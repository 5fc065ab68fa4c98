//! Words that keys of a transport take.

use super::super::{Word, word};

pub(super) const PRESETS: &[Word] = &[
    word(
        "2003",
        "SACK recovery without PRR, ACK counting, initial window 2, no handshake, no validation",
    ),
    word(
        "2026",
        "the RFCs of today: RACK-TLP, PRR, F-RTO, byte counting, initial window 10, RFC 7661",
    ),
    word(
        "linux",
        "Linux 6.1 with its default settings; its modules are the stacks `reno-linux`, `cubic-linux`, ...",
    ),
];

pub(super) const RECOVERIES: &[Word] = &[
    word("rack", "RACK with SACK (RFC 8985)"),
    word("sack", "duplicate ACKs over the SACK scoreboard (RFC 6675)"),
    word("newreno", "duplicate ACKs without SACK (RFC 6582)"),
];

pub(super) const TIMERS: &[Word] = &[
    word("exact", "at the time it was set for"),
    word(
        "wheel",
        "on a tick of the clock `hz`, rounded up and one tick later, as Linux does",
    ),
];

pub(super) const RTO_FORMULAS: &[Word] = &[
    word("rfc6298", "SRTT + 4 RTTVAR, at least `min_rto`"),
    word(
        "linux",
        "SRTT + the largest deviation of a window, that at least `min_rto`",
    ),
];

pub(super) const RTT_SAMPLES: &[Word] = &[
    word("newest", "the most recently sent"),
    word(
        "oldest",
        "the first sent, with the time its ACK was delayed, as Linux does",
    ),
];

pub(super) const LOSS_WINDOWS: &[Word] = &[
    word("one", "one segment, all outstanding ones are lost"),
    word(
        "flight",
        "one more than what was sent less than an RTT ago, as Linux does",
    ),
];

pub(in crate::keys) const COUNTS: &[Word] = &[
    word("segments", "every newly delivered segment (RFC 3465)"),
    word(
        "acks",
        "every ACK, however much it covers (RFC 2581, ns-2, Linux 2.4)",
    ),
];

pub(super) const VALIDATIONS: &[Word] = &[
    word("none", "keep the window"),
    word("rfc5681", "restart window after an idle timeout"),
    word("rfc2861", "halve per idle timeout, as Linux does"),
    word("rfc7661", "non-validated phase with pipeACK"),
];

pub(super) const SENDSTALLS: &[Word] = &[
    word("react", "reduce once per window, as Linux does"),
    word("ignore", "wait until the queue drains"),
    word("exit-slow-start", "leave slow start without a reduction"),
];

pub(super) const LOST_RETRANSMISSIONS: &[Word] = &[
    word("reduce", "one more reduction (RFC 5681, RFC 8985)"),
    word("ignore", "no further reduction, as Linux does"),
];

pub(super) const BASES: &[Word] = &[
    word("flight", "the smaller of window and flight size (RFC 5681)"),
    word("cwnd", "the window, as Linux does"),
];
