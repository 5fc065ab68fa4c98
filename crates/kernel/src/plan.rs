//! What a run asks of the kernel, and by which means it is told: socket options, metrics of routes,
//! settings of a namespace. What it has no means for is refused by key.

use std::fs;

use fullpipe_cc::{Kind, StackSpec};
use fullpipe_emulate::namespace::{PAIRS, Side, addresses};
use fullpipe_emulate::netlink::Metric;
use fullpipe_emulate::queues::{Drain, priority_of};
use fullpipe_linux::LinuxError;
use fullpipe_linux::switches::{self, Kernel, Switches};
use fullpipe_run::{Buffer, FlowSpec, GroundError, RunSpec};
use fullpipe_units::{Span, Time};

use crate::laws::{Laws, Wanted};

/// All that the hosts of a run are told.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The flows in the order of the specification; flow `k` has pair `k` of hosts.
    pub flows: Vec<FlowPlan>,
    /// Classes of short flows, whose pairs of hosts come after those of the flows.
    pub classes: Vec<ClassPlan>,
    /// Interfaces of senders' hosts that have a rate and a queue.
    pub interfaces: Vec<Interface>,
    /// Settings of both namespaces, below `/proc/sys/net/ipv4`.
    pub settings: Vec<(&'static str, String)>,
    /// Longest packet.
    pub mtu: u16,
}

impl Plan {
    /// The same over IPv6: packets stay as long, and segments carry less.
    #[must_use]
    pub fn over_ipv6(mut self) -> Self {
        let classes = self.classes.iter_mut().map(|c| &mut c.flow);
        for flow in self.flows.iter_mut().chain(classes) {
            let segments = flow.bytes.map(|bytes| bytes / u64::from(flow.mss.max(1)));
            flow.mss = flow.mss.saturating_sub(IPV6_MORE).max(1);
            flow.bytes = segments.map(|n| n * u64::from(flow.mss));
        }
        self
    }
}

/// The interface of a host: a class of sch_htb on the device of its side, with a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Side of the host.
    pub side: Side,
    /// The link that it is in the specification.
    pub link: usize,
    /// Minor number of its class, from 1 on.
    pub class: u16,
    /// Rate and queue.
    pub drain: Drain,
}

impl Interface {
    /// `SO_PRIORITY` of the sockets whose packets leave by it.
    pub fn priority(&self) -> i32 {
        priority_of(HANDLE, self.class)
    }
}

/// Major number of the queue that interfaces are classes of.
pub const HANDLE: u16 = 1;

/// What an interface may make up for behind a timer that came late. So much leaves at once behind a
/// pause, and waits in the path's own link, which spaces it; the queue is as much shorter.
const SAVED: Span = Span::from_micros(500);

/// A class of short flows.
#[derive(Clone, Debug)]
pub struct ClassPlan {
    /// Settings that all flows of the class share.
    pub flow: FlowPlan,
    /// When each starts, and its segments: the simulator's.
    pub flows: Vec<(Time, u64)>,
}

/// One connection.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Host of its sender.
    pub from: Side,
    /// Congestion module; where a law takes its place, the one until the flow is connected.
    pub module: String,
    /// What the kernel has no module for.
    pub law: Option<Wanted>,
    /// Data of a finite transfer.
    pub bytes: Option<u64>,
    /// Payload of a full packet.
    pub mss: u32,
    /// Of the SYN, counted from the start of the run.
    pub start: Time,
    /// When it is cut off.
    pub stop: Option<Time>,
    /// Its window has a ceiling, among `data`.
    pub capped: bool,
    /// `SO_MAX_PACING_RATE`, bytes of payload per second: the kernel paces the connection, at this
    /// rate or below.
    pub pace: Option<u64>,
    /// The interface that it leaves by, one of [`Plan::interfaces`].
    pub interface: Option<usize>,
    /// `SO_PRIORITY`, by which that is chosen.
    pub priority: Option<i32>,
    /// `SO_RCVBUF` of its receiver, before the kernel doubles it.
    pub receive_buffer: Option<usize>,
    /// Congestion module of its receiver, where not the system's own.
    pub sink_module: Option<&'static str>,
    /// Metrics of the sender's route to the receiver.
    pub data: Vec<(Metric, u32)>,
    /// Metrics of the receiver's route to the sender.
    pub acks: Vec<(Metric, u32)>,
}

/// Congestion modules that the running kernel has loaded or built in.
pub fn modules() -> Vec<String> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let list = fs::read_to_string(file).unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

