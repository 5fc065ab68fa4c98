//! A file's checksum as a tree: BLAKE3 is one, and the digests of its aligned blocks are nodes of
//! it. Who has these of all blocks has the hash of the file, and who compares them with somebody
//! else's finds the block that differs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use blake3::hazmat::merge_subtrees_root;
use blake3::hazmat::{HasherExt, Mode, left_subtree_len, merge_subtrees_non_root};
use blake3::{Hash, Hasher};

use super::hash::Cancel;

/// Digest of a block, or of several.
pub type Digest = [u8; 32];

/// Bytes from one offset up to another.
pub type Span = (u64, u64);

/// The blocks of a file, and the digests of those that are known.
#[derive(Clone, Debug)]
pub struct Blocks {
    size: u64,
    block: u64,
    known: Vec<Option<Digest>>,
    current: Option<Current>,
}

/// A block that comes in.
#[derive(Clone, Debug)]
struct Current {
    index: u64,
    filled: u64,
    hasher: Box<Hasher>,
}

impl Blocks {
    /// Of a file of so many bytes; none is known.
    pub fn new(size: u64) -> Self {
        let block = size.div_ceil(MOST).next_power_of_two().max(SMALLEST);
        Self {
            size,
            block,
            known: Vec::new(),
            current: None,
        }
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Number of blocks.
    pub fn count(&self) -> u64 {
        self.size.div_ceil(self.block)
    }

    /// The next bytes of a file, which belong behind those that came last or at the start of a
    /// block.
    pub fn feed(&mut self, mut at: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() && at < self.size {
            let (index, inside) = (at / self.block, at % self.block);
            if inside == 0 {
                self.current = Some(self.begin(index));
            }
            let end = self.end(index);
            let n = bytes.len().min((end - at) as usize);
            if let Some(current) = &mut self.current
                && (current.index, current.filled) == (index, inside)
            {
                current.hasher.update(&bytes[..n]);
                current.filled += n as u64;
                if at + n as u64 == end {
                    self.close();
                }
            }
            (at, bytes) = (at + n as u64, &bytes[n..]);
        }
    }

    fn begin(&self, index: u64) -> Current {
        let mut hasher = Hasher::new();
        if self.count() > 1 {
            hasher.set_input_offset(index * self.block);
        }
        Current {
            index,
            filled: 0,
            hasher: Box::new(hasher),
        }
    }

    fn close(&mut self) {
        if let Some(current) = self.current.take() {
            let digest = match self.count() {
                1 => current.hasher.finalize().into(),
                _ => current.hasher.finalize_non_root(),
            };
            let index = current.index as usize;
            if self.known.len() <= index {
                self.known.resize(index + 1, None);
            }
            self.known[index] = Some(digest);
        }
    }

    fn end(&self, index: u64) -> u64 {
        ((index + 1) * self.block).min(self.size)
    }

    fn get(&self, index: u64) -> Option<Digest> {
        *self.known.get(index as usize)?
    }

    /// True if the digests of all blocks are known.
    pub fn is_complete(&self) -> bool {
        self.known.iter().flatten().count() as u64 == self.count()
    }

    /// Ranges of bytes whose blocks are known.
    pub fn present(&self) -> Vec<Span> {
        self.spans(|known| known)
    }

    /// Ranges of bytes whose blocks are not known.
    pub fn missing(&self) -> Vec<Span> {
        self.spans(|known| !known)
    }

    fn spans(&self, wanted: impl Fn(bool) -> bool) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for index in (0..self.count()).filter(|i| wanted(self.get(*i).is_some())) {
            let (from, to) = (index * self.block, self.end(index));
            match spans.last_mut() {
                Some(last) if last.1 == from => last.1 = to,
                _ => spans.push((from, to)),
            }
        }
        spans
    }

    /// Bytes of `spans` that are whole blocks.
    pub fn whole(&self, spans: &[Span]) -> Vec<Span> {
        let inside = |(from, to): &Span| {
            let from = from.checked_next_multiple_of(self.block)?;
            let to = match *to >= self.size {
                true => self.size,
                false => to / self.block * self.block,
            };
            (from < to).then_some((from, to))
        };
        spans.iter().filter_map(inside).collect()
    }

