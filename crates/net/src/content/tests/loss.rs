//! What a copy must not do to files: those of others, those that vanish, those that nobody asked
//! for.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use super::super::batch::{Base, Batch};
use super::super::copy::CopyError;
use super::super::{Allowed, Answer, Content, Job, Question};
use super::batch::{Fault, Session, agreed, below, found, get, one, put, through};
use super::{allowed, bytes, spec};
use crate::content::batch::Fact;
use crate::content::{Carried, says_busy};
use crate::file::{Directory, Identity, Item, Where};

const FOREIGN: &[u8] = b"not of a copy";

fn replacing(dir: &Path) -> Allowed {
    Allowed {
        overwrite: true,
        ..allowed(dir)
    }
}

fn get_over(names: &[&str], base: Base, allowed: &Allowed) -> Session {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let content = Content::Fetch {
        names: names.clone(),
    };
    let mut job = Job::new(&content, allowed, &spec(true)).map_err(CopyError::There)?;
    let mut batch = Batch::get(&names, base, true, &mut |q| Ok(job.ask(q)))?;
    through(&mut job, &mut batch, true, Fault::Nothing)
}

/// A `NAME.part` of somebody else stays, whether another file is under the final name or not, and
/// whichever of its neighbours is refused.
#[test]
fn a_part_of_somebody_else_stays_whatever_is_refused() {
    for old in [None, Some(5000), Some(200_000)] {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let d = here.path().join("d");
        fs::create_dir(&d).unwrap();
        for name in ["a", "x", "z"] {
            fs::write(d.join(name), bytes(200_000)).unwrap();
        }
        fs::create_dir(there.path().join("d")).unwrap();
        let back = here.path().join("back");
        fs::create_dir_all(back.join("d")).unwrap();
        for place in [there.path().join("d"), back.join("d")] {
            if let Some(old) = old {
                fs::write(place.join("x"), vec![7; old]).unwrap();
            }
            fs::write(place.join("x.part"), FOREIGN).unwrap();
        }
        let allowed = replacing(there.path());
        let _ = put(&found(&d, "d"), &allowed, Fault::Nothing);
        let _ = get_over(&["d"], below(&back, 0), &replacing(here.path()));
        for place in [there.path().join("d"), back.join("d")] {
            let part = fs::read(place.join("x.part"));
            assert_eq!(part.unwrap(), FOREIGN, "{old:?} {}", place.display());
            if let Some(old) = old {
                assert!(fs::read(place.join("x")).unwrap() == vec![7; old]);
            }
            // Of the others either all is there or nothing.
            for name in ["a.part", "a.part.state", "x.part.state", "z.part"] {
                assert!(!place.join(name).exists(), "{old:?} {name}");
            }
        }
    }
}

/// A copy that is refused for want of room takes nothing from one that can be gone on with.
#[test]
fn a_refused_copy_leaves_what_another_has_left() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let directory = Arc::new(Directory::open(there.path()).unwrap());
    let allowed = Allowed {
        room: crate::file::Room::new(Arc::clone(&directory), 300_000),
        files: Some(directory),
        overwrite: true,
        ..Allowed::default()
    };
    let a = here.path().join("a");
    fs::write(&a, bytes(200_000)).unwrap();
    let first = one(&a, "x");
    put(&first, &allowed, Fault::Cut(100)).unwrap();
    let before = fs::read(there.path().join("x.part")).unwrap();
    assert!(before.len() > 131_072);
    // Another source of the same name, and a neighbour that does not fit beside it.
    let b = here.path().join("b");
    fs::write(&b, bytes(190_000)).unwrap();
    let second = [one(&b, "x"), one(&a, "y")].concat();
    let error = put(&second, &allowed, Fault::Nothing).unwrap_err();
    assert!(error.to_string().contains("--max-partial"), "{error}");
    assert!(fs::read(there.path().join("x.part")).unwrap() == before);
    let (sent, facts) = put(&first, &allowed, Fault::Nothing).unwrap();
    assert_eq!(sent, 200_000 - 131_072, "{facts:?}");
    assert!(fs::read(there.path().join("x")).unwrap() == bytes(200_000));
}