/// Release of the running kernel.
pub fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// The specification of the hosts: a pair for each flow, and for each class of short ones. What has
/// left an interface was held back there, and is not lost in the link that stands for it, which
/// spaces what the kernel's timers bring together.
pub fn hosts(spec: &RunSpec) -> RunSpec {
    let mut spec = spec.clone();
    let classes = std::mem::take(&mut spec.arrivals);
    spec.flows.extend(classes.into_iter().map(|a| a.template));
    for f in spec.flows.iter().filter(|f| f.local_queue) {
        if let Some(link) = f.forward.first() {
            spec.links[*link].buffer = Buffer::Unlimited;
        }
    }
    spec
}

/// The specification over IPv6: packets stay as long, and carry less.
pub fn over_ipv6(spec: &RunSpec) -> RunSpec {
    let mut spec = spec.clone();
    let templates = spec.arrivals.iter_mut().map(|a| &mut a.template);
    for f in spec.flows.iter_mut().chain(templates) {
        f.sender.mss = f.sender.mss.saturating_sub(IPV6_MORE).max(1);
        f.sender.header += IPV6_MORE;
    }
    spec
}

/// Bytes that IPv6's header is longer.
const IPV6_MORE: u32 = 20;

/// The plan of a run for a kernel that has these `modules`; other stacks are by `laws`.
///
/// # Errors
/// [`GroundError::Unable`] by key; [`GroundError::Environment`] if a module is missing.
pub fn plan(
    spec: &RunSpec,
    modules: &[String],
    laws: Option<&dyn Laws>,
) -> Result<Plan, GroundError> {
    if spec.flows.is_empty() && spec.arrivals.is_empty() {
        let what = "without a flow there is no way from one host to the other".to_owned();
        return Err(unable(None, what, "add a `[[flow]]`"));
    }
    let pairs = spec.flows.len() + spec.arrivals.len();
    if pairs > PAIRS {
        let what = format!("{pairs} flows and classes of short ones are more than {PAIRS}");
        return Err(unable(None, what, "use --ground linux"));
    }
    if spec.capture {
        let what = "captures are not on this ground".to_owned();
        return Err(unable(None, what, "leave out `--pcap` and `--qlog`"));
    }
    if let Some(class) = spec.arrivals.iter().find(|a| a.session.goes_on()) {
        let key = Some(format!("{}.exchanges", class.template.name));
        let what = "when a flow starts is known before the run here, and the next transfer of a \
                    session waits for the one before";
        let hint = "leave out `exchanges`, or use --ground sim or udp";
        return Err(unable(key, what.to_owned(), hint));
    }
    let templates = spec.arrivals.iter().map(|a| &a.template);
    let flows: Vec<&FlowSpec> = spec.flows.iter().chain(templates).collect();
    let by_law = flows.iter().enumerate();
    let by_law = by_law.map(|(k, f)| {
        // Those of short flows are modules.
        let laws = laws.filter(|_| k < spec.flows.len());
        law_of(k, f, spec, modules, laws)
    });
    let by_law = by_law.collect::<Result<Vec<_>, _>>()?;
    let of = flows.iter().zip(&by_law);
    let of = of.map(|(f, law)| match law {
        Some(_) => switches_of(&FlowSpec {
            stack: the_standard(),
            ..(*f).clone()
        }),
        None => switches_of(f),
    });
    let of = of.collect::<Result<Vec<_>, _>>()?;
    let plans = flows.iter().zip(&of).zip(by_law);
    let interfaces = interfaces(&flows, spec)?;
    let plans = plans.map(|((f, s), law)| flow(f, s, law, spec, modules, &interfaces));
    let longest = flows.iter().map(|f| f.sender.packet()).max();
    let mtu = longest.and_then(|p| u16::try_from(p).ok()).unwrap_or(1500);
    let mut plans = plans.collect::<Result<Vec<_>, _>>()?;
    for (flow, f) in plans.iter_mut().zip(&flows) {
        if f.sender.packet() != u32::from(mtu) {
            flow.data.push((Metric::Mtu, f.sender.packet()));
            flow.acks.push((Metric::Mtu, f.sender.packet()));
        }
        lock(&mut flow.data);
        lock(&mut flow.acks);
    }
    let templates = plans.split_off(spec.flows.len());
    if let Some((_, class)) = templates.iter().zip(&spec.arrivals).find(|(f, _)| f.capped) {
        let key = Some(format!("{}.window", class.template.name));
        let what = "short flows have no ceiling of the window on this ground".to_owned();
        return Err(unable(
            key,
            what,
            "leave out `window`, or use --ground linux",
        ));
    }
    let classes = templates.into_iter().zip(&spec.arrivals);
    let classes = classes.map(|(flow, a)| ClassPlan {
        flow,
        flows: fullpipe_host::short_flows(a, spec),
    });
    Ok(Plan {
        flows: plans,
        classes: classes.collect(),
        interfaces,
        settings: settings(&flows, &of)?,
        mtu,
    })
}

