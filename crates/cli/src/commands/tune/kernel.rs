//! The verbs of `fullpipe tune` that need the kernel: the daemon itself, and words to it.

use std::env;
use std::fs;
use std::io;
use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Parser as _;
use fullpipe_cc::registry::entries;
use fullpipe_doctor::Finding;
use fullpipe_grounds::Laws;
use fullpipe_net::session::key::VARIABLE;
use fullpipe_policy::{Measured, Policy, Source, of_a_path};
use fullpipe_realtime::log::Log;
use fullpipe_tune::control::ask;
use fullpipe_tune::daemon::{self, Config, DaemonError, JOURNAL, Reverted, SOCKET};
use fullpipe_tune::groups;
use fullpipe_tune::guard;
use fullpipe_tune::journal::Journal;
use fullpipe_tune::laws::Programs;
use fullpipe_tune::namespaces::{self, Scope};
use fullpipe_tune::plan;
use fullpipe_tune::trial;
use fullpipe_tune::tuner::HEARTBEAT_TIMEOUT;
use serde_json::{Value, json};

use super::lacking::kernel_lacks;
use super::{arms, inject, measured, parameters, watch};
use crate::args::TunerVerb;
use crate::args::{
    Args, Command as Verb, TunerAnswer, TunerJson, TunerPlan, TunerRun, TunerScope, TunerState,
};
use crate::commands::serve;
use crate::exit::{Exit, Failure};
use crate::live::prometheus;
use crate::output;
use crate::state;
use crate::table::{Align, Table, number};

/// Findings of `tune doctor`.
pub fn examine(state: &Path) -> Vec<Finding> {
    let mut findings = vec![Finding::yes("libelf and zlib", "in this fullpipe")];
    findings.extend(trial::examine(state));
    findings
}

/// Findings of `doctor` about eBPF, each kind of program tried.
pub fn programs() -> Vec<Finding> {
    trial::programs()
}

/// What runs on the running kernel have of it.
pub fn laws() -> Option<&'static dyn Laws> {
    Some(&Programs)
}

