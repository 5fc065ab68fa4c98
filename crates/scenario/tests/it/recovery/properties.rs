//! What holds in every simulation, whatever the scenario.
//!
//! `PROPERTY_CASES` multiplies the number of scenarios, `PROPERTY_SEED` draws others:
//!
//! ```text
//! PROPERTY_CASES=50 cargo test -p fullpipe-scenario --test it recovery::properties
//! ```

use std::env;
use std::fmt::Debug;

use fullpipe_run::{FlowTotals, Outcome};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};

use super::draw::{self, Case, Trouble};

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |n| n.parse().expect("a number"))
}

/// The property holds for `cases` random values.
fn holds<T: Debug>(
    cases: u32,
    draw: impl Strategy<Value = T>,
    property: impl Fn(&T) -> Result<(), TestCaseError>,
) {
    let config = ProptestConfig {
        cases: cases * number("PROPERTY_CASES", 1) as u32,
        rng_seed: RngSeed::Fixed(number("PROPERTY_SEED", 1)),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    };
    let result = TestRunner::new(config).run(&draw, |value| property(&value));
    result.unwrap_or_else(|e| panic!("{e}"));
}

fn totals(outcome: &Outcome) -> FlowTotals {
    outcome.flows[0].totals
}

macro_rules! claim {
    ($case:expr, $holds:expr, $($say:tt)+) => {
        prop_assert!($holds, "{}\n{}", format!($($say)+), $case.text())
    };
}

/// The path delivers no more than its rate, and what was sent arrived, was dropped, or is under
/// way.
#[test]
fn nothing_is_created() {
    let draw = (draw::any(), draw::troubles()).prop_map(|(case, trouble)| Case { trouble, ..case });
    holds(60, draw, |case| {
        let outcome = case.run();
        let t = totals(&outcome);
        let mss = f64::from(outcome.flows[0].mss);
        let bits = t.delivered as f64 * mss * 8.0;
        let room = case.kbps as f64 * case.duration_ms as f64;
        claim!(case, bits <= room, "goodput above the rate: {t:?}");
        let known = t.delivered + t.duplicates + t.dropped;
        claim!(case, known <= t.sent, "more arrived than was sent: {t:?}");
        // Under way: in the network by the sender's count, or in the queue.
        let flight = outcome.flows[0].cwnd_max.max(10.0) as u64 + case.buffer + 2 * case.bdp();
        claim!(
            case,
            t.sent - known <= 2 * flight + 40,
            "lost without a trace: {t:?}"
        );
        claim!(
            case,
            t.delivered <= t.sent - t.retransmits,
            "created: {t:?}"
        );
        Ok(())
    });
}

/// The longest that an ACK may be held back, ms: the delayed ACK, merging, a tick.
const ACK_WAIT_MS: f64 = 110.0;

/// On a path that keeps order and whose delay cannot reach the timer nothing is undone, and nothing
/// is resent that arrived; ACKs may be lost.
#[test]
fn where_nothing_is_reordered_or_late_nothing_is_undone() {
    let draw = draw::any().prop_filter("the timer is above any delay", |case| {
        let least = if case.preset == "2026" { 1000.0 } else { 200.0 };
        let rtt = if case.preset == "2026" {
            case.rtt_ms as f64
        } else {
            0.0
        };
        rtt + case.queueing_ms() + ACK_WAIT_MS < least
    });
    holds(160, draw, |case| {
        let outcome = case.run();
        let t = totals(&outcome);
        // Lost ACKs hide SACK blocks, and a timer that later partial ACKs do not restart goes off
        // early (RFC 6582 section 4): what is resent for nothing is a fault to undo.
        let hidden = case.ack_loss > 0.0;
        let mistakes = match hidden || case.recovery == Some("newreno") {
            true => t.duplicates,
            false => 0,
        };
        // F-RTO takes what arrived long ago, or just before the timer went off, for what arrives
        // late (RFC 5682 section 3.1 step 3b, Linux `tcp_process_loss`).
        let misjudged = match case.frto && (hidden || case.preset == "linux") {
            true => t.timeouts,
            false => 0,
        };
        claim!(case, t.undone <= mistakes + misjudged, "undone: {t:?}");
        Ok(())
    });
}

