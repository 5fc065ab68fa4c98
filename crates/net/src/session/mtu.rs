//! How long a datagram may be: packetization layer path MTU discovery for datagrams (DPLPMTUD, RFC
//! 8899).
//!
//! A run says how long its packets are, so that is where this begins, and not at the base size.
//! What makes a sender doubt it, a timeout without progress or an ICMP message, has it confirmed
//! by probes: three of that length that get lost while short ones come back are a black hole. Then
//! datagrams leave in pieces of the base size, and a search between the two finds what passes.
//! Probes are control messages: no congestion window knows of them. An ICMP message is a hint; no
//! number that it names is believed.

use std::sync::Arc;

use fullpipe_units::{Span, Time};

use crate::endpoint::{BASE, PathLimit};

/// A probe to be sent: its number, and bytes of its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Number, which its answer has too.
    pub number: u32,
    /// Bytes of UDP payload.
    pub bytes: usize,
}

/// One direction of a path.
#[derive(Debug)]
pub struct Prober {
    path: Arc<PathLimit>,
    /// Longest datagram of the run.
    most: usize,
    phase: Phase,
    next: u32,
    attempt: Attempt,
    rtt: Option<Span>,
    /// No doubt counts before this time.
    quiet: Time,
    /// When a longer one is tried again.
    raise: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is in doubt.
    Rest,
    /// The present limit is.
    Confirm,
    /// The first passes, the second does not.
    Search(usize, usize),
}

/// A probe of the size in question, beside one of the base size.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    base: Probe,
    large: Probe,
    /// How many of the two have left.
    left: u8,
    sent: Time,
    until: Time,
    base_came: bool,
    /// Attempts of this size of which only the base came back.
    failed: u8,
    /// Attempts in a row of which nothing came back.
    silent: u32,
}

/// Probes of a size that get lost before it counts as too large (`MAX_PROBES`, RFC 8899 section
/// 5.1.2).
const MOST_PROBES: u8 = 3;
/// Time after which a size that did not pass is tried again (`PMTU_RAISE_TIMER`, RFC 8899 section
/// 5.1.1).
const RAISE: Span = Span::from_secs(600);
/// A search ends when it knows the limit to so many bytes.
const STEP: usize = 16;
/// Wait for an answer before a round trip is known, and beyond two of them.
const FIRST_WAIT: Span = Span::from_secs(1);
const SLACK: Span = Span::from_millis(150);
/// From one confirmation to the next.
const QUIET: Span = Span::from_secs(1);

impl Default for Prober {
    /// Of a path of which nothing is in doubt.
    fn default() -> Self {
        let none = Probe {
            number: 0,
            bytes: 0,
        };
        Self {
            path: Arc::default(),
            most: 0,
            phase: Phase::Rest,
            next: 1,
            attempt: Attempt {
                base: none,
                large: none,
                left: 2,
                sent: Time::ZERO,
                until: Time::MAX,
                base_came: false,
                failed: 0,
                silent: 0,
            },
            rtt: None,
            quiet: Time::ZERO,
            raise: Time::MAX,
        }
    }
}

impl Prober {
    /// A run begins whose longest datagram has so many bytes of UDP payload.
    pub fn begin(&mut self, most: usize) {
        self.most = most;
        self.path.set(most);
        self.path.join(0);
    }

    /// Limits on the length of datagrams, shared with the endpoint.
    pub fn path(&self) -> Arc<PathLimit> {
        Arc::clone(&self.path)
    }

    /// Bytes of UDP payload that the longest datagrams are cut to, if they are.
    pub fn narrowed(&self) -> Option<usize> {
        let bytes = self.path.bytes();
        (self.most > 0 && bytes < self.most).then_some(bytes)
    }

    /// The probe that is to be sent now, if there is one.
    pub fn poll(&mut self, now: Time) -> Option<Probe> {
        if self.most <= BASE {
            return None;
        }
        if self.path.take_refusal() {
            // The host's own interface has said so: no doubt about that.
            self.narrow(now, self.attempt_size().unwrap_or(self.most));
        }
        if self.phase == Phase::Rest {
            let limit = self.path.bytes();
            if self.path.take_doubt() && limit > BASE && now >= self.quiet {
                self.turn_to(now, Phase::Confirm);
            } else if now >= self.raise {
                self.turn_to(now, Phase::Search(limit, self.most + 1));
            } else {
                return None;
            }
        } else if now >= self.attempt.until {
            self.conclude(now);
        }
        let attempt = &mut self.attempt;
        if self.phase == Phase::Rest || attempt.left == 2 {
            return None;
        }
        attempt.left += 1;
        Some(match attempt.left {
            1 => attempt.base,
            _ => attempt.large,
        })
    }

