//! A run, from the first namespace to the outcome.

use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use fullpipe_emulate::emulation::{EmulationError, LoopConfig, since};
use fullpipe_emulate::namespace::{DEVICE, HostSide, Side, TUN_REMEDY, addresses};
use fullpipe_emulate::netlink::{Links, Metric};
use fullpipe_emulate::privilege::Privilege;
use fullpipe_emulate::queues::try_drain;
use fullpipe_emulate::stage::{Carrying, Stage as Hosts};
use fullpipe_emulate::truth::{self, Check, Watched};
use fullpipe_emulate::witness::Witness;
use fullpipe_observe::SocketDiag;
use fullpipe_realtime::live::{Live, LiveRun};
use fullpipe_run::{
    ArrivalOutcome, Buffer, FlowTotals, Ground, GroundError, LinkSpec, Outcome, RunSpec, Trace,
};
use fullpipe_units::{Span, Time};

use crate::brief::Brief;
use crate::laws::{Laws, Wanted};
use crate::outcome;
use crate::plan::{self, HANDLE, Plan};
use crate::sampler::{self, Sampler, Seen};
use crate::sockets::{Ends, Pair, SocketError, Stage};

/// How runs are made beyond what a scenario says.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Packets that leave the path together are merged, as a network card does it.
    pub merge: bool,
    /// Hosts hand over up to 64 kB at once (segmentation offload).
    pub offload: bool,
    /// The receiver's buffer begins with 128 kB and grows to 6 MB, the kernel's defaults; otherwise
    /// it never limits.
    pub autotuning: bool,
    /// Connections of a run know what earlier ones left behind, and there is one before it.
    pub remembers: bool,
    /// The path is measured before each run.
    pub check: bool,
    /// Between two looks at the senders (`TCP_INFO`), 1 to 100 ms; `None`: as
    /// [`sampler::interval`] has it.
    pub look_every: Option<Span>,
    /// Brings what the kernel has no module for.
    pub laws: Option<&'static dyn Laws>,
    /// Hosts speak IPv6.
    pub ipv6: bool,
    /// Runs at a time. Each is watched as one that is alone is: too many flag one another.
    pub at_once: NonZeroUsize,
}

impl Options {
    /// What differs from a network card's and the usual host's way, in words.
    fn words(&self) -> String {
        let every = self.look_every.map(|t| format!("TCP_INFO every {t}"));
        let words = [
            (every.is_some(), every.as_deref().unwrap_or_default()),
            (!self.merge, "every packet by itself"),
            (!self.offload, "without segmentation offload"),
            (self.autotuning, "receivers' buffers as they come"),
            (self.remembers, "with what earlier connections left"),
            (self.ipv6, "over IPv6"),
        ];
        let told = words.into_iter().filter(|(is, _)| *is);
        told.map(|(_, word)| format!(", {word}")).collect()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            merge: true,
            offload: true,
            autotuning: false,
            remembers: false,
            check: true,
            look_every: None,
            laws: None,
            ipv6: false,
            at_once: NonZeroUsize::MIN,
        }
    }
}

/// The ground.
#[derive(Debug)]
pub struct RunningKernel {
    release: String,
    fingerprint: String,
    modules: Vec<String>,
    options: Options,
    live: Option<Arc<Live>>,
    interrupt: &'static AtomicBool,
    notes: Mutex<Vec<String>>,
    /// What this kernel lacks for the interface of a host, once somebody has asked.
    lacks_interfaces: OnceLock<Option<String>>,
}

