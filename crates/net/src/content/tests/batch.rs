//! Several files between a client and a server that speak directly.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::batch::{Base, Batch, Fact};
use super::super::copy::CopyError;
use super::super::{Allowed, Content, Job};
use super::{allowed, bytes, spec};
use crate::content::{Answer, Carried, Question};
use crate::file::{Cancel, Directory, Identity, Item, Name, Reach, Where};

const BLOCK: u64 = 64 << 10;

/// What happens to the stream on its way.
#[derive(Clone, Copy)]
pub(super) enum Fault {
    Nothing,
    /// It ends after so many segments.
    Cut(u64),
    /// A byte of this segment is flipped.
    Flip(u64),
}

fn carry(from: &mut Carried, to: &mut Carried, fault: Fault) {
    let (mut from, mut to) = (from.hooks(), to.hooks());
    let (source, sink) = (&mut from.sources[0].1, &mut to.sinks[0].1);
    let mut buffer = vec![0; 1448];
    let most = match fault {
        Fault::Cut(most) => most,
        _ => u64::MAX,
    };
    // Pairs in reverse, so that there are always holes.
    for n in (0..most).map(|n| n ^ 1) {
        let length = source.fill(n, &mut buffer).unwrap();
        if length == 0 {
            if n % 2 == 0 {
                break;
            }
            continue;
        }
        if matches!(fault, Fault::Flip(at) if at == n) {
            buffer[length / 2] ^= 8;
        }
        // A sink that fails ends the flow; why, is told when the run has ended.
        let room = loop {
            match sink.room(0) {
                Ok(Some(room)) if room < 1448 => std::thread::yield_now(),
                other => break other,
            }
        };
        if room.and_then(|_| sink.take(n, &buffer[..length])).is_err() {
            return;
        }
    }
}

/// Bytes that a session carried, and what became of each file.
pub(super) type Session = Result<(u64, Vec<Fact>), CopyError>;

pub(super) fn through(job: &mut Job, batch: &mut Batch, reverse: bool, fault: Fault) -> Session {
    batch.agree(&mut |q| Ok(job.ask(q)))?;
    agreed(job, batch, reverse, fault)
}

/// The rest of a session, once it is clear what is sent.
pub(super) fn agreed(job: &mut Job, batch: &mut Batch, reverse: bool, fault: Fault) -> Session {
    let sent = batch.bytes();
    let mut carried = None;
    if sent > 0 {
        let (mut near, mut far) = (spec(reverse), spec(reverse));
        let mut mine = batch.begin(&mut near, &mut |q| Ok(job.ask(q))).unwrap();
        let mut theirs = job.begin(&mut far).unwrap();
        assert_eq!(near.flows[0].sender.transfer, far.flows[0].sender.transfer);
        match reverse {
            false => carry(&mut mine, &mut theirs, fault),
            true => carry(&mut theirs, &mut mine, fault),
        }
        job.ended(theirs);
        carried = Some(mine);
    }
    batch.ended(carried, &mut |q| Ok(job.ask(q)))?;
    if matches!(fault, Fault::Cut(_)) {
        // As a client that is killed; the server ends what it had begun.
        while job.ask(&Question::Roots(0)) == Answer::Busy {
            std::thread::yield_now();
        }
        return Ok((sent, batch.facts()));
    }
    batch.finish(&mut |q| Ok(job.ask(q)))?;
    Ok((sent, batch.facts()))
}

pub(super) fn put(files: &[(Item, Where)], allowed: &Allowed, fault: Fault) -> Session {
    let content = Batch::content(files, true);
    let mut job = Job::new(&content, allowed, &spec(false)).map_err(CopyError::There)?;
    let mut batch = Batch::put(files.to_vec(), true, &mut |q| Ok(job.ask(q)))?;
    through(&mut job, &mut batch, false, fault)
}

pub(super) fn get(names: &[&str], base: Base, allowed: &Allowed, fault: Fault) -> Session {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let content = Content::Fetch {
        names: names.clone(),
    };
    let mut job = Job::new(&content, allowed, &spec(true)).map_err(CopyError::There)?;
    let mut batch = Batch::get(&names, base, false, &mut |q| Ok(job.ask(q)))?;
    through(&mut job, &mut batch, true, fault)
}

/// A directory, as `send` finds it.
pub(super) fn found(path: &Path, name: &str) -> Vec<(Item, Where)> {
    let listing = Directory::open(path)
        .unwrap()
        .tree(
            &Name::parse(name).unwrap(),
            &mut Reach::new(None, &Cancel::default()),
        )
        .unwrap();
    let at = |item: &Item| Where::Path(path.join(item.name.get(name.len() + 1..).unwrap_or("")));
    listing
        .items
        .into_iter()
        .map(|item| (item.clone(), at(&item)))
        .collect()
}

