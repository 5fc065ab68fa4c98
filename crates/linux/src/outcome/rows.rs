//! Rows and episodes of a sender.

use fullpipe_cc::{CongestionKind, Phase};
use fullpipe_flow::{Episode, EpisodeKind, Events, TraceRow};
use fullpipe_run::Series;
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
    let (mss, stalls) = (b.u32()?, b.u32()?);
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
        local_stalls: stalls,
        mss,
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

/// The model of the path behind the latest row, laid out as `struct fp_model`: the variables that
/// `bbr-linux`, or of version 3 `bbr` and `bbr3-linux`, reports and the kernel does too, in the
/// units of the former (segments per second, seconds).
pub(super) fn model(b: &mut Body<'_>, series: &mut Series) -> Option<()> {
    let rate = b.u64()? as f64;
    let mss = f64::from(b.u32()?);
    let min_rtt = match b.u32()? {
        u32::MAX => 0.0, // none yet
        us => f64::from(us) * 1e-6,
    };
    let [pacing_gain, cwnd_gain] = [b.u32()?, b.u32()?].map(|gain| f64::from(gain) / 256.0);
    let state = f64::from(b.u32()?);
    let version = b.u32()?;
    let [max_bw, short_bw] = [b.u64()?, b.u64()?].map(|rate| match rate {
        u64::MAX => f64::NAN, // no bound
        rate => rate as f64 / mss,
    });
    let [long, short] = [b.u32()?, b.u32()?].map(|segments| match segments {
        u32::MAX => f64::NAN,
        segments => f64::from(segments),
    });
    let values = match version {
        3 => vec![
            ("state", state),
            ("max_bw", max_bw),
            ("bw_shortterm", short_bw),
            ("min_rtt", min_rtt),
            ("inflight_longterm", long),
            ("inflight_shortterm", short),
        ],
        _ => vec![
            ("state", state),
            ("bw", rate / mss),
            ("min_rtt", min_rtt),
            ("pacing_gain", pacing_gain),
            ("cwnd_gain", cwnd_gain),
        ],
    };
    if series.variables.is_empty() {
        let names = values.iter().map(|(name, _)| (*name, Vec::new()));
        series.variables = names.collect();
    }
    let before = series.rows.len().checked_sub(1)?;
    // The module starts when the handshake ends; a timeout of the SYN finds it empty.
    let started = cwnd_gain > 0.0;
    for ((_, column), (_, value)) in series.variables.iter_mut().zip(values) {
        column.resize(before, f64::NAN);
        column.push(if started { value } else { f64::NAN });
    }
    Some(())
}

/// A change of the window, laid out as `struct fp_episode`.
pub(super) fn episode(b: &mut Body<'_>) -> Option<Episode> {
    let at = Time::from_nanos(b.u64()?);
    let kind = match b.u32()? {
        0 => EpisodeKind::Congestion(CongestionKind::Loss),
        1 => EpisodeKind::Congestion(CongestionKind::Ecn),
        4 => EpisodeKind::Timeout,
        5 => EpisodeKind::Undo(None),
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
