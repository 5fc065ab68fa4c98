//! What the flows of each path did, arm by arm: an experiment (`share`) is read from it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::journal::Key;
use crate::layout::Listing;

/// What is seen of a flow at a time.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Bytes.
    pub bytes_acked: u64,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Bytes.
    pub mss: u32,
    /// Microseconds.
    pub srtt_us: u32,
}

impl From<&Listing> for Look {
    fn from(l: &Listing) -> Self {
        Self {
            bytes_acked: l.bytes_acked,
            retransmitted: l.retransmitted,
            mss: l.mss,
            srtt_us: l.srtt_us,
        }
    }
}

/// What became of a flow, from look to look. Looks between which nothing was acknowledged do not
/// count: a program that waits says nothing of its path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// The path whose flow it is.
    pub path: String,
    /// Left as it was, for comparison.
    pub control: bool,
    /// Its congestion control, by the kernel's name.
    pub algorithm: String,
    /// Time that counts, microseconds.
    pub busy_us: u64,
    /// Payload acknowledged in it, bytes.
    pub bytes: u64,
    /// Segments that it took.
    pub segments: u64,
    /// Segments sent again in it.
    pub sent_again: u64,
    /// Smoothed RTTs of the looks, microseconds, and their number.
    srtt: (u64, u64),
    /// The look before: when, bytes acknowledged, segments sent again.
    before: (u64, u64, u32),
}

impl Course {
    /// Payload per second, bit/s.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 * 8e6 / self.busy_us.max(1) as f64
    }

    /// Mean of the smoothed RTTs, ms.
    pub fn srtt_ms(&self) -> f64 {
        self.srtt.0 as f64 / self.srtt.1.max(1) as f64 / 1000.0
    }

    fn look(&mut self, now_us: u64, l: Look) {
        let (then, bytes, again) = self.before;
        self.before = (now_us, l.bytes_acked, l.retransmitted);
        let new = l.bytes_acked.saturating_sub(bytes);
        if new == 0 {
            return;
        }
        self.busy_us += now_us.saturating_sub(then);
        self.bytes += new;
        self.segments += new.div_ceil(u64::from(l.mss.max(1)));
        self.sent_again += u64::from(l.retransmitted.saturating_sub(again));
        self.srtt.0 += u64::from(l.srtt_us);
        self.srtt.1 += 1;
    }
}

/// Payload after which a flow has a rate to speak of, bytes: a hundred segments. A program's
/// questions and answers have none.
pub const ENOUGH: u64 = 150_000;

/// Flows that have ended and are remembered, at most.
const REMEMBERED: usize = 10_000;

/// Flows of paths that leave a part of them as they were.
#[derive(Debug, Default)]
pub struct Arms {
    running: BTreeMap<Key, Course>,
    ended: VecDeque<Course>,
    /// Since when a path's flows are looked at as its rule has it now.
    since_us: BTreeMap<String, u64>,
}

/// A flow that runs as its arm has it.
#[derive(Debug)]
pub struct Member<'a> {
    /// Namespace and cookie.
    pub key: Key,
    /// Name of the rule that matches it.
    pub path: &'a str,
    /// Left as it was, for comparison.
    pub control: bool,
    /// Its congestion control, by the kernel's name.
    pub algorithm: &'a str,
    /// Sums since its connection began.
    pub look: Look,
}

