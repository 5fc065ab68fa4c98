//! A client and a server that speak directly, the run between them done by hand.

mod batch;
mod loss;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_run::{FlowSpec, RunSpec};

use super::copy::{Copy, CopyError, put};
use super::*;
use crate::file::Directory;

fn spec(reverse: bool) -> RunSpec {
    let mut flow = FlowSpec::new(
        "main",
        StackSpec::parse("reno").unwrap(),
        SenderConfig::preset(Preset::Y2026, 1500),
        ReceiverConfig::preset(Preset::Y2026),
        vec![],
        vec![],
    );
    flow.reverse = reverse;
    RunSpec {
        flows: vec![flow],
        ..RunSpec::default()
    }
}

fn allowed(dir: &Path) -> Allowed {
    Allowed {
        files: Some(Arc::new(Directory::open(dir).unwrap())),
        ..Allowed::default()
    }
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i ^ (i >> 8)) as u8).collect()
}

/// Moves the first `most` segments from one side to the other.
fn carry(from: &mut Carried, to: &mut Carried, most: u64) {
    let mut from = from.hooks();
    let mut to = to.hooks();
    let (source, sink) = (&mut from.sources[0].1, &mut to.sinks[0].1);
    let mut buffer = vec![0; 1448];
    for n in 0..most {
        let length = source.fill(n, &mut buffer).unwrap();
        if length == 0 {
            break;
        }
        while sink.room(0).unwrap().is_some_and(|room| room < 1448) {
            std::thread::yield_now();
        }
        sink.take(n, &buffer[..length]).unwrap();
    }
}

fn send(file: &Path, name: &str, allowed: &Allowed, most: u64) -> Result<(u64, u64), CopyError> {
    let (file, content) = put(file, name, true)?;
    let mut job = Job::new(&content, allowed, &spec(false)).map_err(CopyError::There)?;
    let mut copy = Copy::send(file, &mut |q| Ok(job.ask(q)))?;
    let (from, missing) = (copy.from(), copy.missing());
    let mut carried = None;
    if missing > 0 {
        let (mut near, mut far) = (spec(false), spec(false));
        let mut mine = copy.begin(&mut near).unwrap();
        let mut theirs = job.begin(&mut far).unwrap();
        assert_eq!(near.flows[0].sender.transfer, far.flows[0].sender.transfer);
        assert_eq!(near.flows[0].sender.transfer, Some(missing.div_ceil(1448)));
        carry(&mut mine, &mut theirs, most);
        job.ended(theirs);
        carried = Some(mine);
    }
    copy.finish(carried, &mut |q| Ok(job.ask(q)))?;
    Ok((from, missing))
}

fn take(name: &str, path: &Path, allowed: &Allowed, most: u64) -> Result<(u64, u64), CopyError> {
    let content = Content::Get {
        name: name.to_owned(),
    };
    let mut job = Job::new(&content, allowed, &spec(true)).map_err(CopyError::There)?;
    let mut copy = Copy::take(path, false, &mut |q| Ok(job.ask(q)))?;
    let (from, missing) = (copy.from(), copy.missing());
    let mut carried = None;
    if missing > 0 {
        let (mut near, mut far) = (spec(true), spec(true));
        let mut mine = copy.begin(&mut near).unwrap();
        let mut theirs = job.begin(&mut far).unwrap();
        carry(&mut theirs, &mut mine, most);
        job.ended(theirs);
        carried = Some(mine);
    }
    copy.finish(carried, &mut |q| Ok(job.ask(q)))?;
    Ok((from, missing))
}

#[test]
fn both_ways_with_an_interruption_each() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = allowed(there.path());
    let size = 1_000_001;
    fs::write(here.path().join("a"), bytes(size)).unwrap();
    let a = here.path().join("a");
    for round in 0..3 {
        let result = send(&a, "b", &allowed, if round == 0 { 300 } else { u64::MAX });
        match round {
            0 => assert!(matches!(result, Err(CopyError::There(_))), "{result:?}"),
            1 => assert_eq!(result.unwrap(), (300 * 1448, size as u64 - 300 * 1448)),
            // The same file is there already: nothing is sent.
            _ => assert_eq!(result.unwrap(), (size as u64, 0)),
        }
        assert_eq!(there.path().join("b").exists(), round > 0);
    }
    let c = here.path().join("c");
    for round in 0..3 {
        let result = take("b", &c, &allowed, if round == 0 { 300 } else { u64::MAX });
        match round {
            0 => assert!(matches!(result, Err(CopyError::Here(_))), "{result:?}"),
            1 => assert_eq!(result.unwrap(), (300 * 1448, size as u64 - 300 * 1448)),
            _ => assert_eq!(result.unwrap(), (size as u64, 0)),
        }
        assert_eq!(c.exists(), round > 0);
    }
    assert!(fs::read(&c).unwrap() == bytes(size));
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 2);
    assert_eq!(fs::read_dir(there.path()).unwrap().count(), 1);
}

