//! M/D/1: Poisson datagrams through a drop-tail link. Pollaczek-Khinchine: the mean wait is rho /
//! (2 (1 - rho)) service times.

use fullpipe_run::{Buffer, RunSpec};
use fullpipe_sim::run;

use crate::build::{dumbbell, poisson, source};

#[test]
fn the_mean_wait_is_that_of_a_queue_with_fixed_service() {
    // 1250 B at 100 Mbit/s: a service time of 100 us. Standard errors from the relaxation time of
    // the queue, of the order of 2 / (1 - rho)^2 services: below 1 % for each row.
    for (rho, seconds, tolerance) in [(0.5, 60.0, 0.02), (0.8, 200.0, 0.02), (0.9, 400.0, 0.03)] {
        let mut s = poisson(source("poisson", 100.0 * rho));
        s.packet = 1250;
        let spec = RunSpec {
            cross: vec![s],
            ..dumbbell(100.0, 20, Buffer::Unlimited, seconds, vec![])
        };
        let o = run(&spec).unwrap();
        let service = 100e-6;
        let queued = o.links[0].queueing_delay.mean_s().unwrap();
        let wait = o.cross[0].delay.mean_s().unwrap() - service - 10e-3;
        let expected = rho / (2.0 * (1.0 - rho)) * service;
        assert!(
            (wait / expected - 1.0).abs() < tolerance,
            "{rho} {wait} {expected}"
        );
        assert!((queued - wait).abs() < 1e-3 * expected, "{queued} {wait}");
        // Little's law, the packet in service included.
        let inside = o.links[0].queue_mean;
        let rate = rho / service;
        assert!(
            (inside / (rate * (expected + service)) - 1.0).abs() < tolerance,
            "{inside}"
        );
        assert!((o.links[0].utilization / rho - 1.0).abs() < 0.01);
    }
}
