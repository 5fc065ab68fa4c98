//! Flow numbers on the wire.
//!
//! A lasting flow is called by its index. Short flows have numbers from `0x8000`: the class in the
//! upper of the fifteen bits that remain, as many as the classes of the run need, and below them
//! the flow's number in its class, modulo what is left. The flow that comes next under a number has
//! the next incarnation, which stands above bit 48 of its sequence numbers and in what acknowledges
//! them: datagrams of the flow before mean nothing to it.

use fullpipe_flow::{Ack, Range, SackBlocks};

/// Numbers of the short flows of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    classes: usize,
    /// Bits of a flow's number in its class.
    bits: u32,
}

/// The first number of a short flow.
pub const SHORT: u16 = 0x8000;
/// Classes at most: each still has eight numbers.
pub const MOST_CLASSES: usize = 1 << 12;
/// Above the sequence numbers of a short flow.
const TAG: u32 = 48;
/// Incarnations that are told apart: numbers stay below 2^62.
const INCARNATIONS: u64 = 1 << 14;

/// Which of the flows that follow one another under a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incarnation(u16);

impl Numbers {
    /// For so many classes, at most [`MOST_CLASSES`].
    pub fn new(classes: usize) -> Self {
        let classes = classes.min(MOST_CLASSES);
        let upper = classes.next_power_of_two().trailing_zeros();
        Self {
            classes,
            bits: 15 - upper,
        }
    }

    /// Number and incarnation of flow `n` of `class`.
    pub fn of(&self, class: u32, n: u64) -> (u16, Incarnation) {
        let low = n & ((1 << self.bits) - 1);
        // Fits: the class has the bits that `low` leaves.
        let number = SHORT | (class << self.bits) as u16 | low as u16;
        let incarnation = (n >> self.bits) % INCARNATIONS;
        (number, Incarnation(incarnation as u16))
    }

    /// The flow's number in its class, modulo 2^14 times the numbers of a class.
    pub fn index(&self, number: u16, incarnation: Incarnation) -> u64 {
        let low = u64::from(number) & ((1 << self.bits) - 1);
        u64::from(incarnation.0) << self.bits | low
    }

    /// The class that a number belongs to; `None`: a lasting flow, or a class that the run does not
    /// have.
    pub fn class(&self, number: u16) -> Option<usize> {
        let class = usize::from(number.checked_sub(SHORT)?) >> self.bits;
        (class < self.classes).then_some(class)
    }
}

impl Incarnation {
    /// A sequence number as it is on the wire.
    #[inline]
    pub fn mark(self, seq: u64) -> u64 {
        seq | u64::from(self.0) << TAG
    }

    /// Takes a sequence number of the wire apart.
    #[inline]
    pub fn split(seq: u64) -> (Self, u64) {
        let tag = (seq >> TAG) % INCARNATIONS;
        (Self(tag as u16), seq & ((1 << TAG) - 1))
    }

    /// It follows `other`, rather than the other way round.
    pub fn is_after(self, other: Self) -> bool {
        let ahead = u64::from(self.0.wrapping_sub(other.0)) % INCARNATIONS;
        ahead != 0 && ahead < INCARNATIONS / 2
    }

    /// An ACK as it is on the wire.
    pub fn mark_ack(self, ack: &Ack) -> Ack {
        self.with(ack, |seq| Some(self.mark(seq))).unwrap_or(*ack)
    }

    /// An ACK of the wire; `None`: it is of another incarnation.
    pub fn strip_ack(self, ack: &Ack) -> Option<Ack> {
        self.with(ack, |seq| {
            let (tag, seq) = Self::split(seq);
            (tag == self).then_some(seq)
        })
    }

    fn with(self, ack: &Ack, number: impl Fn(u64) -> Option<u64>) -> Option<Ack> {
        let mut sacks = SackBlocks::default();
        for block in ack.sacks.iter() {
            sacks.push(Range {
                start: number(block.start)?,
                end: number(block.end)?,
            });
        }
        Some(Ack {
            cum: number(ack.cum)?,
            window_end: match ack.window_end {
                u64::MAX => u64::MAX,
                end => number(end)?,
            },
            sacks,
            ..*ack
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::MOST_NUMBER;
    use fullpipe_units::Time;

    #[test]
    fn numbers_tell_classes_and_incarnations() {
        for classes in [1, 2, 3, 8, 4096] {
            let numbers = Numbers::new(classes);
            for class in [0, classes / 2, classes - 1] {
                let per_class = 1 << numbers.bits;
                let (first, one) = numbers.of(class as u32, 5);
                let (again, two) = numbers.of(class as u32, 5 + per_class);
                assert_eq!(numbers.class(first), Some(class));
                assert_eq!(first, again);
                assert_eq!(numbers.index(again, two), 5 + per_class);
                assert!(two.is_after(one) && !one.is_after(two) && !one.is_after(one));
                let (other, _) = numbers.of(class as u32, 6);
                assert_ne!(first, other);
            }
        }
        assert_eq!(Numbers::new(3).class(SHORT | 3 << 13), None);
        assert_eq!(Numbers::new(3).class(SHORT - 1), None);
        assert_eq!(Numbers::new(0).class(SHORT), None);
        let last = Incarnation(INCARNATIONS as u16 - 1);
        assert!(Incarnation(0).is_after(last));
        assert!(last.mark((1 << TAG) - 1) <= MOST_NUMBER);
    }

    #[test]
    fn an_ack_of_another_incarnation_is_none() {
        let mut sacks = SackBlocks::default();
        sacks.push(Range { start: 7, end: 9 });
        let ack = Ack {
            cum: 5,
            syn: false,
            echo: Time::ZERO,
            stamp_ms: 0,
            one_way: None,
            sacks,
            dsack: false,
            ece: false,
            window_end: 80,
        };
        let (this, next) = (Incarnation(4), Incarnation(5));
        let marked = this.mark_ack(&ack);
        assert_eq!(this.strip_ack(&marked), Some(ack));
        assert_eq!(next.strip_ack(&marked), None);
        let open = Ack {
            window_end: u64::MAX,
            ..ack
        };
        assert_eq!(this.strip_ack(&this.mark_ack(&open)), Some(open));
    }
}