/// Runs the verb.
pub fn run(verb: &TunerVerb) -> Result<Exit, Failure> {
    let order = |state: &TunerState, verb: &str| say(state, json!({ "verb": verb })).map(|_| ());
    match verb {
        TunerVerb::Run(args) => serve(args)?,
        TunerVerb::Apply(state) => {
            let answer = say(state, json!({ "verb": "apply" }))?;
            for warning in answer["warnings"].as_array().into_iter().flatten() {
                output::say(warning.as_str().unwrap_or_default());
            }
        }
        TunerVerb::Status(args) => {
            let answer = say(&args.state, json!({ "verb": "status" }))?;
            output::data(&if args.json {
                line(&answer)
            } else {
                status(&answer)
            })?;
        }
        TunerVerb::Flows(args) => {
            let answer = say(&args.state, json!({ "verb": "flows" }))?;
            output::data(&if args.json {
                line(&answer)
            } else {
                flows(&answer)
            })?;
        }
        TunerVerb::Plan(args) => {
            let answer = planned(args)?;
            output::data(&if args.json {
                line(&answer)
            } else {
                plan(&answer)
            })?;
        }
        TunerVerb::Compare(args) => {
            let answer = say(&args.json.state, json!({ "verb": "compare" }))?;
            let compared = arms::compared(&answer, args.path.as_deref())?;
            output::data(&if args.json.json {
                line(&compared)
            } else {
                arms::text(&compared)
            })?;
        }
        TunerVerb::Adopt(state) => {
            order(state, "adopt")?;
            output::say("adopted: running flows have their path");
        }
        TunerVerb::Off(state) => {
            order(state, "off")?;
            output::say("off: all flows run Reno; `fullpipe tune on` takes it back");
        }
        TunerVerb::On(state) => {
            order(state, "on")?;
            output::say("on: flows run the law of their path again");
        }
        TunerVerb::Release(args) => {
            let request = json!({ "verb": "release", "flow": args.flow });
            let answer = say(&args.state, request)?;
            output::say(&format!("released: {}", answer["released"]));
        }
        TunerVerb::Get(args) => {
            let status = say(&args.json.state, json!({ "verb": "status" }))?;
            let flows = match args.what {
                Some(_) => say(&args.json.state, json!({ "verb": "flows" }))?,
                None => Value::Null,
            };
            let all = parameters::parameters(&status, &flows, args.what.as_deref())?;
            output::data(&if args.json.json {
                line(&all.into())
            } else {
                parameters::text(&all)
            })?;
        }
        TunerVerb::Set(args) => {
            of_the_stack(&args.set)?;
            let set: serde_json::Map<String, Value> = args
                .set
                .iter()
                .map(|(k, v)| (k.clone(), v.as_str().into()))
                .collect();
            let request = json!({ "verb": "set", "path": args.path, "set": set });
            let answer = say(&args.state, request)?;
            output::data(&format!(
                "{}\n",
                answer["stack"].as_str().unwrap_or_default()
            ))?;
        }
        TunerVerb::Answer(args) => return answer(args),
        TunerVerb::Watch(args) => watch::watch(args)?,
        TunerVerb::Inject(args) => inject::inject(args)?,
        TunerVerb::Guard(args) => {
            let state = &args.state.state;
            with_log(|log| guard::run(state, &args.prefix, scope(args), HEARTBEAT_TIMEOUT, log))?;
        }
        TunerVerb::Revert(args) => {
            let (state, mut reverted) = (&args.state.state, Reverted::default());
            let done = daemon::revert(state, &args.prefix, scope(args), &mut reverted);
            let Reverted {
                lines,
                others,
                out_of_reach,
            } = reverted;
            if done.is_ok() && lines.is_empty() && out_of_reach == 0 {
                output::say("nothing to take back");
            }
            if out_of_reach > 0 {
                output::say(&format!(
                    "{out_of_reach} flows of other network namespaces, ended ones among them, were \
                     not looked at: root, without `--own-namespace`, gives them back what they had"
                ));
            }
            for line in lines {
                output::data(&format!("{line}\n"))?;
            }
            for other in others {
                output::say(&of_another(&other, &args.prefix));
            }
            done.map_err(failure)?;
        }
    }
    Ok(Exit::Ok)
}

/// What `revert` says of algorithms that another prefix takes back.
fn of_another(other: &str, prefix: &str) -> String {
    format!(
        "flows have algorithms `{other}...` of a tuner with another prefix than `{prefix}`: unless it \
         still runs, `fullpipe tune revert --prefix {other}` takes them back (and `--state DIR`, if it \
         had one)"
    )
}

/// Refuses keys of a path, which `set` cannot change: they are the file's.
fn of_the_stack(set: &[(String, String)]) -> Result<(), Failure> {
    let of_law = |key: &str| entries().any(|e| e.params.iter().any(|p| p.name == key));
    let of_file = |key: &str| of_a_path().any(|known| known == key) && !of_law(key);
    let Some((key, _)) = set.iter().find(|(key, _)| of_file(key)) else {
        return Ok(());
    };
    let message = format!("`{key}` is a key of the policy, and no parameter of a stack");
    Err(Failure::new(Exit::Usage, message)
        .hint("edit the policy, then `fullpipe tune apply`")
        .hint("`fullpipe tune get` lists the parameters of each path's stack"))
}

