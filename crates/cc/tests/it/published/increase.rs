//! Application of an increase law: segment by segment, and of stretch ACKs.

use super::near;
use super::stepped::avoiding;
use fullpipe_cc::Setup;
use fullpipe_units::Span;

/// Section "how an increase law is applied" (equation 0-1), per segment. Tolerance 1.1e-6: the
/// reference prints 1000.999500, which is the closed form `sqrt(w^2 + 2w)`; the sum is
/// 1000.9995010.
#[test]
fn an_increase_is_applied_segment_by_segment() {
    for (spelling, w, segments, want) in [
        ("reno", 10.0, 10, 10.958648),
        ("reno", 1000.0, 1000, 1000.999500),
        ("aimd(increase=4)", 100.0, 100, 103.923789),
        ("scalable", 1000.0, 1000, 1010.0),
    ] {
        let mut flow = avoiding(spelling, w, Span::from_millis(87), Setup::default());
        flow.acks(segments);
        near(flow.w(), want, 1.1e-6, spelling);
    }
}

/// "A whole-window stretch ACK exceeds the segment-by-segment result by about a^2/2w" (0.032 for a
/// = 8, w = 1000).
#[test]
fn a_stretch_ack_gains_a_known_trifle() {
    let setup = Setup::default;
    let mut one = avoiding("aimd(increase=8)", 1000.0, Span::from_millis(100), setup());
    let mut many = avoiding("aimd(increase=8)", 1000.0, Span::from_millis(100), setup());
    one.round_at_once();
    many.round();
    near(one.w() - many.w(), 0.032, 0.001, "a = 8, w = 1000");
}
