//! JSON objects that carry their own hash, as their first member. They are written and read piece
//! by piece: the text of a manifest of a million runs is never in memory.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::StoreError;
use super::files;
use super::hash::{Hash, Hashing};

/// Writes a value with its own hash, so that it is never seen half.
pub(super) fn write_sealed(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    files::whole(path, |file| seal(file, value))
}

/// What [`write_sealed`] wrote; `None` if it was changed since, or is of another shape.
///
/// # Errors
/// If the system refuses to read it.
pub(super) fn read_sealed<T: for<'de> Deserialize<'de>>(
    path: &Path,
) -> Result<Option<T>, StoreError> {
    let read = File::open(path).and_then(unseal);
    read.map_err(|e| files::refused("read", path, e))
}

/// Writes a value as a JSON text of several lines.
pub(super) fn write_json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// The hash is of the object as it is without it: zeros stand in its place until it is known.
fn seal(file: &mut (impl Write + Seek), value: &impl Serialize) -> io::Result<()> {
    let zeros = "0".repeat(DIGITS);
    let head = format!("{OPEN}{MEMBER}{zeros}{CLOSE}");
    file.write_all(head.as_bytes())?;
    let mut out = BufWriter::new(Hashing::new(WithoutOpening { file, seen: 0 }));
    write_json(&mut out, value)?;
    let (_, hash) = out.into_inner().map_err(io::Error::from)?.finish();
    file.seek(SeekFrom::Start((OPEN.len() + MEMBER.len()) as u64))?;
    file.write_all(hash.to_string().as_bytes())
}

fn unseal<T: for<'de> Deserialize<'de>>(file: impl Read) -> io::Result<Option<T>> {
    let mut file = BufReader::new(file);
    let mut head = [0; OPEN.len() + MEMBER.len() + DIGITS + CLOSE.len()];
    match file.read_exact(&mut head) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let digits = std::str::from_utf8(&head).ok().and_then(|head| {
        let head = head.strip_prefix(OPEN)?.strip_prefix(MEMBER)?;
        head.strip_suffix(CLOSE)
    });
    let Some(known) = digits.and_then(Hash::parse) else {
        return Ok(None);
    };
    let mut rest = Hashing::new(file);
    rest.add(OPEN.as_bytes());
    let mut text = BufReader::new(OPEN.as_bytes().chain(&mut rest));
    let value = {
        let mut json = serde_json::Deserializer::from_reader(&mut text);
        T::deserialize(&mut json).and_then(|value| json.end().map(|()| value))
    };
    match value {
        Err(e) if e.is_io() => Err(e.into()),
        Err(_) => Ok(None),
        Ok(value) => Ok((rest.finish().1 == known).then_some(value)),
    }
}

/// Drops the opening of the object, which stands before the hash already.
struct WithoutOpening<'a, W> {
    file: &'a mut W,
    seen: usize,
}

impl<W: Write> Write for WithoutOpening<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let opening = &OPEN.as_bytes()[self.seen..];
        if opening.is_empty() {
            return self.file.write(bytes);
        }
        let n = opening.len().min(bytes.len());
        assert_eq!(bytes[..n], opening[..n], "an object of several lines");
        self.seen += n;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

const OPEN: &str = "{\n";
const MEMBER: &str = "  \"sha256\": \"";
const DIGITS: usize = 64;
const CLOSE: &str = "\",\n";

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::{Value, json};

    use super::*;

    fn sealed(value: &Value) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        seal(&mut file, value).unwrap();
        file.into_inner()
    }

    #[test]
    fn the_hash_is_that_of_the_object_without_it() {
        let object = "{\n  \"a\": 1.5,\n  \"b\": \"x\"\n}\n";
        let text = String::from_utf8(sealed(&json!({"a": 1.5, "b": "x"}))).unwrap();
        let hash = Hash::of(object.as_bytes());
        let rest = object.strip_prefix("{\n").unwrap();
        assert_eq!(text, format!("{{\n  \"sha256\": \"{hash}\",\n{rest}"));
    }

    #[test]
    fn a_seal_notices_every_change() {
        let value = json!({"a": 1.5, "b": "x", "long": "y".repeat(20_000)});
        let whole = sealed(&value);
        assert_eq!(unseal::<Value>(&whole[..]).unwrap(), Some(value));
        for i in (0..300).chain(whole.len() - 300..whole.len()) {
            let cut = unseal::<Value>(&whole[..i]).unwrap();
            assert_eq!(cut, None, "cut at {i}");
            let mut changed = whole.clone();
            changed[i] ^= 1;
            let changed = unseal::<Value>(&changed[..]).unwrap();
            assert_eq!(changed, None, "changed at {i}");
        }
        let longer = [whole.as_slice(), b"\n"].concat();
        assert_eq!(unseal::<Value>(&longer[..]).unwrap(), None);
    }
}