/// Two clients, one name: the second is told, or takes it over as a whole; under the final name is
/// never a mixture of both.
#[test]
fn a_second_client_of_the_same_name_does_not_disturb_the_first() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = replacing(there.path());
    let (a, b) = (here.path().join("a"), here.path().join("b"));
    fs::write(&a, bytes(200_000)).unwrap();
    fs::write(&b, vec![9; 200_000]).unwrap();
    fs::write(there.path().join("x"), "old").unwrap();
    let files = one(&a, "x");
    let content = Batch::content(&files, true);
    let mut job = Job::new(&content, &allowed, &spec(false)).unwrap();
    let mut batch = Batch::put(files.clone(), true, &mut |q| Ok(job.ask(q))).unwrap();
    batch.agree(&mut |q| Ok(job.ask(q))).unwrap();
    // The first has begun, and has sent nothing yet.
    let second = put(&one(&b, "x"), &allowed, Fault::Nothing);
    let told = match &second {
        Ok((_, facts)) => facts[0].failure.clone().unwrap_or_default(),
        Err(error) => error.to_string(),
    };
    assert!(told.contains("another transfer"), "{second:?}");
    assert_eq!(fs::read(there.path().join("x")).unwrap(), b"old");
    let (_, facts) = agreed(&mut job, &mut batch, false, Fault::Nothing).unwrap();
    assert_eq!(facts[0].failure, None);
    assert!(fs::read(there.path().join("x")).unwrap() == bytes(200_000));
    assert_eq!(fs::read_dir(there.path()).unwrap().count(), 1);
}

/// Of several files only the one that another client writes fails, also if that began after both
/// had looked.
#[test]
fn a_busy_file_takes_no_other_with_it() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = replacing(there.path());
    let (a, b) = (here.path().join("a"), here.path().join("b"));
    fs::write(&a, bytes(200_000)).unwrap();
    fs::write(&b, vec![9; 200_000]).unwrap();
    let begin = |files: &[(Item, Where)]| {
        let job = Job::new(&Batch::content(files, true), &allowed, &spec(false));
        let mut job = job.unwrap();
        let batch = Batch::put(files.to_vec(), true, &mut |q| Ok(job.ask(q)));
        (job, batch.unwrap())
    };
    let all = [one(&b, "w"), one(&b, "x"), one(&b, "y")].concat();
    let (mut job2, mut batch2) = begin(&all);
    let (mut job, mut batch) = begin(&one(&a, "x"));
    batch.agree(&mut |q| Ok(job.ask(q))).unwrap();
    batch2.agree(&mut |q| Ok(job2.ask(q))).unwrap();
    let (_, facts) = agreed(&mut job2, &mut batch2, false, Fault::Nothing).unwrap();
    let failed: Vec<_> = facts.iter().map(|f| f.failure.is_some()).collect();
    assert_eq!(failed, [false, true, false], "{facts:?}");
    assert!(
        says_busy("x", facts[1].failure.as_deref().unwrap()),
        "{facts:?}"
    );
    let (_, facts) = agreed(&mut job, &mut batch, false, Fault::Nothing).unwrap();
    assert_eq!(facts[0].failure, None);
    let kept = |name: &str| fs::read(there.path().join(name)).unwrap();
    assert!(kept("x") == bytes(200_000) && kept("w") == kept("y") && kept("y") == vec![9; 200_000]);
    assert_eq!(fs::read_dir(there.path()).unwrap().count(), 3);
}

/// Two programs that fetch into one directory know nothing of each other but what is on the disk.
#[test]
fn two_fetches_to_one_path_leave_the_bytes_of_one() {
    let (here, one_there, other_there) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    fs::write(one_there.path().join("x"), bytes(200_000)).unwrap();
    fs::write(other_there.path().join("x"), vec![9; 200_000]).unwrap();
    let names = ["x".to_owned()];
    let content = Content::Fetch {
        names: names.to_vec(),
    };
    let begin = |there: &Path| {
        let mut job = Job::new(&content, &allowed(there), &spec(true)).unwrap();
        let batch = Batch::get(
            &names,
            below(here.path(), 0),
            false,
            &mut |q| Ok(job.ask(q)),
        );
        (job, batch.unwrap())
    };
    // Both have looked before either begins.
    let (mut job, mut batch) = begin(one_there.path());
    let (mut job2, mut batch2) = begin(other_there.path());
    batch.agree(&mut |q| Ok(job.ask(q))).unwrap();
    batch2.agree(&mut |q| Ok(job2.ask(q))).unwrap();
    let second = batch2.facts()[0].failure.clone().unwrap();
    assert!(says_busy("x", &second), "{second}");
    drop((job2, batch2));
    let (_, facts) = agreed(&mut job, &mut batch, true, Fault::Nothing).unwrap();
    assert_eq!(facts[0].failure, None);
    assert!(fs::read(here.path().join("x")).unwrap() == bytes(200_000));
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1);
}

