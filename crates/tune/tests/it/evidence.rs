//! What each part of a rule does to flows of the running kernel.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use fullpipe_emulate::namespace::{DEVICE, Side, addresses};
use fullpipe_emulate::netlink::Links;
use fullpipe_policy::{FLAG_SENDSTALL_IGNORE, Params, Prefix, Rule};
use fullpipe_tune::bpf::Bpf;
use fullpipe_tune::layout::{Event, Kind};
use fullpipe_tune::tuner::Tuner;

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
    // Never more; and as much, unless the machine had something else to do every time.
    let reached = (0..3).any(|_| {
        let (begin, from) = (Instant::now(), only(&mut tuner).bytes_acked);
        run(&mut tuner, Duration::from_secs(3), |_| false);
        let bytes = only(&mut tuner).bytes_acked - from;
        let rate = bytes as f64 / begin.elapsed().as_secs_f64();
        println!(
            "a ceiling of 500 kB/s: {:.1} kB/s of payload",
            rate / 1000.0
        );
        assert!(rate <= 1.03 * 500_000.0, "{rate} B/s");
        rate >= 0.9 * 500_000.0
    });
    assert!(reached);
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

/// Chance decides which flows are paced to 1 Mbit/s, on a path with 100 for 16 of them.
#[test]
fn both_arms_of_a_share_are_measured() {
    let Some(mut ground) = Ground::new(&[wide()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let params = Params {
        pacing: 125_000,
        ..Params::default()
    };
    let half = Rule {
        share: 1 << 15,
        ..rule("half", 0, "aimd", params, aimd(1.0, 0.5))
    };
    tuner.apply(policy(vec![half.clone()])).unwrap();
    assert!(tuner.arms().of("half").1.is_empty());
    (0..8).for_each(|_| ground.flow(0));
    (0..8).for_each(|_| ground.flow_outside(0));
    let from: u64 = listed(&mut tuner).iter().map(|l| l.bytes_acked).sum();
    // Outside the group a flow is adopted at the first look and compared from the second one on,
    // when what it had under way before is no more.
    tuner.settle().unwrap();
    run(&mut tuner, Duration::from_secs(1), |_| false);
    tuner.settle().unwrap();
    for _ in 0..4 {
        run(&mut tuner, Duration::from_secs(1), |_| false);
        tuner.settle().unwrap();
    }
    let all = listed(&mut tuner);
    let (since, courses) = tuner.arms().of("half");
    let seconds = (tuner.now_us() - since.unwrap()) as f64 / 1e6;
    assert!((4.0..20.0).contains(&seconds), "{seconds}");
    let rates = |control: bool| -> Vec<f64> {
        let mine = courses.iter().filter(|c| c.control == control);
        mine.map(|c| c.rate() / 1e6).collect()
    };
    let (policy, control) = (rates(false), rates(true));
    let due = all.iter().filter(|l| half.takes(l.cookie)).count();
    assert_eq!((policy.len(), control.len()), (due, 16 - due));
    println!("Mbit/s with the policy {policy:.2?}, without {control:.2?}");
    // With fewer than two in an arm, one time in 2,000, there is nothing to compare.
    let mean = |arm: &[f64]| arm.iter().sum::<f64>() / arm.len() as f64;
    if policy.len() > 1 && control.len() > 1 {
        assert!(mean(&policy) < 1.5, "{policy:?}");
        assert!(mean(&control) > 3.0, "{control:?}");
    }
    let bytes: u64 = courses.iter().map(|c| c.bytes).sum();
    let acked = all.iter().map(|l| l.bytes_acked).sum::<u64>() - from;
    assert!((acked / 2..=acked).contains(&bytes), "{bytes} of {acked}");
    tuner.finish().unwrap();
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

/// `TCA_TBF_PARMS` with `struct tc_tbf_qopt`, and `TCA_TBF_BURST`: rate in bytes per second, limit
/// of the queue in bytes.
fn bucket(rate: u32, limit: u32) -> Vec<u8> {
    const ETHERNET: u8 = 1;
    let header = |kind: u16, bytes: u16| [bytes + 4, kind].map(u16::to_ne_bytes).concat();
    let mut options = header(1, 36);
    options.extend([0, ETHERNET, 0, 0, 0, 0, 0, 0]);
    options.extend(rate.to_ne_bytes());
    options.extend([0; 12]);
    options.extend([limit, 0, 0].map(u32::to_ne_bytes).concat());
    options.extend(header(6, 4));
    options.extend(3000u32.to_ne_bytes());
    options
}

/// The queue of the near host's own interface holds three packets, and is the bottleneck.
#[test]
fn a_local_stall_halves_the_window_or_does_nothing() {
    let Some(mut ground) = Ground::new(&[wide(), wide()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    ground.on_near(|| {
        let mut links = Links::open()?;
        links.set_offload(DEVICE, 1)?;
        links.set_queue(DEVICE, "tbf", &bucket(5_000_000, 4600))
    });
    let with = |flags| Params {
        flags,
        ..Params::default()
    };
    let ignores = with(FLAG_SENDSTALL_IGNORE);
    let rules = vec![
        rule("reacts", 0, "aimd", with(0), aimd(1.0, 0.5)),
        rule("ignores", 1, "aimd", ignores, aimd(1.0, 0.5)),
    ];
    tuner.apply(policy(rules)).unwrap();
    tuner.watch(u64::MAX).unwrap();
    ground.flow(0);
    ground.flow(1);
    let all = |events: &[Event], rule: usize, kind: Kind| -> Vec<Event> {
        let mine = events
            .iter()
            .filter(|e| e.rule == Some(rule) && e.kind == kind);
        mine.cloned().collect()
    };
    let events = run(&mut tuner, Duration::from_secs(20), |e| {
        all(e, 0, Kind::Stall).len() >= 5 && all(e, 1, Kind::StallIgnored).len() >= 5
    });
    let events = [events, run(&mut tuner, Duration::from_secs(1), |_| false)].concat();
    let stalls = all(&events, 0, Kind::Stall);
    let ignored = all(&events, 1, Kind::StallIgnored);
    println!("{} stalls, {} ignored", stalls.len(), ignored.len());
    assert!(stalls.len() >= 5 && ignored.len() >= 5);
    for stall in &stalls {
        assert_eq!(stall.value, (stall.window.floor() / 2.0).max(2.0) as u32);
        // ACKs are recorded when the reduction is over.
        let after = events
            .iter()
            .find(|e| e.kind == Kind::Ack && e.cookie == stall.cookie && e.time_us > stall.time_us);
        let low = |e: &Event| e.window < f64::from(stall.value) + 2.0;
        assert!(after.is_none_or(low), "{stall:?} then {after:?}");
    }
    let windows = all(&events, 1, Kind::Ack);
    let falls = windows.windows(2).find(|w| w[1].window < w[0].window);
    assert_eq!(falls, None, "an ignored stall takes something away");
    let counters = tuner.counters().unwrap();
    assert_eq!((counters.cuts, counters.timeouts), (0, 0), "{counters:?}");
    let flows = tuner.flows().unwrap();
    let sent_again = |(seen, _): &(fullpipe_tune::kernel::Seen, String)| seen.listing.retransmitted;
    assert_eq!(
        flows.iter().map(sent_again).sum::<u32>(),
        0,
        "nothing was lost"
    );
    tuner.finish().unwrap();
}

#[test]
fn flows_over_ipv6_are_found_by_their_networks() {
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let [first, second] = [0, 1].map(|k| addresses(Side::Far, k).1);
    let mut six = rule("six", 0, "aimd", Params::default(), aimd(4.0, 0.25));
    six.selector.to = vec![Prefix {
        address: "2001:2::".parse().unwrap(),
        bits: 64,
    }];
    tuner.apply(policy(vec![six])).unwrap();
    // New from here, new from there, running; and three that the rule is not for.
    let none = |_: &std::net::TcpStream| ();
    let new = ground.prepared_to(first, true, none);
    let running = ground.prepared_to(first, false, none);
    let (accepted, _far) = ground.pair(Side::Far, addresses(Side::Near, 0).1);
    let other = ground.prepared_to(second, true, none);
    let (passive, _far) = ground.pair(Side::Far, addresses(Side::Near, 1).1);
    let four = ground.prepared_to(addresses(Side::Far, 0).0, true, none);
    let cookie = |socket| rustix::net::sockopt::socket_cookie(socket).unwrap();
    let of = |tuner: &mut _, socket| {
        let all = listed(tuner).into_iter();
        all.into_iter()
            .find(|l| l.cookie == cookie(socket))
            .expect("a flow")
    };
    let ours = format!("{}aimd", prefix());
    // Those of the control group at once, the other with the next look.
    for (socket, due) in [
        (&new, ours.as_str()),
        (&accepted, &ours),
        (&running, "reno"),
    ] {
        assert_eq!(of(&mut tuner, socket).algorithm, due);
    }
    tuner.settle().unwrap();
    let found = of(&mut tuner, &running);
    assert_eq!(found.algorithm, ours);
    assert_eq!(found.remote.0, first);
    assert!(matches!(found.local.0, IpAddr::V6(_)), "{found:?}");
    for socket in [&other, &passive, &four] {
        assert_eq!(of(&mut tuner, socket).algorithm, "reno");
    }
    tuner.finish().unwrap();
    assert!(listed(&mut tuner).iter().all(|l| l.algorithm == "reno"));
}

/// Window, rate and buffers of a path are its flows' together: those that come take from those that
/// are there, and give it back when they go.
#[test]
fn what_a_path_has_is_divided_among_its_flows() {
    let Some(mut ground) = Ground::new(&[wide(), wide()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    // More than the window takes in a round trip: one that the rate holds back does not grow.
    let params = Params {
        clamp: 120,
        pacing: 6_000_000,
        ..Params::default()
    };
    let divided = Rule {
        divide: true,
        send_buffer: Some(600_000),
        ..rule("divided", 0, "aimd", params, aimd(4.0, 0.5))
    };
    let whole = Rule {
        send_buffer: Some(600_000),
        ..rule("whole", 1, "aimd", params, aimd(4.0, 0.5))
    };
    tuner.apply(policy(vec![divided, whole])).unwrap();
    tuner.watch(u64::MAX).unwrap();
    let due = |tuner: &mut Tuner<Bpf>, n: u32| {
        // One that runs already is found by the first look, buffers are changed by the next.
        tuner.settle().unwrap();
        let events = run(tuner, Duration::from_secs(3), |_| false);
        tuner.settle().unwrap();
        assert_eq!(tuner.shares("divided"), Some(n));
        let (until, flows) = (tuner.now_us(), tuner.flows().unwrap());
        let widest = |rule: usize| {
            let late = events.iter().filter(|e| e.time_us + 1_000_000 > until);
            let mine = late.filter(|e| e.rule == Some(rule) && e.kind == Kind::Ack);
            mine.map(|e| e.window).fold(0.0, f64::max)
        };
        let parts: Vec<(u64, u32)> = flows
            .iter()
            .filter(|(_, rule)| rule == "divided")
            .map(|(seen, _)| (seen.listing.max_pacing, seen.listing.send_buffer))
            .collect();
        println!("{n} flows: a window of {:.1}, {parts:?}", widest(0));
        assert!(
            (widest(0) - 120.0 / f64::from(n)).abs() <= 1.0,
            "{}",
            widest(0)
        );
        // The kernel doubles a buffer.
        let part = (6_000_000 / u64::from(n), 2 * (600_000 / n).min(limit()));
        assert_eq!(parts, vec![part; n as usize]);
        let other = flows.iter().find(|(_, rule)| rule == "whole");
        let other = &other.expect("a flow").0.listing;
        assert_eq!(
            (other.max_pacing, other.send_buffer),
            (6_000_000, 2 * 600_000.min(limit()))
        );
    };
    ground.flow(1);
    ground.flow(0);
    due(&mut tuner, 1);
    // One new in the group, one found running.
    let third = ground.prepared(0, true, |_| ());
    ground.flow_outside(0);
    due(&mut tuner, 3);
    third.shutdown(std::net::Shutdown::Both).unwrap();
    // It has its part until what waits in its buffer is out.
    run(&mut tuner, Duration::from_secs(5), |_| false);
    due(&mut tuner, 2);
    tuner.finish().unwrap();
    let left = listed(&mut tuner);
    assert!(
        left.iter()
            .all(|l| l.algorithm == "reno" && l.max_pacing == u64::MAX)
    );
}

/// A flow that gets a law of its own keeps its part of the path, and gives the others theirs.
#[test]
fn a_flow_with_parameters_of_its_own_has_its_part_of_the_path() {
    let Some(mut ground) = Ground::new(&[wide()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let params = Params {
        clamp: 120,
        pacing: 6_000_000,
        ..Params::default()
    };
    let divided = Rule {
        divide: true,
        send_buffer: Some(600_000),
        ..rule("divided", 0, "aimd", params, aimd(4.0, 0.5))
    };
    tuner.apply(policy(vec![divided])).unwrap();
    tuner.watch(u64::MAX).unwrap();
    ground.flow(0);
    ground.flow(0);
    run(&mut tuner, Duration::from_millis(500), |_| false);
    tuner.settle().unwrap();
    assert_eq!(tuner.shares("divided"), Some(2));
    let chosen = tuner.flows().unwrap()[0].0.listing.cookie;
    let own = rule("own", 0, "aimd", params, aimd(7.0, 0.5)).action;
    tuner
        .set_flow(chosen, "divided", own, "aimd(increase=7)")
        .unwrap();
    let due = |tuner: &mut Tuner<Bpf>, n: u32| {
        run(tuner, Duration::from_secs(2), |_| false);
        tuner.settle().unwrap();
        tuner.settle().unwrap();
        let events = run(tuner, Duration::from_secs(1), |_| false);
        let flows = tuner.flows().unwrap();
        assert_eq!(flows.len(), n as usize);
        for (seen, path) in &flows {
            let l = &seen.listing;
            let mine = events
                .iter()
                .filter(|e| e.cookie == l.cookie && e.kind == Kind::Ack);
            let widest = mine.map(|e| e.window).fold(0.0, f64::max);
            println!(
                "{n} flows, {}: a window of {widest:.1}, {} B/s, a buffer of {}",
                if l.cookie == chosen { "its own" } else { path },
                l.max_pacing,
                l.send_buffer
            );
            assert!((widest - 120.0 / f64::from(n)).abs() <= 1.0, "{widest}");
            let part = (6_000_000 / u64::from(n), 2 * (600_000 / n).min(limit()));
            assert_eq!((l.max_pacing, l.send_buffer), part);
        }
        assert_eq!(tuner.shares("divided"), Some(n));
    };
    due(&mut tuner, 2);
    // Another one comes: of the flow with a law of its own it gets its part, too.
    ground.flow(0);
    due(&mut tuner, 3);
    tuner.finish().unwrap();
}

/// `net.core.wmem_max`.
fn limit() -> u32 {
    let text = std::fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap();
    text.trim().parse().unwrap()
}
