//! Helpers that several fuzz targets share.

use serde::ser::{Serialize, SerializeTuple, Serializer};

/// The input, read step by step.
pub struct Script<'a>(pub &'a [u8]);

impl<'a> Script<'a> {
    /// The next byte, if there is one.
    pub fn step(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// The next byte, or 0.
    pub fn byte(&mut self) -> u8 {
        self.step().unwrap_or(0)
    }

    /// Two bytes of length and that many bytes, or what is left.
    pub fn body(&mut self) -> &'a [u8] {
        let length = usize::from(u16::from_be_bytes([self.byte(), self.byte()]));
        let (body, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        body
    }
}

/// A body that is these bytes.
pub struct Raw<'a>(pub &'a [u8]);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(self.0.len())?;
        for byte in self.0 {
            tuple.serialize_element(byte)?;
        }
        tuple.end()
    }
}
