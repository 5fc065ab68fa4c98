//! SHA-256 of files and of runs: 32 bytes in memory, 64 hexadecimal digits wherever it is written.

use std::fmt;
use std::io::{self, Read, Write};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The digest of a file's bytes, or of a text (FIPS 180-4).
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(Sha256::digest(bytes).into())
    }

    /// Reads 64 lower-case digits, as [`fmt::Display`] writes them.
    pub fn parse(digits: &str) -> Option<Hash> {
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        let mut hash = [0; 32];
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        if pairs.len() != hash.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Hash(hash))
    }
}

/// SHA-256 as hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Hash::of(bytes).to_string()
}

/// Hashes what it passes on, in either direction.
pub(super) struct Hashing<T> {
    inner: T,
    hash: Sha256,
}

impl<T> Hashing<T> {
    pub(super) fn new(inner: T) -> Hashing<T> {
        Hashing {
            inner,
            hash: Sha256::new(),
        }
    }

    /// Hashes bytes that are not passed on.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
    }

    /// The hash of everything so far.
    pub(super) fn finish(self) -> (T, Hash) {
        (self.inner, Hash(self.hash.finalize().into()))
    }
}

impl<T: Write> Write for Hashing<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.hash.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for Hashing<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(into)?;
        self.hash.update(&into[..n]);
        Ok(n)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        deserializer.deserialize_str(Digits)
    }
}

/// Reads the digits without keeping them.
struct Digits;

impl de::Visitor<'_> for Digits {
    type Value = Hash;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("64 hexadecimal digits")
    }

    fn visit_str<E: de::Error>(self, digits: &str) -> Result<Hash, E> {
        Hash::parse(digits).ok_or_else(|| E::invalid_value(de::Unexpected::Str(digits), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_of_the_standard_s_example() {
        // FIPS 180-2, appendix B.1.
        let digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), digits);
        let hash = Hash::of(b"abc");
        assert_eq!(Hash::parse(digits), Some(hash));
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(json, format!("\"{digits}\""));
        assert_eq!(serde_json::from_str::<Hash>(&json).unwrap(), hash);
        let wrong = [
            &digits[1..],
            &digits.to_uppercase(),
            &format!("{digits}00"),
            "",
        ];
        for wrong in wrong {
            assert_eq!(Hash::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_passes_either_way_is_hashed() {
        let mut out = Hashing::new(Vec::new());
        out.write_all(b"abc").unwrap();
        assert_eq!(out.finish(), (b"abc".to_vec(), Hash::of(b"abc")));
        let mut read = Hashing::new(&b"bc"[..]);
        read.add(b"a");
        io::copy(&mut read, &mut io::sink()).unwrap();
        assert_eq!(read.finish().1, Hash::of(b"abc"));
    }
}
