//! From a specification to what the guest reads: the network, its queue disciplines, the hosts'
//! settings, and their applications. What the kernel cannot do is refused here, by key.

use std::fmt::Write as _;

use fullpipe_run::{
    Buffer, Discipline, Drops, FlowSpec, LinkSpec, Loss, RunSpec, Trace, derive_seed,
};
use fullpipe_units::{Rate, Span, Time};

use crate::error::LinuxError;
use crate::switches::{self, Switches};

/// The guest's files, by name.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Commands of the driver.
    pub net: String,
    /// Batch of `ip` at each host.
    pub ip: [String; 2],
    /// Batch of `tc`.
    pub tc: String,
    /// Settings of both hosts, `NAME VALUE`.
    pub sysctl: String,
    /// Applications.
    pub apps: String,
}

/// What the guest has to do for a run.
///
/// # Errors
/// [`LinuxError::Unable`] for what it cannot do, by key.
pub fn plan(spec: &RunSpec, module: Option<&str>) -> Result<Plan, LinuxError> {
    refuse(spec)?;
    let mut plan = Plan::default();
    let flows = spec.flows.iter().map(|f| switches::of(f, module));
    let flows = flows.collect::<Result<Vec<_>, _>>()?;
    plan.sizes(spec);
    for (i, link) in spec.links.iter().enumerate() {
        plan.link(i, link, spec)?;
    }
    plan.hosts(spec, &flows)?;
    for (i, (f, switches)) in spec.flows.iter().zip(&flows).enumerate() {
        plan.flow(i, f, switches, spec);
    }
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        plan.apps,
        "end {} {} {}",
        spec.duration.as_nanos(),
        phase(spec.seed).as_nanos(),
        drain(spec).as_nanos()
    );
    Ok(plan)
}

/// What no part of the guest does.
fn refuse(spec: &RunSpec) -> Result<(), LinuxError> {
    let sim = "use --ground sim";
    if !spec.arrivals.is_empty() {
        return Err(LinuxError::unable(
            "`traffic` of short flows is not implemented on ground linux",
            sim,
        ));
    }
    if !spec.cross.is_empty() {
        return Err(LinuxError::unable(
            "`traffic` of datagrams and pings is not implemented on ground linux",
            sim,
        ));
    }
    if spec.capture {
        return Err(LinuxError::unable(
            "`--pcap` and `--qlog` do not reach into the kernel of ground linux",
            sim,
        ));
    }
    if spec.flows.len() > MOST_FLOWS {
        let what = format!(
            "`flow`: {} flows are more than the {MOST_FLOWS} of ground linux",
            spec.flows.len()
        );
        return Err(LinuxError::unable(what, sim));
    }
    Ok(())
}

/// Each has two processes and half a megabyte.
const MOST_FLOWS: usize = 256;

impl Plan {
    fn sizes(&mut self, spec: &RunSpec) {
        let interval = spec.interval.as_nanos().max(1);
        let intervals = spec.duration.as_nanos().div_ceil(interval).max(1);
        let (flows, links) = (spec.flows.len(), spec.links.len());
        let step = match spec.trace {
            Trace::Off => u64::MAX,
            Trace::Every(step) => step.as_nanos(),
            Trace::Full => 0,
        };
        // As the simulator samples queues.
        let queue_step = match spec.trace {
            Trace::Full => (spec.duration / 10_000).as_nanos(),
            _ => step,
        };
        // The driver's counters end with the last instant of the run.
        let (measure, end) = (spec.measure_from.as_nanos(), spec.duration.as_nanos());
        let _ = writeln!(self.net, "sizes {flows} {links} {intervals} {REMEMBERED}");
        let _ = writeln!(
            self.net,
            "run {} {measure} {end} {interval} {step} {queue_step}",
            spec.seed
        );
    }

