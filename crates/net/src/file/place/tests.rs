use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

use super::*;
use crate::file::name::Name;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

#[test]
fn links_are_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "x").unwrap();
    let dir = tempfile::tempdir().unwrap();
    symlink(outside.path(), dir.path().join("way")).unwrap();
    symlink(outside.path().join("secret"), dir.path().join("file")).unwrap();
    symlink(outside.path().join("new"), dir.path().join("put.part")).unwrap();
    let root = Directory::open(dir.path()).unwrap();
    assert!(root.place(&name("way/secret")).is_err());
    assert!(root.place(&name("file")).unwrap().open().is_err());
    assert!(root.place(&name("put")).unwrap().open_part().is_err());
    assert!(!outside.path().join("new").exists());
}

#[test]
fn a_copy_has_as_many_directories_open_as_it_leaves_to_others() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..30 {
        fs::create_dir(dir.path().join(format!("{i}"))).unwrap();
    }
    let root = Directory::open(dir.path()).unwrap().with_most_open(20);
    let take = |ways: &mut Ways| {
        let place = |i| ways.place(&root, &name(&format!("{i}/x")));
        let places: Vec<_> = (0..30).map(place).map_while(Result::ok).collect();
        let error = ways.place(&root, &name("29/x")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
        assert!(error.to_string().contains("20 is the most"), "{error}");
        places
    };
    let (mut first, mut second) = (Ways::default(), Ways::default());
    let of_first = take(&mut first);
    assert_eq!(of_first.len(), 10);
    assert_eq!(take(&mut second).len(), 5);
    // Another file of a directory that is open needs nothing.
    first.place(&root, &name("0/y")).unwrap();
    // What files still lie in stays open.
    drop(first);
    assert_eq!(take(&mut Ways::default()).len(), 2);
    drop((of_first, second));
    assert_eq!(take(&mut Ways::default()).len(), 10);
}

#[test]
fn pipes_and_directories_are_no_files() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    nix::unistd::mkfifo(&dir.path().join("p"), Mode::S_IRWXU).unwrap();
    let root = Directory::open(dir.path()).unwrap();
    for text in ["d", "p"] {
        let error = root.place(&name(text)).unwrap().open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
    }
}

#[test]
fn a_file_that_is_there_stays_unless_it_may_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x"), "old").unwrap();
    let place = Place::local(&dir.path().join("x")).unwrap();
    let mut part = place.open_part().unwrap();
    part.write_all(b"new").unwrap();
    let error = place.publish(&part, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(dir.path().join("x")).unwrap(), b"old");
    place.publish(&part, true).unwrap();
    assert_eq!(fs::read(dir.path().join("x")).unwrap(), b"new");
    let left = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 1, "nothing is left beside it");
}

/// A crash between a second name and the end of the first, as on file systems that cannot
/// rename to a free name only: the published file is not written to again.
#[test]
fn what_has_its_final_name_too_is_not_written_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let place = Place::local(&path).unwrap();
    place.open_part().unwrap().write_all(b"whole").unwrap();
    fs::hard_link(dir.path().join("x.part"), &path).unwrap();
    let mut part = place.open_part().unwrap();
    part.write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"whole");
    assert_eq!(fs::read(dir.path().join("x.part")).unwrap(), b"new");
}

#[test]
fn only_the_file_that_was_written_is_published() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::local(&dir.path().join("x")).unwrap();
    let part = place.open_part().unwrap();
    fs::remove_file(dir.path().join("x.part")).unwrap();
    for overwrite in [false, true] {
        fs::write(dir.path().join("x.part"), "foreign").unwrap();
        let error = place.publish(&part, overwrite).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(!place.exists().unwrap());
    }
}

#[test]
fn permissions_are_those_of_the_source_and_never_more() {
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let published = |bits: u16, overwrite: bool| {
        let place = Place::local(&path).unwrap().with_mode(bits);
        let part = place.open_part().unwrap();
        let unfinished = mode(&dir.path().join("x.part"));
        assert_eq!(
            unfinished & 0o177 & !u32::from(bits),
            0,
            "{unfinished:o} of {bits:o}"
        );
        place.publish(&part, overwrite).unwrap();
        mode(&path)
    };
    // Whatever the umask is, it takes nothing from the owner here.
    assert_eq!(published(0o600, false), 0o600);
    assert_eq!(
        published(0o644, true),
        0o600,
        "what is replaced was private"
    );
    fs::remove_file(&path).unwrap();
    assert_eq!(published(0o400, false), 0o400);
    fs::remove_file(&path).unwrap();
    assert_eq!(published(0o4755, false) & 0o7000, 0, "no set-user-ID");
}

/// Whatever the source allows its owner, what was not published can be gone on with.
#[test]
fn a_name_that_is_taken_leaves_the_unfinished_file_writable() {
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x"), "old").unwrap();
    let place = Place::local(&dir.path().join("x"))
        .unwrap()
        .with_mode(0o444);
    let part = place.open_part().unwrap();
    let before = mode(&dir.path().join("x.part"));
    let error = place.publish(&part, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(mode(&dir.path().join("x.part")), before);
    assert_eq!(before & 0o600, 0o600);
    fs::remove_file(dir.path().join("x")).unwrap();
    place.publish(&part, false).unwrap();
    assert_eq!(mode(&dir.path().join("x")) & 0o700, 0o400);
}

#[test]
fn one_transfer_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::local(&dir.path().join("x")).unwrap();
    let first = place.open_part().unwrap();
    let error = place.open_part().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    drop(first);
    place.open_part().unwrap();
}
