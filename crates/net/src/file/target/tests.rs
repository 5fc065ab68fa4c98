use std::os::unix::fs::FileExt;

use super::*;
use crate::file::plan::Plan;

/// Of copies whose locks are not kept: the file of the first is replaced twice, and the system
/// gives its number to the last one's. Neither writes into the other's, nor publishes it.
#[test]
fn a_number_that_is_given_again_makes_no_file_ours() {
    let dir = tempfile::tempdir().unwrap();
    let place = Arc::new(Place::local(&dir.path().join("x")).unwrap());
    let begun = |changed, owner| {
        let source = Identity { size: 4, changed };
        let mut target = Target::new(Arc::clone(&place), source);
        let mut before = target.begin(owner).unwrap();
        target.reserve(&mut before, false).unwrap();
        target
    };
    let mut first = begun(1, 1);
    let mut last = begun(2, 2);
    first.key = last.key;
    let error = first.open().unwrap_err();
    assert!(error.to_string().contains("x.part"), "{error}");
    let mut plan = Plan::default();
    plan.push(0, &[(0, 4)]);
    let (mut sink, receiving) = receive_all(vec![first], plan, 1448).unwrap();
    crate::payload::Sink::take(&mut sink, 0, b"mine").unwrap();
    drop(sink);
    let (mut targets, written) = receiving.finish().unwrap();
    written.unwrap_err();
    targets[0].publish(false).unwrap_err();
    let part = last.open().unwrap();
    assert_eq!(part.metadata().unwrap().len(), 0, "nothing was written");
    assert!(last.is_ours());
    drop(part);
    last.blocks.feed(0, b"last");
    last.open().unwrap().write_all_at(b"last", 0).unwrap();
    last.publish(false).unwrap();
    assert_eq!(std::fs::read(dir.path().join("x")).unwrap(), b"last");
}
