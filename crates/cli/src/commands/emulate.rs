//! `fullpipe emulate`: real programs over an emulated path.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use fullpipe_emulate::emulation::{EmulationError, LoopConfig};
use fullpipe_emulate::household::Member;
use fullpipe_emulate::namespace::Side;
use fullpipe_emulate::netem::Shape;
use fullpipe_emulate::privilege::Privilege;
use fullpipe_emulate::signals::{Ended, Signal, Signals};
use fullpipe_emulate::stage::{Carrying, InKernel, Stage};
use fullpipe_emulate::truth::{self, Verdict, Watched};
use fullpipe_emulate::witness::Witness;
use fullpipe_run::RunSpec;
use fullpipe_scenario::{Diagnostic, Overrides, Scenario};

use crate::args::{Carrier, Emulate, EmulateFormat};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::view::truth::{Carried, Emulated, Far};

/// Runs the command.
pub fn emulate(args: &Emulate) -> Result<Exit, Failure> {
    let spec = specification(args)?;
    let mtu = spec.flows.iter().map(|f| f.sender.packet()).max();
    let mtu = mtu.and_then(|mtu| u16::try_from(mtu).ok()).unwrap_or(1500);
    if args.by == Carrier::Netem {
        fits_netem(args, &spec, mtu)?;
    }
    if args.near_namespace.is_some() && args.near_namespace == args.far_namespace {
        let message = "--near-namespace and --far-namespace name the same one";
        return Err(
            Failure::new(Exit::Usage, message).hint("a path has two ends: name another one")
        );
    }
    // A command may run for hours: better now than behind it.
    if let Some(file) = &args.out {
        can_be_written(file).map_err(|e| unwritten(file, &e))?;
    }
    if mtu < LEAST_MTU_OF_IPV6 {
        output::warning(&format!(
            "packets of {mtu} bytes: no IPv6, which takes {LEAST_MTU_OF_IPV6} (RFC 8200 section 5)"
        ));
    }
    let privilege = Privilege::take().map_err(|e| {
        Failure::io("no network namespaces here", &e).hint(
            "run as root, or allow user namespaces (`sysctl user.max_user_namespaces`, \
             `kernel.unprivileged_userns_clone=1`, `kernel.apparmor_restrict_unprivileged_userns=0`)",
        )
    })?;
    let signals = Signals::block().map_err(|e| Failure::io("signals", &e))?;
    let names = [
        args.near_namespace.as_deref(),
        args.far_namespace.as_deref(),
    ];
    let stage = match args.by {
        Carrier::Fullpipe => Stage::set_up(&spec, mtu, names),
        Carrier::Netem => Stage::by_kernel(&spec, mtu),
    };
    let stage = stage.map_err(|e| failed(&e))?;
    let config = LoopConfig {
        merge: !args.no_merge,
        real_time: !args.no_real_time,
    };
    let before = match args.no_check {
        true => None,
        false => {
            let before = signals.ending(|| truth::before(&stage, mtu, config));
            Some(before.map_err(|e| failed(&e))?)
        }
    };
    let drops = stage.device_drops().map_err(counters)?;
    let witness = Witness::begin().map_err(|e| Failure::io("a thread", &e))?;
    let path = match args.by {
        Carrier::Fullpipe => stage.carry(config).map(InUse::Thread),
        Carrier::Netem => stage.carry_in_kernel().map(InUse::Kernel),
    };
    let path = path.map_err(|e| failed(&e))?;
    let mut far = Vec::new();
    let ended = over(args, &stage, &signals, &path, &mut far);
    // Processes end here: the stage cannot end before them.
    let far = far.into_iter().map(|(line, mut process)| Far {
        command: line.to_string_lossy(),
        exit: process.ended().ok().flatten().map(code),
    });
    let far: Vec<Far<'_>> = far.collect();
    let carried = match path {
        InUse::Thread(carrying) => carrying.stop().map(Carried::ByThread),
        InUse::Kernel(begun) => stage.over_in_kernel(&begun).map(Carried::ByKernel),
    };
    let carried = carried.map_err(|e| failed(&e))?;
    let watched = Watched {
        wake_ups: Some(witness.end()),
        device_drops: stage.device_drops().map_err(counters)? - drops,
    };
    let verdict = Verdict {
        before,
        during: match &carried {
            Carried::ByThread(outcome) => truth::during(outcome, &watched, stage.rtt()),
            Carried::ByKernel(outcome) => truth::during_in_kernel(outcome, &watched, stage.rtt()),
        },
    };
    let near = stage.host(Side::Near);
    let congestion_control = near.congestion_control().map_err(counters)?;
    drop(stage);
    let (status, stopped) = ended?;
    let emulated = Emulated {
        privilege,
        congestion_control: &congestion_control,
        carried: &carried,
        verdict: &verdict,
        far: &far,
        exit: status.map(code),
        interrupted: stopped.is_some(),
    };
    let text = match args.format {
        EmulateFormat::Table => emulated.table(),
        EmulateFormat::Json => emulated.json(),
    };
    match (&args.out, args.format) {
        (Some(file), _) => std::fs::write(file, &text).map_err(|e| {
            output::say(text.trim_end());
            unwritten(file, &e)
        })?,
        (None, EmulateFormat::Table) => output::say(text.trim_end()),
        (None, EmulateFormat::Json) => output::data(&text)?,
    }
    if let Some(signal) = stopped {
        std::process::exit(128 + signal as i32);
    }
    match status.map(code) {
        None => Ok(Exit::Interrupted),
        Some(0) if verdict.is_true() => Ok(Exit::Ok),
        Some(0) => Ok(Exit::NotValid),
        // The command's own, which may be any.
        Some(code) => std::process::exit(code),
    }
}

