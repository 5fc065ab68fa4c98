//! Versions of crates and where they come from, from `Cargo.lock`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// A `Cargo.lock`.
#[derive(Debug)]
pub(crate) struct Lock {
    pub file: PathBuf,
    packages: Vec<Package>,
}

/// One of its packages.
#[derive(Debug, Default)]
struct Package {
    name: String,
    version: String,
    /// Registry or repository, with its revision; empty of a crate in a folder.
    source: String,
    /// Of what a registry gave out; empty of all else.
    checksum: String,
    /// `name`; `name version` where there are several of that name, and `name version (source)`
    /// where there are several of that version.
    dependencies: Vec<String>,
}

impl Lock {
    /// The first file above one of `places` that has the package.
    pub fn of(package: &str, places: &[PathBuf]) -> Option<Self> {
        let above = places.iter().flat_map(|place| place.ancestors());
        let read = above.filter_map(|folder| Self::read(folder.join("Cargo.lock")));
        read.into_iter()
            .find(|lock| lock.packages.iter().any(|p| p.name == package))
    }

    fn read(file: PathBuf) -> Option<Self> {
        let packages = packages(&fs::read_to_string(&file).ok()?);
        Some(Self { file, packages })
    }

    /// The dependencies of `package` that are `wanted`, and of all that those
    /// need, on any platform. Dependencies that are not wanted are those of its tests, or known by
    /// their sources.
    pub fn below(&self, package: &str, wanted: &BTreeSet<String>) -> BTreeSet<Known> {
        let own = self.packages.iter().find(|p| p.name == package);
        let own = own.into_iter().flat_map(|p| &p.dependencies);
        let is_wanted = |d: &&String| wanted.contains(d.split(' ').next().unwrap_or_default());
        let mut waiting: Vec<&String> = own.filter(is_wanted).collect();
        let mut found = BTreeSet::new();
        while let Some(dependency) = waiting.pop() {
            for package in self.packages.iter().filter(|p| p.is(dependency)) {
                if found.insert(package.known()) {
                    waiting.extend(&package.dependencies);
                }
            }
        }
        found
    }
}

/// A crate that is known by what the file says of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Known {
    /// `name version`.
    pub version: String,
    /// Source and checksum, as far as there are any.
    pub origin: [String; 2],
}

impl Package {
    /// Whether another's list of dependencies means this one.
    fn is(&self, dependency: &str) -> bool {
        let mut words = dependency.split(' ');
        let is = |word: Option<&str>, own: &str| word.is_none_or(|word| word == own);
        words.next() == Some(&self.name)
            && is(words.next(), &self.version)
            && is(words.next(), &format!("({})", base(&self.source)))
    }

    fn known(&self) -> Known {
        Known {
            version: format!("{} {}", self.name, self.version),
            origin: [self.source.clone(), self.checksum.clone()],
        }
    }
}

/// A source without its revision, which lists of dependencies leave out.
fn base(source: &str) -> &str {
    source.split('#').next().unwrap_or_default()
}

/// The tables `[[package]]`, of which cargo writes a key or an element of a list on each line.
fn packages(text: &str) -> Vec<Package> {
    let mut found: Vec<Package> = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[[package]]";
            if inside {
                found.push(Package::default());
            }
            continue;
        }
        let Some(package) = found.last_mut().filter(|_| inside) else {
            continue;
        };
        let quoted = line.split('"').nth(1).unwrap_or_default();
        match line.split(' ').next() {
            Some("name") => package.name = quoted.to_owned(),
            Some("version") => package.version = quoted.to_owned(),
            Some("source") => package.source = quoted.to_owned(),
            Some("checksum") => package.checksum = quoted.to_owned(),
            _ if line.starts_with('"') => package.dependencies.push(quoted.to_owned()),
            _ => {}
        }
    }
    found
}