/// Sent again is what was dropped, what a probe or a rescue guesses, what is in the network when
/// the timer goes off, and what arrives late: each such segment once.
#[test]
fn what_is_sent_again_was_lost_or_late() {
    let late = prop_oneof![Just(None), (0.001..0.1, 0.1..0.9).prop_map(Some)];
    let draw = (draw::any(), late).prop_map(|(case, late)| Case {
        // By less than the path's RTT: later copies are taken for the retransmission's (RFC 8985
        // section 6.2 step 2), and all that was sent before it for lost.
        trouble: late.map_or(Trouble::None, |(p, part)| {
            Trouble::Reorder(p, (case.rtt_ms as f64 * part) as u64 + 1)
        }),
        ack_loss: 0.0,
        timestamps: true,
        recovery: case.recovery.filter(|&r| r != "newreno"),
        ..case
    });
    holds(160, draw, |case| {
        let flow = case.run().flows.remove(0);
        let t = flow.totals;
        // RFC 6675's rescue retransmission is a guess, as is a probe.
        let guesses = t.probes + t.loss_events;
        let late = match case.trouble {
            // Three times as many as are to be expected.
            Trouble::Reorder(p, _) => (3.0 * p * t.sent as f64) as u64 + 10,
            _ => 0,
        };
        let flight = flow.cwnd_max as u64;
        let most = t.dropped + guesses + late + t.timeouts * flight;
        claim!(
            case,
            t.retransmits <= most,
            "{} resent, {most} explained: {t:?}",
            t.retransmits
        );
        Ok(())
    });
}

/// A packet that is late by less than a quarter of the path's RTT is within RACK's window once
/// there has been one (RFC 8985 section 6.2 step 4): it costs no reduction, and none to undo. The
/// first may find others already judged: four.
#[test]
fn slight_reordering_is_learnt() {
    let draw = (draw::any(), 0.002..0.1, 30u64..200, 0.3..0.8, 10u64..60);
    let draw = draw.prop_map(|(case, p, rtt_ms, part, window)| Case {
        preset: if case.preset == "2003" {
            "2026"
        } else {
            case.preset
        },
        // No law reads delays, which reordering changes.
        stack: if window % 2 == 0 { "reno" } else { "cubic" }.to_owned(),
        recovery: None,
        rtt_ms,
        // A packet takes 2.4 ms at most.
        kbps: 5_000 + case.kbps,
        trouble: Trouble::Reorder(p, ((rtt_ms as f64 * part / 4.0) as u64).max(1)),
        loss: 0.0,
        ack_loss: 0.0,
        drops: vec![],
        buffer: 5_000,
        queue: "droptail",
        window: Some(window),
        delayed_ack: false,
        timestamps: true,
        ..case
    });
    holds(60, draw, |case| {
        let t = totals(&case.run());
        claim!(case, t.undone <= 4, "{} undone: {t:?}", t.undone);
        Ok(())
    });
}

/// SRTT is an average of what the path did: propagation, queue, and the receiver's wait.
#[test]
fn srtt_is_never_above_what_the_path_did() {
    let draw = (
        draw::any(),
        prop::sample::select(&[0.3, 0.5, 0.7][..]),
        any::<bool>(),
    );
    let draw = draw.prop_map(|(case, lossy, many)| Case {
        ack_loss: if many { lossy } else { case.ack_loss },
        clean_ms: case.duration_ms / 2,
        ..case
    });
    // The oldest segment of an ACK has waited for the ACKs before it that were lost.
    let draw = draw.prop_filter("samples the newest", |c| {
        c.preset != "linux" || c.ack_loss == 0.0
    });
    holds(120, draw, |case| {
        let outcome = case.run();
        let most = case.rtt_ms as f64 + case.queueing_ms() + ACK_WAIT_MS;
        for row in &outcome.flows[0].series.rows {
            let srtt = row.srtt.as_millis_f64();
            claim!(
                case,
                srtt <= most,
                "SRTT {srtt} ms, the path {most} ms at {}",
                row.time
            );
        }
        Ok(())
    });
}

/// Delay of a late segment, ms: more than most round trips drawn, less than any timer.
const LATE_MS: u64 = 60;

/// After the last loss everything is repaired: the timer goes off once more, and each round trip
/// repairs at least as much as slow start from one segment.
#[test]
fn every_hole_is_repaired_once_the_path_is_clean() {
    let draw = (
        draw::any(),
        50u64..600,
        prop::sample::select(&[0.02, 0.1, 0.3, 0.5][..]),
        // Late segments: reductions are undone while others are lost.
        prop_oneof![Just(0.0), 0.02..0.3],
    );
    let draw = draw.prop_map(|(case, size, loss, late)| Case {
        // Where the timer waits for a second at least.
        trouble: match late > 0.0 && case.preset == "2026" {
            true => Trouble::Reorder(late, LATE_MS),
            false => Trouble::None,
        },
        size: Some(size),
        loss,
        clean_ms: case.duration_ms / 3,
        duration_ms: 60_000,
        buffer: 5_000,
        queue: "droptail",
        drops: vec![],
        ..case
    });
    let draw = draw.prop_filter("selective acknowledgement", |c| {
        c.recovery != Some("newreno")
    });
    holds(120, draw, |case| {
        let outcome = case.run();
        let flow = &outcome.flows[0];
        let size = case.size.unwrap() as f64;
        let rtt = case.rtt_ms as f64 + size * 12_000.0 / case.kbps as f64 + ACK_WAIT_MS;
        let rtt = rtt + LATE_MS as f64;
        // RFC 6298 section 5.5: the silence before, doubled, and one timeout (3 s in preset 2003
        // before the first sample).
        let backed_off = 2.0 * case.clean_ms as f64 + 3_000.0 + 8.0 * rtt;
        // Segment by segment where the window is held at one or two.
        let per_round = case.window.unwrap_or(4).min(4) as f64 / 2.0;
        let rounds = 20.0 + size / per_round.max(0.5);
        let most = case.clean_ms as f64 + backed_off + rounds * rtt;
        let most = most.min(59_000.0);
        let done = flow.completed.map(|t| t.as_secs_f64() * 1e3);
        claim!(
            case,
            done.is_some_and(|at| at <= most) || most >= 59_000.0,
            "done at {done:?}, expected by {most} ms: {:?}",
            flow.totals
        );
        // One timeout does for all holes: no further one later than the first's answer.
        let clean = case.clean_ms as f64 + backed_off;
        let late = flow.episodes.iter().filter(|e| {
            e.kind == fullpipe_flow::EpisodeKind::Timeout && e.at.as_secs_f64() * 1e3 > clean
        });
        claim!(
            case,
            late.count() == 0,
            "timeouts on a clean path: {:?}",
            flow.totals
        );
        Ok(())
    });
}

