//! Paths in the course of time: signs of life, parts of what is divided, shares and schedules.

use super::*;

#[test]
fn a_sign_of_life_is_the_clocks() {
    let (fake, mut tuner) = applied(&[(7, LAB)], [with(|p| p.clamp = 10)]);
    let patience = HEARTBEAT_TIMEOUT.as_micros() as u64;
    for _ in 0..3 {
        fake.host().now_us += patience;
        assert_eq!(clamp_of(&fake, 7), Some(10));
        hear(&mut tuner);
        let control = fake.host().control.clone();
        let now = fake.host().now_us;
        assert_eq!((control.heartbeat_us, control.patience_us), (now, patience));
    }
    fake.host().now_us += patience + 1;
    assert_eq!(clamp_of(&fake, 7), None, "the standard");
    fake.deeds();
    tuner.resume(fake.journal()).unwrap();
    assert_eq!((clamp_of(&fake, 7), fake.orders()), (Some(10), vec![]));
    let keep = Compiled {
        on_daemon_loss: OnDaemonLoss::Keep,
        ..policy([with(|p| p.clamp = 10)])
    };
    tuner.apply(keep).unwrap();
    fake.host().now_us += 9 * patience;
    assert_eq!(clamp_of(&fake, 7), Some(10));
}

/// Flows of an algorithm of the kernel have their ceiling with the order, new ones with the rule.
#[test]
fn ceilings_of_the_kernels_algorithms_come_and_go() {
    let paced = |rate: u64| {
        let name = "dctcp".to_owned();
        Rule {
            divide: true,
            action: Action::Kernel { name, pacing: rate },
            ..kernels("dctcp")
        }
    };
    let ceilings = |fake: &Fake| [7, 8, 9].map(|c| fake.listing(c).max_pacing);
    const NONE: u64 = u64::MAX;
    let fake = Fake::new(&[(7, LAB), (8, ELSEWHERE), (9, LAB)]);
    // Its program's own, which is lower.
    fake.host().socket(9).max_pacing = 2_000;
    let mut tuner = fake.tuner();
    tuner.apply(policy([paced(9_000)])).unwrap();
    tuner.settle().unwrap();
    assert_eq!(ceilings(&fake), [4_500, NONE, 2_000]);
    fake.deeds();
    fake.host().opens(10, LAB);
    assert_eq!(fake.listing(10).max_pacing, 4_500, "by the rule as it is");
    hear(&mut tuner);
    tuner.settle().unwrap();
    assert_eq!(ceilings(&fake), [3_000, NONE, 2_000]);
    assert_eq!(fake.listing(10).max_pacing, 3_000);
    assert_eq!(fake.orders().len(), 3);
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), []);
    assert_eq!(fake.journal().entry((1, 7)).unwrap().given.ceiling, 3_000);
    tuner.switch(true).unwrap();
    assert_eq!(ceilings(&fake), [NONE, NONE, 2_000]);
    tuner.switch(false).unwrap();
    tuner.settle().unwrap();
    assert_eq!(ceilings(&fake), [3_000, NONE, 2_000]);
    // Killed: the journal knows.
    let seen = fake.clone().flows(&[]).unwrap();
    fake.host().forgets();
    give_back(&mut fake.clone(), &mut fake.journal(), PREFIX, seen, |_| {
        true
    })
    .unwrap();
    assert_eq!(ceilings(&fake), [NONE, NONE, 2_000]);
    let mut tuner = fake.tuner();
    tuner.apply(policy([paced(9_000)])).unwrap();
    tuner.apply(policy([kernels("dctcp")])).unwrap();
    assert_eq!(ceilings(&fake), [NONE, NONE, 2_000], "no ceiling any more");
}