/// Metrics that are more than a first guess are locked.
fn lock(metrics: &mut Vec<(Metric, u32)>) {
    let locked = metrics.iter().map(|(metric, _)| match metric {
        Metric::Mtu | Metric::Cwnd => 1 << *metric as u32,
        _ => 0,
    });
    let bits = locked.fold(0, |all, bit| all | bit);
    if bits != 0 {
        metrics.push((Metric::Lock, bits));
    }
}

/// The law of flow `k`, if the kernel has no module for its stack and somebody brings it.
fn law_of(
    k: usize,
    f: &FlowSpec,
    spec: &RunSpec,
    modules: &[String],
    laws: Option<&dyn Laws>,
) -> Result<Option<Wanted>, GroundError> {
    let spelled = f.stack.to_string();
    let is_ours = f.stack.kind() == Kind::Law && !modules.contains(&spelled);
    let Some(laws) = laws.filter(|_| is_ours) else {
        return Ok(None);
    };
    let far = if f.reverse { Side::Near } else { Side::Far };
    let links = f.forward.iter().chain(&f.back);
    let wanted = Wanted {
        stack: f.stack.clone(),
        to: addresses(far, k).0,
        rtt: links.fold(Span::ZERO, |sum, l| sum + spec.links[*l].delay),
    };
    match laws.check(&wanted) {
        Ok(()) => Ok(Some(wanted)),
        Err(lack) => Err(unable(
            Some(format!("{}.stack", f.name)),
            lack.message,
            &lack.hint,
        )),
    }
}

/// Every kernel has it.
fn the_standard() -> StackSpec {
    StackSpec::parse("reno").expect("it is one")
}

/// What BBR says of itself, where there is one; version 1 says nothing.
fn version_of_bbr() -> Option<u32> {
    let read = std::fs::read_to_string;
    let modules = read("/proc/sys/net/ipv4/tcp_available_congestion_control").ok()?;
    modules.split_whitespace().find(|name| *name == "bbr")?;
    let version = read("/sys/module/tcp_bbr/version").ok();
    Some(
        version
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(1),
    )
}

pub(crate) fn switches_of(f: &FlowSpec) -> Result<Switches, GroundError> {
    switches_with(f, version_of_bbr())
}

/// The same where another host sends: a kernel of kernel.org.
pub(crate) fn switches_of_peer(f: &FlowSpec) -> Result<Switches, GroundError> {
    switches_with(f, Some(1))
}

fn switches_with(f: &FlowSpec, bbr: Option<u32>) -> Result<Switches, GroundError> {
    let kernel = Kernel {
        hz: None,
        bbr,
        module: None,
    };
    let s = switches::of(f, kernel).map_err(LinuxError::of_running_kernel)?;
    let refuse = |key: &str, what: &str| {
        let hint = format!("leave out `{key}`, or use --ground linux");
        Err(unable(
            Some(format!("{}.{key}", f.name)),
            what.to_owned(),
            &hint,
        ))
    };
    if f.local_queue && !s.small_queue {
        let what = "the running kernel has no switch for its small queues";
        return refuse("tsq", what);
    }
    if f.local_queue && !s.stall_reduces {
        let what = "the running kernel reduces the window when its interface is full";
        return refuse("sendstall", what);
    }
    Ok(s)
}

/// Interfaces of the hosts of flows, in the order in which flows name them.
fn interfaces(flows: &[&FlowSpec], spec: &RunSpec) -> Result<Vec<Interface>, GroundError> {
    let mut all: Vec<Interface> = Vec::new();
    for f in flows.iter().filter(|f| f.local_queue) {
        let packet = f.sender.packet();
        let Some(&link) = f.forward.first() else {
            continue;
        };
        let side = side_of(f);
        if let Some(known) = all.iter_mut().find(|i| i.link == link && i.side == side) {
            known.drain.packet = known.drain.packet.max(packet);
            continue;
        }
        let (Some(rate), Buffer::Packets(room)) = (spec.links[link].rate, spec.links[link].buffer)
        else {
            let key = Some(format!("{}.nic_rate", f.name));
            let what = "an interface has a rate, and room for packets".to_owned();
            return Err(unable(key, what, "use --ground sim"));
        };
        let rate = (rate.as_bits_per_sec() / 8).max(1);
        // One of them is being sent.
        let waiting = room.saturating_sub(1);
        let saved = (rate as f64 * SAVED.as_secs_f64() / f64::from(packet)) as u64;
        let waiting = waiting.saturating_sub(saved).max(1);
        all.push(Interface {
            side,
            link,
            // There are no more of them than pairs of hosts.
            class: all.len() as u16 + 1,
            drain: Drain {
                rate,
                saved: SAVED,
                waiting: u32::try_from(waiting).unwrap_or(u32::MAX),
                packet,
            },
        });
    }
    Ok(all)
}

