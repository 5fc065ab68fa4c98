//! Histories on which `flow` once departed from the RFCs, and does no more.

use crate::draw::{History, fates};
use crate::duel::{self, duel};
use crate::law;
use crate::path::{Echo, Fate, Fates, Host};
use crate::reference::{Detector, Reduction};

fn agree(h: &History) {
    if let Err(difference) = duel(h, duel::Fates::Given, true) {
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

/// RFC 6675 section 5 step 4.3: the fast retransmit leaves at once, not when half of the window has
/// been acknowledged.
#[test]
fn the_fast_retransmit_leaves_at_once() {
    agree(&History {
        detector: Detector::Sack,
        reduction: Reduction::Immediate,
        law: law::Kind::Reno,
        window: 1,
        transfer: 16,
        fates: fates(&[(9, Fate::Drop)], &[]),
        ..History::plain()
    });
}

/// RFC 3522 section 3.2: the next recovery's RetransmitTS is not younger than a retransmission that
/// is out already.
#[test]
fn a_loss_resent_by_the_last_recovery_is_no_spurious_one() {
    agree(&History {
        detector: Detector::Sack,
        reduction: Reduction::Immediate,
        undo: true,
        law: law::Kind::Reno,
        window: 4,
        transfer: 33,
        host: Host {
            echo: Echo::Recent,
            ..History::plain().host
        },
        fates: fates(
            &[(15, Fate::Late(20_000)), (17, Fate::Drop), (31, Fate::Drop)],
            &[],
        ),
        ..History::plain()
    });
}

/// RFC 8985 section 6.2 step 5: what was resent before an undone timeout is judged by its last
/// transmission.
#[test]
fn an_undone_timeout_forgets_no_retransmission() {
    let lost = [3, 4, 5, 6, 7, 8, 10].map(|n| (n, Fate::Drop));
    let acks = [0, 1, 3].map(|n| (n, Fate::Drop));
    agree(&History {
        frto: true,
        undo: true,
        transfer: 11,
        host: Host {
            every: 2,
            ..History::plain().host
        },
        fates: fates(&lost, &acks),
        ..History::plain()
    });
}

/// RFC 5682 section 3.1 step 2a: an ACK of all that was sent before the timeout proves nothing.
#[test]
fn an_ack_of_everything_after_a_timeout_proves_nothing() {
    agree(&History {
        frto: true,
        undo: true,
        law: law::Kind::Reno,
        window: 2,
        transfer: 3,
        delay_us: 700_000,
        host: Host {
            every: 2,
            ..History::plain().host
        },
        ..History::plain()
    });
}

/// RFC 9937 section 6.1: RecoverFS counts a segment once, also if a probe has sent it again, when
/// the reordering timer begins the recovery.
#[test]
fn recover_fs_counts_a_probe_once() {
    agree(&History {
        tlp: true,
        law: law::Kind::Reno,
        transfer: 13,
        delay_us: 1_000,
        gap_us: 5_000,
        host: Host {
            every: 2,
            ..History::plain().host
        },
        fates: fates(&[(5, Fate::Drop)], &[(1, Fate::Drop)]),
        ..History::plain()
    });
}

/// A window of four, DSACKs, and probes; from segment 8 on it is `fates` that decides.
fn late_and_lost(fates: Fates) -> History {
    History {
        tlp: true,
        undo: true,
        window: 4,
        transfer: 14,
        delay_us: 300_000,
        host: Host {
            dsack: true,
            echo: Echo::Recent,
            ..History::plain().host
        },
        fates,
        ..History::plain()
    }
}

/// RFC 3708 section 3, rule A.3: of a segment resent twice a DSACK does not tell which of the two
/// was for nothing, also if both left before the recovery.
#[test]
fn a_duplicate_of_what_was_resent_twice_proves_nothing() {
    agree(&late_and_lost(fates(
        &[
            (8, Fate::Late(1_700_000)),
            (9, Fate::Drop),
            (10, Fate::Drop),
            (11, Fate::Late(1_000_000)),
            (12, Fate::Late(600_000)),
        ],
        &[],
    )));
}

/// RFC 3708 section 3, rule B.1: each retransmission of the window is to be reported, not as many
/// as there were.
#[test]
fn duplicates_of_other_segments_do_not_count() {
    agree(&late_and_lost(fates(
        &[
            (8, Fate::Late(1_700_000)),
            (9, Fate::Drop),
            (10, Fate::Drop),
            (11, Fate::Late(1_600_000)),
            (12, Fate::Late(600_000)),
        ],
        &[],
    )));
}

/// RFC 3708 section 3, rule A.3: for the rest of the window, also if the segment is of an earlier
/// one.
#[test]
fn an_old_segment_resent_twice_ends_the_search_for_duplicates() {
    agree(&History {
        undo: true,
        window: 4,
        transfer: 9,
        delay_us: 1_000,
        host: Host {
            dsack: true,
            ..History::plain().host
        },
        fates: fates(
            &[
                (1, Fate::Late(140_000)),
                (2, Fate::Late(110_000)),
                (5, Fate::Drop),
                (6, Fate::Drop),
                (8, Fate::Late(29_000)),
                (12, Fate::Drop),
            ],
            &[(2, Fate::Drop)],
        ),
        ..History::plain()
    });
}

/// RFC 8985 section 6.2 step 4: the exit from a timeout's recovery counts towards the 16 after
/// which a widened window is forgotten.
#[test]
fn the_end_of_a_timeouts_recovery_counts_too() {
    agree(&History {
        tlp: true,
        frto: true,
        law: law::Kind::Reno,
        window: 1,
        transfer: 88,
        host: Host {
            dsack: true,
            window: Some(4),
            ..History::plain().host
        },
        fates: fates(
            &[
                (5, Fate::Late(2000000)),
                (6, Fate::Drop),
                (7, Fate::Drop),
                (8, Fate::Late(2300000)),
                (9, Fate::Drop),
                (10, Fate::Late(1200000)),
                (11, Fate::Drop),
                (15, Fate::Drop),
                (21, Fate::Drop),
                (22, Fate::Drop),
                (27, Fate::Drop),
                (35, Fate::Drop),
                (39, Fate::Drop),
                (40, Fate::Drop),
                (41, Fate::Drop),
                (42, Fate::Drop),
                (45, Fate::Drop),
                (46, Fate::Drop),
                (47, Fate::Drop),
                (48, Fate::Drop),
                (49, Fate::Drop),
                (51, Fate::Drop),
                (52, Fate::Drop),
                (59, Fate::Drop),
                (60, Fate::Drop),
                (66, Fate::Drop),
                (67, Fate::Drop),
                (68, Fate::Drop),
                (70, Fate::Drop),
                (73, Fate::Drop),
                (74, Fate::Drop),
                (87, Fate::Drop),
                (88, Fate::Drop),
                (89, Fate::Drop),
                (96, Fate::Drop),
                (102, Fate::Drop),
                (108, Fate::Drop),
                (110, Fate::Drop),
                (113, Fate::Drop),
                (116, Fate::Drop),
                (120, Fate::Drop),
                (123, Fate::Drop),
                (124, Fate::Drop),
            ],
            &[],
        ),
        ..History::plain()
    });
}

/// RFC 8985 section 6.2 step 5: the reordering timer waits for the last suspect.
#[test]
fn the_reordering_timer_waits_for_the_last_suspect() {
    agree(&History {
        old_timer: true,
        law: law::Kind::Reno,
        window: 4,
        transfer: 24,
        host: Host {
            every: 4,
            wait_us: 300000,
            ..History::plain().host
        },
        fates: fates(
            &[
                (23, Fate::Drop),
                (24, Fate::Drop),
                (25, Fate::Drop),
                (28, Fate::Drop),
            ],
            &[(3, Fate::Drop)],
        ),
        ..History::plain()
    });
}

/// RFC 8985 section 6.2 step 2 goes through all segments that an ACK delivers: one that is
/// ambiguous does not hide the others.
#[test]
fn an_ambiguous_retransmission_hides_no_other_delivery() {
    agree(&History {
        reduction: Reduction::Immediate,
        tlp: true,
        undo: true,
        law: law::Kind::Reno,
        window: 1,
        transfer: 4,
        host: Host {
            every: 4,
            echo: Echo::Recent,
            ..History::plain().host
        },
        fates: fates(
            &[
                (1, Fate::Late(1780000)),
                (2, Fate::Drop),
                (3, Fate::Late(1580000)),
                (4, Fate::Drop),
            ],
            &[],
        ),
        ..History::plain()
    });
}

/// RFC 8985 section 7.4.2: a DSACK for the probe counts on an ACK that covers TLP.end_seq.
#[test]
fn a_duplicate_probe_counts_when_its_segment_is_acknowledged() {
    agree(&History {
        tlp: true,
        law: law::Kind::Reno,
        window: 2,
        transfer: 9,
        delay_us: 300000,
        host: Host {
            every: 2,
            dsack: true,
            window: Some(4),
            ..History::plain().host
        },
        fates: fates(
            &[
                (3, Fate::Late(1600000)),
                (4, Fate::Late(1640000)),
                (5, Fate::Late(1600000)),
                (6, Fate::Late(1500000)),
            ],
            &[],
        ),
        ..History::plain()
    });
}

/// RFC 9937 section 6.1: a new response begins a new episode.
#[test]
fn a_lost_retransmission_begins_an_episode_of_prr() {
    agree(&History {
        reduce_again: true,
        window: 18,
        transfer: 22,
        fates: fates(&[(1, Fate::Drop), (5, Fate::Drop), (22, Fate::Drop)], &[]),
        ..History::plain()
    });
}

/// RFC 6582 section 3.2 step 3: a partial ACK's hole leaves at once, whatever the window.
#[test]
fn a_partial_ack_resends_its_hole_at_once() {
    agree(&History {
        detector: Detector::NewReno,
        reduction: Reduction::Immediate,
        law: law::Kind::Reno,
        window: 6,
        transfer: 25,
        gap_us: 10,
        host: Host {
            sack: false,
            ..History::plain().host
        },
        fates: fates(&[(12, Fate::Late(129))], &[]),
        ..History::plain()
    });
}

/// RFC 5681 section 3.2 step 2: what Limited Transmit sent before an undone recovery is part of
/// FlightSize once nothing is SACKed.
#[test]
fn an_undo_ends_limited_transmit() {
    agree(&History {
        reduction: Reduction::Immediate,
        undo: true,
        law: law::Kind::Reno,
        window: 6,
        transfer: 11,
        host: Host {
            dsack: true,
            echo: Echo::Recent,
            ..History::plain().host
        },
        fates: fates(
            &[
                (0, Fate::Late(63_000)),
                (4, Fate::Late(50_000)),
                (6, Fate::Late(80_000)),
                (7, Fate::Drop),
            ],
            &[],
        ),
        ..History::plain()
    });
}

/// RFC 5682 section 3.1: in step 2 nothing but the first segment leaves, in step 2b two new ones.
#[test]
fn the_test_of_a_timeout_sends_one_segment_then_two() {
    agree(&History {
        detector: Detector::Sack,
        frto: true,
        window: 2,
        transfer: 2,
        fates: fates(&[(0, Fate::Drop), (1, Fate::Drop)], &[]),
        ..History::plain()
    });
}

/// RFC 3522 section 3.2 step 2: RetransmitTS is the stamp of the recovery's retransmission.
#[test]
fn eifel_compares_with_the_recoverys_own_retransmission() {
    agree(&History {
        detector: Detector::Sack,
        reduction: Reduction::Immediate,
        undo: true,
        law: law::Kind::Reno,
        transfer: 33,
        delay_us: 1000,
        gap_us: 1200,
        host: Host {
            echo: Echo::Recent,
            ..History::plain().host
        },
        fates: fates(
            &[
                (4, Fate::Drop),
                (18, Fate::Drop),
                (21, Fate::Late(20000)),
                (30, Fate::Drop),
                (31, Fate::Drop),
            ],
            &[],
        ),
        ..History::plain()
    });
}

/// RFC 3522 section 3.2 steps 2 and 3: segment 20 was lost, and the recovery that begins with the
/// end of the one that resent it is not undone because segment 24, which it resends, was late.
#[test]
fn a_recovery_whose_retransmission_is_out_is_judged_by_that() {
    agree(&History {
        undo: true,
        window: 6,
        transfer: 31,
        delay_us: 10_000,
        host: Host {
            every: 4,
            echo: Echo::Recent,
            ..History::plain().host
        },
        fates: fates(
            &[
                (0, Fate::Late(80_000)),
                (3, Fate::Late(10_000)),
                (8, Fate::Late(27_000)),
                (11, Fate::Drop),
                (16, Fate::Late(6_000)),
                (19, Fate::Drop),
                (20, Fate::Late(20_000)),
                (22, Fate::Drop),
                (25, Fate::Drop),
                (32, Fate::Late(50_000)),
                (38, Fate::Drop),
                (39, Fate::Drop),
            ],
            &[1, 7, 8, 13, 14, 15].map(|n| (n, Fate::Drop)),
        ),
        ..History::plain()
    });
}

/// RFC 8985 section 6.2 step 5: after a stamp has taken back what a retransmission showed, the
/// timer waits for the last segment that left before the newest delivery, not for a later one.
#[test]
fn the_reordering_timer_follows_the_newest_delivery_back() {
    let late = |n, us| (n, Fate::Late(us));
    let lost = |n| (n, Fate::Drop);
    let mut data: Vec<_> = (29..=44).map(|n| late(n, 3_000_000)).collect();
    data.extend([28, 46, 47, 48, 50, 52, 53].map(lost));
    data.extend([
        late(45, 3_730_000),
        late(49, 3_700_000),
        late(51, 3_000_000),
    ]);
    data.push(late(54, 550_000));
    agree(&History {
        tlp: true,
        frto: true,
        undo: true,
        law: law::Kind::Reno,
        transfer: 54,
        gap_us: 5_000,
        host: Host {
            every: 2,
            echo: Echo::Recent,
            ..History::plain().host
        },
        fates: fates(&data, &[]),
        ..History::plain()
    });
}
