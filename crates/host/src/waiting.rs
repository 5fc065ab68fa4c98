//! Senders that one interface refused.

use std::collections::VecDeque;

/// Senders that wait for room at the interface of their host, the longest first.
///
/// One is woken at a time: the one that finds room takes it and, refused again, stands behind the
/// others. Woken all at once, the first would take the room each time.
#[derive(Debug, Default)]
pub struct Waiting {
    slots: VecDeque<u32>,
    /// The first has been told to try again.
    is_woken: bool,
}

impl Waiting {
    /// A sender that did not wait was refused, or leaves its place to those who wait; whom to wake
    /// when there is room, if nobody is woken.
    pub fn refused(&mut self, slot: u32) -> Option<u32> {
        self.slots.push_back(slot);
        self.wake()
    }

    /// Nobody waits.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The first tries again, and waits no longer.
    pub fn resumed(&mut self) {
        self.is_woken = false;
        self.slots.pop_front();
    }

    /// Whom to wake next, if somebody waits and nobody is woken.
    pub fn wake(&mut self) -> Option<u32> {
        let first = *self.slots.front()?;
        let wakes = !std::mem::replace(&mut self.is_woken, true);
        wakes.then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waited_longest_is_next() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.refused(7), Some(7));
        assert_eq!((waiting.refused(3), waiting.refused(5)), (None, None));
        waiting.resumed();
        // Refused again, behind the others, of which the first is woken.
        assert_eq!(waiting.refused(7), Some(3));
        assert_eq!(waiting.wake(), None);
        waiting.resumed();
        assert_eq!(waiting.wake(), Some(5));
        waiting.resumed();
        assert_eq!(waiting.wake(), Some(7));
        waiting.resumed();
        assert_eq!(waiting.wake(), None);
    }
}
