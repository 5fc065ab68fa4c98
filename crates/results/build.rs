//! Fingerprint of everything that decides what a run returns, for the key of a stored run: two
//! builds of one version with different sources must not take over each other's runs. Outside the
//! workspace only the version counts. Runs over sockets have a fingerprint of their own: the
//! sources of the endpoint decide them too, and no others.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let engine = [
        "../units/src",
        "../cc/src",
        "../flow/src",
        "../host/src",
        "../run/src",
        "../sim/src",
        "../trace/src",
        "../metrics/src",
    ];
    let hash = fingerprint(OFFSET, &engine);
    println!("cargo::rustc-env=FULLPIPE_ENGINE={hash:016x}");
    let hash = fingerprint(hash, &["../net/src"]);
    println!("cargo::rustc-env=FULLPIPE_ENGINE_UDP={hash:016x}");
}

/// Of the sources in these directories, after what was hashed before.
fn fingerprint(mut hash: u64, parts: &[&str]) -> u64 {
    let mut files = Vec::new();
    for part in parts {
        println!("cargo::rerun-if-changed={part}");
        collect(Path::new(part), &mut files);
    }
    files.sort();
    for file in files {
        // A file that vanishes meanwhile makes another fingerprint, which is all that is needed.
        let bytes = fs::read(&file).unwrap_or_default();
        let name = file.to_string_lossy();
        for byte in name.bytes().chain([0]).chain(bytes).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    hash
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