#[test]
fn parts_change_as_flows_come_and_go() {
    let whole = Rule {
        divide: true,
        send_buffer: Some(120_000),
        ..with(|p| (p.clamp, p.pacing) = (60, 9_000))
    };
    let (fake, mut tuner) = applied(&[(7, LAB), (8, ELSEWHERE)], [whole]);
    let part = |fake: &Fake| fake.host().runs(7).map(|(p, _)| (p.clamp, p.pacing));
    assert_eq!(
        (part(&fake), tuner.shares("lab")),
        (Some((60, 9_000)), Some(1))
    );
    fake.host().opens(9, LAB);
    fake.host().opens(10, LAB);
    hear(&mut tuner);
    assert_eq!(
        (part(&fake), tuner.shares("lab")),
        (Some((20, 3_000)), Some(3))
    );
    // Windows and rates without an order; sizes with the next look.
    assert_eq!(fake.orders(), []);
    assert_eq!(fake.journal().entry((1, 7)).unwrap().given.ceiling, 3_000);
    tuner.settle().unwrap();
    let sizes = |fake: &Fake| [7, 9, 10].map(|c| fake.listing(c).send_buffer);
    assert_eq!((fake.orders().len(), sizes(&fake)), (3, [80_000; 3]));
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), []);
    fake.host().ends(9);
    hear(&mut tuner);
    assert_eq!(part(&fake), Some((30, 4_500)));
    // That one was given back has the same effect.
    tuner.release(|l| l.cookie == 10).unwrap();
    hear(&mut tuner);
    assert_eq!(part(&fake), Some((60, 9_000)));
}

#[test]
fn a_share_of_flows_is_what_it_says_and_the_others_get_no_order() {
    let share = |share: u32| Rule { share, ..lab() };
    let flows: Vec<(u64, &str)> = (1..=1000).map(|cookie| (cookie, LAB)).collect();
    let fake = Fake::new(&flows);
    let mut tuner = fake.tuner();
    tuner.apply(policy([share(1 << 14)])).unwrap();
    let orders = fake.orders();
    // A quarter, evenly.
    assert!(orders.len().abs_diff(250) < 5, "{}", orders.len());
    let takes = |cookie: &u64| share(1 << 14).takes(*cookie);
    assert!(orders.iter().all(|(cookie, ..)| takes(cookie)));
    // New flows by the same rule, and those of the comparison are remembered as such.
    (1001..=2000).for_each(|cookie| fake.host().opens(cookie, LAB));
    hear(&mut tuner);
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), []);
    let flows = tuner.flows().unwrap();
    let (policy_arm, control): (Vec<_>, Vec<_>) =
        flows.iter().partition(|(s, _)| takes(&s.listing.cookie));
    assert!(policy_arm.len().abs_diff(500) < 10, "{}", policy_arm.len());
    assert!(
        policy_arm
            .iter()
            .all(|(s, _)| s.listing.algorithm == "fp_aimd")
    );
    assert!(control.iter().all(|(s, _)| s.listing.algorithm == "reno"));
    let counters = tuner.counters().unwrap();
    assert_eq!(counters.control, control.len() as u64);
    // Twice the share: the same flows and as many others, none of which is given back.
    tuner.apply(policy([share(1 << 15)])).unwrap();
    let orders = fake.orders();
    assert!(
        orders
            .iter()
            .all(|(c, action, _)| *action == OrderAction::Adopt && !takes(c))
    );
    assert!(orders.len().abs_diff(500) < 10, "{}", orders.len());
    tuner.finish().unwrap();
    assert_eq!(fake.orders().len(), policy_arm.len() + orders.len());
}

