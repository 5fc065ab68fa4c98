//! How much a server says to an address before the client has shown that it hears it.
//!
//! Who keeps a session after the address is somebody else's, or stops reading, can still ask: for a
//! result, for the list of a directory. So what the server says beyond as many bytes as it is sent
//! comes out of a credit, and the credit is renewed only by a challenge that comes back: it proves
//! that what left before it has arrived.

use fullpipe_units::{Span, Time};

use super::path::{CHALLENGE_BYTES, Challenge};

/// Bytes of UDP payload, in control messages.
#[derive(Debug)]
pub struct Credit {
    /// Bytes that may leave from one proof to the next, beyond those that came.
    most: u64,
    sent: u64,
    received: u64,
    /// The challenge under way, the bytes that it vouches for, and when it may be sent again.
    asked: Option<(Challenge, u64, Time)>,
}

/// The credit to begin with: the first parts of a result. It doubles with each proof, as a window
/// in slow start does, up to more than a client asks for at once.
const FIRST: u64 = 256 << 10;
const MOST: u64 = 4 << 20;
/// For challenges alone: without them a credit that is used up would never be renewed.
const RESERVE: u64 = 1024;
/// A challenge that is not answered is sent again after this time.
const AGAIN: Span = Span::from_millis(200);

impl Default for Credit {
    fn default() -> Self {
        Self {
            most: FIRST,
            sent: 0,
            received: 0,
            asked: None,
        }
    }
}

impl Credit {
    /// A message of the client came from where it is.
    pub fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// True if a message of so many bytes may leave; then it counts.
    pub fn spend(&mut self, bytes: usize) -> bool {
        self.take(bytes as u64, 0)
    }

    fn take(&mut self, bytes: u64, beyond: u64) -> bool {
        let fits = self.sent + bytes <= self.most + self.received + beyond;
        if fits {
            self.sent += bytes;
        }
        fits
    }

    /// The challenge that is to be sent now, if a good part of the credit is used; `fresh` makes
    /// one.
    pub fn poll(
        &mut self,
        now: Time,
        fresh: impl FnOnce() -> Option<Challenge>,
    ) -> Option<Challenge> {
        let is_due = match self.asked {
            Some((_, _, again)) => now >= again,
            None => self.sent > self.received + self.most / 4,
        };
        if !is_due || !self.take(CHALLENGE_BYTES, RESERVE) {
            return None;
        }
        let (challenge, until) = match self.asked {
            Some((challenge, until, _)) => (challenge, until),
            None => (fresh()?, self.sent),
        };
        self.asked = Some((challenge, until, now + AGAIN));
        Some(challenge)
    }

    /// This came back; true if it is the challenge.
    pub fn answered(&mut self, answer: Challenge) -> bool {
        let right = |asked: &mut (Challenge, u64, Time)| asked.0 == answer;
        let Some((_, until, _)) = self.asked.take_if(right) else {
            return false;
        };
        self.sent -= until;
        self.received = 0;
        self.most = (2 * self.most).min(MOST);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: Time = Time::ZERO;

    /// Asks for a thousand bytes until there are no more.
    fn drain(credit: &mut Credit) -> u64 {
        (0..).take_while(|_| credit.spend(1000)).count() as u64 * 1000
    }

    #[test]
    fn who_hears_nothing_gets_one_credit() {
        let mut credit = Credit::default();
        assert_eq!(
            credit.poll(START, || Some([1; 8])),
            None,
            "nothing was said"
        );
        let mut got = drain(&mut credit);
        assert!(got <= FIRST);
        for i in 0..10_000u64 {
            let now = START + Span::from_millis(i);
            // A guess, and a question.
            assert!(!credit.answered([0; 8]));
            credit.received(45);
            got += drain(&mut credit);
            let challenge = credit.poll(now, || Some([1; 8]));
            got += challenge.map_or(0, |_| CHALLENGE_BYTES);
        }
        assert!(got <= FIRST + RESERVE + 450_000, "{got}");
    }

    #[test]
    fn who_hears_gets_as_much_as_it_asks_for() {
        let mut credit = Credit::default();
        let (mut got, mut now) = (0, START);
        for round in 0..20 {
            // What left before the challenge was made is proven, and no more.
            got += drain(&mut credit);
            now += AGAIN;
            let challenge = credit.poll(now, || Some([round; 8])).unwrap();
            assert_eq!(challenge, [round; 8]);
            assert_eq!(drain(&mut credit), 0);
            assert!(credit.answered(challenge));
            assert!(!credit.answered(challenge), "it counts once");
        }
        assert!(got > 14 * MOST, "{got}");
    }

    #[test]
    fn a_lost_challenge_is_sent_again_and_vouches_for_no_more() {
        let mut credit = Credit::default();
        assert!(credit.spend(100_000));
        assert_eq!(credit.poll(START, || Some([1; 8])), Some([1; 8]));
        assert!(credit.spend(60_000));
        assert_eq!(credit.poll(START, || Some([2; 8])), None, "too soon");
        assert_eq!(credit.poll(START + AGAIN, || Some([2; 8])), Some([1; 8]));
        assert!(credit.answered([1; 8]));
        assert_eq!(credit.sent, 60_000 + CHALLENGE_BYTES);
    }

    proptest! {
        /// Over any schedule: between two proofs no more than the credit leaves beyond what came.
        #[test]
        fn beyond_what_came_no_more_than_the_credit_leaves(
            steps in proptest::collection::vec((0u8..4, 1usize..3000), 1..400)
        ) {
            let mut credit = Credit::default();
            let (mut now, mut unproven, mut came, mut sure) = (START, 0u64, 0u64, 0u64);
            let mut most = FIRST;
            let mut challenge = None;
            for (what, n) in steps {
                match what {
                    0 => {
                        credit.received(n);
                        came += n as u64;
                    }
                    1 => for _ in 0..20 {
                        unproven += if credit.spend(n) { n as u64 } else { 0 };
                    },
                    2 => {
                        now += Span::from_millis(n as u64);
                        let made = credit.poll(now, || Some([n as u8; 8]));
                        if let Some(made) = made {
                            unproven += CHALLENGE_BYTES;
                            if challenge != Some(made) {
                                sure = unproven;
                            }
                            challenge = Some(made);
                        }
                    }
                    _ => if let Some(answer) = challenge.take_if(|_| n % 3 == 0) {
                        prop_assert!(credit.answered(answer));
                        (unproven, came, most) = (unproven - sure, 0, (2 * most).min(MOST));
                    },
                }
                prop_assert!(unproven <= most + came + RESERVE, "{unproven} {came}");
            }
        }
    }
}
