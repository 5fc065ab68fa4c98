//! What a kernel shows of a sender, look by look: the same numbers each time, most of them as they
//! were the time before.
//!
//! A look is kept as the time since the one before, a mask of the numbers that changed, and by how
//! much each did, all of them in as few bytes as they need (LEB128, signs folded into the lowest
//! bit): 20 to 50 bytes of the 490 that 61 numbers take.

use fullpipe_units::{Span, Time};

/// A number that every look has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookField {
    /// Its name, as the kernel spells it.
    pub name: &'static str,
    /// Unit; empty for a plain number or code.
    pub unit: &'static str,
}

/// All looks at a sender, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    fields: Vec<LookField>,
    bytes: Vec<u8>,
    count: usize,
    latest: (Time, Vec<u64>),
}

impl Looks {
    /// None yet; they will have these numbers.
    ///
    /// # Panics
    /// If there are more than 64.
    pub fn new(fields: impl IntoIterator<Item = LookField>) -> Self {
        let fields: Vec<LookField> = fields.into_iter().collect();
        assert!(fields.len() <= u64::BITS as usize, "a mask has 64 bits");
        Self {
            latest: (Time::ZERO, vec![NONE; fields.len()]),
            fields,
            ..Self::default()
        }
    }

    /// One more, not before the one that came last; values in the order of the fields, `None` where
    /// the kernel has none.
    pub fn push(&mut self, at: Time, values: impl IntoIterator<Item = Option<u64>>) {
        let (before, known) = &mut self.latest;
        write(&mut self.bytes, at.saturating_since(*before).as_nanos());
        *before = at;
        let mut changes = [0; u64::BITS as usize];
        let mut mask = 0;
        for (i, (known, value)) in known.iter_mut().zip(values).enumerate() {
            let value = value.unwrap_or(NONE);
            changes[i] = value.wrapping_sub(*known).cast_signed();
            mask |= u64::from(value != *known) << i;
            *known = value;
        }
        write(&mut self.bytes, mask);
        for i in bits(mask) {
            write(&mut self.bytes, folded(changes[i]));
        }
        self.count += 1;
    }

    /// Names and units, in the order of the values.
    pub fn fields(&self) -> &[LookField] {
        &self.fields
    }

    /// Looks that were pushed so far.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if nobody looked.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// From the first to the last, each with its time.
    pub fn iter(&self) -> impl Iterator<Item = (Time, Vec<Option<u64>>)> + '_ {
        let mut rest = self.bytes.as_slice();
        let mut at = Time::ZERO;
        let mut known = vec![NONE; self.fields.len()];
        std::iter::from_fn(move || {
            at += Span::from_nanos(read(&mut rest)?);
            for i in bits(read(&mut rest)?) {
                let change = unfolded(read(&mut rest)?).cast_unsigned();
                known[i] = known[i].wrapping_add(change);
            }
            let values = known.iter().map(|v| (*v != NONE).then_some(*v));
            Some((at, values.collect()))
        })
    }
}

/// Stands for no value: no counter of a run comes there.
const NONE: u64 = u64::MAX;

fn bits(mask: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |i| mask >> i & 1 == 1)
}

fn folded(change: i64) -> u64 {
    (change << 1 ^ change >> 63).cast_unsigned()
}

fn unfolded(folded: u64) -> i64 {
    (folded >> 1).cast_signed() ^ -(folded & 1).cast_signed()
}

/// Seven bits a byte, the low ones first; the eighth says that more follow (LEB128).
fn write(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [LookField; 3] = [
        LookField {
            name: "a",
            unit: "us",
        },
        LookField {
            name: "b",
            unit: "byte",
        },
        LookField {
            name: "c",
            unit: "",
        },
    ];

    #[test]
    fn what_was_seen_comes_back() {
        let ms = |n| Time::ZERO + Span::from_millis(n);
        let seen = [
            (ms(3), vec![Some(0), None, Some(u64::MAX - 1)]),
            (ms(4), vec![Some(0), Some(7), Some(0)]),
            (ms(4), vec![Some(1 << 63), Some(7), None]),
            (ms(90_000), vec![Some(5), Some(6), None]),
            (ms(90_001), vec![Some(5), Some(6), None]),
        ];
        let mut looks = Looks::new(FIELDS);
        assert!(looks.is_empty() && looks.iter().next().is_none());
        for (at, values) in &seen {
            looks.push(*at, values.iter().copied());
        }
        assert_eq!(looks.fields(), FIELDS);
        assert_eq!(looks.len(), seen.len());
        assert_eq!(looks.iter().collect::<Vec<_>>(), seen);
    }

    /// A counter that grows by a few segments, a time that trembles, and what stays.
    #[test]
    fn what_stays_takes_no_room() {
        let mut looks = Looks::new(FIELDS);
        for i in 0..1000 {
            let at = Time::ZERO + Span::from_millis(i);
            looks.push(at, [Some(40_000 + i % 7), Some(i * 14_480), Some(1)]);
        }
        // 4 bytes of time, one of the mask, one and three of the changes.
        assert!(looks.bytes() <= 9 * 1000 + 20, "{}", looks.bytes());
    }

    #[test]
    fn changes_of_either_sign_are_small_numbers() {
        for (change, small) in [(0, 0), (-1, 1), (1, 2), (i64::MIN, u64::MAX)] {
            assert_eq!(folded(change), small);
            assert_eq!(unfolded(small), change);
        }
    }
}