/// Alone on a clean path a flow comes back, whatever happened to it before. But for UDT, whose
/// capacity is that of its slow start (docs/udt.md): one that losses cut short leaves it slow.
#[test]
fn a_flow_alone_uses_a_path_that_is_clean_again() {
    let any = draw::any().prop_filter("its capacity is not measured again", |case| {
        case.stack != "udt"
    });
    let draw = (any, draw::troubles()).prop_map(|(case, trouble)| Case {
        trouble: match trouble {
            Trouble::Outage(ms) => Trouble::Outage(ms),
            _ => Trouble::None,
        },
        kbps: 2_000 + case.kbps / 4,
        rtt_ms: 10 + case.rtt_ms % 60,
        buffer: 60,
        queue: "droptail",
        clean_ms: 4_000,
        duration_ms: 44_000,
        window: None,
        ack_every: 2,
        drops: vec![],
        // Without SACK one hole is repaired per round trip.
        recovery: case.recovery.filter(|&r| r != "newreno"),
        ..case
    });
    holds(40, draw, |case| {
        let outcome = case.run();
        let flow = &outcome.flows[0];
        // The last quarter.
        let samples = &flow.delivered_per_interval;
        let last = &samples[samples.len() * 3 / 4..];
        let seconds = outcome.interval.as_secs_f64() * last.len() as f64;
        let segments: u64 = last.iter().sum();
        let kbps = segments as f64 * f64::from(flow.mss) * 8e-3 / seconds;
        claim!(
            case,
            kbps >= 0.25 * case.kbps as f64,
            "{kbps} of {} kbit/s: {:?}",
            case.kbps,
            flow.totals
        );
        Ok(())
    });
}

/// One loss in many windows is repaired by the fast retransmit: the timer stays out of it.
#[test]
fn a_single_loss_needs_no_timeout() {
    let draw = (
        draw::any(),
        prop::collection::vec(150u64..300, 1..5),
        12u64..60,
    );
    let draw = draw.prop_map(|(case, gaps, window)| Case {
        drops: gaps
            .iter()
            .scan(100, |at, gap| {
                *at += gap;
                Some(*at)
            })
            .collect(),
        loss: 0.0,
        ack_loss: 0.0,
        buffer: 5_000,
        queue: "droptail",
        window: Some(window),
        // Others may go down to a window in which nobody duplicates an ACK.
        stack: if window % 2 == 0 { "reno" } else { "cubic" }.to_owned(),
        // The timer of preset 2003 has no room for a queue that grows by the window.
        kbps: match case.preset {
            "2003" => case.kbps.max(window * 12_000 / case.rtt_ms),
            _ => case.kbps,
        },
        ack_every: 2,
        duration_ms: 20 * case.rtt_ms + 8_000,
        ..case
    });
    holds(50, draw, |case| {
        let t = totals(&case.run());
        claim!(case, t.timeouts == 0, "a timeout for one loss: {t:?}");
        Ok(())
    });
}

/// Without time stamps, DSACK and F-RTO nothing can tell that a reduction was spurious.
#[test]
fn without_a_witness_nothing_is_undone() {
    let draw = (draw::any(), draw::troubles()).prop_map(|(case, trouble)| Case {
        trouble,
        timestamps: false,
        // Without SACK there is no DSACK.
        recovery: Some("newreno"),
        frto: false,
        ack_loss: 0.0,
        ..case
    });
    // Linux undoes where nothing of the window was resent (`tcp_packet_delayed`).
    let draw = draw.prop_filter("the RFCs' rules", |c| c.preset != "linux");
    holds(60, draw, |case| {
        let t = totals(&case.run());
        claim!(case, t.undone == 0, "undone: {t:?}");
        Ok(())
    });
}
