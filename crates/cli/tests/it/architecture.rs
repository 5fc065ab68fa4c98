//! ARCHITECTURE.md is the house: its diagram and tables come from the workspace, every dependency
//! has its reason, and every file and function that the hand-written pages name exists.
//!
//! `UPDATE=1 cargo test -p fullpipe --test it architecture` writes the generated parts anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const PAGE: &str = "ARCHITECTURE.md";
const REMEDY: &str = "UPDATE=1 cargo test -p fullpipe --test it architecture";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// A crate of the workspace.
struct Member {
    /// Folder of its manifest.
    folder: PathBuf,
    about: String,
    never: String,
    /// Folders' names of the members that it depends on, tests left out.
    members: BTreeSet<String>,
    /// Its other dependencies, tests left out.
    others: BTreeSet<String>,
    /// Dependencies of its tests alone.
    tests: BTreeSet<String>,
}

/// By the name of the folder, which is how the page calls them.
fn workspace() -> BTreeMap<String, Member> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(member).collect()
}

fn member(package: &Value) -> (String, Member) {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    let folder = manifest.parent().unwrap().to_owned();
    let mut member = Member {
        about: package["description"]
            .as_str()
            .map_or_else(|| about(&folder.join("src/lib.rs")), str::to_owned),
        never: package["metadata"]["fullpipe"]["never"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        members: BTreeSet::new(),
        others: BTreeSet::new(),
        tests: BTreeSet::new(),
        folder,
    };
    for dependency in package["dependencies"].as_array().unwrap() {
        let name = dependency["name"].as_str().unwrap().to_owned();
        match (dependency["kind"].as_str(), dependency["path"].as_str()) {
            (Some("dev"), Some(_)) => {}
            (Some("dev"), None) => drop(member.tests.insert(name)),
            (_, Some(path)) => drop(member.members.insert(last(Path::new(path)))),
            (_, None) => drop(member.others.insert(name)),
        }
    }
    (last(&member.folder), member)
}

fn last(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Who is reached from `from` in at least one step.
fn reached(all: &BTreeMap<String, Member>, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        for next in &all[name].members {
            if found.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

/// Crates in an order in which each comes after all that it depends on.
fn floors(all: &BTreeMap<String, Member>) -> Vec<&String> {
    let mut names: Vec<_> = all.keys().collect();
    names.sort_by_key(|name| (reached(all, name).len(), *name));
    names
}

/// The arrows that do not follow from others.
fn diagram(all: &BTreeMap<String, Member>) -> String {
    let mut text = "```mermaid\ngraph RL\n".to_owned();
    for name in floors(all) {
        let members = &all[name].members;
        let follows = |m: &String| members.iter().any(|o| reached(all, o).contains(m));
        let arrows: Vec<_> = members.iter().filter(|m| !follows(m)).cloned().collect();
        if !arrows.is_empty() {
            writeln!(text, "  {name} --> {}", arrows.join(" & ")).unwrap();
        }
    }
    text + "```\n"
}

fn crates(all: &BTreeMap<String, Member>) -> String {
    let mut text = "| crate | what it is | what it never does |\n|---|---|---|\n".to_owned();
    for name in floors(all) {
        let Member { about, never, .. } = &all[name];
        writeln!(text, "| [`{name}`](#{name}) | {about} | {never} |").unwrap();
    }
    text
}

/// One table per crate: its modules, by the first sentence of their documentation.
fn modules(all: &BTreeMap<String, Member>) -> String {
    let mut text = String::new();
    for name in floors(all) {
        write!(
            text,
            "### {name}\n\n| module | what is in it |\n|---|---|\n"
        )
        .unwrap();
        let source = all[name].folder.join("src");
        let mut entries: Vec<_> = fs::read_dir(&source)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        entries.sort_by_key(|path| path.file_stem().unwrap().to_owned());
        for path in entries {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let (file, shown) = match path.is_dir() {
                true => (path.join("mod.rs"), format!("{stem}/")),
                false => (path.clone(), format!("{stem}.rs")),
            };
            let is_rust = file.extension().is_some_and(|e| e == "rs") && file.exists();
            if is_rust && !["lib", "main", "tests"].contains(&stem) {
                writeln!(text, "| `{shown}` | {} |", about(&file)).unwrap();
            }
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

/// The first sentence of a file's documentation, without links and final stop.
fn about(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let words: Vec<_> = text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .map(|line| line[3..].trim())
        .take_while(|line| !line.is_empty())
        .collect();
    let words = words.join(" ") + " ";
    assert!(words.len() > 1, "{}: no documentation", file.display());
    let sentence = words
        .split_once(". ")
        .map_or(words.trim(), |(first, _)| first);
    let mut out = String::new();
    let mut rest = sentence;
    // `[text](target)` and `[text]` lose all but the text.
    while let Some((before, link)) = rest.split_once('[') {
        let Some((inner, after)) = link.split_once(']') else {
            break;
        };
        out = out + before + inner;
        rest = match after.strip_prefix('(').and_then(|a| a.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    (out + rest).replace('|', "\\|")
}

/// `text` with the lines between the marks of `part` replaced.
fn with(text: &str, part: &str, body: &str) -> String {
    let start = format!("<!-- generated: {part} -->\n");
    let (before, rest) = text.split_once(&start).expect(part);
    let (_, after) = rest.split_once("<!-- end -->").expect(part);
    format!("{before}{start}\n{body}\n<!-- end -->{after}")
}

#[test]
fn the_page_is_the_house() {
    let all = workspace();
    let old = page(PAGE);
    let mut new = with(&old, "diagram", &diagram(&all));
    new = with(&new, "crates", &crates(&all));
    new = with(&new, "modules", &modules(&all));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(root().join(PAGE), new).unwrap();
        return;
    }
    let differing = old.lines().zip(new.lines()).find(|(old, new)| old != new);
    assert!(
        old == new,
        "{PAGE} is not the workspace any more; write it with: {REMEDY}\nfirst difference: {differing:?}"
    );
}

/// First words in backticks of the rows of a table, and all words in backticks of other lines.
fn ticked(lines: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in lines.lines() {
        let cell = match line.strip_prefix('|') {
            Some(row) => row.split('|').next().unwrap(),
            None => line,
        };
        found.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    found
}

#[test]
fn every_dependency_has_its_reason_and_every_reason_a_dependency() {
    let all = workspace();
    let page = page(PAGE);
    let (_, section) = page.split_once("\n## Dependencies\n").unwrap();
    let rows: String = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let used: BTreeSet<_> = all.values().flat_map(|m| m.others.clone()).collect();
    assert_eq!(
        ticked(&rows),
        used,
        "{PAGE}, `Dependencies`: rows (left) and dependencies of the manifests (right) differ"
    );
    let (_, tests) = section.split_once("\nOnly tests use ").unwrap();
    let tests = tests.split("\n\n").next().unwrap();
    let only: BTreeSet<_> = all.values().flat_map(|m| m.tests.clone()).collect();
    let only: BTreeSet<_> = only.difference(&used).cloned().collect();
    assert_eq!(
        ticked(tests),
        only,
        "{PAGE}, `Only tests use`: the page (left) and the manifests (right) differ"
    );
}

/// Paths, below the root, of all files that a reader of the repository sees.
fn files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = last(&path);
        if name.starts_with('.') || ["target", "node_modules"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        }
        found.push(path.to_str().unwrap().to_owned());
    }
}

#[test]
fn what_the_pages_name_exists() {
    let mut all = Vec::new();
    files(&root(), &mut all);
    let code: String = all
        .iter()
        .filter(|path| path.ends_with(".rs"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let mut dead = Vec::new();
    for name in [PAGE, "README.md", "CONTRIBUTING.md", "SECURITY.md"] {
        let text = page(name);
        for (number, line) in text.lines().enumerate() {
            // A row of a generated table is right by another test.
            let cells = line.split('`').skip(1).step_by(2);
            let targets = line.split("](").skip(1).filter_map(|l| l.split(')').next());
            for word in cells.chain(targets.filter(|t| !t.contains("://"))) {
                if !exists(word, &all, &code) {
                    dead.push(format!("{name}:{}: `{word}` is not there", number + 1));
                }
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// Links of the pages in `docs/` lead to files of the repository.
#[test]
fn links_of_the_pages_lead_somewhere() {
    let mut all = Vec::new();
    files(&root().join("docs"), &mut all);
    let mut dead = Vec::new();
    for path in all.iter().filter(|path| path.ends_with(".md")) {
        let text = fs::read_to_string(path).unwrap();
        let folder = Path::new(path).parent().unwrap();
        for (number, line) in text.lines().enumerate() {
            let targets = line
                .split("](")
                .skip(1)
                .filter_map(|l| l.split([')', '#']).next());
            let inside = targets.filter(|t| !t.is_empty() && !t.contains(':'));
            for target in inside.filter(|target| !folder.join(target).exists()) {
                dead.push(format!("{path}:{}: {target}", number + 1));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// What is attributed to others must be where the attribution says.
#[test]
fn what_the_notices_name_exists() {
    const TOP: [&str; 5] = ["crates/", "calibrate/", "bench/", "contrib/", "web/"];
    for name in ["NOTICE", "docs/provenance.md"] {
        let text = page(name);
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_./-".contains(c)));
        let words = words.map(|word| word.trim_end_matches(['.', '/']));
        let paths: Vec<_> = words
            .filter(|word| TOP.iter().any(|top| word.starts_with(top)))
            .collect();
        assert!(paths.len() > 3, "{name} names no files");
        for path in paths {
            assert!(root().join(path).exists(), "{name}: {path} is not there");
        }
    }
}

/// Whether a file, or a function or type written as `Type::name`, exists; other words always do.
fn exists(word: &str, files: &[String], code: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let word = word.split('#').next().unwrap().trim_end_matches('/');
    if let Some((of, name)) = word.split_once("::").filter(|(of, _)| *of != "gentle") {
        let name = name.split('(').next().unwrap();
        let of = of.rsplit("::").next().unwrap();
        let known = |what: &str| code.contains(&format!("{what} {of}"));
        let is_type = ["struct", "enum", "trait", "mod"]
            .iter()
            .any(|what| known(what));
        return is_type && code.contains(name);
    }
    let is_file = [".rs", ".md", ".py", ".sh", ".toml", ".lua", ".ts"]
        .iter()
        .any(|end| word.ends_with(end));
    let is_example = word.starts_with("my-") || word.contains("gentle");
    if !is_file || is_example || !word.chars().all(plain) {
        return true;
    }
    files.iter().any(|file| file.ends_with(&format!("/{word}")))
}