/// So many files that their locks are not kept: what another copy began anew is not published.
#[test]
fn of_many_files_none_is_published_that_another_copy_has_taken_over() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let d = there.path().join("d");
    fs::create_dir(&d).unwrap();
    for i in 0..100 {
        fs::write(d.join(format!("{i:03}")), bytes(10 + i)).unwrap();
    }
    let other_there = tempfile::tempdir().unwrap();
    fs::create_dir(other_there.path().join("d")).unwrap();
    fs::write(other_there.path().join("d/007"), [9; 17]).unwrap();
    let content = Content::Fetch {
        names: vec!["d".to_owned()],
    };
    let mut job = Job::new(&content, &allowed(there.path()), &spec(true)).unwrap();
    let names = ["d".to_owned()];
    let mut ask = |q: &Question| Ok(job.ask(q));
    let mut batch = Batch::get(&names, below(here.path(), 0), false, &mut ask).unwrap();
    batch.agree(&mut ask).unwrap();
    let taken = get(
        &["d/007"],
        below(&here.path().join("d"), 2),
        &allowed(other_there.path()),
        Fault::Cut(0),
    );
    taken.unwrap();
    // Its thread may write a moment longer.
    let part = fs::File::open(here.path().join("d/007.part")).unwrap();
    part.lock().unwrap();
    drop(part);
    let (_, facts) = agreed(&mut job, &mut batch, true, Fault::Nothing).unwrap();
    for fact in facts.iter().filter(|fact| !fact.is_directory) {
        let failure = fact.failure.as_deref().unwrap_or_default();
        let word = if fact.name == "d/007" { "007.part" } else { "" };
        assert_eq!(failure.is_empty(), word.is_empty(), "{fact:?}");
        assert!(failure.contains(word), "{failure}");
    }
    assert!(!here.path().join("d/007").exists());
    // The next one is whole.
    let (_, facts) = get(
        &["d"],
        below(here.path(), 0),
        &allowed(there.path()),
        Fault::Nothing,
    )
    .unwrap();
    assert!(facts.iter().all(|f| f.failure.is_none()), "{facts:?}");
    for i in 0..100 {
        let copy = fs::read(here.path().join(format!("d/{i:03}"))).unwrap();
        assert!(copy == bytes(10 + i), "{i}");
    }
    assert_eq!(fs::read_dir(here.path().join("d")).unwrap().count(), 100);
}

/// One reason stands for all that a message has no room for.
#[test]
fn many_files_whose_directory_is_removed_are_told_with_a_reason() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for dir in [here.path(), there.path()] {
        fs::create_dir(dir.join("d")).unwrap();
        for i in 0..100 {
            fs::write(dir.join(format!("d/{i:03}")), bytes(10 + i)).unwrap();
        }
        fs::write(dir.join("x"), "x").unwrap();
    }
    let mut files = found(&here.path().join("d"), "e");
    files.extend(one(&here.path().join("x"), "y"));
    let (mut job, mut batch) = looked(&files, &allowed(there.path()));
    batch.agree(&mut |q| Ok(job.ask(q))).unwrap();
    fs::remove_dir_all(there.path().join("e")).unwrap();
    let error = agreed(&mut job, &mut batch, false, Fault::Nothing).unwrap_err();
    let said = "at the server: 100 files got no name; the first: e/000: its directory was removed";
    assert_eq!(error.to_string(), said);

    let names = ["d", "x"].map(str::to_owned);
    let content = Content::Fetch {
        names: names.to_vec(),
    };
    let mut job = Job::new(&content, &allowed(there.path()), &spec(true)).unwrap();
    let mut ask = |q: &Question| Ok(job.ask(q));
    let to = tempfile::tempdir().unwrap();
    let mut batch = Batch::get(&names, below(to.path(), 0), false, &mut ask).unwrap();
    batch.agree(&mut ask).unwrap();
    fs::remove_dir_all(to.path().join("d")).unwrap();
    let error = agreed(&mut job, &mut batch, true, Fault::Nothing).unwrap_err();
    assert_eq!(error.to_string(), "here: d/000: its directory was removed");
}