#[test]
fn both_arms_are_looked_at() {
    let half = Rule {
        share: 1 << 15,
        ..lab()
    };
    let (on, off) = (
        (1..).find(|c| half.takes(*c)).unwrap(),
        (1..).find(|c| !half.takes(*c)).unwrap(),
    );
    let (fake, mut tuner) = applied(&[(on, LAB), (off, LAB)], [half]);
    for _ in 0..3 {
        tuner.settle().unwrap();
        let mut host = fake.host();
        host.now_us += 1_000_000;
        for (cookie, bytes) in [(on, 3_000_000), (off, 1_000_000)] {
            host.socket(cookie).mss = 1000;
            host.socket(cookie).bytes_acked += bytes;
        }
    }
    let (_, courses) = tuner.arms().of("lab");
    let arms: Vec<(bool, u64)> = courses.iter().map(|c| (c.control, c.bytes)).collect();
    assert_eq!(arms.len(), 2, "{arms:?}");
    assert!(
        arms.contains(&(true, 2_000_000)) && arms.contains(&(false, 6_000_000)),
        "{arms:?}"
    );
    // The peers close their ends: neither arm goes on.
    for cookie in [on, off] {
        fake.host().socket(cookie).state = CLOSE_WAIT;
        fake.host().socket(cookie).bytes_acked += 1_000_000;
    }
    tuner.settle().unwrap();
    let (_, courses) = tuner.arms().of("lab");
    let ended: Vec<(bool, u64)> = courses.iter().map(|c| (c.control, c.bytes)).collect();
    assert_eq!(ended.len(), 2);
    assert!(arms.iter().all(|arm| ended.contains(arm)), "{ended:?}");
}

#[test]
fn a_schedule_is_kept_while_flows_run() {
    let text = r#"
        [[path]]
        name = "lab"
        to = ["198.18.0.0/15"]
        stack = "aimd(increase=4,decrease=0.125)"
        change = [
          { at = "3s", stack = "scalable" },
          { at = "1s", set = { a = 6 }, window = "30 segments" },
        ]
    "#;
    let source = Source {
        name: "policy.toml".to_owned(),
        text: text.to_owned(),
    };
    let mut policy = Policy::parse_with(&[source], &Measurements::new()).unwrap();
    let (fake, mut tuner) = applied(&[(7, LAB)], policy.compiled.rules.clone());
    let begin = fake.host().now_us;
    let mut seen = Vec::new();
    for tenths in 0..=40 {
        fake.host().now_us = begin + tenths * 100_000;
        let now = Duration::from_micros(fake.host().now_us - begin);
        let made = make_due(&mut policy, now);
        if !made.is_empty() {
            tuner.apply(policy.compiled.clone()).unwrap();
        }
        hear(&mut tuner);
        let (params, table) = fake.host().runs(7).unwrap();
        let a = table.first().map_or(0, |row| row.increase / 256);
        let runs = (algorithm_of(&fake, 7), a, params.clamp);
        if seen.last().is_none_or(|(_, before)| *before != runs) {
            seen.push((tenths, runs));
        }
    }
    let at = |tenths, name: &str, a, clamp| (tenths, (name.to_owned(), a, clamp));
    let due = [
        at(0, "fp_aimd", 4, 0),
        at(10, "fp_aimd", 6, 30),
        at(30, "fp_scalable", 0, 30),
    ];
    assert_eq!(seen, due);
    // Numbers reach a flow by the image alone, another law by one order.
    assert_eq!(fake.orders(), [adopts(7, "fp_scalable")]);
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), []);
}

/// A server may cease to listen once it has its connection, and a program connect from a port at
/// which another listens.
#[test]
fn the_end_that_opened_a_flow_decides_and_not_who_listens_now() {
    let of = |name: &str, side: Side| {
        let mut rule = kernels(name);
        (rule.name, rule.selector.side) = (name.to_owned(), side);
        rule
    };
    let rules = [of("dctcp", Side::Passive), of("cubic", Side::Active)];
    let fake = Fake::new(&[(7, LAB), (8, LAB), (9, LAB), (10, LAB)]);
    {
        let mut host = fake.host();
        host.socket(7).side = Some(Side::Passive);
        host.socket(8).side = Some(Side::Active);
        // Something listens where 8 and 9 come from; of 9 and 10 nobody knows who opened them.
        for cookie in [8, 9] {
            let port = host.socket(cookie).local.1;
            let listener = 100 + cookie;
            host.sockets
                .insert(listener, crate::fake::seen(listener, "0.0.0.0"));
            let socket = host.socket(listener);
            (socket.state, socket.local.1) = (LISTEN, port);
        }
    }
    fake.tuner().apply(policy(rules)).unwrap();
    let given = [7, 8, 9, 10].map(|cookie| algorithm_of(&fake, cookie));
    assert_eq!(given, ["dctcp", "cubic", "dctcp", "cubic"]);
}
