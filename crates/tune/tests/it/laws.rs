//! Growth and reductions of flows of the running kernel against the rows that were written.

use std::time::Duration;

use fullpipe_policy::{LAW_SCALABLE, Params, Row};
use fullpipe_tune::layout::{Event, Kind};

use crate::support::{Ground, Road, aimd, policy, rule, run};

/// 100 Mbit/s and 80 ms are 667 packets; one loss at a window of some 300 segments, and no queue.
fn road() -> Road {
    Road {
        mbit: 100,
        rtt_ms: 80,
        buffer: 1000,
        lost: vec![300],
    }
}

/// The increase per round trip that a flow had, over the one that its rows say; after the cut,
/// while the sender is open. A round trip is the path's: nothing queues below 600 segments.
fn growth(events: &[Event], a: impl Fn(f64) -> f64) -> f64 {
    let acks: Vec<&Event> = events
        .iter()
        .filter(|e| e.kind == Kind::Ack && e.state == 0 && e.window < 600.0)
        .filter(|e| e.window >= f64::from(e.ssthresh))
        .collect();
    let (first, last) = (acks[0], acks[acks.len() - 1]);
    let steps = acks.windows(2);
    let due: f64 = steps
        .map(|w| {
            let rtt = f64::from(w[0].rtt_us);
            a(w[0].window) * (w[1].time_us - w[0].time_us) as f64 / rtt
        })
        .sum();
    assert!(
        due > 20.0,
        "{due} segments are no measure: {first:?} {last:?}"
    );
    (last.window - first.window) / due
}

fn cut(events: &[Event]) -> (f64, f64) {
    let cuts: Vec<&Event> = events.iter().filter(|e| e.kind == Kind::Cut).collect();
    assert_eq!(cuts.len(), 1, "one loss, one reduction: {cuts:?}");
    (
        cuts[0].window,
        1.0 - f64::from(cuts[0].value) / cuts[0].window,
    )
}

/// RFC 3649, appendix B: windows, a(w), b(w) up to 1,000 segments.
const HIGHSPEED: [(u32, u32, f64); 10] = [
    (38, 1, 0.50),
    (118, 2, 0.44),
    (221, 3, 0.41),
    (347, 4, 0.38),
    (495, 5, 0.37),
    (663, 6, 0.35),
    (851, 7, 0.34),
    (1058, 8, 0.33),
    (1284, 9, 0.32),
    (1529, 10, 0.31),
];

/// The increase for windows up to the one named, as the RFC's table is read: of two rows the larger
/// window's holds above the smaller.
fn highspeed() -> Vec<Row> {
    let row = |window: u32, a: u32, b: f64| Row {
        window,
        increase: a << 8,
        decrease: (b * 65536.0) as u32,
    };
    let mut rows = vec![row(0, 1, 0.5)];
    rows.extend(
        HIGHSPEED
            .windows(2)
            .map(|w| row(w[0].0 + 1, w[1].1, w[1].2)),
    );
    rows
}

fn of(rows: &[Row], w: f64) -> (f64, f64) {
    let row = rows
        .iter()
        .rev()
        .find(|r| f64::from(r.window) <= w)
        .expect("a row from 0 on");
    (
        f64::from(row.increase) / 256.0,
        f64::from(row.decrease) / 65536.0,
    )
}

#[test]
fn growth_and_reductions_are_those_of_the_rules() {
    let Some(mut ground) = Ground::new(&[road(), road(), road(), road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let tables = [aimd(6.0, 0.3), aimd(4.0, 0.125), highspeed()];
    let plain = Params::default();
    // Scalable: 0.01 segments a segment, an eighth less at a loss, Reno below 16.
    let mut scalable = Params {
        law: LAW_SCALABLE,
        ..plain
    };
    scalable.number[..3].copy_from_slice(&[(1u64 << 32) / 100, 65536 / 8, 16]);
    let rules = vec![
        rule(
            "a6",
            0,
            "aimd(decrease=0.3,increase=6)",
            plain,
            tables[0].clone(),
        ),
        rule(
            "a4",
            1,
            "aimd(decrease=0.125,increase=4)",
            plain,
            tables[1].clone(),
        ),
        rule("hs", 2, "highspeed", plain, tables[2].clone()),
        rule("st", 3, "scalable", scalable, Vec::new()),
    ];
    tuner.apply(policy(rules)).unwrap();
    tuner.watch(u64::MAX).unwrap();
    (0..4).for_each(|k| ground.flow(k));
    let events = run(&mut tuner, Duration::from_secs(5), |_| false);
    let flows = tuner.flows().unwrap();
    assert_eq!(flows.len(), 4, "{:?}", tuner.take_log());
    for k in 0..4 {
        let of_rule = |e: &&Event| e.rule == Some(k);
        let mine: Vec<Event> = events.iter().filter(of_rule).cloned().collect();
        let (w, removed) = cut(&mine);
        let law = |w: f64| match k {
            3 => (0.01 * w, 0.125),
            k => of(&tables[k], w),
        };
        let ratio = growth(&mine, |w| law(w).0);
        println!("rule {k}: at {w:.1} segments {removed:.4} removed, growth {ratio:.3} of a(w)");
        let b = law(w).1;
        // A threshold is whole segments.
        assert!(
            (removed / b - 1.0).abs() < 0.02 + 1.0 / (w * b),
            "{k}: {removed}, not {b}"
        );
        assert!((ratio - 1.0).abs() < 0.1, "{k}: {ratio} of its increase");
    }
    let counters = tuner.counters().unwrap();
    assert_eq!(
        (counters.matched, counters.cuts, counters.records_lost),
        (4, 4, 0)
    );
    tuner.finish().unwrap();
    assert!(tuner.flows().unwrap().is_empty());
    let after = tuner.plan().unwrap();
    let named: Vec<&str> = after
        .iter()
        .map(|d| d.seen.listing.algorithm.as_str())
        .collect();
    assert_eq!(named, ["reno"; 4]);
}
