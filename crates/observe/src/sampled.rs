//! Samples of a flow as rows of a trace, and the changes of its window that lie between two
//! samples.

use fullpipe_cc::{CongestionKind, Phase};
use fullpipe_flow::{Episode, EpisodeKind, Events, Limit, LimitTimes, TraceRow};
use fullpipe_units::{Span, Time};

use crate::tcp_info::{
    BUSY_TIME, BYTES_ACKED, CA_STATE, DELIVERED, DELIVERED_CE, LOST, MIN_RTT, PACING_RATE, RETRANS,
    RTT, RWND_LIMITED, SACKED, SND_CWND, SND_MSS, SND_SSTHRESH, SNDBUF_LIMITED, TOTAL_RETRANS,
    TOTAL_RTO, TcpInfo, UNACKED,
};

/// Trace of a flow from samples of its `tcp_info`.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// Rows as the specification wants them.
    pub rows: Vec<TraceRow>,
    /// Every reduction, timeout and undo that samples show.
    pub episodes: Vec<Episode>,
    /// The window over time, as often as it was looked at, segments.
    pub windows: Vec<(Time, f64)>,
    /// What held it back from the start of the measured part until its latest sample.
    pub limited: LimitTimes,
    /// Part of the life of the flow so far in which the sender's application had written too
    /// little, or its send buffer was too small.
    pub starved: f64,
    /// Congestion events and timeouts so far.
    pub loss_events: u64,
    /// See [`Sampled::loss_events`].
    pub timeouts: u64,
    /// Reductions undone.
    pub undone: u64,
    /// Whether the connection began with its first sample: see [`Sampled::since_handshake`].
    whole: bool,
    last: Option<Sample>,
    chronographs: Option<(Time, Chronographs)>,
    next_row: Time,
    low: f64,
    high: f64,
    events: Events,
}

/// A sample in the terms of an event: what is compared with the one before.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Time,
    cwnd: f64,
    ssthresh: f64,
    state: u64,
    retransmits: u64,
    timeouts: u64,
    marks: u64,
    /// Of the reductions since the last peace, the threshold before the first.
    prior: Option<f64>,
}

/// `tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`, microseconds.
type Chronographs = [u64; 3];

/// States of a sender (`enum tcp_ca_state`).
const OPEN: u64 = 0;
const CWR: u64 = 2;
const RECOVERY: u64 = 3;
const LOSS: u64 = 4;

impl Default for Sampled {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            episodes: Vec::new(),
            windows: Vec::new(),
            limited: LimitTimes::default(),
            starved: 0.0,
            loss_events: 0,
            timeouts: 0,
            undone: 0,
            whole: false,
            last: None,
            chronographs: None,
            next_row: Time::ZERO,
            low: f64::INFINITY,
            high: 0.0,
            events: Events::NONE,
        }
    }
}

impl Sampled {
    /// Of a connection that is sampled since its handshake: what its first sample shows happened
    /// in between. Of one that was there before (`default`), it may have been long ago.
    pub fn since_handshake() -> Self {
        Self {
            whole: true,
            ..Self::default()
        }
    }