/// Between the look at a file that is there and what follows from it the file is removed.
#[test]
fn a_file_that_vanishes_after_the_look_is_fetched() {
    for size in [0, 10, 70_000] {
        for differs in [false, true] {
            let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            fs::write(there.path().join("x"), bytes(size)).unwrap();
            let mut old = bytes(size);
            if let Some(byte) = old.first_mut().filter(|_| differs) {
                *byte ^= 1;
            }
            fs::write(here.path().join("x"), old).unwrap();
            let names = ["x".to_owned()];
            let content = Content::Fetch {
                names: names.to_vec(),
            };
            let mut job = Job::new(&content, &allowed(there.path()), &spec(true)).unwrap();
            let path = here.path().join("x");
            let mut ask = |q: &Question| {
                if matches!(q, Question::Here(_)) {
                    let _ = fs::remove_file(&path);
                }
                Ok(job.ask(q))
            };
            let mut batch = Batch::get(&names, below(here.path(), 0), false, &mut ask).unwrap();
            let done = through(&mut job, &mut batch, true, Fault::Nothing);
            let (_, facts) = done.unwrap();
            let copy = fs::read(here.path().join("x"));
            match &facts[0].failure {
                None => assert!(copy.unwrap() == bytes(size), "{size} {differs}"),
                Some(why) => assert!(copy.is_err(), "{size} {differs}: {why}"),
            }
        }
    }
}

/// An unfinished file that somebody removes or empties between the look and the beginning.
#[test]
fn a_part_that_is_taken_away_is_not_filled_with_zeros() {
    for emptied in [false, true] {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let allowed = allowed(there.path());
        let a = here.path().join("a");
        fs::write(&a, bytes(200_000)).unwrap();
        let files = one(&a, "x");
        put(&files, &allowed, Fault::Cut(100)).unwrap();
        let content = Batch::content(&files, true);
        let mut job = Job::new(&content, &allowed, &spec(false)).unwrap();
        let mut batch = Batch::put(files.clone(), true, &mut |q| Ok(job.ask(q))).unwrap();
        let part = there.path().join("x.part");
        if emptied {
            fs::File::create(&part).unwrap();
        } else {
            fs::remove_file(&part).unwrap();
        }
        let done = through(&mut job, &mut batch, false, Fault::Nothing);
        let whole = done.is_ok_and(|(_, facts)| facts[0].failure.is_none());
        let x = fs::read(there.path().join("x"));
        match whole {
            true => assert!(x.unwrap() == bytes(200_000), "{emptied}"),
            false => assert!(x.is_err(), "{} bytes", x.unwrap().len()),
        }
    }
}

/// A client that has a server publish a file of which it has sent nothing.
#[test]
fn what_is_under_the_final_name_is_no_part_that_could_be_published() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = replacing(there.path());
    let a = here.path().join("a");
    fs::write(&a, bytes(70_000)).unwrap();
    fs::write(there.path().join("x"), bytes(70_000)).unwrap();
    for spans in [Some(Vec::new()), Some(vec![(0, 65_536)])] {
        let content = Batch::content(&one(&a, "x"), true);
        let mut job = Job::new(&content, &allowed, &spec(false)).unwrap();
        while job.ask(&Question::Found(0)) == Answer::Busy {
            std::thread::yield_now();
        }
        let bytes_planned = spans.iter().flatten().map(|(from, to)| to - from).sum();
        assert_eq!(job.ask(&Question::Plan(vec![(0, spans)])), Answer::Noted);
        while job.ask(&Question::Ready(bytes_planned)) == Answer::Busy {
            std::thread::yield_now();
        }
        let digest = crate::content::digest_of([(0, blake3::hash(&bytes(70_000)))].into_iter());
        while job.ask(&Question::Publish(digest)) == Answer::Busy {
            std::thread::yield_now();
        }
        let x = fs::read(there.path().join("x")).unwrap();
        assert!(x == bytes(70_000), "{} bytes", x.len());
    }
}

/// A server that gives more than it was asked for: CVE-2019-6111 was of this kind.
#[test]
fn a_server_plants_nothing_that_was_not_asked_for() {
    let item = |name: &str, is_file: bool| Item {
        name: name.to_owned(),
        source: is_file.then_some(Identity {
            size: 0,
            changed: 1,
        }),
        mode: 0o777,
    };
    for (asked, cut, items) in [
        ("d", 0, vec![item("d", false), item("other", true)]),
        ("d", 0, vec![item("dd", true)]),
        ("d", 0, vec![item("other/x", true)]),
        ("in/d", 3, vec![item("in/d", false), item("in/e", true)]),
        ("in/d", 3, vec![item("xy/d", true)]),
        ("in/d", 3, vec![item("in/", true)]),
        ("d", 0, vec![item("d", true), item("d", true)]),
    ] {
        let here = tempfile::tempdir().unwrap();
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
        let names = [asked.to_owned()];
        let got = Batch::get(&names, below(here.path(), cut), true, &mut ask);
        if let Ok(mut batch) = got {
            let _ = batch.agree(&mut ask);
            let _ = batch.ended(None, &mut ask);
            let _ = batch.finish(&mut ask);
            panic!("taken: {items:?}: {:?}", batch.facts());
        }
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0, "{items:?}");
    }
}

