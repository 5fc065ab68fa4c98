//! What kept a flow from sending more, from two samples of its `tcp_info`.
//!
//! The kernel keeps time of three things ("chrono statistics", `tcp_chrono_start` in
//! net/ipv4/tcp_output.c, Linux 4.10): busy, and of that held back by the receiver's window and by
//! the send buffer. The rest of an interval belongs to the application, the rest of the busy time
//! to pacing or to the congestion window; which of these it was the sample at its end decides.
//! Where the window was not full and a buffer held the flow for a notable time, that is the cause:
//! pacing follows from what arrives, and data come in turns as the buffer lets them in.

use std::time::Duration;

use crate::tcp_info::{
    BUSY_TIME, BYTES_ACKED, LOST, MAX_PACING_RATE, NOTSENT_BYTES, PACING_RATE, RETRANS, RTT,
    RWND_LIMITED, SACKED, SND_CWND, SND_MSS, SND_SSTHRESH, SNDBUF_LIMITED, TcpInfo, UNACKED,
};

/// What kept a sender from sending more, for most of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// The application: there was nothing to send.
    Application,
    /// The window that the receiver advertises.
    ReceiveWindow,
    /// The send buffer (`SO_SNDBUF`, `net.ipv4.tcp_wmem`): it held less than the window.
    SendBuffer,
    /// A ceiling of the rate: `SO_MAX_PACING_RATE`.
    Rate,
    /// Pacing, at the rate that the congestion control chose.
    Pacing,
    /// Queues of this host, which have data of the flow that have not left: small queues
    /// (`tcp_small_queue_check`) let no more into them.
    LocalQueue,
    /// The congestion window, which still grows: no loss or mark has set a threshold.
    Window,
    /// The congestion window at a ceiling (`snd_cwnd_clamp`: a tuner's policy, `cwnd lock` of a
    /// route): no threshold is set, and it grows no more.
    WindowCap,
    /// The congestion window, and so the path: losses, marks or delay have set it.
    Network,
}

impl Limit {
    /// Name in tables and columns.
    pub fn word(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::ReceiveWindow => "receive window",
            Self::SendBuffer => "send buffer",
            Self::Rate => "rate",
            Self::Pacing => "pacing",
            Self::LocalQueue => "local queue",
            Self::Window => "window",
            Self::WindowCap => "window cap",
            Self::Network => "network",
        }
    }

    /// Between two samples, `elapsed` apart, of a sender whose buffer is full at the second and
    /// holds so many bytes, or has room for more; [`None`] if nothing was sent, or if the kernel
    /// is too old to tell.
    pub fn between(
        before: &TcpInfo,
        now: &TcpInfo,
        elapsed: Duration,
        full_buffer: Option<u32>,
    ) -> Option<Self> {
        let whole = elapsed.as_micros() as u64;
        let spent = |field| now.get(field)?.checked_sub(before.get(field)?);
        let busy = spent(&BUSY_TIME)?.min(whole);
        if busy == 0 {
            // The kernel counts in ticks: a few short writes may be shorter.
            let carried = spent(&BYTES_ACKED)? > 0;
            return carried.then_some(Self::Application);
        }
        let window = spent(&RWND_LIMITED)?.min(busy);
        let buffer = spent(&SNDBUF_LIMITED)?.min(busy - window);
        let shares = [
            (whole - busy, Some(Self::Application)),
            (window, Some(Self::ReceiveWindow)),
            (buffer, Some(Self::SendBuffer)),
            (busy - window - buffer, None),
        ];
        // The first of equals: the application before the others.
        let (_, most) = shares.iter().rev().max_by_key(|(share, _)| *share)?;
        let limit = most.unwrap_or_else(|| Self::while_busy(now, full_buffer.is_none()));
        // A writer whose last write went above a buffer smaller than the window fills the window
        // for a moment, and then waits until most of it is acknowledged.
        let held = matches!(limit, Self::Window | Self::Network)
            && full_buffer.is_some_and(|bytes| u64::from(bytes) < window_bytes(now))
            && most.is_none()
            && carried(spent(&BYTES_ACKED)?, now, elapsed) < CARRIED_WHEN_FULL;
        if held {
            return Some(Self::SendBuffer);
        }
        if limit == Self::Window && is_capped(before, now, elapsed) && spent(&BYTES_ACKED)? > 0 {
            return Some(Self::WindowCap);
        }
        // What paces by the rate that arrived (BBR) seldom asks for more than the buffers let out,
        // and a full send buffer has nothing unsent between two ACKs.
        Some(match limit {
            Self::Pacing | Self::LocalQueue | Self::Application
                if most.is_none() && window.max(buffer) >= whole / NOTABLE =>
            {
                match window >= buffer {
                    true => Self::ReceiveWindow,
                    false => Self::SendBuffer,
                }
            }
            other => other,
        })
    }

    /// Of a sender that neither buffer has held for most of the time.
    fn while_busy(now: &TcpInfo, has_room: bool) -> Self {
        let gone = now.count(&SACKED) + now.count(&LOST);
        let flight = (now.count(&UNACKED) + now.count(&RETRANS)).saturating_sub(gone);
        // As the kernel has it (`tcp_is_cwnd_limited`): a burst of TSO may not fit any more.
        let full = flight + burst(now) >= now.count(&SND_CWND);
        if !full {
            // Less than a segment waits to become one, not for its turn. The kernel's clock of the
            // send buffer stands still in a round trip in which the window was full once.
            if now.count(&NOTSENT_BYTES) < now.count(&SND_MSS).max(1) {
                return match has_room {
                    true => Self::Application,
                    false => Self::SendBuffer,
                };
            }
            let rate = now.get(&PACING_RATE);
            let ceiling = now.get(&MAX_PACING_RATE);
            return match (rate, ceiling) {
                (Some(rate), Some(ceiling)) if rate >= ceiling => Self::Rate,
                (Some(rate), _) if exceeds_window(rate, now) => Self::LocalQueue,
                _ => Self::Pacing,
            };
        }
        match now.get(&SND_SSTHRESH) {
            Some(_) => Self::Network,
            None => Self::Window,
        }
    }
}

