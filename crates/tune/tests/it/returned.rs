//! What flows have back: exactly what they had, whatever became of their rule, and never what their
//! own program has set.

use std::fs;
use std::time::{Duration, Instant};

use fullpipe_policy::{Action, LAW_HTCP, LAW_WESTWOOD, Params, Prefix, Rule};
use fullpipe_tune::bpf::Bpf;
use fullpipe_tune::layout::{Event, Kind, Listing};
use fullpipe_tune::tuner::Tuner;

use crate::flows::{gets_on, listed, only, road};
use crate::support::{Ground, aimd, choose, kernels, pace, policy, prefix, rule, run, send_buffer};

fn plain(name: &str, k: usize, a: f64) -> Rule {
    rule(name, k, "aimd", Params::default(), aimd(a, 0.25))
}

/// The listing of each flow, in the order of their paths.
fn by_road(tuner: &mut Tuner<Bpf>) -> Vec<Listing> {
    let mut all = listed(tuner);
    all.sort_by_key(|l| l.remote);
    all
}

/// Until it is so, at most for a time.
fn until(tuner: &mut Tuner<Bpf>, most: Duration, is: impl Fn(&[Listing]) -> bool) {
    let begin = Instant::now();
    loop {
        let all = by_road(tuner);
        if is(&all) {
            return;
        }
        assert!(begin.elapsed() < most, "{all:?}");
        tuner.tick(Duration::from_millis(5)).unwrap();
    }
}

