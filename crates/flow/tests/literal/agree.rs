//! Random histories on which the senders agree.

use std::env;

use crate::draw::{History, Narrow, draw};
use crate::duel::{Difference, Fates, duel};
use crate::minimise::minimise;
use crate::reference::{Detector, Reduction};

/// The first difference among `n` histories from `seed` on, minimised.
pub fn search(seed: u64, n: u64, narrow: Narrow) -> Option<(u64, History, Box<Difference>)> {
    for seed in seed..seed + n {
        let (mut h, mut sky) = draw(seed, narrow);
        if duel(&h, Fates::Drawn(&mut sky), false).is_err() {
            h.fates = sky.seen;
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

#[test]
fn detection_and_repair() {
    agree(5_000, repair);
}

#[test]
fn tail_loss_probes() {
    agree(5_000, probes);
}

/// The long run.
#[test]
#[ignore = "minutes; LITERAL_HISTORIES says how many"]
fn a_million_histories() {
    agree(1_000_000, probes);
}

/// Prints the first difference of each of several sets; for work on the reference.
#[test]
#[ignore = "a tool, not a test"]
fn look() {
    let narrow: Narrow = match env::var("LITERAL_SET").unwrap_or_default().as_str() {
        "sack" => |h| {
            (h.detector, h.reduction) = (Detector::Sack, Reduction::Immediate);
            (h.tlp, h.frto, h.undo) = (false, false, false);
        },
        "plain" => |h| {
            (h.tlp, h.frto, h.undo) = (false, false, false);
        },
        "sackprr" => |h| {
            (h.detector, h.reduction) = (Detector::Sack, Reduction::Prr);
            (h.tlp, h.frto, h.undo) = (false, false, false);
        },
        "rack" => |h| {
            h.detector = Detector::Rack;
            (h.tlp, h.frto, h.undo) = (false, false, false);
        },
        "tlp" => |h| (h.frto, h.undo) = (false, false),
        "frto" => |h| (h.tlp, h.undo) = (false, false),
        "eifel" => |h| {
            (h.tlp, h.frto) = (false, false);
            h.host.dsack = false;
        },
        _ => |_| {},
    };
    agree(100_000, narrow);
}
