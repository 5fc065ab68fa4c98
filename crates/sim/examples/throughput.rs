//! Speed of the simulator on the bench cases: one JSON object a line, with packets delivered to
//! receivers, CPU seconds of this process and its peak memory.
//!
//! ```text
//! cargo run --release -p fullpipe-sim --example throughput -- [CASE...]      a b c d d2 e e2 e3 f g w500 w80000
//! ```

use std::error::Error;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_run::{Buffer, Drops, FlowSpec, LinkSpec, Loss, RunSpec, Trace};
use fullpipe_sim::run;
use fullpipe_units::{Rate, Span, Time};

/// One bench case.
struct Case {
    name: &'static str,
    what: &'static str,
    flows: usize,
    mbps: u64,
    /// Base RTT of the first and the last flow, ms; the others lie evenly between.
    rtt_ms: (u64, u64),
    /// Buffer, packets.
    buffer: u64,
    seconds: f64,
    loss: f64,
    /// Clamp of the window, segments.
    window: f64,
}

const OPEN: f64 = f64::INFINITY;

/// Buffers: half a BDP in (a) and (e3), one BDP elsewhere; the dumbbells of `bench/peers`.
const CASES: &[Case] = &[
    case(
        "a",
        "1 flow, 622 Mbit/s, 80 ms, 0.5 BDP",
        1,
        622,
        (80, 80),
        2074,
        60.0,
        0.0,
        OPEN,
    ),
    case(
        "b",
        "8 flows, 1 Gbit/s, 100 ms",
        8,
        1000,
        (100, 100),
        8334,
        30.0,
        0.0,
        OPEN,
    ),
    case(
        "c",
        "100 flows, 1 Gbit/s, 50 ms",
        100,
        1000,
        (50, 50),
        4167,
        30.0,
        0.0,
        OPEN,
    ),
    case(
        "d",
        "1000 flows, 10 Gbit/s, 50 ms",
        1000,
        10_000,
        (50, 50),
        41_667,
        10.0,
        0.0,
        OPEN,
    ),
    case(
        "d2",
        "1000 flows, 10 Gbit/s, 20-80 ms",
        1000,
        10_000,
        (20, 80),
        41_667,
        10.0,
        0.0,
        OPEN,
    ),
    case(
        "e",
        "1 flow, 10 Gbit/s, 100 ms",
        1,
        10_000,
        (100, 100),
        83_334,
        30.0,
        0.0,
        83_334.0,
    ),
    case(
        "e2",
        "the same, loss 1e-5",
        1,
        10_000,
        (100, 100),
        83_334,
        30.0,
        1e-5,
        83_334.0,
    ),
    case(
        "e3",
        "the same, 0.5 BDP, overflow",
        1,
        10_000,
        (100, 100),
        41_667,
        30.0,
        0.0,
        OPEN,
    ),
    case(
        "f",
        "1 flow, 100 Gbit/s, 100 ms",
        1,
        100_000,
        (100, 100),
        833_334,
        5.0,
        0.0,
        833_334.0,
    ),
    case(
        "g",
        "10,000 flows, 10 Gbit/s, 20-80 ms, no series",
        10_000,
        10_000,
        (20, 80),
        41_667,
        10.0,
        0.0,
        OPEN,
    ),
    case(
        "w500",
        "window 500, 100 ms",
        1,
        10_000,
        (100, 100),
        83_334,
        600.0,
        0.0,
        500.0,
    ),
    case(
        "w80000",
        "window 80 000, 100 ms",
        1,
        10_000,
        (100, 100),
        83_334,
        5.0,
        0.0,
        80_000.0,
    ),
];

