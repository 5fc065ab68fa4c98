//! A daemon in a process of its own: what it answers, and what it leaves when it is killed.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_realtime::log::Log;
use fullpipe_tune::control::ask;
use fullpipe_tune::daemon::{self, Config, JOURNAL, Reverted, SOCKET};
use fullpipe_tune::guard;
use fullpipe_tune::journal::Journal;
use fullpipe_tune::namespaces::Scope;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use serde_json::{Value, json};

use fullpipe_emulate::namespace::{DEVICE, Side, addresses};

use crate::support::{Eye, Ground, Road, choose, pace, prefix, send_buffer};

/// Names folder, control group, prefix and namespace of the process below.
const HANDED: [&str; 4] = ["TUNE_STATE", "TUNE_CGROUP", "TUNE_PREFIX", "TUNE_NAMESPACE"];

/// A script of this name in the folder measures paths.
pub const PROBER: &str = "prober";

/// The daemon's process: this program, with this test alone.
#[test]
#[ignore = "the daemon of the other tests, which start it"]
fn daemon_process() {
    let [Ok(state), Ok(cgroup), Ok(prefix), Ok(namespace)] = HANDED.map(std::env::var) else {
        return;
    };
    static STOP: AtomicBool = AtomicBool::new(false);
    // The end of its input is the order to stop.
    std::thread::spawn(|| {
        let _ = std::io::stdin().lines().count();
        STOP.store(true, Ordering::Relaxed);
    });
    let prober = Path::new(&state).join(PROBER);
    let config = Config {
        policy: PathBuf::from(&state).join("policy.toml"),
        state: state.into(),
        cgroup: Some(cgroup.into()),
        scope: scope(&namespace),
        prefix,
        guard: Some(again("daemon::guard_process")),
        prober: prober.exists().then(|| {
            let mut shell = Command::new("sh");
            shell.arg(prober);
            shell
        }),
        answerer: None,
        page: None,
    };
    let mut log = Log::new(|line| eprintln!("{line}"));
    let ended = daemon::run(config, &STOP, &mut |line| log.say(line));
    if let Err(e) = ended {
        log.say(&format!("ended: {e}"));
    }
    log.end();
}

/// This program, with one test alone.
fn again(test: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--ignored", "--exact", "--nocapture", test]);
    command
}

/// The guard's process, which the daemon's starts.
#[test]
#[ignore = "the guard of the other tests, whose daemons start it"]
fn guard_process() {
    let [Ok(state), Ok(_), Ok(prefix), Ok(namespace)] = HANDED.map(std::env::var) else {
        return;
    };
    let patience = Duration::from_secs(1);
    let mut log = |line: &str| eprintln!("{line}");
    guard::run(
        state.as_ref(),
        &prefix,
        scope(&namespace),
        patience,
        &mut log,
    )
    .unwrap();
}

fn scope(namespace: &str) -> Scope {
    match namespace {
        OWN => Scope::Own,
        path => Scope::Some(vec![fs::File::open(path).unwrap().into()]),
    }
}

/// Instead of a namespace's file.
const OWN: &str = "own";

pub struct Running {
    pub child: Child,
    said: BufReader<ChildStderr>,
    /// The guard opens it by its number, later.
    _namespace: OwnedFd,
}

impl Running {
    pub fn begin(ground: &Ground, state: &Path) -> Self {
        Self::begun(ground, state).heard()
    }

    fn begun(ground: &Ground, state: &Path) -> Self {
        let near = ground.near();
        let namespace = format!("/proc/{}/fd/{}", std::process::id(), near.as_raw_fd());
        let handed = handed(ground, state, namespace);
        let command = again("daemon::daemon_process");
        Self::new(command, handed, near, |mut command| command.spawn())
    }

    /// Inside of the near host, by a program that takes this one and its arguments.
    pub fn inside(ground: &Ground, state: &Path, by: Command) -> Self {
        let mut command = by;
        command.arg(std::env::current_exe().unwrap());
        command.args(again("daemon::daemon_process").get_args());
        let handed = handed(ground, state, OWN.to_owned());
        Self::new(command, handed, ground.near(), |mut command| {
            ground.on_near(move || Ok(command.spawn()))
        })
        .heard()
    }