fn side_of(f: &FlowSpec) -> Side {
    if f.reverse { Side::Far } else { Side::Near }
}

/// The module of a receiver that echoes each change of the marks.
const EXACT_ECHO: &str = "dctcp";

fn flow(
    f: &FlowSpec,
    s: &Switches,
    law: Option<Wanted>,
    spec: &RunSpec,
    modules: &[String],
    interfaces: &[Interface],
) -> Result<FlowPlan, GroundError> {
    refuse_unknown_module(f, &s.module, modules)?;
    if s.echoes_changes {
        refuse_unknown_module(f, EXACT_ECHO, modules)?;
    }
    let link = f.forward.first().filter(|_| f.local_queue);
    let interface = link.and_then(|link| {
        let is = |i: &Interface| i.link == *link && i.side == side_of(f);
        interfaces.iter().position(is)
    });
    let (config, _) = f.sender.clone().with_stack(&f.stack);
    let mut data = vec![(Metric::InitialCwnd, config.window.initial.max(1.0) as u32)];
    let cap = config.window.max;
    if cap.is_finite() {
        data.push((Metric::Cwnd, cap.max(1.0) as u32));
    }
    if let Some(min) = s.min_rto {
        data.push((Metric::MinRto, min.as_millis_f64().round().max(1.0) as u32));
    }
    if f.sender.ecn {
        data.push((Metric::Features, ECN));
    }
    let mut acks = Vec::new();
    if f.receiver.acks.every == 1 {
        acks.push((Metric::QuickAck, 1));
    }
    let (buffer, clamp) = s.window;
    if clamp > 0 {
        acks.push((Metric::Window, u32::try_from(clamp).unwrap_or(u32::MAX)));
    }
    Ok(FlowPlan {
        from: side_of(f),
        module: s.module.clone(),
        law,
        bytes: f.sender.transfer.map(|n| n * u64::from(f.sender.mss)),
        mss: f.sender.mss,
        start: f.started(spec.seed),
        stop: f.stop,
        capped: cap.is_finite(),
        pace: (s.pace > 0).then_some(s.pace),
        interface,
        priority: interface.map(|i| interfaces[i].priority()),
        sink_module: s.echoes_changes.then_some(EXACT_ECHO),
        receive_buffer: (buffer > 0).then(|| usize::try_from(buffer).unwrap_or(usize::MAX)),
        data,
        acks,
    })
}

pub(crate) fn refuse_unknown_module(
    f: &FlowSpec,
    module: &str,
    modules: &[String],
) -> Result<(), GroundError> {
    if modules.iter().any(|m| m == module) {
        return Ok(());
    }
    Err(GroundError::Environment {
        what: format!(
            "flow {}: the running kernel has no congestion module `{module}`; it has {}",
            f.name,
            modules.join(", ")
        ),
        hint: format!(
            "`modprobe tcp_{module}` loads it where the distribution builds it \
             (CONFIG_TCP_CONG_{}); `--ground linux` has it without{}",
            module.to_uppercase(),
            match BY_THE_TUNER.contains(&module) {
                true => format!("; a build with the tuner runs `{module}` through eBPF"),
                false => String::new(),
            }
        ),
    })
}

/// Laws of modules' names that the tuner has (docs/policy.md).
const BY_THE_TUNER: [&str; 7] = [
    "bic",
    "cubic",
    "highspeed",
    "htcp",
    "scalable",
    "vegas",
    "westwood",
];

/// `RTAX_FEATURE_ECN`.
const ECN: u32 = 1;