#[allow(clippy::too_many_arguments)] // a table row
const fn case(
    name: &'static str,
    what: &'static str,
    flows: usize,
    mbps: u64,
    rtt_ms: (u64, u64),
    buffer: u64,
    seconds: f64,
    loss: f64,
    window: f64,
) -> Case {
    Case {
        name,
        what,
        flows,
        mbps,
        rtt_ms,
        buffer,
        seconds,
        loss,
        window,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .flat_map(|arg| arg.split(',').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let seconds: Option<f64> = std::env::var("SECONDS_SIMULATED")
        .ok()
        .and_then(|s| s.parse().ok());
    let stack = std::env::var("STACK").unwrap_or_else(|_| "reno".into());
    for case in CASES
        .iter()
        .filter(|c| wanted.is_empty() || wanted.iter().any(|w| w == c.name))
    {
        let spec = spec(case, &stack, seconds)?;
        let before = cpu_seconds()?;
        let outcome = run(&spec)?;
        let cpu = cpu_seconds()? - before;
        let packets = outcome.delivered_packets;
        println!(
            "{{\"case\":\"{}\",\"what\":\"{}\",\"delivered_packets\":{packets},\"cpu_s\":{cpu:.3},\
             \"packets_per_cpu_s\":{:.0},\"peak_rss_mb\":{:.1},\"kb_per_flow\":{:.1},\
             \"utilization\":{:.3},\"drops\":{},\
             \"timeouts\":{},\"events\":{},\"instructions_per_packet\":null}}",
            case.name,
            case.what,
            packets as f64 / cpu,
            peak_rss_mb()?,
            peak_rss_mb()? * 1024.0 / case.flows as f64,
            outcome.links[0].utilization,
            outcome.links[0].buffer_drops + outcome.links[0].random_drops,
            outcome.flows.iter().map(|f| f.totals.timeouts).sum::<u64>(),
            outcome.events,
        );
    }
    Ok(())
}

fn spec(case: &Case, stack: &str, seconds: Option<f64>) -> Result<RunSpec, Box<dyn Error>> {
    let duration = Span::from_secs_f64(seconds.unwrap_or(case.seconds));
    let (low, high) = case.rtt_ms;
    let forward = Span::from_millis(low) / 2;
    let rate = Rate::from_bits_per_sec(case.mbps * 1_000_000);
    let mut links = vec![LinkSpec::new(
        "bottleneck",
        Some(rate),
        forward,
        Buffer::Packets(case.buffer),
    )];
    if case.loss > 0.0 {
        links[0].loss = Loss::Bernoulli { p: case.loss };
    }
    let mut flows = Vec::new();
    for i in 0..case.flows {
        let spread = Span::from_millis(high - low);
        let extra = spread.mul_f64(i as f64 / (case.flows.max(2) - 1) as f64);
        let delay = forward + extra;
        // Delays never fall from one flow to the next: only the last link can have the same.
        let last = links[1..].last();
        if last.is_none_or(|link| link.delay != delay) {
            let name = format!("return-{}", links.len());
            links.push(LinkSpec::pure_delay(&name, delay));
        }
        let back = links.len() - 1;
        let mut sender = SenderConfig::preset(Preset::Y2026, 1500);
        sender.window.max = case.window;
        flows.push(FlowSpec {
            name: format!("flow{i}"),
            stack: StackSpec::parse(stack)?,
            sender,
            receiver: ReceiverConfig::preset(Preset::Y2026),
            forward: vec![0],
            back: vec![back],
            local_queue: false,
            // Starts within the first second, as a lab's would be.
            start: Time::ZERO + Span::from_millis(i as u64 * 1000 / case.flows as u64),
            start_spread: Span::ZERO,
            stop: None,
            drops: Drops::default(),
            arrival_drops: Default::default(),
            changes: Vec::new(),
            reverse: false,
            preset: None,
            written: Vec::new(),
        });
    }
    Ok(RunSpec {
        seed: 1,
        duration,
        measure_from: Time::ZERO + duration / 5,
        interval: Span::from_secs(1),
        links,
        flows,
        // A series is as long as its user wants it: case g shows what the flows themselves take.
        trace: match case.flows {
            10_000.. => Trace::Off,
            _ => Trace::Every(duration / 200),
        },
        ..RunSpec::default()
    })
}

/// CPU time of the main thread (Linux).
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos: u64 = text
        .split_whitespace()
        .next()
        .ok_or("empty schedstat")?
        .parse()?;
    Ok(nanos as f64 * 1e-9)
}

fn peak_rss_mb() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text
        .lines()
        .find(|l| l.starts_with("VmHWM"))
        .ok_or("no VmHWM")?;
    let kb: f64 = line.split_whitespace().nth(1).ok_or("no value")?.parse()?;
    Ok(kb / 1024.0)
}
