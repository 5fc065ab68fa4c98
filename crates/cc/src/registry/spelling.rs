//! The grammar of a stack's spelling.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use super::StackError;

/// A byte that a name may have.
pub(super) fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')
}

/// A component as written: its name, its parameters in the order given.
pub(super) struct RawPart<'a> {
    pub(super) name: &'a str,
    pub(super) params: Vec<(&'a str, &'a str)>,
}

/// Splits `a(x=1)+b++ +c` into parts. A `++` that ends a name (`hystart++`) belongs to the name.
pub(super) fn split(text: &str) -> Result<Vec<RawPart<'_>>, StackError> {
    let fail = |at: usize, why| StackError::Malformed {
        text: text.to_owned(),
        column: at + 1,
        why,
    };
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let mut i = 0;
    if text.trim().is_empty() {
        return Err(StackError::Empty);
    }
    loop {
        let start = i;
        while i < bytes.len() && is_name(bytes[i]) {
            i += 1;
        }
        if i == start {
            return Err(fail(i, "a name is expected"));
        }
        if bytes[i..].starts_with(b"++")
            && bytes.get(i + 2).is_none_or(|b| matches!(b, b'+' | b'('))
        {
            i += 2;
        }
        let name = &text[start..i];
        let mut params = Vec::new();
        if bytes.get(i) == Some(&b'(') {
            let open = i;
            let close = text[i..]
                .find(')')
                .ok_or_else(|| fail(open, "`(` is never closed"))?
                + i;
            let inner = &text[open + 1..close];
            if !inner.trim().is_empty() {
                for pair in inner.split(',') {
                    let (name, value) = pair
                        .split_once('=')
                        .ok_or_else(|| fail(open + 1, "`name=value` is expected"))?;
                    params.push((name.trim(), value.trim()));
                }
            }
            i = close + 1;
        }
        parts.push(RawPart { name, params });
        match bytes.get(i) {
            None => return Ok(parts),
            Some(b'+') => i += 1,
            Some(_) => return Err(fail(i, "`+` or the end is expected")),
        }
    }
}
