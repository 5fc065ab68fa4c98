//! From a specification to what the guest reads: the network, its queue disciplines, the hosts'
//! settings, and their applications. What the kernel cannot do is refused here, by key.

mod discipline;
mod flow;
mod hosts;
#[cfg(test)]
mod keys;
mod link;
mod traffic;

use std::fmt::Write as _;

use fullpipe_flow::Preset;
use fullpipe_run::{Buffer, Discipline, LinkSpec, Pie, RunSpec, Trace, derive_seed};
use fullpipe_units::{Rate, Span, Time};

use crate::error::LinuxError;
use crate::switches::{self, Kernel};

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
    /// The flows of each class, a file each.
    pub classes: Vec<String>,
}

/// What a run sends that is no lasting flow, drawn before it begins.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Start and segments of the flows of each class.
    pub classes: Vec<Vec<(Time, u64)>>,
    /// Departures of each of the datagrams and probes.
    pub departures: Vec<Vec<Time>>,
}

impl Traffic {
    /// Drawn from the seed of the run.
    pub fn of(spec: &RunSpec) -> Self {
        let classes = spec.arrivals.iter();
        let cross = spec.cross.iter();
        Self {
            classes: classes
                .map(|a| fullpipe_host::short_flows(a, spec))
                .collect(),
            departures: cross.map(|c| fullpipe_host::departures(c, spec)).collect(),
        }
    }

    /// Number in the driver of the first flow of each class: lasting flows come first.
    pub fn first_of_class(&self, spec: &RunSpec) -> Vec<usize> {
        let sizes = self.classes.iter().map(Vec::len);
        let next = sizes.scan(spec.flows.len(), |next, n| {
            let first = *next;
            *next += n;
            Some(first)
        });
        next.collect()
    }

    /// Flows of the driver.
    fn flows(&self, spec: &RunSpec) -> usize {
        spec.flows.len() + self.classes.iter().map(Vec::len).sum::<usize>()
    }
}

