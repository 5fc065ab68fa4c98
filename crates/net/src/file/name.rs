//! Names of files as the other side may give them.

use std::fmt;

/// Why a name is refused. It says nothing about what is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing, or more than [`MOST`] bytes.
    #[error("a name has 1 to {MOST} bytes, and 200 between two slashes")]
    Length,
    /// It starts with a slash.
    #[error("an absolute path: only names inside the served directory are allowed")]
    Absolute,
    /// `.`, `..` or nothing between two slashes.
    #[error("`.`, `..` and empty parts are not allowed")]
    Climbs,
    /// A part starts with a dot.
    #[error("hidden files are not served")]
    Hidden,
    /// A control character or a backslash.
    #[error("control characters and backslashes are not allowed")]
    Character,
    /// It ends like the files of an unfinished transfer.
    #[error("names that end in `.part` or `.part.state` belong to unfinished transfers")]
    Reserved,
}

/// A name inside a directory, perhaps in subdirectories: what is left of a string once it cannot
/// lead anywhere else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(String);

impl Name {
    /// Reads a name from the network.
    ///
    /// # Errors
    /// [`NameError`]; symbolic links are looked for when it is opened.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() || text.len() > MOST {
            return Err(NameError::Length);
        }
        if text.starts_with('/') {
            return Err(NameError::Absolute);
        }
        if text.chars().any(|c| c.is_control() || c == '\\') {
            return Err(NameError::Character);
        }
        for part in text.split('/') {
            if matches!(part, "" | "." | "..") {
                return Err(NameError::Climbs);
            }
            if part.starts_with('.') {
                return Err(NameError::Hidden);
            }
            if part.len() > MOST_OF_PART {
                return Err(NameError::Length);
            }
        }
        // With or without what a temporary name adds.
        let ending = text.trim_end_matches('~');
        if ending.ends_with(PART) || ending.ends_with(STATE) {
            return Err(NameError::Reserved);
        }
        Ok(Self(text.to_owned()))
    }

    /// The name with `/` between its parts.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directories on the way, and the last part.
    pub(super) fn parts(&self) -> (impl Iterator<Item = &str>, &str) {
        let (way, leaf) = self.0.rsplit_once('/').unwrap_or(("", &self.0));
        (way.split('/').filter(|part| !part.is_empty()), leaf)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Bytes of a name.
pub const MOST: usize = 1000;

/// Bytes between two slashes: room for [`STATE`] and what a temporary name adds below the 255 of
/// file systems.
const MOST_OF_PART: usize = 200;

/// What the name of an unfinished file ends in.
pub(super) const PART: &str = ".part";

/// What the name of its state ends in.
pub(super) const STATE: &str = ".part.state";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_stay_inside_are_accepted() {
        for text in [
            "a",
            "data.bin",
            "run 1/Ünïcode (2).dat",
            "a..b",
            "x.part.gz",
        ] {
            assert_eq!(Name::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_not() {
        let long = "x".repeat(201);
        let longer = "x/".repeat(600);
        for (text, error) in [
            ("", NameError::Length),
            (long.as_str(), NameError::Length),
            (longer.as_str(), NameError::Length),
            ("/etc/passwd", NameError::Absolute),
            ("..", NameError::Climbs),
            ("../x", NameError::Climbs),
            ("a/../../x", NameError::Climbs),
            ("a//b", NameError::Climbs),
            ("a/", NameError::Climbs),
            ("./a", NameError::Climbs),
            (".ssh/authorized_keys", NameError::Hidden),
            ("a/.bashrc", NameError::Hidden),
            ("a\0b", NameError::Character),
            ("a\nb", NameError::Character),
            ("..\\x", NameError::Character),
            ("x.part", NameError::Reserved),
            ("x.part.state", NameError::Reserved),
            ("x.part.state~", NameError::Reserved),
        ] {
            assert_eq!(Name::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_name_is_a_way_and_a_leaf() {
        let name = Name::parse("a/b/c").unwrap();
        let (way, leaf) = name.parts();
        assert_eq!((way.collect::<Vec<_>>(), leaf), (vec!["a", "b"], "c"));
        let name = Name::parse("c").unwrap();
        let (way, leaf) = name.parts();
        assert_eq!((way.count(), leaf), (0, "c"));
    }
}
