//! Watching runs in real time: dashboards and Prometheus.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::process::{SMALL, command, fullpipe, write};
use crate::server::Server;

/// A command that serves numbers to Prometheus, its stderr, and where.
fn exporting(dir: &Path, line: &[&str]) -> (Child, BufReader<ChildStderr>, String) {
    let mut command = command(dir, line);
    command.args(["--prometheus", "127.0.0.1:0"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let address = address(&mut said, "http://");
    (child, said, address)
}

/// What follows `mark` in the next line that has it, up to a slash, comma or blank.
fn address(said: &mut BufReader<ChildStderr>, mark: &str) -> String {
    let mut all = String::new();
    loop {
        let mut line = String::new();
        assert!(said.read_line(&mut line).unwrap() > 0, "{all}");
        if let Some((_, rest)) = line.split_once(mark) {
            return rest.split(['/', ',', ' ']).next().unwrap().to_owned();
        }
        all += &line;
    }
}

/// The value of the first sample that begins so.
fn sample(at: &str, begin: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let line = page.lines().find(|l| l.starts_with(begin))?;
    line.rsplit_once(' ').unwrap().1.parse().ok()
}

/// Waits until it is true; longest for some seconds.
fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_run_over_sockets_serves_its_flows_to_prometheus() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    let line = ["run", "small.toml", "--ground", "udp", "-q"];
    let (mut child, _said, at) = exporting(dir.path(), &line);
    let flow = |name: &str| {
        let labels = r#"{flow="main",stack="reno",direction="forward"}"#;
        sample(&at, &format!("fullpipe_flow_{name}{labels}")).unwrap_or(0.0)
    };
    // A second of it has come through, at 10 Mbit/s.
    eventually("bytes", || flow("delivered_bytes_total") > 1e6);
    assert_eq!(sample(&at, "fullpipe_runs_total"), Some(1.0));
    assert!(flow("window_segments") > 1.0);
    let rtt = flow("rtt_seconds");
    assert!((0.039..0.2).contains(&rtt), "{rtt}");
    child.wait().unwrap();
}

#[test]
fn a_server_and_its_client_serve_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let line = ["serve", "--listen", "127.0.0.1:0"];
    let (mut server, mut said, at) = exporting(dir.path(), &line);
    let to = address(&mut said, "listening on UDP ");
    assert_eq!(sample(&at, "fullpipe_tests_running"), Some(0.0));
    let send = [
        "send",
        &to,
        "--time",
        "3s",
        "--bitrate",
        "10Mbit/s",
        "--bidir",
        "-q",
    ];
    let (mut client, _its, its) = exporting(dir.path(), &send);
    eventually("a test", || {
        sample(&at, "fullpipe_tests_running") == Some(1.0)
    });
    for begin in ["fullpipe_received_bytes_total", "fullpipe_sent_bytes_total"] {
        eventually(begin, || sample(&at, begin) > Some(100_000.0));
    }
    let back = r#"fullpipe_flow_delivered_bytes_total{flow="back""#;
    eventually("from there", || sample(&its, back) > Some(100_000.0));
    client.wait().unwrap();
    eventually("its end", || {
        sample(&at, "fullpipe_tests_running") == Some(0.0)
    });
    assert_eq!(sample(&at, "fullpipe_tests_finished_total"), Some(1.0));
    // 3 s at 10 Mbit/s, with headers, and not forgotten.
    let received = sample(&at, "fullpipe_received_bytes_total").unwrap();
    assert!((2e6..6e6).contains(&received), "{received}");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    for (line, what) in [
        (
            &["run", "small.toml", "--dashboard"][..],
            "ground sim is not in real time",
        ),
        (
            &["run", "small.toml", "--prometheus", "127.0.0.1:0"],
            "ground sim is not in real time",
        ),
        (
            &["run", "small.toml", "--ground", "udp", "--dashboard"],
            "stderr is no terminal",
        ),
        (
            &["send", "127.0.0.1:9", "--dashboard"],
            "stderr is no terminal",
        ),
        (
            &["serve", "--listen", "127.0.0.1:0", "--dashboard"],
            "stderr is no terminal",
        ),
        (
            &["send", "127.0.0.1:9", "--prometheus", "0.0.0.0:9464"],
            "only this host may ask",
        ),
    ] {
        let ended = fullpipe(dir.path(), line);
        assert_eq!(ended.code, 2, "{line:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(what), "{line:?}: {}", ended.stderr);
    }
}

/// A terminal of tmux, on a socket of its own; gone with this value.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs the command in 100 x 30 characters; `None` without tmux.
    fn open(name: &str, command: &Command) -> Option<Self> {
        let terminal = Self {
            socket: format!("fullpipe-test-{name}-{}", std::process::id()),
        };
        let mut line = String::from("env -u NO_COLOR");
        for (key, value) in command.get_envs() {
            if let Some(value) = value {
                line += &format!(" '{}={}'", key.display(), value.display());
            }
        }
        line += &format!(" '{}'", command.get_program().display());
        for arg in command.get_args() {
            line += &format!(" '{}'", arg.display());
        }
        let dir = command.get_current_dir().unwrap();
        let size = ["-x", "100", "-y", "30", "-c"];
        let mut tmux = terminal.tmux();
        tmux.args(["-f", "/dev/null", "new-session", "-d"])
            .args(size);
        tmux.arg(dir).arg(format!("{line}; echo code $?; sleep 60"));
        match tmux.status() {
            Ok(status) if status.success() => Some(terminal),
            Ok(status) => panic!("tmux: {status}"),
            Err(_) => None,
        }
    }

    fn tmux(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.socket]);
        tmux
    }

    fn screen(&self) -> String {
        let Output { stdout, .. } = self.tmux().args(["capture-pane", "-p"]).output().unwrap();
        String::from_utf8(stdout).unwrap()
    }

    /// Waits for a screen with all of these.
    fn shows(&self, all: &[&str]) -> String {
        let begin = Instant::now();
        loop {
            let screen = self.screen();
            if all.iter().all(|text| screen.contains(text)) {
                return screen;
            }
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "{all:?}:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn press(&self, key: &str) {
        self.tmux().args(["send-keys", key]).status().unwrap();
    }

    /// The program in it.
    fn program(&self) -> u32 {
        let pane = ["display-message", "-p", "#{pane_pid}"];
        let Output { stdout, .. } = self.tmux().args(pane).output().unwrap();
        let shell = String::from_utf8(stdout).unwrap();
        let shell = shell.trim();
        let children = format!("/proc/{shell}/task/{shell}/children");
        let children = std::fs::read_to_string(children).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").status();
    }
}

