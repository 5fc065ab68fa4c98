//! fullpipe's own part of `make bench-udp`: one stream between two hosts of this process over loopback, or the gaps of initial
//! windows as they arrive. Prints one line of JSON.
//!
//! ```text
//! cargo run --release -p fullpipe-net --example loopback -- packet|bulk SECONDS [WINDOW [ACK_EVERY]]
//! cargo run --release -p fullpipe-net --example loopback -- spacing sleep|spin
//! ```
//!
//! The hosts are those of every run: sender with scoreboard, RTT and loss detection, receiver with SACK, segments of 1448 bytes,
//! one thread each.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fullpipe_cc::{InitialSending, StackSpec};
use fullpipe_flow::{Ack, Preset, ReceiverConfig, SackBlocks, SenderConfig};
use fullpipe_net::endpoint::{self, Hooks, HostOutcome, Plan, Side, UdpPort};
use fullpipe_net::io::{Clock, Inbox, IoConfig, Mode, Outbox, Patience, Socket, Stop, Waiter};
use fullpipe_net::wire::{AckDatagram, DataDatagram, Header, Kind, SessionId};
use fullpipe_sim::{FlowSpec, RunSpec, Trace};
use fullpipe_units::{Span, Time};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const MTU: u32 = 1500;
/// Window in segments, 2 MB: enough to keep both hosts busy, and it fits the caches.
const WINDOW: f64 = 1400.0;
/// What the kernel charges for a received packet of 1500 bytes: the page it lies in and its description.
const CHARGE: usize = 2560;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["packet", ref rest @ ..] => transfer(Mode::Packet, rest),
        ["bulk", ref rest @ ..] => transfer(Mode::Bulk, rest),
        ["spacing", "sleep"] => spacing(Patience::Sleep),
        ["spacing", "spin"] => spacing(Patience::Spin),
        _ => Err("usage: loopback packet|bulk SECONDS [WINDOW [ACK_EVERY]], or loopback spacing sleep|spin".into()),
    }
}

fn loopback(config: &IoConfig) -> std::io::Result<Socket> {
    Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), config)
}

/// Both hosts for so long.
fn transfer(mode: Mode, arguments: &[&str]) -> Result<()> {
    let number =
        |i: usize, default: f64| arguments.get(i).map_or(Ok(default), |s| s.parse::<f64>());
    let seconds = number(0, 3.0)?;
    let config = IoConfig {
        longest: 1472,
        stamps: false,
        ..IoConfig::new(mode)
    };
    // Where only ACKs arrive merging hides nothing.
    let merged = IoConfig {
        coalesce: true,
        ..config
    };
    let (mut near, mut far) = (loopback(&merged)?, loopback(&config)?);
    near.connect(far.local())?;
    far.connect(near.local())?;
    // An unprivileged process gets small buffers: what may be on its way has to fit.
    let fits = (far.granted().receive_buffer / CHARGE) as f64;
    let window = number(1, WINDOW)?.min(fits);
    let spec = RunSpec {
        duration: Span::from_secs_f64(seconds),
        trace: Trace::Off,
        flows: vec![FlowSpec::new(
            "main",
            StackSpec::parse("reno")?,
            SenderConfig {
                max_window: window,
                ..SenderConfig::preset(Preset::Y2026, MTU)
            },
            ReceiverConfig {
                ack_every: number(2, 2.0)? as u32,
                ..ReceiverConfig::preset(Preset::Y2026)
            },
            vec![],
            vec![],
        )],
        ..RunSpec::default()
    };
    let granted = far.granted();
    let [near, far] = both(&spec, near, far, Patience::Sleep)?;
    let receiver = far.receivers.first().ok_or("no receiver")?;
    let sender = near.senders.first().ok_or("no sender")?;
    let bytes = receiver.totals.delivered * u64::from(MTU - 52);
    let note = format!(
        "{} lost at the socket, {} sent again, {} timeouts, window {window:.0}{}",
        far.counts.socket_drops + near.counts.socket_drops,
        sender.totals.retransmits,
        sender.totals.timeouts,
        if mode == Mode::Bulk && !granted.segmentation {
            ", no offload here: packet by packet"
        } else {
            ""
        },
    );
    println!(
        "{{\"bytes\": {bytes}, \"seconds\": {:.6}, \"sender_cpu_s\": {:.6}, \"receiver_cpu_s\": {:.6}, \"acks\": {}, \
         \"turns\": [{}, {}], \"note\": \"{note}\"}}",
        far.ended.as_secs_f64(),
        near.counts.cpu.as_secs_f64(),
        far.counts.cpu.as_secs_f64(),
        sender.totals.acks,
        near.counts.turns,
        far.counts.turns,
    );
    Ok(())
}

