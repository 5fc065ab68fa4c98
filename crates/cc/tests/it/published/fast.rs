//! FAST.

use super::settled::{at_ms, ms, near, reported, settled, settled_rounds};
use crate::rounds::{ack, changed};
use fullpipe_cc::controller::Controller;
use fullpipe_cc::law::delay::fast::next_window;
use fullpipe_units::Span;

#[test]
fn fast_updates() {
    near(next_window(1000.0, 0.1, 0.1, 200.0, 0.5), 1100.0, 1e-9);
    near(
        next_window(1000.0, 0.1, 0.11, 200.0, 0.5),
        1054.545455,
        5e-7,
    );
    let mut flow = settled_rounds("fast", 1000.0, ms(100.0));
    near(flow.w(), 1100.0, 1e-6);
    flow.round();
    near(flow.w(), 1200.0, 1.0); // the base is 100 ms still
}

#[test]
fn fast_settles_alpha_segments_above_the_pipe() {
    let mut w = 1000.0;
    for expected in [1100.0, 1150.0, 1175.0, 1187.5, 1193.75] {
        let rtt = f64::max(0.1, w / 10_000.0);
        w = next_window(w, 0.1, rtt, 200.0, 0.5);
        near(w, expected, 1e-9);
    }
    // The controller, whose average RTT lags: 10,000 packets/s, 100 ms.
    let mut flow = settled_rounds("fast", 1000.0, ms(100.0));
    for _ in 0..60 {
        flow.rtt = Span::from_secs_f64(f64::max(0.1, flow.w() / 10_000.0));
        flow.round();
    }
    near(flow.w(), 1200.0, 0.5);
}

#[test]
fn fast_pays_for_a_queue_on_the_way_back() {
    let mut flow = settled_rounds("fast", 1000.0, ms(100.0));
    flow.rtt = ms(150.0);
    for _ in 0..60 {
        flow.round();
    }
    let rate = flow.w() / 0.150;
    near(rate, 4000.0, 5.0);
    near(rate * 1500.0 * 8.0 / 1e6, 48.0, 0.1);
}

/// Two flows of 50 and 100 ms on 10,000 packets/s: equal rates, 400 packets queued.
#[test]
fn fast_flows_share_equally_at_any_rtt() {
    let capacity = 10_000.0;
    let bases = [0.05, 0.1];
    let mut flows = bases.map(|b| settled_rounds("fast", 300.0, Span::from_secs_f64(b)));
    let mut queue = 0.0;
    for _ in 0..300 {
        let load = |q: f64| (0..2).map(|i| flows[i].w() / (bases[i] + q)).sum::<f64>();
        let (mut low, mut high) = (0.0, 10.0);
        for _ in 0..60 {
            let mid = 0.5 * (low + high);
            if load(mid) > capacity {
                low = mid
            } else {
                high = mid
            }
        }
        queue = high;
        for (flow, base) in flows.iter_mut().zip(bases) {
            flow.rtt = Span::from_secs_f64(base + queue);
            flow.round();
        }
    }
    near(queue * capacity, 400.0, 4.0);
    for (flow, base) in flows.iter().zip(bases) {
        near(flow.w() / (base + queue), 5000.0, 50.0);
    }
}

#[test]
fn fast_averages_at_most_a_quarter_of_a_sample() {
    let mut stack = settled("fast", 8.0);
    for rtt in [100.0, 200.0] {
        stack.on_ack(&changed(ack(at_ms(1), 1), |ev| {
            ev.rtt = Some(ms(rtt));
            ev.cwnd_limited = false;
        }));
    }
    near(reported(&stack, "avg_rtt"), 0.125, 1e-9);
}

#[test]
fn fast_multiplies_below_three_quarters_of_a_millisecond() {
    for (queue, grown) in [(0.74, 10.0), (0.76, 0.0)] {
        let mut stack = settled("fast(mi=on)", 100.0);
        let sample = |rtt: f64| {
            changed(ack(at_ms(1), 10), |ev| {
                ev.rtt = Some(ms(rtt));
            })
        };
        stack.on_ack(&changed(sample(100.0), |ev| {
            ev.cwnd_limited = false;
        }));
        for _ in 0..500 {
            stack.on_ack(&changed(sample(100.0 + queue), |ev| {
                ev.cwnd_limited = false;
            }));
        }
        stack.on_ack(&sample(100.0 + queue));
        near(stack.window() - 100.0, grown, 1e-9);
    }
}
