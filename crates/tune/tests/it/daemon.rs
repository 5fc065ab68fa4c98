//! A daemon in a process of its own: what it answers, and what it leaves when it is killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_tune::control::ask;
use fullpipe_tune::daemon::{self, Config, SOCKET};
use fullpipe_tune::namespaces::Scope;
use serde_json::{Value, json};

use crate::support::{Ground, Road, prefix};

/// Names folder, control group, prefix and namespace of the process below.
const HANDED: [&str; 4] = ["TUNE_STATE", "TUNE_CGROUP", "TUNE_PREFIX", "TUNE_NAMESPACE"];

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
    let config = Config {
        policy: PathBuf::from(&state).join("policy.toml"),
        state: state.into(),
        cgroup: Some(cgroup.into()),
        scope: Scope::Some(vec![fs::File::open(namespace).unwrap().into()]),
        prefix,
    };
    let ended = daemon::run(config, &STOP, &mut |line| eprintln!("{line}"));
    if let Err(e) = ended {
        eprintln!("ended: {e}");
    }
}

struct Running {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Running {
    fn begin(ground: &Ground, state: &Path) -> Self {
        use std::os::fd::AsRawFd;
        let near = ground.near();
        let namespace = format!("/proc/{}/fd/{}", std::process::id(), near.as_raw_fd());
        let handed = [
            state.display().to_string(),
            ground.group.path.display().to_string(),
            prefix(),
            namespace,
        ];
        let mut child = Command::new("/proc/self/exe")
            .args([
                "--ignored",
                "--exact",
                "--nocapture",
                "daemon::daemon_process",
            ])
            .envs(HANDED.into_iter().zip(handed))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let mut running = Self { child, said };
        let mut first = running.line();
        while first.starts_with("warning: ") {
            first = running.line();
        }
        assert!(first == "ready" || first.starts_with("ended"), "{first}");
        if first != "ready" {
            eprintln!("{first}");
        }
        running
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const POLICY: &str = r#"
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
    assert_eq!(say(json!({ "verb": "release" })).unwrap()["released"], 1);
    assert_eq!(eye.algorithms(), ["reno"]);
    say(json!({ "verb": "adopt" })).unwrap();
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
    let scope = Scope::Some(vec![ground.near()]);
    let lines = daemon::revert(&state, &prefix(), scope).unwrap();
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
