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
