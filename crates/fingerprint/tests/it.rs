//! What a fingerprint depends on, and what not.

use std::fs;
use std::path::PathBuf;

use fullpipe_fingerprint::Sources;

/// A workspace of three crates: `top` needs `below`, and `beside` for its tests only.
struct Workspace(PathBuf);

impl Workspace {
    fn new(name: &str) -> Self {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&dir);
        let workspace = Self(dir);
        let top = "[package]\nname = \"x-top\"\n[dependencies]\nx-below.workspace = true\n\
                   libm = \"1\"\n[dev-dependencies]\nx-beside = { path = \"../beside\" }\n";
        workspace.write("top/Cargo.toml", top);
        workspace.write("top/src/lib.rs", "pub fn top() {}");
        let below = "[package]\nname = \"x-below\"\n[target.'cfg(unix)'.dependencies]\n\
                     x-top = { path = \"../top\" }\n";
        workspace.write("below/Cargo.toml", below);
        workspace.write("below/src/deep/lib.rs", "pub fn below() {}");
        workspace.write("beside/Cargo.toml", "[package]\nname = \"x-beside\"\n");
        workspace.write("beside/src/lib.rs", "pub fn beside() {}");
        workspace
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn sources(&self) -> Sources {
        Sources::default().with_crate(self.0.join("top").to_str().unwrap())
    }

    fn fingerprint(&self) -> String {
        self.sources().fingerprint()
    }
}

#[test]
fn a_crate_is_known_by_its_sources_and_those_below_it() {
    let w = Workspace::new("known");
    let names: Vec<_> = w.sources().names().map(str::to_owned).collect();
    assert_eq!(names, ["x-below", "x-top"]);
    let before = w.fingerprint();
    assert_eq!(before.len(), 16);
    for (path, text, changes) in [
        ("top/src/lib.rs", "pub fn top() { }", true),
        ("below/src/deep/lib.rs", "pub fn other() {}", true),
        ("below/src/new.rs", "", true),
        ("beside/src/lib.rs", "pub fn other() {}", false),
        ("below/src/notes.txt", "not a source", false),
        ("below/tests/it.rs", "not a source", false),
    ] {
        let before = w.fingerprint();
        w.write(path, text);
        assert_eq!(w.fingerprint() != before, changes, "{path}");
    }
}

#[test]
fn the_place_of_the_workspace_does_not_matter() {
    assert_eq!(
        Workspace::new("here").fingerprint(),
        Workspace::new("there").fingerprint()
    );
}

#[test]
fn a_file_that_moves_or_ends_elsewhere_is_another() {
    let w = Workspace::new("moves");
    w.write("top/src/a.rs", "1");
    let before = w.fingerprint();
    fs::rename(w.0.join("top/src/a.rs"), w.0.join("top/src/b.rs")).unwrap();
    let moved = w.fingerprint();
    assert_ne!(moved, before);
    w.write("top/src/b.rs", "");
    w.write("top/src/c.rs", "1");
    assert_ne!(w.fingerprint(), moved);
}

#[test]
fn folders_count_too_and_the_order_does_not() {
    let w = Workspace::new("folders");
    let folder = |name: &str| w.0.join(name).to_str().unwrap().to_owned();
    let (top, beside) = (folder("top"), folder("beside/src"));
    let one = Sources::default().with_crate(&top).with_folder(&beside);
    let other = Sources::default().with_folder(&beside).with_crate(&top);
    assert_eq!(one.fingerprint(), other.fingerprint());
    assert_ne!(one.fingerprint(), w.fingerprint());
}