    fn link(&mut self, i: usize, link: &LinkSpec, spec: &RunSpec) -> Result<(), LinuxError> {
        if link.trace.is_some() {
            let what = format!(
                "link {}: `trace` (delivery opportunities) is not implemented on ground linux",
                link.name
            );
            return Err(LinuxError::unable(what, "use --ground sim"));
        }
        let held = link.discipline != Discipline::DropTail;
        let (kind, room) = match link.buffer {
            Buffer::Unlimited => (0, 0),
            Buffer::Packets(n) => (1, n),
            Buffer::Bytes(n) => (2, n),
            Buffer::Time(t) => (3, t.as_nanos()),
        };
        let seed = derive_seed(spec.seed, &format!("{} linux", link.name));
        let (acks, watched) = (u8::from(link.loss_of_acks), u8::from(link.watched));
        let held = u8::from(held);
        let net = &mut self.net;
        let _ = writeln!(net, "link {i} {kind} {room} {acks} {watched} {held} {seed}");
        let changes = || link.schedule.iter();
        if let Some(rate) = link.rate {
            let rates = changes().filter_map(|c| Some((c.at, c.rate?)));
            for (at, rate) in [(Time::ZERO, rate)].into_iter().chain(rates) {
                let bps = rate.as_bits_per_sec();
                let _ = writeln!(net, "rate {i} {} {bps}", at.as_nanos());
            }
        } else if changes().any(|c| c.rate.is_some()) {
            let what = format!(
                "link {}: a `schedule` of rates for a link without a first `rate`",
                link.name
            );
            return Err(LinuxError::unable(what, "give the link a `rate`"));
        }
        let delay = link.delay + link.drawn_spread(spec.seed);
        let delays = changes().filter_map(|c| Some((c.at, c.delay?)));
        for (at, delay) in [(Time::ZERO, delay)].into_iter().chain(delays) {
            let _ = writeln!(net, "delay {i} {} {}", at.as_nanos(), delay.as_nanos());
        }
        let losses = changes().filter_map(|c| Some((c.at, c.loss?)));
        let losses: Vec<_> = [(Time::ZERO, link.loss)]
            .into_iter()
            .chain(losses)
            .collect();
        if losses.iter().any(|(_, loss)| *loss != Loss::None) {
            for (at, loss) in losses {
                let [to_bad, to_good, good, bad] = match loss {
                    Loss::None => [0.0; 4],
                    Loss::Bernoulli { p } => [0.0, 0.0, p, 0.0],
                    Loss::GilbertElliott {
                        to_bad,
                        to_good,
                        good,
                        bad,
                    } => [to_bad, to_good, good, bad],
                }
                .map(chance);
                let at = at.as_nanos();
                let _ = writeln!(net, "loss {i} {at} {to_bad} {to_good} {good} {bad}");
            }
        }
        if link.jitter > Span::ZERO {
            let _ = writeln!(net, "jitter {i} {}", link.jitter.as_nanos());
        }
        if let Some(r) = link.reorder {
            let (p, extra) = (chance(r.probability), r.extra.as_nanos());
            let _ = writeln!(net, "reorder {i} {p} {extra}");
        }
        if let Some(p) = link.policer {
            let _ = writeln!(net, "policer {i} {} {}", p.rate.as_bits_per_sec(), p.burst);
        }
        if held == 1 {
            let _ = writeln!(self.ip[0], "link set fpl{i} mtu 9000 up");
            self.discipline(i, link)?;
        }
        Ok(())
    }

    /// The kernel's discipline behind the transmitter of link `i`. One packet of the buffer is in
    /// the transmitter.
    fn discipline(&mut self, i: usize, link: &LinkSpec) -> Result<(), LinuxError> {
        let rate = link.rate.map_or(0, Rate::as_bits_per_sec);
        let packets = match link.buffer {
            Buffer::Packets(n) => n,
            Buffer::Bytes(n) => n / 1500,
            Buffer::Time(t) => (rate as f64 * t.as_secs_f64() / 12e3) as u64,
            Buffer::Unlimited => 1_000_000,
        };
        let limit = packets.saturating_sub(1).clamp(1, 1_000_000);
        let us = |t: Span| format!("{}us", (t.as_nanos() / 1000).max(1));
        let ecn = |on: bool| if on { "ecn" } else { "noecn" };
        let text = match link.discipline {
            Discipline::DropTail => format!("pfifo limit {limit}"),
            Discipline::Codel(c) => format!(
                "codel limit {limit} target {} interval {} {}",
                us(c.target),
                us(c.interval),
                ecn(c.ecn)
            ),
            Discipline::FqCodel(f) => format!(
                "fq_codel limit {limit} flows {} quantum {} target {} interval {} {}",
                f.flows,
                f.quantum,
                us(f.codel.target),
                us(f.codel.interval),
                ecn(f.codel.ecn)
            ),
            Discipline::Pie(p) => {
                // tc's alpha and beta are in units of 1/16 Hz (tc-pie(8)): 0.125 and 1.25 Hz are
                // its defaults of 2 and 20.
                let scaled = |x: f64| (x * 16.0).round();
                format!(
                    "pie limit {limit} target {} tupdate {} alpha {} beta {} {}",
                    us(p.target),
                    us(p.update),
                    scaled(p.alpha),
                    scaled(p.beta),
                    ecn(p.ecn.is_some())
                )
            }
            Discipline::Red(r) => {
                if r.gentle {
                    let what = format!(
                        "link {}: `gentle` RED is not in the kernel (sch_red)",
                        link.name
                    );
                    let hint = "set `queue = { kind = \"red\", gentle = false }`, \
                                or use --ground sim";
                    return Err(LinuxError::unable(what, hint));
                }
                // The weight of the average follows from `burst` (tc-red(8)); its closest.
                let burst = red_burst(r.min, r.weight);
                format!(
                    "red limit {} min {} max {} avpkt 1500 burst {burst} probability {} \
                     bandwidth {rate}bit {} {}",
                    limit * 1500,
                    (r.min * 1500.0) as u64,
                    (r.max * 1500.0) as u64,
                    r.max_p,
                    if r.ecn { "ecn" } else { "" },
                    if r.adaptive { "adaptive" } else { "" },
                )
            }
        };
        let _ = writeln!(self.tc, "qdisc replace dev fpl{i} root {text}");
        Ok(())
    }

