//! What is known of an unfinished file, kept beside it as a few lines of text.

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

use blake3::Hash;
use rustix::fs::{AtFlags, StatxFlags, statx};
use serde::{Deserialize, Serialize};

use super::tree::Span;

/// What tells one state of a file from another, as far as its metadata go. The content is held
/// against its hash as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Bytes.
    pub size: u64,
    /// Last change, nanoseconds since 1970; 0 if that is not known.
    pub changed: u64,
}

impl Identity {
    /// Size and modification time of an open file.
    pub fn of(metadata: &Metadata) -> Self {
        let since = |t: std::time::SystemTime| t.duration_since(UNIX_EPOCH).ok();
        let changed = metadata.modified().ok().and_then(since);
        Self {
            size: metadata.len(),
            changed: changed.map_or(0, |d| d.as_nanos() as u64),
        }
    }
}

/// What tells, on this host, one state of a file from another. Who writes to it can put its
/// modification time back, but not the time of its last change. Times are exact from Linux 6.13 on;
/// before, two changes within a few milliseconds of each other may have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Major and minor number of its device, and inode.
    file: (u32, u32, u64),
    size: u64,
    /// Modification and change, seconds and nanoseconds.
    times: [(i64, u32); 2],
}

impl Stamp {
    /// As `statx` has it now, without asking the server of a network file system.
    ///
    /// # Errors
    /// As the system says.
    pub fn of(file: &File) -> io::Result<Self> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = statx(file, c"", flags, StatxFlags::BASIC_STATS)?;
        let times = [stat.stx_mtime, stat.stx_ctime].map(|time| (time.tv_sec, time.tv_nsec));
        Ok(Self {
            file: (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino),
            size: stat.stx_size,
            times,
        })
    }
}

/// The nine permission bits of a file.
pub fn permissions(metadata: &Metadata) -> u16 {
    (metadata.mode() & 0o777) as u16
}

/// An unfinished file: whose it is, and what of it is on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Of the file it is to become.
    pub source: Identity,
    /// Bytes from the start that are on the disk.
    pub prefix: u64,
    /// BLAKE3 of these bytes; of nothing where the ranges count.
    pub digest: Hash,
    /// Ranges of bytes that are on the disk, of a copy that is compared by blocks.
    pub ranges: Vec<Span>,
    /// The copy that wrote it; 0: one that keeps the file locked as long as it lives.
    pub owner: u64,
}

impl State {
    /// First bytes of its text, by which it is told from a file of somebody else.
    pub const MAGIC: &str = "fullpipe-part ";
    /// Bytes of its text, at most.
    pub const MOST: u64 = 8000;
    /// Ranges that it lists, at most: what lies behind them is sent again.
    pub const MOST_RANGES: usize = 40;

    /// Of a copy that is compared by blocks.
    pub fn of_ranges(source: Identity, mut ranges: Vec<Span>, owner: u64) -> Self {
        ranges.truncate(Self::MOST_RANGES);
        Self {
            source,
            prefix: 0,
            digest: blake3::hash(b""),
            ranges,
            owner,
        }
    }

    /// Ranges of bytes that are there, in whichever way they were noted.
    pub fn present(&self) -> Vec<Span> {
        match self.ranges.is_empty() {
            true => vec![(0, self.prefix)],
            false => self.ranges.clone(),
        }
    }

    /// Reads it; `None` if it is not one of this version.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        let has_owner = match value(Self::MAGIC.trim_end())? {
            VERSION => true,
            WITHOUT_OWNER => false,
            _ => return None,
        };
        let state = Self {
            source: Identity {
                size: value("size")?.parse().ok()?,
                changed: value("changed")?.parse().ok()?,
            },
            prefix: value("prefix")?.parse().ok()?,
            digest: Hash::from_hex(value("blake3")?).ok()?,
            owner: match has_owner {
                true => u64::from_str_radix(value("owner")?, 16).ok()?,
                false => 0,
            },
            ranges: Vec::new(),
        };
        let range = |line: &str| {
            let (from, to) = line.strip_prefix("have ")?.split_once(' ')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        };
        let ranges: Vec<Span> = lines.map(range).collect::<Option<_>>()?;
        let size = state.source.size;
        if ranges.iter().any(|(from, to)| from > to || *to > size) {
            return None;
        }
        let state = Self { ranges, ..state };
        (text.ends_with('\n') && state.prefix <= state.source.size).then_some(state)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}{VERSION}", Self::MAGIC)?;
        writeln!(f, "size {}", self.source.size)?;
        writeln!(f, "changed {}", self.source.changed)?;
        writeln!(f, "prefix {}", self.prefix)?;
        writeln!(f, "blake3 {}", self.digest.to_hex())?;
        writeln!(f, "owner {:016x}", self.owner)?;
        for (from, to) in &self.ranges {
            writeln!(f, "have {from} {to}")?;
        }
        Ok(())
    }
}

const VERSION: &str = "2";
/// A version that is read, and no longer written.
const WITHOUT_OWNER: &str = "1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_from_its_text_and_from_no_part_of_it() {
        let state = State {
            source: Identity {
                size: 1_000_000,
                changed: 1_700_000_000_123_456_789,
            },
            prefix: 4096,
            digest: blake3::hash(b"x"),
            ranges: Vec::new(),
            owner: 0x1234,
        };
        let text = state.to_string();
        assert_eq!(State::parse(&text), Some(state.clone()));
        assert_eq!(state.present(), [(0, 4096)]);
        for cut in 0..text.len() {
            assert_eq!(State::parse(&text[..cut]), None, "{cut} bytes");
        }
        let ranges = State::of_ranges(state.source, vec![(0, 65_536), (131_072, 1_000_000)], 7);
        assert_eq!(State::parse(&ranges.to_string()), Some(ranges));
        assert_eq!(State::parse(&format!("{text}have 0 1000001\n")), None);
        let beyond = text.replace("prefix 4096", "prefix 1000001");
        assert_eq!(State::parse(&beyond), None);
        let older = text
            .replace("part 2", "part 1")
            .replace("owner 0000000000001234\n", "");
        assert_eq!(State::parse(&older), Some(State { owner: 0, ..state }));
    }
}
