//! `fullpipe emulate`: real programs over an emulated path.

use std::env;
use std::ffi::OsString;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use fullpipe_emulate::emulation::{EmulationError, LoopConfig};
use fullpipe_emulate::household::Member;
use fullpipe_emulate::namespace::Side;
use fullpipe_emulate::privilege::Privilege;
use fullpipe_emulate::signals::{Ended, Signals};
use fullpipe_emulate::stage::{Carrying, Stage};
use fullpipe_emulate::truth::{self, Verdict, Watched};
use fullpipe_emulate::witness::Witness;
use fullpipe_run::RunSpec;
use fullpipe_scenario::{Overrides, Scenario};

use crate::args::{Emulate, EmulateFormat};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::view::truth::Emulated;

/// Runs the command.
pub fn emulate(args: &Emulate) -> Result<Exit, Failure> {
    let spec = specification(args)?;
    let privilege = Privilege::take().map_err(|e| {
        Failure::io("no network namespaces here", &e).hint(
            "run as root, or allow user namespaces (`sysctl user.max_user_namespaces`, \
             `kernel.unprivileged_userns_clone=1`, `kernel.apparmor_restrict_unprivileged_userns=0`)",
        )
    })?;
    let signals = Signals::block().map_err(|e| Failure::io("signals", &e))?;
    let mtu = spec.flows.iter().map(|f| f.sender.packet()).max();
    let mtu = mtu.and_then(|mtu| u16::try_from(mtu).ok()).unwrap_or(1500);
    let names = [
        args.near_namespace.as_deref(),
        args.far_namespace.as_deref(),
    ];
    let stage = Stage::set_up(&spec, mtu, names).map_err(|e| failed(&e))?;
    let config = LoopConfig {
        merge: !args.no_merge,
        real_time: !args.no_real_time,
    };
    let before = match args.no_check {
        true => None,
        false => Some(truth::before(&stage, mtu, config).map_err(|e| failed(&e))?),
    };
    let drops = stage.device_drops().map_err(counters)?;
    let witness = Witness::begin().map_err(|e| Failure::io("a thread", &e))?;
    let carrying = stage.carry(config).map_err(|e| failed(&e))?;
    let ended = over(args, &stage, &signals, &carrying);
    let outcome = carrying.stop().map_err(|e| failed(&e))?;
    let watched = Watched {
        wake_ups: witness.end(),
        device_drops: stage.device_drops().map_err(counters)? - drops,
    };
    let verdict = Verdict {
        before,
        during: truth::during(&outcome, &watched, stage.rtt()),
    };
    drop(stage);
    let status = ended?;
    let emulated = Emulated {
        privilege,
        outcome: &outcome,
        verdict: &verdict,
        exit: status.map(code),
    };
    let text = match args.format {
        EmulateFormat::Table => emulated.table(),
        EmulateFormat::Json => emulated.json(),
    };
    match (&args.out, args.format) {
        (Some(file), _) => std::fs::write(file, text)
            .map_err(|e| Failure::io(format!("cannot write {}", file.display()), &e))?,
        (None, EmulateFormat::Table) => output::say(text.trim_end()),
        (None, EmulateFormat::Json) => output::data(&text)?,
    }
    match status.map(code) {
        None => Ok(Exit::Interrupted),
        Some(0) if verdict.is_true() => Ok(Exit::Ok),
        Some(0) => Ok(Exit::Failed),
        // The command's own, which may be any.
        Some(code) => std::process::exit(code),
    }
}

fn counters(error: std::io::Error) -> Failure {
    Failure::io("counters of the devices", &error)
}

