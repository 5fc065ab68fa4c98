//! The daemon in the foreground: loads, applies, beats, answers, and takes everything back.

mod answers;
mod changes;
mod revert;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use fullpipe_observe::tuner::SOCKET;
use fullpipe_policy::{Compiled, Measurements, PathFacts, Policy, Source};

pub use self::changes::changed;
pub(crate) use self::changes::make_due;
pub use self::revert::{Reverted, revert};
use crate::bpf::{Bpf, Load};
use crate::control::Door;
use crate::guard::Guard;
use crate::journal::{Journal, JournalError};
use crate::metrics;
use crate::namespaces::Scope;
use crate::probing::{Probed, Probing};
use crate::service::Manager;
use crate::spread::{self, Spreading};
pub use crate::state::{DaemonError, JOURNAL, MEASURED};
use crate::state::{GUARDED, QUEUES, lock};
use crate::tuner::{HEARTBEAT_TIMEOUT, TuneError, Tuner};

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
    /// Prefix of the names of algorithms.
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

/// The algorithms that the running kernel has.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Between two beats; flows wait for three seconds ([`crate::tuner::HEARTBEAT_TIMEOUT`]).
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
    let lock = lock(&config.state, GUARDED)?;
    let socket = config.state.join(SOCKET);
    let door = Door::open(&socket);
    let door = door.map_err(|e| DaemonError::Io(socket.display().to_string(), e))?;
    let journal = Journal::open(&config.state.join(JOURNAL))?;
    let queues = config.state.join(QUEUES);
    let failed = |e: io::Error| DaemonError::Io(queues.display().to_string(), e);
    let mut lines = Vec::new();
    let taken_off = spread::take_off(&queues, &config.scope, &mut lines);
    lines.iter().for_each(|line| log(line));
    taken_off.map_err(failed)?;
    let scope = config.scope.try_clone().map_err(failed)?;
    let bpf = Bpf::load(Load {
        prefix: &config.prefix,
        cgroup: config.cgroup.as_deref(),
        scope: config.scope,
        register: true,
    })?;
    let spreading = Spreading::new(bpf.classifiers()?, scope, &queues).map_err(failed)?;
    let answerer = config.answerer.map(Answerer::begin).transpose();
    let answerer = answerer.map_err(|e| DaemonError::Io("starting to answer".to_owned(), e))?;
    // Last: nothing fails between its start and the end, which takes it leave.
    let guard = config.guard.map(Guard::begin).transpose();
    let mut daemon = Daemon {
        tuner: Tuner::new(bpf, &config.prefix, journal),
        spreading,
        file: config.policy,
        journal: config.state.join(JOURNAL),
        policy,
        sources,
        probing,
        _answerer: answerer,
        guard: guard.map_err(|e| DaemonError::Io("starting the guard".to_owned(), e))?,
        since: Instant::now(),
        applied: Instant::now(),
        made: Duration::ZERO,
        sets: Vec::new(),
        manager,
        page: config.page,
        unwritten: false,
        lived: Instant::now(),
    };
    daemon.warnings().iter().for_each(|line| log(line));
    // Whatever ends it, flows get back what they had.
    let ended = daemon.live(door, stop, log);
    daemon.tell(Manager::stopping);
    let mut faults = Vec::from_iter(ended.err());
    if daemon.finish(&mut faults, log) {
        log(&match daemon.tuner.out_of_reach() {
            0 => "stopped: every flow has back what it had".to_owned(),
            n => format!(
                "stopped: every flow has back what it had but {n}, ended ones among them, of \
                 network namespaces that were not looked into (`fullpipe tune revert` as root)"
            ),
        });
    }
    let guard = daemon.guard.take();
    drop(daemon);
    // A guard that has work left waits for it.
    drop(lock);
    drop(guard);
    DaemonError::of(faults)
}

fn sources(file: &Path) -> Result<Vec<Source>, DaemonError> {
    Source::all(file).map_err(|e| DaemonError::Policy(e.to_string()))
}

fn parse(sources: &[Source], known: &Measurements) -> Result<Policy, DaemonError> {
    Policy::parse_with(sources, known).map_err(|e| DaemonError::Policy(e.to_string()))
}

/// What `work` finds in a thread of its own; every [`BEAT`] until then there is a sign of life.
fn meanwhile<T: Send>(
    work: impl FnOnce() -> T + Send,
    mut alive: impl FnMut() -> Result<(), DaemonError>,
) -> Result<T, DaemonError> {
    thread::scope(|scope| {
        let (found, finds) = mpsc::channel();
        scope.spawn(move || found.send(work()));
        loop {
            match finds.recv_timeout(BEAT) {
                Ok(found) => return Ok(found),
                Err(RecvTimeoutError::Timeout) => alive()?,
                Err(RecvTimeoutError::Disconnected) => panic!("the work has panicked"),
            }
        }
    })
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
    /// Time after `applied` up to which changes have been made.
    made: Duration,
    /// Paths whose parameters were set since, and what was set.
    sets: Vec<(String, Vec<(String, String)>)>,
    manager: Option<Manager>,
    page: Option<Arc<Mutex<String>>>,
    /// The journal could not be written, and has not been since.
    unwritten: bool,
    /// The latest sign of life.
    lived: Instant,
}

