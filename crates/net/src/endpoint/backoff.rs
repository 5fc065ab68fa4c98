//! When a socket that refused is tried again.
//!
//! A full buffer of the socket (`EAGAIN`) tells when it has room again. A full queue of a device
//! (`ENOBUFS`) does not: the socket always says that it has room. What a call that ended early had
//! met is not known. So the socket is believed until it was wrong once; after that only time helps.

use fullpipe_units::{Span, Time};

/// WaitStrategy with a socket: of one episode after another, each from the first refusal until a
/// batch leaves whole.
#[derive(Debug)]
pub struct BackOff {
    /// Of the present episode: when to try again.
    at: Option<Time>,
    /// The pause before that.
    pause: Span,
    /// It said that it had room, and has not been tried since.
    told: bool,
    /// It said so and refused.
    wrong: bool,
}

impl BackOff {
    /// Nothing was refused yet.
    pub const fn new() -> Self {
        Self {
            at: None,
            pause: SHORTEST,
            told: false,
            wrong: false,
        }
    }

    /// All but the first `left` datagrams of a batch were refused. When to try again, at the
    /// latest, and whether an episode begins.
    pub fn refused(&mut self, now: Time, left: usize) -> (Time, bool) {
        self.wrong |= std::mem::take(&mut self.told);
        let first = self.at.is_none();
        match self.at {
            // Somebody who does not wait, or the socket was wrong.
            Some(at) if now < at => return (at, false),
            // What makes progress is tried again as soon as before.
            Some(_) if left == 0 => self.pause = (self.pause * 2).min(LONGEST),
            _ => {}
        }
        let at = now + self.pause;
        self.at = Some(at);
        (at, first)
    }

    /// A batch has left whole. True if that ends an episode.
    #[inline]
    pub fn accepted(&mut self) -> bool {
        let ends = self.at.is_some();
        if ends {
            *self = Self::new();
        }
        ends
    }

    /// Whether to ask the socket if it has room.
    pub fn asks(&self) -> bool {
        !self.wrong
    }

    /// It says that it has.
    pub fn told(&mut self) {
        self.told = self.at.is_some();
    }
}

/// The first pause.
const SHORTEST: Span = Span::from_micros(50);
/// The longest: at 10 Gbit/s the queue of a device, 1000 packets, is empty before that.
const LONGEST: Span = Span::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries again when it is told to; the pauses in microseconds.
    fn pauses(backoff: &mut BackOff, left: &[usize]) -> Vec<u64> {
        let mut now = Time::from_nanos(1_000_000);
        let mut pause = |&left| {
            let (at, _) = backoff.refused(now, left);
            (at - std::mem::replace(&mut now, at)).as_nanos() / 1000
        };
        left.iter().map(&mut pause).collect()
    }

    #[test]
    fn pauses_grow_while_nothing_leaves_and_begin_anew_with_the_next_episode() {
        let mut backoff = BackOff::new();
        let grown = pauses(&mut backoff, &[0; 8]);
        assert_eq!(grown, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert!(backoff.accepted() && !backoff.accepted());
        assert_eq!(
            pauses(&mut backoff, &[5, 1, 0, 3, 0]),
            [50, 50, 100, 100, 200]
        );
    }

    #[test]
    fn an_episode_lasts_until_a_batch_leaves_whole() {
        let mut backoff = BackOff::new();
        let now = Time::from_nanos(1_000_000);
        let (at, first) = backoff.refused(now, 0);
        assert!(first);
        // An ACK that could not wait changes nothing.
        assert_eq!(backoff.refused(now, 0), (at, false));
        assert!(!backoff.refused(at, 7).1);
        backoff.accepted();
        assert!(backoff.refused(at, 0).1);
    }

    #[test]
    fn a_socket_that_was_wrong_is_not_asked_again_in_the_same_episode() {
        let mut backoff = BackOff::new();
        let now = Time::from_nanos(1_000_000);
        backoff.told();
        let (at, _) = backoff.refused(now, 0);
        assert!(backoff.asks(), "that was before the episode");
        let (at, _) = backoff.refused(at, 0);
        assert!(backoff.asks(), "time was over, it said nothing");
        backoff.told();
        assert_eq!(backoff.refused(now, 1), (at, false));
        assert!(!backoff.asks());
        backoff.accepted();
        assert!(backoff.asks());
    }
}