/// What the guest has to do for a run.
///
/// # Errors
/// [`LinuxError::Unable`] for what it cannot do, by key.
pub fn plan(spec: &RunSpec, traffic: &Traffic, kernel: Kernel<'_>) -> Result<Plan, LinuxError> {
    sessions(spec)?;
    room(spec, traffic)?;
    let mut plan = Plan::default();
    let templates = spec.arrivals.iter().map(|a| &a.template);
    let all = spec.flows.iter().chain(templates.clone());
    let flows: Vec<_> = all.collect();
    let switches = flows.iter().map(|f| switches::of(f, kernel));
    let switches = switches.collect::<Result<Vec<_>, _>>()?;
    plan.sizes(spec, traffic);
    for (i, link) in spec.links.iter().enumerate() {
        ticks(link, kernel)?;
        plan.link(i, link, spec)?;
    }
    plan.hosts(spec, traffic, &flows, &switches)?;
    let (lasting, brief) = switches.split_at(spec.flows.len());
    for (i, (f, switches)) in spec.flows.iter().zip(lasting).enumerate() {
        plan.flow(i, f, switches, spec);
    }
    for (class, switches) in brief.iter().enumerate() {
        plan.class(class, switches, spec, traffic);
    }
    for (i, cross) in spec.cross.iter().enumerate() {
        plan.cross(i, cross, &traffic.departures[i]);
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

/// Refuses sessions that go on: the guest is told beforehand when each flow starts.
fn sessions(spec: &RunSpec) -> Result<(), LinuxError> {
    let mut classes = spec.arrivals.iter();
    let Some(class) = classes.find(|a| a.session.goes_on()) else {
        return Ok(());
    };
    let key = format!("{}.exchanges", class.template.name);
    let what = "when a flow starts is known before the run here, and the next transfer of a \
                session waits for the one before";
    let hint = "leave out `exchanges`, or use --ground sim or udp";
    Err(LinuxError::unable_to(key, what, hint))
}

/// Refuses a discipline whose clock was set to ticks that the kernel has not.
fn ticks(link: &LinkSpec, kernel: Kernel<'_>) -> Result<(), LinuxError> {
    let Discipline::Pie(Pie { hz, .. }) = link.discipline else {
        return Ok(());
    };
    if Some(hz) == kernel.hz || hz == Pie::default().hz {
        return Ok(());
    }
    let hint = format!("leave out `hz`, or name a kernel of {hz} ticks: `--kernel 6.1-hz{hz}`");
    let key = format!("{}.queue.hz", link.name);
    Err(LinuxError::unable_to(key, kernel.ticks(), hint))
}

/// What is not as the scenario says, though the run is made.
pub fn notes(spec: &RunSpec) -> Vec<String> {
    let templates = spec.arrivals.iter().map(|a| &a.template);
    let all = spec.flows.iter().chain(templates);
    let others = all.filter_map(|f| match f.preset {
        Some(Preset::Y2003) => Some((&f.name, "2003")),
        Some(Preset::Y2026) => Some((&f.name, "2026")),
        None | Some(Preset::Linux | Preset::Linux66) => None,
    });
    let notes = others.map(|(name, preset)| {
        format!(
            "flow {name}: `preset = \"{preset}\"` is another host than the kernel: of it \
             `initial_window`, `receive_window`, `ack_every`, `ecn`, `pacing` and `timestamps` \
             count; what else it sets, and the file does not, is as in Linux"
        )
    });
    notes.collect()
}

/// Refuses more flows than a guest has room for.
fn room(spec: &RunSpec, traffic: &Traffic) -> Result<(), LinuxError> {
    if spec.flows.len() > MOST_FLOWS {
        let what = format!(
            "{} flows are more than the {MOST_FLOWS} that a kernel has room for",
            spec.flows.len()
        );
        return Err(LinuxError::unable_to("flow", what, "use --ground sim"));
    }
    let brief = traffic.flows(spec) - spec.flows.len();
    if brief > MOST_BRIEF {
        let what = format!(
            "{brief} short flows are more than the {MOST_BRIEF} that a kernel has room for"
        );
        return Err(LinuxError::unable_to(
            "traffic",
            what,
            "shorten `duration`, or use --ground sim",
        ));
    }
    Ok(())
}

/// Lasting flows: each has two processes and half a megabyte.
const MOST_FLOWS: usize = 256;
/// Short flows: each has two sockets and some kilobytes until the end of the run.
const MOST_BRIEF: usize = 20_000;

impl Plan {
    fn sizes(&mut self, spec: &RunSpec, traffic: &Traffic) {
        let interval = spec.interval.as_nanos().max(1);
        let intervals = spec.duration.as_nanos().div_ceil(interval).max(1);
        let (flows, links, cross) = (traffic.flows(spec), spec.links.len(), spec.cross.len());
        let step = match spec.trace {
            Trace::Off => u64::MAX,
            Trace::Every(step) => step.as_nanos(),
            Trace::Full => 0,
        };
        let queue_step = spec.queue_step().as_nanos();
        // The driver's counters end with the last instant of the run.
        let (measure, end) = (spec.measure_from.as_nanos(), spec.duration.as_nanos());
        let capture = u8::from(spec.capture);
        let _ = writeln!(
            self.net,
            "sizes {flows} {links} {cross} {intervals} {REMEMBERED}\n\
             run {measure} {end} {interval} {step} {queue_step} {capture}"
        );
    }
}

/// Segments of a flow whose arrival is remembered, to tell duplicates: more than any window.
const REMEMBERED: u64 = 1 << 20;

/// Address of flow `i` at a host.
fn address(host: usize, i: usize) -> String {
    let number = i + 1;
    format!("10.{}.{}.{}", host + 1, number >> 8, number & 255)
}

/// Name of the file with the flows of a class.
pub(crate) fn class_file(class: usize) -> String {
    format!("class{class}")
}

/// Bytes of the longest packet: that of the devices.
fn longest_packet(spec: &RunSpec) -> u32 {
    let templates = spec.arrivals.iter().map(|a| &a.template);
    let flows = spec.flows.iter().chain(templates);
    let flows = flows.map(|f| f.sender.packet());
    let cross = spec.cross.iter().map(|c| u32::from(c.packet));
    flows.chain(cross).max().unwrap_or(1500).max(68)
}

/// A probability below one as the driver draws the trials until it happens (`struct fp_chance`):
/// `1 / -log2(1 - p)` as a number and the bits by which it is shifted. Zero for the number: always.
fn chance(p: f64) -> (u64, u32) {
    if p >= 1.0 {
        return (0, 0);
    }
    let per_bit = -std::f64::consts::LN_2 / (-p).ln_1p();
    // Between 2^-6 and 2^62: rarer is as good as never.
    let per_bit = per_bit.clamp(0.015_625, 4.6e18);
    let mut shift = 0;
    let mut scaled = per_bit;
    while scaled < 9_223_372_036_854_775_808.0 {
        scaled *= 2.0;
        shift += 1;
    }
    (scaled as u64, shift)
}

/// A probability as 53 random bits are compared with it.
fn below(p: f64) -> u64 {
    (p * 9_007_199_254_740_992.0 - 0.5).ceil().max(0.0) as u64
}

/// Where in a tick the run begins: flows do not know a kernel's ticks. Half a microsecond is what
/// timers are late anyway.
pub fn phase(seed: u64) -> Span {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `-1 / log2(1 - p)`, rebuilt from what the driver is given.
    #[test]
    fn a_chance_is_its_logarithm() {
        for p in [1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1.0 - 1e-9] {
            let (m, shift) = chance(p);
            assert!(m >= 1 << 63, "{p}: a full mantissa");
            let back = m as f64 / 2f64.powi(i32::try_from(shift).unwrap());
            let wanted = -1.0 / (1.0 - p).log2();
            // `1 - p` loses digits of a small p.
            assert!((back / wanted - 1.0).abs() < 1e-4, "{p}: {back} {wanted}");
        }
        assert_eq!(chance(0.5), (1 << 63, 63), "half: one trial per bit");
        assert_eq!(chance(1.0), (0, 0));
        assert_eq!([below(0.0), below(0.5), below(1.0)], [0, 1 << 52, 1 << 53]);
    }
}
