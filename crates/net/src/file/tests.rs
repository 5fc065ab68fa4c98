//! A file through a source and a sink, with a network between them that loses the order.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use blake3::Hasher;

use super::*;
use crate::payload::{Sink, Source};

const MSS: usize = 1448;

fn bytes(size: usize) -> Vec<u8> {
    (0..size)
        .map(|i| (i.wrapping_mul(2654435761) >> 7) as u8)
        .collect()
}

fn open(path: &Path, source: Identity) -> Part {
    Part::open(
        Place::local(path).unwrap().into(),
        source,
        &Room::default(),
        &Cancel::default(),
    )
    .unwrap()
}

/// Moves segments `which` of what is missing, in that order.
fn carry(data: &Path, part: Part, which: impl Fn(u64) -> Vec<u64>) -> Part {
    let file = fs::File::open(data).unwrap();
    let size = file.metadata().unwrap().len();
    let prefix = part.prefix();
    let hasher = hashed(&file, prefix, &Cancel::default()).unwrap().unwrap();
    assert_eq!(hasher.finalize(), part.digest());
    let (mut from, _reading) = source(file, prefix, hasher, None).unwrap();
    let (mut to, writing) = part.receive(MSS as u32).unwrap();
    let mut buffer = vec![0; MSS];
    for n in which((size - prefix).div_ceil(MSS as u64)) {
        let length = from.fill(n, &mut buffer).unwrap();
        while to.room(0).unwrap().is_some_and(|room| room < 1448) {
            std::thread::yield_now();
        }
        to.take(n, &buffer[..length]).unwrap();
    }
    drop(to);
    writing.finish().unwrap()
}

/// Blocks of ten in reverse, so that there are always holes.
fn shuffled(count: u64) -> Vec<u64> {
    let blocks = (0..count).step_by(10);
    blocks.flat_map(|b| (b..count.min(b + 10)).rev()).collect()
}

#[test]
fn a_file_arrives_whole_whatever_the_order() {
    for size in [0, 1, MSS, 10 * MSS, 3_000_001] {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::write(&from, bytes(size)).unwrap();
        let identity = Identity::of(&fs::metadata(&from).unwrap());
        let part = carry(&from, open(&to, identity), shuffled);
        assert_eq!(part.prefix(), size as u64);
        assert!(!to.exists(), "nothing has the final name before the end");
        part.publish(blake3::hash(&bytes(size)), false).unwrap();
        assert_eq!(fs::read(&to).unwrap(), bytes(size));
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            2,
            "nothing is left"
        );
    }
}

#[test]
fn a_transfer_goes_on_where_it_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let size = 2_000_000;
    fs::write(&from, bytes(size)).unwrap();
    let identity = Identity::of(&fs::metadata(&from).unwrap());
    // Everything but segment 500 arrives: what lies behind the hole is sent again.
    let all_but_one = |count| (0..count).filter(|n| *n != 500).collect();
    drop(carry(&from, open(&to, identity), all_but_one));
    let part = open(&to, identity);
    assert_eq!(part.prefix(), 500 * MSS as u64);
    let sent = std::cell::Cell::new(0);
    let part = carry(&from, part, |count| {
        sent.set(count);
        shuffled(count)
    });
    assert_eq!(sent.get(), (size as u64).div_ceil(MSS as u64) - 500);
    part.publish(blake3::hash(&bytes(size)), false).unwrap();
    assert_eq!(fs::read(&to).unwrap(), bytes(size));
}

#[test]
fn another_source_or_a_damaged_part_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    fs::write(&from, bytes(500_000)).unwrap();
    let identity = Identity::of(&fs::metadata(&from).unwrap());
    let half = |count| (0..count / 2).collect();
    drop(carry(&from, open(&to, identity), half));
    let kept = open(&to, identity).prefix();
    assert!(kept > 200_000);
    let newer = Identity {
        changed: identity.changed + 1,
        ..identity
    };
    assert_eq!(open(&to, newer).prefix(), 0);
    assert_eq!(open(&to, identity).prefix(), kept);
    let part = dir.path().join("to.part");
    let mut damaged = fs::read(&part).unwrap();
    damaged[1000] ^= 1;
    fs::write(&part, &damaged).unwrap();
    assert_eq!(open(&to, identity).prefix(), 0);
    fs::write(&part, &damaged[..100]).unwrap();
    assert_eq!(open(&to, identity).prefix(), 0);
}

