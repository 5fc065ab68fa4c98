//! BIC: Linux tcp_bic.c; computed numbers of sections 1.6, 5.2 and 7.

use super::near;
use super::stepped::{cut, cycle, rounds};
use crate::rounds::law;
use fullpipe_cc::law::WindowLaw;
use fullpipe_cc::law::aimd::Aimd;
use fullpipe_cc::law::bic::BicParams;

/// Linux's `cnt` at ten windows, last maximum 1000, and the increase per RTT.
#[test]
fn segments_per_segment_of_growth() {
    let linux = BicParams {
        integer: true,
        ..BicParams::LINUX
    };
    for (w, count, increase, tolerance) in [
        (800.0, 50.0, 16.0, 1e-9),
        (937.0, 62.0, 15.11, 0.005),
        (950.0, 79.0, 12.03, 0.005),
        (997.0, 4985.0, 0.2, 1e-9),
        (1000.0, 5000.0, 0.2, 1e-9),
        (1002.0, 5010.0, 0.2, 1e-9),
        (1020.0, 153.0, 6.667, 5e-4),
        (1047.0, 66.0, 15.86, 0.005),
        (1048.0, 65.0, 16.12, 0.005),
        (1100.0, 68.0, 16.18, 0.005),
    ] {
        assert_eq!(linux.count(w, 1000.0), count, "{w}");
        near(linux.increase(w, 1000.0), increase, tolerance, w);
    }
}

/// Loss at 1000 leaves 799 (799.8047); at 900 below a maximum of 1000 the new maximum is 809.
#[test]
fn cut_and_fast_convergence() {
    assert_eq!(cut(&mut law("bic", &[("rule", "linux")]), 1000.0), 799.0);
    near(
        cut(&mut law("bic", &[]), 1000.0),
        799.8047,
        5e-5,
        "real-valued",
    );
    for (rule, want) in [("linux", 809.0), ("real", 809.91)] {
        let mut law = law("bic", &[("rule", rule)]);
        cut(&mut law, 1000.0);
        cut(&mut law, 900.0);
        let mut w_max = f64::NAN;
        law.report(900.0, &mut |name, value| {
            if name == "w_max" {
                w_max = value;
            }
        });
        near(w_max, want, 0.005, rule);
    }
}

/// Section 7: rounds from the cut to 99.5 % of W; 10 -> 3500 segments at 80 ms after an early loss
/// at 10.
#[test]
fn rounds_to_return_to_w() {
    for (w, want) in [(1000.0, 18), (3500.0, 45), (10_000.0, 122)] {
        assert_eq!(
            cycle(&mut law("bic", &[]), w, 0.995 * w, 0.1).rounds,
            want,
            "{w}"
        );
    }
    let mut law = law("bic", &[]);
    cut(&mut law, 10.0);
    near(
        0.08 * rounds(&mut law, 10.0, 3500.0, 0.08) as f64,
        18.3,
        0.09,
        "10 -> 3500",
    );
}

/// Section 5.2: the additive regime's `sqrt(S_max (2-b)/(2 b p))` is 8.485281/sqrt(p), and steady
/// cycles from W without max probing; the paper-era ones end S_min below W.
#[test]
fn response() {
    let additive = Aimd {
        increase: BicParams::LINUX.s_max,
        decrease: 0.2,
    };
    near(
        additive.mean_window(1e-4) * 1e-2,
        8.485281,
        5e-7,
        "additive regime",
    );
    for (w, linux_p, linux_mean, paper_p, paper_mean) in [
        (100.0, 4.347e-4, 95.9, 9.302e-4, 97.7),
        (300.0, 1.275e-4, 290.5, 2.837e-4, 293.8),
        (1000.0, 2.982e-5, 958.2, 6.821e-5, 977.3),
        (3000.0, 5.941e-6, 2805.3, 1.502e-5, 2894.8),
        (10_000.0, 7.280e-7, 9157.6, 2.106e-6, 9498.6),
    ] {
        let cycle = super::stepped::cycle(&mut law("bic", &[]), w, w, 0.1);
        near(cycle.p / linux_p, 1.0, 5e-4, w);
        near(cycle.mean, linux_mean, 0.051, w);
        let cycle = super::stepped::cycle(&mut law("bic-paper", &[]), w, w - 0.01, 0.1);
        near(cycle.p / paper_p, 1.0, 5e-4, w);
        near(cycle.mean, paper_mean, 0.051, w);
    }
}
