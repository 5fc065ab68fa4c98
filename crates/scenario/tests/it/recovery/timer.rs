//! One loss needs no retransmission timeout, however long the RTT is.

use crate::recovery::flow;

/// The RTT becomes ten times as long at 30 s: the timer of that moment goes off too early.
const LONGER: &str = r#"
name = "longer"
duration = "120s"
[path]
rate = "100Mbit/s"
rtt = "40ms"
buffer = "300 packets"
schedule = [{ at = "30s", rtt = "400ms" }]
[[flow]]
stack = "cubic"
preset = "2003"
[measure]
trace = "off"
"#;

/// With a steady RTT above the least RTO the timer of the last ACK that advanced would go off just
/// before the retransmission's ACK (RFC 6298 section 5.3).
#[test]
fn a_loss_on_a_long_path_ends_in_no_timeout() {
    for stack in ["cubic", "htcp"] {
        let t = flow(LONGER, &[("flow.main.stack", stack)]).totals;
        assert!(t.loss_events > 1 && t.timeouts <= 1, "{stack} {t:?}");
    }
}

/// The same in preset 2026, whose least RTO is a second, where the buffer alone takes longer.
const DEEP: &str = r#"
name = "deep"
duration = "60s"
[path]
rate = "20Mbit/s"
rtt = "60ms"
buffer = "20BDP"
[[flow]]
stack = "cubic"
[measure]
trace = "off"
"#;

#[test]
fn a_loss_behind_a_deep_buffer_ends_in_no_timeout() {
    for stack in ["cubic", "scalable", "bic", "highspeed"] {
        let t = flow(DEEP, &[("flow.main.stack", stack)]).totals;
        assert!(t.loss_events > 0, "{stack}");
        assert_eq!((t.timeouts, t.undone), (0, 0), "{stack} {t:?}");
    }
}

/// Behind a second of buffer, where the RTT grows by a packet's time per round trip: the least RTO
/// is of no help. Returns cases, and those with a timeout.
fn deeper(formula: &str) -> (u32, u32) {
    let (mut cases, mut timeouts) = (0, 0);
    for stack in [
        "reno",
        "cubic",
        "htcp",
        "bic",
        "scalable",
        "highspeed",
        "hybla",
    ] {
        for (rate, rtt) in [
            ("2Mbit/s", "80ms"),
            ("5Mbit/s", "200ms"),
            ("10Mbit/s", "400ms"),
        ] {
            for buffer in ["300 packets", "500 packets", "1000 packets"] {
                let t = flow(
                    DEEP,
                    &[
                        ("duration", "120s"),
                        ("path.rate", rate),
                        ("path.rtt", rtt),
                        ("path.buffer", buffer),
                        ("flow.main.stack", stack),
                        ("flow.main.rto_formula", formula),
                    ],
                )
                .totals;
                cases += 1;
                timeouts += u32::from(t.timeouts > 0);
            }
        }
    }
    (cases, timeouts)
}

/// A flow alone behind a drop-tail queue: what is lost is lost once, and no timeout is needed.
#[test]
fn a_sample_per_round_trip_remembers_what_the_buffer_does() {
    assert_eq!(deeper("rounds"), (63, 0));
    assert!(deeper("rfc6298").1 > 0, "the cases show nothing");
}