    /// Latest time at which [`Prober::poll`] has something to do, unless something is doubted.
    pub fn next_timeout(&self) -> Time {
        match self.phase {
            _ if self.most <= BASE => Time::MAX,
            Phase::Rest => self.raise,
            _ => self.attempt.until,
        }
    }

    /// An answer has come.
    pub fn answered(&mut self, now: Time, number: u32) {
        let attempt = &mut self.attempt;
        if self.phase == Phase::Rest {
            return;
        }
        if number == attempt.base.number {
            let sample = now.saturating_since(attempt.sent);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt * 7 / 8 + sample / 8));
            (attempt.base_came, attempt.silent) = (true, 0);
            let wait = self.wait();
            self.attempt.until = self.attempt.until.min(self.attempt.sent + wait);
        } else if number == attempt.large.number {
            let size = attempt.large.bytes;
            self.path.set(size);
            match self.phase {
                Phase::Search(_, high) => self.go_on(now, size, high),
                _ => self.rest(now),
            }
        }
    }

    fn attempt_size(&self) -> Option<usize> {
        (self.phase != Phase::Rest).then_some(self.attempt.large.bytes)
    }

    fn wait(&self) -> Span {
        let known = self.rtt.map_or(FIRST_WAIT, |rtt| rtt * 2 + SLACK);
        known * (1 << self.attempt.silent.min(3))
    }

    fn turn_to(&mut self, now: Time, phase: Phase) {
        self.phase = phase;
        (self.attempt.failed, self.attempt.silent) = (0, 0);
        self.try_size(now);
    }

    fn try_size(&mut self, now: Time) {
        let bytes = match self.phase {
            Phase::Rest => return,
            Phase::Confirm => self.path.bytes(),
            // What passed once is likely to pass again.
            Phase::Search(_, high) if high > self.most => self.most,
            Phase::Search(low, high) => low.midpoint(high),
        };
        let number = self.next;
        self.next = self.next.wrapping_add(2);
        let probe = |number, bytes| Probe { number, bytes };
        self.attempt = Attempt {
            base: probe(number, BASE),
            large: probe(number.wrapping_add(1), bytes),
            left: 0,
            sent: now,
            until: now + self.wait(),
            base_came: false,
            ..self.attempt
        };
    }

    /// The time of an attempt is over.
    fn conclude(&mut self, now: Time) {
        if self.attempt.base_came {
            self.attempt.failed += 1;
        } else {
            // The path carries nothing at all: that says nothing about lengths.
            self.attempt.silent += 1;
        }
        let size = self.attempt.large.bytes;
        match self.phase {
            _ if self.attempt.failed < MOST_PROBES => self.try_size(now),
            Phase::Confirm => self.narrow(now, size),
            Phase::Search(low, _) => self.go_on(now, low, size),
            Phase::Rest => {}
        }
    }

    /// What has `high` bytes does not pass: the base size until it is known what does.
    fn narrow(&mut self, now: Time, high: usize) {
        self.path.set(BASE);
        self.go_on(now, BASE, high);
    }

    fn go_on(&mut self, now: Time, low: usize, high: usize) {
        match high - low > STEP && low < self.most {
            true => self.turn_to(now, Phase::Search(low, high)),
            false => self.rest(now),
        }
    }

    fn rest(&mut self, now: Time) {
        self.phase = Phase::Rest;
        self.quiet = now + QUIET;
        self.raise = match self.path.bytes() < self.most {
            true => now + RAISE,
            false => Time::MAX,
        };
        // What was doubted meanwhile has been looked at.
        self.path.take_doubt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A path of a round trip of 40 ms that carries so many bytes, and loses some.
    struct Path {
        now: Time,
        mtu: usize,
        lost: u8,
        dice: u64,
        coming: Vec<(Time, u32)>,
        sent: usize,
    }

    impl Path {
        fn new(mtu: usize, lost: u8, dice: u64) -> Self {
            Self {
                now: Time::ZERO,
                mtu,
                lost,
                dice,
                coming: Vec::new(),
                sent: 0,
            }
        }

        fn step(&mut self, prober: &mut Prober) {
            while let Some(probe) = prober.poll(self.now) {
                self.sent += 1;
                self.dice = self
                    .dice
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let lost = (self.dice >> 33) % 100 < u64::from(self.lost);
                if probe.bytes <= self.mtu && !lost {
                    self.coming
                        .push((self.now + Span::from_millis(40), probe.number));
                }
            }
            self.now += Span::from_millis(5);
            let now = self.now;
            let (due, later) = self.coming.iter().partition(|(at, _)| *at <= now);
            self.coming = later;
            let due: Vec<(Time, u32)> = due;
            due.iter().for_each(|(_, n)| prober.answered(now, *n));
        }

        fn run(&mut self, prober: &mut Prober, span: Span) {
            let end = self.now + span;
            while self.now < end {
                self.step(prober);
            }
        }
    }

    #[test]
    fn a_black_hole_is_found_and_what_passes_is_searched() {
        for (most, mtu) in [(1472, 1372), (1472, 1230), (8972, 1472), (1472, 1452)] {
            let mut prober = Prober::default();
            prober.begin(most);
            let mut path = Path::new(mtu, 0, 1);
            path.run(&mut prober, Span::from_secs(5));
            assert_eq!(
                (path.sent, prober.narrowed()),
                (0, None),
                "nothing was in doubt"
            );
            prober.path().doubt();
            // 1 s at first, and then three attempts of 230 ms for each size that does not pass.
            path.run(&mut prober, Span::from_secs(1));
            assert!(
                prober.path().bytes() <= mtu,
                "{most} {mtu}: {}",
                prober.path().bytes()
            );
            path.run(&mut prober, Span::from_secs(8));
            let found = prober.path().bytes();
            assert!(found <= mtu && mtu - found <= STEP, "{most} {mtu}: {found}");
            let sent = path.sent;
            path.run(&mut prober, Span::from_secs(500));
            assert_eq!(path.sent, sent, "it rests");
            path.mtu = 9000;
            path.run(&mut prober, Span::from_secs(120));
            assert_eq!(prober.narrowed(), None, "after ten minutes it tries again");
        }
    }

    #[test]
    fn an_outage_is_no_black_hole() {
        let mut prober = Prober::default();
        prober.begin(1472);
        let mut path = Path::new(0, 0, 1);
        prober.path().doubt();
        path.run(&mut prober, Span::from_secs(60));
        assert_eq!(prober.narrowed(), None);
        assert!(path.sent < 40, "{}", path.sent);
        path.mtu = 1472;
        path.run(&mut prober, Span::from_secs(20));
        assert_eq!(prober.narrowed(), None);
    }

    #[test]
    fn doubts_cost_two_probes_a_second() {
        let mut prober = Prober::default();
        prober.begin(1472);
        let mut path = Path::new(1472, 0, 1);
        for _ in 0..2000 {
            prober.path().doubt();
            path.step(&mut prober);
        }
        assert_eq!(prober.narrowed(), None, "ICMP is a hint");
        assert!(path.sent <= 22, "{} in ten seconds", path.sent);
    }

    #[test]
    fn an_interface_that_refuses_is_believed() {
        let mut prober = Prober::default();
        prober.begin(1472);
        let path_limit = prober.path();
        path_limit.refuse();
        let mut path = Path::new(1252, 0, 1);
        path.step(&mut prober);
        assert_eq!(path_limit.bytes(), BASE);
        path.run(&mut prober, Span::from_secs(5));
        assert!(
            (1236..=1252).contains(&path_limit.bytes()),
            "{}",
            path_limit.bytes()
        );
    }

    proptest! {
        /// What the limit is set to has passed, or is the base size, or what the run began with;
        /// also on a path that loses a tenth of all probes.
        #[test]
        fn the_limit_is_what_has_passed(
            mtu in BASE..9000, most in BASE..9000, lost in 0u8..11, dice in any::<u64>()
        ) {
            let mut prober = Prober::default();
            prober.begin(most);
            let mut path = Path::new(mtu, lost, dice);
            prober.path().doubt();
            path.run(&mut prober, Span::from_secs(60));
            let found = prober.path().bytes();
            prop_assert!(found <= mtu.max(BASE) || found == most && most <= mtu, "{found}");
        }
    }
}
