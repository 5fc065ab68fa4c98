//! What each part of a rule does to flows of the running kernel.

use std::time::{Duration, Instant};

use fullpipe_policy::{Params, Rule};
use fullpipe_tune::layout::{Event, Kind};

use crate::flows::{gets_on, listed, only, road};
use crate::support::{Ground, Road, aimd, policy, prefix, rule, run};

fn wide() -> Road {
    Road {
        mbit: 100,
        rtt_ms: 40,
        buffer: 1000,
        lost: vec![],
    }
}

#[test]
fn a_window_has_its_ceiling() {
    let Some(mut ground) = Ground::new(&[wide(), wide()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let with = |clamp| Params {
        clamp,
        ..Params::default()
    };
    let rules = vec![
        rule("held", 0, "aimd", with(50), aimd(4.0, 0.5)),
        rule("free", 1, "aimd", with(0), aimd(4.0, 0.5)),
    ];
    tuner.apply(policy(rules)).unwrap();
    tuner.watch(u64::MAX).unwrap();
    ground.flow(0);
    ground.flow(1);
    let most = |events: &[Event], rule: usize| {
        let mine = events
            .iter()
            .filter(|e| e.rule == Some(rule) && e.kind == Kind::Ack);
        mine.map(|e| e.window).fold(0.0, f64::max)
    };
    let events = run(&mut tuner, Duration::from_secs(10), |e| most(e, 1) > 200.0);
    assert!(
        most(&events, 1) > 200.0,
        "{} without a ceiling",
        most(&events, 1)
    );
    let events = [events, run(&mut tuner, Duration::from_secs(1), |_| false)].concat();
    let held = most(&events, 0);
    assert!((50.0..51.0).contains(&held), "{held} with a ceiling of 50");
    tuner.finish().unwrap();
}

#[test]
fn a_paced_flow_keeps_its_rate() {
    let Some(mut ground) = Ground::new(&[wide()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let params = Params {
        pacing: 500_000,
        ..Params::default()
    };
    let paced = rule("paced", 0, "aimd", params, aimd(1.0, 0.5));
    tuner.apply(policy(vec![paced])).unwrap();
    ground.flow(0);
    run(&mut tuner, Duration::from_secs(1), |_| false);
    let (begin, from) = (Instant::now(), only(&mut tuner).bytes_acked);
    run(&mut tuner, Duration::from_secs(3), |_| false);
    let bytes = only(&mut tuner).bytes_acked - from;
    let rate = bytes as f64 / begin.elapsed().as_secs_f64();
    println!(
        "a ceiling of 500 kB/s: {:.1} kB/s of payload",
        rate / 1000.0
    );
    assert!((0.9..=1.03).contains(&(rate / 500_000.0)), "{rate} B/s");
    tuner.finish().unwrap();
}

#[test]
fn a_share_of_the_flows_stays_as_it_was() {
    let Some(mut ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let half = Rule {
        share: 1 << 15,
        ..rule("half", 0, "aimd", Params::default(), aimd(4.0, 0.25))
    };
    tuner.apply(policy(vec![half.clone()])).unwrap();
    const FLOWS: usize = 60;
    (0..FLOWS / 2).for_each(|_| ground.flow(0));
    (0..FLOWS / 2).for_each(|_| ground.flow_outside(0));
    tuner.settle().unwrap();
    tuner.settle().unwrap();
    let ours = format!("{}aimd", prefix());
    let all = listed(&mut tuner);
    assert_eq!(all.len(), FLOWS);
    for l in &all {
        let due = if half.takes(l.cookie) { &ours } else { "reno" };
        assert_eq!(l.algorithm, due, "{l:?}");
    }
    let tuned = all.iter().filter(|l| l.algorithm == ours).count();
    println!("{tuned} of {FLOWS} flows have the policy");
    // Six standard deviations of a fair coin.
    assert!((7..=53).contains(&tuned), "{tuned} of {FLOWS}");
    // The experiment ends: all of them.
    tuner
        .apply(policy(vec![Rule {
            share: 1 << 16,
            ..half
        }]))
        .unwrap();
    assert!(listed(&mut tuner).iter().all(|l| l.algorithm == ours));
    tuner.finish().unwrap();
    assert!(
        listed(&mut tuner)
            .iter()
            .all(|l| l.algorithm == "reno" && l.flow.is_none())
    );
}

#[test]
fn a_released_flow_gets_on() {
    let Some(mut ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    ground.flow_outside(0);
    gets_on(&mut tuner);
    let plain = rule("path", 0, "aimd", Params::default(), aimd(4.0, 0.25));
    for _ in 0..5 {
        tuner.apply(policy(vec![plain.clone()])).unwrap();
        gets_on(&mut tuner);
        tuner.apply(policy(vec![])).unwrap();
        gets_on(&mut tuner);
    }
}
