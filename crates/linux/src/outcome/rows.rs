//! Rows and episodes of a sender.

use fullpipe_cc::{CongestionKind, Phase};
use fullpipe_flow::{Episode, EpisodeKind, Events, TraceRow};
use fullpipe_units::{Span, Time};

use crate::records::Body;

/// A row of a trace, laid out as `struct fp_row`.
pub(super) fn row(b: &mut Body<'_>, flow: usize) -> Option<TraceRow> {
    let time = Time::from_nanos(b.u64()?);
    let pacing_rate = b.u64()? as f64 * 8.0;
    let (delivered, snd_una, snd_nxt) = (b.u64()?, b.u64()?, b.u64()?);
    let srtt = Span::from_nanos(b.u64()?);
    let [cwnd, low, high] = [b.u32()?, b.u32()?, b.u32()?].map(f64::from);
    let ssthresh = match b.u32()? {
        // TCP_INFINITE_SSTHRESH
        0x7fff_ffff => f64::INFINITY,
        other => f64::from(other),
    };
    let (rtt, min_rtt) = (b.u32()?, b.u32()?);
    let (flight, retransmits) = (u64::from(b.u32()?), u64::from(b.u32()?));
    let (loss_events, timeouts) = (b.u32()?, b.u32()?);
    let events = Events::from_bits(b.u16()?);
    let (phase, start_up) = (b.u8()?, b.u8()? != 0);
    Some(TraceRow {
        time,
        cwnd,
        cwnd_min: low.min(cwnd),
        cwnd_max: high.max(cwnd),
        ssthresh,
        pacing_rate,
        rtt: Span::from_micros(u64::from(rtt)),
        srtt,
        min_rtt: match min_rtt {
            u32::MAX => Span::MAX,
            us => Span::from_micros(u64::from(us)),
        },
        ack_delay: Span::MAX,
        flight,
        delivered,
        snd_una,
        snd_nxt,
        retransmits,
        loss_events,
        timeouts,
        local_stalls: 0,
        mss: b.u32()?,
        flow: u32::try_from(flow).unwrap_or(u32::MAX),
        events,
        // enum tcp_ca_state
        phase: match phase {
            0 => Phase::Open,
            1 => Phase::Disorder,
            2 => Phase::Cwr,
            3 => Phase::Recovery,
            _ => Phase::Loss,
        },
        start_up,
    })
}

/// A change of the window, laid out as `struct fp_episode`.
pub(super) fn episode(b: &mut Body<'_>) -> Option<Episode> {
    let at = Time::from_nanos(b.u64()?);
    let kind = match b.u32()? {
        0 => EpisodeKind::Congestion(CongestionKind::Loss),
        1 => EpisodeKind::Congestion(CongestionKind::Ecn),
        4 => EpisodeKind::Timeout,
        5 => EpisodeKind::Undo,
        6 => EpisodeKind::StartUpExit,
        _ => return None,
    };
    let (before, after) = (f64::from(b.u32()?), f64::from(b.u32()?));
    Some(Episode {
        at,
        kind,
        before,
        after,
    })
}
