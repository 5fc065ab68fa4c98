//! The reference page and the sample policies.

use std::fs;
use std::path::{Path, PathBuf};

use fullpipe_policy::{Policy, reference};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_reference_page_is_made_from_the_keys() {
    let file = root().join("docs/policy.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, reference()).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap();
    assert!(
        written == reference(),
        "docs/policy.md is out of date: UPDATE_DOCS=1 cargo test -p fullpipe-policy"
    );
}

#[test]
fn the_sample_policies_are_valid() {
    let folder = root().join("contrib/policies");
    let mut read = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|e| e == "toml") {
            Policy::load(&file).unwrap_or_else(|why| panic!("{why}"));
            read += 1;
        }
    }
    assert!(read >= 3, "{read} sample policies");
}

#[test]
fn the_page_shows_a_valid_policy() {
    let page = reference();
    let text = page.split("```toml\n").nth(1).unwrap();
    let text = text.split("```").next().unwrap();
    let source = fullpipe_policy::Source {
        name: "docs/policy.md".to_owned(),
        text: text.to_owned(),
    };
    let policy = Policy::parse(&[source]).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(policy.compiled.rules.len(), 1);
}
