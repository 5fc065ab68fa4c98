//! A decimated series against the one with a row per event.

use fullpipe_flow::Events;
use fullpipe_run::{Buffer, Change, FlowOutcome, FlowSpec, RunSpec, Trace};
use fullpipe_sim::run;
use fullpipe_units::{Rate, Span, Time};

use crate::build::{dumbbell, flow, ms};

const STEP: u64 = 10;

/// The same flow with a row per event and one per step.
fn both(f: &FlowSpec, edit: impl Fn(&mut RunSpec)) -> [FlowOutcome; 2] {
    [Trace::Full, Trace::Every(ms(STEP))].map(|trace| {
        let mut spec = RunSpec {
            trace,
            ..dumbbell(100.0, 100, Buffer::Packets(833), 20.0, vec![f.clone()])
        };
        edit(&mut spec);
        run(&spec).unwrap().flows.swap_remove(0)
    })
}

/// What a row tells was so at its time, and the last event before a pause is told of with its own.
fn check([all, few]: &[FlowOutcome; 2], name: &str) {
    let (all, few) = (&all.series.rows, &few.series.rows);
    assert!(few.is_sorted_by_key(|row| row.time), "{name}");
    for row in few {
        // Several ACKs may come in an instant.
        let then = all.iter().filter(|r| r.time == row.time);
        let mut then = then.map(|r| (r.delivered, r.cwnd, r.rtt));
        assert!(
            then.any(|then| then == (row.delivered, row.cwnd, row.rtt)),
            "{name}: {row:?}"
        );
        assert!(
            row.cwnd_min <= row.cwnd && row.cwnd <= row.cwnd_max,
            "{name}"
        );
    }
    let most =
        |rows: &[fullpipe_flow::TraceRow]| rows.iter().map(|r| r.cwnd_max).fold(0.0, f64::max);
    assert_eq!(most(all), most(few), "{name}");
    let times: Vec<Time> = few.iter().map(|row| row.time).collect();
    let pauses = all.windows(2).filter(|w| w[1].time - w[0].time > ms(STEP));
    let mut n = 0;
    for last in pauses.map(|w| w[0]).chain(all.last().copied()) {
        n += 1;
        assert!(times.contains(&last.time), "{name}: {}", last.time);
    }
    assert!(n > 3, "{name}: {n}");
}

#[test]
fn a_transfer_ends_when_its_last_segment_is_acknowledged() {
    for stack in ["reno", "reno+paced", "reno+spread", "cubic", "bbr"] {
        let mut f = flow("main", stack);
        f.sender.transfer = Some(691);
        let runs = both(&f, |_| ());
        check(&runs, stack);
        let [_, few] = &runs;
        let done = few
            .series
            .rows
            .iter()
            .find(|row| row.delivered == 691)
            .unwrap();
        assert_eq!(Some(done.time), few.completed, "{stack}");
        assert!(done.events.has(Events::ACK), "{stack}");
    }
}

#[test]
fn what_came_before_an_outage_is_told_of_with_its_time() {
    let change = |at: u64, rate: u64| Change {
        at: Time::ZERO + Span::from_millis(at),
        rate: Some(Rate::from_bits_per_sec(rate)),
        delay: None,
        loss: None,
    };
    for stack in ["reno", "cubic", "bbr-linux"] {
        let runs = both(&flow("main", stack), |spec| {
            spec.links[0].schedule = vec![change(5000, 0), change(9000, 100_000_000)];
        });
        check(&runs, stack);
        assert!(runs[1].totals.timeouts > 0, "{stack}");
    }
}
