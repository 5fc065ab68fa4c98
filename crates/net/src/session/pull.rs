//! Getting a result, part by part: several questions under way at a time, more as long as nothing
//! is lost, half as many after a loss. Without a socket or a clock.

use std::collections::VecDeque;

use fullpipe_units::{Span, Time};

use super::control::{MOST_PARTS, PART};

/// Longest result, bytes.
pub const LONGEST: u32 = 256 << 20;

/// Most questions under way.
const MOST_QUESTIONS: usize = 64;
/// Until an answer is missed, as long as no time is known.
const FIRST_WAIT: Span = Span::from_millis(500);
const SHORTEST_WAIT: Span = Span::from_millis(100);
/// Questions about the same part.
const MOST_TRIES: u32 = 20;

/// A result under way.
#[derive(Debug)]
pub struct Pull {
    digest: [u8; 32],
    bytes: Vec<u8>,
    have: Vec<bool>,
    missing: usize,
    /// Runs of parts still to ask for: first, number, tries so far.
    todo: VecDeque<(u32, u16, u32)>,
    asked: Vec<Asked>,
    window: usize,
    wait: Span,
}

/// A question.
#[derive(Debug)]
struct Asked {
    from: u32,
    many: u16,
    missing: u16,
    tries: u32,
    at: Time,
    deadline: Time,
}

/// A result that did not arrive whole, by its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    /// Longer than [`LONGEST`].
    #[error("the result of {0} bytes is too long")]
    TooLong(u32),
    /// Other bytes than were announced.
    #[error("the result does not have the hash that was announced")]
    Damaged,
    /// A part does not come.
    #[error("the result does not come")]
    Stuck,
}

impl Pull {
    /// Of a result that was announced.
    ///
    /// # Errors
    /// [`PullError::TooLong`].
    pub fn new(length: u32, digest: [u8; 32]) -> Result<Self, PullError> {
        if length > LONGEST {
            return Err(PullError::TooLong(length));
        }
        let parts = (length as usize).div_ceil(PART);
        let todo = (0..parts).step_by(usize::from(MOST_PARTS)).map(|from| {
            let many = (parts - from).min(usize::from(MOST_PARTS));
            (from as u32, many as u16, 0)
        });
        Ok(Self {
            digest,
            bytes: vec![0; length as usize],
            have: vec![false; parts],
            missing: parts,
            todo: todo.collect(),
            asked: Vec::new(),
            window: 2,
            wait: FIRST_WAIT,
        })
    }

    /// The next question, if one may be asked now: the first part, and how many.
    ///
    /// # Errors
    /// [`PullError::Stuck`].
    pub fn poll(&mut self, now: Time) -> Result<Option<(u32, u16)>, PullError> {
        self.miss(now)?;
        if self.asked.len() >= self.window {
            return Ok(None);
        }
        let Some((from, many, tries)) = self.todo.pop_front() else {
            return Ok(None);
        };
        self.asked.push(Asked {
            from,
            many,
            missing: many,
            tries: tries + 1,
            at: now,
            deadline: now + self.wait * u64::from(1 + tries.min(5)),
        });
        Ok(Some((from, many)))
    }

    /// What is overdue will be asked again.
    fn miss(&mut self, now: Time) -> Result<(), PullError> {
        let mut late = false;
        let mut i = 0;
        while i < self.asked.len() {
            if self.asked[i].deadline > now {
                i += 1;
                continue;
            }
            late = true;
            let a = self.asked.swap_remove(i);
            if a.tries >= MOST_TRIES {
                return Err(PullError::Stuck);
            }
            let mut part = a.from;
            let end = a.from + u32::from(a.many);
            while part < end {
                let absent = self.have[part as usize..end as usize]
                    .iter()
                    .take_while(|have| !**have)
                    .count() as u32;
                if absent > 0 {
                    self.todo.push_front((part, absent as u16, a.tries));
                }
                part += absent.max(1);
            }
        }
        if late {
            self.window = (self.window / 2).max(1);
        }
        Ok(())
    }

    /// When [`Pull::poll`] is due again.
    pub fn next_timeout(&self) -> Time {
        if self.asked.len() < self.window && !self.todo.is_empty() {
            return Time::ZERO;
        }
        let deadlines = self.asked.iter().map(|a| a.deadline);
        deadlines.min().unwrap_or(Time::MAX)
    }

