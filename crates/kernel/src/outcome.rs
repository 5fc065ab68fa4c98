//! From what passed and what was sampled to the outcome of a run.

use fullpipe_emulate::emulation::LoopOutcome;
use fullpipe_emulate::tap::Passed;
use fullpipe_run::{
    ArrivalOutcome, Check, Fidelity, FlowOutcome, FlowSpec, FlowTotals, LinkOutcome, Outcome,
    Round, RunSpec, SenderRecord, Series, delivered_packets,
};
use fullpipe_units::Time;

use crate::sampler::Seen;

/// The outcome of a run.
pub fn outcome(
    spec: &RunSpec,
    path: LoopOutcome,
    seen: Vec<Seen>,
    arrivals: Vec<ArrivalOutcome>,
    checks: Vec<Check>,
) -> Outcome {
    let late = |q| path.lateness.quantile(q).unwrap_or_default();
    let fidelity = Fidelity {
        late_p50: late(0.5),
        late_p99: late(0.99),
        late_max: path.lateness.max().unwrap_or_default(),
        real_time: path.real_time,
        grain: path.grain,
        path_added: path
            .lateness
            .mean_s()
            .map(|mean| fullpipe_units::Span::from_secs_f64(2.0 * mean)),
        checks,
        ..Fidelity::default()
    };
    let flows = spec.flows.iter().zip(path.passed).zip(seen);
    let flows = flows.map(|((f, passed), seen)| flow(f, passed, seen, spec));
    let flows: Vec<FlowOutcome> = flows.collect();
    Outcome {
        duration: spec.duration,
        measure_from: spec.measure_from,
        interval: spec.interval,
        delivered_packets: delivered_packets(&flows, &arrivals),
        flows,
        links: links(spec, path.links),
        arrivals,
        cross: path.cross,
        capture: Vec::new(),
        events: path.reads + path.writes,
        fidelity: Some(fidelity),
        partial: None,
    }
}

fn links(spec: &RunSpec, mut carried: Vec<(usize, LinkOutcome)>) -> Vec<LinkOutcome> {
    carried.sort_by_key(|(i, _)| *i);
    debug_assert_eq!(carried.len(), spec.links.len());
    carried.into_iter().map(|(_, link)| link).collect()
}

fn flow(f: &FlowSpec, passed: Passed, seen: Seen, spec: &RunSpec) -> FlowOutcome {
    let Seen {
        sampled,
        looks,
        rtt,
    } = seen;
    let started = f.started(spec.seed);
    let end = passed.completed.unwrap_or(Time::ZERO + spec.duration);
    let (cwnd_mean, cwnd_max) = sampled.window(spec.measure_from.max(started), end);
    let measured = sampled
        .episodes
        .iter()
        .filter(|e| e.at >= spec.measure_from);
    let events = measured.filter(|e| {
        matches!(
            e.kind,
            fullpipe_flow::EpisodeKind::Congestion(_)
                | fullpipe_flow::EpisodeKind::LostRetransmission
        )
    });
    let totals = FlowTotals {
        loss_events: sampled.loss_events,
        loss_events_measured: events.count() as u64,
        timeouts: sampled.timeouts,
        undone: sampled.undone,
        limited: sampled.limited,
        ..passed.totals
    };
    let windows = &sampled.windows;
    let rounds = passed.rounds.into_iter().map(|(start, delivered)| {
        let after = windows.partition_point(|(at, _)| *at <= start);
        let known = windows.get(after.saturating_sub(1));
        let cwnd = known.map_or(f.sender.window.initial, |(_, w)| *w);
        Round {
            start,
            delivered,
            cwnd,
        }
    });
    let record = SenderRecord {
        rtt: rtt.unwrap_or(passed.rtt),
        cwnd_mean,
        cwnd_max,
        rounds: rounds.collect(),
        episodes: sampled.episodes,
        at_cap: Vec::new(),
        variables: Vec::new(),
        series: Series {
            rows: sampled.rows,
            variables: Vec::new(),
        },
        stacks: Vec::new(),
        looks,
        verdicts: Vec::new(),
    };
    FlowOutcome::new(
        f,
        totals,
        record,
        passed.arrivals,
        (started, passed.completed),
    )
}
