//! What background flows make of a delay that is not that of their own way.

use crate::recovery::{SEGMENT_BITS, flow, simulate};

const PRESETS: [&str; 3] = ["2003", "2026", "linux"];

const BACK: &str = r#"
name = "back"
duration = "60s"
[path]
rate = "20Mbit/s"
rtt = "60ms"
buffer = "2BDP"
return_rate = "20Mbit/s"
return_buffer = "2BDP"
[[flow]]
name = "a"
stack = "ledbat"
[[flow]]
name = "back"
stack = "cubic"
direction = "reverse"
[measure]
trace = "off"
warmup = "20s"
"#;

fn delivered(stack: &str) -> f64 {
    simulate(BACK, &[("flow.a.stack", stack)]).flows[0]
        .totals
        .delivered_measured as f64
}

/// RFC 6817 section 2.2: the queue of the way back is not LEDBAT's. With room for its target in the
/// buffer of its own way it uses what Reno does.
#[test]
fn the_queue_of_the_way_back_does_not_hold_ledbat_back() {
    let (ledbat, reno) = (delivered("ledbat"), delivered("reno"));
    assert!(ledbat >= 0.95 * reno, "{ledbat} of {reno}");
}

const BACKGROUND: [&str; 4] = ["lp", "lp(signal=owd)", "hstcp-lp", "hstcp-lp(signal=owd)"];

/// A second without the path brings the window to one segment, whose ACK is delayed.
const BRIEF_OUTAGE: &str = r#"
name = "brief-outage"
duration = "140s"
[path]
rate = "20Mbit/s"
rtt = "60ms"
buffer = "1BDP"
schedule = [{ at = "20s", outage = "1s" }]
[[flow]]
stack = "lp"
[measure]
trace = "off"
warmup = "40s"
"#;

/// Reno that halves whenever it queues has three quarters of the path.
#[test]
fn a_background_flow_comes_back_from_one_segment() {
    for preset in PRESETS {
        for delayed in ["true", "false"] {
            for stack in BACKGROUND {
                let set = [
                    ("flow.main.preset", preset),
                    ("flow.main.delayed_ack", delayed),
                    ("flow.main.stack", stack),
                ];
                let t = flow(BRIEF_OUTAGE, &set).totals;
                let mbps = t.delivered_measured as f64 * SEGMENT_BITS / 100.0 / 1e6;
                assert!(mbps >= 0.75 * 20.0 * 1448.0 / 1500.0, "{set:?}: {mbps}");
            }
        }
    }
}

const TWO: &str = r#"
name = "two"
duration = "120s"
[path]
rate = "20Mbit/s"
rtt = "60ms"
buffer = "2BDP"
[[flow]]
name = "a"
stack = "lp"
[[flow]]
name = "b"
stack = "lp"
start = "1s"
[measure]
trace = "off"
warmup = "30s"
"#;

/// TCP-LP shares what is left fairly among its own (Kuzmanovic and Knightly 2003): Jain's index
/// of two is 0.9 where one has twice as much as the other. Halving whenever they queue leaves them
/// three quarters.
#[test]
fn background_flows_share() {
    for stack in BACKGROUND {
        let flows = simulate(TWO, &[("flow.a.stack", stack), ("flow.b.stack", stack)]).flows;
        let [a, b] = [0, 1].map(|i: usize| flows[i].totals.delivered_measured as f64);
        let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
        assert!(jain >= 0.9, "{stack}: {jain}");
        let mbps = (a + b) * SEGMENT_BITS / 90.0 / 1e6;
        assert!(mbps >= 0.75 * 20.0 * 1448.0 / 1500.0, "{stack}: {mbps}");
    }
}
