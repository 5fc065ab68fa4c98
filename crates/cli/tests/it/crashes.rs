//! Copies whose ends are killed: at moments of chance, and at every system call that changes
//! anything on the disk. What has its final name is whole, and the next copy resumes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::pair::{Pair, bytes, unfinished};
use crate::process::{command, finished, fullpipe};
use crate::server::Server;

/// System calls that change what is on the disk.
const CHANGING: [&str; 13] = [
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "syncfs",
    "renameat",
    "renameat2",
    "linkat",
    "unlinkat",
    "fchmod",
    "fallocate",
    "ftruncate",
    "mkdirat",
];

/// A directory `d` of empty, small and larger files.
fn fill(dir: &Path, sizes: &[usize]) -> Vec<(PathBuf, Vec<u8>)> {
    fs::create_dir_all(dir.join("d/sub")).unwrap();
    let file = |(i, size): (usize, &usize)| {
        let name = match i % 2 {
            0 => PathBuf::from(format!("d/{i}")),
            _ => PathBuf::from(format!("d/sub/{i}")),
        };
        // No two begin alike.
        let mut data = bytes(*size);
        data.iter_mut().for_each(|byte| *byte ^= i as u8);
        fs::write(dir.join(&name), &data).unwrap();
        (name, data)
    };
    sizes.iter().enumerate().map(file).collect()
}

/// Whatever has a final name is whole, as it was or as it is to be.
fn check(at: &Path, files: &[(PathBuf, Vec<u8>)], old: Option<&[u8]>, when: &str) -> usize {
    let mut whole = 0;
    for (name, data) in files {
        match fs::read(at.join(name)) {
            Ok(found) if found == *data => whole += 1,
            Ok(found) if Some(found.as_slice()) == old => {}
            Ok(found) => panic!("{when}: {} has {} bytes", name.display(), found.len()),
            Err(_) => assert!(
                old.is_none() || *name != files[0].0,
                "{when}: what was to be replaced is gone"
            ),
        }
    }
    whole
}

fn nothing_left(at: &Path, when: &str) {
    for dir in ["", "d", "d/sub"].map(|dir| at.join(dir)) {
        assert_eq!(unfinished(&dir), [""; 0], "{when}");
    }
}

/// Kills 50 times: clients and servers in turn, in both directions.
///
/// `cargo test -p fullpipe --test it -- --ignored fifty_kills --nocapture`
#[test]
#[ignore = "takes a minute"]
fn fifty_kills_at_random_moments_lose_nothing() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let sizes: Vec<usize> = (0..40).map(|i| i * i * 1500 % 900_001).collect();
    for get in [false, true] {
        let limit = ["--max-rate", "40Mbit/s"];
        let mut pair = Pair::new(&limit);
        let (from, to) = match get {
            false => (pair.here.path().to_owned(), pair.there.path().to_owned()),
            true => (pair.there.path().to_owned(), pair.here.path().to_owned()),
        };
        let files = fill(&from, &sizes);
        let address = pair.server.address.clone();
        let there = pair.there.path().display().to_string();
        let remote = pair.at(if get { "d" } else { "" });
        let ends = if get { [&remote, "."] } else { ["d", &remote] };
        let (mut under_way, mut whole, mut copies) = (0, 0, 0);
        for round in 0..25 {
            let line = [&["send", "-q"][..], &ends].concat();
            let mut client = quiet(command(pair.here.path(), &line));
            std::thread::sleep(Duration::from_millis(20 + random() % 500));
            under_way += u32::from(client.try_wait().unwrap().is_none());
            if random() % 2 == 0 {
                client.kill().unwrap();
            } else {
                pair.server.kill();
                client.kill().unwrap();
                let again = [&["--files", &there][..], &limit].concat();
                pair.server = Server::start_at(pair.here.path(), &address, &again);
            }
            client.wait().unwrap();
            let now = check(&to, &files, None, &format!("kill {round}, get {get}"));
            assert!(now >= whole, "a file that had its name is gone");
            whole = now;
            if whole == files.len() && round < 24 {
                nothing_left(&to, "of a whole copy");
                fs::remove_dir_all(to.join("d")).unwrap();
                (whole, copies) = (0, copies + 1);
            }
        }
        let line = [&["send", "--format", "json"][..], &ends].concat();
        let ended = fullpipe(pair.here.path(), &line);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let result: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(check(&to, &files, None, "at the end"), files.len());
        nothing_left(&to, "at the end");
        println!(
            "get {get}: {under_way} of 25 kills struck a copy under way; {copies} became whole in \
             between, and of the {} bytes of the last one {} were there when it was left alone",
            result["bytes"], result["bytes_before"]
        );
        // A machine that is slow to start a program strikes less.
        assert!(under_way >= 10, "{under_way}");
    }
}

