//! Where `flow` departs from the RFCs, each with the smallest history that shows it: while the
//! difference is there, the history tells the literal sender from `flow`. When one is mended, its
//! test fails; then its entry, and its field of `Departures`, go.

use std::time::Instant;

use crate::agree::{everything, search};
use crate::draw::{History, Narrow, fates};
use crate::duel::{Fates, duel};
use crate::law;
use crate::path::Fate;
use crate::reference::{Departures, Detector};

/// One departure.
struct Known {
    name: &'static str,
    /// Turns its imitation off.
    off: fn(&mut Departures),
    /// The smallest history on which the departure shows.
    history: fn() -> History,
    /// The same for the search.
    narrow: Narrow,
}

macro_rules! known {
    ($($name:ident)+) => {
        const ALL: &[Known] = &[$(Known {
            name: stringify!($name),
            off: |d| d.$name = false,
            history: $name,
            narrow: |h| {
                everything(h);
                h.departs.$name = false;
            },
        }),+];
    };
}

known! {
    sack_marks
}

/// The list is honest: without the imitation of a departure its history is one on which the
/// senders differ, with it they agree.
#[test]
fn each_known_difference_is_still_there() {
    for known in ALL {
        let mut h = (known.history)();
        if let Err(difference) = duel(&h, Fates::Given, true) {
            panic!("{}: not this difference alone:\n{difference}", known.name);
        }
        (known.off)(&mut h.departs);
        let literal = duel(&h, Fates::Given, false);
        assert!(literal.is_err(), "{} is mended: remove it here", known.name);
    }
}

/// For each departure: how long the search takes to find it, and what remains of the history.
#[test]
#[ignore = "prints the histories of this file"]
#[expect(
    clippy::disallowed_methods,
    reason = "it prints how long each search took; no result depends on it"
)]
fn find_each() {
    for known in ALL {
        let start = Instant::now();
        let found = search(1, 10_000_000, known.narrow);
        let (seed, h, difference) = found.expect("a difference");
        let seconds = start.elapsed().as_secs_f64();
        println!("== {}: history {seed}, {seconds:.1} s", known.name);
        println!("{difference}\n{}", h.paste());
    }
}

fn sack_marks() -> History {
    History {
        detector: Detector::Sack,
        law: law::Kind::Reno,
        window: 1,
        transfer: 75,
        fates: fates(&[(54, Fate::Drop), (73, Fate::Drop)], &[]),
        ..History::plain()
    }
}