/// A path that carries packets now.
enum InUse {
    Thread(Carrying),
    Kernel(InKernel),
}

impl InUse {
    fn has_failed(&self) -> bool {
        matches!(self, Self::Thread(carrying) if carrying.has_failed())
    }
}

/// Refuses what the kernel's queues cannot do before anything is made.
fn fits_netem(args: &Emulate, spec: &RunSpec, mtu: u16) -> Result<(), Failure> {
    if args.near_namespace.is_some() || args.far_namespace.is_some() {
        let message = "`--by netem` makes namespaces of its own";
        let hint = "a run that is killed would leave its wire in an existing one: leave `--by \
                    netem` or the names out";
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    let shapes = Shape::of(spec, mtu);
    shapes.map(|_| ()).map_err(|e| failed(&e.into()))
}

fn counters(error: std::io::Error) -> Failure {
    Failure::io("settings and counters of the hosts", &error)
}

/// RFC 8200 section 5; the kernel has no IPv6 on a device with less.
const LEAST_MTU_OF_IPV6: u16 = 1280;

/// The path of the scenario, or of the flags.
fn specification(args: &Emulate) -> Result<RunSpec, Failure> {
    let mut set: Vec<(String, String)> = (flags(args).into_iter())
        .filter_map(|(key, _, value)| Some((key.to_owned(), value.clone()?)))
        .collect();
    if args.scenario.is_none() && args.return_rate.is_none() {
        set.extend((args.rate.iter()).map(|rate| (RETURN_RATE.to_owned(), rate.clone())));
    }
    set.extend(args.set.iter().cloned());
    let overrides = Overrides {
        set,
        seed: Some(args.seed),
        repeat: Some(NonZeroU32::MIN),
        ..Overrides::default()
    };
    let loaded = match &args.scenario {
        Some(name) => Scenario::load(name, &overrides),
        None => Scenario::parse(SCENARIO, "flags", &overrides),
    };
    let scenario = loaded.map_err(|diagnostics| {
        let mut said = Vec::new();
        for wrong in (diagnostics.0.into_iter()).map(|d| in_flags(args, d)) {
            // A rate is that of both directions, and wrong in each.
            let what = (wrong.file.clone(), wrong.line, wrong.message.clone());
            if !said.contains(&what) {
                output::error(&wrong.to_string());
                said.push(what);
            }
        }
        Failure::new(Exit::Usage, "")
    })?;
    // Programs make the flows: what asks for ECN here says nothing of theirs.
    let of_flows = |key: &str| key.ends_with(".ecn");
    for warning in scenario.warnings.iter().filter(|w| !of_flows(&w.key)) {
        output::warning(&in_flags(args, warning.clone()).to_string());
    }
    if scenario.cases.len() > 1
        && let Some(case) = scenario.cases.get(args.case)
    {
        let set = case
            .json_params()
            .map(|(key, value)| format!("{key} = {value}"));
        let set: Vec<String> = set.collect();
        let (last, set) = (scenario.cases.len() - 1, set.join(", "));
        output::say(&format!(
            "case {} (`--case`, 0 to {last}): {set}",
            args.case
        ));
    }
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

/// Flags that write a key of the path: the key, the flag, and what was given.
fn flags(args: &Emulate) -> [(&'static str, &'static str, &Option<String>); 9] {
    [
        ("path.rate", "--rate", &args.rate),
        ("path.rtt", "--rtt", &args.rtt),
        ("path.buffer", "--buffer", &args.buffer),
        ("path.queue", "--queue", &args.queue),
        ("path.loss", "--loss", &args.loss),
        ("path.jitter", "--jitter", &args.jitter),
        ("path.trace", "--trace", &args.trace),
        ("path.mtu", "--mtu", &args.mtu),
        (RETURN_RATE, "--return-rate", &args.return_rate),
    ]
}

const RETURN_RATE: &str = "path.return_rate";

/// What is wrong, in the words of the command line where it came from there.
fn in_flags(args: &Emulate, mut wrong: Diagnostic) -> Diagnostic {
    let missing = args.scenario.is_none() && wrong.line > 0;
    let given = |value: &Option<String>| value.is_some() && wrong.value == *value;
    let of_rate = |key| wrong.key == key || (wrong.key == RETURN_RATE && key == "path.rate");
    let flag = (flags(args).into_iter()).find(|(key, _, value)| match missing {
        true => wrong.key == *key,
        false => wrong.file == "--set" && of_rate(*key) && given(value),
    });
    let Some((_, flag, value)) = flag else {
        return wrong;
    };
    wrong.line = 0;
    wrong.key = String::new();
    wrong.file = match value {
        Some(value) => format!("{flag} {value}"),
        None => flag.to_owned(),
    };
    let example = match flag {
        "--rate" => Some("100Mbit/s"),
        "--rtt" => Some("40ms"),
        _ => None,
    };
    if let Some(example) = example.filter(|_| missing) {
        "a path needs it".clone_into(&mut wrong.message);
        wrong.hint = Some(format!("for example {flag} {example}, or name a scenario"));
    } else {
        wrong.hint = wrong.hint.map(|hint| hint.replace('"', "`"));
    }
    wrong
}

/// A scenario without a path: flags write theirs into it.
const SCENARIO: &str = r#"
name = "emulate"
duration = "1min"
[path]
[[flow]]
stack = "reno"
"#;

/// Runs the command, and what is to run on the far host (left in `far`), until the command ends;
/// `None`: it was killed. Also the signal that ended this program before.
fn over<'a>(
    args: &'a Emulate,
    stage: &Stage,
    signals: &Signals,
    path: &InUse,
    far: &mut Vec<(&'a OsStr, Member)>,
) -> Result<(Option<ExitStatus>, Option<Signal>), Failure> {
    for line in &args.far {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(line).stdin(Stdio::null());
        far.push((line, start(stage, Side::Far, command)?));
    }
    if !far.is_empty() {
        stage.wait_for_listener(LISTENS);
    }
    let mut words = args.command.iter().cloned();
    let shell = || env::var_os("SHELL").unwrap_or_else(|| OsString::from("/bin/sh"));
    let mut command = Command::new(words.next().unwrap_or_else(shell));
    command.args(words);
    let mut child = start(stage, Side::Near, command)?;
    let mut wait = |time| {
        let ended = signals.wait(&mut child, time);
        ended.map_err(|e| Failure::io("waiting for the command", &e))
    };
    let signal = loop {
        match wait(GLANCE)? {
            Ended::Process(status) => return Ok((Some(status), None)),
            Ended::Stopped(signal) => break signal,
            Ended::Time if path.has_failed() => return Ok((None, None)),
            Ended::Time => {}
        }
    };
    // The command is gone if it cannot be told.
    let _ = child.signal(signal);
    let status = match signals.wait(&mut child, CHANCE) {
        Ok(Ended::Process(status)) => Some(status),
        _ => None,
    };
    Ok((status, Some(signal)))
}

/// A file that was not there is not there afterwards: an empty one would read as a result. Pipes,
/// whose reader would take this for the end, and links to nothing yet are left to the write itself.
fn can_be_written(file: &Path) -> io::Result<()> {
    if file.is_file() {
        OpenOptions::new().append(true).open(file)?;
    } else if file.symlink_metadata().is_err() {
        OpenOptions::new().write(true).create_new(true).open(file)?;
        fs::remove_file(file)?;
    }
    Ok(())
}

fn unwritten(file: &Path, error: &io::Error) -> Failure {
    Failure::io(format!("cannot write {}", file.display()), error)
}

/// What a command has to end by itself when this program is to end.
const CHANCE: Duration = Duration::from_secs(1);

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

/// Exit code as a shell reports it: 128 and the number of the signal that killed.
fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or(128 + status.signal().unwrap_or(0))
}

fn failed(error: &EmulationError) -> Failure {
    let exit = match error {
        EmulationError::Violation(_) | EmulationError::Thread => Exit::Internal,
        EmulationError::TooMany | EmulationError::Refused(_) => Exit::Usage,
        _ => Exit::Environment,
    };
    let failure = Failure::new(exit, error.to_string());
    match error {
        EmulationError::Host(host) => failure.hint(host.hint()),
        EmulationError::Refused(refused) => failure.hint(refused.remedy),
        EmulationError::Lacking(lacking) => failure.hint(lacking.remedy()),
        EmulationError::Household(_) => {
            failure.hint("process namespaces are needed: CONFIG_PID_NS, user.max_pid_namespaces")
        }
        _ => failure,
    }
}
