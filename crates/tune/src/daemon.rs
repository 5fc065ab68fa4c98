//! The daemon in the foreground: loads, applies, beats, answers, and takes everything back.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_cc::StackSpec;
use fullpipe_policy::{Action, Compiled, Facts, Policy, lower};
use nix::fcntl::{Flock, FlockArg};
use serde_json::{Value, json};

use crate::bpf::{Bpf, Load};
use crate::control::{Client, Door, refusal};
use crate::journal::{Journal, JournalError};
use crate::kernel::{Kernel, KernelError, Seen};
use crate::layout::Order;
use crate::namespaces::Scope;
use crate::tuner::{TuneError, Tuner, label, release_order};

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

/// Name of the daemon's socket in its folder.
pub const SOCKET: &str = "socket";
const JOURNAL: &str = "journal";
const LOCK: &str = "lock";

/// Between two beats; flows wait for three seconds ([`crate::tuner::PATIENCE`]).
const BEAT: Duration = Duration::from_millis(100);
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
    let policy = load(&config.policy)?;
    let _lock = lock(&config.state)?;
    let socket = config.state.join(SOCKET);
    let door = Door::open(&socket);
    let door = door.map_err(|e| DaemonError::Io(socket.display().to_string(), e))?;
    let journal = Journal::open(&config.state.join(JOURNAL))?;
    let bpf = Bpf::load(Load {
        prefix: &config.prefix,
        cgroup: config.cgroup.as_deref(),
        scope: config.scope,
        register: true,
    })?;
    let mut daemon = Daemon {
        tuner: Tuner::new(bpf, &config.prefix, journal),
        file: config.policy,
        policy,
        since: Instant::now(),
    };
    for warning in &daemon.policy.compiled.warnings {
        log(&format!("warning: {warning}"));
    }
    // Whatever ends it, flows get back what they had.
    let ended = daemon.live(&door, stop, log);
    daemon.tuner.finish()?;
    daemon.tuner.take_log().iter().for_each(|line| log(line));
    ended?;
    log("stopped: every flow has back what it had");
    Ok(())
}

fn load(file: &Path) -> Result<Policy, DaemonError> {
    Policy::load(file).map_err(|e| DaemonError::Policy(e.to_string()))
}

/// One daemon per folder, whatever became of the one before: the lock ends with its process.
fn lock(state: &Path) -> Result<Flock<File>, DaemonError> {
    let failed = |e| DaemonError::Io(state.display().to_string(), e);
    fs::create_dir_all(state).map_err(failed)?;
    let file = state.join(LOCK);
    let open = File::options().create(true).append(true).open(&file);
    Flock::lock(open.map_err(failed)?, FlockArg::LockExclusiveNonblock)
        .map_err(|_| DaemonError::Second(file))
}

struct Daemon {
    tuner: Tuner<Bpf>,
    file: PathBuf,
    policy: Policy,
    since: Instant,
}

