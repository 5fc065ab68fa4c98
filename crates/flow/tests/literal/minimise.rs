//! Cuts a history down to what the difference needs: delta debugging over its fates (Zeller and
//! Hildebrandt 2002), then over its setup.

use crate::draw::History;
use crate::duel::{Difference, Fates, duel};
use crate::law;
use crate::path::{Echo, Fate};
use crate::reference::Departures;

fn fails(h: &History) -> Option<Box<Difference>> {
    duel(h, Fates::Given, false).err()
}

/// The smallest history found that still shows a difference: in the same quantity, and none once
/// every known departure is imitated again, so that one defect does not lead to another.
pub fn minimise(start: History) -> (History, Box<Difference>) {
    let what = fails(&start).expect("a difference to begin with").what;
    let known = start.departs != Departures::TODAY;
    let still = |h: &History| {
        let mut today = h.clone();
        today.departs = Departures::TODAY;
        fails(h).is_some_and(|d| d.what == what) && (!known || fails(&today).is_none())
    };
    let mut h = start;
    loop {
        let before = h.clone();
        for way in 0..2 {
            drop_fates(&mut h, way, &still);
        }
        for simpler in simpler(&h) {
            if still(&simpler) {
                h = simpler;
                break;
            }
        }
        if h == before {
            let found = duel(&h, Fates::Given, true).expect_err("it failed just now");
            return (h, found);
        }
    }
}

/// Leaves out halves of one way's fates, quarters, ..., single ones.
fn drop_fates(h: &mut History, way: usize, still: &impl Fn(&History) -> bool) {
    let list = |h: &History| -> Vec<(u64, Fate)> {
        let fates = if way == 0 {
            &h.fates.data
        } else {
            &h.fates.acks
        };
        fates.iter().map(|(&n, &f)| (n, f)).collect()
    };
    let with = |h: &History, fates: &[(u64, Fate)]| -> History {
        let mut h = h.clone();
        let fates = fates.iter().copied().collect();
        match way {
            0 => h.fates.data = fates,
            _ => h.fates.acks = fates,
        }
        h
    };
    let mut chunk = list(h).len().div_ceil(2);
    while chunk > 0 {
        let mut from = 0;
        while from < list(h).len() {
            let mut rest = list(h);
            rest.drain(from..(from + chunk).min(rest.len()));
            let shorter = with(h, &rest);
            match still(&shorter) {
                true => *h = shorter,
                false => from += chunk,
            }
        }
        chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
    }
}

/// Histories one step simpler, the largest steps first.
fn simpler(h: &History) -> Vec<History> {
    let plain = History::plain();
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut History)| {
        let mut other = h.clone();
        change(&mut other);
        if other != *h {
            all.push(other);
        }
    };
    for transfer in [
        h.transfer / 2,
        h.transfer * 3 / 4,
        h.transfer.saturating_sub(1),
    ] {
        with(&|h| h.transfer = transfer.max(1));
    }
    with(&|h| h.tlp = false);
    with(&|h| h.frto = false);
    with(&|h| h.undo = false);
    with(&|h| h.reduce_again = false);
    with(&|h| h.old_timer = false);
    with(&|h| h.spare = false);
    with(&|h| h.law = law::Kind::Fixed);
    with(&|h| h.host.window = None);
    with(&|h| h.host.every = 1);
    with(&|h| h.host.wait_us = plain.host.wait_us);
    with(&|h| h.host.dsack = false);
    with(&|h| h.host.echo = Echo::Never);
    if h.host.echo == Echo::InOrder {
        with(&|h| h.host.echo = Echo::Recent);
    }
    with(&|h| h.delay_us = plain.delay_us);
    with(&|h| h.gap_us = plain.gap_us);
    with(&|h| h.window = h.window.saturating_sub(1).max(1));
    // Rounder times, simpler fates.
    for way in 0..2 {
        let fates = if way == 0 {
            &h.fates.data
        } else {
            &h.fates.acks
        };
        for (&n, &fate) in fates {
            let rounder = |us: u64| [1_000_000, 100_000, 10_000, 1_000].map(|r| us / r * r);
            let mut others = match fate {
                Fate::Drop => vec![],
                Fate::Late(us) => rounder(us).map(Fate::Late).to_vec(),
                Fate::Twice(us) => rounder(us).map(Fate::Twice).to_vec(),
            };
            if fate != Fate::Drop {
                others.insert(0, Fate::Drop);
            }
            for other in others {
                if !matches!(other, Fate::Late(0)) {
                    with(&|h| {
                        let fates = if way == 0 {
                            &mut h.fates.data
                        } else {
                            &mut h.fates.acks
                        };
                        fates.insert(n, other);
                    });
                }
            }
        }
    }
    all
}