/// What would change, by the daemon's policy or by another one.
fn planned(args: &TunerPlan) -> Result<Value, Failure> {
    let state = &args.scope.state;
    let Some(file) = &args.policy else {
        return say(state, json!({ "verb": "plan" })).map_err(|failure| {
            failure.hint("`fullpipe tune plan POLICY` tells beforehand what it would change")
        });
    };
    let policy = Policy::load_with(file, &measured::known(state)).map_err(|wrong| {
        let text = wrong.to_string();
        Failure::new(Exit::Usage, text.trim_start_matches("error: "))
    })?;
    for lacking in kernel_lacks(&policy.compiled) {
        output::warning(&lacking);
    }
    let sources = Source::all(file).map_err(|e| Failure::new(Exit::Usage, e.to_string()))?;
    let sources = sources
        .iter()
        .map(|source| json!({ "name": source.name, "text": source.text }));
    let request = json!({ "verb": "plan", "policy": sources.collect::<Vec<_>>() });
    match ask(&state.state.join(SOCKET), &request) {
        Ok(answer) => Ok(answer),
        Err(e) if is_nobody(&e) => plan::without_daemon(
            policy.compiled,
            &state.state,
            &args.scope.prefix,
            scope(&args.scope),
        )
        .map_err(failure),
        // More than others may say is not listened to.
        Err(e) if matches!(e.kind(), ConnectionReset | BrokenPipe) => {
            let message = "only root and the tuner's own user may have a policy compared";
            Err(Failure::new(Exit::Environment, message))
        }
        Err(e) => Err(unanswered(&e)),
    }
}

/// Nobody listens there.
fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

/// Has the daemon measure its paths anew.
pub fn measure_anew(args: &TunerJson) -> Result<Exit, Failure> {
    let answer = say(&args.state, json!({ "verb": "probe" }))?;
    if args.json {
        output::data(&line(&answer))?;
    }
    let hosts = answer["hosts"].as_array().map_or(0, Vec::len);
    output::say(&format!(
        "paths to {hosts} hosts are measured; `fullpipe tune status` shows them"
    ));
    Ok(Exit::Ok)
}

/// Answers probes until the input ends, which the daemon holds open.
fn answer(args: &TunerAnswer) -> Result<Exit, Failure> {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    // The daemon's folder may be gone after a boot, and whoever knows this host asks for the same.
    let kept = args.state.state.join("identity");
    let home = state::file("identity").filter(|path| {
        let folder = path.parent();
        path.exists() || folder.is_some_and(|folder| fs::create_dir_all(folder).is_ok())
    });
    let identity = home.filter(|_| !kept.exists()).unwrap_or(kept);
    let identity = identity.display().to_string();
    let mut words = vec![
        "fullpipe",
        "serve",
        "--listen",
        &args.listen,
        "--identity",
        &identity,
        "--max-duration",
        "1min",
        "--max-tests",
        "2",
    ];
    if env::var_os(VARIABLE).is_none() {
        words.push("--open");
    }
    let parsed = Args::try_parse_from(words);
    let parsed = parsed.map_err(|e| Failure::new(Exit::Usage, format!("--answer-probes: {e}")))?;
    match parsed.command {
        Verb::Serve(args) => serve::serve(&args),
        _ => Err(Failure::new(Exit::Internal, "`serve` is no `serve`")),
    }
}

/// What cannot be entered cannot be given back: such flows get nothing, new ones neither.
fn scope(args: &TunerScope) -> Scope {
    match args.own_namespace || !namespaces::others_are_in_reach() {
        true => Scope::Own,
        false => Scope::All,
    }
}

fn serve(args: &TunerRun) -> Result<(), Failure> {
    static STOP: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed))
        .map_err(|e| Failure::new(Exit::Internal, format!("signals: {e}")))?;
    let cgroup = match (&args.cgroup, args.no_cgroup) {
        (Some(path), _) => Some(path.clone()),
        (None, true) => None,
        (None, false) => Some(groups::root().map_err(|e| {
            Failure::new(Exit::Environment, e.to_string())
                .hint("`--no-cgroup` does without: new flows are found within a second")
        })?),
    };
    let page = args.prometheus.map(page).transpose()?;
    let config = Config {
        policy: args.policy.clone(),
        state: args.scope.state.state.clone(),
        cgroup,
        scope: scope(&args.scope),
        prefix: args.scope.prefix.clone(),
        guard: Some(guard_of(args)?),
        prober: Some(itself(&["tune", "probe", "--json"])?),
        answerer: args
            .answer_probes
            .as_ref()
            .map(|at| answerer(args, at))
            .transpose()?,
        page,
    };
    let alone = matches!(config.scope, Scope::Own) && !args.scope.own_namespace;
    with_log(|log| {
        if alone {
            log("flows of this network namespace alone: others take CAP_SYS_ADMIN");
        }
        daemon::run(config, &STOP, log)
    })
}

