//! The committed BPF object is that of the committed sources.

use std::fs;
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Of which sources, and by which compiler.
fn from() -> (String, String) {
    let text = fs::read_to_string(folder().join("bpf/tune.bpf.o.from")).unwrap();
    let mut lines = text.lines().map(str::to_owned);
    (lines.next().unwrap(), lines.next().unwrap())
}

#[test]
fn the_object_is_of_these_sources() {
    let mut hash = Sha256::new();
    for file in ["tune.bpf.c", "kernel.h", "shared.h", "law.h"] {
        hash.update(fs::read(folder().join("bpf").join(file)).unwrap());
    }
    let digits: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(from().0, digits, "run crates/tune/bpf/build.sh");
}

/// Instructions, BTF and relocations are all that is left in it.
#[test]
fn the_same_compiler_makes_the_same_object() {
    let version = Command::new("clang").arg("--version").output();
    let version = version.map(|v| String::from_utf8_lossy(&v.stdout).into_owned());
    let version = version.unwrap_or_default();
    let first = version.lines().next().unwrap_or("no clang");
    if first != from().1 {
        eprintln!("skipped: the object is of {}, here is {first}", from().1);
        return;
    }
    let copy = tempfile::tempdir().unwrap();
    fs::create_dir(copy.path().join("bpf")).unwrap();
    for file in ["tune.bpf.c", "kernel.h", "shared.h", "law.h", "build.sh"] {
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
    let object = |folder: &Path| fs::read(folder.join("bpf/tune.bpf.o")).unwrap();
    assert!(
        object(copy.path()) == object(folder()),
        "run crates/tune/bpf/build.sh"
    );
}