/// Sizes with which the sum, or the end of the last block, does not fit into 64 bits: from a server
/// to its client, and the other way.
#[test]
fn sizes_that_no_file_has_are_refused() {
    let item = |i: usize, size: u64| Item {
        name: format!("d/{i}"),
        source: Some(Identity { size, changed: 1 }),
        mode: 0o644,
    };
    for sizes in [
        &[u64::MAX][..],
        &[1 << 63, 1 << 63],
        &[(1 << 62) + 1],
        &[1, u64::MAX],
    ] {
        let items: Vec<Item> = sizes.iter().enumerate().map(|(i, s)| item(i, *s)).collect();
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut ask = |question: &Question| {
            Ok(match question {
                Question::Items(0) => Answer::Items {
                    items: items.clone(),
                    all: items.len() as u32,
                    left_out: 0,
                },
                _ => Answer::Nonsense,
            })
        };
        let names = ["d".to_owned()];
        let got = Batch::get(&names, below(here.path(), 0), true, &mut ask);
        assert!(matches!(got, Err(CopyError::Answer(_))), "{got:?}");
        let content = Content::Store {
            items,
            overwrite: true,
        };
        let why = Job::new(&content, &allowed(there.path()), &spec(false)).unwrap_err();
        assert!(why.contains("more bytes"), "{why}");
        for dir in [here.path(), there.path()] {
            assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
        }
    }
    // The most there can be is a matter of the disk.
    let there = tempfile::tempdir().unwrap();
    let content = Content::Store {
        items: vec![item(0, 1 << 62)],
        overwrite: true,
    };
    let mut job = Job::new(&content, &allowed(there.path()), &spec(false)).unwrap();
    let mut ask = |question: Question| loop {
        match job.ask(&question) {
            Answer::Busy => std::thread::yield_now(),
            other => return other,
        }
    };
    ask(Question::Found(0));
    let answer = ask(Question::Ready(1 << 62));
    let full = matches!(&answer, Answer::Failed(why) if why.contains("disk is full"));
    assert!(full, "{answer:?}");
}

/// Between the look and the names a directory of the copy is replaced by a link to one outside.
#[test]
fn a_directory_that_becomes_a_link_leads_nowhere() {
    for moment in 0..2 {
        let (here, there, outside) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let allowed = replacing(there.path());
        let d = here.path().join("d");
        fs::create_dir(&d).unwrap();
        for i in 0..100 {
            fs::write(d.join(format!("{i}")), bytes(1000 + i)).unwrap();
        }
        fs::create_dir(there.path().join("d")).unwrap();
        let files = found(&d, "d");
        let mut job = Job::new(&Batch::content(&files, true), &allowed, &spec(false)).unwrap();
        let mut batch = Batch::put(files, true, &mut |q| Ok(job.ask(q))).unwrap();
        let swap = || {
            fs::rename(there.path().join("d"), there.path().join("moved")).unwrap();
            symlink(outside.path(), there.path().join("d")).unwrap();
        };
        if moment == 0 {
            swap();
        }
        if batch.agree(&mut |q| Ok(job.ask(q))).is_ok() {
            if moment == 1 {
                swap();
            }
            let _ = agreed(&mut job, &mut batch, false, Fault::Nothing);
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "{moment}");
    }
}

/// A copy to a server, both of which have looked.
fn looked(files: &[(Item, Where)], allowed: &Allowed) -> (Job, Batch) {
    let mut job = Job::new(&Batch::content(files, true), allowed, &spec(false)).unwrap();
    let batch = Batch::put(files.to_vec(), true, &mut |q| Ok(job.ask(q))).unwrap();
    (job, batch)
}