/// Does something whose log waits for nobody.
fn with_log(
    run: impl FnOnce(&mut dyn FnMut(&str)) -> Result<(), DaemonError>,
) -> Result<(), Failure> {
    let mut log = Log::new(output::say);
    let ended = run(&mut |line| log.say(line)).map_err(failure);
    match log.end() {
        true => ended,
        // Nor would anybody read why.
        false => ended.map_err(|failure| Failure::new(failure.exit, "")),
    }
}

/// Serves what the daemon writes there.
fn page(address: SocketAddr) -> Result<Arc<Mutex<String>>, Failure> {
    let page = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&page);
    prometheus::serve(address, move || {
        shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    })?;
    Ok(page)
}

/// This program as the guard of the daemon.
fn guard_of(args: &TunerRun) -> Result<Command, Failure> {
    let mut guard = itself(&["tune", "guard", "--state"])?;
    guard.arg(&args.scope.state.state);
    guard.args(["--prefix", &args.scope.prefix]);
    if args.scope.own_namespace {
        guard.arg("--own-namespace");
    }
    Ok(guard)
}

/// This program as the server that answers probes.
fn answerer(args: &TunerRun, at: &str) -> Result<Command, Failure> {
    let mut answerer = itself(&["tune", "answer", at, "--state"])?;
    answerer.arg(&args.scope.state.state);
    Ok(answerer)
}

/// This program with other arguments.
fn itself(args: &[&str]) -> Result<Command, Failure> {
    let program = env::current_exe();
    let program = program.map_err(|e| Failure::new(Exit::Environment, e.to_string()))?;
    let mut command = Command::new(program);
    command.args(args);
    Ok(command)
}

fn failure(error: DaemonError) -> Failure {
    match error {
        // Several faults, each with its label; the first is labelled when it is printed.
        DaemonError::Policy(why) => Failure::new(Exit::Usage, why.trim_start_matches("error: ")),
        DaemonError::Second(_) => Failure::new(Exit::Environment, error.to_string())
            .hint("`fullpipe tune status` asks it"),
        DaemonError::Elsewhere(_) => Failure::new(Exit::Environment, error.to_string())
            .hint("`--state DIR` names its folder, `--prefix` that of the one that was killed"),
        _ => Failure::new(Exit::Environment, error.to_string())
            .hint("`fullpipe tune doctor` tries what it takes and says what mends it"),
    }
}

/// Asks the daemon.
pub(super) fn say(state: &TunerState, request: Value) -> Result<Value, Failure> {
    let socket = state.state.join(SOCKET);
    ask(&socket, &request).map_err(|e| match is_nobody(&e) {
        true => {
            let message = format!("no tuner listens at {}", socket.display());
            let failure = Failure::new(Exit::Environment, message);
            let failure = match left(&state.state) {
                0 => failure,
                n => failure.hint(to_revert(&state.state, n)),
            };
            failure.hint("`fullpipe tune run POLICY` starts it")
        }
        false => unanswered(&e),
    })
}

/// Somebody listens, and does not answer, or says why not.
fn unanswered(error: &io::Error) -> Failure {
    match error.kind() {
        // The patience of a read, and of a write.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Failure::new(Exit::Environment, "the tuner does not answer").hint(
                "it hangs or was stopped: until it goes on, flows run the standard; \
                 `systemctl restart fullpipe-tune`, or kill it and `fullpipe tune revert`",
            )
        }
        _ => refused(&error.to_string()),
    }
}

