//! Copies that go wrong, in part or as a whole: what is said, what is left, how it ends.

use std::ffi::OsStr;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::pair::{Pair, bytes, unfinished};
use crate::process::{Finished, command, finished};
use crate::server::Server;

fn json(ended: &Finished) -> Value {
    serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|e| panic!("{e}: {} {}", ended.stdout, ended.stderr))
}

/// Whatever a directory holds that a copy lacks is named, with `--quiet` too, and the exit code
/// says so; links and hidden files are of no kind that is copied.
#[test]
fn what_a_copy_lacks_is_named_with_its_reason() {
    let pair = Pair::new(&[]);
    let fill = |d: &Path| {
        fs::create_dir(d).unwrap();
        let long = "l".repeat(201);
        for name in ["good", "x.part", "back\\slash", "\x1b[31mred", &long] {
            fs::write(d.join(name), "x").unwrap();
        }
        fs::write(d.join(OsStr::from_bytes(b"bad\xff")), "").unwrap();
        fs::write(d.join(".hidden"), "").unwrap();
        std::os::unix::fs::symlink("/etc", d.join("link")).unwrap();
    };
    fill(&pair.here.path().join("d"));
    fill(&pair.there.path().join("e"));
    let (there, from) = (pair.at(""), pair.at("e"));
    for line in [["d", &there], [&from, "back/"]] {
        let ended = pair.send(&[&line[..], &["-q", "--format", "json"]].concat());
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        for word in ["200", ".part", "backslash", "UTF-8", "control"] {
            assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
        }
        assert!(!ended.stderr.contains("hidden"), "{}", ended.stderr);
        assert!(!ended.stderr.contains('\x1b'), "{}", ended.stderr);
        assert!(!ended.stdout.contains('\x1b'), "{}", ended.stdout);
        let result = json(&ended);
        assert_eq!(
            (&result["sent"], &result["failed"], &result["left_out"]),
            (&1.into(), &5.into(), &2.into()),
            "{result}"
        );
        let said = "5 of 6 files were not copied";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        let warned = pair.send(&line);
        for word in ["link: left out: a symbolic link", ".hidden: left out"] {
            assert!(warned.stderr.contains(word), "{}", warned.stderr);
        }
    }
    assert!(pair.there.path().join("d/good").exists());
    assert!(pair.here.path().join("back/e/good").exists());
}