fn quiet(mut command: Command) -> Child {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn has_strace() -> bool {
    let mut strace = Command::new("strace");
    let ran = strace.args(["-o", "/dev/null", "true"]).output();
    let has = ran.is_ok_and(|ran| ran.status.success());
    if !has {
        println!("skipped: no strace that may trace");
    }
    has
}

/// The program under strace, which does `faults` to it.
fn faulty(dir: &Path, faults: &[String], line: &[&str]) -> Command {
    let program = command(dir, line);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
    strace.arg(format!("trace={}", CHANGING.join(",")));
    for fault in faults {
        strace.args(["-e", fault]);
    }
    strace.arg(program.get_program()).args(program.get_args());
    strace.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    strace.current_dir(dir);
    strace
}

/// Sizes of the three files of a copy.
const THREE: [usize; 3] = [70_000, 0, 10];

/// One copy of files of these sizes, with `overwrite` over an old one, of which the end that writes
/// meets `faults`; true if that ended it.
fn once(sizes: &[usize], get: bool, overwrite: bool, faults: &[String], when: &str) -> bool {
    let old = overwrite.then_some(&b"what was there"[..]);
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = match get {
        false => (here.path(), there.path()),
        true => (there.path(), here.path()),
    };
    let files = fill(from, sizes);
    if let Some(old) = old {
        fs::create_dir(to.join("d")).unwrap();
        fs::write(to.join("d/0"), old).unwrap();
    }
    let served = there.path().display().to_string();
    let args = ["--files", &served, "--overwrite"];
    let mut server = match get {
        true => Server::start(here.path(), &args),
        false => {
            let line = [&["serve", "--listen", "127.0.0.1:0"][..], &args].concat();
            Server::of(faulty(here.path(), faults, &line), "127.0.0.1:")
        }
    };
    if server.address.is_empty() {
        // It did not come to listen.
        return true;
    }
    let remote = format!("{}:{}", server.address, if get { "d" } else { "" });
    let ends = if get { [&remote, "."] } else { ["d", &remote] };
    let over = if overwrite { &["--overwrite"][..] } else { &[] };
    let line = [&["send", "-q"][..], over, &ends].concat();
    let mut client = match get {
        true => faulty(here.path(), faults, &line),
        false => command(here.path(), &line),
    };
    let mut client = client
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A client would wait ten seconds for a server that is dead.
    let ended = loop {
        if let Some(status) = client.try_wait().unwrap() {
            break Some(status.success());
        }
        if server.child.try_wait().unwrap().is_some() {
            client.kill().unwrap();
            client.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    check(to, &files, old, when);
    if ended == Some(true) {
        assert_eq!(check(to, &files, None, when), files.len());
        nothing_left(to, when);
        server.stop();
        return false;
    }
    server.stop();
    let mut server = Server::start(here.path(), &args);
    let remote = format!("{}:{}", server.address, if get { "d" } else { "" });
    let ends = if get { [&remote, "."] } else { ["d", &remote] };
    let line = [&["send"][..], over, &ends].concat();
    let again = finished(command(here.path(), &line).output().unwrap());
    assert_eq!(again.code, 0, "{when}: {}", again.stderr);
    assert_eq!(check(to, &files, None, when), files.len(), "{when}");
    nothing_left(to, when);
    server.kill();
    true
}

/// Kills before each system call that changes something on the disk, at the end that writes.
/// Calls are counted by thread and name, and the threads that begin, carry and publish have some in
/// common: each has its own sweep.
///
/// `cargo test -p fullpipe --test it -- --ignored every_system_call --nocapture`
#[test]
#[ignore = "takes some minutes"]
fn a_kill_at_every_system_call_leaves_whole_files() {
    if !has_strace() {
        return;
    }
    const BEGIN: &str = "mkdirat,renameat,fallocate,ftruncate";
    const CARRY: &str = "pwrite64,fdatasync";
    const PUBLISH: &str = "fsync,fchmod,renameat2,linkat,unlinkat";
    // Of the call that fails nothing else can be asked.
    const BY_LINK: &str = "fsync,fchmod,linkat,unlinkat";
    for get in [false, true] {
        for (what, overwrite, calls, least) in [
            ("begin", false, BEGIN, 5),
            ("carry", false, CARRY, 2),
            ("publish", false, PUBLISH, 12),
            ("replace", true, PUBLISH, 12),
            ("publish without RENAME_NOREPLACE", false, BY_LINK, 12),
        ] {
            let began = Instant::now();
            let struck = |call: &str, n: &usize| {
                let mut faults = vec![format!("inject={call}:signal=KILL:when={n}")];
                if calls == BY_LINK {
                    faults.push("inject=renameat2:error=EINVAL".to_owned());
                }
                let when = format!("get {get}, {what}: before {call} {n}");
                once(&THREE, get, overwrite, &faults, &when)
            };
            let of = |call: &str| (1..100).take_while(|n| struck(call, n)).count();
            let kills: usize = calls.split(',').map(of).sum();
            assert!(kills >= least, "{what}: {kills} kills");
            let took = began.elapsed().as_secs();
            println!("get {get}, {what}: killed at {kills} calls ({took} s)");
        }
    }
}

/// A full or broken disk at each of these calls: the copy fails or goes on, and nothing is lost.
#[test]
#[ignore = "takes some minutes"]
fn an_error_of_every_system_call_leaves_whole_files() {
    if !has_strace() {
        return;
    }
    for get in [false, true] {
        for error in ["ENOSPC", "EIO"] {
            let (mut failed, mut went_on) = (0, 0);
            // A server whose log cannot be written does not say where it listens.
            let calls = CHANGING.iter().filter(|call| get || **call != "write");
            for call in calls {
                for n in 1..=4 {
                    let faults = [format!("inject={call}:error={error}:when={n}")];
                    let when = format!("get {get}, {faults:?}");
                    match once(&THREE, get, n % 2 == 0, &faults, &when) {
                        true => failed += 1,
                        false => went_on += 1,
                    }
                }
            }
            assert!(failed > 0, "no error was met");
            println!("get {get}, {error}: {failed} copies failed, {went_on} went on");
        }
    }
}

/// Many files wait for the disk once and not each for itself; if that fails, or a kill comes before
/// it, none has a name.
#[test]
fn many_files_are_brought_to_the_disk_at_once() {
    if !has_strace() {
        return;
    }
    for get in [false, true] {
        for (fault, ends_it) in [
            ("syncfs:signal=KILL:when=1", true),
            ("syncfs:error=EIO:when=1", true),
            // Of the three directories, and no file.
            ("fsync:signal=KILL:when=4", false),
        ] {
            let when = format!("get {get}, {fault}");
            let faults = [format!("inject={fault}")];
            assert_eq!(
                once(&[10; 70], get, false, &faults, &when),
                ends_it,
                "{when}"
            );
        }
    }
}