pub(super) fn one(path: &Path, name: &str) -> Vec<(Item, Where)> {
    let metadata = fs::metadata(path).unwrap();
    let item = Item {
        name: name.to_owned(),
        source: Some(Identity::of(&metadata)),
        mode: 0o640,
    };
    vec![(item, Where::Path(path.to_owned()))]
}

pub(super) fn below(path: &Path, cut: usize) -> Base {
    Base::Below(Arc::new(Directory::open(path).unwrap()), cut)
}

fn left(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(left(&path)),
            false if path.to_string_lossy().contains(".part") => all.push(path),
            false => {}
        }
    }
    all
}

#[test]
fn a_directory_goes_there_and_comes_back() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = allowed(there.path());
    let d = here.path().join("d");
    fs::create_dir_all(d.join("sub/empty")).unwrap();
    for (name, size) in [
        ("zero", 0),
        ("one", 1),
        ("sub/a", 200_000),
        ("sub/b", 65_536),
    ] {
        fs::write(d.join(name), bytes(size)).unwrap();
    }
    fs::set_permissions(d.join("one"), fs::Permissions::from_mode(0o600)).unwrap();
    let files = found(&d, "in/d");
    let (sent, facts) = put(&files, &allowed, Fault::Nothing).unwrap();
    assert_eq!(sent, 265_537);
    assert!(facts.iter().all(|f| f.failure.is_none()), "{facts:?}");
    for name in ["zero", "one", "sub/a", "sub/b"] {
        let copy = there.path().join("in/d").join(name);
        assert_eq!(
            fs::read(&copy).unwrap(),
            fs::read(d.join(name)).unwrap(),
            "{name}"
        );
    }
    let mode = fs::metadata(there.path().join("in/d/one"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(there.path().join("in/d/sub/empty").is_dir());
    // Once more: nothing is sent.
    let (sent, facts) = put(&files, &allowed, Fault::Nothing).unwrap();
    assert_eq!(sent, 0);
    let skipped = facts.iter().filter(|f| f.skipped).count();
    assert_eq!(skipped, 4, "{facts:?}");
    // And back, below another directory.
    let back = here.path().join("back");
    fs::create_dir(&back).unwrap();
    for expected in [265_537, 0] {
        let (sent, facts) = get(&["in/d"], below(&back, 3), &allowed, Fault::Nothing).unwrap();
        assert_eq!(sent, expected, "{facts:?}");
    }
    for name in ["zero", "one", "sub/a", "sub/b"] {
        let copy = back.join("d").join(name);
        assert_eq!(
            fs::read(&copy).unwrap(),
            fs::read(d.join(name)).unwrap(),
            "{name}"
        );
    }
    assert!(back.join("d/sub/empty").is_dir());
    assert_eq!(left(here.path()).len() + left(there.path()).len(), 0);
}

/// A flipped byte in what an interrupted copy left costs its block; so does one on the way.
#[test]
fn a_flipped_byte_costs_a_block_in_either_direction() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = allowed(there.path());
    let size = 40 * BLOCK as usize + 17;
    let a = here.path().join("a");
    fs::write(&a, bytes(size)).unwrap();
    let files = one(&a, "b");
    let segments = 20 * BLOCK / 1448;
    let fetch = || Base::Exact(here.path().join("c"));
    for reverse in [false, true] {
        let session = |fault| match reverse {
            false => put(&files, &allowed, fault),
            true => get(&["b"], fetch(), &allowed, fault),
        };
        let part = match reverse {
            false => there.path().join("b.part"),
            true => here.path().join("c.part"),
        };
        session(Fault::Cut(segments)).unwrap();
        let mut bent = fs::read(&part).unwrap();
        bent[5 * BLOCK as usize + 99] ^= 1;
        fs::write(&part, &bent).unwrap();
        // One block in what is there, another on the way: the rest comes once.
        let (sent, facts) = session(Fault::Flip(100)).unwrap();
        let fact = &facts[0];
        let kept = 19 * BLOCK - BLOCK;
        assert_eq!((fact.kept, fact.wrong), (kept, BLOCK), "{fact:?}");
        assert_eq!(sent, size as u64 - kept);
        assert_eq!(fact.damaged, BLOCK, "{fact:?}");
        assert_eq!(fact.digest, None, "it has no name yet");
        let (sent, facts) = session(Fault::Nothing).unwrap();
        assert_eq!(sent, BLOCK, "only that block again: {facts:?}");
        assert_eq!(facts[0].digest, Some(blake3::hash(&bytes(size))));
    }
    for copy in [there.path().join("b"), here.path().join("c")] {
        assert_eq!(fs::read(copy).unwrap(), bytes(size));
    }
    assert_eq!(left(here.path()).len() + left(there.path()).len(), 0);
}

