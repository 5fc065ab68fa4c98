//! Fingerprints of source code, for build scripts.
//!
//! A finished run may be taken over only by a program that would make the same one. Two programs
//! of one version can differ in their sources, so a ground tells its runs apart by a fingerprint of
//! the sources that decide what it returns: those of its own crate and of the crates of the same
//! workspace below it. Crates from elsewhere that these need, and what those need, are known by
//! name, version, source and checksum, as `Cargo.lock` has them; where no such file is found they
//! are left out. What stands in a folder outside the workspace (`[patch]` with a path) has neither
//! source nor checksum and is known by its version alone.
//!
//! No build script is told whether cargo keeps to that file. `cargo install` without `--locked`
//! resolves anew and writes nothing, with `--path` beside the `Cargo.lock` of the workspace: the
//! fingerprint then names versions that the program may not be built with. Two such programs are
//! told apart only if they are installed with `--locked`.
//!
//! A `build.rs` with [`Sources`]:
//!
//! ```no_run
//! use fullpipe_fingerprint::Sources;
//!
//! Sources::default().with_crate(".").emit("MY_GROUND");
//! ```
//!
//! makes `env!("MY_GROUND")` 16 hexadecimal digits, anew whenever one of the sources changes.

mod lock;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use lock::{Known, Lock};

/// Sources that are fingerprinted together. Folders are relative to the crate that is being built.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Folders with `.rs` files, by the name under which they are hashed.
    folders: BTreeMap<String, PathBuf>,
    /// Crates from a registry or repository.
    registry: BTreeSet<Known>,
    /// Manifests, and the file that says the versions.
    manifests: BTreeSet<PathBuf>,
}

impl Sources {
    /// The crate in `folder` and, whatever they are called, the crates beside it that it depends
    /// on, and theirs. Development and build dependencies do not count.
    pub fn with_crate(mut self, folder: &str) -> Self {
        let folder = Path::new(folder);
        let own = folder.join("Cargo.toml");
        let beside = folder.join("..");
        let lock = Lock::of(&name(&own), &places(folder));
        let mut waiting = vec![(name(&own), folder.to_owned())];
        let siblings = crates(&beside);
        while let Some((name, folder)) = waiting.pop() {
            let manifest = folder.join("Cargo.toml");
            let mut wanted = dependencies(&fs::read_to_string(&manifest).unwrap_or_default());
            self.manifests.insert(manifest);
            if self.folders.contains_key(&name) {
                continue; // with all that it depends on
            }
            let below = siblings.iter().filter(|(name, _)| wanted.remove(*name));
            waiting.extend(below.map(|(name, folder)| (name.clone(), folder.clone())));
            if let Some(lock) = &lock {
                self.registry.extend(lock.below(&name, &wanted));
            }
            self.folders.insert(name, folder.join("src"));
        }
        self.manifests.extend(lock.map(|lock| lock.file));
        self
    }

    /// The `.rs` files in `folder` and below.
    pub fn with_folder(mut self, folder: &str) -> Self {
        self.folders.insert(folder.to_owned(), folder.into());
        self
    }

    /// Crates from a registry as `name version`, in alphabetical order; none where nobody says the
    /// versions.
    pub fn registry(&self) -> impl Iterator<Item = &str> {
        self.registry.iter().map(|known| known.version.as_str())
    }

    /// Names of the crates, and folders, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.folders.keys().map(String::as_str)
    }

    /// 16 hexadecimal digits. Neither the place of the workspace nor the order of files matters.
    pub fn fingerprint(&self) -> String {
        let mut hash = OFFSET;
        for (name, folder) in &self.folders {
            for file in sources(folder) {
                // A file that vanishes meanwhile makes another fingerprint, which is enough.
                let bytes = fs::read(&file).unwrap_or_default();
                let inside = file.strip_prefix(folder).unwrap_or(&file);
                hash = add(hash, name.as_bytes());
                hash = add(hash, inside.to_string_lossy().as_bytes());
                hash = add(hash, &bytes);
            }
        }
        for known in &self.registry {
            hash = add(hash, known.version.as_bytes());
            for part in &known.origin {
                hash = add(hash, part.as_bytes());
            }
        }
        format!("{hash:016x}")
    }

    /// Tells cargo to set `variable` to the fingerprint, and to look again when a source changes.
    pub fn emit(&self, variable: &str) {
        println!("cargo::rerun-if-changed=build.rs");
        for path in self.manifests.iter().chain(self.folders.values()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        println!("cargo::rustc-env={variable}={}", self.fingerprint());
    }
}

/// Where the versions of this build may be: above its output, then, if that is elsewhere, above the
/// crate, which may be a dependency with a `Cargo.lock` of its own.
fn places(folder: &Path) -> Vec<PathBuf> {
    let output = env::var_os("OUT_DIR").map(PathBuf::from);
    let crate_ = fs::canonicalize(folder).ok();
    output.into_iter().chain(crate_).collect()
}

/// The crates in the folders of `parent`, by name.
fn crates(parent: &Path) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let folders = entries.map(|e| e.path());
    let with_manifest = folders.filter(|f| f.join("Cargo.toml").is_file());
    with_manifest
        .map(|folder| (name(&folder.join("Cargo.toml")), folder))
        .collect()
}

/// Value of `name = "..."` in a manifest; empty without one.
fn name(manifest: &Path) -> String {
    let text = fs::read_to_string(manifest).unwrap_or_default();
    let lines = text.lines().filter_map(|l| l.strip_prefix("name"));
    let mut values = lines.filter_map(|l| l.trim_start().strip_prefix('='));
    values
        .next()
        .map_or_else(String::new, |v| v.trim().trim_matches('"').to_owned())
}

/// Keys of `[dependencies]` and `[target.'...'.dependencies]`.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = table == "dependencies" || table.ends_with(".dependencies");
            // [dependencies.NAME]
            found.extend(table.strip_prefix("dependencies.").map(str::to_owned));
        } else if inside && !line.starts_with('#') {
            let end = line.find(['.', '=', ' ']).unwrap_or(0);
            found.insert(line[..end].to_owned());
        }
    }
    found
}

fn sources(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for path in entries.map(|e| e.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.insert(path);
            }
        }
    }
    found
}

/// FNV-1a of 64 bits over the bytes and their end.
fn add(hash: u64, bytes: &[u8]) -> u64 {
    let all = bytes.iter().chain(&[0]);
    all.fold(hash, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(PRIME))
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;