#[test]
fn a_path_that_keeps_its_name_changes_its_algorithm() {
    let Some(mut ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    ground.flow_outside(0);
    gets_on(&mut tuner);
    let ours = |name: &str| format!("{}{name}", prefix());
    let with = |law, name: &str| {
        let params = Params {
            law,
            ..Params::default()
        };
        rule("path", 0, name, params, Vec::new())
    };
    let mut htcp = with(LAW_HTCP, "htcp");
    if let fullpipe_policy::Action::Ours { params, .. } = &mut htcp.action {
        params.number[..4].copy_from_slice(&[1_000_000, 32768, 52429, 0]);
    }
    let steps = [
        (plain("path", 0, 4.0), ours("aimd")),
        (kernels("path", 0, "cubic"), "cubic".to_owned()),
        (kernels("path", 0, "bbr"), "bbr".to_owned()),
        (with(LAW_WESTWOOD, "westwood"), ours("westwood")),
        (htcp, ours("htcp")),
        (kernels("path", 0, "cubic"), "cubic".to_owned()),
    ];
    for (rule, algorithm) in steps {
        tuner.apply(policy(vec![rule])).unwrap();
        assert_eq!(only(&mut tuner).algorithm, algorithm);
        gets_on(&mut tuner);
        assert_eq!(only(&mut tuner).flow.unwrap().before, "reno");
    }
    // What its program chooses from now on stays, also when the path goes.
    tuner.apply(policy(vec![])).unwrap();
    assert_eq!(only(&mut tuner).algorithm, "reno");
}

/// A law reads `own` of the flow's state: Westwood+'s rate would be the time of H-TCP's last loss.
#[test]
fn no_law_reads_the_numbers_of_another() {
    let Some(mut ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let with = |law, number: [u64; 8]| {
        let params = Params {
            law,
            number,
            ..Params::default()
        };
        policy(vec![rule("path", 0, "law", params, Vec::new())])
    };
    let htcp = with(LAW_HTCP, [1_000_000, 32768, 52429, 0, 0, 0, 0, 0]);
    tuner
        .apply(with(LAW_WESTWOOD, [50_000, 0, 0, 0, 0, 0, 0, 0]))
        .unwrap();
    tuner.watch(u64::MAX).unwrap();
    ground.flow(0);
    let cut = |events: &[Event]| events.iter().any(|e| e.kind == Kind::Cut);
    run(&mut tuner, Duration::from_secs(5), cut);
    run(&mut tuner, Duration::from_secs(1), |_| false);
    // The rows change under the flow, which is not moved yet.
    let largest = |tuner: &mut Tuner<Bpf>| {
        tuner.take_watched();
        let events = run(tuner, Duration::from_millis(300), |_| false);
        let a = events.iter().filter(|e| e.kind == Kind::Ack).map(|e| e.a);
        a.fold(0.0, f64::max)
    };
    tuner.install(htcp).unwrap();
    let a = largest(&mut tuner);
    assert!(
        (0.5..3.0).contains(&a),
        "{a} segments per round trip after Westwood+"
    );
    // Nor its own of before the standard ran: H-TCP's clock begins anew.
    tuner.switch(true).unwrap();
    run(&mut tuner, Duration::from_secs(3), |_| false);
    tuner.switch(false).unwrap();
    let a = largest(&mut tuner);
    assert!(
        (0.5..3.0).contains(&a),
        "{a} segments per round trip after a pause"
    );
}

/// Between the write of new rules and the move of the flows a rule that has gone is no other's.
#[test]
fn flows_of_a_rule_that_has_gone_are_standard_until_they_are_moved() {
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    tuner.apply(policy(vec![plain("old", 0, 4.0)])).unwrap();
    tuner.watch(u64::MAX).unwrap();
    ground.flow(0);
    let cut = |events: &[Event]| events.iter().any(|e| e.kind == Kind::Cut);
    run(&mut tuner, Duration::from_secs(5), cut);
    for new in ["new", "newer", "newest"] {
        tuner.install(policy(vec![plain(new, 1, 40.0)])).unwrap();
        tuner.take_watched();
        let events = run(&mut tuner, Duration::from_millis(300), |_| false);
        let growths: Vec<f64> = events
            .iter()
            .filter(|e| e.kind == Kind::Ack)
            .map(|e| e.a)
            .collect();
        let one = |a: &f64| *a == 1.0 || *a == 0.0;
        assert!(
            !growths.is_empty() && growths.iter().all(one),
            "{new}: {growths:?}"
        );
    }
    tuner.settle().unwrap();
    assert_eq!(only(&mut tuner).algorithm, "reno");
}

#[test]
fn ceilings_of_pacing_come_back_exactly() {
    let Some(mut ground) = Ground::new(&[road(), road(), road(), road(), road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let paced = |rate: u64| {
        let params = Params {
            pacing: rate,
            ..Params::default()
        };
        let mut rules: Vec<Rule> = (0..5)
            .map(|k| rule(&format!("path{k}"), k, "aimd", params, aimd(1.0, 0.5)))
            .collect();
        // All of the last are left as they were.
        rules[4].share = 0;
        policy(rules)
    };
    tuner.apply(paced(1_000_000)).unwrap();
    ground.flow(0);
    ground.prepared(1, true, |s| pace(s, 500_000));
    ground.prepared(2, true, |s| pace(s, 3_000_000));
    let changes = ground.prepared(3, true, |_| ());
    ground.prepared(4, true, |s| pace(s, 2_500_000));
    let ceilings = |all: &[Listing]| all.iter().map(|l| l.max_pacing).collect::<Vec<u64>>();
    const NONE: u64 = u64::MAX;
    let given = |rate: u64| vec![rate, 500_000, rate, rate, 2_500_000];
    until(&mut tuner, Duration::from_secs(3), |all| {
        ceilings(all) == given(1_000_000)
    });
    // Into congestion avoidance, where the window does not tell when the rows were read last.
    run(&mut tuner, Duration::from_secs(2), |_| false);
    let lost = by_road(&mut tuner)[0].flow.clone().unwrap().cuts;
    assert!(lost > 0, "slow start goes on");
    tuner.install(paced(1_500_000)).unwrap();
    // A round trip is 40 ms and a queue of 120 at most.
    until(&mut tuner, Duration::from_millis(400), |all| {
        ceilings(all) == given(1_500_000)
    });
    // Off: no ceiling of ours is in force, and back.
    tuner.switch(true).unwrap();
    let theirs = vec![NONE, 500_000, 3_000_000, NONE, 2_500_000];
    until(&mut tuner, Duration::from_millis(400), |all| {
        ceilings(all) == theirs
    });
    assert_eq!(by_road(&mut tuner)[0].pacing_status, 0, "it paces on");
    tuner.switch(false).unwrap();
    until(&mut tuner, Duration::from_millis(400), |all| {
        ceilings(all) == given(1_500_000)
    });
    // Its program's own, since.
    pace(&changes, 700_000);
    assert_eq!(tuner.release(|_| true).unwrap(), 4);
    let all = by_road(&mut tuner);
    assert_eq!(
        ceilings(&all),
        [NONE, 500_000, 3_000_000, 700_000, 2_500_000]
    );
    let statuses: Vec<bool> = all.iter().map(|l| l.pacing_status != 0).collect();
    assert_eq!(
        statuses,
        [false, true, true, true, true],
        "whether it paces at all"
    );
    // The flow of the comparison arm has not been touched.
    assert!(!all[4].chosen && all[4].algorithm == "reno", "{:?}", all[4]);
}

/// The option holds for every algorithm, and comes with the rule or the order.
#[test]
fn algorithms_of_the_kernel_have_ceilings_too() {
    let Some(mut ground) = Ground::new(&[road(), road(), road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let paced = |pacing: u64| {
        let name = "cubic".to_owned();
        let rules = (0..3).map(|k| Rule {
            action: Action::Kernel {
                name: name.clone(),
                pacing,
            },
            ..kernels(&format!("path{k}"), k, "cubic")
        });
        policy(rules.collect())
    };
    // One runs before, one opens later, one has a lower ceiling of its program's.
    ground.flow(0);
    tuner.apply(paced(1_000_000)).unwrap();
    ground.flow(1);
    ground.prepared(2, true, |s| pace(s, 500_000));
    let ceilings = |all: &[Listing]| all.iter().map(|l| l.max_pacing).collect::<Vec<u64>>();
    const NONE: u64 = u64::MAX;
    until(&mut tuner, Duration::from_secs(3), |all| {
        ceilings(all) == [1_000_000, 1_000_000, 500_000]
    });
    tuner.apply(paced(1_500_000)).unwrap();
    let all = by_road(&mut tuner);
    assert_eq!(ceilings(&all), [1_500_000, 1_500_000, 500_000]);
    // Laws of the tuner take them over, and the other way round.
    let ours = (0..3).map(|k| {
        let params = Params {
            pacing: 1_200_000,
            ..Params::default()
        };
        rule(&format!("path{k}"), k, "aimd", params, aimd(1.0, 0.5))
    });
    tuner.apply(policy(ours.collect())).unwrap();
    until(&mut tuner, Duration::from_secs(3), |all| {
        ceilings(all) == [1_200_000, 1_200_000, 500_000]
    });
    tuner.apply(paced(0)).unwrap();
    assert_eq!(ceilings(&by_road(&mut tuner)), [NONE, NONE, 500_000]);
    tuner.apply(paced(800_000)).unwrap();
    assert_eq!(ceilings(&by_road(&mut tuner)), [800_000, 800_000, 500_000]);
    tuner.switch(true).unwrap();
    assert_eq!(ceilings(&by_road(&mut tuner)), [NONE, NONE, 500_000]);
}

#[test]
fn buffers_come_back_exactly_and_the_kernel_tunes_them_again() {
    let Some(mut ground) = Ground::new(&[road(), road(), road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    // Larger than any option may ask for (`wmem_max`).
    let limit = fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap();
    let first = 4 * limit.trim().parse::<u32>().unwrap() + 1000;
    let sizes = format!("4096 {first} {}", 2 * first);
    ground.on_near(move || fs::write("/proc/sys/net/ipv4/tcp_wmem", sizes));
    let with = |bytes: Option<u64>| {
        let rules = (0..3).map(|k| Rule {
            send_buffer: bytes,
            receive_buffer: bytes,
            ..plain(&format!("path{k}"), k, 1.0)
        });
        policy(rules.collect())
    };
    ground.flow(0);
    let own = ground.prepared(1, true, |s| send_buffer(s, 50_000));
    let changes = ground.prepared(2, true, |_| ());
    gets_on_all(&mut tuner);
    let before = by_road(&mut tuner);
    assert_eq!(
        (before[0].send_buffer, before[1].send_buffer),
        (first, 100_000)
    );
    tuner.apply(with(Some(150_000))).unwrap();
    let given = by_road(&mut tuner);
    let sent: Vec<u32> = given.iter().map(|l| l.send_buffer).collect();
    assert_eq!(sent, [300_000, 100_000, 300_000]);
    assert_eq!(given[1].receive_buffer, 300_000);
    // Another size, and then none, of a path that stays.
    tuner.apply(with(Some(160_000))).unwrap();
    assert_eq!(by_road(&mut tuner)[0].send_buffer, 320_000);
    send_buffer(&changes, 70_000);
    tuner.apply(with(None)).unwrap();
    let back = |all: &[Listing]| {
        let of = |l: &Listing| {
            (
                l.send_buffer,
                l.locks.send,
                l.receive_buffer,
                l.locks.receive,
            )
        };
        all.iter().map(of).collect::<Vec<_>>()
    };
    let due = vec![
        (first, false, before[0].receive_buffer, false),
        (100_000, true, before[1].receive_buffer, false),
        // Its program has set it since.
        (140_000, true, before[2].receive_buffer, false),
    ];
    assert_eq!(back(&by_road(&mut tuner)), due);
    // The path goes.
    tuner.apply(with(Some(150_000))).unwrap();
    assert_eq!(by_road(&mut tuner)[0].send_buffer, 300_000);
    tuner.apply(policy(vec![])).unwrap();
    assert_eq!(back(&by_road(&mut tuner)), due);
    let all = by_road(&mut tuner);
    assert!(
        all.iter()
            .all(|l| l.algorithm == "reno" && l.flow.is_none()),
        "{all:?}"
    );
    drop(own);
}

fn gets_on_all(tuner: &mut Tuner<Bpf>) {
    until(tuner, Duration::from_secs(5), |all| {
        all.iter().all(|l| l.bytes_acked > 20_000)
    });
}

#[test]
fn off_reaches_algorithms_of_the_kernel() {
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    tuner
        .apply(policy(vec![
            kernels("path", 0, "cubic"),
            plain("ours", 1, 4.0),
        ]))
        .unwrap();
    ground.flow(0);
    ground.flow(1);
    gets_on_all(&mut tuner);
    let named = |tuner: &mut Tuner<Bpf>| {
        let all = by_road(tuner).into_iter();
        all.map(|l| l.algorithm).collect::<Vec<_>>()
    };
    let ours = format!("{}aimd", prefix());
    assert_eq!(named(&mut tuner), ["cubic", &ours]);
    tuner.switch(true).unwrap();
    assert_eq!(named(&mut tuner), ["reno", &ours]);
    tuner.settle().unwrap();
    assert_eq!(named(&mut tuner), ["reno", &ours]);
    tuner.switch(false).unwrap();
    assert_eq!(named(&mut tuner), ["cubic", &ours]);
    // What its program chooses from now on stays, also at the end.
    tuner.finish().unwrap();
    assert_eq!(named(&mut tuner), ["reno", "reno"]);
}

#[test]
fn what_a_program_chooses_since_stays() {
    let Some(mut ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    tuner.apply(policy(vec![plain("path", 0, 4.0)])).unwrap();
    let socket = ground.prepared(0, true, |_| ());
    gets_on(&mut tuner);
    choose(&socket, "cubic");
    tuner.settle().unwrap();
    assert_eq!(only(&mut tuner).algorithm, "cubic");
    tuner.apply(policy(vec![plain("path", 0, 5.0)])).unwrap();
    assert_eq!(only(&mut tuner).algorithm, "cubic");
    tuner.apply(policy(vec![])).unwrap();
    assert_eq!(only(&mut tuner).algorithm, "cubic");
    tuner.finish().unwrap();
    assert_eq!(only(&mut tuner).algorithm, "cubic");
}

#[test]
fn a_policy_of_many_networks_can_be_replaced() {
    let Some(mut ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let with = |many: u32, a: f64| {
        let mut rule = plain("path", 0, a);
        rule.selector.to.extend((1..many).map(|k| Prefix {
            address: std::net::Ipv4Addr::from_bits(0xcb00_0000 + k).into(),
            bits: 32,
        }));
        policy(vec![rule])
    };
    ground.flow(0);
    for (many, a) in [
        (3000, 4.0),
        (16_384, 5.0),
        (2500, 6.0),
        (16_384, 7.0),
        (3000, 8.0),
    ] {
        tuner.apply(with(many, a)).unwrap();
    }
    tuner.watch(u64::MAX).unwrap();
    let grew = |events: &[Event]| events.iter().any(|e| e.a == 8.0);
    assert!(
        grew(&run(&mut tuner, Duration::from_secs(5), grew)),
        "not by its rows"
    );
    let refused = tuner.apply(with(16_385, 9.0)).unwrap_err().to_string();
    assert_eq!(refused, "16385 networks; the kernel side holds 16384");
    assert_eq!(only(&mut tuner).algorithm, format!("{}aimd", prefix()));
}

/// By process and by control group the daemon decides, when it looks at running flows.
#[test]
fn rules_by_process_and_control_group_hold_their_flows_alone() {
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let root = fullpipe_tune::groups::root().unwrap();
    let group = ground.group.path.strip_prefix(root).unwrap();
    let group = std::path::Path::new("/").join(group);
    let comm = fs::read_to_string("/proc/self/comm")
        .unwrap()
        .trim()
        .to_owned();
    ground.flow(0);
    ground.flow_outside(1);
    gets_on_all(&mut tuner);
    let with = |cgroup: Option<std::path::PathBuf>, process: Option<&str>| {
        let rules = (0..2).map(|k| {
            let mut rule = plain(&format!("path{k}"), k, 4.0);
            rule.selector.cgroup = cgroup.clone();
            rule.selector.process = process.map(str::to_owned);
            rule
        });
        policy(rules.collect())
    };
    let mut tuned = |cgroup, process| {
        tuner.apply(with(cgroup, process)).unwrap();
        let all = by_road(&mut tuner).into_iter();
        all.map(|l| l.algorithm != "reno").collect::<Vec<_>>()
    };
    assert_eq!(tuned(Some(group.clone()), None), [true, false]);
    assert_eq!(tuned(group.parent().map(Into::into), None), [true, true]);
    assert_eq!(tuned(None, Some("nobody")), [false, false]);
    assert_eq!(tuned(None, Some(&comm)), [true, true]);
    assert_eq!(tuned(Some(group), Some(&comm)), [true, false]);
}
