//! `TCP_INFO` of the senders over time: rows of a trace, and the changes of a window that lie
//! between two samples.

use std::net::IpAddr;

use fullpipe_cc::{CongestionKind, Phase};
use fullpipe_emulate::namespace::Side;
use fullpipe_flow::{Episode, EpisodeKind, Events, Limit, LimitTimes, TraceRow};
use fullpipe_observe::tcp_info::{
    BUSY_TIME, BYTES_ACKED, CA_STATE, DELIVERED, DELIVERED_CE, LOST, MIN_RTT, PACING_RATE, RETRANS,
    RTT, RWND_LIMITED, SACKED, SND_CWND, SND_MSS, SND_SSTHRESH, SNDBUF_LIMITED, TOTAL_RETRANS,
    TOTAL_RTO, UNACKED,
};
use fullpipe_observe::{ObserveError, SocketDiag, TcpInfo};
use fullpipe_run::{RunSpec, Trace};
use fullpipe_units::{Span, Time};

/// What was sampled of a flow.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// Rows as the specification wants them.
    pub rows: Vec<TraceRow>,
    /// Every reduction, timeout and undo that samples show.
    pub episodes: Vec<Episode>,
    /// The window over time, as often as it was looked at, segments.
    pub windows: Vec<(Time, f64)>,
    /// What held it back from the begin of the measured part until its latest sample.
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
const CWR: u64 = 2;
const RECOVERY: u64 = 3;
const LOSS: u64 = 4;

/// Looks at the senders of a run.
#[derive(Debug)]
pub struct Sampler {
    diags: Vec<(Side, SocketDiag)>,
    flows: Vec<(Side, Sampled)>,
    step: Span,
    measure_from: Time,
}

/// Shortest and longest time between two looks, and how many looks a round trip has.
const SHORTEST: Span = Span::from_millis(1);
const LONGEST: Span = Span::from_millis(10);
const LOOKS: u64 = 20;

/// How often to look: [`LOOKS`] times per round trip, 100 to 1000 times a second.
pub fn interval(rtt: Span) -> Span {
    (rtt / LOOKS).clamp(SHORTEST, LONGEST)
}

impl Sampler {
    /// `diags`: channels opened in the namespaces of these sides; `from`: the side of each flow's
    /// sender.
    pub fn new(
        spec: &RunSpec,
        diags: Vec<(Side, SocketDiag)>,
        from: impl Iterator<Item = Side>,
    ) -> Self {
        Self {
            diags,
            flows: from.map(|side| (side, Sampled::default())).collect(),
            step: match spec.trace {
                Trace::Off => Span::MAX,
                Trace::Every(step) => step,
                Trace::Full => Span::ZERO,
            },
            measure_from: spec.measure_from,
        }
    }

    /// One look at `now`.
    ///
    /// # Errors
    /// [`ObserveError`].
    pub fn look(&mut self, now: Time) -> Result<(), ObserveError> {
        for (side, diag) in &mut self.diags {
            for socket in diag.connections()? {
                // The third byte of an address is the pair of hosts.
                let IpAddr::V4(own) = socket.local.ip() else {
                    continue;
                };
                let pair = usize::from(own.octets()[2]);
                let Some((from, flow)) = self.flows.get_mut(pair) else {
                    continue;
                };
                if from == side {
                    flow.take(now, pair, &socket.info, self.step, self.measure_from);
                }
            }
        }
        Ok(())
    }

    /// All that was seen, in the order of the flows.
    pub fn finish(self) -> Vec<Sampled> {
        self.flows.into_iter().map(|(_, flow)| flow).collect()
    }
}

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
        if let Some(before) = self.last {
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

    /// What happened between two samples.
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
            delivered: info.count(&DELIVERED),
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