/// Who only looks, as `--dry-run` does, disturbs nobody.
#[test]
fn a_look_at_a_copy_under_way_changes_nothing() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = allowed(there.path());
    let a = here.path().join("a");
    fs::write(&a, bytes(200_000)).unwrap();
    let files = one(&a, "x");
    let (mut job, mut batch) = looked(&files, &allowed);
    batch.agree(&mut |q| Ok(job.ask(q))).unwrap();
    let (_job, dry) = looked(&files, &allowed);
    assert_eq!(dry.facts()[0].failure, None);
    assert!(!job.is_superseded());
    let (_, facts) = agreed(&mut job, &mut batch, false, Fault::Nothing).unwrap();
    assert_eq!(facts[0].failure, None);
    assert!(fs::read(there.path().join("x")).unwrap() == bytes(200_000));
}

/// The same copy begun again takes the place of the first, and goes on with what that has brought.
#[test]
fn the_same_copy_goes_on_where_the_first_is() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = allowed(there.path());
    let a = here.path().join("a");
    fs::write(&a, bytes(200_000)).unwrap();
    let files = one(&a, "x");
    let (mut job, mut batch) = looked(&files, &allowed);
    batch.agree(&mut |q| Ok(job.ask(q))).unwrap();
    agreed(&mut job, &mut batch, false, Fault::Cut(100)).unwrap();
    let (mut again, mut batch) = looked(&files, &allowed);
    let mut first = Some(job);
    let mut ask = |q: &Question| {
        // Its session ends when it is told.
        first.take_if(|first| first.is_superseded());
        Ok(again.ask(q))
    };
    batch.agree(&mut ask).unwrap();
    assert!(first.is_none(), "it was told");
    let (sent, facts) = agreed(&mut again, &mut batch, false, Fault::Nothing).unwrap();
    assert_eq!(sent, 200_000 - 131_072, "{facts:?}");
    assert!(fs::read(there.path().join("x")).unwrap() == bytes(200_000));
}

/// Names of what failed.
fn failed(facts: &[Fact]) -> Vec<&str> {
    let failed = facts.iter().filter(|fact| fact.failure.is_some());
    failed.map(|fact| fact.name.as_str()).collect()
}

/// Something else is where a directory of the copy goes: before the look, or only after it.
#[test]
fn what_is_in_the_way_of_a_directory_costs_what_lies_below_it() {
    for moment in ["before", "after"] {
        for obstacle in ["file", "link", "closed"] {
            let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let allowed = allowed(there.path());
            let d = here.path().join("d");
            fs::create_dir_all(d.join("sub/deep")).unwrap();
            for name in ["a", "sub/c", "sub/deep/e", "z"] {
                fs::write(d.join(name), bytes(70_000)).unwrap();
            }
            let sub = there.path().join("d/sub");
            let obstruct = || {
                fs::create_dir_all(there.path().join("d")).unwrap();
                match obstacle {
                    "file" => fs::write(&sub, "x").unwrap(),
                    "link" => symlink("/etc", &sub).unwrap(),
                    _ => {
                        fs::create_dir(&sub).unwrap();
                        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o500);
                        fs::set_permissions(&sub, mode).unwrap();
                    }
                }
            };
            if moment == "before" {
                obstruct();
            }
            let (mut job, mut batch) = looked(&found(&d, "d"), &allowed);
            if moment == "after" {
                obstruct();
            }
            if obstacle == "closed" && fs::create_dir(sub.join("own")).is_ok() {
                eprintln!("skipped: this user may write everywhere");
                continue;
            }
            let (sent, facts) = through(&mut job, &mut batch, false, Fault::Nothing).unwrap();
            let below = ["d/sub", "d/sub/c", "d/sub/deep", "d/sub/deep/e"];
            let below = &below[usize::from(obstacle == "closed")..];
            assert_eq!(failed(&facts), below, "{moment} {obstacle}: {facts:?}");
            if moment == "before" {
                assert_eq!(sent, 140_000, "{obstacle}");
            }
            for name in ["a", "z"] {
                let copy = fs::read(there.path().join("d").join(name)).unwrap();
                assert!(copy == bytes(70_000), "{moment} {obstacle} {name}");
            }
        }
    }
}