    fn hosts(&mut self, spec: &RunSpec, flows: &[Switches]) -> Result<(), LinuxError> {
        let longest = spec.flows.iter().map(|f| f.sender.packet()).max();
        let mtu = longest.unwrap_or(1500).max(68);
        for (side, ip) in self.ip.iter_mut().enumerate() {
            let (own, other) = (side + 1, 2 - side);
            let _ = writeln!(ip, "link set lo up\nlink set fp{side} mtu {mtu} up");
            let _ = writeln!(ip, "route add local 10.{own}.0.0/16 dev lo");
            let _ = writeln!(ip, "route add 10.{other}.0.0/16 dev fp{side}");
        }
        for (i, (f, s)) in spec.flows.iter().zip(flows).enumerate() {
            let (near, far) = sides(f);
            let mut data = String::new();
            if f.sender.packet() != mtu {
                let _ = write!(data, " mtu lock {}", f.sender.packet());
            }
            let mut acks = data.clone();
            if let Some(min) = s.min_rto {
                let _ = write!(data, " rto_min {}ms", min.as_millis_f64().round());
            }
            if f.sender.ecn {
                data += " features ecn";
            }
            if f.receiver.acks.every == 1 {
                acks += " quickack 1";
            }
            for (host, to, options) in [(near, far, data), (far, near, acks)] {
                if !options.is_empty() {
                    let to = address(to, i);
                    let ip = &mut self.ip[host];
                    let _ = writeln!(ip, "route add {to}/32 dev fp{host}{options}");
                }
            }
        }
        let stamps = switches::common(spec, flows, "timestamps", |s| s.timestamps)?;
        let sack = switches::common(spec, flows, "recovery", |s| s.sack)?;
        // 32 MB of window (half of the buffer) is what preset linux has; where nothing shall limit,
        // more.
        let room = if flows.iter().any(|s| s.unlimited_window) {
            268_435_456
        } else {
            67_108_864
        };
        let on = u8::from;
        let _ = write!(
            self.sysctl,
            "core/rmem_max 268435456\ncore/wmem_max 268435456\n\
             core/netdev_max_backlog 1000000\n\
             ipv4/tcp_mem 400000 600000 800000\n\
             ipv4/tcp_rmem 4096 67108864 {room}\n\
             ipv4/tcp_wmem 4096 16384 268435456\n\
             ipv4/tcp_no_metrics_save 1\n\
             ipv4/tcp_timestamps {}\nipv4/tcp_sack {}\n",
            on(stamps),
            on(sack),
        );
        Ok(())
    }

    fn flow(&mut self, i: usize, f: &FlowSpec, s: &Switches, spec: &RunSpec) {
        let (config, _) = f.sender.clone().with_stack(&f.stack);
        let nanos = |t: Option<Time>| t.map_or(0, Time::as_nanos);
        let bytes = config.transfer.unwrap_or(0) * u64::from(config.mss);
        let cap = match config.window.max {
            w if w.is_finite() => w.max(1.0) as u64,
            _ => 0,
        };
        let _ = writeln!(
            self.net,
            "flow {i} {} {} {cap} {} {bytes} {} {}",
            u8::from(f.reverse),
            config.mss,
            config.window.initial.max(1.0) as u64,
            nanos(f.stop),
            derive_seed(spec.seed, &format!("{} linux", f.name)),
        );
        for (word, links) in [("data", &f.forward), ("acks", &f.back)] {
            let links: Vec<String> = links.iter().map(usize::to_string).collect();
            let _ = writeln!(self.net, "{word} {i} {}", links.join(" "));
        }
        self.drops(i, 0, &f.drops);
        self.drops(i, 1, &f.arrival_drops);
        let (near, far) = sides(f);
        let rcvbuf = match f.receiver.window.max {
            // SO_RCVBUF doubles it, and half of that is window.
            Some(segments) => segments * u64::from(config.mss),
            None => 0,
        };
        let port = PORTS + i;
        let _ = writeln!(self.apps, "sink {far} {port} {rcvbuf}");
        let _ = writeln!(
            self.apps,
            "send {near} {} {} {} {port} {} {bytes} {} {}",
            f.started(spec.seed).as_nanos(),
            address(near, i),
            address(far, i),
            s.module,
            nanos(f.stop),
            u8::from(s.paced),
        );
    }

