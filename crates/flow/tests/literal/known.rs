//! Where `flow` departs from the RFCs, each with the smallest history that shows it: while the
//! difference is there, the history tells the literal sender from `flow`. When one is mended, its
//! test fails; then its entry, and its field of `Departures`, go.

use std::time::Instant;

use crate::agree::{everything, newreno, search};
use crate::draw::{History, Narrow, fates};
use crate::duel::{Fates, duel};
use crate::law;
use crate::path::{Echo, Fate, Host};
use crate::reference::{Departures, Detector, Reduction};

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
                match stringify!($name).starts_with("newreno") {
                    true => newreno(h),
                    false => everything(h),
                }
                h.departs.$name = false;
            },
        }),+];
    };
}

known! {
    sack_marks undo_is_reordering undo_asks_stamps newreno_counts
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

fn undo_is_reordering() -> History {
    History {
        undo: true,
        law: law::Kind::Reno,
        window: 7,
        transfer: 7,
        delay_us: 1000,
        gap_us: 1200,
        host: Host {
            echo: Echo::Recent,
            ..History::plain().host
        },
        fates: fates(
            &[(0, Fate::Late(6000)), (2, Fate::Drop), (5, Fate::Drop)],
            &[],
        ),
        ..History::plain()
    }
}

fn undo_asks_stamps() -> History {
    let lost = [
        4, 6, 9, 10, 11, 14, 15, 17, 19, 21, 24, 25, 26, 28, 33, 34, 35, 36, 45,
    ];
    let mut packets = vec![(3, Fate::Late(47_000))];
    packets.extend(lost.map(|n| (n, Fate::Drop)));
    History {
        undo: true,
        reduce_again: true,
        law: law::Kind::Reno,
        window: 19,
        transfer: 29,
        delay_us: 1000,
        gap_us: 1200,
        host: Host {
            every: 4,
            echo: Echo::Recent,
            ..History::plain().host
        },
        fates: fates(&packets, &[]),
        ..History::plain()
    }
}

fn newreno_counts() -> History {
    History {
        detector: Detector::NewReno,
        reduction: Reduction::Immediate,
        law: law::Kind::Reno,
        window: 1,
        transfer: 63,
        host: Host {
            sack: false,
            ..History::plain().host
        },
        fates: fates(&[(48, Fate::Drop)], &[(61, Fate::Twice(0))]),
        ..History::plain()
    }
}
