//! Fingerprint of everything that decides what a run returns, for the key of a stored run: two builds of one version with
//! different sources must not take over each other's runs. Outside the workspace only the version counts.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    for part in [
        "../units/src",
        "../cc/src",
        "../flow/src",
        "../sim/src",
        "../trace/src",
        "src/metrics",
    ] {
        println!("cargo::rerun-if-changed={part}");
        collect(Path::new(part), &mut files);
    }
    files.sort();
    let mut hash = OFFSET;
    for file in files {
        // A file that vanishes meanwhile makes another fingerprint, which is all that is needed.
        let bytes = fs::read(&file).unwrap_or_default();
        let name = file.to_string_lossy();
        for byte in name.bytes().chain([0]).chain(bytes).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    println!("cargo::rustc-env=FULLPIPE_ENGINE={hash:016x}");
}

fn collect(dir: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for path in entries.flatten().map(|e| e.path()) {
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

// FNV-1a, 64 bits.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;