/// Slow start, which is slowed down at most to a fixed number of segments a round trip, has not
/// grown in some of them. The window of a law that paces by itself is no ceiling's.
fn is_capped(before: &TcpInfo, now: &TcpInfo, elapsed: Duration) -> bool {
    let rounds = elapsed.as_micros() as u64 / now.count(&RTT).max(1);
    let is_paced = now.get(&PACING_RATE).is_some_and(|rate| {
        let ceiling = now.get(&MAX_PACING_RATE);
        ceiling.is_none_or(|most| rate < most) && !exceeds_window(rate, now)
    });
    rounds >= ROUNDS_TO_GROW && now.count(&SND_CWND) == before.count(&SND_CWND) && !is_paced
}

const ROUNDS_TO_GROW: u64 = 4;

fn window_bytes(now: &TcpInfo) -> u64 {
    now.count(&SND_CWND) * now.count(&SND_MSS)
}

/// Of what the window would have carried in that time, the part that was acknowledged.
fn carried(acked: u64, now: &TcpInfo, elapsed: Duration) -> f64 {
    let rounds = elapsed.as_secs_f64() * 1e6 / now.count(&RTT).max(1) as f64;
    acked as f64 / (rounds * window_bytes(now) as f64).max(1.0)
}

/// Rather less than a window in each round trip; it may have grown since.
const CARRIED_WHEN_FULL: f64 = 0.9;

/// The pacing rate is the one that the kernel derives from the window for laws that have none of
/// their own (`tcp_update_pacing_rate`): more than a window in a round trip, it fills the window.
fn exceeds_window(rate: u64, now: &TcpInfo) -> bool {
    let window = now.count(&SND_CWND).max(now.count(&UNACKED)) * now.count(&SND_MSS);
    let derived = window as f64 * 1e6 / now.count(&RTT).max(1) as f64;
    let near = |ratio: f64| (rate as f64 / (ratio * derived) - 1.0).abs() < RATE_ROUNDING;
    DERIVED.into_iter().any(near)
}

