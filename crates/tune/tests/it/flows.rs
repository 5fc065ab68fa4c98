//! Running flows: adopted, changed, left to themselves, released.

use std::time::{Duration, Instant};

use fullpipe_emulate::namespace::{Side, addresses};
use fullpipe_policy::Params;
use fullpipe_tune::bpf::{Bpf, now_us};
use fullpipe_tune::layout::{Event, Kind, Listing};
use fullpipe_tune::tuner::Tuner;

use crate::support::{Ground, Road, aimd, policy, prefix, rule, run};

pub fn road() -> Road {
    Road {
        mbit: 20,
        rtt_ms: 40,
        buffer: 200,
        lost: vec![60],
    }
}

/// All established flows of the near host.
pub fn listed(tuner: &mut Tuner<Bpf>) -> Vec<Listing> {
    let plan = tuner.plan().unwrap();
    plan.into_iter().map(|d| d.seen.listing).collect()
}

pub fn only(tuner: &mut Tuner<Bpf>) -> Listing {
    let mut all = listed(tuner);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Until the flow has got on by 50 segments, which takes 30 ms when nothing stalls.
pub fn gets_on(tuner: &mut Tuner<Bpf>) -> Duration {
    let (begin, from) = (Instant::now(), only(tuner).bytes_acked);
    while only(tuner).bytes_acked < from + 50 * 1448 {
        assert!(begin.elapsed() < Duration::from_secs(2), "the flow stalls");
        tuner.tick(Duration::from_millis(5)).unwrap();
    }
    begin.elapsed()
}

#[test]
fn a_running_flow_is_adopted_changed_and_given_back() {
    let Some(mut ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    ground.flow_outside(0);
    gets_on(&mut tuner);
    assert_eq!(only(&mut tuner).algorithm, "reno");
    let with = |a: f64| {
        let rule = rule("path", 0, "aimd", Params::default(), aimd(a, 0.25));
        policy(vec![rule])
    };
    tuner.apply(with(4.0)).unwrap();
    let flow = only(&mut tuner);
    assert_eq!(flow.algorithm, format!("{}aimd", prefix()));
    let record = flow.flow.unwrap();
    assert!(record.adopted && record.before == "reno", "{record:?}");
    let log = tuner.take_log();
    assert!(log[0].ends_with("rule path (aimd), was reno"), "{log:?}");
    let journal = std::fs::read_to_string(ground.folder.path().join("journal")).unwrap();
    assert!(
        journal.contains("\"before\":{\"algorithm\":\"reno\""),
        "{journal}"
    );
    tuner.watch(u64::MAX).unwrap();
    let grew = |a: f64| move |events: &[Event]| events.iter().any(|e| e.a == a);
    // Congestion avoidance, with nothing to recover.
    let steady = |events: &[Event]| {
        let acks = events.iter().rev().take(20);
        acks.filter(|e| e.a == 4.0 && e.state == 0).count() == 20
    };
    run(&mut tuner, Duration::from_secs(5), steady);
    // Once more the same: nothing is done.
    tuner.apply(with(4.0)).unwrap();
    assert_eq!(tuner.take_log(), Vec::<String>::new());
    let changed = now_us();
    tuner.install(with(7.0)).unwrap();
    let written = now_us();
    let events = run(&mut tuner, Duration::from_secs(5), grew(7.0));
    let late = |e: &&Event| e.kind == Kind::Ack && e.a == 4.0 && e.time_us > written;
    assert_eq!(events.iter().find(late), None, "old rows after the switch");
    let next = events
        .iter()
        .find(|e| e.kind == Kind::Ack && e.time_us > written);
    let next = next.expect("an ACK after the switch");
    // At the next ACK, which comes within a round trip: 40 ms, and a queue of at most 120 ms.
    assert_eq!(next.a, 7.0, "{next:?}");
    assert!(
        next.time_us - changed < 160_000 + (written - changed),
        "{next:?}"
    );
    gets_on(&mut tuner);
    assert_eq!(tuner.release(|_| true).unwrap(), 1);
    let flow = only(&mut tuner);
    assert_eq!((flow.algorithm.as_str(), &flow.flow), ("reno", &None));
    gets_on(&mut tuner);
    // What was released by order stays so until it is adopted by order.
    tuner.settle().unwrap();
    assert_eq!(only(&mut tuner).algorithm, "reno");
    tuner.adopt().unwrap();
    assert_eq!(only(&mut tuner).algorithm, format!("{}aimd", prefix()));
    tuner.apply(policy(vec![])).unwrap();
    assert_eq!(only(&mut tuner).algorithm, "reno");
}

#[test]
fn without_a_daemon_and_when_off_flows_are_standard() {
    let Some(mut ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    tuner.set_patience(Duration::from_secs(1));
    let rule = rule("path", 0, "aimd", Params::default(), aimd(4.0, 0.25));
    tuner.apply(policy(vec![rule])).unwrap();
    ground.flow(0);
    gets_on(&mut tuner);
    let before = tuner.counters().unwrap();
    assert_eq!(before.standard, 0, "{before:?}");
    // No sign of life.
    let begin = Instant::now();
    while tuner.counters().unwrap().standard < 20 {
        assert!(
            begin.elapsed() < Duration::from_secs(5),
            "the rows outlive their daemon"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(
        begin.elapsed() > Duration::from_millis(800),
        "{:?}",
        begin.elapsed()
    );
    let counts = |tuner: &mut Tuner<Bpf>| {
        gets_on(tuner);
        // Read one after the other, while ACKs come in.
        let before = tuner.counters().unwrap();
        gets_on(tuner);
        gets_on(tuner);
        let after = tuner.counters().unwrap();
        (after.acks - before.acks, after.standard - before.standard)
    };
    let (acks, standard) = counts(&mut tuner);
    assert!(
        acks > 10 && standard * 10 < acks,
        "back: {standard} of {acks}"
    );
    tuner.switch(true).unwrap();
    let (acks, standard) = counts(&mut tuner);
    assert!(
        acks > 10 && standard * 10 > acks * 9,
        "off: {standard} of {acks}"
    );
    tuner.switch(false).unwrap();
    let (acks, standard) = counts(&mut tuner);
    assert!(
        acks > 10 && standard * 10 < acks,
        "on: {standard} of {acks}"
    );
    tuner.finish().unwrap();
}

/// A listener that is gone once its connection is there (`nc -l`, data channels of FTP) makes no
/// other end of it.
#[test]
fn an_accepted_flow_stays_so_when_its_listener_is_gone() {
    let Some(ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let of = |name: &str, side: fullpipe_policy::Side| {
        let mut rule = rule(name, 0, "aimd", Params::default(), aimd(1.0, 0.5));
        rule.selector.side = side;
        rule
    };
    let passive = of("in", fullpipe_policy::Side::Passive);
    let active = of("out", fullpipe_policy::Side::Active);
    tuner.apply(policy(vec![passive, active])).unwrap();
    let near = addresses(Side::Near, 0).0;
    let _flow = ground.pair(Side::Far, near);
    tuner.tick(Duration::ZERO).unwrap();
    tuner.settle().unwrap();
    let flows = tuner.flows().unwrap();
    let paths: Vec<&str> = flows.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(paths, ["in"]);
    let said = tuner.take_log();
    assert_eq!(said.len(), 1, "it was moved: {said:?}");
    tuner.finish().unwrap();
}
