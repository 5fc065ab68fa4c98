//! The start of flows of the running kernel: what leaves before the first ACK, and what slow start
//! overshoots by.

use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::time::Duration;

use fullpipe_emulate::namespace::{Side, addresses};
use fullpipe_policy::Params;

use crate::support::{Ground, Road, aimd, policy, rule, run};

/// Bytes that reach the far host before anything else does for 100 ms: the near one has more, and
/// its first ACK is 300 ms away.
fn first_flight(ground: &Ground, from: Side, to: IpAddr) -> usize {
    let (near, mut far) = ground.pair(from, to);
    near.set_nonblocking(true).unwrap();
    assert!((&near).write(&[0; 100_000]).unwrap() > 50_000);
    let mut bytes = vec![0; 1 << 17];
    let mut arrived = far.read(&mut bytes).unwrap();
    far.set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    loop {
        match far.read(&mut bytes) {
            Ok(n) => arrived += n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return arrived,
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn an_initial_window_is_seen_at_the_other_end() {
    const PAYLOAD: usize = 1448;
    let road = || Road {
        mbit: 100,
        rtt_ms: 300,
        buffer: 1000,
        lost: vec![],
    };
    let Some(ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let wide = Params {
        initial_window: 24,
        ..Params::default()
    };
    let wide = rule("wide", 0, "aimd", wide, aimd(1.0, 0.5));
    tuner.apply(policy(vec![wide])).unwrap();
    let opened = |k| first_flight(&ground, Side::Near, addresses(Side::Far, k).0);
    assert_eq!(opened(0), 24 * PAYLOAD);
    // RFC 6928: the kernel's own.
    assert_eq!(opened(1), 10 * PAYLOAD);
    let accepted = first_flight(&ground, Side::Far, addresses(Side::Near, 0).0);
    assert_eq!(accepted, 24 * PAYLOAD);
}

/// 100 Mbit/s, 80 ms and 300 packets: doubling reaches twice of what path and buffer hold and loses
/// hundreds of segments; both ways to end it early lose a fifth of them at most.
#[test]
fn limited_slow_start_and_gamma_lose_less() {
    let road = || Road {
        mbit: 100,
        rtt_ms: 80,
        buffer: 300,
        lost: vec![],
    };
    let Some(mut ground) = Ground::new(&[road(), road(), road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let standard = Params::default();
    let limited = Params {
        max_ssthresh: 100,
        ..standard
    };
    let gamma = Params {
        gamma: 2 << 8,
        ..standard
    };
    let all = [
        ("standard", standard),
        ("limited", limited),
        ("gamma", gamma),
    ];
    let rules = all.iter().enumerate();
    let rules = rules.map(|(k, (name, p))| rule(name, k, "reno", *p, aimd(1.0, 0.5)));
    tuner.apply(policy(rules.collect())).unwrap();
    (0..3).for_each(|k| ground.flow(k));
    run(&mut tuner, Duration::from_secs(4), |_| false);
    let flows = tuner.flows().unwrap();
    let again = |name: &str| {
        let flow = flows
            .iter()
            .find(|(_, rule)| rule == name)
            .expect("a flow of each rule");
        f64::from(flow.0.listing.retransmitted)
    };
    let [standard, limited, gamma] = ["standard", "limited", "gamma"].map(again);
    println!("sent again: standard {standard}, limited {limited}, gamma {gamma}");
    assert!(standard > 200.0, "{standard}: nothing to be gained");
    assert!(limited * 5.0 <= standard, "{limited} of {standard}");
    assert!(gamma * 5.0 <= standard, "{gamma} of {standard}");
}
