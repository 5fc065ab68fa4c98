//! CUBIC: RFC 9438; computed numbers of sections 1.10, 5.2 and 7.

use super::near;
use super::stepped::{cut, cycle, rounds, step};
use crate::rounds::{ack, law, loss};
use fullpipe_cc::classic::Window;
use fullpipe_cc::law::WindowLaw;
use fullpipe_cc::law::aimd::Aimd;
use fullpipe_cc::law::cubic::{Cubic, CubicParams, alpha_cubic};
use fullpipe_units::Time;

fn rfc() -> CubicParams {
    CubicParams::rfc(0.4, 0.7)
}

/// K and Wc(t) after a loss at four windows.
#[test]
#[rustfmt::skip]
fn the_curve_at_five_times() {
    for (w_max, k, curve) in [
        (10.0, 1.957434, [7.436696, 9.648936, 10.000031, 21.266268, 218.086507]),
        (100.0, 4.217163, [72.083930, 86.680764, 95.640336, 100.191899, 177.353999]),
        (1000.0, 9.085603, [709.797155, 788.555094, 857.704741, 972.720998, 1000.305819]),
        (10_000.0, 19.574338, [7045.744074, 7436.696454, 7828.814495, 8761.698151, 9648.936010]),
    ] {
        let got = rfc().k(w_max, 0.7 * w_max);
        near(got, k, 5.1e-7, w_max);
        for (t, w) in [0.1, 1.0, 2.0, 5.0, 10.0].into_iter().zip(curve) {
            near(rfc().w_cubic(t, got, w_max), w, 5.1e-7, w_max);
        }
    }
    near(alpha_cubic(0.7), 0.529412, 5e-7, "alpha");
}

/// One ACK at w = 700, W_max = 1000, t = 0.1 s, SRTT 0.1 s; W_est after it.
#[test]
fn one_ack() {
    let mut law = Cubic::new(rfc());
    let cut = law.decrease(1000.0, 1000.0, &loss(Time::ZERO, 1000));
    near(cut, 700.0, 1e-9, "cut");
    let mut win = Window { w: cut, ssth: cut };
    law.increase(&mut win, 0.0, &ack(Time::ZERO, 1)); // the epoch starts
    law.increase(&mut win, 1.0, &ack(Time::from_secs_f64(0.1), 1));
    near(win.w - 700.0, 0.027683792, 5e-10, "increment");
    near(700.0 + 700.0 * (win.w - 700.0), 719.378655, 5e-7, "target");
    let mut w_est = f64::NAN;
    law.report(win.w, &mut |name, value| {
        if name == "w_est" {
            w_est = value;
        }
    });
    near(w_est, 700.000756, 5e-7, "W_est");
}

/// Loss at 800 with W_max = 1000: W_max = 680.
#[test]
fn fast_convergence() {
    let mut law = Cubic::new(rfc());
    law.decrease(1000.0, 1000.0, &loss(Time::ZERO, 1000));
    law.decrease(800.0, 800.0, &loss(Time::ZERO, 800));
    law.report(800.0, &mut |name, value| {
        if name == "w_max" {
            near(value, 680.0, 1e-9, "W_max");
        }
    });
}

/// RFC 9438 Tables 1 to 3: mean window 1.053829 (RTT/p)^0.75; at 10 ms and p = 1e-4 Reno's 122.5 is
/// above it.
#[test]
fn the_response_function() {
    near(rfc().mean_window(1.0, 1.0), 1.053829, 5e-7, "factor");
    for (rtt, p, mean) in [
        (0.1, 1e-2, 5.926),
        (0.1, 1e-3, 33.325),
        (0.1, 1e-4, 187.400),
        (0.1, 1e-5, 1053.829),
        (0.1, 1e-6, 5926.116),
        (0.1, 1e-7, 33_324.997),
        (0.01, 1e-4, 33.325),
        (0.01, 1e-5, 187.400),
        (0.01, 1e-6, 1053.829),
        (0.01, 1e-7, 5926.116),
    ] {
        near(rfc().mean_window(rtt, p), mean, 6e-4, p);
    }
    near(Aimd::RENO.mean_window(1e-4), 122.474, 5e-4, "Reno");
}

/// The closed form against one period K of the law at 1000 segments and 100 ms, within 1 %; at 10
/// ms and 120 segments the friendly region sets the pace of an AIMD flow with Reno's mean, within 6
/// % (whole rounds).
#[test]
fn cycles_against_the_closed_form() {
    let mut law = law("cubic", &[]);
    let mut w = cut(&mut law, 1000.0);
    let rounds = 91; // K = 9.0856 s
    let mut sent = 0.0;
    for round in 0..rounds {
        sent += w;
        w = step(&mut law, w, Time::from_secs_f64(f64::from(round) * 0.1));
    }
    near(
        sent / f64::from(rounds) / rfc().mean_window(0.1, 1.0 / sent),
        1.0,
        0.01,
        "cubic",
    );
    let mut law = crate::rounds::law("cubic", &[]);
    let cycle = super::stepped::cycle(&mut law, 120.0, 120.0, 0.01);
    near(
        cycle.mean / Aimd::RENO.mean_window(cycle.p),
        1.0,
        0.06,
        "friendly",
    );
}

/// Section 7: K for W = 1000, 3500, 10000; 10 -> 3500 segments at 80 ms after an early loss at
/// 14.3.
#[test]
fn time_to_return_to_w() {
    for (w, k, tolerance) in [
        (1000.0, 9.09, 0.006),
        (3500.0, 13.8, 0.06),
        (10_000.0, 19.6, 0.06),
    ] {
        near(rfc().k(w, 0.7 * w), k, tolerance, w);
        // The curve is at 99.97 % of W after 90 % of K.
        let mut law = law("cubic", &[]);
        let rounds = cycle(&mut law, w, 0.9997 * w, 0.1).rounds;
        near(rounds as f64 * 0.1, 0.9 * k, 0.3, w);
    }
    let mut law = law("cubic", &[]);
    let from = cut(&mut law, 10.0 / 0.7);
    near(from, 10.0, 1e-9, "W_max 14.3");
    near(
        0.08 * rounds(&mut law, from, 3500.0, 0.08) as f64,
        22.8,
        0.2,
        "10 -> 3500",
    );
}