impl RunningKernel {
    /// On this machine; `interrupt` ends runs within a tenth of a second.
    ///
    /// # Errors
    /// There are no network namespaces for this user.
    pub fn new(options: Options, interrupt: &'static AtomicBool) -> Result<Self, GroundError> {
        Privilege::take().map_err(|e| GroundError::Environment {
            what: format!("no network namespaces here: {e}"),
            hint: "run as root, or allow user namespaces (`sysctl user.max_user_namespaces`, \
                   `kernel.unprivileged_userns_clone=1`, \
                   `kernel.apparmor_restrict_unprivileged_userns=0`)"
                .to_owned(),
        })?;
        let release = plan::release();
        let modules = plan::modules();
        let laws = options.laws.map(|laws| format!("-{}", laws.fingerprint()));
        let fingerprint = format!(
            "{}-kernel-{release}{}{}",
            env!("FULLPIPE_KERNEL"),
            options.words().replace([',', ' '], "-"),
            laws.unwrap_or_default()
        );
        Ok(Self {
            release,
            fingerprint,
            modules,
            options,
            live: None,
            interrupt,
            notes: Mutex::default(),
            lacks_interfaces: OnceLock::new(),
        })
    }

    /// Tells `live` how the flows are getting on.
    pub fn with_live(self, live: Option<Arc<Live>>) -> Self {
        Self { live, ..self }
    }