impl Daemon {
    /// Applies the policy, then beats, looks and answers until `stop`.
    fn live(
        &mut self,
        door: &Door,
        stop: &AtomicBool,
        log: &mut dyn FnMut(&str),
    ) -> Result<(), DaemonError> {
        self.tuner.apply(self.policy.compiled.clone())?;
        log("ready");
        let mut looked = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            self.tuner.tick(BEAT)?;
            self.tuner.take_watched();
            if looked.elapsed() >= LOOK {
                self.tuner.settle()?;
                looked = Instant::now();
            }
            while let Some(mut client) = door.next() {
                let answer = self.answer(&client);
                // A client that has gone away needs none.
                let _ = client.answer(&answer);
            }
            self.tuner.take_log().iter().for_each(|line| log(line));
        }
        Ok(())
    }

    fn answer(&mut self, client: &Client) -> Value {
        let request = match client.request() {
            Ok(request) => request,
            Err(e) => return refusal(e),
        };
        let verb = request["verb"].as_str().unwrap_or_default();
        if !client.may_change && !["status", "flows", "plan"].contains(&verb) {
            return refusal("only root and the tuner's own user may change anything");
        }
        let done = match verb {
            "status" => self.status(),
            "flows" => self.flows(),
            "plan" => self.plan(),
            "apply" => self.apply(),
            "adopt" => self.tuner.adopt().map(|()| json!({})).map_err(Into::into),
            "release" => self.release(&request),
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
            "set" => self.set(&request),
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
            .map(|r| json!({ "name": r.name, "stack": r.stack }))
            .collect();
        Ok(json!({
            "policy": self.file.display().to_string(),
            "seconds": self.since.elapsed().as_secs(),
            "off": self.tuner.is_off(),
            "rules": rules,
            "counters": counters,
        }))
    }

    fn flows(&mut self) -> Result<Value, DaemonError> {
        let flows = self.tuner.flows()?;
        let flows: Vec<Value> = flows.iter().map(|(seen, rule)| flow(seen, rule)).collect();
        Ok(json!({ "flows": flows }))
    }

    fn plan(&mut self) -> Result<Value, DaemonError> {
        let decisions = self.tuner.plan()?;
        let lines: Vec<Value> = decisions
            .iter()
            .map(|d| {
                let flow = label(&d.seen.listing);
                json!({ "flow": flow, "changes": d.order.is_some(), "why": d.why })
            })
            .collect();
        Ok(json!({ "plan": lines }))
    }

    /// Reads the file again. A policy with a mistake changes nothing.
    fn apply(&mut self) -> Result<Value, DaemonError> {
        let policy = load(&self.file)?;
        self.tuner.apply(policy.compiled.clone())?;
        self.policy = policy;
        Ok(json!({ "warnings": self.policy.compiled.warnings }))
    }

    fn release(&mut self, request: &Value) -> Result<Value, DaemonError> {
        let which = request["flow"].as_str().unwrap_or_default().to_owned();
        let is = |cookie: u64, label: &str| {
            which.is_empty() || which == cookie.to_string() || label.contains(&which)
        };
        let released = self.tuner.release(|l| is(l.cookie, &label(l)))?;
        Ok(json!({ "released": released }))
    }

    /// Other parameters for the stack of a path, until the file is applied again.
    fn set(&mut self, request: &Value) -> Result<Value, DaemonError> {
        let name = request["path"].as_str().unwrap_or_default();
        let settings = request["set"].as_object().cloned().unwrap_or_default();
        let settings: Vec<(&str, &str)> = settings
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
            .collect();
        let mut policy = self.policy.clone();
        let stack = changed(&mut policy, name, &settings)?;
        self.tuner.install(policy.compiled.clone())?;
        self.policy = policy;
        Ok(json!({ "path": name, "stack": stack }))
    }
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
    let Policy { compiled, paths } = policy;
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
    let (rule, facts) = (&mut rules[index], &mut paths[index]);
    let Action::Ours { params: old, .. } = rule.action else {
        return Err(wrong(format!(
            "{name}: the kernel's own algorithm takes no parameters here"
        )));
    };
    let before = facts.stack.clone();
    let before = before.map_or_else(|| StackSpec::parse(&rule.stack), Ok);
    let stack = before.and_then(|stack| stack.changed(settings));
    let stack = stack.map_err(|e| wrong(e.to_string()))?;
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
        params.flags = old.flags;
        params.clamp = old.clamp;
        params.initial_window = old.initial_window;
        params.spread_us = old.spread_us;
        params.update_interval_us = old.update_interval_us;
        params.pacing = old.pacing;
    }
    rule.action = action;
    rule.stack = stack.to_string();
    facts.stack = Some(stack);
    Ok(rule.stack.clone())
}

fn flow(seen: &Seen, rule: &str) -> Value {
    let l = &seen.listing;
    let f = l.flow.clone().unwrap_or_default();
    json!({
        "flow": label(l),
        "cookie": l.cookie,
        "namespace": seen.namespace,
        "path": rule,
        "arm": if f.control { "control" } else { "policy" },
        "how": if f.adopted { "adopted" } else { "new" },
        "algorithm": l.algorithm,
        "before": f.before,
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

/// Gives back what a daemon that was killed has left: flows whose algorithm has a name of ours. A
/// flow whose program has changed its algorithm since is left alone. Returns a line per flow.
///
/// # Errors
/// A daemon runs, or the kernel refuses.
pub fn revert(state: &Path, prefix: &str, scope: Scope) -> Result<Vec<String>, DaemonError> {
    let _lock = lock(state)?;
    let mut journal = Journal::open(&state.join(JOURNAL))?;
    let mut bpf = Bpf::load(Load {
        prefix,
        cgroup: None,
        scope,
        register: false,
    })?;
    let left = bpf.flows(&[])?.into_iter();
    let left: Vec<Seen> = left
        .filter(|s| s.listing.algorithm.starts_with(prefix) && s.listing.state != LISTEN)
        .collect();
    let orders: Vec<(u64, Order)> = left
        .iter()
        .map(|s| (s.listing.cookie, release_order(s, prefix, &journal)))
        .collect();
    let after = bpf.flows(&orders)?;
    let mut lines = Vec::new();
    for (seen, (cookie, order)) in left.iter().zip(&orders) {
        let done = after.iter().find(|s| s.listing.cookie == *cookie);
        let done = done.and_then(|s| s.listing.done);
        let what = match done {
            Some(0) => {
                journal.returned(seen, &order.algorithm)?;
                format!("{} again", order.algorithm)
            }
            Some(e) => format!("{}: refused, error {}", order.algorithm, -e),
            None => "has ended".to_owned(),
        };
        lines.push(format!("{}: {what}", label(&seen.listing)));
    }
    Ok(lines)
}

/// The kernel's number of a listener's state.
const LISTEN: u32 = 10;

/// Where version 2 of control groups is mounted: not always at `/sys/fs/cgroup`.
///
/// # Errors
/// Nowhere.
pub fn cgroup_root() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let v2 = mounts.lines().find(|l| l.contains(" - cgroup2 "));
    let at = v2.and_then(|l| l.split(' ').nth(4));
    let none = || io::Error::other("no control groups of version 2 are mounted");
    at.map(PathBuf::from).ok_or_else(none)
}
