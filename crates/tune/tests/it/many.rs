//! A thousand flows under a policy that is replaced again and again.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use fullpipe_emulate::namespace::{Side, addresses};
use fullpipe_policy::{Compiled, Params};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::flows::listed;
use crate::support::{Ground, Road, aimd, policy, prefix, rule, run};

const FLOWS: usize = 1000;

/// The policy after so many reloads: other numbers each time, and another path every fifth.
fn version(reload: usize) -> Compiled {
    let name = format!("path{}", reload / 5 % 2);
    let increase = 1.0 + (reload % 7) as f64;
    policy(vec![rule(
        &name,
        0,
        "aimd",
        Params::default(),
        aimd(increase, 0.25),
    )])
}

/// Descriptors, and memory in kB, of this process.
fn held() -> (usize, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("VmRSS:"))
        .unwrap();
    let kb = line.trim().trim_end_matches(" kB").parse().unwrap();
    (fs::read_dir("/proc/self/fd").unwrap().count(), kb)
}

/// Replaces the policy so often.
pub fn reload(reloads: usize, every: Duration) {
    let most = Rlimit {
        current: getrlimit(Resource::Nofile).maximum,
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, most).unwrap();
    let road = Road {
        mbit: 100,
        rtt_ms: 20,
        buffer: 4000,
        lost: vec![],
    };
    let Some(ground) = Ground::new(&[road]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    tuner.apply(version(0)).unwrap();
    // Half of them new, half running when they are found.
    let to = addresses(Side::Far, 0).0;
    let listener = ground.on(Side::Far, move || TcpListener::bind((to, 0)));
    let at = listener.local_addr().unwrap();
    let mut flows: Vec<(TcpStream, TcpStream)> = Vec::new();
    let mut inside = Some(ground.group.enter());
    while flows.len() < FLOWS {
        if flows.len() == FLOWS / 2 {
            inside = None;
        }
        // The backlog of a listener is 128.
        let some = ground.on_near(move || (0..100).map(|_| TcpStream::connect(at)).collect());
        let some: Vec<TcpStream> = some;
        let both = some
            .into_iter()
            .map(|near| (near, listener.accept().unwrap().0));
        flows.extend(both);
        run(&mut tuner, Duration::from_millis(1), |_| false);
    }
    assert!(inside.is_none());
    for (near, _) in &flows {
        near.set_nonblocking(true).unwrap();
    }
    // What arrives waits in the receivers.
    let send = |flows: &[(TcpStream, TcpStream)]| {
        for (mut near, _) in flows.iter().map(|(near, far)| (near, far)) {
            assert_eq!(near.write(&[0; 1448]).unwrap(), 1448);
        }
    };
    tuner.settle().unwrap();
    run(&mut tuner, Duration::from_millis(100), |_| false);
    let mut before = held();
    let mut adopted = 0;
    for k in 1..=reloads {
        let begin = Instant::now();
        send(&flows);
        tuner.apply(version(k)).unwrap();
        let lines = tuner.take_log();
        adopted += lines.iter().filter(|l| l.contains(": rule path")).count();
        run(&mut tuner, every.saturating_sub(begin.elapsed()), |_| false);
        if k == 5 {
            // Both halves of the maps, and both names of the path, have been in use.
            before = held();
        }
        if k > 5 {
            let now = held();
            assert_eq!(now.0, before.0, "descriptors after {k} reloads");
            assert!(now.1 < before.1 + 8_000, "{} kB after {k} reloads", now.1);
        }
    }
    let ours = format!("{}aimd", prefix());
    let all = tuner.flows().unwrap();
    assert_eq!(all.len(), FLOWS);
    let due = version(reloads).rules[0].name.clone();
    for (seen, rule) in &all {
        assert_eq!((&seen.listing.algorithm, rule), (&ours, &due));
    }
    let counters = tuner.counters().unwrap();
    println!("{reloads} reloads, {adopted} moves of flows: {counters:?}");
    // Each began once, whatever became of its rule, and each move is counted.
    assert_eq!(counters.begun, FLOWS as u64);
    assert_eq!(adopted, FLOWS / 2 + reloads / 5 * FLOWS);
    assert!(counters.matched as usize >= FLOWS / 2 + adopted);
    assert_eq!((counters.records_lost, counters.refused), (0, 0));
    tuner.finish().unwrap();
    let after = tuner.counters().unwrap();
    assert_eq!((after.released, after.begun), (FLOWS as u64, FLOWS as u64));
    let all = listed(&mut tuner);
    assert!(
        all.iter()
            .all(|l| l.algorithm == "reno" && l.flow.is_none())
    );
}

#[test]
fn a_policy_is_replaced_under_a_thousand_flows() {
    reload(20, Duration::from_millis(100));
}