    /// Makes one run.
    ///
    /// # Errors
    /// [`GroundError`].
    pub fn run_one(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        let mut plan = self.plan(spec)?;
        if self.options.autotuning {
            // A buffer that is set is not tuned.
            let classes = plan.classes.iter_mut().map(|c| &mut c.flow);
            let all = plan.flows.iter_mut().chain(classes);
            all.for_each(|flow| flow.receive_buffer = None);
        }
        if let (true, Some(k)) = (
            self.options.ipv6,
            plan.flows.iter().position(|f| f.law.is_some()),
        ) {
            return Err(GroundError::Unable {
                key: Some(format!("{}.stack", spec.flows[k].name)),
                what: "a law that the kernel has no module for runs over IPv4 here".to_owned(),
                hint: "leave out `--ipv6`".to_owned(),
            });
        }
        let (plan, spec) = match self.options.ipv6 {
            true => (plan.over_ipv6(), &plan::over_ipv6(spec)),
            false => (plan, spec),
        };
        let hosted = plan::hosts(spec);
        let hosts = Hosts::without_processes(&hosted, plan.mtu, [None, None]);
        let hosts = hosts.map_err(environment)?;
        prepare(&hosts, &plan, self.options)
            .map_err(|e| lacks("routes and settings of a host", &e))?;
        if plan.flows.iter().any(|f| f.capped) {
            introduce(&hosts, spec, &plan, self.options.ipv6)?;
        }
        if self.options.remembers {
            remember(&hosts, true)?;
            let lasts = spec.duration.min(BEFORE);
            let before = whole(spec, &plan, lasts);
            let lasts = lasts + hosts.rtt() * 4 + SETTLED;
            precede(&hosts, spec, lasts, &before, self.options.ipv6)?;
        }
        let config = LoopConfig {
            merge: self.options.merge,
            real_time: true,
        };
        let mut checks = match self.options.check {
            true => truth::before(&hosts, plan.mtu, config).map_err(environment)?,
            false => Vec::new(),
        };
        let drops = hosts.device_drops().map_err(|e| lacks("counters", &e))?;
        let refused = sent_back(&hosts, &plan)?;
        let laws: Vec<Wanted> = plan.flows.iter().filter_map(|f| f.law.clone()).collect();
        let mut loaded = match self.options.laws.filter(|_| !laws.is_empty()) {
            Some(by) => Some(by.load(&laws)?),
            None => None,
        };
        let pairs = pairs(&hosts, &plan, self.options.ipv6);
        if let Some(loaded) = &mut loaded {
            loaded.sockets_made()?;
        }
        let connected = Connected {
            pairs: pairs?,
            classes: classes(&hosts, spec, &plan, self.options.ipv6)?,
        };
        let sampler = Sampler::new(
            spec,
            diags(&hosts)?,
            &plan.flows,
            hosts.rtt().max(self.between_looks(hosts.rtt()) * 2),
        );
        let sampler = self.record(spec, &connected.pairs, sampler);
        let sampler = match &self.live {
            Some(live) => {
                live.begin(LiveRun::new(spec));
                sampler.with_live(live, plan.flows.iter().map(|f| f.mss))
            }
            None => sampler,
        };
        let witness = Witness::begin().map_err(|e| lacks("a thread", &e))?;
        let carrying = hosts.run(spec, config).map_err(environment)?;
        let seen = self.live(spec, &plan, connected, sampler, &carrying, &hosts);
        let path = carrying.stop().map_err(environment)?;
        let watched = Watched {
            wake_ups: witness.end(),
            device_drops: hosts.device_drops().map_err(|e| lacks("counters", &e))? - drops,
        };
        let stalled = sent_back(&hosts, &plan)?.into_iter().zip(refused);
        let stalled = stalled.map(|(n, before)| n.saturating_sub(before));
        let stalled: Vec<u64> = stalled.collect();
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(GroundError::Interrupted);
        }
        let (seen, arrivals, blind) = seen?;
        if let Some(loaded) = &mut loaded {
            let end = Time::ZERO + spec.duration;
            let begun = plan.flows.iter().filter(|f| f.law.is_some());
            let begun = begun.filter(|f| f.start + hosts.rtt() * 4 < end).count();
            let ran = loaded.ran()?;
            if ran < begun {
                let what = format!("{ran} of {begun} flows ran the law that is theirs");
                return Err(GroundError::Fault(what));
            }
        }
        // Wake-ups of programs bind nothing here: the hosts' TCP runs in the kernel, and a sender
        // that wrote too late shows in what it was limited by.
        let during = truth::during(&path, &watched, hosts.rtt());
        checks.extend(
            during
                .into_iter()
                .filter(|c| !c.name.starts_with("late wake-ups")),
        );
        let latest = path.lateness.max().unwrap_or_default();
        checks.extend(bunched(&hosted, latest));
        checks.extend(starved(spec, &seen));
        checks.push(Check {
            name: "time without a look at the senders".to_owned(),
            unit: "% of the run".to_owned(),
            specified: Some(0.0),
            measured: blind * 100.0,
            bound: (0.0, BLIND * 100.0),
        });
        let mut outcome = outcome::outcome(spec, path, seen, arrivals, checks);
        stalls(&mut outcome, &plan, stalled);
        Ok(outcome)
    }

    fn between_looks(&self, rtt: Span) -> Span {
        let asked = self.options.look_every;
        asked.unwrap_or_else(|| sampler::interval(rtt))
    }

    /// The plan of a run, if this kernel has what it takes.
    fn plan(&self, spec: &RunSpec) -> Result<Plan, GroundError> {
        let plan = plan::plan(spec, &self.modules, self.options.laws)?;
        let templates = spec.arrivals.iter().map(|a| &a.template);
        let Some(f) = spec.flows.iter().chain(templates).find(|f| f.local_queue) else {
            return Ok(plan);
        };
        let lack = self.lacks_interfaces.get_or_init(|| {
            let tried = try_drain();
            tried.err().map(|e| e.to_string())
        });
        match lack {
            None => Ok(plan),
            Some(lack) => Err(GroundError::Environment {
                what: format!(
                    "flow {}: the interface of a host (`nic_rate`, `txqueuelen`) is a class of \
                     sch_htb, which the running kernel does not give: {lack}",
                    f.name
                ),
                hint: "`modprobe sch_htb` loads it where the distribution builds it \
                       (CONFIG_NET_SCH_HTB); `--ground linux` has interfaces without"
                    .to_owned(),
            }),
        }
    }

    /// Has every ACK recorded if the scenario wants a row for each, where that is permitted.
    fn record(&self, spec: &RunSpec, pairs: &[Pair], sampler: Sampler) -> Sampler {
        let (Trace::Full, Some(by)) = (spec.trace, self.options.laws) else {
            return sampler;
        };
        let cookies = pairs.iter().map(Pair::cookie);
        let cookies: io::Result<Vec<u64>> = cookies.collect();
        let record = cookies.map_err(|e| e.to_string());
        match record.and_then(|cookies| by.record(&cookies)) {
            Ok(record) => sampler.with_record(record),
            Err(why) => {
                self.note(format!("rows of the trace are samples, not ACKs: {why}"));
                sampler
            }
        }
    }

    /// The hosts live until the end of the run. What was seen of them, and the part of the time in
    /// which nobody looked for a round trip.
    fn live(
        &self,
        spec: &RunSpec,
        plan: &Plan,
        connected: Connected<'_>,
        mut sampler: Sampler,
        carrying: &Carrying,
        hosts: &Hosts,
    ) -> Result<(Vec<Seen>, Vec<ArrivalOutcome>, f64), GroundError> {
        let over = AtomicBool::new(false);
        let stage = Stage {
            epoch: carrying.epoch,
            stop: &over,
        };
        let end = Time::ZERO + spec.duration;
        let step = Duration::from_nanos(self.between_looks(hosts.rtt()).as_nanos());
        thread::scope(|scope| {
            let classes: Vec<_> = connected
                .classes
                .into_iter()
                .map(|class| {
                    let host = hosts.host(class.from());
                    scope.spawn(move || host.enter(move || class.run(stage)))
                })
                .collect();
            let flows = connected.pairs.into_iter().zip(&plan.flows);
            let flows: Vec<_> = flows
                .map(|(pair, flow)| {
                    let (sender, sink) = pair.split();
                    let sink = scope.spawn(move || sink.run(stage));
                    (scope.spawn(move || sender.run(flow, stage)), sink)
                })
                .collect();
            let mut seen = Ok(());
            let mut due = Instant::now();
            while since(stage.epoch) < end && !self.interrupt.load(Ordering::Relaxed) {
                seen = sampler.look(stage.epoch);
                if seen.is_err() || carrying.has_failed() {
                    break;
                }
                let left = (end.saturating_since(since(stage.epoch))).as_nanos();
                let now = Instant::now();
                due = next_look(due, now, step);
                thread::sleep((due - now).min(Duration::from_nanos(left)));
            }
            let blind = sampler.blind(since(stage.epoch).min(end));
            sampler.take_acks(stage.epoch);
            sampler
                .missed()
                .into_iter()
                .for_each(|note| self.note(note));
            over.store(true, Ordering::Relaxed);
            for ((sender, sink), f) in flows.into_iter().zip(&spec.flows) {
                for thread in [sender, sink] {
                    let ended = thread.join().map_err(|_| {
                        GroundError::Fault(format!("flow {}: a host panicked", f.name))
                    })?;
                    if let Err(e) = ended {
                        self.note(format!("flow {}: {e}", f.name));
                    }
                }
            }
            let classes = classes.into_iter().zip(&spec.arrivals);
            let classes = classes.map(|(thread, a)| {
                let ended = thread.join().map_err(|_| {
                    GroundError::Fault(format!("{}: a host panicked", a.template.name))
                })?;
                ended.map_err(|e| lacks(&format!("short flows {}", a.template.name), &e))
            });
            let classes = classes.collect::<Result<Vec<_>, _>>()?;
            seen.map_err(|e| GroundError::Environment {
                what: e.to_string(),
                hint: "CONFIG_INET_DIAG (`modprobe tcp_diag`) shows the kernel's sockets"
                    .to_owned(),
            })?;
            Ok((sampler.finish(), classes, blind))
        })
    }

    fn note(&self, note: String) {
        let mut notes = self.notes.lock().unwrap_or_else(|e| e.into_inner());
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

impl Ground for RunningKernel {
    fn name(&self) -> &str {
        "kernel"
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn kernel(&self) -> Option<String> {
        let words = self.options.words();
        Some(format!("Linux {}, running{words}", self.release))
    }

    fn brought(&self, spec: &RunSpec) -> Vec<String> {
        let plan = plan::plan(spec, &self.modules, self.options.laws);
        let laws = plan.into_iter().flat_map(|plan| plan.flows);
        let laws = laws.filter_map(|flow| Some(flow.law?.stack.to_string()));
        laws.collect()
    }

    fn at_once(&self) -> Option<NonZeroUsize> {
        Some(self.options.at_once)
    }

    fn in_real_time(&self) -> bool {
        true
    }

    fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn check(&self, spec: &RunSpec) -> Result<(), GroundError> {
        let plan = self.plan(spec)?;
        fullpipe_linux::notes(spec)
            .into_iter()
            .for_each(|note| self.note(note));
        let laws = plan.flows.iter().zip(&spec.flows);
        for (law, flow) in laws.filter_map(|(plan, flow)| Some((plan.law.as_ref()?, flow))) {
            self.note(format!(
                "flow {}: the running kernel has no module `{stack}`: `{stack}` is fullpipe's own \
                 law, loaded into the kernel (eBPF), not Linux's",
                flow.name,
                stack = law.stack
            ));
        }
        Ok(())
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        self.run_one(spec)
    }
}

/// Sockets of a run.
struct Connected<'a> {
    pairs: Vec<Pair>,
    classes: Vec<Brief<'a>>,
}

fn sides(hosts: &Hosts) -> [&HostSide; 2] {
    [hosts.host(Side::Near), hosts.host(Side::Far)]
}

fn pairs(hosts: &Hosts, plan: &Plan, ipv6: bool) -> Result<Vec<Pair>, GroundError> {
    let pairs = plan.flows.iter().enumerate();
    let pairs = pairs.map(|(k, flow)| {
        let ends = Ends::new(flow.from, k, ipv6);
        Pair::new(ends, flow, sides(hosts)).map_err(sockets)
    });
    pairs.collect()
}

/// Classes of short flows have the pairs of hosts behind those of the flows.
fn classes<'a>(
    hosts: &Hosts,
    spec: &'a RunSpec,
    plan: &'a Plan,
    ipv6: bool,
) -> Result<Vec<Brief<'a>>, GroundError> {
    let classes = plan.classes.iter().zip(&spec.arrivals).enumerate();
    let classes = classes.map(|(k, (class, of))| {
        let ends = Ends::new(class.flow.from, plan.flows.len() + k, ipv6);
        Brief::new(class, of, spec, ends, sides(hosts)).map_err(|e| lacks("a sink", &e))
    });
    classes.collect()
}

