//! RFC 5681 section 3.1 and Net100 2003: 500 -> 1000 takes 501 rounds per segment, 1002 with
//! delayed ACKs counted per ACK; the table of AIMD pairs. Tolerance: the printed digits.

use super::near;
use super::stepped::{Cycle, avoiding, climb, cycle, reopen};
use crate::rounds::law;
use fullpipe_cc::law::Law;
use fullpipe_cc::law::aimd::{Aimd, Pretuned};
use fullpipe_cc::{Count, Setup};
use fullpipe_units::Span;

#[test]
fn steady_state_and_reopening_of_the_pairs() {
    for (a, b, mean, reopening, ratio) in [
        (1.0, 0.5, 1.224745, 500, 0.75),
        (15.0, 0.3, 6.519202, 20, 0.85),
        (4.0, 0.125, 5.477226, 32, 0.9375),
        (6.0, 0.5, 3.0, 84, 0.75),
    ] {
        let pair = Aimd {
            increase: a,
            decrease: b,
        };
        near(pair.mean_window(1e-4) * 1e-2, mean, 1e-6, a);
        let (a, b) = (a.to_string(), b.to_string());
        let params = [("increase", a.as_str()), ("decrease", b.as_str())];
        assert_eq!(reopen("aimd", &params, 1000.0), reopening);
        // One cycle from the cut to the peak; a large peak makes the steps small.
        let mut law = law("aimd", &params);
        let peak = 1e5;
        let Cycle { mean, p, .. } = cycle(&mut law, peak, peak, 0.1);
        near(mean / peak, ratio, 2e-4, "mean over peak");
        near(
            mean / pair.mean_window(p),
            1.0,
            1e-3,
            "closed form against the cycle",
        );
    }
}

#[test]
fn standard_tcp_needs_501_rounds_per_segment_and_1002_with_delayed_acks() {
    let rtt = Span::from_millis(87);
    let mut flow = avoiding("reno", 500.0, rtt, Setup::default());
    let rounds = flow.until(1000.0, 2000);
    assert_eq!(rounds, 501);
    near(flow.now.as_secs_f64(), 43.6, 0.05, "seconds");
    let mut flow = avoiding(
        "reno",
        500.0,
        rtt,
        Setup {
            count: Count::Acks,
            ..Setup::default()
        },
    );
    flow.per_ack = 2;
    let rounds = flow.until(1000.0, 2000);
    assert!((1001..=1003).contains(&rounds), "{rounds}");
    near(flow.now.as_secs_f64(), 87.2, 0.1, "seconds");
}

/// Net100 2003: four streams are (0.125, 4); N = 16 is 16 and 1/32.
#[test]
fn streams_are_emulated_by_n_and_one_over_2n() {
    assert_eq!(
        Aimd::streams(4.0),
        Aimd {
            increase: 4.0,
            decrease: 0.125
        }
    );
    assert_eq!(
        Aimd::streams(16.0),
        Aimd {
            increase: 16.0,
            decrease: 0.03125
        }
    );
}

/// Net100 2003: an AIMD pair computed from the configured buffer; W = 3000 segments, close to its
/// hand-set (0.3, 15).
#[test]
fn a_buffer_of_3000_segments_gives_fifteen_segments_and_a_quarter() {
    for (form, a) in [("exact", 15.167), ("rfc", 14.900)] {
        let Law::Pretuned(Pretuned { pair, .. }) =
            law("floyd-static", &[("window", "3000"), ("form", form)])
        else {
            panic!("pretuned is a static pair");
        };
        near(pair.decrease, 0.272726, 5e-7, "b(3000)");
        near(pair.increase, a, 5e-4, form);
    }
}

/// Section 7: rounds to return to W, and the time from 10 to 3500 segments at 80 ms (one step per
/// round).
#[test]
fn rounds_to_return_to_w() {
    for (w, reno, four, fifteen) in [
        (1000.0, 500, 32, 20),
        (3500.0, 1750, 110, 70),
        (10_000.0, 5000, 313, 200),
    ] {
        assert_eq!(reopen("reno", &[], w), reno);
        assert_eq!(reopen("multcp", &[], w), four);
        assert_eq!(
            reopen("aimd", &[("increase", "15"), ("decrease", "0.3")], w),
            fifteen
        );
    }
    near(climb("reno", &[]), 279.2, 0.05, "reno");
    near(climb("multcp", &[]), 69.8, 0.05, "four streams");
    near(climb("aimd", &[("increase", "15")]), 18.6, 0.1, "a = 15");
}

/// Section 5.2: standard TCP's response, one deterministic cycle against Mathis' sqrt(1.5/p); with
/// delayed ACKs counted per ACK sqrt(0.75/p).
#[test]
fn mathis() {
    for (p, want) in [
        (1e-2, 12.2474),
        (1e-3, 38.7298),
        (1e-4, 122.474),
        (1e-5, 387.298),
        (1e-6, 1224.74),
        (1e-7, 3872.98),
    ] {
        near(Aimd::RENO.mean_window(p), want, want * 4e-6, p);
        let delayed = Aimd {
            increase: 0.5,
            decrease: 0.5,
        };
        near(delayed.mean_window(p) * p.sqrt(), 0.866025, 5e-7, "D = 2");
    }
    let cycle = cycle(&mut law("reno", &[]), 2000.0, 2000.0, 0.1);
    near(
        cycle.mean / Aimd::RENO.mean_window(cycle.p),
        1.0,
        1e-3,
        "cycle",
    );
}