#[test]
fn a_wrong_checksum_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    fs::write(&from, bytes(10_000)).unwrap();
    let identity = Identity::of(&fs::metadata(&from).unwrap());
    let part = carry(&from, open(&to, identity), shuffled);
    let error = part.publish(blake3::hash(b"other"), false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "only the source is left"
    );
}

#[test]
fn an_incomplete_file_is_not_published() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    fs::write(&from, bytes(10_000)).unwrap();
    let identity = Identity::of(&fs::metadata(&from).unwrap());
    let part = carry(&from, open(&to, identity), |_| vec![0, 1, 3]);
    let error = part
        .publish(blake3::hash(&bytes(10_000)), false)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    assert!(!to.exists() && dir.path().join("to.part").exists());
}

#[test]
fn segments_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let identity = Identity {
        size: 10_000,
        changed: 0,
    };
    let part = open(&dir.path().join("to"), identity);
    let (mut sink, _writing) = part.receive(MSS as u32).unwrap();
    for (seq, length) in [
        (0, 100),
        (6, MSS),
        (7, 1),
        (u64::MAX, MSS),
        (u64::MAX / 1448, 1),
    ] {
        let error = sink.take(seq, &vec![0; length]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{seq}");
    }
    sink.take(6, &vec![0; 10_000 - 6 * MSS]).unwrap();
}

#[test]
fn more_than_the_disk_holds_is_refused_at_once_and_takes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for size in [1 << 50, 1 << 60] {
        let identity = Identity { size, changed: 0 };
        let place = Place::local(&dir.path().join("to")).unwrap();
        let opened = Part::open(place.into(), identity, &Room::default(), &Cancel::default());
        let error = opened.unwrap_err();
        let kinds = [ErrorKind::StorageFull, ErrorKind::FileTooLarge];
        assert!(kinds.contains(&error.kind()), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn what_somebody_else_has_under_our_names_is_left_alone() {
    let identity = Identity {
        size: 100,
        changed: 0,
    };
    for (ending, text) in [
        (".part", "mine"),
        (".part.state", "mine"),
        (".part.state", "fullpipe-par"),
        (".part.state", "fullpipe-parts of a whole"),
        (".part.state~", "mine"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let foreign = dir.path().join(format!("to{ending}"));
        fs::write(&foreign, text).unwrap();
        let place = || Place::local(&dir.path().join("to")).unwrap();
        let is_lost = "fullpipe-part ".starts_with(text);
        let opened = Part::open(
            place().into(),
            identity,
            &Room::default(),
            &Cancel::default(),
        );
        // The first letters of a state are what a loss of power leaves of one.
        assert_eq!(opened.is_ok(), is_lost, "{ending} {text}");
        if let Err(error) = opened {
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
            assert!(
                error.to_string().contains(&format!("`{ending}`")),
                "{error}"
            );
            assert_eq!(fs::read(&foreign).unwrap(), text.as_bytes());
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
    }
    // A link is not replaced by what it leads to.
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("to.part.state");
    std::os::unix::fs::symlink("elsewhere", &link).unwrap();
    let place = Place::local(&dir.path().join("to")).unwrap();
    let opened = Part::open(place.into(), identity, &Room::default(), &Cancel::default());
    assert_eq!(opened.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert!(link.is_symlink());
}

#[test]
fn hashing_stops_at_the_end_of_a_file_and_once_cancelled() {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, b"abc").unwrap();
    let cancel = Cancel::default();
    assert_eq!(
        hashed(&file, 3, &cancel).unwrap().unwrap().finalize(),
        blake3::hash(b"abc")
    );
    assert_eq!(
        hashed(&file, 0, &cancel).unwrap().unwrap().finalize(),
        Hasher::new().finalize()
    );
    assert!(hashed(&file, 4, &cancel).unwrap().is_none());
    cancel.cancel();
    let error = hashed(&file, 3, &cancel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
}