/// Settings and routes of both hosts.
fn prepare(hosts: &Hosts, plan: &Plan, options: Options) -> io::Result<()> {
    for side in [Side::Near, Side::Far] {
        let other = match side {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        };
        let mut settings = plan.settings.clone();
        if options.autotuning {
            settings.push(("tcp_rmem", DEFAULT_BUFFER.to_owned()));
        }
        let classes = plan.classes.iter().map(|c| &c.flow);
        let routes: Vec<(usize, Vec<(Metric, u32)>)> = plan
            .flows
            .iter()
            .chain(classes)
            .map(|f| if f.from == side { &f.data } else { &f.acks })
            .cloned()
            .enumerate()
            .filter(|(_, metrics)| !metrics.is_empty())
            .collect();
        let interfaces = plan.interfaces.iter().filter(|i| i.side == side);
        let interfaces: Vec<_> = interfaces.map(|i| (i.class, i.drain)).collect();
        hosts.host(side).enter(move || {
            for (name, value) in settings {
                let file = format!("/proc/sys/net/ipv4/{name}");
                let named = |e: io::Error| io::Error::new(e.kind(), format!("{file}: {e}"));
                std::fs::write(&file, value).map_err(named)?;
            }
            let mut links = Links::open()?;
            // A packet takes one place in the queue of an interface, not a train of them.
            if !options.offload || !interfaces.is_empty() {
                links.set_offload(DEVICE, 1)?;
            }
            if !interfaces.is_empty() {
                links.put_htb(DEVICE, HANDLE)?;
            }
            for (class, drain) in interfaces {
                links.put_drain(DEVICE, HANDLE, class, drain)?;
            }
            for (k, metrics) in routes {
                let (v4, v6) = addresses(other, k);
                let to = if options.ipv6 { v6 } else { v4 };
                links.add_route(DEVICE, to, &metrics)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Packets that each interface has sent back to its senders so far.
fn sent_back(hosts: &Hosts, plan: &Plan) -> Result<Vec<u64>, GroundError> {
    let of = |side: Side| {
        if !plan.interfaces.iter().any(|i| i.side == side) {
            return Ok(Vec::new());
        }
        let counted = hosts
            .host(side)
            .enter(|| Links::open()?.refused(DEVICE, HANDLE));
        counted.map_err(|e| lacks("counters of an interface", &e))
    };
    let (near, far) = (of(Side::Near)?, of(Side::Far)?);
    let all = plan.interfaces.iter().map(|i| {
        let of = if i.side == Side::Near { &near } else { &far };
        let counted = of.iter().find(|(class, _)| *class == i.class);
        counted.map_or(0, |(_, n)| *n)
    });
    Ok(all.collect())
}

/// What interfaces have sent back, as stalls of their flows: an interface does not tell them apart,
/// so those that share it have equal parts.
fn stalls(outcome: &mut Outcome, plan: &Plan, stalled: Vec<u64>) {
    let flows = outcome.flows.iter_mut().map(|f| &mut f.totals);
    let classes = outcome.arrivals.iter_mut().map(|a| &mut a.totals);
    let plans = plan
        .flows
        .iter()
        .chain(plan.classes.iter().map(|c| &c.flow));
    let mut of: Vec<Vec<&mut FlowTotals>> = stalled.iter().map(|_| Vec::new()).collect();
    for (totals, flow) in flows.chain(classes).zip(plans) {
        if let Some(sharing) = flow.interface.and_then(|i| of.get_mut(i)) {
            sharing.push(totals);
        }
    }
    for (sharing, n) in of.into_iter().zip(stalled) {
        let many = sharing.len() as u64;
        for (k, totals) in sharing.into_iter().enumerate() {
            totals.local_stalls = n / many + u64::from((k as u64) < n % many);
        }
    }
}

/// Smallest, first and largest buffer of a receiver (`tcp_rmem`, tcp(7)).
const DEFAULT_BUFFER: &str = "4096 131072 6291456";

/// The ceiling of a window is taken from what the kernel remembers of a destination
/// (`tcp_init_metrics`, net/ipv4/tcp_metrics.c), and it remembers one after a whole connection: a
/// segment and both FINs.
fn introduce(hosts: &Hosts, spec: &RunSpec, plan: &Plan, ipv6: bool) -> Result<(), GroundError> {
    let mut brief = plan.clone();
    brief.flows.iter_mut().for_each(|f| {
        f.bytes = Some(u64::from(f.mss));
        f.start = Time::ZERO;
        f.stop = None;
    });
    remember(hosts, true)?;
    precede(hosts, spec, hosts.rtt() * 4 + SETTLED, &brief, ipv6)?;
    remember(hosts, false)
}

/// Beside four round trips: most of a second for the slowest link and a busy machine.
const SETTLED: Span = Span::from_millis(400);

/// Flows that end: the kernel remembers of a connection what it was when both FINs had come. Each
/// has a part of what the slowest link on its way carries in the half of a time, after which links
/// carry nothing any more.
fn whole(spec: &RunSpec, plan: &Plan, lasts: Span) -> Plan {
    let mut plan = plan.clone();
    let many = spec.flows.len().max(1) as f64;
    for (flow, f) in plan.flows.iter_mut().zip(&spec.flows) {
        let rates = f.forward.iter().filter_map(|l| spec.links[*l].rate);
        let bits = rates
            .min()
            .map_or(UNLIMITED, |r| r.as_bits_per_sec() as f64);
        let bytes = (bits / 8.0 * lasts.as_secs_f64() / 2.0 / many) as u64;
        flow.bytes = Some(bytes.max(u64::from(flow.mss)));
        (flow.start, flow.stop) = (Time::ZERO, None);
    }
    plan
}

/// What a flow before sends where no link has a rate, bit/s.
const UNLIMITED: f64 = 1e9;

/// Whether connections leave something behind.
fn remember(hosts: &Hosts, on: bool) -> Result<(), GroundError> {
    let value = if on { "0" } else { "1" };
    // Thresholds are left out by default since Linux 5.6.
    for name in ["tcp_no_metrics_save", "tcp_no_ssthresh_metrics_save"] {
        for side in [Side::Near, Side::Far] {
            let file = format!("/proc/sys/net/ipv4/{name}");
            let to = file.clone();
            let written = hosts.host(side).enter(move || std::fs::write(to, value));
            match written {
                // Kernels that have no such choice save all of it.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => other.map_err(|e| lacks(&file, &e))?,
            }
        }
    }
    Ok(())
}

/// A run whose connections leave something behind.
fn precede(
    hosts: &Hosts,
    spec: &RunSpec,
    lasts: Span,
    plan: &Plan,
    ipv6: bool,
) -> Result<(), GroundError> {
    let config = LoopConfig {
        merge: true,
        real_time: true,
    };
    let carrying = hosts.run(spec, config).map_err(environment)?;
    let over = AtomicBool::new(false);
    let stage = Stage {
        epoch: carrying.epoch,
        stop: &over,
    };
    let lasts = Duration::from_nanos(lasts.as_nanos());
    let pairs = pairs(hosts, plan, ipv6)?;
    thread::scope(|scope| {
        for (pair, flow) in pairs.into_iter().zip(&plan.flows) {
            let (sender, sink) = pair.split();
            scope.spawn(move || sink.run(stage));
            scope.spawn(move || sender.run(flow, stage));
        }
        thread::sleep(lasts);
        over.store(true, Ordering::Relaxed);
    });
    carrying.stop().map_err(environment)?;
    Ok(())
}

/// A step after the last one was due, whatever that took; but a quarter of a step is left to others
/// where looks take longer than steps.
fn next_look(due: Instant, now: Instant, step: Duration) -> Instant {
    (due + step).max(now + step / 4)
}

/// Long enough for a loss and the threshold that it leaves.
const BEFORE: Span = Span::from_secs(5);

fn diags(hosts: &Hosts) -> Result<Vec<(Side, SocketDiag)>, GroundError> {
    let open = |side: Side| -> io::Result<(Side, SocketDiag)> {
        let host: &HostSide = hosts.host(side);
        let diag = host.enter(|| SocketDiag::open().map_err(io::Error::other))?;
        Ok((side, diag))
    };
    let all = [Side::Near, Side::Far].into_iter().map(open);
    all.collect::<io::Result<_>>()
        .map_err(|e| lacks("sockets of a namespace", &e))
}

/// What waits for a late departure leaves at once, comes back as a burst, and may fill a buffer
/// that it would have passed one by one: the latest must be short against the smallest buffer.
fn bunched(spec: &RunSpec, latest: Span) -> Option<Check> {
    let room = |l: &LinkSpec| {
        let bits = l.rate?.as_bits_per_sec().max(1) as f64;
        match l.buffer {
            Buffer::Packets(n) => Some(n as f64 * PACKET * 8.0 / bits),
            Buffer::Bytes(n) => Some(n as f64 * 8.0 / bits),
            Buffer::Time(t) => Some(t.as_secs_f64()),
            Buffer::Unlimited => None,
        }
    };
    let smallest = spec.links.iter().filter_map(room).min_by(f64::total_cmp)?;
    Some(Check {
        name: "latest departure, against the smallest buffer".to_owned(),
        unit: "ms".to_owned(),
        specified: None,
        measured: latest.as_millis_f64(),
        bound: (0.0, smallest * 1e3 * BUNCH),
    })
}

/// Bytes of the packets that a buffer counts.
const PACKET: f64 = 1500.0;
/// Part of a buffer that a bunch of packets may take.
const BUNCH: f64 = 0.5;

/// A sender that had nothing to send, though its flow has no end: its program was late.
fn starved(spec: &RunSpec, seen: &[Seen]) -> Vec<Check> {
    let bulk = spec.flows.iter().zip(seen);
    let bulk = bulk.filter(|(f, _)| f.sender.transfer.is_none() && f.stop.is_none());
    bulk.map(|(f, s)| Check {
        name: format!("flow {} without data to send", f.name),
        unit: "% of its life".to_owned(),
        specified: Some(0.0),
        measured: s.sampled.starved * 100.0,
        bound: (0.0, STARVED * 100.0),
    })
    .collect()
}

/// Part of its life that a sender may lack data.
const STARVED: f64 = 0.01;

/// Part of a run in which reductions may have been missed: loss events are held within 20 % of
/// another ground's, and a twentieth of the time hides no more than that.
const BLIND: f64 = 0.05;

fn sockets(error: SocketError) -> GroundError {
    match error {
        SocketError::Io(what, e) if e.kind() == io::ErrorKind::PermissionDenied => {
            GroundError::Environment {
                what: format!("{what}: {e}"),
                hint: "run as root, or allow it: a congestion module to all users (`sysctl \
                       net.ipv4.tcp_allowed_congestion_control`), a receive window of this size \
                       (`sysctl net.core.rmem_max`)"
                    .to_owned(),
            }
        }
        SocketError::Io(what, e) => lacks(what, &e),
        SocketError::Module(found) => GroundError::Environment {
            what: format!("the kernel took another congestion module: `{found}`"),
            hint: "see `sysctl net.ipv4.tcp_allowed_congestion_control`".to_owned(),
        },
    }
}

fn lacks(what: &str, error: &io::Error) -> GroundError {
    GroundError::Environment {
        what: format!("{what}: {error}"),
        hint: "`fullpipe emulate -- true` tries the same hosts and path".to_owned(),
    }
}

fn environment(error: EmulationError) -> GroundError {
    match error {
        EmulationError::Violation(v) => v.into(),
        EmulationError::Thread => GroundError::Fault(error.to_string()),
        EmulationError::Host(host) => GroundError::Environment {
            what: host.to_string(),
            hint: host.hint().to_owned(),
        },
        other => GroundError::Environment {
            what: other.to_string(),
            hint: TUN_REMEDY.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Rate;

    use super::*;

    #[test]
    fn what_a_look_takes_does_not_delay_the_next() {
        let us = Duration::from_micros;
        let begin = Instant::now();
        let next = |took| next_look(begin, begin + us(took), us(1000)) - begin;
        assert_eq!(next(0), us(1000));
        assert_eq!(next(700), us(1000));
        // Late ones are not made up for.
        assert_eq!(next(2000), us(2250));
    }

    #[test]
    fn a_bunch_may_take_half_of_the_smallest_buffer() {
        let rate = Some(Rate::from_bits_per_sec(100_000_000));
        let link = |packets| LinkSpec::new("l", rate, Span::ZERO, Buffer::Packets(packets));
        let mut spec = RunSpec {
            links: vec![link(1000), link(41)],
            ..RunSpec::default()
        };
        // 41 packets of 0.12 ms.
        let holds = |spec: &RunSpec, us| bunched(spec, Span::from_micros(us)).unwrap().holds();
        assert!(holds(&spec, 2400) && !holds(&spec, 2500));
        spec.links = vec![LinkSpec::pure_delay("back", Span::ZERO)];
        assert!(bunched(&spec, Span::from_secs(1)).is_none());
    }
}