    /// Forgets the blocks that any of `spans` touches.
    pub fn forget(&mut self, spans: &[Span]) {
        self.current = None;
        for (from, to) in spans {
            let last = to.div_ceil(self.block).min(self.known.len() as u64);
            for index in from / self.block..last {
                self.known[index as usize] = None;
            }
        }
    }

    /// True if `other` has all blocks that are known here, with the same digests.
    pub fn is_within(&self, other: &Self) -> bool {
        let known = (0..self.count()).filter(|i| self.get(*i).is_some());
        known.into_iter().all(|i| self.get(i) == other.get(i))
    }

    /// Forgets the blocks that `other` has not, or has with other digests.
    pub fn keep_same(&mut self, other: &Self) {
        self.current = None;
        for (index, known) in (0..).zip(&mut self.known) {
            if *known != other.get(index) {
                *known = None;
            }
        }
    }

    /// Reads and hashes `spans` of a file, whole blocks, as far as it goes.
    ///
    /// # Errors
    /// As the system says; [`io::ErrorKind::Interrupted`] once it is cancelled.
    pub fn read(&mut self, file: &File, spans: &[Span], cancel: &Cancel) -> io::Result<()> {
        let mut buffer = vec![0; PIECE as usize];
        for (from, to) in spans {
            let mut at = *from;
            while at < *to {
                cancel.check()?;
                let n = (to - at).min(PIECE) as usize;
                match file.read_exact_at(&mut buffer[..n], at) {
                    Ok(()) => self.feed(at, &buffer[..n]),
                    Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => break,
                    Err(e) => return Err(e),
                }
                at += n as u64;
            }
            self.current = None;
        }
        Ok(())
    }

    /// BLAKE3 of the file, once all blocks are known.
    pub fn root(&self) -> Option<Hash> {
        match self.count() {
            0 => Some(blake3::hash(b"")),
            1 => self.get(0).map(Hash::from_bytes),
            _ => {
                let left = left_subtree_len(self.size);
                let (a, b) = (self.node(0, left)?, self.node(left, self.size - left)?);
                Some(merge_subtrees_root(&a, &b, Mode::Hash))
            }
        }
    }

    fn node(&self, at: u64, length: u64) -> Option<Digest> {
        if length <= self.block {
            return self.get(at / self.block);
        }
        let left = left_subtree_len(length);
        let (a, b) = (self.node(at, left)?, self.node(at + left, length - left)?);
        Some(merge_subtrees_non_root(&a, &b, Mode::Hash))
    }

    /// Digests of the blocks from `from` up to `to`, in at most [`FAN`] groups of equal length; of
    /// a group that is one block its own. What is not known counts as zeros.
    pub fn groups(&self, from: u64, to: u64) -> Vec<Digest> {
        let to = to.min(self.count());
        let each = to.saturating_sub(from).div_ceil(FAN).max(1);
        let digest = |index: u64| self.get(index).unwrap_or_default();
        let group = |start: u64| match each {
            1 => digest(start),
            _ => self.summary(start, (start + each).min(to)),
        };
        let starts = (from..to).step_by(usize::try_from(each).unwrap_or(usize::MAX));
        starts.map(group).collect()
    }

    /// One digest of the digests of blocks `from` up to `to`.
    pub fn summary(&self, from: u64, to: u64) -> Digest {
        let mut hasher = Hasher::new();
        for index in from..to.min(self.count()) {
            hasher.update(&self.get(index).unwrap_or_default());
        }
        hasher.finalize().into()
    }

    /// Bytes of the blocks `from` up to `to`.
    pub fn bytes(&self, from: u64, to: u64) -> Span {
        (from * self.block, (to * self.block).min(self.size))
    }

    /// Blocks that `other`, whose groups `ask` returns, has with other digests: ranges of bytes.
    /// What is not known here is not compared.
    ///
    /// # Errors
    /// Of `ask`.
    pub fn differing<E>(
        &self,
        mut ask: impl FnMut(u64, u64) -> Result<Vec<Digest>, E>,
    ) -> Result<Vec<Span>, E> {
        let mut spans: Vec<Span> = Vec::new();
        let mut waiting = vec![(0, self.count())];
        while let Some((from, to)) = waiting.pop() {
            let each = (to - from).div_ceil(FAN).max(1);
            let (mine, theirs) = (self.groups(from, to), ask(from, to)?);
            for (i, mine) in mine.iter().enumerate() {
                let start = from + i as u64 * each;
                let end = (start + each).min(to);
                match theirs.get(i) == Some(mine) {
                    true => {}
                    false if each == 1 && self.get(start).is_some() => {
                        spans.push(self.bytes(start, end));
                    }
                    false if each == 1 => {}
                    false => waiting.push((start, end)),
                }
            }
        }
        spans.sort_unstable();
        Ok(spans)
    }
}

