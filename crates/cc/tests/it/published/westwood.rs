//! Westwood+.

use super::settled::{at_ms, ms, near, reported, settled};
use crate::rounds::{ack, changed, loss};
use fullpipe_cc::controller::Controller;
use fullpipe_cc::law::westwood::{Bandwidth, Filter};
use fullpipe_units::Time;

#[test]
fn westwood_filter_sequences() {
    let mut linux = Bandwidth::new(Filter::Linux);
    linux.add(1000.0);
    for expected in [1015.625, 1042.96875, 1078.857422, 1120.727539] {
        linux.add(2000.0);
        near(linux.estimate(), expected, 5e-7);
    }
    // ns-3: 0.9 last + 0.1 (s + s_last)/2.
    let mut tustin = Bandwidth::new(Filter::Tustin);
    tustin.add(1000.0);
    for expected in [1050.0, 1145.0, 1230.5] {
        tustin.add(2000.0);
        near(tustin.estimate(), expected, 1e-9);
    }
}

/// 12.5e6 B/s, 0.1 s, 1460 B: 856.164 segments.
#[test]
fn westwood_bandwidth_delay_product() {
    let rate = 12.5e6 / 1460.0;
    let mut stack = settled("westwood", 2000.0);
    // A steady delivery of one segment every 1/rate seconds.
    for i in 0..20_000_u32 {
        let now = Time::from_secs_f64(1.0 + f64::from(i) / rate);
        stack.on_ack(&changed(ack(now, 1), |ev| {
            ev.cwnd_limited = false;
        }));
    }
    near(reported(&stack, "bdp"), 856.164, 0.01);
    stack.on_congestion(&loss(Time::ZERO, 2000));
    near(stack.window(), 856.164, 0.01);
}

#[test]
fn westwood_samples_fifty_milliseconds() {
    let mut stack = settled("westwood", 100.0);
    for t in 0..=52 {
        let ev = changed(ack(at_ms(t), 10), |ev| {
            ev.rtt = Some(ms(10.0));
            ev.srtt = ms(10.0);
        });
        stack.on_ack(&ev);
        assert_eq!(reported(&stack, "bandwidth") > 0.0, t > 50, "{t}");
    }
}