    /// Before it has said anything.
    fn new(
        mut command: Command,
        handed: [String; 4],
        namespace: OwnedFd,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
    ) -> Self {
        command
            .envs(HANDED.into_iter().zip(handed))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = spawn(command).unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            said,
            _namespace: namespace,
        }
    }

    /// It is ready, or has said why it is not.
    fn heard(mut self) -> Self {
        let mut first = self.line();
        while first.starts_with("warning: ") || first.contains(": initial windows of ") {
            first = self.line();
        }
        assert!(first == "ready" || first.starts_with("ended"), "{first}");
        if first != "ready" {
            eprintln!("{first}");
        }
        self
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

fn handed(ground: &Ground, state: &Path, namespace: String) -> [String; 4] {
    [
        state.display().to_string(),
        ground.group.path.display().to_string(),
        prefix(),
        namespace,
    ]
}

/// What `revert` says that it has taken back.
fn reverted(ground: &Ground, state: &Path) -> Vec<String> {
    let mut reverted = Reverted::default();
    let scope = Scope::Some(vec![ground.near()]);
    daemon::revert(state, &prefix(), scope, &mut reverted).unwrap();
    reverted.lines
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub const POLICY: &str = r#"
[[path]]
name = "lab"
to = ["198.18.0.0/15"]
stack = "aimd(increase=4,decrease=0.125)"
"#;

fn available() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap()
}

#[test]
fn a_daemon_answers_and_a_killed_one_leaves_nothing_that_revert_cannot_mend() {
    let road = Road {
        mbit: 20,
        rtt_ms: 40,
        buffer: 200,
        lost: vec![60],
    };
    let Some(mut ground) = Ground::new(&[road]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let state = ground.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("policy.toml"), POLICY).unwrap();
    ground.flow_outside(0);
    let mut daemon = Running::begin(&ground, &state);
    let line = daemon.line();
    let adopted = ": rule lab (aimd(increase=4,decrease=0.125)), was reno";
    assert!(line.ends_with(adopted), "{line}");
    let socket = state.join(SOCKET);
    let say = |request: Value| ask(&socket, &request);
    let flows = || say(json!({ "verb": "flows" })).unwrap()["flows"].clone();
    assert_eq!(flows()[0]["path"], "lab");
    assert_eq!(flows()[0]["before"], "reno");
    let set = say(json!({ "verb": "set", "path": "lab", "set": { "a": "6" } })).unwrap();
    assert_eq!(set["stack"], "aimd(increase=6,decrease=0.125)");
    let wrong = say(json!({ "verb": "set", "path": "lap", "set": { "a": "6" } }));
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "no path `lap`; there are: lab"
    );
    // A policy with a mistake changes nothing.
    fs::write(state.join("policy.toml"), POLICY.replace("to =", "too =")).unwrap();
    assert!(say(json!({ "verb": "apply" })).is_err());
    assert_eq!(flows()[0]["path"], "lab");
    fs::write(state.join("policy.toml"), POLICY).unwrap();
    // One flow is named in full: a part of its ends is nobody.
    let label = flows()[0]["flow"].as_str().unwrap().to_owned();
    let some = say(json!({ "verb": "release", "flow": &label[..label.len() - 1] }));
    assert!(some.unwrap_err().to_string().starts_with("no flow `"));
    assert_eq!(eye.algorithms(), [format!("{}aimd", prefix())]);
    let cookie = flows()[0]["cookie"].to_string();
    for whole in [label, cookie] {
        let released = say(json!({ "verb": "release", "flow": whole })).unwrap();
        assert_eq!(released["released"], 1);
        assert_eq!(eye.algorithms(), ["reno"]);
        say(json!({ "verb": "adopt" })).unwrap();
    }
    assert_eq!(eye.algorithms(), [format!("{}aimd", prefix())]);
    // A second one is refused.
    let mut second = Running::begin(&ground, &state);
    assert!(
        second.child.wait().unwrap().success(),
        "it says why and ends"
    );
    // Killed: no name is left, the flow runs on, and `revert` gives it back.
    assert!(available().contains(&prefix()));
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    let begin = Instant::now();
    while available().contains(&prefix()) {
        assert!(
            begin.elapsed() < Duration::from_secs(5),
            "names outlive their daemon"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(eye.algorithms(), [format!("{}aimd", prefix())]);
    let lines = reverted(&ground, &state);
    assert!(
        lines.len() == 1 && lines[0].ends_with(": reno again"),
        "{lines:?}"
    );
    assert_eq!(eye.algorithms(), ["reno"]);
    assert!(eye.gets_on(), "the flow stalls");
    // The next one finds the socket of the dead, and a new flow gets its rule at once.
    let mut daemon = Running::begin(&ground, &state);
    assert_eq!(eye.algorithms(), [format!("{}aimd", prefix())]);
    drop(daemon.child.stdin.take());
    assert!(daemon.child.wait().unwrap().success());
    assert_eq!(eye.algorithms(), ["reno"], "a daemon that stops gives back");
    assert!(!available().contains(&prefix()) && !socket.exists());
}

/// The folder of the daemon is gone, or another was named.
#[test]
fn revert_needs_no_folder_and_leaves_the_flows_of_a_daemon_that_runs() {
    let Some(mut ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let (state, other) = (
        ground.folder.path().join("state"),
        ground.folder.path().join("other"),
    );
    fs::create_dir(&state).unwrap();
    fs::write(state.join("policy.toml"), POLICY).unwrap();
    ground.flow_outside(0);
    let mut daemon = Running::begin(&ground, &state);
    let ours = format!("{}aimd", prefix());
    until(&mut eye, Duration::from_secs(5), &[&ours]);
    let scope = Scope::Some(vec![ground.near()]);
    let refused = daemon::revert(&other, &prefix(), scope, &mut Reverted::default());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.starts_with("another tuner runs"), "{refused}");
    assert_eq!(eye.algorithms(), [ours.as_str()]);
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    fs::remove_dir_all(&state).unwrap();
    fs::remove_dir_all(&other).unwrap();
    let lines = reverted(&ground, &state);
    assert!(
        lines.len() == 1 && lines[0].contains(": reno again, the default"),
        "{lines:?}"
    );
    assert_eq!(eye.algorithms(), ["reno"]);
    // Nothing is left, and for that no folder is made.
    fs::remove_dir_all(&state).unwrap();
    assert_eq!(reverted(&ground, &state), [""; 0]);
    assert!(!state.exists());
}

/// What a policy would change is told before it is applied, beside a daemon and without one, and
/// comes true.
#[test]
fn a_plan_says_what_another_policy_would_change() {
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let (state, [cubic, aimd]) = mixed(&ground, "standard");
    let file = state.join("policy.toml");
    let (texts, paths) = (fs::read_to_string(&file).unwrap(), ["theirs", "ours"]);
    let other = texts
        .replace("increase=4", "increase=6")
        .replace("name = \"theirs\"", "name = \"mine\"")
        .replace("kernel = \"cubic\"", "stack = \"scalable\"");
    ground.flow_outside(0);
    ground.flow_outside(1);
    until(&mut eye, Duration::from_secs(5), &["reno"; 2]);
    let changes = |plan: &Value| {
        let flows = plan["plan"].as_array().unwrap().iter();
        let mut flows: Vec<(String, bool)> = flows
            .map(|f| (f["why"].as_str().unwrap().to_owned(), f["changes"] == true))
            .filter(|(why, _)| why != "no rule")
            .collect();
        flows.sort();
        flows
    };
    let read = |text: &str| {
        let source = fullpipe_policy::Source {
            name: "other.toml".to_owned(),
            text: text.to_owned(),
        };
        fullpipe_policy::Policy::parse(&[source]).unwrap().compiled
    };
    // Nobody runs: both flows would get theirs, and have got nothing afterwards.
    let scope = Scope::Some(vec![ground.near()]);
    let plan = fullpipe_tune::plan::without_daemon(read(&texts), &state, &prefix(), scope).unwrap();
    assert!(
        plan["paths"]
            .as_array()
            .unwrap()
            .iter()
            .all(|p| p["what"] == "new")
    );
    let told = changes(&plan);
    assert_eq!(told.len(), 2, "{plan}");
    assert!(
        told.iter()
            .all(|(why, changes)| why.ends_with("was reno") && *changes),
        "{told:?}"
    );
    assert_eq!(eye.algorithms(), ["reno"; 2]);
    let _daemon = Running::begin(&ground, &state);
    until(&mut eye, Duration::from_secs(5), &[&cubic, &aimd]);
    let socket = state.join(SOCKET);
    let ask = |request: &Value| ask(&socket, request).unwrap();
    let now = ask(&json!({ "verb": "plan" }));
    assert_eq!(
        changes(&now),
        [
            ("as its rule says".to_owned(), false),
            ("as its rule says".to_owned(), false)
        ]
    );
    let with = |text: &str| {
        let sources = [json!({ "name": "other.toml", "text": text })];
        ask(&json!({ "verb": "plan", "policy": sources }))
    };
    assert_eq!(
        changes(&with(&texts)),
        changes(&now),
        "the same policy changes nothing"
    );
    let plan = with(&other);
    let what = |name: &str| {
        let paths = plan["paths"].as_array().unwrap();
        paths.iter().find(|p| p["path"] == name).unwrap()["what"].clone()
    };
    assert_eq!(
        [what("mine"), what(paths[0]), what(paths[1])],
        ["new", "gone", "other"]
    );
    let told = changes(&plan);
    let [moved, stays] = &told[..] else {
        panic!("{plan}")
    };
    assert!(moved.1 && stays.1, "{told:?}");
    assert!(
        stays.0.starts_with("rule ours: aimd(increase=6"),
        "{told:?}"
    );
    assert_eq!(moved.0, "rule mine (scalable), was cubic");
    // It was a look: everything is as it was, and what it said happens when it is applied.
    until(&mut eye, Duration::ZERO, &[&cubic, &aimd]);
    assert_eq!(changes(&ask(&json!({ "verb": "plan" }))), changes(&now));
    fs::write(&file, &other).unwrap();
    ask(&json!({ "verb": "apply" }));
    let scalable = format!("{}scalable", prefix());
    until(&mut eye, Duration::from_secs(5), &[&scalable, &aimd]);
    assert_eq!(changes(&with(&other)), changes(&now));
}

/// One question to a daemon, in a process of somebody else.
#[test]
#[ignore = "the process of the other tests, which start it"]
fn question() {
    let [Ok(socket), Ok(request)] = ["ASK_SOCKET", "ASK_REQUEST"].map(std::env::var) else {
        return;
    };
    let request: Value = serde_json::from_str(&request).unwrap();
    let answer = ask(socket.as_ref(), &request);
    println!(
        "answer|{}",
        answer.map_or_else(|e| e.to_string(), |v| v.to_string())
    );
}

/// `off` and `on` through the socket, and who may say them: others may look, at nothing that costs
/// what they like.
#[test]
fn others_may_look_and_change_nothing() {
    let Some(mut ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let state = ground.folder.path().join("state");
    for folder in [ground.folder.path(), &state] {
        let _ = fs::create_dir(folder);
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(state.join("policy.toml"), POLICY).unwrap();
    ground.flow_outside(0);
    let _daemon = Running::begin(&ground, &state);
    let aimd = format!("{}aimd", prefix());
    until(&mut eye, Duration::from_secs(5), &[&aimd]);
    let socket = state.join(SOCKET);
    let by_nobody = |request: Value| {
        let mut process = Command::new("setpriv");
        process.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        process.arg(std::env::current_exe().unwrap());
        process.args(["--ignored", "--exact", "--nocapture", "daemon::question"]);
        process.env("ASK_SOCKET", &socket);
        process.env("ASK_REQUEST", request.to_string());
        let said = process.output().ok()?.stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        let answer = said.lines().find_map(|line| line.split_once("answer|"));
        answer.map(|(_, answer)| answer.to_owned())
    };
    let is_off = || ask(&socket, &json!({ "verb": "status" })).unwrap()["off"] == true;
    let Some(flows) = by_nobody(json!({ "verb": "flows" })) else {
        eprintln!("skipped: setpriv(1), or nobody cannot run this program");
        return;
    };
    assert!(flows.contains("\"path\":\"lab\""), "{flows}");
    for verb in ["status", "plan", "compare"] {
        let answer = by_nobody(json!({ "verb": verb })).unwrap();
        assert!(answer.starts_with('{'), "{verb}: {answer}");
    }
    let other = json!([{ "name": "mine.toml", "text": POLICY }]);
    for request in [
        json!({ "verb": "plan", "policy": other }),
        json!({ "verb": "off" }),
        json!({ "verb": "on" }),
        json!({ "verb": "apply" }),
        json!({ "verb": "adopt" }),
        json!({ "verb": "release" }),
        json!({ "verb": "probe" }),
        json!({ "verb": "set", "path": "lab", "set": { "a": "6" } }),
    ] {
        let answer = by_nobody(request.clone()).unwrap();
        let only = "only root and the tuner's own user may ";
        assert!(answer.starts_with(only), "{request}: {answer}");
    }
    // What is longer than others may say has no answer.
    let long = by_nobody(json!({ "verb": "x".repeat(5000) })).unwrap();
    assert!(!long.contains("no verb"), "{long}");
    assert!(!is_off() && eye.algorithms() == [aimd.clone()]);
    // Root may: flows keep their algorithm's name, and run the standard.
    let counted =
        || ask(&socket, &json!({ "verb": "status" })).unwrap()["counters"]["standard"].clone();
    let before = counted();
    ask(&socket, &json!({ "verb": "off" })).unwrap();
    assert!(is_off());
    let begin = Instant::now();
    while counted() == before {
        assert!(
            begin.elapsed() < Duration::from_secs(2),
            "no ACK is answered by the standard"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    ask(&socket, &json!({ "verb": "on" })).unwrap();
    assert!(!is_off() && eye.algorithms() == [aimd]);
}

/// Until flows run these, at most for a time.
pub fn until(eye: &mut Eye, most: Duration, algorithms: &[&str]) {
    let begin = Instant::now();
    loop {
        let mut flows = eye.flows();
        flows.sort_by_key(|l| l.remote);
        let now: Vec<&str> = flows.iter().map(|l| l.algorithm.as_str()).collect();
        if now == algorithms {
            return;
        }
        assert!(begin.elapsed() < most, "{now:?}, not {algorithms:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn road() -> Road {
    Road {
        mbit: 20,
        rtt_ms: 40,
        buffer: 200,
        lost: vec![],
    }
}

/// Road 0 gets an algorithm of the kernel's own, road 1 one of ours, whatever its program chose.
fn mixed(ground: &Ground, on_loss: &str) -> (PathBuf, [String; 2]) {
    let state = ground.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    let to = [0, 1].map(|k| addresses(Side::Far, k).0.to_string());
    let policy = format!(
        r#"
        [defaults]
        on_daemon_loss = "{on_loss}"

        [[path]]
        name = "theirs"
        to = "{}"
        kernel = "cubic"

        [[path]]
        name = "ours"
        to = "{}"
        respect_app = false
        stack = "aimd(increase=4,decrease=0.125)"
        "#,
        to[0], to[1]
    );
    fs::write(state.join("policy.toml"), policy).unwrap();
    (state, ["cubic".to_owned(), format!("{}aimd", prefix())])
}

fn signal(child: &Child, signal: nix::sys::signal::Signal) {
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, signal).unwrap();
}

#[test]
fn without_the_daemon_flows_on_algorithms_of_the_kernel_have_back_what_they_had() {
    use nix::sys::signal::Signal;
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let (state, [cubic, aimd]) = mixed(&ground, "standard");
    let mut daemon = Running::begin(&ground, &state);
    ground.flow(0);
    ground.flow_outside(1);
    let both = [cubic.as_str(), aimd.as_str()];
    until(&mut eye, Duration::from_secs(20), &both);
    // It hangs: the flow that runs a program of ours turns standard by itself, the other not.
    signal(&daemon.child, Signal::SIGSTOP);
    until(&mut eye, Duration::from_secs(20), &["reno", &aimd]);
    // It goes on, and so do the flows.
    std::thread::sleep(Duration::from_secs(2));
    signal(&daemon.child, Signal::SIGCONT);
    until(&mut eye, Duration::from_secs(20), &both);
    // It is killed.
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    until(&mut eye, Duration::from_secs(20), &["reno", &aimd]);
    let lines = reverted(&ground, &state);
    assert_eq!(lines.len(), 1, "{lines:?}");
    until(&mut eye, Duration::ZERO, &["reno", "reno"]);
    assert!(eye.gets_on(), "a flow stalls");
}

/// What cannot be listed cannot be given back.
#[test]
fn a_daemon_of_its_own_namespace_leaves_new_flows_of_others_alone() {
    let Some(ground) = Ground::new(&[road()]) else {
        return;
    };
    let state = ground.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("policy.toml"), POLICY).unwrap();
    let mut by = Command::new("env");
    by.arg("--");
    let mut daemon = Running::inside(&ground, &state, by);
    // Both ends are in the control group.
    let (near, far) = ground.pair(Side::Near, addresses(Side::Far, 0).0);
    let runs = |socket: &TcpStream| {
        let option = nix::sys::socket::sockopt::TcpCongestion;
        let name = nix::sys::socket::getsockopt(socket, option).unwrap();
        let name = name.to_string_lossy().into_owned();
        name.trim_end_matches('\0').to_owned()
    };
    let before = runs(&far);
    assert!(!before.starts_with(&prefix()), "{before}");
    assert_eq!(runs(&near), format!("{}aimd", prefix()));
    drop(daemon.child.stdin.take());
    assert!(daemon.child.wait().unwrap().success());
    assert_eq!([runs(&near), runs(&far)], ["reno", &before]);
}

/// The guard waits for a lock that the daemon holds, unless it hears that nothing is left to do;
/// and what has ended is nobody's to give back.
#[test]
fn a_daemon_that_stops_leaves_no_guard_no_lock_and_no_flow_to_give_back() {
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let (state, [cubic, aimd]) = mixed(&ground, "standard");
    ground.flow(0);
    let mut daemon = Running::begin(&ground, &state);
    let (near, far) = ground.pair(Side::Near, addresses(Side::Far, 1).0);
    until(&mut eye, Duration::from_secs(5), &[&cubic, &aimd]);
    drop((near, far));
    until(&mut eye, Duration::from_secs(5), &[&cubic]);
    let begin = Instant::now();
    drop(daemon.child.stdin.take());
    assert!(daemon.child.wait().unwrap().success());
    // It waits 20 s for the lock.
    let took = begin.elapsed();
    assert!(
        took < Duration::from_secs(10),
        "its guard kept it for {took:?}"
    );
    until(&mut eye, Duration::ZERO, &["reno"]);
    let journal = Journal::look(&state.join(JOURNAL)).unwrap();
    assert_eq!(journal.entries().count(), 0);
    // The next one begins at once, and what it was given back is not its program's choice.
    let _next = Running::begin(&ground, &state);
    until(&mut eye, Duration::from_secs(5), &[&cubic]);
}

/// A disk that is full keeps new flows from their rule and nothing from being taken back.
#[test]
fn a_full_disk_costs_rules_and_leaves_nothing() {
    let Some(ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let state = ground.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    let policy = "[[path]]\nname = \"lab\"\nto = \"198.18.0.0/15\"\nstack = \"reno\"\nrtt = \"40ms\"\n\
                  initial_window = { segments = 24, spread = \"4ms\" }\n";
    fs::write(state.with_extension("toml"), policy).unwrap();
    // In a mount namespace of the daemon's own.
    let full = "mount -t tmpfs -o size=16k,mode=755 tmpfs \"$TUNE_STATE\" && \
                cp \"$TUNE_STATE.toml\" \"$TUNE_STATE/policy.toml\" && exec \"$@\"";
    let mut by = Command::new("unshare");
    by.args(["--mount", "sh", "-c", full, "sh"]);
    let mut daemon = Running::inside(&ground, &state, by);
    let to = addresses(Side::Far, 0).0;
    let mut pairs = Vec::new();
    let mut said = Vec::new();
    let says = "no other flow is given a rule until it can be written";
    for _ in 0..200 {
        pairs.push(ground.pair(Side::Near, to));
        // The first: its rule. Those beyond: why not.
        said.push(daemon.line());
        if said.last().is_some_and(|line| line.ends_with(says)) {
            break;
        }
    }
    let last = said.last().unwrap();
    assert!(last.ends_with(says), "{last}");
    let ours = format!("{}aimd", prefix());
    assert!(
        eye.algorithms().contains(&ours),
        "what is written down keeps its rule"
    );
    drop(daemon.child.stdin.take());
    assert!(daemon.child.wait().unwrap().success());
    let mut rest = Vec::new();
    loop {
        match daemon.line() {
            line if line.is_empty() => break,
            line => rest.push(line),
        }
    }
    assert_eq!(
        rest.last().unwrap(),
        "stopped: every flow has back what it had",
        "{rest:?}"
    );
    assert!(
        rest.iter()
            .any(|line| line.ends_with(": its queue is as before")),
        "{rest:?}"
    );
    assert!(eye.algorithms().iter().all(|name| name == "reno"));
    drop(pairs);
}

/// A terminal that was stopped, or a pipe whose reader hangs.
#[test]
fn a_log_that_nobody_reads_keeps_nobody_waiting() {
    let Some(ground) = Ground::new(&[road()]) else {
        return;
    };
    let state = ground.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("policy.toml"), POLICY).unwrap();
    let (_reader, writer) = io::pipe().unwrap();
    let mut full = fs::File::from(OwnedFd::from(writer.try_clone().unwrap()));
    let waits = |it: bool| {
        let flags = if it {
            OFlag::empty()
        } else {
            OFlag::O_NONBLOCK
        };
        fcntl(&writer, FcntlArg::F_SETFL(flags)).unwrap();
    };
    waits(false);
    while full.write(b"\n").is_ok() {}
    waits(true);
    let near = ground.near();
    let namespace = format!("/proc/{}/fd/{}", std::process::id(), near.as_raw_fd());
    let handed = handed(&ground, &state, namespace);
    let mut child = again("daemon::daemon_process")
        .envs(HANDED.into_iter().zip(handed))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(full)
        .spawn()
        .unwrap();
    let (begin, socket) = (Instant::now(), state.join(SOCKET));
    while ask(&socket, &json!({ "verb": "status" })).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it says nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(!available().contains(&prefix()));
}

/// New flows, which the kernel side gives their rules by itself, are in the journal as well.
#[test]
fn revert_gives_new_flows_back_what_their_programs_had_chosen() {
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let (state, [cubic, aimd]) = mixed(&ground, "keep");
    let mut daemon = Running::begin(&ground, &state);
    ground.flow(0);
    ground.prepared(1, true, |socket| choose(socket, "bbr"));
    until(&mut eye, Duration::from_secs(2), &[&cubic, &aimd]);
    for _ in 0..2 {
        let line = daemon.line();
        assert!(line.contains(": new, rule "), "{line}");
    }
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    until(&mut eye, Duration::ZERO, &[&cubic, &aimd]);
    let lines = reverted(&ground, &state);
    assert_eq!(lines.len(), 2, "{lines:?}");
    until(&mut eye, Duration::ZERO, &["reno", "bbr"]);
}

/// What a host has that a tuner could have changed: settings, routes, queues; and of each flow its
/// algorithm, its ceiling of pacing and whether the kernel tunes its buffers.
fn belongings(ground: &Ground, eye: &mut Eye) -> Vec<String> {
    let mut all = ground.on_near(|| {
        let mut found = Vec::new();
        for folder in ["net/ipv4", "net/core", "net/ipv6"] {
            for entry in fs::read_dir(Path::new("/proc/sys").join(folder))? {
                let path = entry?.path();
                // Some are for writing, and names come and go with other programs' algorithms.
                let names = path.ends_with("tcp_available_congestion_control");
                if let (false, Ok(text)) = (names || path.is_dir(), fs::read_to_string(&path)) {
                    found.push(format!("{}: {text}", path.display()));
                }
            }
        }
        for table in ["route", "ipv6_route"] {
            let lines = fs::read_to_string(Path::new("/proc/thread-self/net").join(table))?;
            // Uses of a route are counted behind its metric.
            let fixed = |l: &str| l.split_whitespace().take(6).collect::<Vec<_>>().join(" ");
            found.extend(lines.lines().map(fixed));
        }
        found.push(fs::read_to_string("/proc/thread-self/net/psched")?);
        for shown in [&["qdisc", "show"][..], &["filter", "show", "dev", DEVICE]] {
            let told = Command::new("tc").args(shown).output();
            found.push(told.map_or_else(
                |e| format!("queues are not compared: {e}"),
                |q| format!("tc: {}", String::from_utf8_lossy(&q.stdout)),
            ));
        }
        Ok(found)
    });
    all.extend(eye.flows().into_iter().map(|l| {
        let (algorithm, pacing) = (&l.algorithm, l.max_pacing);
        let (locks, status) = (l.locks, l.pacing_status);
        format!("{:?}: {algorithm} {pacing} {locks:?} {status}", l.remote)
    }));
    all.sort();
    all
}

#[test]
fn kills_at_any_moment_leave_nothing() {
    let Some(mut ground) = Ground::new(&[road(), road(), road()]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let state = ground.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    let to = [0, 1].map(|k| addresses(Side::Far, k).0.to_string());
    let policy = format!(
        r#"
        [[path]]
        name = "ours"
        to = "{}"
        stack = "highspeed"
        pacing = "4Mbit/s"
        buffers = "300kB"
        rtt = "40ms"
        initial_window = {{ segments = 24, spread = "4ms" }}

        [[path]]
        name = "theirs"
        to = "{}"
        kernel = "cubic"
        send_buffer = "200kB"
        "#,
        to[0], to[1]
    );
    fs::write(state.join("policy.toml"), policy).unwrap();
    ground.flow_outside(0);
    ground.prepared(0, false, |socket| pace(socket, 1_000_000));
    ground.flow_outside(1);
    ground.prepared(1, false, |socket| send_buffer(socket, 400_000));
    ground.flow(2);
    assert!(eye.gets_on(), "a flow stalls");
    let before = belongings(&ground, &mut eye);
    let queues = |all: &[String]| {
        let of_queues = all.iter().filter(|line| line.starts_with("tc: "));
        of_queues.cloned().collect::<Vec<String>>()
    };
    let (mut reached, mut queued) = (0, 0);
    let mut moment = 0x2545_f491_4f6c_dd1d_u64;
    for kill in 0..40 {
        if kill >= 10 && reached >= 3 && (queued >= 1 || queues(&before).is_empty()) {
            break;
        }
        // xorshift64: while it loads, before and after it has given flows their rules; later after
        // ten kills, on a machine that is too busy to have loaded it by then.
        moment ^= moment << 13;
        moment ^= moment >> 7;
        moment ^= moment << 17;
        let after = Duration::from_millis(moment % (1500 * (1 + kill / 10)));
        let mut daemon = Running::begun(&ground, &state);
        std::thread::sleep(after);
        daemon.child.kill().unwrap();
        daemon.child.wait().unwrap();
        let then = belongings(&ground, &mut eye);
        let changed = then != before;
        reached += u32::from(changed);
        queued += u32::from(queues(&then) != queues(&before));
        println!("kill {kill} after {after:?}: flows had been changed: {changed}");
        assert!(eye.gets_on(), "a flow stalls after kill {kill}");
        let begin = Instant::now();
        while available().contains(&prefix()) {
            assert!(begin.elapsed() < Duration::from_secs(20), "names stay");
            std::thread::sleep(Duration::from_millis(10));
        }
        reverted(&ground, &state);
        let now = belongings(&ground, &mut eye);
        let new: Vec<&String> = now.iter().filter(|line| !before.contains(line)).collect();
        assert_eq!(new, Vec::<&String>::new(), "after kill {kill}");
        assert_eq!(now.len(), before.len(), "something has gone: {now:?}");
        assert!(eye.gets_on(), "a flow stalls after kill {kill} and revert");
    }
    // A kill that came before anything was changed proves little.
    assert!(reached >= 3, "{reached} kills found changed flows");
    let compared = !queues(&before).is_empty();
    assert!(queued >= 1 || !compared, "no kill found another queue");
    // No program of theirs is left on the control group.
    ground.flow(0);
    assert!(eye.algorithms().iter().all(|name| name == "reno"));
}

#[test]
fn slow_clients_hold_up_themselves_alone() {
    use std::os::unix::net::UnixStream;
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let (state, [_, aimd]) = mixed(&ground, "standard");
    let _daemon = Running::begin(&ground, &state);
    ground.flow(1);
    until(&mut eye, Duration::from_secs(2), &[&aimd]);
    let socket = state.join(SOCKET);
    // Each sends the beginning of a request and a byte now and then; more than it serves at a time.
    let mut slow: Vec<UnixStream> = (0..100)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    let begin = Instant::now();
    let mut slowest = Duration::ZERO;
    while begin.elapsed() < Duration::from_secs(5) {
        for client in &mut slow {
            // Some have been shown out.
            let _ = client.write_all(b" ");
        }
        let asked = Instant::now();
        let status = ask(&socket, &json!({ "verb": "status" })).unwrap();
        slowest = slowest.max(asked.elapsed());
        assert_eq!(
            status["counters"]["standard"], 0,
            "flows went without their rule"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(
        slowest < Duration::from_secs(2),
        "an answer took {slowest:?}"
    );
}
