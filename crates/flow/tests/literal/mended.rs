//! Histories on which `flow` once departed from the RFCs, and does no more.

use crate::draw::{History, fates};
use crate::duel::{Fates, duel};
use crate::path::{Echo, Fate, Host};
use crate::reference::{Detector, Reduction};

fn agree(h: &History) {
    if let Err(difference) = duel(h, Fates::Given, true) {
        panic!("\n{difference}");
    }
}

/// RFC 8985 section 6.2 step 3: two segments that one ACK reports in two blocks were not
/// reordered.
#[test]
fn two_blocks_of_one_ack_are_no_reordering() {
    agree(&History {
        reduction: Reduction::Immediate,
        window: 5,
        transfer: 5,
        fates: fates(&[(0, Fate::Drop), (2, Fate::Drop)], &[(0, Fate::Drop)]),
        ..History::plain()
    });
}

/// RFC 8985 section 7.2: without an RTT sample the probe waits one second, for one segment too.
#[test]
fn the_first_probe_waits_a_second() {
    agree(&History {
        tlp: true,
        window: 1,
        transfer: 3,
        delay_us: 700_000,
        host: Host {
            echo: Echo::Recent,
            ..History::plain().host
        },
        fates: fates(&[], &[(0, Fate::Drop)]),
        ..History::plain()
    });
}

/// RFC 8985 section 7.4.1: a lost probe begins a recovery, with its reduction.
#[test]
fn a_lost_probe_reduces() {
    agree(&History {
        tlp: true,
        window: 4,
        transfer: 33,
        delay_us: 1_000,
        host: Host {
            every: 4,
            window: Some(4),
            ..History::plain().host
        },
        fates: fates(&[(32, Fate::Drop), (33, Fate::Drop)], &[(4, Fate::Drop)]),
        ..History::plain()
    });
}

/// RFC 9937 section 6.2: an ACK that shows any retransmission lost is not safe.
#[test]
fn an_ack_that_shows_an_old_retransmission_lost_is_not_safe() {
    let lost = [6, 16, 18, 25].map(|n| (n, Fate::Drop));
    agree(&History {
        reduce_again: true,
        transfer: 24,
        fates: fates(&lost, &[]),
        ..History::plain()
    });
}

/// RFC 9937 section 6.1: a loss found by the reordering timer while the window comes down for a
/// probe's begins no new episode.
#[test]
fn the_reordering_timer_leaves_a_reduction_under_way_alone() {
    agree(&History {
        tlp: true,
        window: 4,
        transfer: 83,
        host: Host {
            every: 2,
            window: Some(4),
            ..History::plain().host
        },
        fates: fates(
            &[(63, Fate::Twice(0)), (82, Fate::Drop)],
            &[(39, Fate::Drop), (40, Fate::Drop)],
        ),
        ..History::plain()
    });
}

/// The order of retransmissions survives a timeout that goes off while an ACK is answered.
#[test]
fn what_a_timeout_sends_again_at_once_is_judged_in_its_order() {
    let lost = [1, 8, 10, 11, 12, 13, 14, 17, 19, 20, 24, 27].map(|n| (n, Fate::Drop));
    agree(&History {
        detector: Detector::Rack,
        reduction: Reduction::Immediate,
        transfer: 22,
        delay_us: 300_000,
        host: Host {
            every: 2,
            ..History::plain().host
        },
        fates: fates(&lost, &[]),
        ..History::plain()
    });
}
