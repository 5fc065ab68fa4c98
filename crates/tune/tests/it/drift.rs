//! The committed BPF objects are those of the committed sources.

use std::fs;
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256};

const OBJECTS: [&str; 3] = ["tune", "watch", "inject"];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn source(name: &str) -> String {
    format!("{name}.bpf.c")
}

/// All of them, for each object, in the order of their names.
fn headers() -> Vec<String> {
    let entries = fs::read_dir(folder().join("bpf")).unwrap();
    let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut headers: Vec<String> = names.filter(|name| name.ends_with(".h")).collect();
    headers.sort();
    headers
}

/// Of which sources, and by which compiler.
fn from(name: &str) -> (String, String) {
    let file = folder().join(format!("bpf/{name}.bpf.o.from"));
    let text = fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(str::to_owned);
    (lines.next().unwrap(), lines.next().unwrap())
}

#[test]
fn the_objects_are_of_these_sources() {
    for name in OBJECTS {
        let mut hash = Sha256::new();
        for file in [source(name)].into_iter().chain(headers()) {
            hash.update(fs::read(folder().join("bpf").join(file)).unwrap());
        }
        let digits: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(from(name).0, digits, "run crates/tune/bpf/build.sh");
    }
}

/// Instructions, BTF and relocations are all that is left in them.
#[test]
fn the_same_compiler_makes_the_same_objects() {
    let version = Command::new("clang").arg("--version").output();
    let version = version.map(|v| String::from_utf8_lossy(&v.stdout).into_owned());
    let version = version.unwrap_or_default();
    let first = version.lines().next().unwrap_or("no clang");
    let of = from(OBJECTS[0]).1;
    if first != of {
        eprintln!("skipped: the objects are of {of}, here is {first}");
        return;
    }
    let copy = tempfile::tempdir().unwrap();
    fs::create_dir(copy.path().join("bpf")).unwrap();
    let sources = OBJECTS.iter().map(|name| source(name));
    for file in sources.chain(headers()).chain(["build.sh".to_owned()]) {
        let file = Path::new("bpf").join(file);
        fs::copy(folder().join(&file), copy.path().join(&file)).unwrap();
    }
    let made = Command::new(copy.path().join("bpf/build.sh"))
        .output()
        .unwrap();
    if !made.status.success() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&made.stderr));
        return;
    }
    for name in OBJECTS {
        let object = |folder: &Path| fs::read(folder.join(format!("bpf/{name}.bpf.o"))).unwrap();
        assert!(
            object(copy.path()) == object(folder()),
            "{name}: run crates/tune/bpf/build.sh"
        );
    }
}