fn settings(
    flows: &[&FlowSpec],
    switches: &[Switches],
) -> Result<Vec<(&'static str, String)>, GroundError> {
    let common = |key: &str, value: fn(&Switches) -> bool| {
        switches::common(flows, switches, key, value).map(u8::from)
    };
    let number = |n: u8| n.to_string();
    Ok(vec![
        (
            "tcp_timestamps",
            number(common("timestamps", |s| s.timestamps)?),
        ),
        ("tcp_sack", number(common("recovery", |s| s.sack)?)),
        ("tcp_early_retrans", number(3 * common("tlp", |s| s.tlp)?)),
        ("tcp_frto", number(2 * common("frto", |s| s.frto)?)),
        (
            "tcp_slow_start_after_idle",
            number(common("validation", |s| s.validates)?),
        ),
        ("tcp_recovery", number(common("recovery", |s| s.rack)?)),
        (
            "tcp_comp_sack_nr",
            number(44 * common("merge_acks", |s| s.merges_acks)?),
        ),
        ("tcp_rmem", receive_buffers(switches)),
        // Room for a second of most paths: a sender that wakes up late has no gap.
        ("tcp_wmem", "4096 16777216 268435456".to_owned()),
    ])
}

/// Smallest, first and largest buffer of a receiver. Without a buffer in the scenario its window
/// never limits, as on ground linux; with one, the largest of them is there without `SO_RCVBUF`,
/// which in a user namespace grants no more than `net.core.rmem_max`.
fn receive_buffers(switches: &[Switches]) -> String {
    let buffers = || switches.iter().map(|s| 2 * s.window.0);
    match buffers().max() {
        Some(most) if buffers().all(|b| b > 0) => format!("4096 {most} {most}"),
        _ => "4096 67108864 268435456".to_owned(),
    }
}

pub(crate) fn unable(key: Option<String>, what: String, hint: &str) -> GroundError {
    let hint = hint.to_owned();
    GroundError::Unable { key, what, hint }
}

#[cfg(test)]
mod tests {
    use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
    use fullpipe_run::{ArrivalSpec, Arrivals, Session, SizeLaw};
    use fullpipe_units::Span;

    use super::*;

    #[test]
    fn sessions_that_go_on_are_refused_by_their_key() {
        let class = |exchanges| ArrivalSpec {
            template: FlowSpec::new(
                "web",
                StackSpec::parse("reno").unwrap(),
                SenderConfig::preset(Preset::Linux, 1500),
                ReceiverConfig::preset(Preset::Linux),
                Vec::new(),
                Vec::new(),
            ),
            arrivals: Arrivals::Every(Span::from_millis(100)),
            sizes: SizeLaw::Fixed(7),
            session: Session {
                exchanges,
                think: Span::ZERO,
            },
            seeded_by: None,
        };
        let refused = |exchanges| {
            let spec = RunSpec {
                arrivals: vec![class(exchanges)],
                duration: Span::from_secs(1),
                ..RunSpec::default()
            };
            match plan(&spec, &["reno".to_owned()], None) {
                Err(GroundError::Unable { key, .. }) => key,
                _ => None,
            }
        };
        assert_eq!(refused(5.0).as_deref(), Some("web.exchanges"));
        assert_eq!(refused(1.0), None);
    }

    /// What would be done to a kernel of one's own, on the ground that has one.
    #[test]
    fn nobody_is_advised_what_the_running_kernel_does_not_take() {
        let refusal = |stack: &str, change: fn(&mut FlowSpec)| {
            let mut flow = FlowSpec::new(
                "main",
                StackSpec::parse(stack).unwrap(),
                SenderConfig::preset(Preset::Linux, 1500),
                ReceiverConfig::preset(Preset::Linux),
                Vec::new(),
                Vec::new(),
            );
            change(&mut flow);
            match switches_of(&flow) {
                Err(GroundError::Unable { key, what, hint }) => (key.unwrap(), what, hint),
                other => panic!("{other:?}"),
            }
        };
        let (key, what, hint) = refusal("fast", |_| ());
        assert_eq!(key, "main.stack");
        assert_eq!(what, "the kernel has no module for `fast`");
        let near = "`vegas` is the nearest: write `vegas` in place of `fast`, or \
                    `--set flow.main.stack=vegas` if all are to have it";
        let own =
            "with --ground linux bring one: `--kernel-module FILE` with the stack `own-linux`";
        assert_eq!(hint, format!("{near}; or {own}"));
        let (_, _, hint) = refusal("own-linux", |_| ());
        let own = "with --ground linux name its file: `--kernel-module FILE`";
        assert_eq!(hint, own);
        let (key, what, hint) = refusal("reno-linux", |f| f.sender.timers.hz = 100);
        assert_eq!(key, "main.hz");
        assert_eq!(what, "the ticks of the running kernel are what they are");
        let own = "leave out `hz`; or with --ground linux build one with ";
        assert!(hint.starts_with(own), "{hint}");
    }
}