impl Arms {
    /// All of them as they are now; those that are not there any more have ended.
    pub fn look<'a>(&mut self, now_us: u64, members: impl Iterator<Item = Member<'a>>) {
        let mut there = BTreeSet::new();
        for m in members {
            there.insert(m.key);
            self.since_us.entry(m.path.to_owned()).or_insert(now_us);
            let before = (now_us, m.look.bytes_acked, m.look.retransmitted);
            let fresh = || Course {
                path: m.path.to_owned(),
                control: m.control,
                algorithm: m.algorithm.to_owned(),
                before,
                ..Course::default()
            };
            let course = self.running.entry(m.key).or_insert_with(fresh);
            if (course.path.as_str(), course.control) != (m.path, m.control) {
                let moved = std::mem::replace(course, fresh());
                self.ended.push_back(moved);
            }
            course.look(now_us, m.look);
        }
        let gone = self.running.extract_if(.., |key, _| !there.contains(key));
        self.ended.extend(gone.map(|(_, course)| course));
        let over = self.ended.len().saturating_sub(REMEMBERED);
        self.ended.drain(..over);
    }

    /// A path whose rule has changed begins anew.
    pub fn forget(&mut self, path: &str) {
        self.running.retain(|_, c| c.path != path);
        self.ended.retain(|c| c.path != path);
        self.since_us.remove(path);
    }

    /// What the flows of a path did, and since when they are looked at; those that run, too. A flow
    /// of less than [`ENOUGH`] is left out.
    pub fn of(&self, path: &str) -> (Option<u64>, Vec<&Course>) {
        let all = self.ended.iter().chain(self.running.values());
        let mine = all.filter(|c| c.path == path && c.bytes >= ENOUGH);
        (self.since_us.get(path).copied(), mine.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bytes_acked: u64, retransmitted: u32) -> Look {
        Look {
            bytes_acked,
            retransmitted,
            mss: 1000,
            srtt_us: 40_000,
        }
    }

    fn look(arms: &mut Arms, second: u64, flows: &[(u64, bool, Look)]) {
        let members = flows.iter().map(|(cookie, control, look)| Member {
            key: (1, *cookie),
            path: "lab",
            control: *control,
            algorithm: "reno",
            look: *look,
        });
        arms.look(second * 1_000_000, members);
    }

    #[test]
    fn rates_are_those_of_the_time_in_which_something_came() {
        let mut arms = Arms::default();
        // What it did before it was first looked at is nobody's.
        look(&mut arms, 1, &[(7, false, at(5_000_000, 3))]);
        look(&mut arms, 2, &[(7, false, at(6_000_000, 13))]);
        look(&mut arms, 9, &[(7, false, at(6_000_000, 13))]);
        look(&mut arms, 11, &[(7, false, at(10_000_000, 13))]);
        let (since, courses) = arms.of("lab");
        assert_eq!((since, courses.len()), (Some(1_000_000), 1));
        let c = courses[0];
        assert_eq!((c.busy_us, c.bytes), (3_000_000, 5_000_000));
        assert!((c.rate() - 40e6 / 3.0).abs() < 1.0);
        assert_eq!((c.segments, c.sent_again), (5000, 10));
        assert!((c.srtt_ms() - 40.0).abs() < 1e-9);
    }

    #[test]
    fn a_flow_that_ends_is_remembered_and_one_that_moves_begins_anew() {
        let mut arms = Arms::default();
        let k = 1000;
        let few = (9, true, at(0, 0));
        look(
            &mut arms,
            1,
            &[(7, false, at(0, 0)), (8, true, at(0, 0)), few],
        );
        // What 9 has said is no transfer.
        let few = (9, true, at(149 * k, 0));
        look(
            &mut arms,
            2,
            &[(7, false, at(900 * k, 0)), (8, true, at(950 * k, 0)), few],
        );
        // 7 has ended, and 8 is of the other arm now.
        look(&mut arms, 3, &[(8, false, at(1000 * k, 0))]);
        look(&mut arms, 4, &[(8, false, at(1300 * k, 0))]);
        let bytes = |control: bool| -> Vec<u64> {
            let mine = arms.of("lab").1.into_iter();
            mine.filter(|c| c.control == control)
                .map(|c| c.bytes)
                .collect()
        };
        assert_eq!(
            (bytes(true), bytes(false)),
            (vec![950 * k], vec![900 * k, 300 * k])
        );
        arms.forget("lab");
        assert_eq!(arms.of("lab"), (None, vec![]));
    }
}
