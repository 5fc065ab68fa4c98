//! Slow start of flows of the running kernel: what it overshoots by.

use std::time::Duration;

use fullpipe_policy::Params;

use crate::support::{Ground, Road, aimd, policy, rule, run};

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