    /// A part has come. Wrong lengths and places are passed over.
    pub fn take(&mut self, now: Time, at: u32, part: &[u8]) {
        let start = at as usize * PART;
        let Some(have) = self.have.get_mut(at as usize) else {
            return;
        };
        let end = (start + PART).min(self.bytes.len());
        if *have || part.len() != end - start {
            return;
        }
        *have = true;
        self.bytes[start..end].copy_from_slice(part);
        self.missing -= 1;
        let of = |a: &Asked| (a.from..a.from + u32::from(a.many)).contains(&at);
        if let Some(i) = self.asked.iter().position(of) {
            let a = &mut self.asked[i];
            a.missing -= 1;
            if a.tries == 1 {
                self.wait = ((now.saturating_since(a.at)) * 3).max(SHORTEST_WAIT);
            }
            if a.missing == 0 {
                self.asked.swap_remove(i);
                self.window = (self.window + 1).min(MOST_QUESTIONS);
            }
        }
    }

    /// True when every part is there.
    pub fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// The result.
    ///
    /// # Errors
    /// [`PullError`].
    pub fn finish(self) -> Result<Vec<u8>, PullError> {
        if self.missing > 0 {
            return Err(PullError::Stuck);
        }
        match blake3::hash(&self.bytes) == self.digest {
            true => Ok(self.bytes),
            false => Err(PullError::Damaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn result(n: usize) -> Vec<u8> {
        (0..n).map(|i| (i * 31 % 251) as u8).collect()
    }

    proptest! {
        /// Through a network that loses, delays and repeats.
        #[test]
        fn every_byte_arrives(n in 0usize..120_000, fate in proptest::collection::vec((0u8..10, 1u64..300), 64)) {
            let whole = result(n);
            let digest = *blake3::hash(&whole).as_bytes();
            let mut pull = Pull::new(n as u32, digest).unwrap();
            let mut fate = fate.into_iter().cycle();
            let (mut now, mut flying) = (Time::ZERO, Vec::<(Time, u32)>::new());
            while !pull.is_complete() {
                while let Some((from, many)) = pull.poll(now).unwrap() {
                    for at in from..from + u32::from(many) {
                        let (kind, late) = fate.next().unwrap();
                        let arrival = now + Span::from_millis(late);
                        match kind {
                            0 | 1 => {}
                            2 => flying.extend([(arrival, at), (arrival, at)]),
                            _ => flying.push((arrival, at)),
                        }
                    }
                }
                flying.sort();
                let next = flying.first().map_or(Time::MAX, |f| f.0);
                now = now.max(next.min(pull.next_timeout()));
                while flying.first().is_some_and(|f| f.0 <= now) {
                    let (_, at) = flying.remove(0);
                    let start = at as usize * PART;
                    pull.take(now, at, &whole[start..(start + PART).min(n)]);
                }
            }
            prop_assert_eq!(pull.finish().unwrap(), whole);
        }
    }

    #[test]
    fn what_was_not_announced_is_refused() {
        assert!(matches!(
            Pull::new(LONGEST + 1, [0; 32]),
            Err(PullError::TooLong(_))
        ));
        let whole = result(3000);
        let mut pull = Pull::new(3000, *blake3::hash(&whole).as_bytes()).unwrap();
        pull.take(Time::ZERO, 0, &whole[..PART - 1]);
        pull.take(Time::ZERO, 3, &whole[..PART]);
        pull.take(Time::ZERO, u32::MAX, &whole[..PART]);
        assert_eq!(pull.missing, 3);
        for at in 0..3 {
            let start = at * PART;
            let part = &whole[start..(start + PART).min(3000)];
            let bent: Vec<u8> = part.iter().map(|b| b ^ 1).collect();
            pull.take(Time::ZERO, at as u32, if at == 1 { &bent } else { part });
        }
        assert_eq!(pull.finish(), Err(PullError::Damaged));
    }

    #[test]
    fn nobody_is_asked_for_ever() {
        let mut pull = Pull::new(3000, [0; 32]).unwrap();
        let (mut now, mut questions) = (Time::ZERO, 0);
        let error = loop {
            match pull.poll(now) {
                Ok(Some(_)) => questions += 1,
                Ok(None) => now = pull.next_timeout(),
                Err(error) => break error,
            }
        };
        assert_eq!((error, questions), (PullError::Stuck, 20));
    }
}