#[test]
fn a_dashboard_gives_the_terminal_back_with_the_result_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let send = [
        "send",
        &server.address,
        "--time",
        "60s",
        "--bitrate",
        "10Mbit/s",
        "--dashboard",
    ];
    let Some(terminal) = Terminal::open("send", &command(dir.path(), &send)) else {
        return eprintln!("skipped: no tmux");
    };
    let title = format!("send with {}", server.address);
    terminal.shows(&[
        &title,
        "of 60.0 s",
        "goodput, Mbit/s",
        "window, segments",
        "smoothed RTT, ms",
        "retransmits",
        "q: stop",
    ]);
    terminal.press("q");
    let screen = terminal.shows(&["code 130", "PARTIAL", "interrupted"]);
    assert!(!screen.contains("window, segments"), "{screen}");
}

#[test]
fn a_server_s_dashboard_lists_the_tests_that_run() {
    let dir = tempfile::tempdir().unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--dashboard"];
    let Some(terminal) = Terminal::open("serve", &command(dir.path(), &serve)) else {
        return eprintln!("skipped: no tmux");
    };
    let screen = terminal.shows(&["serving tests on UDP 127.0.0.1:", "all tests, Mbit/s"]);
    let (_, at) = screen.split_once("on UDP ").unwrap();
    let to = at
        .split(|c: char| c != '.' && c != ':' && !c.is_ascii_digit())
        .next()
        .unwrap();
    let to = to.trim_end_matches(':').to_owned();
    let send = ["send", &to, "--time", "4s", "--bitrate", "10Mbit/s", "-q"];
    let mut client = command(dir.path(), &send)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    terminal.shows(&["1 running, 1 opened", "granted `main`", "received"]);
    client.wait().unwrap();
    terminal.shows(&["0 running, 1 opened", "complete"]);
    terminal.press("q");
    // The log that nobody saw is printed.
    terminal.shows(&["code 0", "listening on UDP"]);
}

/// Also what reads keys by itself, which would read a closed terminal for ever.
#[test]
fn what_draws_ends_with_its_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let lines: [(&[&str], &str); 2] = [
        (
            &["serve", "--listen", "127.0.0.1:0", "--dashboard"],
            "all tests, Mbit/s",
        ),
        (&["top", "--loopback"], "flows"),
    ];
    for (line, title) in lines {
        let name = format!("closed-{}", line[0]);
        let Some(terminal) = Terminal::open(&name, &command(dir.path(), line)) else {
            return eprintln!("skipped: no tmux");
        };
        terminal.shows(&[title]);
        let program = format!("/proc/{}", terminal.program());
        assert!(Path::new(&program).exists());
        drop(terminal);
        eventually(line[0], || !Path::new(&program).exists());
    }
}

/// Whoever looks at a table has its report, too, until the next one.
#[test]
fn the_last_result_at_a_terminal_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    let last = dir.path().join("cache/fullpipe/last");
    for (name, more) in [("last", &["--repeat", "2"][..]), ("next", &[])] {
        let line = [&["run", "small.toml", "--color", "never"], more].concat();
        let mut command = command(dir.path(), &line);
        command.env("XDG_CACHE_HOME", dir.path().join("cache"));
        let Some(terminal) = Terminal::open(name, &command) else {
            eprintln!("skipped: tmux is missing: apt-get install tmux");
            return;
        };
        terminal.shows(&["code 0", "kept until the next run without `--out DIR`"]);
        assert!(last.join("report.html").exists());
        let manifest = std::fs::read_to_string(last.join("manifest.json")).unwrap();
        assert_eq!(
            manifest.contains("\"seed\": 2"),
            !more.is_empty(),
            "{manifest}"
        );
    }
}
