//! Memory to memory over loopback with the real endpoint: how fast, and at what cost.
//!
//! ```text
//! cargo run --release -p fullpipe-net --example memory -- [seconds=3] [mode=packet|bulk] [window=SEGMENTS] [ack_every=2]
//!     [flows=1] [mtu=1500] [stack=reno] [pin=FIRST_CPU]
//! ```
//! Prints one line of JSON. `bytes` of payload in so many `seconds` are those of the whole run;
//! `goodput_mbps` counts payload that arrived for the first time in the measured part, which leaves
//! out the first quarter of a second.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_host::merge;
use fullpipe_net::endpoint::Hooks;
use fullpipe_net::ground::{Options, run_hosts};
use fullpipe_net::io::{IoConfig, Mode, Socket};
use fullpipe_run::{FlowSpec, RunSpec};
use fullpipe_units::{Span, Time};

/// Window in segments, 2 MB: enough to keep both hosts busy, and it fits the caches.
const WINDOW: f64 = 1400.0;
/// What the kernel charges for a received packet of 1500 bytes: the page that it lies in, and its
/// description.
const CHARGE: usize = 2560;

/// An unprivileged process gets small buffers, and what is on its way has to fit.
fn fits(mode: Mode) -> std::io::Result<f64> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let granted = Socket::bind(any, &IoConfig::new(mode))?.granted();
    Ok((granted.receive_buffer / CHARGE) as f64)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    let (mut seconds, mut window, mut ack_every, mut flows, mut mtu) = (3.0, 0.0, 2, 1, 1500);
    let mut stack = "reno".to_owned();
    for arg in std::env::args().skip(1) {
        let (key, value) = arg.split_once('=').ok_or("write key=value")?;
        match key {
            "seconds" => seconds = value.parse()?,
            "mode" => {
                options.mode = match value {
                    "packet" => Mode::Packet,
                    "bulk" => Mode::Bulk,
                    _ => return Err("mode=packet or mode=bulk".into()),
                }
            }
            "window" => window = value.parse()?,
            "ack_every" => ack_every = value.parse()?,
            "flows" => flows = value.parse()?,
            "mtu" => mtu = value.parse()?,
            "stack" => value.clone_into(&mut stack),
            "pin" => options.pin = Some(value.parse()?),
            _ => return Err(format!("no such key: {key}").into()),
        }
    }
    if window == 0.0 {
        window = WINDOW.min(fits(options.mode)?);
    }
    let sender = SenderConfig::preset(Preset::Y2026, mtu).with(|c| {
        c.window.max = window;
        c.window.initial = window.min(64.0);
    });
    let receiver = ReceiverConfig::preset(Preset::Y2026).with(|c| c.acks.every = ack_every);
    let stack = StackSpec::parse(&stack)?;
    let flow = |i| {
        let name = format!("flow{i}");
        FlowSpec::new(
            &name,
            stack.clone(),
            sender.clone(),
            receiver.clone(),
            vec![],
            vec![],
        )
    };
    let warm_up = Span::from_millis(250);
    let spec = RunSpec {
        duration: warm_up + Span::from_secs_f64(seconds),
        measure_from: Time::ZERO + warm_up,
        flows: (0..flows).map(flow).collect(),
        ..RunSpec::default()
    };
    let hooks = [Hooks::default(), Hooks::default()];
    let (near, far, path) = run_hosts(&spec, &options, hooks, &AtomicBool::new(false))?;
    let counts = [near.counts, far.counts];
    let outcome = merge(&spec, near, far, path)?;
    let sum = |of: fn(&fullpipe_run::FlowTotals) -> u64| -> u64 {
        outcome.flows.iter().map(|f| of(&f.totals)).sum()
    };
    let bytes = sum(|t| t.delivered_measured) * u64::from(sender.mss);
    let all = sum(|t| t.delivered) * u64::from(sender.mss);
    let cpu: f64 = counts.iter().map(|c| c.cpu.as_secs_f64()).sum();
    println!(
        "{{\"bytes\":{all},\"seconds\":{:.6},\"sender_cpu_s\":{:.6},\"receiver_cpu_s\":{:.6},\"mode\":\"{:?}\",\"window\":{window},\"ack_every\":{ack_every},\"flows\":{flows},\"mtu\":{mtu},\
         \"goodput_mbps\":{:.1},\"cpu_s_per_gb\":{:.3},\"segments\":{},\"acks\":{},\
         \"retransmits\":{},\"loss_events\":{},\"timeouts\":{},\"turns\":[{},{}],\"datagrams_in\":[{},{}],\
         \"socket_drops\":[{},{}],\"stalls\":[{},{}],\"rtt_us\":{:.1}}}",
        spec.duration.as_secs_f64(),
        counts[0].cpu.as_secs_f64(),
        counts[1].cpu.as_secs_f64(),
        options.mode,
        bytes as f64 * 8e-6 / seconds,
        cpu / (all as f64 * 1e-9),
        sum(|t| t.sent),
        sum(|t| t.acks),
        sum(|t| t.retransmits),
        sum(|t| t.loss_events),
        sum(|t| t.timeouts),
        counts[0].turns,
        counts[1].turns,
        counts[0].datagrams_in,
        counts[1].datagrams_in,
        counts[0].socket_drops,
        counts[1].socket_drops,
        counts[0].local_stalls,
        counts[1].local_stalls,
        outcome.flows[0].rtt.mean_s().unwrap_or(0.0) * 1e6,
    );
    Ok(())
}
