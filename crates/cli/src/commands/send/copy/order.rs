//! What is copied where: from command-line arguments to lists of files.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fullpipe_net::content::batch::Base;
use fullpipe_net::file::{
    Cancel, Directory, Identity, Item, LeftOut, Name, Reach, Where, permissions,
};

use crate::commands::send::target::{FileAt, Server, habit};
use crate::exit::{Exit, Failure};

fn usage(message: String) -> Failure {
    Failure::new(Exit::Usage, message)
}

/// A copy in one direction.
#[derive(Debug)]
pub struct Order {
    /// Sources, spelled by the user.
    pub from: Vec<String>,
    /// The other end.
    pub server: Server,
    /// Its direction, with paths of this host and names of the server.
    pub what: What,
}

/// Direction of a copy.
#[derive(Debug)]
pub enum What {
    /// Paths here, each with its name there.
    Put(Vec<(PathBuf, String)>),
    /// Names there; with the parent of each cut off they go below a directory here, or the only one
    /// to a path.
    Get(Vec<String>, PathBuf, bool),
}

/// Files and directories to send, and what is left out.
#[derive(Debug, Default)]
pub struct Found {
    /// Files and directories to send, in order.
    pub files: Vec<(Item, Where)>,
    /// Entries of directories that are not.
    pub left_out: Vec<LeftOut>,
}

/// Reads both ends of a copy: the last argument is the destination.
pub fn order(from: &[String], to: &str) -> Result<Order, Failure> {
    let parsed = |text: &str| {
        FileAt::parse(text).map_err(|e| {
            let wrong = usage(format!("`{text}`: {e}"));
            habit(text).into_iter().fold(wrong, Failure::hint)
        })
    };
    let ends: Vec<FileAt> = from
        .iter()
        .map(|text| parsed(text))
        .collect::<Result<_, _>>()?;
    let (server, what) = match parsed(to)? {
        FileAt::There(server, name) => {
            let mut files = Vec::new();
            for end in ends {
                match end {
                    FileAt::Here(path) => files.push(path),
                    FileAt::There(..) => {
                        return Err(usage("one of the two ends must be here".to_owned())
                            .hint("copy it here first"));
                    }
                }
            }
            (server, What::Put(names(files, &name)?))
        }
        FileAt::Here(path) => {
            let mut servers = Vec::new();
            let mut names = Vec::new();
            for (end, text) in ends.into_iter().zip(from) {
                match end {
                    FileAt::There(server, name) => {
                        let name = name.trim_end_matches('/').to_owned();
                        if name.is_empty() {
                            return Err(usage(format!("`{text}`: name a file of the server")));
                        }
                        names.push(name);
                        servers.push(server);
                    }
                    FileAt::Here(_) => {
                        return Err(usage(format!("neither `{text}` nor `{to}` is at a server"))
                            .hint("write the one that is as `HOST:NAME`"));
                    }
                }
            }
            let Some(server) = servers.pop() else {
                return Err(usage("nothing is to be copied".to_owned()));
            };
            if servers.iter().any(|other| *other != server) {
                return Err(usage("files of two servers in one copy".to_owned())
                    .hint("copy from one after the other"));
            }
            differ(
                from.iter()
                    .zip(&names)
                    .map(|(text, name)| (text, last(name))),
            )?;
            let below = names.len() > 1 || to.ends_with('/') || path.is_dir();
            (server, What::Get(names, path, below))
        }
    };
    Ok(Order {
        from: from.to_vec(),
        server,
        what,
    })
}

/// The name of each path there.
fn names(files: Vec<PathBuf>, name: &str) -> Result<Vec<(PathBuf, String)>, Failure> {
    if files.len() > 1 && !name.is_empty() && !name.ends_with('/') {
        return Err(usage(format!("several files cannot all be `{name}`"))
            .hint("end it with `/`: then it is a directory"));
    }
    let named = |path: PathBuf| {
        let name = match name.is_empty() || name.ends_with('/') {
            true => format!("{name}{}", leaf(&path)?),
            false => name.to_owned(),
        };
        Ok((path, name))
    };
    let named: Vec<_> = files
        .into_iter()
        .map(named)
        .collect::<Result<_, Failure>>()?;
    differ(
        named
            .iter()
            .map(|(path, name)| (path.display(), name.as_str())),
    )?;
    Ok(named)
}

/// Refuses two sources of one name where both would go.
fn differ<'a, S: Display>(all: impl Iterator<Item = (S, &'a str)>) -> Result<(), Failure> {
    let mut seen = HashMap::new();
    for (source, name) in all {
        if let Some(first) = seen.get(name) {
            return Err(
                usage(format!("{first} and {source} would both be `{name}`"))
                    .hint("copy one after the other, each to a name or a directory of its own"),
            );
        }
        seen.insert(name, source);
    }
    Ok(())
}