/// Bytes of the smallest block, a power of two of BLAKE3's chunks of 1024.
const SMALLEST: u64 = 64 << 10;
/// Blocks of a file, at most: their digests are 128 KiB.
const MOST: u64 = 4096;
/// Groups of one comparison: 1024 bytes of digests fit into a datagram.
pub const FAN: u64 = 32;
/// Bytes that are read at once.
const PIECE: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn bytes(n: usize) -> Vec<u8> {
        (0..n)
            .map(|i| (i.wrapping_mul(2654435761) >> 9) as u8)
            .collect()
    }

    fn fed(bytes: &[u8], step: usize) -> Blocks {
        let mut blocks = Blocks::new(bytes.len() as u64);
        for (i, piece) in bytes.chunks(step).enumerate() {
            blocks.feed((i * step) as u64, piece);
        }
        blocks
    }

    /// `blake3::hash` is the judge.
    #[test]
    fn the_root_of_the_blocks_is_the_hash_of_the_file() {
        let block = SMALLEST as usize;
        for size in [
            0,
            1,
            1024,
            block - 1,
            block,
            block + 1,
            2 * block,
            3 * block + 7,
            37 * block,
        ] {
            let data = bytes(size);
            for step in [1448, block, 1 << 20] {
                let blocks = fed(&data, step);
                assert!(blocks.is_complete(), "{size} by {step}");
                assert_eq!(blocks.root(), Some(blake3::hash(&data)), "{size} by {step}");
            }
        }
    }

    #[test]
    fn large_files_have_few_blocks() {
        assert_eq!(Blocks::new(1 << 40).count(), 4096);
        assert_eq!(Blocks::new((1 << 40) + 1).count(), 2049);
        assert_eq!(Blocks::new(100 << 20).count(), 1600);
    }

    #[test]
    fn one_wrong_byte_is_found_in_its_block() {
        let data = bytes(300 * SMALLEST as usize + 5);
        let mine = fed(&data, 1 << 16);
        for at in [0, 70_000, data.len() - 1] {
            let mut bent = data.clone();
            bent[at] ^= 4;
            let theirs = fed(&bent, 1 << 16);
            let mut questions = 0;
            let found = mine.differing(|from, to| {
                questions += 1;
                Ok::<_, ()>(theirs.groups(from, to))
            });
            let start = at as u64 / SMALLEST * SMALLEST;
            let end = (start + SMALLEST).min(data.len() as u64);
            assert_eq!(found, Ok(vec![(start, end)]));
            assert!(questions <= 3, "{questions}");
        }
    }

    #[test]
    fn what_is_not_there_is_missing_and_can_be_read() {
        let data = bytes(10 * SMALLEST as usize);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&data).unwrap();
        let mut blocks = Blocks::new(data.len() as u64);
        let some = [(SMALLEST, 3 * SMALLEST), (8 * SMALLEST, 10 * SMALLEST)];
        blocks.read(&file, &some, &Cancel::default()).unwrap();
        assert_eq!(blocks.present(), some);
        blocks.forget(&[(2 * SMALLEST + 5, 2 * SMALLEST + 6)]);
        let missing = [(0, SMALLEST), (2 * SMALLEST, 8 * SMALLEST)];
        assert_eq!(blocks.missing(), missing);
        assert_eq!(blocks.root(), None);
        blocks.read(&file, &missing, &Cancel::default()).unwrap();
        assert_eq!(blocks.root(), Some(blake3::hash(&data)));
        let spans = blocks.whole(&[(1, 3 * SMALLEST + 1), (9 * SMALLEST, u64::MAX)]);
        assert_eq!(
            spans,
            [(SMALLEST, 3 * SMALLEST), (9 * SMALLEST, 10 * SMALLEST)]
        );
    }
}