#[test]
fn an_empty_file_needs_no_run() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = allowed(there.path());
    let a = here.path().join("a");
    fs::write(&a, b"").unwrap();
    assert_eq!(send(&a, "b", &allowed, 1).unwrap(), (0, 0));
    assert_eq!(fs::read(there.path().join("b")).unwrap(), b"");
    assert_eq!(
        take("b", &here.path().join("c"), &allowed, 1).unwrap(),
        (0, 0)
    );
    assert_eq!(fs::read(here.path().join("c")).unwrap(), b"");
}

#[test]
fn a_file_of_another_content_is_replaced_only_if_both_sides_say_so() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let a = here.path().join("a");
    fs::write(&a, bytes(5000)).unwrap();
    for old in [b"x".to_vec(), vec![7; 5000]] {
        fs::write(there.path().join("b"), &old).unwrap();
        let mut allowed = allowed(there.path());
        let error = send(&a, "b", &allowed, u64::MAX).unwrap_err();
        assert!(error.to_string().contains("exists"), "{error}");
        assert_eq!(fs::read(there.path().join("b")).unwrap(), old);
        allowed.overwrite = true;
        send(&a, "b", &allowed, u64::MAX).unwrap();
        assert_eq!(fs::read(there.path().join("b")).unwrap(), bytes(5000));
    }
}

#[test]
fn what_is_not_allowed_is_refused_at_once() {
    let (outside, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret"), "x").unwrap();
    symlink(outside.path(), there.path().join("way")).unwrap();
    symlink(outside.path().join("secret"), there.path().join("link")).unwrap();
    fs::write(there.path().join("file"), "x").unwrap();
    let allowed = allowed(there.path());
    let get = |name: &str, allowed: &Allowed, spec: &RunSpec| {
        let content = Content::Get {
            name: name.to_owned(),
        };
        Job::new(&content, allowed, spec).map(|_| ())
    };
    for (name, word) in [
        ("/etc/passwd", "absolute"),
        ("../secret", "not allowed"),
        ("way/secret", "links"),
        ("link", "links"),
        ("missing", "no such file"),
        ("missing/x", "no such file"),
        (".hidden", "hidden"),
        ("", "1 to"),
        (&"x".repeat(5000), "1 to"),
    ] {
        let error = get(name, &allowed, &spec(true)).unwrap_err();
        assert!(error.contains(word), "{name}: {error}");
    }
    get("file", &allowed, &spec(true)).unwrap();
    assert!(
        get("file", &allowed, &spec(false))
            .unwrap_err()
            .contains("one flow")
    );
    let none = Allowed::default();
    assert!(
        get("file", &none, &spec(true))
            .unwrap_err()
            .contains("--files")
    );
    let content = Content::Put {
        name: "big".to_owned(),
        source: Identity {
            size: 1001,
            changed: 0,
        },
        mode: 0o644,
        overwrite: false,
    };
    let small = Allowed {
        most: Some(1000),
        ..allowed
    };
    let error = Job::new(&content, &small, &spec(false)).unwrap_err();
    assert!(error.contains("--max-bytes"), "{error}");
    for (size, passes) in [(1000, true), (1001, false)] {
        fs::write(there.path().join("file"), bytes(size)).unwrap();
        match get("file", &small, &spec(true)) {
            Ok(()) => assert!(passes, "{size}"),
            Err(error) => assert!(!passes && error.contains("--max-bytes"), "{size}: {error}"),
        }
    }
}

/// Whatever is asked in whatever order, the server answers and does nothing that it should not.
#[test]
fn questions_out_of_order_are_nonsense() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = allowed(there.path());
    let a = here.path().join("a");
    fs::write(&a, bytes(5000)).unwrap();
    let questions = [
        Question::Verdict([0; 32]),
        Question::Have {
            prefix: u64::MAX,
            digest: [0; 32],
        },
        Question::Tally(0),
        Question::From(1234),
    ];
    let (_, content) = put(&a, "b", false).unwrap();
    let mut job = Job::new(&content, &allowed, &spec(false)).unwrap();
    for question in &questions[..3] {
        let answer = job.ask(question);
        assert!(
            matches!(answer, Answer::Nonsense | Answer::Busy),
            "{answer:?}"
        );
    }
    assert!(job.begin(&mut spec(false)).is_err());
    drop(job);
    assert!(!there.path().join("b").exists());
    fs::write(there.path().join("g"), bytes(5000)).unwrap();
    let content = Content::Get {
        name: "g".to_owned(),
    };
    let mut job = Job::new(&content, &allowed, &spec(true)).unwrap();
    assert!(job.begin(&mut spec(true)).is_err());
    for question in questions {
        let answer = job.ask(&question);
        assert!(
            matches!(answer, Answer::Nonsense | Answer::Busy),
            "{answer:?}"
        );
    }
    assert!(
        Job::new(&Content::Nothing, &allowed, &spec(true))
            .unwrap()
            .ask(&Question::Prepared)
            == Answer::Nonsense
    );
}

