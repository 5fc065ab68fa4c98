//! The verbs of `fullpipe tune` that need the kernel: the daemon itself, and words to it.

use std::env;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_doctor::Finding;
use fullpipe_tune::bpf::PREFIX;
use fullpipe_tune::control::ask;
use fullpipe_tune::daemon::{self, Config, DaemonError, SOCKET};
use fullpipe_tune::groups;
use fullpipe_tune::guard;
use fullpipe_tune::namespaces::Scope;
use fullpipe_tune::trial;
use fullpipe_tune::tuner::PATIENCE;
use serde_json::{Value, json};

use super::arms;
use crate::args::{TunerRun, TunerScope, TunerState, TunerVerb};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::{Align, Table};

/// What `tune doctor` says of it.
pub fn examine(state: &Path) -> Vec<Finding> {
    let mut findings = vec![Finding::yes("libelf and zlib", "in this fullpipe")];
    findings.extend(trial::examine(state));
    findings
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
            let answer = say(&args.state, json!({ "verb": "plan" }))?;
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
        TunerVerb::Adopt(state) => order(state, "adopt")?,
        TunerVerb::Off(state) => order(state, "off")?,
        TunerVerb::On(state) => order(state, "on")?,
        TunerVerb::Release(args) => {
            let request = json!({ "verb": "release", "flow": args.flow });
            let answer = say(&args.state, request)?;
            output::say(&format!("released: {}", answer["released"]));
        }
        TunerVerb::Set(args) => {
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
        TunerVerb::Guard(args) => {
            let state = &args.state.state;
            guard::run(state, PREFIX, scope(args), PATIENCE, &mut output::say).map_err(failure)?;
        }
        TunerVerb::Revert(args) => {
            let reverted = daemon::revert(&args.state.state, PREFIX, scope(args));
            for line in reverted.map_err(failure)? {
                output::data(&format!("{line}\n"))?;
            }
        }
    }
    Ok(Exit::Ok)
}

fn scope(args: &TunerScope) -> Scope {
    match args.own_namespace {
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
    let config = Config {
        policy: args.policy.clone(),
        state: args.scope.state.state.clone(),
        cgroup,
        scope: scope(&args.scope),
        prefix: PREFIX.to_owned(),
        guard: Some(guard_of(args)?),
    };
    daemon::run(config, &STOP, &mut output::say).map_err(failure)
}

/// This program as the guard of the daemon.
fn guard_of(args: &TunerRun) -> Result<Command, Failure> {
    let program = env::current_exe();
    let program = program.map_err(|e| Failure::new(Exit::Environment, e.to_string()))?;
    let mut guard = Command::new(program);
    guard.args(["tune", "guard", "--state"]);
    guard.arg(&args.scope.state.state);
    if args.scope.own_namespace {
        guard.arg("--own-namespace");
    }
    Ok(guard)
}

fn failure(error: DaemonError) -> Failure {
    match error {
        DaemonError::Policy(_) => Failure::new(Exit::Usage, error.to_string()),
        DaemonError::Second(_) => Failure::new(Exit::Environment, error.to_string())
            .hint("`fullpipe tune status` asks it"),
        _ => Failure::new(Exit::Environment, error.to_string())
            .hint("`fullpipe tune doctor` tries what it takes and says what mends it"),
    }
}

/// Asks the daemon.
fn say(state: &TunerState, request: Value) -> Result<Value, Failure> {
    let socket = state.state.join(SOCKET);
    ask(&socket, &request).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            let message = format!("no tuner listens at {}", socket.display());
            Failure::new(Exit::Environment, message).hint("`fullpipe tune run POLICY` starts it")
        }
        _ => Failure::new(Exit::Usage, e.to_string()),
    })
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
        out += &format!("path {}: {}\n", text(&rule["name"]), text(&rule["stack"]));
    }
    for (name, n) in answer["counters"].as_object().into_iter().flatten() {
        out += &format!("{name} {n}\n");
    }
    out
}

fn flows(answer: &Value) -> String {
    const COLUMNS: [(&str, &str, Align); 9] = [
        ("flow", "flow", Align::Left),
        ("path", "path", Align::Left),
        ("arm", "arm", Align::Left),
        ("algorithm", "algorithm", Align::Left),
        ("before", "before", Align::Left),
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
        table.row(COLUMNS.map(|(_, key, _)| text(&flow[key])).to_vec());
    }
    table.text()
}

fn plan(answer: &Value) -> String {
    let lines = answer["plan"].as_array().into_iter().flatten();
    lines
        .map(|l| {
            let mark = if l["changes"] == true {
                "change"
            } else {
                "leave"
            };
            format!("{mark:6}  {}: {}\n", text(&l["flow"]), text(&l["why"]))
        })
        .collect()
}