    /// The rows since it was asked before. What else was noted of the past is forgotten, so that a
    /// flow that is watched for a day takes no more room than one of a second.
    pub fn drain(&mut self) -> impl Iterator<Item = TraceRow> + '_ {
        self.episodes.clear();
        self.windows.clear();
        self.rows.drain(..)
    }

    /// One more sample of its sender.
    pub fn take(&mut self, now: Time, flow: usize, info: &TcpInfo, step: Span, measure_from: Time) {
        let cwnd = info.count(&SND_CWND) as f64;
        if cwnd == 0.0 {
            return;
        }
        let mut sample = Sample {
            at: now,
            cwnd,
            ssthresh: info.get(&SND_SSTHRESH).map_or(f64::INFINITY, |n| n as f64),
            state: info.count(&CA_STATE),
            retransmits: info.count(&TOTAL_RETRANS),
            timeouts: info.count(&TOTAL_RTO),
            marks: info.count(&DELIVERED_CE),
            prior: None,
        };
        let before = self.last.or(self.whole.then_some(Sample {
            state: OPEN,
            marks: 0,
            // A connection in peace may have its threshold from one before it.
            ssthresh: match sample.state >= CWR {
                true => f64::INFINITY,
                false => sample.ssthresh,
            },
            ..sample
        }));
        if let Some(before) = before {
            self.compare(&before, &mut sample);
        }
        self.last = Some(sample);
        self.windows.push((now, cwnd));
        self.low = self.low.min(cwnd);
        self.high = self.high.max(cwnd);
        self.chronograph(now, info, measure_from);
        if now >= self.next_row || !self.events.is_empty() && step != Span::MAX {
            self.next_row = now + step;
            let row = self.row(now, flow, info);
            self.rows.push(row);
        }
    }

    /// Concludes a reduction, timeout or undo from states, thresholds and counters of two samples:
    /// at most one event, the gravest.
    fn compare(&mut self, before: &Sample, now: &mut Sample) {
        let peace = |s: &Sample| s.state < CWR;
        now.prior = before.prior;
        let reduced = now.ssthresh < before.ssthresh;
        let entered = now.state >= CWR && (peace(before) || before.state == CWR && now.state > CWR);
        let again = now.state >= CWR && !peace(before) && reduced;
        let between =
            peace(before) && peace(now) && reduced && now.retransmits > before.retransmits;
        let mut note = |kind: EpisodeKind, after: f64| {
            self.events = self.events.with(kind.into());
            self.episodes.push(Episode {
                at: now.at,
                kind,
                before: before.cwnd,
                after,
            });
        };
        if now.timeouts > before.timeouts || now.state == LOSS && before.state != LOSS {
            note(EpisodeKind::Timeout, 1.0);
            now.prior = now.prior.or(Some(before.ssthresh));
            self.timeouts += (now.timeouts - before.timeouts).max(1);
            return;
        }
        if (entered || again || between) && now.state != LOSS {
            let cause = match (now.state, now.marks > before.marks) {
                (RECOVERY, _) | (0 | 1, _) => CongestionKind::Loss,
                (_, true) => CongestionKind::Ecn,
                (_, false) => CongestionKind::LocalDrop,
            };
            let after = match now.ssthresh.is_finite() {
                true => now.ssthresh,
                false => now.cwnd,
            };
            note(EpisodeKind::Congestion(cause), after);
            now.prior = now.prior.or(Some(before.ssthresh));
            self.loss_events += 1;
            return;
        }
        // A threshold that comes back was reduced for nothing.
        if let Some(prior) = now.prior
            && now.ssthresh > before.ssthresh
            && now.ssthresh >= prior
            && now.cwnd >= before.cwnd
        {
            note(EpisodeKind::Undo(None), now.cwnd);
            self.undone += 1;
            now.prior = None;
        } else if peace(now) {
            now.prior = None;
            if before.ssthresh.is_infinite() && now.ssthresh.is_finite() && peace(before) {
                note(EpisodeKind::StartUpExit, now.ssthresh);
            }
        }
    }

    fn chronograph(&mut self, now: Time, info: &TcpInfo, measure_from: Time) {
        let here = [&BUSY_TIME, &RWND_LIMITED, &SNDBUF_LIMITED].map(|f| info.count(f));
        let measured = now >= measure_from;
        let (since, then) = match self.chronographs {
            Some((since, then)) if since >= measure_from || !measured => (since, then),
            _ => (now, here),
        };
        self.chronographs = Some((since, then));
        let life = (now - since).as_secs_f64();
        if life <= 0.0 {
            return;
        }
        let [busy, receiver, buffer] =
            [0, 1, 2].map(|i| Span::from_micros(here[i].saturating_sub(then[i])).min(now - since));
        let idle = (now - since).saturating_sub(busy);
        let application = idle + buffer;
        let network = (now - since)
            .saturating_sub(application)
            .saturating_sub(receiver);
        self.starved = application.as_secs_f64() / life;
        self.limited = LimitTimes::one(Limit::Network, network)
            .plus(LimitTimes::one(Limit::ReceiveWindow, receiver))
            .plus(LimitTimes::one(Limit::Application, application));
    }

    /// Time-weighted mean and the largest of the window from `from` to `to`, segments.
    pub fn window(&self, from: Time, to: Time) -> (f64, f64) {
        let samples = &self.windows;
        let (mut area, mut span, mut most) = (0.0, 0.0, 0.0f64);
        for (i, (at, w)) in samples.iter().enumerate() {
            let next = samples.get(i + 1).map_or(to, |(next, _)| *next);
            let (begin, end) = ((*at).max(from), next.min(to));
            if end > begin {
                let held = (end - begin).as_secs_f64();
                area += w * held;
                span += held;
                most = most.max(*w);
            }
        }
        match span > 0.0 {
            true => (area / span, most),
            false => samples.last().map_or((0.0, 0.0), |(_, w)| (*w, *w)),
        }
    }

    fn row(&mut self, now: Time, flow: usize, info: &TcpInfo) -> TraceRow {
        let cwnd = info.count(&SND_CWND) as f64;
        let ssthresh = info.get(&SND_SSTHRESH).map_or(f64::INFINITY, |n| n as f64);
        let acked = info.count(&BYTES_ACKED) / info.count(&SND_MSS).max(1);
        let micros = |field| info.get(field).map(Span::from_micros);
        let out = info.count(&UNACKED) + info.count(&RETRANS);
        let row = TraceRow {
            time: now,
            cwnd,
            cwnd_min: self.low,
            cwnd_max: self.high,
            ssthresh,
            pacing_rate: info.get(&PACING_RATE).map_or(0.0, |rate| rate as f64 * 8.0),
            rtt: micros(&RTT).unwrap_or(Span::ZERO),
            srtt: micros(&RTT).unwrap_or(Span::ZERO),
            min_rtt: micros(&MIN_RTT).unwrap_or(Span::MAX),
            flight: out.saturating_sub(info.count(&SACKED) + info.count(&LOST)),
            // The kernel counts the SYN.
            delivered: info.count(&DELIVERED).saturating_sub(1),
            snd_una: acked,
            snd_nxt: acked + info.count(&UNACKED),
            retransmits: info.count(&TOTAL_RETRANS),
            loss_events: u32::try_from(self.loss_events).unwrap_or(u32::MAX),
            timeouts: u32::try_from(self.timeouts).unwrap_or(u32::MAX),
            mss: u32::try_from(info.count(&SND_MSS)).unwrap_or(u32::MAX),
            flow: u32::try_from(flow).unwrap_or(u32::MAX),
            events: self.events.with(Events::ACK),
            phase: match info.count(&CA_STATE) {
                0 => Phase::Open,
                1 => Phase::Disorder,
                CWR => Phase::Cwr,
                RECOVERY => Phase::Recovery,
                _ => Phase::Loss,
            },
            start_up: cwnd < ssthresh,
            ..TraceRow::default()
        };
        (self.low, self.high, self.events) = (cwnd, cwnd, Events::NONE);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Window, threshold, state and retransmissions at a millisecond each.
    fn taken(samples: &[(u64, u64, u64, u64)]) -> Sampled {
        let mut flow = Sampled::default();
        for (i, (cwnd, ssthresh, state, resent)) in samples.iter().enumerate() {
            let info = TcpInfo::of(&[
                (SND_CWND, *cwnd),
                (SND_SSTHRESH, *ssthresh),
                (CA_STATE, *state),
                (TOTAL_RETRANS, *resent),
            ]);
            let at = Time::from_nanos(1_000_000 * i as u64);
            flow.take(at, 0, &info, Span::ZERO, Time::ZERO);
        }
        flow
    }

    /// A full interface can hold a sender in CWR from its first packets to its end.
    #[test]
    fn what_came_before_the_first_sample_is_an_event_of_a_new_connection() {
        let first = |mut flow: Sampled, state, ssthresh| {
            for ms in 0..3 {
                let info = TcpInfo::of(&[
                    (SND_CWND, 10),
                    (SND_SSTHRESH, ssthresh),
                    (CA_STATE, state),
                    (TOTAL_RETRANS, 1),
                    (TOTAL_RTO, 1),
                ]);
                let at = Time::ZERO + Span::from_millis(ms);
                flow.take(at, 0, &info, Span::ZERO, Time::ZERO);
            }
            kinds(&flow)
        };
        let stall = EpisodeKind::Congestion(CongestionKind::LocalDrop);
        let whole = Sampled::since_handshake;
        assert_eq!(first(whole(), CWR, 7), [stall]);
        assert_eq!(first(whole(), RECOVERY, 7), [LOST]);
        assert_eq!(first(whole(), LOSS, 7), [EpisodeKind::Timeout]);
        let mut marked = whole();
        let info = [
            (SND_CWND, 10),
            (SND_SSTHRESH, 7),
            (CA_STATE, CWR),
            (DELIVERED_CE, 1),
        ];
        marked.take(Time::ZERO, 0, &TcpInfo::of(&info), Span::ZERO, Time::ZERO);
        assert_eq!(
            kinds(&marked),
            [EpisodeKind::Congestion(CongestionKind::Ecn)]
        );
        // A SYN that was sent again, and a threshold that the kernel remembers.
        assert_eq!(first(whole(), OPEN, 7), []);
        assert_eq!(first(Sampled::default(), CWR, 7), []);
    }

    fn kinds(flow: &Sampled) -> Vec<EpisodeKind> {
        flow.episodes.iter().map(|e| e.kind).collect()
    }

    const LOST: EpisodeKind = EpisodeKind::Congestion(CongestionKind::Loss);

    #[test]
    fn a_recovery_is_one_event_however_often_it_is_looked_at() {
        let flow = taken(&[
            (100, 200, 0, 0),
            (90, 50, 3, 1),
            (70, 50, 3, 2),
            (50, 50, 0, 2),
        ]);
        assert_eq!(kinds(&flow), [LOST]);
        assert_eq!(flow.episodes[0].before, 100.0);
        assert_eq!(flow.episodes[0].after, 50.0);
        assert_eq!(flow.rows.len(), 4);
        assert_eq!(flow.rows[3].loss_events, 1);
    }

    #[test]
    fn a_second_reduction_within_a_recovery_counts() {
        let flow = taken(&[(100, 200, 0, 0), (60, 50, 3, 1), (30, 25, 3, 5)]);
        assert_eq!(kinds(&flow), [LOST, LOST]);
    }

    #[test]
    fn a_recovery_between_two_looks_is_seen_by_its_traces() {
        let flow = taken(&[(100, 200, 0, 0), (52, 50, 0, 3)]);
        assert_eq!(kinds(&flow), [LOST]);
        let nothing = taken(&[(100, 200, 0, 0), (101, 200, 0, 0)]);
        assert_eq!(kinds(&nothing), []);
    }

    #[test]
    fn a_timeout_is_no_congestion_event_and_counts_once() {
        let flow = taken(&[
            (100, 200, 0, 0),
            (1, 50, 4, 1),
            (4, 50, 4, 2),
            (50, 50, 0, 2),
        ]);
        assert_eq!(kinds(&flow), [EpisodeKind::Timeout]);
        assert_eq!((flow.timeouts, flow.loss_events), (1, 0));
    }

    #[test]
    fn a_threshold_that_comes_back_is_an_undo() {
        let flow = taken(&[(100, 200, 0, 0), (60, 50, 3, 1), (100, 200, 0, 1)]);
        assert_eq!(kinds(&flow), [LOST, EpisodeKind::Undo(None)]);
        assert_eq!(flow.undone, 1);
    }

    #[test]
    fn a_mean_window_is_weighted_by_time() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let flow = Sampled {
            windows: vec![(at(0), 10.0), (at(100), 20.0), (at(400), 5.0)],
            ..Sampled::default()
        };
        // 100 ms of 10, 300 ms of 20, 100 ms of 5.
        assert_eq!(flow.window(at(0), at(500)), (15.0, 20.0));
        assert_eq!(flow.window(at(400), at(500)), (5.0, 5.0));
        assert_eq!(Sampled::default().window(at(0), at(500)), (0.0, 0.0));
    }

    #[test]
    fn what_is_drained_does_not_come_again_and_takes_no_room() {
        let mut flow = taken(&[(100, 200, 0, 0), (60, 50, 3, 1)]);
        assert_eq!(flow.drain().count(), 2);
        assert_eq!(flow.drain().count(), 0);
        assert_eq!(flow.episodes.len() + flow.windows.len(), 0);
        assert_eq!(flow.loss_events, 1, "what was counted stays");
    }
}