#[test]
fn patterns_are_counted_on_both_sides() {
    let content = Content::Pattern { key: 5 };
    let mut s = spec(false);
    s.flows[0].sender.transfer = Some(100);
    let mut job = Job::new(&content, &Allowed::default(), &s).unwrap();
    let mut mine = copy::patterns(5, &s);
    let mut theirs = job.begin(&mut s.clone()).unwrap();
    carry(&mut mine, &mut theirs, u64::MAX);
    job.ended(theirs);
    let proofs = copy::tallies(&mine, &s, &mut |q| Ok(job.ask(q))).unwrap();
    assert_eq!(proofs.len(), 1);
    assert!(proofs[0].is_whole());
    assert_eq!(proofs[0].received.segments, 100);
}

/// Hashing a terabyte takes many minutes: the test ends because the work ends with its job.
#[test]
fn work_ends_with_its_job() {
    let dir = tempfile::tempdir().unwrap();
    let large = fs::File::create(dir.path().join("large")).unwrap();
    if large.set_len(1 << 40).is_err() {
        eprintln!("skipped: no file of a terabyte on this file system");
        return;
    }
    let content = Content::Put {
        name: "large".to_owned(),
        source: Identity {
            size: 1 << 40,
            changed: 0,
        },
        mode: 0o644,
        overwrite: false,
    };
    let mut job = Job::new(&content, &allowed(dir.path()), &spec(false)).unwrap();
    assert_eq!(job.ask(&Question::Prepared), Answer::Busy);
    drop(job);
    let content = Content::Get {
        name: "large".to_owned(),
    };
    let mut job = Job::new(&content, &allowed(dir.path()), &spec(true)).unwrap();
    let have = Question::Have {
        prefix: 1 << 40,
        digest: [0; 32],
    };
    assert_eq!(job.ask(&have), Answer::Busy);
    drop(job);
}

#[test]
fn a_name_is_no_reason() {
    let busy = failed_on("x", &std::io::ErrorKind::ResourceBusy.into());
    assert!(says_busy("x", &busy) && says_busy("x", &there(&busy)));
    let denied = failed_on(&busy, &std::io::ErrorKind::PermissionDenied.into());
    assert!(!says_busy("x", &denied) && !says_busy(&busy, &denied));
    assert!(ends_with_reason(&there(&busy), BUSY) && !ends_with_reason(&there(&denied), BUSY));
    assert!(ends_with_reason(NO_FILES, NO_FILES) && !ends_with_reason(&busy, DISK_FULL));
}

#[test]
fn a_long_name_leaves_room_for_the_reason() {
    for length in [150, 199, 380, 990] {
        let name = format!("{}\u{200b}", "d/".repeat(length / 2));
        let busy = failed_on(&name, &std::io::ErrorKind::ResourceBusy.into());
        for said in [storing::short(&busy), shown(&busy)] {
            assert!(says_busy(&name, &there(&said)), "{said}");
            assert!(ends_with_reason(&said, BUSY), "{said}");
        }
    }
}
