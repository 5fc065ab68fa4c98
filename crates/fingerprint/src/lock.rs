//! Versions of crates, from `Cargo.lock`.

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

    /// `name version` of the dependencies of `package` that are `wanted`, and of all that those
    /// need, on any platform. Dependencies that are not wanted are those of its tests, or known by
    /// their sources.
    pub fn below(&self, package: &str, wanted: &BTreeSet<String>) -> BTreeSet<String> {
        let own = self.packages.iter().find(|p| p.name == package);
        let own = own.into_iter().flat_map(|p| &p.dependencies);
        let mut waiting: Vec<&String> = own.filter(|d| wanted.contains(words(d).0)).collect();
        let mut found = BTreeSet::new();
        while let Some(dependency) = waiting.pop() {
            let (name, version) = words(dependency);
            let of_name = self.packages.iter().filter(|p| p.name == name);
            for package in of_name.filter(|p| version.is_none_or(|v| v == p.version)) {
                if found.insert(format!("{name} {}", package.version)) {
                    waiting.extend(&package.dependencies);
                }
            }
        }
        found
    }
}

/// Name and version of a dependency.
fn words(dependency: &str) -> (&str, Option<&str>) {
    let mut words = dependency.split(' ');
    (words.next().unwrap_or_default(), words.next())
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
            _ if line.starts_with('"') => package.dependencies.push(quoted.to_owned()),
            _ => {}
        }
    }
    found
}
