//! What the search has found and is kept: the simulator against the kernel's frozen numbers.

use fullpipe_calibrate::fuzz::{corpus_dir, disagrees, read_corpus};

#[test]
fn the_corpus_does_what_is_expected() {
    let corpus = read_corpus(&corpus_dir()).unwrap();
    assert!(!corpus.is_empty());
    let mut wrong = Vec::new();
    for (path, kept) in corpus {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let trial = kept.check();
        match (disagrees(&trial), kept.disagrees) {
            (Some(now), expected) if now == expected => {}
            (Some(false), _) => wrong.push(format!(
                "{name} agrees now: write `expect: agrees` and what was mended as its cause"
            )),
            (Some(true), _) => wrong.push(format!("{name} agreed before: {trial:?}")),
            (None, _) => wrong.push(format!("{name}: {trial:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
