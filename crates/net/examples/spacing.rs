//! Gaps of initial windows as they arrive: 100 flows over loopback, each spreading its ten first
//! segments 4 ms apart (Initial Spreading 2014); errors of the gaps between the times at which the
//! receiving side's kernel saw them. Part of `make bench-udp`.
//!
//! ```text
//! cargo run --release -p fullpipe-net --example spacing -- sleep|spin
//! ```
//! Prints one line of JSON.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fullpipe_cc::{InitialSending, StackSpec};
use fullpipe_flow::{Ack, Preset, ReceiverConfig, SackBlocks, SenderConfig};
use fullpipe_net::endpoint::{self, EndpointError, Hooks, Plan, Side, UdpPort};
use fullpipe_net::io::{Clock, Inbox, IoConfig, Mode, Outbox, Socket, Stop, WaitStrategy, Waiter};
use fullpipe_net::wire::{AckDatagram, DataDatagram, Header, Kind, SessionId};
use fullpipe_run::{FlowSpec, RunSpec, Trace};
use fullpipe_units::{Span, Time};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const MTU: u32 = 1500;

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("sleep") => spacing(WaitStrategy::Sleep),
        Some("spin") => spacing(WaitStrategy::Spin),
        _ => Err("usage: spacing sleep|spin".into()),
    }
}

fn loopback(config: &IoConfig) -> std::io::Result<Socket> {
    Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), config)
}

/// Flows whose initial windows are measured, and the distance between their starts.
const FLOWS: u64 = 100;
const APART: Span = Span::from_micros(11_300);
/// Round trip that the far side pretends to have, initial window, and the gaps that follow: the RTT
/// over the window, at most 4 ms.
const RTT: Span = Span::from_millis(80);
const IW: u64 = 10;
const GAP: Span = Span::from_millis(4);

/// Sender's host as in any run; the far side answers each SYN after [`RTT`] and nothing else, and
/// notes when the kernel received the segments of the initial windows.
fn spacing(wait: WaitStrategy) -> Result<()> {
    let config = IoConfig {
        longest: 1472,
        ..IoConfig::new(Mode::Packet)
    };
    let (near, far) = (loopback(&config)?, loopback(&config)?);
    let flow = |i: u64| -> Result<FlowSpec> {
        let sender = SenderConfig::preset(Preset::Y2026, MTU).with(|c| {
            c.handshake = true;
            c.window.initial = IW as f64;
            c.transfer = Some(IW);
            c.pacing.initial = InitialSending::Spread {
                t_max: Some(GAP),
                jiffy: Span::from_micros(1),
            };
        });
        let receiver = ReceiverConfig::preset(Preset::Y2026);
        let flow = FlowSpec::new(
            &format!("flow {i}"),
            StackSpec::parse("reno")?,
            sender,
            receiver,
            vec![],
            vec![],
        );
        Ok(FlowSpec {
            start: Time::from_nanos((i + 1) * APART.as_nanos()),
            ..flow
        })
    };
    let spec = Arc::new(RunSpec {
        duration: Span::from_nanos((FLOWS + 1) * APART.as_nanos()) + RTT + RTT,
        trace: Trace::Off,
        flows: (0..FLOWS).map(flow).collect::<Result<_>>()?,
        ..RunSpec::default()
    });
    let (clock, stop) = (Clock::new(), Stop::new()?);
    let plan = Plan {
        spec: spec.clone(),
        side: Side::Near,
        session: SessionId(1),
        peer: far.local(),
        shared_clock: true,
    };
    let arrivals = thread::scope(|scope| {
        let stop = &stop;
        let watcher = scope.spawn(move || watch(&far, clock, stop));
        let outcome = UdpPort::new(near, 1472, wait, clock, stop)
            .map_err(EndpointError::from)
            .and_then(|port| endpoint::run(&plan, port, Hooks::default(), stop));
        stop.set();
        let arrivals = watcher.join().map_err(|_| "the watcher panicked")?;
        outcome?;
        arrivals
    })?;
    let mut errors: Vec<f64> = arrivals
        .iter()
        .flat_map(|times| times.windows(2))
        .filter_map(|pair| pair[1]?.checked_sub(pair[0]?))
        .map(|gap| 1e6 * (gap.as_secs_f64() - GAP.as_secs_f64()).abs())
        .collect();
    errors.sort_by(f64::total_cmp);
    let at = |part: f64| {
        errors
            .get((part * errors.len() as f64) as usize)
            .or(errors.last())
            .copied()
            .unwrap_or(f64::NAN)
    };
    println!(
        "{{\"gaps\": {}, \"p50_us\": {:.3}, \"p99_us\": {:.3}, \"max_us\": {:.3}}}",
        errors.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}

type Arrivals = Vec<[Option<Duration>; IW as usize]>;

fn watch(socket: &Socket, clock: Clock, stop: &Stop) -> Result<Arrivals> {
    let waiter = Waiter::new(WaitStrategy::Sleep, clock, stop.clone())?;
    let (mut inbox, mut outbox) = (Inbox::new(socket), Outbox::new(16, 64));
    let mut arrivals = vec![[None; IW as usize]; FLOWS as usize];
    // SYNs to be answered: when, to whom.
    let mut syns: Vec<(Time, SocketAddr, DataDatagram)> = Vec::new();
    while !stop.is_set() {
        let until = syns.iter().map(|syn| syn.0).min().unwrap_or(Time::MAX);
        waiter.wait(&[socket], until, false)?;
        while socket.receive(&mut inbox)? > 0 {
            for datagram in inbox.iter() {
                let header = Header::decode(datagram.bytes)?;
                if header.kind != Kind::Data {
                    continue;
                }
                let data = DataDatagram::decode(&header, datagram.bytes)?;
                let segment = &data.segment;
                if segment.syn {
                    syns.push((clock.now() + RTT, datagram.from, data));
                } else if segment.seq < IW && !segment.retransmission {
                    arrivals[usize::from(data.flow)][segment.seq as usize] = datagram.stamp;
                }
            }
        }
        let now = clock.now();
        for (_, to, syn) in syns.extract_if(.., |syn| syn.0 <= now) {
            let ack = AckDatagram {
                session: syn.session,
                flow: syn.flow,
                ack: Ack {
                    cum: 0,
                    syn: true,
                    echo: syn.segment.stamp,
                    stamp_ms: 0,
                    one_way: None,
                    sacks: SackBlocks::default(),
                    dsack: false,
                    ece: false,
                    window_end: u64::MAX,
                },
                hold: Span::ZERO,
                ce: 0,
                ect: 0,
                // Of nothing.
                proof: 0,
            };
            outbox.push(to, None, ack.bytes(), |out| {
                ack.encode(out);
            });
            outbox.flush(socket)?;
        }
    }
    Ok(arrivals)
}
