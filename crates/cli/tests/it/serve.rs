//! `fullpipe serve` as a program.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fullpipe_net::endpoint::Hooks;
use fullpipe_net::ground;
use fullpipe_net::session::client::{Client, Peer, run_with_peer};
use fullpipe_net::session::request::{Options, Request};
use fullpipe_net::session::{Identity, Key};
use fullpipe_run::RunSpec;
use fullpipe_units::Span;
use nix::fcntl::{FcntlArg, fcntl};

use crate::process::{command, fullpipe};
use crate::schema::holds;

/// A server, and the line that says where it listens.
fn started(mut command: Command) -> (Child, String, BufReader<std::process::ChildStderr>) {
    let mut server = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    (server, line, log)
}

fn address(line: &str) -> SocketAddr {
    let word = line.split_whitespace().nth(3).unwrap_or_default();
    let parsed = word.trim_end_matches(',').parse();
    parsed.unwrap_or_else(|_| panic!("no address in `{line}`"))
}

fn terminate(server: &mut Child) -> Option<i32> {
    let pid = server.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(killed.success());
    server.wait().unwrap().code()
}

fn run_against(server: SocketAddr, key: Key) {
    let spec = RunSpec {
        duration: Span::from_millis(100),
        ..RunSpec::default()
    };
    let (local, never) = (ground::Options::default(), AtomicBool::new(false));
    let peer = Peer::new(server, key);
    run_with_peer(
        &spec,
        &peer,
        Options::default(),
        &local,
        Hooks::default(),
        &never,
    )
    .unwrap();
}