    fn drops(&mut self, i: usize, place: u8, drops: &Drops) {
        let mut segments = drops.segments.clone();
        let mut times = drops.times.clone();
        segments.sort_unstable();
        times.sort_unstable();
        let rules = segments
            .into_iter()
            .map(|s| (0, s))
            .chain(times.into_iter().map(|t| (1, t.as_nanos())))
            .chain(drops.every.map(|n| (2, n)))
            .chain(drops.at_window.map(|w| (3, w.ceil() as u64)))
            .chain((drops.probability > 0.0).then(|| (4, chance(drops.probability))));
        for (kind, value) in rules {
            let _ = writeln!(self.net, "drop {i} {place} {kind} {value}");
        }
    }
}

/// Hosts of a flow's sender and of its receiver.
fn sides(f: &FlowSpec) -> (usize, usize) {
    if f.reverse { (1, 0) } else { (0, 1) }
}

/// Address of flow `i` at a host.
fn address(host: usize, i: usize) -> String {
    let number = i + 1;
    format!("10.{}.{}.{}", host + 1, number >> 8, number & 255)
}

/// First port of the receivers.
const PORTS: usize = 10_000;

/// Segments of a flow whose arrival is remembered, to tell duplicates: more than any window.
const REMEMBERED: u64 = 1 << 20;

/// A probability as the driver compares it: 2^64 is one.
fn chance(p: f64) -> u64 {
    // The cast saturates.
    (p * 18_446_744_073_709_551_616.0) as u64
}

/// Where in a tick the run begins: flows do not know a kernel's ticks. Half a microsecond is what
/// timers are late anyway.
fn phase(seed: u64) -> Span {
    Span::from_micros(derive_seed(seed, "tick") % 4000)
}

/// What a packet needs at most to cross the network, within a minute: what arrives until then was
/// not lost.
fn drain(spec: &RunSpec) -> Span {
    let ns: u64 = spec.links.iter().map(|l| drain_of(l).as_nanos()).sum();
    Span::from_nanos(ns).clamp(Span::from_millis(100), Span::from_secs(60))
}

fn drain_of(link: &LinkSpec) -> Span {
    let rates = link.schedule.iter().filter_map(|c| c.rate);
    let rates = link.rate.into_iter().chain(rates);
    let bits = rates.map(Rate::as_bits_per_sec).filter(|r| *r > 0).min();
    let queue = match (link.buffer, bits) {
        (_, None) => Span::ZERO,
        (Buffer::Time(t), _) => t,
        (Buffer::Packets(n), Some(rate)) => Span::from_secs_f64(n as f64 * 12e3 / rate as f64),
        (Buffer::Bytes(n), Some(rate)) => Span::from_secs_f64(n as f64 * 8.0 / rate as f64),
        (Buffer::Unlimited, Some(_)) => Span::from_secs(10),
    };
    let delays = link.schedule.iter().filter_map(|c| c.delay);
    let delay = delays.fold(link.delay, Span::max) + link.delay_spread + link.jitter;
    queue + delay + link.reorder.map_or(Span::ZERO, |r| r.extra)
}

/// The `burst` of tc-red(8) whose weight comes closest: tc finds the largest `W` (weight `2^-W`)
/// for which `burst + 1 - min/avpkt >= (1 - (1 - 2^-W)^burst) / 2^-W` (iproute2,
/// `tc_red_eval_ewma`).
fn red_burst(min: f64, weight: f64) -> u64 {
    let wanted = (-weight.log2()).round().clamp(1.0, 31.0);
    let found = |burst: f64| {
        let mut w = 1.0;
        let mut weight = 0.5_f64;
        let a = burst + 1.0 - min;
        if a < 1.0 {
            return -1.0;
        }
        while w < 32.0 {
            if a <= (1.0 - (1.0 - weight).powf(burst)) / weight {
                return w;
            }
            w += 1.0;
            weight /= 2.0;
        }
        w
    };
    let first = min.ceil() as u64 + 1;
    let enough = (first..1_000_000).find(|b| found(*b as f64) >= wanted);
    enough.unwrap_or(first)
}