/// Flows in the journal of a daemon that is gone.
fn left(state: &Path) -> usize {
    let journal = Journal::look(&state.join(JOURNAL));
    journal.map_or(0, |journal| journal.entries().count())
}

/// How to take back what such a daemon did.
fn to_revert(state: &Path, flows: usize) -> String {
    let folder = match state == Path::new(TunerState::DEFAULT) {
        true => String::new(),
        false => format!(" --state {}", state.display()),
    };
    let flows = match flows {
        1 => "1 flow".to_owned(),
        n => format!("{n} flows"),
    };
    format!(
        "a daemon that was killed had changed {flows} that it did not give back (some may have \
         ended): `fullpipe tune revert{folder}`"
    )
}

/// The daemon's refusal: its faults have labels of their own, and a remedy may follow.
fn refused(why: &str) -> Failure {
    let why = why.trim_start_matches("error: ");
    match why.split_once("\nhint: ") {
        Some((what, hint)) => Failure::new(Exit::Usage, what).hint(hint),
        None => Failure::new(Exit::Usage, why),
    }
}

fn line(answer: &Value) -> String {
    format!("{answer}\n")
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn status(answer: &Value) -> String {
    let mut out = format!(
        "policy {}, for {} s{}\n",
        text(&answer["policy"]),
        answer["seconds"],
        if answer["off"] == true {
            ", OFF: all flows run Reno"
        } else {
            ""
        },
    );
    for rule in answer["rules"].as_array().into_iter().flatten() {
        let among = match rule["divided_among"].as_u64() {
            Some(n) if n > 1 => format!(", divided among {n} flows"),
            _ => String::new(),
        };
        let (name, stack) = (text(&rule["name"]), text(&rule["stack"]));
        out += &format!("path {name}: {stack}{among}\n");
    }
    for device in answer["spreading"].as_array().into_iter().flatten() {
        out += &format!(
            "interface {}: initial windows are spread by {}\n",
            text(&device["interface"]),
            text(&device["by"])
        );
    }
    for path in answer["measured"].as_array().into_iter().flatten() {
        out += &format!("path to {}\n", measured(path));
    }
    for (name, n) in answer["counters"].as_object().into_iter().flatten() {
        out += &format!("{name} {n}\n");
    }
    out
}

/// `192.0.2.7: 98.7 Mbit/s, RTT 80.10 ms, buffer 450.0 kB, measured 12 s ago`.
fn measured(path: &Value) -> String {
    let host = text(&path["host"]);
    match Measured::from_json(path) {
        Some(measured) => format!("{host}: {measured}, measured {} s ago", path["age_s"]),
        None => format!("{host}: not measured yet"),
    }
}

fn flows(answer: &Value) -> String {
    const COLUMNS: [(&str, &str, Align); 11] = [
        ("flow", "flow", Align::Left),
        ("path", "path", Align::Left),
        ("arm", "arm", Align::Left),
        ("algorithm", "algorithm", Align::Left),
        ("before", "before", Align::Left),
        ("a", "a_segments", Align::Right),
        ("b", "b_fraction", Align::Right),
        ("cwnd", "cwnd_segments", Align::Right),
        ("srtt ms", "srtt_ms", Align::Right),
        ("sent again", "retransmits", Align::Right),
        ("losses", "cuts", Align::Right),
    ];
    let mut table = Table::new();
    for (title, _, align) in COLUMNS {
        table.column(align, &[title]);
    }
    for flow in answer["flows"].as_array().into_iter().flatten() {
        let cell = |value: &Value| match value {
            Value::Null => "-".to_owned(),
            Value::Number(n) if n.is_f64() => number(n.as_f64().unwrap_or(0.0), 4),
            value => text(value),
        };
        table.row(COLUMNS.map(|(_, key, _)| cell(&flow[key])).to_vec());
    }
    match answer["off"] == true {
        true => format!(
            "OFF: all flows run Reno; `fullpipe tune on`\n\n{}",
            table.text()
        ),
        false => table.text(),
    }
}

/// The name of a network namespace that is not this one: of `ip netns`, or its number.
fn foreign(namespace: &Value) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let inode = namespace.as_u64()?;
    let is = |path: &Path| fs::metadata(path).is_ok_and(|m| m.ino() == inode);
    if is(Path::new("/proc/self/ns/net")) {
        return None;
    }
    let named = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let mut named = named.filter(|entry| is(&entry.path()));
    let name = named
        .next()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    Some(name.unwrap_or_else(|| inode.to_string()))
}