#[test]
fn a_key_is_made_once_and_kept_to_oneself() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path();
    let made = fullpipe(here, &["serve", "--new-key", "key"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let file = here.join("key");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    let (key, server) = text.trim().split_once("\nserver ").unwrap();
    assert_eq!((key.len(), server.len()), (64, 64));
    assert!(!made.stderr.contains(key), "the key is not shown");
    assert!(made.stderr.contains(server), "{}", made.stderr);
    let again = fullpipe(here, &["serve", "--new-key", "key"]);
    assert_eq!(again.code, 3, "{}", again.stderr);
    let hint = "hint: a key is never overwritten: name another file";
    assert!(again.stderr.contains(hint), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    for mode in [0o644, 0o640] {
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let exposed = fullpipe(here, &["serve", "--key", "key", "--listen", "127.0.0.1:0"]);
        assert_eq!(exposed.code, 3, "{}", exposed.stderr);
        assert!(
            exposed.stderr.contains("chmod 600 key"),
            "{}",
            exposed.stderr
        );
    }
}

#[test]
fn nobody_is_served_by_accident() {
    let here = Path::new(".");
    for args in [
        &["serve"][..],
        &["serve", "--listen", "0.0.0.0:0"],
        &["serve", "--listen", "[::]:0"],
    ] {
        let refused = fullpipe(here, args);
        assert_eq!(refused.code, 2, "{args:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("--open") && refused.stderr.contains("--key"));
    }
    let open = ["serve", "--open", "--listen", "127.0.0.1:0"];
    let both = command(here, &open)
        .env("FULLPIPE_KEY", "k".repeat(40))
        .output()
        .unwrap();
    assert_eq!(both.status.code(), Some(2));
}

/// A terminal that was stopped, a pipe whose reader hangs: tests do not wait for it, nor does the
/// end.
#[test]
fn a_log_that_nobody_reads_holds_up_no_test() {
    let line = ["serve", "--listen", "127.0.0.1:0", "--log", "json"];
    let (mut server, first, log) = started(command(Path::new("."), &line));
    let page = fcntl(log.get_ref(), FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    assert_eq!(page, 4096);
    let listening: serde_json::Value = serde_json::from_str(&first).unwrap();
    let address = listening["address"].as_str().unwrap().parse().unwrap();
    for _ in 0..16 {
        run_against(address, Key::open());
    }
    assert_eq!(terminate(&mut server), Some(0));
    let written: usize = log.lines().map(|line| line.unwrap().len() + 1).sum();
    assert!(written < 2 * 4096, "it was all read: {written} bytes");
}

#[test]
fn a_server_works_for_an_unprivileged_user_and_stops_when_asked() {
    let text = "f".repeat(64);
    let mut serve = command(Path::new("/"), &["serve", "--listen", "127.0.0.1:0"]);
    if nix_is_root() {
        // As `nobody`, with no rights left.
        let program = serve.get_program().to_owned();
        serve = Command::new("setpriv");
        serve.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
        ]);
        serve
            .arg(program)
            .args(["serve", "--listen", "127.0.0.1:0"]);
        let able = serve.get_program().to_owned();
        if Command::new(able).arg("--version").output().is_err() {
            eprintln!("skipped: no setpriv here");
            return;
        }
    }
    serve.env("FULLPIPE_KEY", &text);
    let state = tempfile::tempdir().unwrap();
    let for_all = PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(state.path(), for_all).unwrap();
    serve.env("XDG_STATE_HOME", state.path());
    let (mut server, line, log) = started(serve);
    if line.contains("Permission denied") {
        eprintln!("skipped: the program lies where `nobody` cannot read: {line}");
        server.wait().unwrap();
        return;
    }
    let key = Key::from_text(&text, "test").unwrap();
    assert!(line.contains(&key.fingerprint()), "{line}");
    let kept = Identity::at(&state.path().join("fullpipe/identity")).unwrap();
    assert!(line.contains(&kept.public().to_string()), "{line}");
    run_against(address(&line), key);
    assert_eq!(terminate(&mut server), Some(0));
    let rest: Vec<String> = log.lines().map(Result::unwrap).collect();
    assert!(
        rest.iter().any(|l| l.contains("complete after")),
        "{rest:?}"
    );
    assert!(
        rest.last().unwrap().contains("stopped after 1 test"),
        "{rest:?}"
    );
}

#[test]
fn the_log_for_machines_has_an_object_per_line() {
    let args = ["serve", "--listen", "127.0.0.1:0", "--log", "json"];
    let (mut server, line, log) = started(command(Path::new("."), &args));
    let first: serde_json::Value = serde_json::from_str(&line).unwrap();
    holds("event", &first);
    assert_eq!(first["event"], "listening");
    let address = first["address"].as_str().unwrap().parse().unwrap();
    run_against(address, Key::open());
    assert_eq!(terminate(&mut server), Some(0));
    let events: Vec<String> = log
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(&l.unwrap()).unwrap())
        .inspect(|e| holds("event", e))
        .map(|e| e["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        events,
        ["opened", "granted", "finished", "stopping", "stopped"]
    );
}

fn nix_is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0
}

/// What nobody went on with is removed when serving starts; what is younger stays.
#[test]
fn abandoned_parts_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let state = format!(
        "fullpipe-part 1\nsize 1000\nchanged 1\nprefix 0\nblake3 {}\n",
        "00".repeat(32)
    );
    for (name, days) in [("old", 3), ("young", 1)] {
        for (ending, text) in [(".part", "x"), (".part.state", &state)] {
            let path = dir.path().join(format!("{name}{ending}"));
            std::fs::write(&path, text).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            let age = std::time::Duration::from_secs(days * 86_400);
            let written = std::time::SystemTime::now() - age;
            file.set_modified(written).unwrap();
        }
    }
    let args = ["serve", "--listen", "127.0.0.1:0", "--keep-parts", "2d"];
    let mut serve = command(Path::new("/"), &args);
    serve.arg("--files").arg(dir.path());
    let (mut server, _, mut log) = started(serve);
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    terminate(&mut server);
    assert!(line.contains("removed 1 abandoned"), "{line}");
    let entries = std::fs::read_dir(dir.path()).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["young.part", "young.part.state"]);
}

/// How often the threads of tests have gone to sleep.
fn sleeps(server: &Child) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
    let of = |task: std::fs::DirEntry| {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        match value("Name:").starts_with("test-") {
            true => value("voluntary_ctxt_switches:").parse().unwrap_or(0),
            false => 0,
        }
    };
    tasks.flatten().map(of).sum()
}

/// Between the run and the goodbye: while files get their names, or a client thinks.
#[test]
fn a_session_whose_run_is_over_sleeps() {
    let line = ["serve", "--listen", "127.0.0.1:0"];
    let (mut server, line, _log) = started(command(Path::new("/"), &line));
    let spec = RunSpec {
        duration: Span::from_millis(100),
        ..RunSpec::default()
    };
    let (local, never) = (ground::Options::default(), AtomicBool::new(false));
    let peer = Peer::new(address(&line), Key::open());
    let request = Request {
        spec: spec.clone(),
        options: Options::default(),
    };
    let mut client = Client::connect(&peer, &request, &local, &never).unwrap();
    let ran = client.run(&Arc::new(spec), &local, Hooks::default(), &never);
    ran.unwrap();
    let before = sleeps(&server);
    std::thread::sleep(Duration::from_secs(1));
    let slept = sleeps(&server) - before;
    client.close();
    assert_eq!(terminate(&mut server), Some(0));
    // Twenty times, if it has a processor.
    assert!(slept >= 5, "{slept} times");
}