/// The last part of a name at the server.
fn last(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

fn leaf(file: &Path) -> Result<String, Failure> {
    // `.` and `..` have a name too.
    let whole = match file.file_name() {
        None => file.canonicalize().ok(),
        Some(_) => Some(file.to_owned()),
    };
    let name = whole.as_deref().and_then(Path::file_name);
    match name.and_then(|n| n.to_str()) {
        Some(name) => Ok(name.to_owned()),
        None => Err(usage(format!("`{}` is not a file's name", file.display()))
            .hint("name the copy, as `HOST:NAME`")),
    }
}

/// What these paths are, with all that is below directories.
pub fn found(files: &[(PathBuf, String)]) -> Result<Found, Failure> {
    let mut found = Found::default();
    let cancel = Cancel::default();
    let mut reach = Reach::new(None, &cancel);
    let add = |found: &mut Found, item: Item, at: Where| match has_hidden_content(&item, &at) {
        false => found.files.push((item, at)),
        true => found.left_out.push(LeftOut {
            name: item.name,
            why: "its size is said to be 0, and it has content: copy what it says".to_owned(),
            is_missed: true,
        }),
    };
    for (path, name) in files {
        let here = |e: io::Error| match e.kind() {
            ErrorKind::NotFound => {
                let what = format!("{}: there is no such file or directory", path.display());
                usage(what)
            }
            _ => Failure::io(path.display(), &e),
        };
        // A link is followed: it is the user's own.
        let metadata = std::fs::metadata(path).map_err(here)?;
        if metadata.is_dir() {
            let bad = |e| Failure::new(Exit::Environment, format!("`{name}`: {e}"));
            let root = Name::parse(name).map_err(bad)?;
            let listing = Directory::open(path)
                .and_then(|dir| dir.tree(&root, &mut reach))
                .map_err(here)?;
            for item in listing.items {
                let inside = item.name.get(name.len() + 1..).unwrap_or_default();
                let at = Where::Path(path.join(inside));
                add(&mut found, item, at);
            }
            found.left_out.extend(listing.left_out);
        } else if metadata.is_file() {
            let item = Item {
                name: name.clone(),
                source: Some(Identity::of(&metadata)),
                mode: permissions(&metadata),
            };
            add(&mut found, item, Where::Path(path.clone()));
        } else {
            let what = "only regular files and directories can be sent";
            return Err(usage(format!("{}: {what}", path.display())));
        }
    }
    Ok(found)
}

/// A file that is made as it is read, as those of `/proc` are: it would be copied as an empty one.
fn has_hidden_content(item: &Item, at: &Where) -> bool {
    let is_empty = item.source.is_some_and(|source| source.size == 0);
    // One that cannot be read is told of when it is sent.
    is_empty
        && at
            .open()
            .is_ok_and(|mut file| file.read(&mut [0]).is_ok_and(|n| n > 0))
}

/// Directories that were made for a copy: dropped, those that are empty go again.
#[derive(Debug, Default)]
pub struct Made(Vec<PathBuf>);

impl Made {
    /// Makes `path` where it is missing, with all above it.
    fn all_of(&mut self, path: &Path) -> io::Result<()> {
        let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.is_dir();
        let missing: Vec<&Path> = path.ancestors().take_while(missing).collect();
        for path in missing.into_iter().rev() {
            match std::fs::create_dir(path) {
                Ok(()) => self.0.push(path.to_owned()),
                Err(_) if path.is_dir() => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// They stay.
    pub fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            // What is not empty stays.
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// Names of the server that go to one place in one session, and the place.
pub fn fetched(
    names: &[String],
    path: &Path,
    below: bool,
    dry_run: bool,
    made: &mut Made,
) -> Result<Vec<(Vec<String>, Base)>, Failure> {
    if !below {
        return Ok(vec![(names.to_vec(), Base::Exact(path.to_owned()))]);
    }
    let here = |e| Failure::io(path.display(), &e);
    if !dry_run {
        made.all_of(path).map_err(here)?;
    }
    let directory = match Directory::open(path) {
        Err(e) if dry_run && e.kind() == ErrorKind::NotFound => {
            return Ok(vec![(names.to_vec(), Base::Nowhere)]);
        }
        opened => Arc::new(opened.map_err(here)?),
    };
    let parent = |name: &str| name.rfind('/').map_or(0, |slash| slash + 1);
    let mut groups: Vec<(Vec<String>, Base)> = Vec::new();
    for name in names {
        let cut = parent(name);
        let same = |base: &Base| matches!(base, Base::Below(_, other) if *other == cut);
        match groups.iter_mut().find(|(_, base)| same(base)) {
            Some((names, _)) => names.push(name.clone()),
            None => groups.push((vec![name.clone()], Base::Below(Arc::clone(&directory), cut))),
        }
    }
    Ok(groups)
}

/// Lists that one session carries each: the files of one get their names together.
pub fn sessions(files: Vec<(Item, Where)>) -> Vec<Vec<(Item, Where)>> {
    let mut sessions: Vec<Vec<(Item, Where)>> = Vec::new();
    let (mut bytes, mut names) = (0u64, 0);
    for file in files {
        let (size, name) = (file.0.size(), file.0.name.len() + 24);
        let fits = bytes.saturating_add(size) <= MOST_BYTES && names + name <= MOST_NAMES;
        match sessions.last_mut() {
            Some(last) if fits => {
                last.push(file);
                (bytes, names) = (bytes + size, names + name);
            }
            _ => {
                sessions.push(vec![file]);
                (bytes, names) = (size, name);
            }
        }
    }
    sessions
}

/// Bytes of one session, unless a single file has more: its handshake costs nothing beside them.
const MOST_BYTES: u64 = 4 << 30;
/// Bytes of the names in one request, which may have 256 KiB in all.
const MOST_NAMES: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(all: &[&str]) -> Vec<String> {
        all.iter().map(|s| (*s).to_owned()).collect()
    }

    #[test]
    fn the_side_with_a_host_decides() {
        let put = |from: &[&str], to| {
            let order = order(&strings(from), to).unwrap();
            match order.what {
                What::Put(files) => {
                    let names = files.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
                    (order.server.to_string(), names)
                }
                other => panic!("{other:?}"),
            }
        };
        let words = |host: &str, names: &[&str]| (host.to_owned(), strings(names));
        assert_eq!(put(&["a/b.bin"], "dtn:"), words("dtn", &["b.bin"]));
        assert_eq!(
            put(&["b.bin"], "dtn:7000:in/"),
            words("dtn:7000", &["in/b.bin"])
        );
        assert_eq!(put(&["b.bin"], "dtn:c"), words("dtn", &["c"]));
        assert_eq!(
            put(&["a/b", "c/"], "dtn:in/"),
            words("dtn", &["in/b", "in/c"])
        );
        match order(&strings(&["dtn:in/x.bin"]), ".").unwrap().what {
            What::Get(names, path, below) => {
                assert_eq!((names, below), (strings(&["in/x.bin"]), true));
                assert_eq!(path, Path::new("."));
            }
            other => panic!("{other:?}"),
        }
        for (from, to) in [
            (&["a"][..], "b"),
            (&["h:a"], "h:b"),
            (&["h:"], "."),
            (&["/"], "h:"),
            (&["a", "b"], "h:c"),
            (&["a", "h:b"], "h:c/"),
            (&["h:a", "g:b"], "."),
        ] {
            let error = order(&strings(from), to).unwrap_err();
            assert_eq!(error.exit, Exit::Usage, "{from:?} {to}");
        }
    }

    /// Either end would have one of them, or a mixture.
    #[test]
    fn two_sources_of_one_name_are_named() {
        for (from, to, why) in [
            (
                ["d1/same", "d2/same"],
                "h:t/",
                "d1/same and d2/same would both be `t/same`",
            ),
            (["x", "./x"], "h:", "x and ./x would both be `x`"),
            (
                ["h:d1/same", "h:a/b/same/"],
                "t/",
                "h:d1/same and h:a/b/same/ would both be `same`",
            ),
        ] {
            let refused = order(&strings(&from), to).unwrap_err();
            assert_eq!((refused.exit, refused.message.as_str()), (Exit::Usage, why));
        }
        order(&strings(&["d1/a", "d2/b"]), "h:t/").unwrap();
    }

    #[test]
    fn a_session_carries_many_small_files_and_few_large_ones() {
        let file = |name: String, size| {
            let item = Item {
                name,
                source: Some(Identity { size, changed: 1 }),
                mode: 0o644,
            };
            (item, Where::Path(PathBuf::new()))
        };
        let small = (0..10_000)
            .map(|i| file(format!("dir/{i:04}"), 100))
            .collect();
        assert_eq!(sessions(small).len(), 3);
        let large = (0..4).map(|i| file(format!("{i}"), 3 << 30)).collect();
        assert_eq!(sessions(large).len(), 4);
        assert_eq!(sessions(vec![file("one".to_owned(), 1 << 40)]).len(), 1);
    }
}
