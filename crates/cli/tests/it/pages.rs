//! What the hand-written pages show works: command lines parse, scenarios are valid.

use std::fs;
use std::path::Path;

use crate::process;

const PAGES: [&str; 9] = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/captures.md",
    "docs/grounds.md",
    "docs/serve.md",
    "docs/trace.md",
    "docs/wire.md",
    "fuzz/README.md",
];

/// Fenced blocks of a page: language, number of the first line, text.
fn blocks(page: &str) -> Vec<(String, usize, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    let text = fs::read_to_string(path).unwrap();
    let mut found = Vec::new();
    let mut open: Option<(String, usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        match (line.trim().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(language), None) => open = Some((language.to_owned(), number + 2, String::new())),
            (None, Some((_, _, body))) => *body += &(line.to_owned() + "\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a block without an end");
    found
}

/// The words of a command of the shell; quotes hold words together, `#` begins a comment.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in command.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            (' ', None) => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn every_command_of_the_pages_parses() {
    let mut seen = 0;
    for page in PAGES {
        for (language, first, body) in blocks(page) {
            if !["", "sh", "console"].contains(&language.as_str()) {
                continue;
            }
            for (at, line) in body.lines().enumerate() {
                // The prompt may name the host.
                let command = line.split_once("$ ").map_or(line, |(_, command)| command);
                if !command.trim_start().starts_with("fullpipe ") {
                    continue;
                }
                for command in command.split(" && ").flat_map(|c| c.split(" | ")) {
                    let Some(command) = command.trim().strip_prefix("fullpipe ") else {
                        continue;
                    };
                    // Flags and values before `--help` are read before help is given.
                    let mut args = words(command);
                    args.push("--help".to_owned());
                    let args: Vec<_> = args.iter().map(String::as_str).collect();
                    let run = process::fullpipe(Path::new("."), &args);
                    let at = first + at;
                    assert_eq!(
                        run.code, 0,
                        "{page}:{at}: fullpipe {command}\n{}",
                        run.stderr
                    );
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 10, "{seen} commands");
}

#[test]
fn every_whole_scenario_of_the_pages_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for page in PAGES {
        for (language, first, body) in blocks(page) {
            if language == "toml" && body.starts_with("name = ") {
                process::write(dir.path(), "page.toml", &body);
                let run = process::fullpipe(dir.path(), &["check", "page.toml"]);
                assert_eq!(run.code, 0, "{page}:{first}\n{}", run.stderr);
                seen += 1;
            }
        }
    }
    assert!(seen > 0);
}
