//! RFC 3649 sections 8 and 12 on Scalable TCP; computed numbers of section 1.3.

use super::near;
use super::stepped::{avoiding, climb, cut, cycle, reopen, step};
use crate::rounds::law;
use fullpipe_cc::law::Law;
use fullpipe_cc::law::scalable::Scalable;
use fullpipe_cc::{Count, Setup};
use fullpipe_units::{Span, Time};

fn built(name: &str, params: &[(&str, &str)]) -> Scalable {
    match law(name, params) {
        Law::Scalable(law) => law,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_thousand_segments_gain_ten_and_a_loss_leaves_875() {
    let mut flow = avoiding("scalable", 1000.0, Span::from_millis(100), Setup::default());
    flow.acks(1000);
    near(flow.w(), 1010.0, 1e-9, "1000 segments");
    let mut flow = avoiding("scalable", 1000.0, Span::from_millis(100), Setup::default());
    flow.lose();
    assert_eq!(flow.w(), 875.0);
}

/// `ln(8/7)/ln(1.01)` = 13.4198 rounds; with 0.005 per segment 26.7730. The response's peak and
/// mean.
#[test]
fn rounds_to_recover_and_the_response() {
    for (increase, want) in [("0.01", 13.4198), ("0.005", 26.7730)] {
        let mut law = law("scalable", &[("increase", increase)]);
        let growth = step(&mut law, 1000.0, Time::ZERO) / 1000.0;
        let kept = cut(&mut law, 1000.0) / 1000.0;
        near(-kept.ln() / growth.ln(), want, 5e-5, increase);
    }
    let law = built("scalable", &[]);
    near(law.peak_window(1e-5), 8000.0, 1e-6, "0.08/p");
    for (p, mean) in [
        (1e-2, 7.48888),
        (1e-3, 74.8888),
        (1e-5, 7488.88),
        (1e-7, 748_888.0),
    ] {
        near(law.mean_window(p), mean, mean * 1e-6, p);
    }
    // The closed form treats rounds as a continuum; a cycle of whole rounds overshoots by up to one
    // in 13.
    let whole = cycle(
        &mut crate::rounds::law("scalable", &[]),
        8000.0,
        8000.0,
        0.1,
    );
    near(
        whole.mean / law.mean_window(whole.p),
        1.0,
        0.05,
        "cycle against closed form",
    );
    assert_eq!(whole.rounds, 14);
}

/// RFC 3649 Tables 8 and 10: with delayed ACKs counted per ACK, 4.2 segments per RTT at 833 (the
/// RFC prints 4) and the linear response 0.038/p.
#[test]
fn delayed_acks_halve_the_increase() {
    let setup = Setup {
        count: Count::Acks,
        ..Setup::default()
    };
    let mut flow = avoiding("scalable", 833.0, Span::from_millis(100), setup);
    flow.per_ack = 2;
    flow.round();
    near(flow.w() - 833.0, 4.2, 0.05, "100 Mbit/s, 100 ms");
    let delayed = built("scalable", &[("increase", "0.005")]);
    near(delayed.mean_window(1e-5), 3800.0, 60.0, "0.038/p at 1e-5");
}

/// lwnd: at 16 segments Scalable's peak response is that of Reno within 10 % (17.3).
#[test]
fn the_curves_meet_near_lwnd() {
    let law = built("scalable", &[]);
    near(law.peak_window(0.005), 16.0, 1e-9, "0.08/p");
    near((1.5_f64 / 0.005).sqrt(), 17.3, 0.05, "Reno");
    assert_eq!(law.gain(15.0) * 15.0, 1.0);
    near(law.gain(16.0) * 16.0, 0.16, 1e-12, "per RTT at 16");
}

/// Section 7: 14 rounds at every W; 10 -> 3500 segments at 80 ms.
#[test]
fn rounds_to_return_to_w() {
    for w in [1000.0, 3500.0, 10_000.0] {
        assert_eq!(reopen("scalable", &[], w), 14);
    }
    near(climb("scalable", &[]), 43.8, 0.05, "lwnd 16");
    // Linux's increase, present and old: Reno below, one segment per so many from there on.
    near(
        climb("scalable", &[("lwnd", "100")]),
        35.8,
        0.05,
        "threshold 100",
    );
    let old = [("increase", "0.02"), ("lwnd", "50")];
    near(climb("scalable", &old), 20.4, 0.05, "0.02 above 50");
}