/// One file that cannot be taken, or changes, does not stop the others, and is not published.
#[test]
fn each_file_fails_alone() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = Allowed {
        most: Some(100_000),
        ..allowed(there.path())
    };
    let d = here.path().join("d");
    fs::create_dir(&d).unwrap();
    for (name, size) in [
        ("good", 50_000),
        ("large", 100_001),
        ("taken", 10),
        ("changed", 5000),
    ] {
        fs::write(d.join(name), bytes(size)).unwrap();
    }
    fs::create_dir(there.path().join("d")).unwrap();
    fs::write(there.path().join("d/taken"), "other").unwrap();
    symlink("/etc", there.path().join("way")).unwrap();
    let mut files = found(&d, "d");
    files.extend(one(&d.join("good"), "way/out"));
    files.extend(one(&d.join("good"), "../out"));
    fs::write(d.join("changed"), bytes(5001)).unwrap();
    let (_, facts) = put(&files, &allowed, Fault::Nothing).unwrap();
    let failed = |name: &str| {
        let fact = facts.iter().find(|f| f.name == name).unwrap();
        fact.failure.clone().unwrap_or_default()
    };
    assert_eq!(failed("d/good"), "");
    for (name, word) in [
        ("d/large", "--max-bytes"),
        ("d/taken", "exists"),
        ("d/changed", "changed"),
        ("way/out", "links"),
        ("../out", "not allowed"),
    ] {
        assert!(failed(name).contains(word), "{name}: {}", failed(name));
    }
    assert_eq!(
        fs::read(there.path().join("d/good")).unwrap(),
        bytes(50_000)
    );
    assert_eq!(fs::read(there.path().join("d/taken")).unwrap(), b"other");
    assert!(!there.path().join("d/changed").exists());
    assert!(!Path::new("/etc/out").exists());
}

/// A server that names files as it likes.
#[test]
fn names_of_a_server_do_not_lead_out_of_the_directory() {
    let (here, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(outside.path(), here.path().join("way")).unwrap();
    let names = [
        "d/../../x",
        "d//etc/x",
        "d/.bashrc",
        "d/x.part",
        "d/way/x",
        "d",
        "d/",
    ];
    let item = |name: &str| Item {
        name: name.to_owned(),
        source: Some(Identity {
            size: 0,
            changed: 1,
        }),
        mode: 0o777,
    };
    let items: Vec<Item> = names.iter().map(|name| item(name)).collect();
    let mut ask = |question: &Question| {
        Ok(match question {
            Question::Items(0) => Answer::Items {
                items: items.clone(),
                all: items.len() as u32,
                left_out: 0,
            },
            Question::Plan(_) => Answer::Noted,
            Question::Ready(0) => Answer::Ready,
            Question::Publish(_) => Answer::Named {
                same: true,
                failed: Vec::new(),
                all: 0,
            },
            _ => Answer::Nonsense,
        })
    };
    let mut batch = Batch::get(&["d/".to_owned()], below(here.path(), 2), true, &mut ask).unwrap();
    batch.agree(&mut ask).unwrap();
    batch.ended(None, &mut ask).unwrap();
    batch.finish(&mut ask).unwrap();
    let facts = batch.facts();
    assert!(facts.iter().all(|f| f.failure.is_some()), "{facts:?}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1);
}

/// What does not fit is refused whole, and leaves nothing.
#[test]
fn files_together_keep_to_the_room_that_there_is() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let directory = Arc::new(Directory::open(there.path()).unwrap());
    let allowed = Allowed {
        room: crate::file::Room::new(Arc::clone(&directory), 300_000),
        files: Some(directory),
        ..Allowed::default()
    };
    let d = here.path().join("d");
    fs::create_dir(&d).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(d.join(name), bytes(101_000)).unwrap();
    }
    let error = put(&found(&d, "d"), &allowed, Fault::Nothing).unwrap_err();
    assert!(error.to_string().contains("--max-partial"), "{error}");
    assert_eq!(left(there.path()), [""; 0].map(PathBuf::from));
    fs::remove_file(d.join("c")).unwrap();
    put(&found(&d, "d"), &allowed, Fault::Nothing).unwrap();
}
