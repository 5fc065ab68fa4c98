//! Hand-made outcomes for the tests of the formulas.

use std::ops::Range;

use fullpipe_run::{
    ArrivalOutcome, CrossOutcome, FlowOutcome, FlowTotals, LinkOutcome, Outcome, Round, RunSpec,
    Series, Transfer,
};
use fullpipe_units::{Rate, Span, Time};

use crate::{FlowGroup, RecoveredAt, TrafficGroup, TrafficKind, Values, measure};

/// 100 Mbit/s, 100 ms, 1500-byte packets with 1448 bytes of payload, no cap.
pub fn group(name: &str, members: Range<usize>) -> FlowGroup {
    FlowGroup {
        name: name.into(),
        stack: "reno".into(),
        members,
        recovered_at: RecoveredAt::Rate(0.95),
        recovered_from: None,
        window_cap: None,
        base_rtt: Span::from_millis(100),
        capacity: Rate::from_bits_per_sec(100_000_000),
        packet: 1500,
        mss: 1448,
        ack_every: 1,
        start: Time::ZERO,
        stop: None,
        transfer: None,
        has_drops: false,
        reverse: false,
        bottleneck: 0,
    }
}

pub fn flow(name: &str) -> FlowOutcome {
    FlowOutcome {
        name: name.into(),
        stack: "reno".into(),
        mss: 1448,
        packet: 1500,
        totals: FlowTotals::default(),
        rtt: Default::default(),
        cwnd_mean: 0.0,
        cwnd_max: 0.0,
        delivered_per_interval: Vec::new(),
        arrived_per_interval: Vec::new(),
        rounds: Vec::new(),
        episodes: Vec::new(),
        at_cap: Vec::new(),
        variables: Vec::new(),
        series: Series::default(),
        looks: Default::default(),
        completed: None,
        started: Time::ZERO,
    }
}

pub fn outcome(
    flows: Vec<FlowOutcome>,
    duration_s: u64,
    warmup_s: u64,
    interval_s: u64,
) -> Outcome {
    Outcome {
        duration: Span::from_secs(duration_s),
        measure_from: Time::ZERO + Span::from_secs(warmup_s),
        interval: Span::from_secs(interval_s),
        flows,
        links: Vec::new(),
        arrivals: Vec::new(),
        cross: Vec::new(),
        capture: Vec::new(),
        events: 0,
        delivered_packets: 0,
        fidelity: None,
        partial: None,
    }
}

pub fn arrivals(name: &str) -> ArrivalOutcome {
    ArrivalOutcome {
        name: name.into(),
        mss: 1448,
        packet: 1500,
        transfers: Vec::new(),
        rtt: Default::default(),
        totals: FlowTotals::default(),
        delivered_per_interval: Vec::new(),
    }
}

pub fn transfer(start_s: f64, size: u64, completion_s: Option<f64>) -> Transfer {
    Transfer {
        start: Time::from_secs_f64(start_s),
        size,
        completion: completion_s.map(Span::from_secs_f64),
        lost: 0,
        retransmits: 0,
        timeouts: 0,
    }
}

pub fn source(name: &str) -> CrossOutcome {
    CrossOutcome {
        name: name.into(),
        packet: 1500,
        answered: false,
        sent: 0,
        arrived: 0,
        dropped: 0,
        arrived_measured: 0,
        sent_measured: 0,
        last_arrival: Time::ZERO,
        delay: Default::default(),
        unloaded: Span::from_millis(100),
        sent_per_interval: Vec::new(),
        arrived_per_interval: Vec::new(),
        series: Vec::new(),
    }
}

pub fn ping(name: &str) -> CrossOutcome {
    CrossOutcome {
        answered: true,
        ..source(name)
    }
}

pub fn link(name: &str) -> LinkOutcome {
    LinkOutcome {
        name: name.into(),
        offered: 0,
        delivered: 0,
        delivered_bytes: 0,
        measured_bytes: 0,
        buffer_drops: 0,
        random_drops: 0,
        policer_drops: 0,
        early_drops: 0,
        marks: 0,
        ties: None,
        queueing_delay: Default::default(),
        queue_max: 0,
        queue_mean: 0.0,
        utilization: 0.0,
        series: Vec::new(),
    }
}

/// Rounds of `rtt_s` each from `from_s`, with these windows; a window is delivered per round.
pub fn rounds(from_s: f64, rtt_s: f64, windows: &[f64]) -> Vec<Round> {
    let mut delivered = 0.0;
    windows
        .iter()
        .enumerate()
        .map(|(i, &cwnd)| {
            let round = Round {
                start: Time::from_secs_f64(from_s + rtt_s * i as f64),
                delivered: delivered as u64,
                cwnd,
            };
            delivered += cwnd;
            round
        })
        .collect()
}

/// The only flow of a run, measured.
pub fn flow_values(group: &FlowGroup, outcome: &Outcome) -> Values {
    let groups = std::slice::from_ref(group);
    let mut run = measure(groups, &[], &RunSpec::default(), outcome);
    run.flows.remove(0).values
}

/// The traffic of an outcome, as a scenario would describe it.
pub fn traffic_of(outcome: &Outcome) -> Vec<TrafficGroup> {
    let group = |name: &str, kind, word: &str, index| TrafficGroup {
        name: name.into(),
        kind,
        word: word.into(),
        index,
        stack: None,
        reverse: false,
        bottleneck: 0,
        capacity: Rate::from_bits_per_sec(100_000_000),
        base_rtt: Span::from_millis(100),
        packet: 1500,
        mss: 0,
        mean_size: None,
        offered: None,
        start: Time::ZERO,
        stop: None,
    };
    let short = outcome.arrivals.iter().enumerate();
    let short = short.map(|(i, a)| group(&a.name, TrafficKind::ShortFlows, "short-flows", i));
    let cross = outcome.cross.iter().enumerate();
    let cross = cross.map(|(i, c)| match c.answered {
        false => group(&c.name, TrafficKind::Datagrams, "udp", i),
        true => group(&c.name, TrafficKind::Ping, "ping", i),
    });
    short.chain(cross).collect()
}
