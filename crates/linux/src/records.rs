//! What the kernel's driver wrote: records behind heads of 16 bytes, little-endian, as the structs
//! in `kernel/driver/fullpipe.h`.

use fullpipe_units::Time;

/// A file of records.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a>(&'a [u8]);

/// A record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// What it is: the constants of this module.
    pub kind: u32,
    /// Flow or link.
    pub id: usize,
    /// The rest of it.
    pub body: Body<'a>,
}

/// Numbers in the order in which they were written.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a>(&'a [u8]);

pub const ROW: u32 = 1;
pub const EPISODE: u32 = 2;
pub const ROUND: u32 = 3;
pub const SAMPLE: u32 = 4;
pub const ANSWERED: u32 = 5;
pub const PACKET: u32 = 6;
pub const MODEL: u32 = 7;
pub const FLOW: u32 = 16;
pub const DELIVERED: u32 = 17;
pub const ARRIVED: u32 = 18;
pub const RTT: u32 = 19;
pub const LINK: u32 = 20;
pub const WAIT: u32 = 21;
pub const CROSS: u32 = 22;
pub const CROSS_ARRIVED: u32 = 23;
pub const CROSS_DELAY: u32 = 24;
pub const END: u32 = 32;

impl<'a> Records<'a> {
    /// The records in the content of a file.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    /// A file that was cut off ends before the record that is not whole.
    fn next(&mut self) -> Option<Record<'a>> {
        let mut head = Body(self.0.get(..16)?);
        let (kind, id, size) = (head.u32()?, head.u32()?, head.u64()?);
        let end = usize::try_from(size).ok()?.checked_add(16)?;
        let body = Body(self.0.get(16..end)?);
        self.0 = &self.0[end..];
        let id = id as usize;
        Some(Record { kind, id, body })
    }
}

impl<'a> Body<'a> {
    /// The bytes that have not been read.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The next numbers of 8 bytes.
    pub fn u64s<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut all = [0; N];
        for one in &mut all {
            *one = self.u64()?;
        }
        Some(all)
    }

    /// The next number of 8 bytes, nanoseconds since the start.
    pub fn time(&mut self) -> Option<Time> {
        self.u64().map(Time::from_nanos)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next number of 8 bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// The next number of 4 bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    /// The next number of 2 bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[b]| b)
    }

    /// All the numbers of 4 bytes that follow.
    pub fn all_u32(mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.u32()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_cut_off_ends_before_the_broken_record() {
        let mut bytes = Vec::new();
        for (kind, text) in [(2u32, [1u8, 0, 0, 0]), (3, [9, 0, 0, 0])] {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(7u32.to_le_bytes());
            bytes.extend(4u64.to_le_bytes());
            bytes.extend(text);
        }
        let read = |bytes: &[u8]| -> Vec<(u32, usize, Vec<u32>)> {
            Records::new(bytes)
                .map(|r| (r.kind, r.id, r.body.all_u32()))
                .collect()
        };
        let both = [(2, 7, vec![1]), (3, 7, vec![9])];
        assert_eq!(read(&bytes), both);
        assert_eq!(read(&bytes[..bytes.len() - 1]), both[..1]);
        assert_eq!(read(&[]), []);
    }
}
