//! The daemon in the foreground: loads, applies, beats, answers, and takes everything back.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fullpipe_cc::StackSpec;
pub use fullpipe_observe::tuner::SOCKET;
use fullpipe_policy::{
    Action, Compiled, Facts, Later, Measured, Measurements, PathFacts, Policy, Rule, Source,
    beside, lower,
};
use nix::fcntl::{Flock, FlockArg, OFlag};
use serde_json::{Value, json};

use crate::arms::Course;
use crate::bpf::{Bpf, Load};
use crate::control::{Door, refusal};
use crate::folder;
use crate::guard::Guard;
use crate::journal::{Journal, JournalError};
use crate::kernel::{Kernel, KernelError, Seen};
use crate::layout::Listing;
use crate::metrics;
use crate::names;
use crate::namespaces::Scope;
use crate::plan;
use crate::probing::{self, Probed, Probing};
use crate::service::Manager;
use crate::spread::{self, Spreading};
use crate::tuner::{PATIENCE, TuneError, Tuner, give_back, label};

/// Files, control group and namespaces of a daemon.
#[derive(Debug)]
pub struct Config {
    /// The policy's file.
    pub policy: PathBuf,
    /// Folder of socket, lock and journal; made if it is not there.
    pub state: PathBuf,
    /// Control group whose new flows get rules, with those below it; `None`: running flows only.
    pub cgroup: Option<PathBuf>,
    /// Network namespaces of running flows.
    pub scope: Scope,
    /// How names of algorithms begin.
    pub prefix: String,
    /// Starts the process that gives flows back where no program of the kernel side can
    /// ([`crate::guard`]); `None`: there is none.
    pub guard: Option<Command>,
    /// Measures the path to a host, its last argument ([`crate::probing`]); `None`: paths are what
    /// the policy says.
    pub prober: Option<Command>,
    /// Answers the probes of others as long as its input is open.
    pub answerer: Option<Command>,
    /// Where what it did is written every second, for Prometheus.
    pub page: Option<Arc<Mutex<String>>>,
}

/// Why there is no daemon.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Everything that is wrong with the policy.
    #[error("{0}")]
    Policy(String),
    /// Another one has the folder.
    #[error("another tuner runs: it holds {}", .0.display())]
    Second(PathBuf),
    /// The kernel, the policy's size, the journal.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The system.
    #[error("{0}: {1}")]
    Io(String, io::Error),
}

impl From<KernelError> for DaemonError {
    fn from(error: KernelError) -> Self {
        TuneError::from(error).into()
    }
}

impl From<JournalError> for DaemonError {
    fn from(error: JournalError) -> Self {
        TuneError::from(error).into()
    }
}

/// File of the folder: what flows were given and had before.
pub const JOURNAL: &str = "journal";
const LOCK: &str = "lock";
/// Behind a measurement that is not valid.
const LATE: &str = " (not valid, the hosts were late: too large, if anything; it is tried again)";
/// The algorithms that the running kernel has.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// What was put on interfaces ([`crate::spread`]).
const QUEUES: &str = "queues";
/// What was measured of paths ([`crate::probing`]), readable by everybody.
pub const MEASURED: &str = "measured";

/// Between two beats; flows wait for three seconds ([`crate::tuner::PATIENCE`]).
const BEAT: Duration = Duration::from_millis(100);
/// The same while a client takes a long answer.
const GLANCE: Duration = Duration::from_millis(2);
/// Between two looks at running flows: those that began outside the control group.
const LOOK: Duration = Duration::from_secs(1);

