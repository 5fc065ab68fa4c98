//! The sender's parts own their state: read off the source.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(sources(&path)),
            false => all.push(path),
        }
    }
    all
}

fn sender() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sender")
}

/// The body of `struct name`, if `source` has it.
fn body<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let starts = ["<", " {"].map(|end| format!("struct {name}{end}"));
    let at = starts
        .iter()
        .find_map(|start| source.find(start.as_str()))?;
    let open = at + source[at..].find('{')?;
    Some(&source[open..open + source[open..].find("\n}")?])
}

fn is_about_the_sender(source: &str) -> bool {
    source.contains("> Sender<C>") || source.contains("for Sender<")
}

#[test]
fn only_the_stories_reach_into_the_sender() {
    let mut stories: Vec<String> = sources(&sender())
        .iter()
        .filter(|p| is_about_the_sender(&fs::read_to_string(p).unwrap()))
        .map(|p| p.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    stories.sort();
    assert_eq!(
        stories,
        [
            "ack.rs",
            "audit.rs",
            "congestion.rs",
            "mod.rs",
            "timeout.rs",
            "transmit.rs"
        ]
    );
}

#[test]
fn no_part_of_the_sender_shows_a_field() {
    let top = fs::read_to_string(sender().join("mod.rs")).unwrap();
    let sources: Vec<String> = sources(&sender())
        .iter()
        .map(|p| fs::read_to_string(p).unwrap())
        .collect();
    let mut parts = 0;
    for line in body(&top, "Sender").unwrap().lines() {
        let Some((name, kind)) = line.trim().trim_end_matches(',').split_once(": ") else {
            continue;
        };
        let kind = kind.trim_start_matches("Option<").trim_end_matches('>');
        let found: Vec<&str> = sources.iter().filter_map(|s| body(s, kind)).collect();
        let Some(part) = found.first() else {
            continue; // configuration, controller and times are not the sender's own
        };
        let shown = part.lines().find(|l| l.trim().starts_with("pub"));
        assert_eq!(shown, None, "a field of `{name}: {kind}`");
        parts += 1;
    }
    assert!(parts >= 14, "{parts} parts found");
}
