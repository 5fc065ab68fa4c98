//! A growing ring of `Copy` values with power-of-two capacity: push at the back, pop at the front,
//! index from either end by a mask instead of a comparison.

/// Capacity at first. Thousands of rings hold a packet or two each, and then every slot is one that
/// the cache has not seen for long.
const FIRST: usize = 4;

/// First in, first out.
#[derive(Debug)]
pub struct Ring<T> {
    slots: Box<[T]>,
    /// Pushed and popped so far; their difference is the length.
    head: u64,
    tail: u64,
}

impl<T: Copy> Ring<T> {
    /// An empty ring; `filler` occupies free slots.
    pub fn new(filler: T) -> Self {
        Self {
            slots: Box::new([filler; FIRST]),
            head: 0,
            tail: 0,
        }
    }

    /// Number of values.
    #[inline]
    pub fn len(&self) -> u64 {
        self.tail - self.head
    }

    /// Values pushed since the start.
    #[inline]
    pub fn pushed(&self) -> u64 {
        self.tail
    }

    /// Values popped since the start.
    #[inline]
    pub fn popped(&self) -> u64 {
        self.head
    }

    /// True if there is no value.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline]
    fn slot(&self, at: u64) -> usize {
        (at & (self.slots.len() as u64 - 1)) as usize
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len() == self.slots.len() as u64 {
            self.grow();
        }
        let i = self.slot(self.tail);
        self.slots[i] = value;
        self.tail += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let filler = self.slots[0];
        let mut slots = vec![filler; self.slots.len() * 2];
        let mask = slots.len() as u64 - 1;
        for at in self.head..self.tail {
            slots[(at & mask) as usize] = self.slots[self.slot(at)];
        }
        self.slots = slots.into();
    }

    /// Removes the oldest value of a ring that has one.
    #[inline]
    pub fn pop(&mut self) -> T {
        self.pop_before_next().0
    }

    /// The same, and the value that is the oldest now.
    #[inline(always)]
    pub fn pop_before_next(&mut self) -> (T, Option<&T>) {
        debug_assert!(!self.is_empty(), "pop from an empty ring");
        let head = self.head + 1;
        self.head = head;
        let next = (head != self.tail).then(|| &self.slots[self.slot(head)]);
        (self.slots[self.slot(head - 1)], next)
    }

    /// The oldest value.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        (!self.is_empty()).then(|| &self.slots[self.slot(self.head)])
    }

    /// Of all values pushed since the start the one with number `n`, from zero; it is in the ring.
    #[inline]
    pub fn get(&self, n: u64) -> &T {
        debug_assert!((self.head..self.tail).contains(&n), "not in the ring");
        &self.slots[self.slot(n)]
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + '_ {
        (self.head..self.tail).map(|at| &self.slots[self.slot(at)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_while_it_grows() {
        let mut ring = Ring::new(0u64);
        let mut next = 0;
        for i in 0..1000 {
            ring.push(i);
            if i % 3 == 0 {
                assert_eq!(ring.pop(), next);
                next += 1;
            }
        }
        assert_eq!(ring.len(), 666);
        assert_eq!(ring.front(), Some(&334));
        assert_eq!((ring.popped(), ring.pushed()), (334, 1000));
        assert_eq!(*ring.get(999), 999);
        assert!(ring.iter().copied().eq(334..1000));
    }
}