/// Runs until `stop`; then flows have back what they had. Lines of the log go to `log`; the first
/// is `ready`.
///
/// # Errors
/// [`DaemonError`].
pub fn run(
    config: Config,
    stop: &AtomicBool,
    log: &mut dyn FnMut(&str),
) -> Result<(), DaemonError> {
    let measured = config.state.join(MEASURED);
    let probing = Probing::open(measured.clone(), config.prober.as_ref());
    let probing = probing.map_err(|e| DaemonError::Io(measured.display().to_string(), e))?;
    let sources = sources(&config.policy)?;
    let policy = parse(&sources, probing.known())?;
    let manager = Manager::of_environment();
    let manager = manager.map_err(|e| DaemonError::Io("NOTIFY_SOCKET".to_owned(), e))?;
    let _lock = lock(&config.state, GUARDED)?;
    let socket = config.state.join(SOCKET);
    let door = Door::open(&socket);
    let door = door.map_err(|e| DaemonError::Io(socket.display().to_string(), e))?;
    let journal = Journal::open(&config.state.join(JOURNAL))?;
    let queues = config.state.join(QUEUES);
    let failed = |e: io::Error| DaemonError::Io(queues.display().to_string(), e);
    for line in spread::take_off(&queues, &config.scope).map_err(failed)? {
        log(&line);
    }
    let scope = config.scope.try_clone().map_err(failed)?;
    let bpf = Bpf::load(Load {
        prefix: &config.prefix,
        cgroup: config.cgroup.as_deref(),
        scope: config.scope,
        register: true,
    })?;
    let spreading = Spreading::new(bpf.classifiers()?, scope, &queues).map_err(failed)?;
    let guard = config.guard.map(Guard::begin).transpose();
    let mut daemon = Daemon {
        tuner: Tuner::new(bpf, &config.prefix, journal),
        spreading,
        file: config.policy,
        journal: config.state.join(JOURNAL),
        policy,
        sources,
        probing,
        _answerer: config
            .answerer
            .map(Answerer::begin)
            .transpose()
            .map_err(failed)?,
        guard: guard.map_err(|e| DaemonError::Io("starting the guard".to_owned(), e))?,
        since: Instant::now(),
        applied: Instant::now(),
        made: Duration::ZERO,
        sets: Vec::new(),
        manager,
        page: config.page,
    };
    daemon.warnings().iter().for_each(|line| log(line));
    // Whatever ends it, flows get back what they had.
    let ended = daemon.live(door, stop, log);
    daemon.tell(Manager::stopping);
    daemon.tuner.finish()?;
    daemon.tuner.take_log().iter().for_each(|line| log(line));
    let taken_off = daemon.spreading.finish();
    taken_off.map_err(failed)?.iter().for_each(|line| log(line));
    ended?;
    log("stopped: every flow has back what it had");
    Ok(())
}

fn sources(file: &Path) -> Result<Vec<Source>, DaemonError> {
    Source::all(file).map_err(|e| DaemonError::Policy(e.to_string()))
}

fn parse(sources: &[Source], known: &Measurements) -> Result<Policy, DaemonError> {
    Policy::parse_with(sources, known).map_err(|e| DaemonError::Policy(e.to_string()))
}

/// The process that answers probes: it ends with the daemon, whatever ends that.
struct Answerer(Child);