fn plan(spec: &Arc<RunSpec>, side: Side, peer: SocketAddr) -> Plan {
    Plan {
        spec: spec.clone(),
        side,
        session: SessionId(1),
        peer,
        shared_clock: true,
    }
}

fn host(
    plan: &Plan,
    socket: Socket,
    patience: Patience,
    clock: Clock,
    stop: &Stop,
) -> Result<HostOutcome> {
    let port = UdpPort::new(socket, 1472, patience, clock, stop)?;
    Ok(endpoint::run(plan, port, Hooks::default(), stop)?)
}

fn both(spec: &RunSpec, near: Socket, far: Socket, patience: Patience) -> Result<[HostOutcome; 2]> {
    let spec = Arc::new(spec.clone());
    let near_plan = plan(&spec, Side::Near, far.local());
    let far_plan = plan(&spec, Side::Far, near.local());
    let (clock, stop) = (Clock::new(), Stop::new()?);
    thread::scope(|scope| {
        let far = scope.spawn(|| host(&far_plan, far, patience, clock, &stop));
        let near = host(&near_plan, near, patience, clock, &stop);
        let far = far.join().map_err(|_| "the far host panicked")?;
        Ok([near?, far?])
    })
}

/// Flows whose initial windows are measured, and the distance between their starts.
const FLOWS: u64 = 100;
const APART: Span = Span::from_micros(11_300);
/// Round trip that the far side pretends to have, initial window, and the gaps that follow: the RTT over the window, at most 4 ms.
const RTT: Span = Span::from_millis(80);
const IW: u64 = 10;
const GAP: Span = Span::from_millis(4);

/// Sender's host as in any run; the far side answers each SYN after [`RTT`] and nothing else, and notes when the kernel received
/// the segments of the initial windows.
fn spacing(patience: Patience) -> Result<()> {
    let config = IoConfig {
        longest: 1472,
        ..IoConfig::new(Mode::Packet)
    };
    let (near, far) = (loopback(&config)?, loopback(&config)?);
    let flow = |i: u64| -> Result<FlowSpec> {
        let sender = SenderConfig {
            handshake: true,
            initial_window: IW as f64,
            transfer: Some(IW),
            sending: InitialSending::Spread {
                t_max: Some(GAP),
                jiffy: Span::from_micros(1),
            },
            ..SenderConfig::preset(Preset::Y2026, MTU)
        };
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
    let near_plan = plan(&spec, Side::Near, far.local());
    let arrivals = thread::scope(|scope| {
        let stop = &stop;
        let watcher = scope.spawn(move || watch(&far, clock, stop));
        let outcome = host(&near_plan, near, patience, clock, stop);
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
    let waiter = Waiter::new(Patience::Sleep, clock, stop.clone())?;
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
                    sacks: SackBlocks::default(),
                    dsack: false,
                    ece: false,
                    window_end: u64::MAX,
                },
                hold: Span::ZERO,
                ce: 0,
                ect: 0,
            };
            outbox.push(to, None, ack.bytes(), |out| {
                ack.encode(out);
            });
            outbox.flush(socket)?;
        }
    }
    Ok(arrivals)
}