/// The path of the scenario, or of the flags.
fn specification(args: &Emulate) -> Result<RunSpec, Failure> {
    let mut set = Vec::new();
    let mut key = |key: &str, value: &Option<String>| {
        set.extend(value.iter().map(|v| (key.to_owned(), v.clone())));
    };
    key("path.rate", &args.rate);
    key("path.rtt", &args.rtt);
    key("path.buffer", &args.buffer);
    key("path.queue", &args.queue);
    key("path.loss", &args.loss);
    key("path.jitter", &args.jitter);
    key("path.trace", &args.trace);
    key("path.mtu", &args.mtu);
    if args.scenario.is_none() && args.return_rate.is_none() {
        key("path.return_rate", &args.rate);
    }
    key("path.return_rate", &args.return_rate);
    set.extend(args.set.iter().cloned());
    let overrides = Overrides {
        set,
        seed: Some(args.seed),
        ..Overrides::default()
    };
    let loaded = match &args.scenario {
        Some(name) => Scenario::load(name, &overrides),
        None => Scenario::parse(SCENARIO, "flags", &overrides),
    };
    let scenario = loaded.map_err(|diagnostics| {
        let errors = diagnostics.0.iter();
        errors.for_each(|d| output::error(&d.to_string()));
        Failure::new(Exit::Usage, "")
    })?;
    let Some(case) = scenario.cases.get(args.case) else {
        let message = format!("there is no case {}", args.case);
        let hint = format!("`--case` is from 0 to {}", scenario.cases.len() - 1);
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    };
    let spec = case.run_spec(args.seed);
    if !spec.arrivals.is_empty() {
        output::warning("the scenario's short flows are left out: programs make them here");
    }
    if spec.flows.is_empty() {
        let message = "the scenario has no flow, so there is no way from one host to the other";
        return Err(Failure::new(Exit::Usage, message));
    }
    Ok(spec)
}

/// A scenario without a path: flags write theirs into it.
const SCENARIO: &str = r#"
name = "emulate"
duration = "1min"
[path]
[[flow]]
stack = "reno"
"#;

/// Runs the command, and what is to run on the far host, until the command ends; `None`: it was
/// ended.
fn over(
    args: &Emulate,
    stage: &Stage,
    signals: &Signals,
    carrying: &Carrying,
) -> Result<Option<ExitStatus>, Failure> {
    let mut far = Vec::new();
    for line in &args.far {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(line).stdin(Stdio::null());
        far.push(start(stage, Side::Far, command)?);
    }
    if !far.is_empty() {
        stage.wait_for_listener(LISTENS);
    }
    let mut words = args.command.iter().cloned();
    let shell = || env::var_os("SHELL").unwrap_or_else(|| OsString::from("/bin/sh"));
    let mut command = Command::new(words.next().unwrap_or_else(shell));
    command.args(words);
    let mut child = start(stage, Side::Near, command)?;
    loop {
        match signals.wait(&mut child, GLANCE) {
            Ok(Ended::Process(status)) => return Ok(Some(status)),
            Ok(Ended::Stopped) => return Ok(None),
            Ok(Ended::Time) if carrying.has_failed() => return Ok(None),
            Ok(Ended::Time) => {}
            Err(e) => return Err(Failure::io("waiting for the command", &e)),
        }
    }
}

/// How long a server may take until it listens.
const LISTENS: Duration = Duration::from_secs(1);
/// Between two looks at the path's thread.
const GLANCE: Duration = Duration::from_millis(500);

fn start(stage: &Stage, side: Side, mut command: Command) -> Result<Member, Failure> {
    for (name, address) in stage.environment() {
        command.env(name, address.to_string());
    }
    let program = command.get_program().to_owned();
    stage
        .spawn(side, command)
        .map_err(|e| Failure::io(format!("`{}`", program.to_string_lossy()), &e))
}

/// As a shell has it.
fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or(128 + status.signal().unwrap_or(0))
}

fn failed(error: &EmulationError) -> Failure {
    let exit = match error {
        EmulationError::Violation(_) | EmulationError::Thread => Exit::Internal,
        EmulationError::TooMany => Exit::Usage,
        _ => Exit::Environment,
    };
    let failure = Failure::new(exit, error.to_string());
    match error {
        EmulationError::Host(host) if host.what.ends_with("of that name") => {
            failure.hint("`ip netns list` shows the names that there are")
        }
        EmulationError::Host(_) => failure
            .hint("`modprobe tun`, and a /dev/net/tun that this user may open, are what it takes"),
        EmulationError::Household(_) => {
            failure.hint("process namespaces are needed: CONFIG_PID_NS, user.max_pid_namespaces")
        }
        _ => failure,
    }
}
