//! A run, from the first namespace to the outcome.

mod before;
mod errors;
mod interface;
mod setup;
mod validity;

use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use fullpipe_emulate::emulation::{LoopConfig, since};
use fullpipe_emulate::privilege::Privilege;
use fullpipe_emulate::queues::try_drain;
use fullpipe_emulate::stage::{Carrying, Stage as Hosts};
use fullpipe_emulate::truth::{self, Check, Watched};
use fullpipe_linux::switches::{Kernel, told};
use fullpipe_realtime::live::{Live, LiveRun};
use fullpipe_run::{ArrivalOutcome, Ground, GroundError, Outcome, RunSpec, Trace};
use fullpipe_units::{Span, Time};

use self::before::{BEFORE, SETTLED, introduce, precede, remember, whole};
use self::errors::{environment, lacks};
use self::interface::{sent_back, stalls};
use self::setup::{Connected, classes, diags, pairs, prepare};
use self::validity::{bunched, starved};
use crate::laws::{Laws, Wanted};
use crate::outcome;
use crate::plan::{self, Plan};
use crate::sampler::{self, Sampler, Seen};
use crate::sockets::{Pair, Stage};

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
    /// Its name in results (contract).
    pub const NAME: &'static str = "kernel";

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
        let carrying = hosts.run(spec, config).map_err(environment)?;
        let seen = self.live(spec, &plan, connected, sampler, &carrying, &hosts);
        let path = carrying.stop().map_err(environment)?;
        let watched = Watched {
            // They bind nothing here: the hosts' TCP runs in the kernel, and a sender that wrote
            // too late shows in what it was limited by.
            wake_ups: None,
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
        checks.extend(truth::during(&path, &watched, hosts.rtt()));
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
        Self::NAME
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

    fn reads(&self, spec: &dyn Fn() -> RunSpec) -> String {
        told(&spec(), Kernel::UNKNOWN)
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

/// A step after the last one was due, whatever that took; but a quarter of a step is left to others
/// where looks take longer than steps.
fn next_look(due: Instant, now: Instant, step: Duration) -> Instant {
    (due + step).max(now + step / 4)
}

/// Part of a run in which reductions may have been missed: loss events are held within 20 % of
/// another ground's, and a twentieth of the time hides no more than that.
const BLIND: f64 = 0.05;

#[cfg(test)]
mod tests {
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
}
