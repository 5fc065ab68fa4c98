//! M/D/1: Poisson datagrams through a drop-tail link. Pollaczek-Khinchine: the mean wait is rho /
//! (2 (1 - rho)) service times.

use fullpipe_run::{Buffer, Codel, Discipline, LinkOutcome, LinkSpec, RunSpec, Trace};
use fullpipe_sim::run;
use fullpipe_units::Span;

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

/// A link whose discipline owns the queue, and never drops.
pub fn hold(l: &mut LinkSpec) {
    l.discipline = Discipline::Codel(Codel {
        target: Span::from_secs(1000),
        ..Codel::default()
    });
}

/// The server is idle for 1 - rho of the time, and the queue is empty then: so are the samples, at
/// every kind of link, and their extremes are those of the queue.
#[test]
fn the_series_is_a_sample_in_time() {
    for rho in [0.3, 0.9] {
        let mut s = poisson(source("poisson", 10.0 * rho));
        s.packet = 1250;
        let spec = RunSpec {
            cross: vec![s],
            trace: Trace::Every(Span::from_millis(300)),
            ..dumbbell(10.0, 20, Buffer::Unlimited, 600.0, vec![])
        };
        let link = |edit: fn(&mut LinkSpec)| -> LinkOutcome {
            let mut spec = spec.clone();
            edit(&mut spec.links[0]);
            run(&spec).unwrap().links.swap_remove(0)
        };
        let l = link(|_| ());
        let n = l.series.len();
        assert_eq!(n, 2001);
        let steps = (0..).zip(&l.series);
        assert!(
            steps
                .map(|(k, s)| (k * 300, s.at))
                .all(|(ms, at)| at.as_nanos() == ms * 1_000_000)
        );
        let share = |of: &dyn Fn(u64) -> f64| {
            l.series.iter().map(|s| of(s.packets)).sum::<f64>() / n as f64
        };
        let empty = share(&|packets| f64::from(u8::from(packets == 0)));
        // Three standard errors of independent samples.
        let tolerance = 3.0 * (rho * (1.0 - rho) / n as f64).sqrt();
        assert!((empty - (1.0 - rho)).abs() < tolerance, "{rho} {empty}");
        let mean = share(&|packets| packets as f64);
        assert!(
            (mean / l.queue_mean - 1.0).abs() < 0.1,
            "{mean} {}",
            l.queue_mean
        );
        let most = l.series.iter().map(|s| s.max).max();
        assert_eq!(most, Some(l.queue_max), "{rho}");
        assert!(
            l.series
                .iter()
                .all(|s| (s.min..=s.max).contains(&s.packets))
        );
        // A busy period lasts 10 ms at 0.9 in the mean, and hardly ever 300 ms.
        let emptied = l.series.iter().filter(|s| s.min == 0).count() as f64 / n as f64;
        assert!(emptied > 0.95, "{rho} {emptied}");
        assert_eq!(l.series, link(|l| l.loss_of_acks = true).series, "{rho}");
        assert_eq!(l.series, link(hold).series, "{rho}");
    }
}
