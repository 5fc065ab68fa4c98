//! H-TCP: Linux tcp_htcp.c, FreeBSD cc_htcp; computed numbers of sections 1.5, 5.2 and 7.

use super::near;
use super::stepped::{avoiding, cycle};
use crate::rounds::law;
use fullpipe_cc::Setup;
use fullpipe_cc::law::htcp::HtcpParams;
use fullpipe_units::Span;

/// f(D) and alpha for both ends of beta.
#[test]
fn the_increase_by_time_since_the_event() {
    let htcp = HtcpParams::DEFAULT;
    for (delta, f, half, most) in [
        (0.5, 1.0, 1.0, 0.4),
        (1.0, 1.0, 1.0, 0.4),
        (1.5, 6.0625, 6.0625, 2.425),
        (2.0, 11.25, 11.25, 4.5),
        (3.0, 22.0, 22.0, 8.8),
        (5.0, 45.0, 45.0, 18.0),
        (10.0, 111.25, 111.25, 44.5),
    ] {
        let rtt = Span::from_millis(100);
        assert_eq!(htcp.f(delta), f, "{delta}");
        near(htcp.alpha(delta, 0.5, rtt), half, 1e-12, delta);
        near(htcp.alpha(delta, 0.8, rtt), most, 1e-12, delta);
    }
}

/// beta by the range of the RTT, and the factor of the RTT scaling.
#[test]
fn decrease_and_scaling_by_rtt() {
    let ms = Span::from_millis;
    for (max, beta) in [(110, 0.8), (125, 0.8), (150, 0.666667), (300, 0.5)] {
        near(HtcpParams::DEFAULT.beta(ms(100), ms(max)), beta, 5e-7, max);
    }
    for (rtt, scale) in [
        (10, 0.1),
        (20, 0.2),
        (50, 0.5),
        (100, 1.0),
        (200, 2.0),
        (400, 2.0),
    ] {
        near(HtcpParams::scale(ms(rtt)), scale, 1e-12, rtt);
        let scaled = HtcpParams {
            rtt_scaling: true,
            ..HtcpParams::DEFAULT
        };
        near(scaled.alpha(5.0, 0.5, ms(rtt)), 45.0 * scale, 1e-9, rtt);
        assert_eq!(scaled.alpha(1.0, 0.5, ms(rtt)), scale.max(1.0));
    }
}

/// One deterministic cycle, no RTT scaling. Tolerance: half a unit of the last printed digit, for p
/// one unit.
#[test]
fn deterministic_cycles() {
    for (rtt, w, beta, p, mean, rounds) in [
        (0.01, 1000.0, "0.5", 8.703e-6, 638.4, 180),
        (0.05, 1000.0, "0.5", 2.545e-5, 633.6, 62),
        (0.1, 1000.0, "0.5", 3.772e-5, 646.7, 41),
        (0.1, 1000.0, "0.8", 2.840e-5, 858.7, 41),
        (0.1, 3000.0, "0.5", 8.340e-6, 1933.9, 62),
        (0.1, 10_000.0, "0.5", 1.493e-6, 6504.7, 103),
        (0.2, 10_000.0, "0.5", 2.179e-6, 6555.4, 70),
    ] {
        let mut law = law("htcp", &[("beta_min", beta)]);
        let cycle = cycle(&mut law, w, w, rtt).counted_at_round_ends();
        assert_eq!(cycle.rounds, rounds, "{rtt} {w} {beta}");
        near(cycle.p / p, 1.0, 5e-4, "p");
        near(cycle.mean, mean, 0.051, "mean");
    }
}

/// Section 7: rounds to return to W with either beta; 10 -> 3500 segments at 80 ms, without and
/// with RTT scaling.
#[test]
fn rounds_to_return_to_w() {
    for (w, rtt, want) in [
        (1000.0, 0.087, 44),
        (3500.0, 0.08, 76),
        (10_000.0, 0.1, 103),
    ] {
        for beta in ["0.5", "0.8"] {
            let mut law = law("htcp", &[("beta_min", beta)]);
            assert_eq!(cycle(&mut law, w, w, rtt).rounds, want, "{w} {beta}");
        }
    }
    for (scaling, want) in [("off", 8.1), ("on", 8.8)] {
        let mut flow = avoiding(
            &format!("htcp(rtt_scaling={scaling})"),
            10.0,
            Span::from_millis(80),
            Setup::default(),
        );
        while flow.w() < 3500.0 {
            flow.round_at_once();
        }
        // The clock starts with the first ACK, one round late; whole windows cost another.
        near(flow.now.as_secs_f64(), want, 0.2, scaling);
    }
}