impl Daemon {
    /// Takes everything back: each part is tried, whatever became of those before. Whether flows
    /// have back what they had.
    fn finish(&mut self, faults: &mut Vec<DaemonError>, log: &mut dyn FnMut(&str)) -> bool {
        let finished = self.tuner.finish();
        self.tuner.take_log().iter().for_each(|line| log(line));
        let mut lines = Vec::new();
        let taken_off = self.spreading.finish(&mut lines);
        lines.iter().for_each(|line| log(line));
        let is_done = matches!(finished, Ok(()) | Err(TuneError::Journal(_)));
        if let (true, Some(guard)) = (is_done, &mut self.guard) {
            guard.dismiss();
        }
        faults.extend(finished.err().map(DaemonError::from));
        let of = |e| DaemonError::Io("what was put on interfaces".to_owned(), e);
        faults.extend(taken_off.err().map(of));
        is_done
    }

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
        let mut looked = Instant::now();
        self.lived = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            if self.lived.elapsed() > HEARTBEAT_TIMEOUT {
                let late = self.lived.elapsed().as_secs();
                log(&format!(
                    "{late} s without a sign of life: flows were standard meanwhile"
                ));
                self.tuner.resume(Journal::open(&self.journal)?)?;
            }
            self.live_on()?;
            let wait = if door.is_sending() { GLANCE } else { BEAT };
            let looks = looked.elapsed() >= LOOK;
            match self.turn(wait, looks, log) {
                Err(DaemonError::Tune(TuneError::Journal(e))) => self.is_unwritten(&e, log),
                other => other?,
            }
            if looks {
                self.tell(Manager::alive);
                self.show()?;
                looked = Instant::now();
            }
            door.serve(|request, may_change| self.answer(request, may_change));
            self.tuner.take_log().iter().for_each(|line| log(line));
        }
        Ok(())
    }

    /// A sign of life to the kernel side and to the guard.
    fn live_on(&mut self) -> Result<(), DaemonError> {
        self.lived = Instant::now();
        if let Some(guard) = &mut self.guard {
            guard.beat(self.tuner.keeps());
        }
        Ok(self.tuner.beat()?)
    }

    /// Compiles a policy, which takes seconds if it is long and the host busy: flows are not
    /// standard meanwhile.
    fn parse(&mut self, sources: &[Source]) -> Result<Policy, DaemonError> {
        let known = self.probing.known().clone();
        let work = || parse(sources, &known);
        meanwhile(work, || {
            self.tell(Manager::alive);
            self.live_on()
        })?
    }

    /// One turn of the daemon's loop.
    fn turn(
        &mut self,
        wait: Duration,
        looks: bool,
        log: &mut dyn FnMut(&str),
    ) -> Result<(), DaemonError> {
        let wait = self.until_change().map_or(wait, |t| t.min(wait));
        self.tuner.tick(wait)?;
        self.change()?.iter().for_each(|line| log(line));
        self.tuner.take_watched();
        if !looks {
            return Ok(());
        }
        match self.unwritten {
            // A change of it may have been kept from coming into force.
            true => self.put(self.policy.compiled.clone())?,
            false => self.tuner.settle().map(|()| Vec::new())?,
        }
        .iter()
        .for_each(|line| log(line));
        self.measure()?.iter().for_each(|line| log(line));
        if mem::take(&mut self.unwritten) {
            log("the journal can be written again");
        }
        Ok(())
    }

    /// The journal cannot be written. Nothing is done to a flow that is not written down before,
    /// so that all of it can still be given back: those that have their rule keep it.
    fn is_unwritten(&mut self, why: &JournalError, log: &mut dyn FnMut(&str)) {
        if !mem::replace(&mut self.unwritten, true) {
            log(&format!(
                "{why}: no other flow is given a rule until it can be written"
            ));
        }
    }

    /// Hosts that paths of the policy are measured to, each once.
    fn probed(&self) -> impl Iterator<Item = &String> {
        let hosts = self.policy.facts();
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
        let paths: Vec<&PathFacts> = self.policy.facts().collect();
        let looked = self.probing.look(&paths);
        let looked = looked.map_err(|e| DaemonError::Io(MEASURED.to_owned(), e))?;
        match looked {
            None => Ok(Vec::new()),
            Some(Probed::Failed(host, why)) => Ok(vec![format!("probe of {host}: {why}")]),
            Some(Probed::Measured(host, m)) => {
                let again = if m.valid { "" } else { "; it is tried again" };
                let mut lines = vec![format!("probe of {host}: {m}{again}")];
                match self.parse(&self.sources.clone()) {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_work_lets_signs_of_life_through() {
        let (mut signs, begun) = (0, Instant::now());
        let work = || {
            thread::sleep(12 * BEAT);
            7
        };
        let found = meanwhile(work, || {
            signs += 1;
            Ok(())
        });
        assert_eq!(found.unwrap(), 7);
        let most = begun.elapsed().as_millis() / BEAT.as_millis();
        assert!((2..=most).contains(&signs), "{signs} of {most}");
        let ended = meanwhile(work, || Err(DaemonError::Policy("no kernel".to_owned())));
        assert_eq!(ended.unwrap_err().to_string(), "no kernel");
    }
}