/// `net.ipv4.tcp_pacing_ca_ratio` and `tcp_pacing_ss_ratio` as they come.
const DERIVED: [f64; 2] = [1.2, 2.0];
/// The smoothed RTT may be newer than the rate by an ACK.
const RATE_ROUNDING: f64 = 0.02;

/// A tenth of an interval at a buffer is what the rate follows.
const NOTABLE: u64 = 10;

/// Segments by which a window that is full may be larger than the flight: `tcp_tso_should_defer`
/// waits until a burst fits, which is a millisecond of the pacing rate (`tcp_tso_autosize`), a
/// third of the window at most (`tcp_tso_win_divisor`).
fn burst(now: &TcpInfo) -> u64 {
    let rate = now.get(&PACING_RATE).filter(|rate| *rate < u64::MAX);
    let segments = match (rate, now.get(&SND_MSS)) {
        (Some(rate), Some(mss @ 1..)) => rate / 1024 / mss,
        _ => LEAST_BURST,
    };
    let most = MOST_BURST.min(now.count(&SND_CWND) / 3);
    segments.min(most).max(LEAST_BURST)
}

/// Two segments, and ACKs come for two.
const LEAST_BURST: u64 = 3;
/// 64 kB.
const MOST_BURST: u64 = 44;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp_info::{DELIVERY_RATE, Field};

    /// A sender with nothing outstanding, no threshold and no pacing.
    fn info(values: &[(Field, u64)]) -> TcpInfo {
        TcpInfo::of(
            &[
                (SND_CWND, 10),
                (SND_SSTHRESH, 0x7fff_ffff),
                (PACING_RATE, u64::MAX),
                (MAX_PACING_RATE, u64::MAX),
            ]
            .into_iter()
            .chain(values.iter().copied())
            .collect::<Vec<_>>(),
        )
    }

    fn limit(values: &[(Field, u64)]) -> Option<Limit> {
        Limit::between(&info(&[]), &info(values), Duration::from_millis(1), None)
    }

    #[test]
    fn the_largest_share_of_the_interval_names_it() {
        let busy = (BUSY_TIME, 900);
        let full = (UNACKED, 10);
        assert_eq!(limit(&[]), None, "nothing was sent");
        assert_eq!(limit(&[(BYTES_ACKED, 1)]), Some(Limit::Application));
        assert_eq!(limit(&[(BUSY_TIME, 400), full]), Some(Limit::Application));
        assert_eq!(
            limit(&[busy, (RWND_LIMITED, 500), full]),
            Some(Limit::ReceiveWindow)
        );
        assert_eq!(
            limit(&[busy, (SNDBUF_LIMITED, 500), full]),
            Some(Limit::SendBuffer)
        );
        assert_eq!(
            limit(&[busy, (RWND_LIMITED, 400), full]),
            Some(Limit::Window)
        );
        assert_eq!(limit(&[busy, full]), Some(Limit::Window));
        assert_eq!(
            limit(&[busy, full, (SND_SSTHRESH, 8)]),
            Some(Limit::Network)
        );
    }

    #[test]
    fn a_window_that_is_not_full_is_not_the_limit() {
        let busy = [
            (BUSY_TIME, 1000),
            (UNACKED, 2),
            (SND_SSTHRESH, 8),
            (NOTSENT_BYTES, 9000),
        ];
        let with = |more: &[(Field, u64)]| limit(&[&busy[..], more].concat());
        let (rate, delivered) = ((PACING_RATE, 1_000_000), (DELIVERY_RATE, 900_000));
        assert_eq!(with(&[rate, delivered]), Some(Limit::Pacing));
        assert_eq!(
            with(&[rate, delivered, (MAX_PACING_RATE, 1_000_000)]),
            Some(Limit::Rate)
        );
        assert_eq!(with(&[(NOTSENT_BYTES, 0)]), Some(Limit::Application));
        // 29.2 MB/s are bursts of 19 segments: what is short of the window by ten is full.
        let burst = [
            (UNACKED, 1122),
            (SND_CWND, 1132),
            (SND_MSS, 1448),
            (PACING_RATE, 29_200_000),
            (DELIVERY_RATE, 24_000_000),
        ];
        assert_eq!(with(&burst), Some(Limit::Network));
        assert_eq!(
            with(&[&burst[..], &[(UNACKED, 1110)]].concat()),
            Some(Limit::Pacing)
        );
        // Lost and sacked segments are not in the network.
        let gone = [(UNACKED, 12), (SACKED, 6), (LOST, 4), rate, delivered];
        assert_eq!(with(&gone), Some(Limit::Pacing));
    }

    /// Reno behind a token bucket of 50 Mbit/s at its own host: a window of 220 segments, of which
    /// small queues let 100 out, and 40 ms; BBR with the same flight and a rate of its own.
    #[test]
    fn what_waits_in_queues_of_the_host_is_not_paced() {
        let of = |rate: u64| {
            limit(&[
                (BUSY_TIME, 1000),
                (UNACKED, 100),
                (SND_CWND, 220),
                (SND_MSS, 1448),
                (SND_SSTHRESH, 180),
                (RTT, 40_000),
                (NOTSENT_BYTES, 9000),
                (PACING_RATE, rate),
                (DELIVERY_RATE, 6_000_000),
            ])
        };
        let window = 220 * 1448 * 25;
        assert_eq!(of(window * 12 / 10), Some(Limit::LocalQueue));
        assert_eq!(of(window * 2), Some(Limit::LocalQueue));
        assert_eq!(of(6_500_000), Some(Limit::Pacing));
    }

    /// BBR behind a window of 171 segments, with a `cwnd` of 406 and 43 % of its life at that
    /// window.
    #[test]
    fn pacing_that_a_buffer_holds_down_is_the_buffers() {
        let of = |field: Field, us| {
            let paced = [
                (BUSY_TIME, 1000),
                (field, us),
                (UNACKED, 160),
                (SND_CWND, 406),
                (SND_MSS, 1448),
                (NOTSENT_BYTES, 9000),
                (PACING_RATE, 6_000_000),
                (DELIVERY_RATE, 6_000_000),
            ];
            limit(&paced)
        };
        assert_eq!(of(RWND_LIMITED, 427), Some(Limit::ReceiveWindow));
        assert_eq!(of(SNDBUF_LIMITED, 497), Some(Limit::SendBuffer));
        assert_eq!(of(RWND_LIMITED, 99), Some(Limit::Pacing));
    }

    /// CUBIC with a send buffer of 4 MB over 1 Gbit/s and 100 ms, as Linux 6.18 counts it.
    #[test]
    fn half_a_window_behind_a_full_send_buffer_is_the_buffers() {
        let of = |us: u64, unsent: u64, flight: u64| {
            let window = 5432 * 1448 * 10;
            let cubic = [
                (BUSY_TIME, 1000),
                (SNDBUF_LIMITED, us),
                (UNACKED, flight),
                (SND_CWND, 5432),
                (SND_MSS, 1448),
                (SND_SSTHRESH, 5432),
                (RTT, 100_000),
                (NOTSENT_BYTES, unsent),
                (PACING_RATE, window * 12 / 10),
                (DELIVERY_RATE, 33_000_000),
            ];
            limit(&cubic)
        };
        for unsent in [0, 560, 9000] {
            assert_eq!(of(150, unsent, 2716), Some(Limit::SendBuffer), "{unsent}");
        }
        // Without it a queue of the host, or a writer that is slow; a full window is one.
        assert_eq!(of(50, 9000, 2716), Some(Limit::LocalQueue));
        assert_eq!(of(50, 560, 2716), Some(Limit::Application));
        assert_eq!(of(150, 9000, 5430), Some(Limit::Network));
    }

    /// CUBIC with `SO_SNDBUF` of 200,000 over 100 Mbit/s and 40 ms: 190 of 319 segments in flight,
    /// and none of the time at the buffer, as the kernel counts it.
    #[test]
    fn a_writer_that_finds_no_room_is_held_by_the_buffer() {
        let of = |full_buffer, flight, unsent| {
            let cubic = info(&[
                (BUSY_TIME, 1000),
                (UNACKED, flight),
                (SND_CWND, 319),
                (SND_MSS, 1448),
                (SND_SSTHRESH, 247),
                (NOTSENT_BYTES, unsent),
            ]);
            Limit::between(&info(&[]), &cubic, Duration::from_millis(1), full_buffer)
        };
        assert_eq!(of(Some(500_000), 190, 0), Some(Limit::SendBuffer));
        assert_eq!(of(None, 190, 0), Some(Limit::Application));
        assert_eq!(of(Some(500_000), 319, 0), Some(Limit::Network));
        assert_eq!(of(Some(500_000), 190, 9000), Some(Limit::Pacing));
    }

    /// CUBIC with `SO_SNDBUF` of 60,000, to which 16 kB are written at a time, over 100 Mbit/s and
    /// 40 ms: it had half of the path, and all of it with the buffer that the kernel tunes.
    #[test]
    fn a_window_that_a_small_buffer_fills_by_turns_is_the_buffers() {
        let of = |full_buffer, mbps: f64| {
            let cubic = info(&[
                (BUSY_TIME, 500_000),
                (UNACKED, 345),
                (SND_CWND, 345),
                (SND_MSS, 1448),
                (SND_SSTHRESH, 285),
                (NOTSENT_BYTES, 18_824),
                (RTT, 64_685),
                (BYTES_ACKED, (mbps * 62_500.0) as u64),
            ]);
            Limit::between(&info(&[]), &cubic, Duration::from_millis(500), full_buffer)
        };
        assert_eq!(of(Some(120_000), 54.32), Some(Limit::SendBuffer));
        assert_eq!(
            of(Some(120_000), 61.7),
            Some(Limit::Network),
            "a window a round trip"
        );
        assert_eq!(
            of(Some(1_000_000), 54.32),
            Some(Limit::Network),
            "it holds two windows"
        );
        assert_eq!(of(None, 54.32), Some(Limit::Network));
    }

    /// Scalable TCP below the `window` of a policy, 100 segments over 100 Mbit/s and 40 ms, looked
    /// at every second; and in slow start.
    #[test]
    fn a_window_that_grows_no_more_is_at_its_cap() {
        let of = |window: u64, rounds: u64, pacing: u64, threshold: u64| {
            let held = info(&[
                (BUSY_TIME, 1_000_000),
                (UNACKED, 100),
                (SND_CWND, 100),
                (SND_MSS, 1448),
                (SND_SSTHRESH, threshold),
                (RTT, 1_000_000 / rounds),
                (PACING_RATE, pacing * rounds),
                (BYTES_ACKED, 3_500_000),
            ]);
            let before = info(&[(SND_CWND, window)]);
            Limit::between(&before, &held, Duration::from_secs(1), None)
        };
        const NONE: u64 = 0x7fff_ffff;
        let derived = 2 * 100 * 1448;
        assert_eq!(of(100, 25, derived, NONE), Some(Limit::WindowCap));
        assert_eq!(of(90, 25, derived, NONE), Some(Limit::Window), "it grows");
        assert_eq!(
            of(100, 3, derived, NONE),
            Some(Limit::Window),
            "too soon to tell"
        );
        assert_eq!(of(100, 25, derived / 3, NONE), Some(Limit::Window), "BBR's");
        assert_eq!(of(100, 25, derived, 80), Some(Limit::Network));
    }

    /// CUBIC without pacing, of which the application wants 160 Mbit/s over 900 Mbit/s and 3 ms.
    #[test]
    fn what_has_nothing_unsent_waits_for_no_pacing() {
        let slow = [
            (BUSY_TIME, 1000),
            (UNACKED, 48),
            (SND_CWND, 232),
            (SND_MSS, 1448),
            (SND_SSTHRESH, 231),
            (RTT, 3408),
            (PACING_RATE, 118_265_634),
            (DELIVERY_RATE, 66_864_261),
        ];
        assert_eq!(limit(&slow), Some(Limit::Application));
        let held = [&slow[..], &[(MAX_PACING_RATE, 118_265_634)]].concat();
        assert_eq!(limit(&held), Some(Limit::Application));
    }

    #[test]
    fn a_counter_that_went_back_tells_nothing() {
        let (before, now) = (info(&[(BUSY_TIME, 500)]), info(&[(BUSY_TIME, 100)]));
        assert_eq!(
            Limit::between(&before, &now, Duration::from_millis(1), None),
            None
        );
    }
}