/// Neither end has more afterwards than before, and what was there stays.
#[test]
fn a_copy_that_does_not_fit_leaves_no_directory() {
    let pair = Pair::new(&["--max-partial", "1kB"]);
    let (here, there) = (pair.here.path(), pair.there.path());
    for name in ["a", "b"] {
        fs::write(here.join(name), bytes(900)).unwrap();
    }
    fs::create_dir(here.join("mine")).unwrap();
    fs::create_dir(there.join("mine")).unwrap();
    fs::create_dir_all(there.join("t/sub")).unwrap();
    // More than any disk has.
    let big = fs::File::create(there.join("t/sub/big")).unwrap();
    big.set_len(1 << 43).unwrap();
    let (deep, mine) = (pair.at("d/e/"), pair.at("mine/f/"));
    let (tree, none) = (pair.at("t"), pair.at("none"));
    for (line, why) in [
        (["a", "b", &deep], "--max-partial"),
        (["a", "b", &mine], "--max-partial"),
        (["-q", &tree, "three/four/"], "the disk is full"),
        (["-q", &tree, "mine/"], "the disk is full"),
        (["-q", &none, "three/"], "no such file"),
    ] {
        let refused = pair.send(&line);
        assert_eq!(refused.code, 3, "{line:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
    let names = |at: &Path| {
        let names = fs::read_dir(at).unwrap().map(|e| e.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    assert_eq!(names(here), ["a", "b", "mine"]);
    assert_eq!(names(there), ["mine", "t"]);
    for mine in [here.join("mine"), there.join("mine")] {
        assert!(names(&mine).is_empty(), "{mine:?}");
    }
}

/// What stands in its place may be anybody's.
#[test]
fn a_served_directory_that_was_replaced_is_told() {
    let pair = Pair::new(&[]);
    fs::write(pair.here.path().join("a"), "a").unwrap();
    fs::remove_dir(pair.there.path()).unwrap();
    for is_there in [false, true] {
        if is_there {
            fs::create_dir(pair.there.path()).unwrap();
            fs::write(pair.there.path().join("b"), "b").unwrap();
        }
        for line in [["a", &pair.at("")], [&pair.at("b"), "."]] {
            let refused = pair.send(&line);
            let said = "error: at the server: the directory that the server had opened was removed\n  \
                        hint: start `serve` anew: it opens the directory that has the name by then\n";
            assert_eq!((refused.code, refused.stderr.as_str()), (3, said));
        }
    }
    assert_eq!(fs::read_dir(pair.there.path()).unwrap().count(), 1);
}

/// Nothing of it is kept, and nobody says so.
#[test]
fn a_directory_that_is_removed_under_a_copy_is_told() {
    let pair = Pair::new(&[]);
    let (here, there) = (pair.here.path(), pair.there.path());
    for end in [here, there] {
        fs::write(end.join("big"), bytes(3_000_000)).unwrap();
    }
    let (from, to) = (pair.at("big"), pair.at("d/"));
    for (line, dir) in [
        ([&from, "d/"], here.join("d")),
        (["big", &to], there.join("d")),
    ] {
        let line = [&["send"], &line[..], &["--bitrate", "8Mbit/s"]].concat();
        let mut copy = command(here, &line);
        let copy = copy.stdout(Stdio::piped()).stderr(Stdio::piped());
        let copy = copy.spawn().unwrap();
        let begin = Instant::now();
        while fs::metadata(dir.join("big.part.state")).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(20));
        }
        fs::remove_dir_all(&dir).unwrap();
        let ended = finished(copy.wait_with_output().unwrap());
        let said = "big: its directory was removed\n";
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        assert!(ended.stderr.contains("is lost"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("kept"), "{}", ended.stderr);
        assert!(!dir.exists());
    }
}

/// One file cannot be replaced, for what is not ours stands where its unfinished one would: the
/// others of the session are, at either end.
#[test]
fn a_foreign_part_beside_a_file_costs_that_file_only() {
    let pair = Pair::new(&["--overwrite"]);
    let (here, there) = (pair.here.path(), pair.there.path());
    for d in [here.join("d"), there.join("e")] {
        fs::create_dir(&d).unwrap();
        for name in ["one", "two", "three"] {
            fs::write(d.join(name), format!("new {name}")).unwrap();
        }
    }
    for d in [there.join("d"), here.join("back/e")] {
        fs::create_dir_all(&d).unwrap();
        // As long as the new one, and another.
        fs::write(d.join("two"), "old two").unwrap();
        fs::write(d.join("two.part"), "not ours").unwrap();
    }
    let (up, down) = (pair.at(""), pair.at("e"));
    for (line, at) in [
        (["d", &up, "--overwrite"], there.join("d")),
        ([&down, "back/", "--overwrite"], here.join("back/e")),
    ] {
        let ended = pair.send(&line);
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        assert!(ended.stderr.contains("not ours"), "{}", ended.stderr);
        let said = "1 of 3 files was not copied";
        let plural = "1 of 3 files were not copied";
        assert!(
            ended.stderr.contains(said) || ended.stderr.contains(plural),
            "{}",
            ended.stderr
        );
        let read = |name: &str| fs::read_to_string(at.join(name)).unwrap();
        assert_eq!(["one", "three"].map(read), ["new one", "new three"]);
        assert_eq!(
            ["two", "two.part"].map(read),
            ["old two", "not ours"],
            "nothing of it is touched"
        );
    }
}

/// A file that changes on its way is named with its path, and nothing of it stays at the other end.
#[test]
fn a_source_that_changes_is_named_and_leaves_nothing() {
    let pair = Pair::new(&["--max-rate", "200Mbit/s"]);
    let size = 20_000_000;
    for get in [false, true] {
        for longer in [false, true] {
            let (source, dest, line) = match get {
                false => (
                    pair.here.path().join("a"),
                    pair.there.path(),
                    vec!["a".to_owned(), pair.at("b")],
                ),
                true => (
                    pair.there.path().join("c"),
                    pair.here.path(),
                    vec![pair.at("c"), "e".to_owned()],
                ),
            };
            fs::write(&source, bytes(size)).unwrap();
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            let mut client = command(pair.here.path(), &[&["send"][..], &line].concat());
            let client = client.stdout(Stdio::piped()).stderr(Stdio::piped());
            let client = client.spawn().unwrap();
            let began = Instant::now();
            while unfinished(dest).is_empty() && began.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let file = fs::File::options().write(true).open(&source).unwrap();
            file.set_len(if longer { size as u64 + 1 } else { 1000 })
                .unwrap();
            let ended = finished(client.wait_with_output().unwrap());
            assert_eq!(ended.code, 3, "{}", ended.stderr);
            let said = "changed while it was being sent";
            assert!(ended.stderr.contains(said), "{}", ended.stderr);
            assert_eq!(ended.stderr.contains("at the server"), get);
            assert!(ended.stderr.contains("hint: "), "{}", ended.stderr);
            assert_eq!(unfinished(dest), [""; 0], "{}", ended.stderr);
        }
    }
}

/// A copy that a limit cuts short tells of every file, those of sessions that were not begun too;
/// one with nothing to send tells of no rate.
#[test]
fn summaries_count_files_and_every_session() {
    let pair = Pair::new(&["--max-duration", "2s", "--max-rate", "20Mbit/s"]);
    let d = pair.here.path().join("d");
    fs::create_dir_all(d.join("sub")).unwrap();
    fs::write(d.join("a"), bytes(30_000_000)).unwrap();
    // Holes only; more bytes than one session takes.
    let large = fs::File::create(d.join("sub/large")).unwrap();
    large.set_len((4 << 30) - 1).unwrap();
    let line = ["d", &pair.at(""), "--time", "4s", "--format", "json"];
    let ended = pair.send(&line);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("(--time)"), "{}", ended.stderr);
    let result = json(&ended);
    assert_eq!(result["unfinished"], 2, "{result}");
    assert_eq!(result["bytes"], 30_000_000_u64 + (4 << 30) - 1);
    let sent = result["bytes_sent"].as_u64().unwrap();
    assert!((1_000_000..25_000_000).contains(&sent), "{result}");
    fs::write(d.join("a"), bytes(8_000_000)).unwrap();
    let line = ["d/a", &pair.at("c"), "--format", "json"];
    let ended = pair.send(&line);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("--max-duration"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("damaged"), "{}", ended.stderr);
    let result = json(&ended);
    assert_eq!(result["bytes_repaired"], 0);
    // What a busy server had not taken in yet when its time was over is sent again: less than a
    // second of the rate, and not all of the 5 MB that a session sends.
    let sent = result["bytes_sent"].as_u64().unwrap();
    let most = 8_000_000 + 2_500_000;
    assert!((8_000_000..most).contains(&sent), "{result}");
    fs::remove_file(d.join("sub/large")).unwrap();
    fs::write(d.join("a"), "x").unwrap();
    fs::write(d.join("b"), "y").unwrap();
    let sent = pair.send(&["d", &pair.at("")]);
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    assert!(sent.stdout.contains("2 files: 2 sent"), "{}", sent.stdout);
    let again = pair.send(&["d", &pair.at("")]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stdout.contains("nothing to send"), "{}", again.stdout);
    assert!(!again.stdout.contains("Mbit/s"), "{}", again.stdout);
    fs::write(d.join("a"), "z").unwrap();
    fs::write(d.join("b"), "z").unwrap();
    let refused = pair.send(&["d", &pair.at("")]);
    let said = "2 of 2 files were not copied";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    let hints = refused.stderr.matches("--overwrite").count();
    assert_eq!(hints, 1, "{}", refused.stderr);
}

/// A mistyped name of a file here is a mistake of the command line.
#[test]
fn what_is_not_here_is_a_wrong_command_line() {
    let pair = Pair::new(&[]);
    let ended = pair.send(&["nowhere", &pair.at("")]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("nowhere: there is no such file"));
}

/// More files than descriptors, at either end.
#[test]
fn many_files_need_few_descriptors() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let d = here.path().join("d");
    fs::create_dir(&d).unwrap();
    for i in 0..400 {
        fs::write(d.join(format!("{i}")), bytes(i)).unwrap();
    }
    let script = "ulimit -n 160; \"$0\" serve --listen 127.0.0.1:0 --files \"$1\" 2>log & \
                  server=$!; until grep -q 127 log; do sleep 0.05; done; \
                  at=$(sed -n 's/.*\\(127.0.0.1:[0-9]*\\).*/\\1/p;1q' log); \
                  \"$0\" send d $at: && \"$0\" send $at:d back/; code=$?; kill $server; exit $code";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_fullpipe")]);
    shell.arg(there.path()).current_dir(here.path());
    shell.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let ended = finished(shell.output().unwrap());
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    for i in 0..400 {
        let copy = fs::read(here.path().join(format!("back/d/{i}"))).unwrap();
        assert!(copy == bytes(i), "{i}");
    }
}

/// Two programs write one name at once, each over what the other has written: both say that they
/// have done it, one after the other, and what is there is whole.
#[test]
fn two_copies_to_one_name_follow_each_other() {
    let pair = Pair::new(&["--overwrite", "--max-rate", "100Mbit/s"]);
    let other = tempfile::tempdir().unwrap();
    let contents = [bytes(3_000_000), vec![7; 2_999_999]];
    fs::write(pair.here.path().join("a"), &contents[0]).unwrap();
    fs::write(other.path().join("a"), &contents[1]).unwrap();
    let to = pair.at("x");
    let begin = |dir: &Path| {
        let mut client = command(dir, &["send", "a", &to, "--overwrite"]);
        let client = client.stdout(Stdio::piped()).stderr(Stdio::piped());
        client.spawn().unwrap()
    };
    let clients = [begin(pair.here.path()), begin(other.path())];
    for client in clients {
        let ended = finished(client.wait_with_output().unwrap());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }
    let x = fs::read(pair.there.path().join("x")).unwrap();
    assert!(contents.contains(&x), "{} bytes of neither", x.len());
    assert_eq!(unfinished(pair.there.path()), [""; 0]);
}

/// Programs get the summary of a single file, too.
#[test]
fn the_only_file_that_fails_is_in_the_json() {
    let pair = Pair::new(&[]);
    fs::write(pair.here.path().join("a"), "new").unwrap();
    fs::write(pair.there.path().join("a"), "old").unwrap();
    let ended = pair.send(&["a", &pair.at("a"), "--json"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let result = json(&ended);
    crate::schema::holds("copy", &result);
    assert_eq!(result["failed"], 1);
    let why = result["files"][0]["error"].as_str().unwrap();
    assert!(why.contains("another file of this name exists"), "{why}");
    assert_eq!(pair.send(&["a", &pair.at("a")]).stdout, "");
}

/// What stands in the way of a fetch is here, though the file has the server's name.
#[test]
fn a_fetch_says_what_is_wrong_here() {
    let pair = Pair::new(&[]);
    fs::write(pair.here.path().join("x"), "mine").unwrap();
    fs::write(pair.there.path().join("a"), "theirs").unwrap();
    let said = |to: &str, why: &str| {
        let ended = pair.send(&[&pair.at("a"), to]);
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        assert!(
            ended.stderr.contains(&format!("here: a: {why}")),
            "{}",
            ended.stderr
        );
    };
    said("x", "another file of this name exists");
    said("gone/deep/x", "there is no such file or directory");
}

/// What a scenario may not be called a file may.
#[test]
fn a_path_with_a_control_character_is_sent_under_another_name() {
    let pair = Pair::new(&[]);
    fs::write(pair.here.path().join("Icon\r"), "bits").unwrap();
    let ended = pair.send(&["Icon\r", &pair.at("icon.txt")]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let there = fs::read(pair.there.path().join("icon.txt"));
    assert_eq!(there.unwrap(), b"bits");
}

/// Linux says that files of /proc have no bytes.
#[test]
fn a_file_without_a_size_is_not_copied_as_an_empty_one() {
    let pair = Pair::new(&[]);
    fs::write(pair.here.path().join("empty"), "").unwrap();
    let ended = pair.send(&["/proc/version", "empty", &pair.at("")]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let why = "version: its size is said to be 0, and it has content";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    let names = fs::read_dir(pair.there.path()).unwrap().flatten();
    let names: Vec<_> = names.map(|e| e.file_name()).collect();
    assert_eq!(names, ["empty"]);
}

/// What a file is called is no reason why it is not copied.
#[test]
fn a_name_that_reads_like_a_reason_is_none() {
    let pair = Pair::new(&["--max-bytes", "1000B"]);
    let name = "x: another transfer is writing it";
    fs::write(pair.here.path().join(name), "new").unwrap();
    fs::write(pair.there.path().join(name), "old").unwrap();
    let ended = pair.send(&[&format!("./{name}"), &pair.at("")]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let exists = "another file of this name exists";
    assert!(ended.stderr.contains(exists), "{}", ended.stderr);
    assert!(!ended.stderr.contains("waiting"), "{}", ended.stderr);
    fs::write(pair.here.path().join("the disk is full"), bytes(2000)).unwrap();
    let ended = pair.send(&["the disk is full", &pair.at("")]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(!ended.stderr.contains("make room"), "{}", ended.stderr);
}

/// The others of a directory do not wait for a file that another client writes.
#[test]
fn a_file_that_is_written_holds_up_no_other() {
    let pair = Pair::new(&["--overwrite"]);
    fs::write(pair.here.path().join("x"), bytes(600_000)).unwrap();
    let d = pair.here.path().join("d");
    fs::create_dir(&d).unwrap();
    fs::write(d.join("x"), vec![7; 1000]).unwrap();
    fs::write(d.join("y"), vec![8; 1000]).unwrap();
    let begin = |what: &[&str]| {
        let line = [&["send", "--overwrite"][..], what].concat();
        let mut client = command(pair.here.path(), &line);
        let client = client.stdout(Stdio::piped()).stderr(Stdio::piped());
        client.spawn().unwrap()
    };
    let there = pair.there.path().join("d");
    fs::create_dir(&there).unwrap();
    let [x, y, part] = ["x", "y", "x.part"].map(|name| there.join(name));
    let wait = |path: &Path| {
        let begun = Instant::now();
        while !path.exists() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{}",
                path.display()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    // At a rate with which it takes ten seconds.
    let slow = begin(&["x", &pair.at("d/x"), "-b", "480kbit/s"]);
    wait(&part);
    let other = begin(&["d", &pair.at("")]);
    wait(&y);
    assert!(part.exists() && !x.exists(), "the first one goes on");
    for client in [slow, other] {
        let ended = finished(client.wait_with_output().unwrap());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }
    assert_eq!(fs::read(x).unwrap(), [7; 1000]);
    assert_eq!(unfinished(&there), [""; 0]);
}

/// A dry run says what would happen. Files are counted; a directory that cannot be made is named
/// beside them.
#[test]
fn what_would_happen_is_said_and_files_are_counted() {
    let pair = Pair::new(&[]);
    let d = pair.here.path().join("d");
    fs::create_dir_all(d.join("sub")).unwrap();
    for name in ["a", "b", "sub/c"] {
        fs::write(d.join(name), name).unwrap();
    }
    let would = pair.send(&["d", &pair.at(""), "--dry-run"]);
    assert_eq!(would.code, 0, "{}", would.stderr);
    let said = "3 files: 3 would be sent\n";
    assert!(would.stdout.contains(said), "{}", would.stdout);
    assert_eq!(pair.send(&["d", &pair.at("")]).code, 0);
    let back = pair.here.path().join("back/d");
    fs::create_dir_all(&back).unwrap();
    fs::write(back.join("sub"), "in the way").unwrap();
    for line in [[&pair.at("d"), "back/"], ["d", &pair.at("e/")]] {
        let put = line[0] == "d";
        if put {
            fs::create_dir_all(pair.there.path().join("e/d")).unwrap();
            fs::write(pair.there.path().join("e/d/sub"), "in the way").unwrap();
        }
        let ended = pair.send(&line);
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        let said = "3 files: 2 sent, 1 failed\n";
        assert!(ended.stdout.contains(said), "{}", ended.stdout);
        let said = "1 of 3 files were not copied";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        for name in ["d/sub: ", "d/sub/c: "] {
            assert!(ended.stderr.contains(name), "{name}: {}", ended.stderr);
        }
    }
}

/// Without a home there is no place to remember a server: that is said, once for all sessions.
#[test]
fn a_server_that_cannot_be_remembered_is_told_once() {
    // No datagram is sent for this.
    let own = |any: &str, far: &str| {
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(far).ok()?;
        Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback())
    };
    let ip = own("0.0.0.0:0", "192.0.2.1:9").or_else(|| own("[::]:0", "[2001:db8::1]:9"));
    let Some(ip) = ip else {
        eprintln!("skipped: this host has no address but those of the loopback");
        return;
    };
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let listen = SocketAddr::new(ip, 0).to_string();
    let files = there.path().display().to_string();
    let args = [
        "--open",
        "--files",
        &files,
        "--max-duration",
        "1s",
        "--max-rate",
        "20Mbit/s",
    ];
    let server = Server::start_at(here.path(), &listen, &args);
    fs::write(here.path().join("a"), bytes(4_000_000)).unwrap();
    let to = format!("{}:a", server.address);
    let mut client = command(here.path(), &["send", "a", &to]);
    client.env_remove("XDG_STATE_HOME").env_remove("HOME");
    let ended = finished(client.output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("--max-duration"), "several sessions");
    let said = ended.stderr.matches("is not remembered").count();
    assert_eq!(said, 1, "{}", ended.stderr);
}

/// More files than are looked at, or made, in the ten seconds that either side waits for a word.
#[test]
#[ignore = "long: `make verify-attacks`"]
fn a_hundred_thousand_files_are_copied_in_either_direction() {
    let pair = Pair::new(&[]);
    for directory in 0..200 {
        let d = pair.here.path().join(format!("tiny/{directory}"));
        fs::create_dir_all(&d).unwrap();
        for file in 0..490 {
            fs::write(d.join(file.to_string()), "1234567").unwrap();
        }
    }
    for line in [["tiny", &pair.at("")], [&pair.at("tiny"), "back/"]] {
        let ended = pair.send(&[&line[..], &["-q", "--format", "json"]].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert_eq!(json(&ended)["sent"], 98_000, "{}", ended.stdout);
    }
    let last = fs::read_to_string(pair.here.path().join("back/tiny/199/489"));
    assert_eq!(last.unwrap(), "1234567");
}

/// A server that is killed and started again, and so forgets the session, is found again; a
/// client without patience ends as soon as it notices.
#[test]
fn a_copy_outlives_its_server() {
    let mut pair = Pair::new(&["--max-rate", "4Mbit/s"]);
    let data = bytes(1_000_000);
    fs::write(pair.here.path().join("x"), &data).unwrap();
    let begin = |name: &str, more: &[&str]| {
        let to = pair.at(name);
        let line = [&["send", "x", &to][..], more].concat();
        let mut client = command(pair.here.path(), &line);
        let client = client.stdout(Stdio::piped()).stderr(Stdio::piped());
        client.spawn().unwrap()
    };
    let patient = begin("a", &["--patience", "1min"]);
    let hasty = begin("b", &["--patience", "0s"]);
    for name in ["a.part", "b.part"] {
        let begun = Instant::now();
        while !pair.there.path().join(name).exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{name}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    pair.server.kill();
    let files = pair.there.path().display().to_string();
    let address = &pair.server.address;
    pair.server = Server::start_at(pair.here.path(), address, &["--files", &files]);
    let ended = finished(hasty.wait_with_output().unwrap());
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("the same command resumes"),
        "{}",
        ended.stderr
    );
    let ended = finished(patient.wait_with_output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("trying again"), "{}", ended.stderr);
    assert_eq!(fs::read(pair.there.path().join("a")).unwrap(), data);
}

/// A server that is told to stop ends its copies at once and says so; the next one goes on with
/// them, in either direction.
#[test]
fn a_copy_outlives_a_server_that_is_told_to_stop() {
    let mut pair = Pair::new(&["--max-rate", "4Mbit/s", "--grace", "0s"]);
    let data = bytes(1_000_000);
    fs::write(pair.here.path().join("x"), &data).unwrap();
    fs::write(pair.there.path().join("y"), &data).unwrap();
    let (to, from) = (pair.at("a"), pair.at("y"));
    let clients = [["x", &to], [&from, "b"]].map(|[from, to]| {
        let mut client = command(pair.here.path(), &["send", from, to]);
        let client = client.stdout(Stdio::piped()).stderr(Stdio::piped());
        client.spawn().unwrap()
    });
    let parts = [
        pair.there.path().join("a.part"),
        pair.here.path().join("b.part"),
    ];
    for part in parts {
        let begun = Instant::now();
        while !part.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{part:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    let server = Pid::from_raw(pair.server.child.id() as i32);
    kill(server, Signal::SIGTERM).unwrap();
    pair.server.child.wait().unwrap();
    let files = pair.there.path().display().to_string();
    let address = &pair.server.address;
    pair.server = Server::start_at(pair.here.path(), address, &["--files", &files]);
    for client in clients {
        let ended = finished(client.wait_with_output().unwrap());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stderr.contains("trying again"), "{}", ended.stderr);
    }
    assert_eq!(fs::read(pair.there.path().join("a")).unwrap(), data);
    assert_eq!(fs::read(pair.here.path().join("b")).unwrap(), data);
}