/// In the middle of a copy of many files one of the unfinished ones becomes a link.
#[test]
fn a_part_that_becomes_a_link_costs_its_file() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let d = here.path().join("d");
    fs::create_dir(&d).unwrap();
    for i in 0..101 {
        fs::write(d.join(format!("{i:03}")), bytes(1000 + i)).unwrap();
    }
    let (mut job, mut batch) = looked(&found(&d, "d"), &allowed(there.path()));
    batch.agree(&mut |q| Ok(job.ask(q))).unwrap();
    let part = there.path().join("d/007.part");
    fs::remove_file(&part).unwrap();
    symlink("/etc/passwd", &part).unwrap();
    let (_, facts) = agreed(&mut job, &mut batch, false, Fault::Nothing).unwrap();
    assert_eq!(failed(&facts), ["d/007"]);
    let why = facts.iter().find_map(|fact| fact.failure.clone()).unwrap();
    assert!(why.contains("d/007: symbolic links"), "{why}");
    for i in (0..101).filter(|i| *i != 7) {
        let copy = fs::read(there.path().join(format!("d/{i:03}"))).unwrap();
        assert!(copy == bytes(1000 + i), "{i}");
    }
}

/// A source of which the beginning has been read is changed, and its modification time put back.
#[test]
fn a_source_that_is_changed_unseen_makes_no_mixture() {
    let change = |path: &Path| {
        let before = fs::metadata(path).unwrap().modified().unwrap();
        let mut changed = bytes(200_000);
        changed[5] ^= 1;
        changed[150_000] ^= 1;
        fs::write(path, changed).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(before).unwrap();
    };
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let allowed = allowed(there.path());
    let a = here.path().join("a");
    fs::write(&a, bytes(200_000)).unwrap();
    let files = one(&a, "x");
    put(&files, &allowed, Fault::Cut(100)).unwrap();
    let (mut job, mut batch) = looked(&files, &allowed);
    change(&a);
    let (_, facts) = through(&mut job, &mut batch, false, Fault::Nothing).unwrap();
    let why = facts[0].failure.clone().unwrap_or_default();
    assert!(why.contains("changed"), "{facts:?}");
    assert_eq!(
        (facts[0].damaged, facts[0].sent),
        (0, 0),
        "nothing is mended"
    );
    assert!(!there.path().join("x").exists());
    // And from the server.
    fs::write(there.path().join("y"), bytes(200_000)).unwrap();
    get(&["y"], below(here.path(), 0), &allowed, Fault::Cut(100)).unwrap();
    let names = ["y".to_owned()];
    let content = Content::Fetch {
        names: names.to_vec(),
    };
    let mut job = Job::new(&content, &allowed, &spec(true)).unwrap();
    let base = below(here.path(), 0);
    let mut batch = Batch::get(&names, base, false, &mut |q| Ok(job.ask(q))).unwrap();
    change(&there.path().join("y"));
    let (_, facts) = through(&mut job, &mut batch, true, Fault::Nothing).unwrap();
    let why = facts[0].failure.clone().unwrap_or_default();
    assert!(why.contains("changed"), "{facts:?}");
    assert!(!here.path().join("y").exists());
}

/// A file of the server that is gone when it is read is not called changed.
#[test]
fn a_file_that_cannot_be_read_is_told_with_its_reason() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let d = there.path().join("d");
    fs::create_dir(&d).unwrap();
    for name in ["a", "b"] {
        fs::write(d.join(name), bytes(1000)).unwrap();
    }
    let names = ["d".to_owned()];
    let content = Content::Fetch {
        names: names.to_vec(),
    };
    let mut job = Job::new(&content, &allowed(there.path()), &spec(true)).unwrap();
    let base = below(here.path(), 0);
    let mut batch = Batch::get(&names, base, false, &mut |q| Ok(job.ask(q))).unwrap();
    fs::remove_file(d.join("b")).unwrap();
    let (_, facts) = through(&mut job, &mut batch, true, Fault::Nothing).unwrap();
    let why = facts[2].failure.clone().unwrap_or_default();
    assert_eq!(why, "at the server: d/b: it is no longer there");
    assert!(fs::read(here.path().join("d/a")).unwrap() == bytes(1000));
}

/// What somebody else may do to an unfinished file.
fn meddle(part: &Path, cut: bool) {
    let mut file = fs::File::options().write(true).open(part).unwrap();
    let before = file.metadata().unwrap().modified().unwrap();
    match cut {
        true => file.set_len(10_000).unwrap(),
        false => {
            use std::io::{Seek, SeekFrom, Write};
            file.seek(SeekFrom::Start(70_000)).unwrap();
            file.write_all(b"not of the copy").unwrap();
        }
    }
    file.set_modified(before).unwrap();
}

/// Some segments, in order.
fn carry(from: &mut Carried, to: &mut Carried, segments: std::ops::Range<u64>) {
    let (mut from, mut to) = (from.hooks(), to.hooks());
    let mut buffer = vec![0; 1448];
    for n in segments {
        let length = from.sources[0].1.fill(n, &mut buffer).unwrap();
        if length > 0 {
            to.sinks[0].1.take(n, &buffer[..length]).unwrap();
        }
    }
}

