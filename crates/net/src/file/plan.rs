//! Several files as one stream of bytes: what is to be sent of each, one after the other.

use serde::{Deserialize, Serialize};

use super::state::Identity;
use super::tree::Span;

/// A file or directory of a copy, as both hosts know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Name inside the directory of the server, with `/` between its parts.
    pub name: String,
    /// Size and modification time of a file; `None`: a directory.
    pub source: Option<Identity>,
    /// Permission bits, `0o777` at most.
    pub mode: u16,
}

impl Item {
    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.source.map_or(0, |source| source.size)
    }
}

/// Bytes of all `items` together; `None`: more than [`MOST_BYTES`].
pub fn bytes_of<'i>(items: impl IntoIterator<Item = &'i Item>) -> Option<u64> {
    let sizes = items.into_iter().map(Item::size);
    Some(sizes.fold(0, u64::saturating_add)).filter(|all| *all <= MOST_BYTES)
}

/// Bytes of a copy, at most: numbers of segments are below it, and no offset in a file, or in the
/// stream, overflows.
pub const MOST_BYTES: u64 = 1 << 62;

/// Which bytes of which files are sent, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pieces: Vec<Piece>,
    bytes: u64,
}

/// Bytes of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the file.
    pub file: u32,
    /// First byte in the file.
    pub from: u64,
    /// One after the last.
    pub to: u64,
    /// First byte in the stream.
    pub at: u64,
}

impl Plan {
    /// Puts ranges of a file behind those that are there. None is empty or reversed.
    pub fn push(&mut self, file: u32, spans: &[Span]) {
        for (from, to) in spans.iter().filter(|(from, to)| from < to) {
            self.pieces.push(Piece {
                file,
                from: *from,
                to: *to,
                at: self.bytes,
            });
            self.bytes = self.bytes.saturating_add(to - from);
        }
    }

    /// Bytes of the stream.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The piece that holds byte `at` of the stream, its index, and which byte of the file that is.
    pub fn find(&self, at: u64) -> Option<(usize, Piece, u64)> {
        let index = self.pieces.partition_point(|p| p.at <= at).checked_sub(1)?;
        let piece = self.pieces[index];
        let inside = at - piece.at;
        (inside < piece.to - piece.from).then(|| (index, piece, piece.from + inside))
    }

    /// True if no later piece than the one of this index is of its file.
    pub fn is_last(&self, index: usize) -> bool {
        let file = |i: usize| self.pieces.get(i).map(|p| p.file);
        file(index + 1) != file(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_the_stream_are_those_of_the_files() {
        let mut plan = Plan::default();
        plan.push(0, &[(0, 10), (20, 25)]);
        plan.push(1, &[]);
        plan.push(2, &[(5, 5), (100, 101)]);
        assert_eq!(plan.bytes(), 16);
        let at = |n| plan.find(n).map(|(_, piece, inside)| (piece.file, inside));
        let found = [0, 9, 10, 14, 15, 16, u64::MAX].map(at);
        let expected = [(0, 0), (0, 9), (0, 20), (0, 24), (2, 100)].map(Some);
        assert_eq!(found[..5], expected);
        assert_eq!(found[5..], [None, None]);
        assert_eq!([0, 1, 2].map(|i| plan.is_last(i)), [false, true, true]);
    }
}
