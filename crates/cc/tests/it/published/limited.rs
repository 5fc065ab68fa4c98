//! RFC 3742 section 2 and Linux 2.6.22 `tcp_cong.c`.

use super::near;
use crate::rounds::{Rounds, ack};
use fullpipe_cc::Setup;
use fullpipe_cc::classic::Window;
use fullpipe_cc::startup::limited::{Limited, Rule};
use fullpipe_cc::startup::standard::Standard;
use fullpipe_cc::startup::{Start, StartUp};
use fullpipe_units::{Span, Time};

fn limited(max_ssthresh: f64, rule: Rule) -> Start {
    Start::Limited(Limited::new(max_ssthresh, rule))
}

/// Rounds from `iw` segments to 1000 or another `target`, ACK by ACK, the last round in part: the
/// share of its ACKs that was needed. One ACK in `per_ack` segments, `n` effective segments each;
/// the last ACK of a round may be part of one.
fn rounds_to(start: &mut Start, iw: f64, target: f64, per_ack: f64, n: f64) -> f64 {
    let mut win = Window {
        w: iw,
        ssth: f64::INFINITY,
    };
    for round in 0..3000 {
        let acks = win.w.floor() / per_ack;
        let mut done = 0.0;
        while done < acks {
            let part = (acks - done).min(1.0);
            start.grow(&mut win, n * part, &ack(Time::ZERO, 1));
            done += part;
            if win.w >= target {
                return f64::from(round) + done / acks;
            }
        }
    }
    panic!("{target} is never reached");
}

fn one() -> Setup {
    Setup {
        initial_window: 1.0,
        slow_start_limit: f64::INFINITY,
        ..Setup::default()
    }
}

/// RTTs to large windows, IW = 1: within a tenth of RFC 3742's formula (section 2),
/// `log2(max_ssthresh) + (w - max_ssthresh) / (max_ssthresh / 2)`, and what the per-ACK rule makes
/// of it, to half a unit of the printed digits.
#[test]
fn rtts_to_large_windows() {
    for (target, max_ssthresh, formula, rule, exact) in [
        (1000.0, 100.0, 24.644, Some(24.71), Some(25.83)),
        (1000.0, 200.0, 15.644, Some(15.70), Some(16.47)),
        (1000.0, 50.0, 43.644, Some(43.71), Some(45.19)),
        (2000.0, 100.0, 44.644, None, None),
        (2000.0, 200.0, 25.644, None, None),
        (3500.0, 100.0, 74.644, None, None),
    ] {
        let got = rounds_to(&mut limited(max_ssthresh, Rule::Rfc), 1.0, target, 1.0, 1.0);
        near(got, formula, 0.1, target);
        if let Some(rule) = rule {
            near(got, rule, 0.0051, target);
        }
        if let Some(exact) = exact {
            let mut start = limited(max_ssthresh, Rule::Exact);
            near(
                rounds_to(&mut start, 1.0, target, 1.0, 1.0),
                exact,
                0.0051,
                target,
            );
        }
    }
}

/// Erratum of RFC 3742: with its max_ssthresh of 100 segments 83000 take 1664.6 RTTs by its own
/// formula. The 836 of its text are those of 200.
#[test]
fn the_rfcs_836_rtts_are_1665() {
    for (spelling, wanted) in [
        ("reno+limited", 1664.7),
        ("reno+limited(max_ssthresh=200)", 835.7),
    ] {
        let mut flow = Rounds::with(spelling, Span::from_millis(100), one());
        let mut before = 1.0;
        while flow.w() < 83_000.0 {
            before = flow.w();
            flow.round_at_once();
        }
        let got = flow.round as f64 - (flow.w() - 83_000.0) / (flow.w() - before);
        near(got, wanted, 0.05, spelling);
    }
}

/// Window at round starts, IW = 1, max_ssthresh = 100.
#[test]
fn windows_at_round_starts() {
    let mut flow = Rounds::with("reno+limited", Span::from_millis(100), one());
    for want in [
        1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 114.50, 164.33, 214.25, 264.20, 314.20, 364.18,
        414.16, 464.14, 514.13, 564.12,
    ] {
        near(flow.w(), want, 0.0051, flow.round);
        flow.round();
    }
    while flow.w() < 5000.0 {
        let before = flow.w();
        flow.round();
        let growth = flow.w() - before;
        assert!(
            (49.8..=50.0 + 1e-9).contains(&growth),
            "{growth} at {before}"
        );
    }
}

/// Section 2.1: rounds of standard slow start to 1000 segments for IW 1, 2, 3, 10, with one ACK per
/// segment, with delayed ACKs counted per ACK, and with delayed ACKs and byte counting (L = 2).
/// Limited Slow-Start with delayed ACKs: 46.81.
#[test]
fn standard_slow_start_and_delayed_acks() {
    for (iw, rounds, delayed) in [
        (1.0_f64, 9.95, 17.50),
        (2.0, 8.95, 15.50),
        (3.0, 8.30, 14.50),
        (10.0, 6.56, 11.35),
    ] {
        let mut start = Start::Standard(Standard::UNLIMITED);
        near(
            rounds_to(&mut start, iw, 1000.0, 1.0, 1.0),
            rounds,
            0.0051,
            "one ACK per segment",
        );
        near(
            rounds_to(&mut start, iw, 1000.0, 2.0, 1.0),
            delayed,
            0.0051,
            "delayed ACKs",
        );
        near(
            rounds_to(&mut start, iw, 1000.0, 2.0, 2.0),
            rounds,
            0.0051,
            "byte counting",
        );
    }
    let mut start = limited(100.0, Rule::Rfc);
    near(
        rounds_to(&mut start, 1.0, 1000.0, 2.0, 1.0),
        46.81,
        0.0051,
        "limited, delayed ACKs",
    );
}

/// Section 2.2, column "standard slow start". The first two are log2 of the target, which is up to
/// 0.09 more than ACK by ACK.
#[test]
fn standard_slow_start_to_larger_windows() {
    for (target, want, tolerance) in [
        (2000.0, 10.97, 0.09),
        (3500.0, 11.77, 0.09),
        (83_000.0, 16.27, 0.0051),
    ] {
        let mut start = Start::Standard(Standard::UNLIMITED);
        near(
            rounds_to(&mut start, 1.0, target, 1.0, 1.0),
            want,
            tolerance,
            target,
        );
    }
}
