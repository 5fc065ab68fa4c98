//! A request, as its parts come in.

use super::super::control::PART;

/// The parts so far.
#[derive(Debug)]
pub struct Incoming {
    bytes: Vec<u8>,
    have: Vec<bool>,
    missing: usize,
}

/// Outcome of taking a part.
#[derive(Debug)]
pub enum Taken {
    /// Not for this session.
    Nothing,
    /// It is there now, or was before.
    Part,
    /// It was the last one: all bytes of the request.
    All(Vec<u8>),
}

impl Incoming {
    /// For a request of `length` bytes, which the gate has bounded.
    pub fn new(length: u32) -> Self {
        let length = length as usize;
        let parts = length.div_ceil(PART);
        Self {
            bytes: vec![0; length],
            have: vec![false; parts],
            missing: parts,
        }
    }

    /// Takes a part.
    pub fn take(&mut self, at: u32, part: &[u8]) -> Taken {
        let start = at as usize * PART;
        let Some(mark) = self.have.get_mut(at as usize) else {
            return Taken::Nothing;
        };
        let end = (start + PART).min(self.bytes.len());
        if part.len() != end - start {
            return Taken::Nothing;
        }
        if !std::mem::replace(mark, true) {
            self.bytes[start..end].copy_from_slice(part);
            self.missing -= 1;
        }
        match self.missing {
            0 => Taken::All(std::mem::take(&mut self.bytes)),
            _ => Taken::Part,
        }
    }
}