impl Answerer {
    fn begin(mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.spawn().map(Self)
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// One daemon per folder, whatever became of the one before: the lock ends with its process.
pub(crate) fn lock(state: &Path, patience: Duration) -> Result<Flock<File>, DaemonError> {
    let failed = |e| DaemonError::Io(state.display().to_string(), e);
    folder::own(state).map_err(failed)?;
    let file = state.join(LOCK);
    let mut options = File::options();
    options.create(true).append(true).mode(0o600);
    let open = options
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(&file)
        .map_err(|e| DaemonError::Io(file.display().to_string(), e))?;
    let begin = Instant::now();
    let mut open = open;
    loop {
        open = match Flock::lock(open, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((open, _)) if begin.elapsed() < patience => open,
            Err(_) => return Err(DaemonError::Second(file)),
        };
        thread::sleep(BEAT);
    }
}

/// How long the guard of a daemon before may hold the lock.
const GUARDED: Duration = Duration::from_secs(2);
/// How long a daemon that was killed holds it: until the kernel has unloaded its programs, which
/// takes a busy host seconds.
pub(crate) const DYING: Duration = Duration::from_secs(20);

struct Daemon {
    tuner: Tuner<Bpf>,
    spreading: Spreading,
    file: PathBuf,
    journal: PathBuf,
    policy: Policy,
    /// The texts that it is of.
    sources: Vec<Source>,
    probing: Probing,
    _answerer: Option<Answerer>,
    guard: Option<Guard>,
    since: Instant,
    /// The policy's `change` count from here.
    applied: Instant,
    /// Those up to here are made.
    made: Duration,
    /// Paths whose parameters were set since, and what was set.
    sets: Vec<(String, Vec<(String, String)>)>,
    manager: Option<Manager>,
    page: Option<Arc<Mutex<String>>>,
}

impl Daemon {
    /// Applies the policy, then beats, looks and answers until `stop`.
    fn live(
        &mut self,
        mut door: Door,
        stop: &AtomicBool,
        log: &mut dyn FnMut(&str),
    ) -> Result<(), DaemonError> {
        let lines = self.put(self.policy.compiled.clone())?;
        self.applied = Instant::now();
        lines.iter().for_each(|line| log(line));
        log("ready");
        self.tell(Manager::ready);
        let (mut looked, mut beat) = (Instant::now(), Instant::now());
        while !stop.load(Ordering::Relaxed) {
            if beat.elapsed() > PATIENCE {
                let late = beat.elapsed().as_secs();
                log(&format!(
                    "{late} s without a sign of life: flows were standard meanwhile"
                ));
                self.tuner.resume(Journal::open(&self.journal)?)?;
            }
            beat = Instant::now();
            if let Some(guard) = &mut self.guard {
                guard.beat(self.tuner.keeps());
            }
            let wait = if door.is_sending() { GLANCE } else { BEAT };
            self.tuner
                .tick(self.until_change().map_or(wait, |t| t.min(wait)))?;
            self.change()?.iter().for_each(|line| log(line));
            self.tuner.take_watched();
            if looked.elapsed() >= LOOK {
                self.tuner.settle()?;
                self.measure()?.iter().for_each(|line| log(line));
                self.tell(Manager::alive);
                self.show()?;
                looked = Instant::now();
            }
            door.serve(|request, may_change| self.answer(request, may_change));
            self.tuner.take_log().iter().for_each(|line| log(line));
        }
        Ok(())
    }

    /// Hosts that paths of the policy are measured to, each once.
    fn probed(&self) -> impl Iterator<Item = &String> {
        let Policy { paths, waiting, .. } = &self.policy;
        let hosts = paths.iter().chain(waiting);
        let hosts = hosts.filter_map(|facts| facts.probe.as_ref().map(|(host, _)| host));
        hosts.collect::<BTreeSet<_>>().into_iter()
    }

    /// Has rules in force, and the queues that they take. Lines for the log.
    fn put(&mut self, compiled: Compiled) -> Result<Vec<String>, DaemonError> {
        self.tuner.apply(compiled)?;
        self.spread()
    }

    /// Has the queues that the rules in force take. Lines for the log.
    fn spread(&mut self) -> Result<Vec<String>, DaemonError> {
        let (tuner, spreading) = (&self.tuner, &mut self.spreading);
        let put = spreading.apply(tuner.rules(), |path| tuner.number(path));
        put.map_err(|e| DaemonError::Io("spreading initial windows".to_owned(), e))
    }

    /// Looks after the probes of paths; what they found holds at once. Lines for the log.
    fn measure(&mut self) -> Result<Vec<String>, DaemonError> {
        let Policy { paths, waiting, .. } = &self.policy;
        let paths: Vec<&PathFacts> = paths.iter().chain(waiting).collect();
        let looked = self.probing.look(&paths);
        let looked = looked.map_err(|e| DaemonError::Io(MEASURED.to_owned(), e))?;
        match looked {
            None => Ok(Vec::new()),
            Some(Probed::Failed(host, why)) => Ok(vec![format!("probe of {host}: {why}")]),
            Some(Probed::Measured(host, m)) => {
                let mut lines = vec![format!(
                    "probe of {host}: {}, RTT {}, buffer {}{}{}",
                    m.rate,
                    m.rtt,
                    if m.lost { "" } else { "at least " },
                    m.buffer,
                    if m.valid { "" } else { LATE }
                )];
                match parse(&self.sources, self.probing.known()) {
                    Ok(policy) => lines.extend(self.measured(policy)?),
                    // What holds is not worse than it was.
                    Err(e) => lines.push(format!("the policy stays as it is: {e}")),
                }
                Ok(lines)
            }
        }
    }

    /// Has the same policy in force, of paths that are known better: what was changed since it was
    /// applied stays changed. Lines for the log.
    fn measured(&mut self, mut policy: Policy) -> Result<Vec<String>, DaemonError> {
        let before = self.tuner.rules();
        let is_new = |path: &str| before.iter().all(|rule| rule.name != path);
        let made = make_due(&mut policy, self.made);
        let made = made.into_iter().filter(|(path, _)| is_new(path));
        let mut lines: Vec<String> = made.map(|(_, line)| line).collect();
        for (path, settings) in &self.sets {
            let settings: Vec<(&str, &str)> = settings
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect();
            if let Err(e) = changed(&mut policy, path, &settings) {
                lines.push(format!("path {path}: as the policy has it again: {e}"));
            }
        }
        lines.extend(self.put(policy.compiled.clone())?);
        self.policy = policy;
        Ok(lines)
    }

    /// Until the next `change` of the policy.
    fn until_change(&self) -> Option<Duration> {
        let changes = self.policy.paths.iter().flat_map(|p| &p.changes);
        let at = changes.map(|c| Duration::from_nanos(c.at.as_nanos()));
        let next = at.min()?;
        Some(next.saturating_sub(self.applied.elapsed()))
    }

    /// Makes the changes that are due, each once. Lines for the log.
    fn change(&mut self) -> Result<Vec<String>, DaemonError> {
        self.made = self.applied.elapsed();
        let made = make_due(&mut self.policy, self.made);
        if made.is_empty() {
            return Ok(Vec::new());
        }
        // A change says what a path has, whatever was set before.
        let is_made = |path: &String| made.iter().any(|(of, _)| of == path);
        self.sets.retain(|(path, _)| !is_made(path));
        // One write reaches all flows; those of another law are moved.
        let queues = self.put(self.policy.compiled.clone())?;
        let lines = made.into_iter().map(|(_, line)| line);
        Ok(lines.chain(queues).collect())
    }

    /// Writes what was done for Prometheus.
    fn show(&mut self) -> Result<(), DaemonError> {
        if let Some(page) = &self.page {
            let counters = self.tuner.counters()?;
            let flows = self.tuner.flows()?;
            let text = metrics::page(&counters, self.tuner.is_off(), &flows);
            *page.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
        Ok(())
    }

    fn tell(&self, what: impl Fn(&Manager)) {
        self.manager.iter().for_each(what);
    }

    /// Of the policy, and of what this host cuts.
    fn warnings(&self) -> Vec<String> {
        let warnings = self.policy.compiled.warnings.iter();
        let mut lines: Vec<String> = warnings.map(|w| format!("warning: {w}")).collect();
        let there = fs::read_to_string(AVAILABLE).unwrap_or_default();
        let lacking = self.policy.compiled.lacking(&there).into_iter();
        lines.extend(lacking.map(|w| format!("warning: {w}")));
        let limit = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?;
            text.trim().parse::<u64>().ok()
        };
        for rule in &self.policy.compiled.rules {
            let sizes = [
                (rule.send_buffer, "send_buffer", "wmem_max"),
                (rule.receive_buffer, "receive_buffer", "rmem_max"),
            ];
            for (bytes, key, sysctl) in sizes {
                if let (Some(bytes), Some(most)) = (bytes, limit(sysctl))
                    && bytes > most
                {
                    lines.push(format!(
                        "warning: `path.{}.{key}`: {bytes} B, of which the kernel gives {most} \
                         (sysctl net.core.{sysctl})",
                        rule.name
                    ));
                }
            }
        }
        lines
    }

    fn answer(&mut self, request: &Value, may_change: bool) -> Value {
        let verb = request["verb"].as_str().unwrap_or_default();
        // A policy of somebody's own costs as much to read as its author likes.
        let looks = ["status", "flows", "plan", "compare"].contains(&verb);
        if !may_change && !looks {
            return refusal("only root and the tuner's own user may change anything");
        }
        if !may_change && !request["policy"].is_null() {
            return refusal("only root and the tuner's own user may have a policy compared");
        }
        let done = match verb {
            "status" => self.status(),
            "flows" => self.flows(),
            "plan" => self.plan(request),
            "compare" => Ok(self.compare()),
            "apply" => self.apply(),
            "adopt" => self.tuner.adopt().map(|()| json!({})).map_err(Into::into),
            "release" => self.release(request),
            "off" => self
                .tuner
                .switch(true)
                .map(|()| json!({}))
                .map_err(Into::into),
            "on" => self
                .tuner
                .switch(false)
                .map(|()| json!({}))
                .map_err(Into::into),
            "set" => self.set(request),
            "probe" => {
                self.probing.forget();
                let hosts: Vec<&String> = self.probed().collect();
                Ok(json!({ "hosts": hosts }))
            }
            _ => return refusal(format!("no verb `{verb}`")),
        };
        done.unwrap_or_else(|e: DaemonError| refusal(e))
    }

    fn status(&mut self) -> Result<Value, DaemonError> {
        let counters = self.tuner.counters()?.named();
        let counters: serde_json::Map<String, Value> = counters
            .map(|(name, n)| (name.to_owned(), n.into()))
            .into_iter()
            .collect();
        let rules = self.tuner.rules().iter();
        let rules: Vec<Value> = rules
            .map(|r| {
                let among = self.tuner.shares(&r.name);
                json!({ "name": r.name, "stack": r.stack, "divided_among": among })
            })
            .collect();
        let now = probing::now();
        let measured: Vec<Value> = self
            .probed()
            .map(|host| {
                let known = self.probing.known().get(host);
                let mut value = known.map_or_else(|| json!({}), Measured::to_json);
                value["host"] = json!(host);
                value["age_s"] = json!(known.map(|m| m.age(now)));
                value
            })
            .collect();
        let spreading = self.spreading.mechanisms();
        let spreading: Vec<Value> = spreading
            .map(|(name, how)| json!({ "interface": name, "by": how.word() }))
            .collect();
        Ok(json!({
            "policy": self.file.display().to_string(),
            "seconds": self.since.elapsed().as_secs(),
            "off": self.tuner.is_off(),
            "rules": rules,
            "spreading": spreading,
            "measured": measured,
            "counters": counters,
        }))
    }

    fn flows(&mut self) -> Result<Value, DaemonError> {
        let flows = self.tuner.flows()?;
        let one = |(seen, path): &(Seen, String)| {
            let rule = self.tuner.rule_of(&seen.listing).map(|(_, rule)| rule);
            let refused = self.tuner.is_refused(seen.listing.cookie);
            flow(seen, path, rule.filter(|_| !refused), refused)
        };
        let flows: Vec<Value> = flows.iter().map(one).collect();
        Ok(json!({ "flows": flows, "off": self.tuner.is_off() }))
    }

    /// By the rules in force, or by those of the texts that the request has.
    fn plan(&mut self, request: &Value) -> Result<Value, DaemonError> {
        let Some(texts) = request["policy"].as_array() else {
            return Ok(plan::in_force(&mut self.tuner)?);
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let sources = texts.iter().map(|source| Source {
            name: text(&source["name"]),
            text: text(&source["text"]),
        });
        let sources: Vec<Source> = sources.collect();
        let policy = parse(&sources, self.probing.known())?;
        Ok(plan::of(&mut self.tuner, policy.compiled)?)
    }

    /// Of each path that leaves flows as they were, both arms.
    fn compare(&self) -> Value {
        let now_us = self.tuner.now_us();
        let shared = self.tuner.rules().iter().filter(|r| r.is_shared());
        let paths = shared.map(|rule| {
            let (since_us, courses) = self.tuner.arms().of(&rule.name);
            let seconds = since_us.map_or(0.0, |since| (now_us - since) as f64 / 1e6);
            let arms = [("policy", false), ("control", true)].map(|(name, control)| {
                let mine = courses.iter().filter(|c| c.control == control);
                arm(name, &mine.copied().collect::<Vec<_>>())
            });
            json!({ "path": rule.name, "stack": rule.stack, "seconds": seconds, "arms": arms })
        });
        json!({ "paths": paths.collect::<Vec<_>>() })
    }

    /// Reads the file again. A policy with a mistake changes nothing.
    fn apply(&mut self) -> Result<Value, DaemonError> {
        let sources = sources(&self.file)?;
        let policy = parse(&sources, self.probing.known())?;
        self.tuner.apply_to_all(policy.compiled.clone())?;
        (self.policy, self.sources) = (policy, sources);
        self.applied = Instant::now();
        self.made = Duration::ZERO;
        self.sets.clear();
        let lines = self.spread()?;
        Ok(json!({ "warnings": self.warnings(), "queues": lines }))
    }

    fn release(&mut self, request: &Value) -> Result<Value, DaemonError> {
        let Some(which) = request["flow"].as_str() else {
            return Ok(json!({ "released": self.tuner.release(|_| true)? }));
        };
        let is = |l: &Listing| which == l.cookie.to_string() || which == label(l);
        match self.tuner.release(is)? {
            0 => Err(DaemonError::Policy(format!(
                "no flow `{which}` has a path; write a cookie or both ends as `flows` lists them"
            ))),
            released => Ok(json!({ "released": released })),
        }
    }

    /// Other parameters for the stack of a path, until the file is applied again.
    fn set(&mut self, request: &Value) -> Result<Value, DaemonError> {
        let name = request["path"].as_str().unwrap_or_default();
        let settings = request["set"].as_object().cloned().unwrap_or_default();
        let is_path = self.policy.compiled.rules.iter().any(|r| r.name == name);
        let settings: Vec<(&str, &str)> = settings
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
            .collect();
        if !is_path && let Some(answer) = self.set_flow(name, &settings)? {
            return Ok(answer);
        }
        let mut policy = self.policy.clone();
        let stack = changed(&mut policy, name, &settings)?;
        self.tuner.install(policy.compiled.clone())?;
        self.policy = policy;
        let own = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let settings = settings.iter().map(own).collect();
        self.sets.push((name.to_owned(), settings));
        Ok(json!({ "path": name, "stack": stack }))
    }
}

impl Daemon {
    /// Other parameters for one flow, until the file is applied again; `None`: there is no such
    /// flow with a path.
    fn set_flow(
        &mut self,
        which: &str,
        settings: &[(&str, &str)],
    ) -> Result<Option<Value>, DaemonError> {
        let flows = self.tuner.flows()?;
        let is = |l: &Listing| which == l.cookie.to_string() || which == label(l);
        let Some((seen, _)) = flows.into_iter().find(|(seen, _)| is(&seen.listing)) else {
            return Ok(None);
        };
        let Some((path, rule)) = self.tuner.rule_of(&seen.listing) else {
            let why = format!(
                "{}: it was left as it was, for comparison",
                label(&seen.listing)
            );
            return Err(DaemonError::Policy(why));
        };
        let (path, mut rule) = (path.to_owned(), rule.clone());
        let all = self.policy.compiled.rules.iter().zip(&self.policy.paths);
        let facts = all
            .into_iter()
            .find(|(r, _)| r.name == path)
            .map(|(_, facts)| facts);
        let Some(mut facts) = facts.cloned() else {
            return Ok(None);
        };
        facts.stack = StackSpec::parse(&rule.stack).ok();
        let stack = reparametrized(&mut rule, &mut facts, settings)?;
        let cookie = seen.listing.cookie;
        self.tuner.set_flow(cookie, &path, rule.action, &stack)?;
        Ok(Some(
            json!({ "path": path, "flow": label(&seen.listing), "stack": stack }),
        ))
    }
}

/// Makes the changes of a policy up to `now`, each once and those of a path in the order of time.
/// The path of each, and a line for the log.
pub(crate) fn make_due(policy: &mut Policy, now: Duration) -> Vec<(String, String)> {
    let mut made = Vec::new();
    let Policy {
        compiled, paths, ..
    } = policy;
    for (rule, facts) in compiled.rules.iter_mut().zip(paths) {
        let is_due = |change: &Later| Duration::from_nanos(change.at.as_nanos()) <= now;
        let due = facts.changes.iter().take_while(|c| is_due(c)).count();
        for Later { at, action, stack } in facts.changes.drain(..due) {
            rule.action = action;
            rule.stack = stack.to_string();
            facts.stack = Some(stack);
            let line = format!(
                "path {}: {} from now on ({at} after the policy)",
                rule.name, rule.stack
            );
            made.push((rule.name.clone(), line));
        }
    }
    made
}

/// The policy with other parameters of one path's stack; the spelling that it then has.
///
/// # Errors
/// No such path, no such parameter, or a value that the law does not take.
pub fn changed(
    policy: &mut Policy,
    name: &str,
    settings: &[(&str, &str)],
) -> Result<String, DaemonError> {
    let wrong = |why: String| DaemonError::Policy(why);
    let Policy {
        compiled, paths, ..
    } = policy;
    let Compiled { rules, .. } = compiled;
    let index = rules.iter().position(|r| r.name == name);
    let names = || {
        rules
            .iter()
            .map(|r| r.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let index = index.ok_or_else(|| wrong(format!("no path `{name}`; there are: {}", names())))?;
    reparametrized(&mut rules[index], &mut paths[index], settings)
}

/// A rule with other parameters of its stack; the spelling that it then has.
fn reparametrized(
    rule: &mut Rule,
    facts: &mut PathFacts,
    settings: &[(&str, &str)],
) -> Result<String, DaemonError> {
    let wrong = |why: String| DaemonError::Policy(why);
    let name = &rule.name;
    let Action::Ours { params: old, .. } = rule.action else {
        return Err(wrong(format!(
            "{name}: the kernel's own algorithm takes no parameters here"
        )));
    };
    let before = facts.stack.clone();
    let before = before.map_or_else(|| StackSpec::parse(&rule.stack), Ok);
    let stack = before.and_then(|stack| stack.changed(settings));
    let stack = stack.map_err(|e| {
        let hint = e
            .hint()
            .map_or(String::new(), |hint| format!("\nhint: {hint}"));
        wrong(format!("{e}{hint}"))
    })?;
    let window = |segments: u32| (segments > 0).then_some(f64::from(segments));
    let lowered = lower(
        &stack,
        &Facts {
            rtt: facts.rtt,
            clamp: window(old.clamp),
            reach: facts.reach(),
            update_interval: None,
        },
    );
    let lowered = lowered.map_err(|refusals| {
        let words = refusals
            .iter()
            .map(|r| format!("{}; {}", r.message, r.hint));
        wrong(words.collect::<Vec<_>>().join("\n"))
    })?;
    let mut action = lowered.action;
    if let Action::Ours { params, .. } = &mut action {
        // What the file says beside the stack stays.
        *params = beside(params, &old);
    }
    rule.action = action;
    rule.stack = stack.to_string();
    facts.stack = Some(stack);
    Ok(rule.stack.clone())
}

/// `rule`: what it runs, if a rule decides that.
fn flow(seen: &Seen, path: &str, rule: Option<&Rule>, refused: bool) -> Value {
    let l = &seen.listing;
    let f = l.flow.clone().unwrap_or_default();
    let fixed = rule.and_then(|rule| match &rule.action {
        Action::Ours { params, .. } => params.fixed_decrease(l.cwnd),
        Action::Kernel { .. } => None,
    });
    let arm = match (f.control, refused) {
        (true, _) => "control",
        (false, true) => "refused",
        (false, false) => "policy",
    };
    json!({
        "flow": label(l),
        "cookie": l.cookie,
        "namespace": seen.namespace,
        "path": path,
        "stack": rule.map(|rule| &rule.stack),
        "arm": arm,
        "how": if f.adopted { "adopted" } else { "new" },
        "algorithm": l.algorithm,
        "before": f.before,
        "a_segments": l.a,
        "b_fraction": l.b.or(fixed),
        "cwnd_segments": l.cwnd,
        "ssthresh_segments": (l.ssthresh < 0x7fff_ffff).then_some(l.ssthresh),
        "srtt_ms": f64::from(l.srtt_us) / 1000.0,
        "retransmits": l.retransmitted,
        "bytes_acked": l.bytes_acked,
        "cuts": f.cuts,
        "timeouts": f.timeouts,
        "stalls": f.stalls,
        "stalls_ignored": f.stalls_ignored,
    })
}

/// One arm of a path: its flows, one number each, and what all of them did together.
fn arm(name: &str, courses: &[&Course]) -> Value {
    let sum = |of: &dyn Fn(&Course) -> u64| courses.iter().map(|c| of(c)).sum::<u64>();
    let (segments, sent_again) = (sum(&|c| c.segments), sum(&|c| c.sent_again));
    let mbps = courses.iter().map(|c| c.rate() / 1e6);
    let algorithms: BTreeSet<&str> = courses.iter().map(|c| c.algorithm.as_str()).collect();
    json!({
        "arm": name,
        "algorithms": algorithms,
        "flows": courses.len(),
        "bytes": sum(&|c| c.bytes),
        "busy_s": sum(&|c| c.busy_us) as f64 / 1e6,
        "retransmit_fraction": sent_again as f64 / (segments + sent_again).max(1) as f64,
        "rate_mbps": mbps.collect::<Vec<_>>(),
        "srtt_ms": courses.iter().map(|c| c.srtt_ms()).collect::<Vec<_>>(),
    })
}

/// What was given back, and what is not ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reverted {
    /// A line for each flow and queue.
    pub lines: Vec<String>,
    /// Prefixes of other tuners, which run or have left flows with algorithms of theirs.
    pub others: BTreeSet<String>,
}

/// Gives back what a daemon that was killed has left: flows whose algorithm has a name of ours, and
/// those of its journal; queues of interfaces. What was changed since is left alone.
///
/// # Errors
/// A daemon runs, or the kernel refuses.
pub fn revert(state: &Path, prefix: &str, scope: Scope) -> Result<Reverted, DaemonError> {
    // The kernel has a name as long as a flow runs it. No daemon was here, or its folder is gone:
    // whether flows have names of ours is looked at before one is made.
    let there = fs::read_to_string(AVAILABLE).unwrap_or_default();
    if !state.exists()
        && !there
            .split_whitespace()
            .any(|name| name.starts_with(prefix))
    {
        return Ok(Reverted {
            others: names::of_others(prefix, there.split_whitespace()),
            ..Reverted::default()
        });
    }
    let _lock = lock(state, DYING)?;
    let queues = state.join(QUEUES);
    let mut lines = spread::take_off(&queues, &scope)
        .map_err(|e| DaemonError::Io(queues.display().to_string(), e))?;
    let mut journal = Journal::open(&state.join(JOURNAL))?;
    let mut bpf = Bpf::load(Load {
        prefix,
        cgroup: None,
        scope,
        register: false,
    })?;
    let seen = bpf.flows(&[])?;
    // Those of the journal are given back whatever their names.
    let left = seen.iter().filter(|s| !journal.knows(s.key()));
    let others = names::of_others(prefix, left.map(|s| s.listing.algorithm.as_str()));
    lines.extend(give_back(&mut bpf, &mut journal, prefix, seen, |_| true)?);
    Ok(Reverted { lines, others })
}
