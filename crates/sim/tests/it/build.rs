//! Specifications in few words.

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_run::{
    Buffer, CrossSpec, Departures, Drops, FlowSpec, LinkSpec, Outcome, RunSpec, Spacing, Waveform,
};
use fullpipe_units::{Rate, Span, Time};

pub fn mbit(m: f64) -> Option<Rate> {
    Some(Rate::from_bits_per_sec((m * 1e6) as u64))
}

pub fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

pub fn at(ms: f64) -> Time {
    Time::from_secs_f64(ms * 1e-3)
}

pub fn link(name: &str, rate: Option<Rate>, delay: Span, buffer: Buffer) -> LinkSpec {
    LinkSpec::new(name, rate, delay, buffer)
}

/// A flow over link 0 and back over the pure delay 1; without a handshake, every segment
/// acknowledged.
pub fn flow(name: &str, stack: &str) -> FlowSpec {
    let mut receiver = ReceiverConfig::preset(Preset::Y2026);
    receiver.acks.every = 1;
    FlowSpec {
        name: name.into(),
        stack: StackSpec::parse(stack).unwrap(),
        sender: SenderConfig::preset(Preset::Y2026, 1500).with(|c| c.handshake = false),
        receiver,
        forward: vec![0],
        back: vec![1],
        local_queue: false,
        start: Time::ZERO,
        start_spread: Span::ZERO,
        stop: None,
        drops: Drops::default(),
        arrival_drops: Default::default(),
        changes: Vec::new(),
        reverse: false,
        preset: None,
        written: Vec::new(),
    }
}

/// A bottleneck, half of the round trip each way, and `flows` over it for `seconds`.
pub fn dumbbell(
    rate: f64,
    rtt: u64,
    buffer: Buffer,
    seconds: f64,
    flows: Vec<FlowSpec>,
) -> RunSpec {
    let half = Span::from_micros(rtt * 500);
    RunSpec {
        seed: 1,
        duration: Span::from_secs_f64(seconds),
        measure_from: Time::ZERO,
        interval: Span::from_secs(1),
        links: vec![
            link("bottleneck", mbit(rate), half, buffer),
            link("return", None, half, Buffer::Unlimited),
        ],
        flows,
        ..RunSpec::default()
    }
}

/// Datagrams of 1500 B over link 0 at `mbps`, evenly.
pub fn source(name: &str, mbps: f64) -> CrossSpec {
    let rate = Rate::from_bits_per_sec((mbps * 1e6).round() as u64);
    let waveform = Waveform::Steps {
        steps: vec![(Span::ZERO, rate)],
        period: None,
    };
    CrossSpec::source(name, 1500, waveform, vec![0])
}

/// The same datagrams with exponential gaps.
pub fn poisson(mut s: CrossSpec) -> CrossSpec {
    if let Departures::Rate(_, spacing) = &mut s.departures {
        *spacing = Spacing::Poisson;
    }
    s
}

/// The same datagrams at another rate.
pub fn at_rate(s: CrossSpec, waveform: Waveform) -> CrossSpec {
    CrossSpec {
        departures: Departures::Rate(waveform, Spacing::Even),
        ..s
    }
}

/// An outcome in text, without what only the common link counts.
pub fn all_but_ties(outcome: &Outcome) -> String {
    let mut outcome = outcome.clone();
    for link in &mut outcome.links {
        link.ties = None;
    }
    format!("{outcome:?}")
}