fn plan(answer: &Value) -> String {
    let paths = answer["paths"].as_array().into_iter().flatten();
    let paths = paths.map(|path| {
        let (name, stack) = (text(&path["path"]), text(&path["stack"]));
        let was = text(&path["was"]);
        let words = match path["what"].as_str().unwrap_or_default() {
            "new" => format!("new, {stack}"),
            "gone" => format!("gone, was {was}"),
            "same" => format!("as it is, {stack}"),
            _ if stack == was => format!("other settings, {stack}"),
            _ => format!("{stack}, was {was}"),
        };
        format!("path    {name}: {words}\n")
    });
    let flows = answer["plan"].as_array().into_iter().flatten();
    let flows = flows.map(|l| {
        let mark = if l["changes"] == true {
            "change"
        } else {
            "leave"
        };
        let place = foreign(&l["namespace"]);
        let place = place.map_or(String::new(), |name| format!(" (namespace {name})"));
        format!(
            "{mark:6}  {}{place}: {}\n",
            text(&l["flow"]),
            text(&l["why"])
        )
    });
    let lines: String = paths.chain(flows).collect();
    match lines.is_empty() {
        true => "no TCP flow is established\n".to_owned(),
        false => lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_says_which_measurement_is_not_valid() {
        let mut path = json!({ "host": "192.0.2.7", "age_s": null });
        assert_eq!(measured(&path), "192.0.2.7: not measured yet");
        path = json!({
            "host": "192.0.2.7", "age_s": 12, "rate_bps": 98_700_000, "rtt_ns": 80_100_000,
            "buffer_bytes": 450_000, "lost": true, "valid": true, "at": 1,
        });
        let due = "192.0.2.7: 98.7 Mbit/s, RTT 80.10 ms, buffer 450.0 kB, measured 12 s ago";
        assert_eq!(measured(&path), due);
        path["valid"] = json!(false);
        assert!(
            measured(&path).contains("(not valid, "),
            "{}",
            measured(&path)
        );
    }

    #[test]
    fn a_tuner_that_does_not_answer_is_told_from_one_that_refuses() {
        let hangs = unanswered(&io::Error::from(io::ErrorKind::WouldBlock));
        assert_eq!(hangs.message, "the tuner does not answer");
        assert_eq!((hangs.exit, hangs.hints.len()), (Exit::Environment, 1));
        let refuses = unanswered(&io::Error::other("no path `lap`"));
        assert_eq!(refuses.message, "no path `lap`");
    }

    #[test]
    fn what_takes_changes_back_looks_where_they_are_noted() {
        let usual = to_revert(Path::new(TunerState::DEFAULT), 1);
        assert!(usual.contains(" 1 flow that "), "{usual}");
        assert!(usual.ends_with("`fullpipe tune revert`"), "{usual}");
        let other = to_revert(Path::new("/run/lab"), 3);
        assert!(other.contains(" 3 flows that "), "{other}");
        let command = "`fullpipe tune revert --state /run/lab`";
        assert!(other.ends_with(command), "{other}");
    }
}
