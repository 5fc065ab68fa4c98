//! Random histories on which the senders agree.

use std::env;

use crate::draw::{History, Narrow, draw};
use crate::duel::{Difference, Fates, duel};
use crate::minimise::minimise;
use crate::path::Echo;
use crate::reference::{Departures, Detector, Reduction};

/// The first difference among `n` histories from `seed` on, minimised.
pub fn search(seed: u64, n: u64, narrow: Narrow) -> Option<(u64, History, Box<Difference>)> {
    for seed in seed..seed + n {
        let (mut h, mut sky) = draw(seed, narrow);
        if duel(&h, Fates::Drawn(&mut sky), false).is_err() {
            h.fates = sky.seen;
            let mut today = h.clone();
            today.departs = Departures::TODAY;
            if today != h && duel(&today, Fates::Given, false).is_err() {
                // Another difference came first.
                continue;
            }
            let (h, difference) = minimise(h);
            return Some((seed, h, difference));
        }
    }
    None
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|n| n.parse().expect("a number"))
}

fn agree(histories: u64, narrow: Narrow) {
    let seed = number("LITERAL_SEED").unwrap_or(1);
    let n = number("LITERAL_HISTORIES").unwrap_or(histories);
    if let Some((seed, h, difference)) = search(seed, n, narrow) {
        panic!("seed {seed}:\n{difference}\n{}", h.paste());
    }
}

/// Detection and repair: RFC 6675, RFC 9937, RFC 8985 section 6, RFC 6298.
fn repair(h: &mut History) {
    (h.tlp, h.frto, h.undo) = (false, false, false);
}

/// The same with probes: RFC 8985 section 7.
fn probes(h: &mut History) {
    (h.frto, h.undo) = (false, false);
}

/// RFC 6582: no SACK, and nothing that needs it.
pub fn newreno(h: &mut History) {
    h.detector = Detector::NewReno;
    h.reduction = Reduction::Immediate;
    (h.tlp, h.frto, h.undo, h.spare) = (false, false, false, false);
    (h.host.sack, h.host.dsack) = (false, false);
}

/// Everything: RFC 5682, RFC 3522, RFC 3708, RFC 4015.
pub fn everything(_: &mut History) {}

#[test]
fn detection_and_repair() {
    agree(5_000, repair);
}

#[test]
fn tail_loss_probes() {
    agree(5_000, probes);
}

#[test]
fn spurious_recoveries() {
    agree(10_000, everything);
}

#[test]
fn without_sack() {
    agree(5_000, newreno);
}

/// The long run; `LITERAL_SET` narrows it.
#[test]
#[ignore = "minutes; LITERAL_HISTORIES says how many"]
fn a_million_histories() {
    let narrow: Narrow = match env::var("LITERAL_SET").unwrap_or_default().as_str() {
        "sack" => |h| {
            repair(h);
            (h.detector, h.spare) = (Detector::Sack, false);
        },
        "rack" => |h| {
            repair(h);
            h.detector = Detector::Rack;
        },
        "newreno" => newreno,
        "tlp" => probes,
        "frto" => |h| {
            (h.tlp, h.undo) = (false, true);
            (h.host.dsack, h.host.echo) = (false, Echo::Never);
        },
        "eifel" => |h| {
            (h.frto, h.undo) = (false, true);
            h.host.dsack = false;
        },
        "" => everything,
        other => panic!("no set `{other}`"),
    };
    agree(1_000_000, narrow);
}