/// Somebody else writes into an unfinished file, or cuts it, between two writes of the copy: the
/// checksum is not that of bytes that were once on their way, and what is wrong comes again.
#[test]
fn an_unfinished_file_that_others_write_into_is_read_back() {
    let size = 2_000_000;
    for (reverse, cut) in [(false, false), (false, true), (true, false), (true, true)] {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let allowed = allowed(there.path());
        let (a, c) = (here.path().join("a"), here.path().join("c"));
        fs::write(&a, bytes(size)).unwrap();
        fs::write(there.path().join("b"), bytes(size)).unwrap();
        let names = ["b".to_owned()];
        let content = Content::Fetch {
            names: names.to_vec(),
        };
        let (mut job, mut batch) = match reverse {
            false => looked(&one(&a, "x"), &allowed),
            true => {
                let mut job = Job::new(&content, &allowed, &spec(true)).unwrap();
                let base = Base::Exact(c.clone());
                let batch = Batch::get(&names, base, false, &mut |q| Ok(job.ask(q)));
                (job, batch.unwrap())
            }
        };
        batch.agree(&mut |q| Ok(job.ask(q))).unwrap();
        let mut ask = |q: &Question| Ok(job.ask(q));
        let mut mine = batch.begin(&mut spec(reverse), &mut ask).unwrap();
        let mut theirs = job.begin(&mut spec(reverse)).unwrap();
        let (from, to, part) = match reverse {
            false => (&mut mine, &mut theirs, there.path().join("x.part")),
            true => (&mut theirs, &mut mine, here.path().join("c.part")),
        };
        carry(from, to, 0..700);
        while fs::metadata(&part).unwrap().len() < 700_000 {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        meddle(&part, cut);
        carry(from, to, 700..1400);
        job.ended(theirs);
        batch.ended(Some(mine), &mut |q| Ok(job.ask(q))).unwrap();
        assert_eq!(batch.missing(), 0, "all of it came once");
        batch.finish(&mut |q| Ok(job.ask(q))).unwrap();
        let fact = &batch.facts()[0];
        assert!(
            fact.damaged >= 65_536 && fact.damaged < size as u64,
            "{fact:?}"
        );
        assert_eq!(fact.digest, None, "it has no name yet");
        drop((job, batch));
        let again = match reverse {
            false => put(&one(&a, "x"), &allowed, Fault::Nothing),
            true => get(&["b"], Base::Exact(c.clone()), &allowed, Fault::Nothing),
        };
        let (sent, facts) = again.unwrap();
        assert!(sent > 0 && sent < size as u64, "{sent}: {facts:?}");
        let copy = if reverse { c } else { there.path().join("x") };
        assert!(fs::read(copy).unwrap() == bytes(size));
    }
}

/// The same after the last byte has come and was found right.
#[test]
fn an_unfinished_file_that_others_write_into_at_last_is_not_published() {
    for cut in [false, true] {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let allowed = allowed(there.path());
        let a = here.path().join("a");
        fs::write(&a, bytes(200_000)).unwrap();
        let (mut job, mut batch) = looked(&one(&a, "x"), &allowed);
        batch.agree(&mut |q| Ok(job.ask(q))).unwrap();
        let mut ask = |q: &Question| Ok(job.ask(q));
        let mut mine = batch.begin(&mut spec(false), &mut ask).unwrap();
        let mut theirs = job.begin(&mut spec(false)).unwrap();
        carry(&mut mine, &mut theirs, 0..140);
        job.ended(theirs);
        while job.ask(&Question::Roots(0)) == Answer::Busy {
            std::thread::yield_now();
        }
        meddle(&there.path().join("x.part"), cut);
        batch.ended(Some(mine), &mut |q| Ok(job.ask(q))).unwrap();
        batch.finish(&mut |q| Ok(job.ask(q))).unwrap();
        let why = batch.facts()[0].failure.clone().unwrap_or_default();
        assert!(why.contains("somebody else"), "{why}");
        assert!(!there.path().join("x").exists());
        drop((job, batch));
        let (sent, _) = put(&one(&a, "x"), &allowed, Fault::Nothing).unwrap();
        assert_eq!(sent, if cut { 200_000 } else { 65_536 });
        assert!(fs::read(there.path().join("x")).unwrap() == bytes(200_000));
    }
}
