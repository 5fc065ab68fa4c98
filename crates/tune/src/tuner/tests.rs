//! What the tuner has the kernel do, in which order, and what stands after a failure.

use std::time::Duration;

use fullpipe_policy::{Measurements, Policy, Source};

use super::*;
use crate::daemon::make_due;
use crate::fake::{CLOSE_WAIT, Deed, ENOENT, Failing, Fake, PREFIX};
use crate::testing::{empty, rule};

const LAB: &str = "198.18.0.1";
const ELSEWHERE: &str = "203.0.113.1";

fn lab() -> Rule {
    rule("lab", "198.18.0.0", 15)
}

/// The same path on an algorithm of the kernel's own.
fn kernels(name: &str) -> Rule {
    Rule {
        action: Action::Kernel(name.to_owned()),
        stack: name.to_owned(),
        ..lab()
    }
}

fn with(change: impl FnOnce(&mut fullpipe_policy::Params)) -> Rule {
    let mut rule = lab();
    if let Action::Ours { params, .. } = &mut rule.action {
        change(params);
    }
    rule
}

fn policy(rules: impl IntoIterator<Item = Rule>) -> Compiled {
    Compiled {
        rules: rules.into_iter().collect(),
        ..empty()
    }
}

/// A tuner that has applied these rules to these flows, and nothing that it did for that.
fn applied(flows: &[(u64, &str)], rules: impl IntoIterator<Item = Rule>) -> (Fake, Tuner<Fake>) {
    let fake = Fake::new(flows);
    let mut tuner = fake.tuner();
    tuner.apply(policy(rules)).unwrap();
    fake.deeds();
    (fake, tuner)
}

fn adopts(cookie: u64, algorithm: &str) -> (u64, OrderAction, String) {
    (cookie, OrderAction::Adopt, algorithm.to_owned())
}

fn releases(cookie: u64, algorithm: &str) -> (u64, OrderAction, String) {
    (cookie, OrderAction::Release, algorithm.to_owned())
}

fn hear(tuner: &mut Tuner<Fake>) {
    tuner.tick(Duration::ZERO).unwrap();
}

fn algorithm_of(fake: &Fake, cookie: u64) -> String {
    fake.listing(cookie).algorithm
}

fn clamp_of(fake: &Fake, cookie: u64) -> Option<u32> {
    fake.host().runs(cookie).map(|(params, _)| params.clamp)
}

#[test]
fn each_flow_gets_its_rule_once() {
    let fake = Fake::new(&[(7, LAB), (8, ELSEWHERE), (9, LAB)]);
    // Its program has chosen what it has.
    fake.host().choose(9, "cubic");
    let mut tuner = fake.tuner();
    tuner.apply(policy([lab()])).unwrap();
    assert_eq!(fake.orders(), [adopts(7, "fp_aimd")]);
    // The programs give new flows theirs.
    fake.host().opens(10, LAB);
    fake.host().opens(11, ELSEWHERE);
    hear(&mut tuner);
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), []);
    let row = |cookie| fake.host().runs(cookie).map(|(_, table)| table[0].increase);
    assert_eq!(
        [7, 8, 9, 10, 11].map(row),
        [Some(256), None, None, Some(256), None]
    );
    // The same again has nothing to change but the image.
    tuner.apply(policy([lab()])).unwrap();
    assert_eq!(fake.orders(), []);
    // Another algorithm reaches both, once.
    tuner.apply(policy([kernels("dctcp")])).unwrap();
    assert_eq!(fake.orders(), [adopts(7, "dctcp"), adopts(10, "dctcp")]);
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), []);
    // No rule: each has back what it had.
    tuner.apply(empty()).unwrap();
    assert_eq!(fake.orders(), [releases(7, "reno"), releases(10, "reno")]);
    tuner.apply(empty()).unwrap();
    assert_eq!(fake.orders(), []);
}

#[test]
fn ports_that_are_never_tuned_are_left_alone_and_given_back() {
    let (fake, mut tuner) = applied(&[(7, LAB)], [lab()]);
    let never = Compiled {
        never_tune: vec![80..=80],
        ..policy([lab()])
    };
    tuner.apply(never).unwrap();
    assert_eq!(fake.orders(), [releases(7, "reno")]);
    fake.host().opens(8, LAB);
    tuner.settle().unwrap();
    assert_eq!(
        (fake.orders(), algorithm_of(&fake, 8)),
        (vec![], "reno".into())
    );
}

#[test]
fn the_half_that_nobody_reads_is_filled_before_the_other_is_left() {
    let (fake, mut tuner) = applied(&[], [with(|p| p.clamp = 10)]);
    let before = fake.host().control.clone();
    tuner.install(policy([with(|p| p.clamp = 20)])).unwrap();
    let after = fake.host().control.clone();
    let deeds = fake.deeds();
    assert_eq!(
        deeds,
        [
            Deed::Filled(1 - before.active),
            Deed::Controlled(after.clone())
        ]
    );
    assert_eq!(
        (after.active, after.generation),
        (1 - before.active, before.generation + 1)
    );
}

/// The journal at each order, as a tuner after a crash would read it.
fn written(fake: &Fake) -> Vec<(u64, bool)> {
    let deeds = std::mem::take(&mut fake.host().deeds);
    let of = |(deed, journal): (Deed, String)| match deed {
        Deed::Ordered(cookie, order) => {
            let cookie_is = format!("\"cookie\":{cookie},");
            let given = format!("\"given\":{{\"algorithm\":\"{}\"", order.algorithm);
            let mut lines = journal.lines();
            Some((
                cookie,
                lines.any(|l| l.contains(&cookie_is) && l.contains(&given)),
            ))
        }
        _ => None,
    };
    deeds.into_iter().filter_map(of).collect()
}

#[test]
fn the_journal_is_written_before_the_order() {
    let fake = Fake::new(&[(7, LAB), (8, LAB)]);
    fake.host().socket(7).algorithm = "cubic".to_owned();
    let mut tuner = fake.tuner();
    tuner.apply(policy([lab()])).unwrap();
    assert_eq!(written(&fake), [(7, true), (8, true)]);
    tuner.apply(policy([kernels("dctcp")])).unwrap();
    assert_eq!(written(&fake), [(7, true), (8, true)]);
    let entry = fake.journal().entry((1, 7)).cloned().unwrap();
    let told = [entry.before.algorithm, entry.given.algorithm];
    assert_eq!(
        told,
        ["cubic", "dctcp"],
        "what it had before the first rule"
    );
}

#[test]
fn an_order_that_is_refused_is_in_the_journal_and_not_given_again() {
    let fake = Fake::new(&[(7, LAB)]);
    fake.host().refused.insert("dctcp".to_owned());
    let mut tuner = fake.tuner();
    tuner.apply(policy([kernels("dctcp")])).unwrap();
    assert_eq!(written(&fake), [(7, true)]);
    let refused = format!("refused, error {}", -ENOENT);
    assert!(tuner.take_log()[0].ends_with(&refused));
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), []);
    // With a new policy it is tried again.
    fake.host().refused.clear();
    tuner.apply(policy([kernels("dctcp")])).unwrap();
    assert_eq!(fake.orders(), [adopts(7, "dctcp")]);
}

#[test]
fn a_ceiling_is_in_the_journal_before_flows_see_it() {
    let (fake, mut tuner) = applied(&[(7, LAB)], [with(|p| p.pacing = 1000)]);
    tuner.install(policy([with(|p| p.pacing = 2000)])).unwrap();
    let deeds = std::mem::take(&mut fake.host().deeds);
    assert_eq!(deeds.len(), 2);
    assert!(
        deeds
            .iter()
            .all(|(_, journal)| journal.contains("\"ceiling\":2000"))
    );
}

#[test]
fn what_somebody_chooses_since_is_never_overwritten() {
    let (fake, mut tuner) = applied(&[(7, LAB), (8, LAB)], [lab()]);
    fake.host().choose(7, "cubic");
    tuner.settle().unwrap();
    tuner.apply(policy([with(|p| p.clamp = 9)])).unwrap();
    tuner.apply(policy([kernels("dctcp")])).unwrap();
    tuner.apply(policy([lab()])).unwrap();
    let all = fake.orders();
    assert!(all.iter().all(|(cookie, ..)| *cookie == 8), "{all:?}");
    tuner.finish().unwrap();
    // The record goes, and the algorithm stays.
    assert_eq!(fake.orders(), [releases(7, "cubic"), releases(8, "reno")]);
    assert_eq!(
        ["cubic", "reno"],
        [7, 8].map(|cookie| algorithm_of(&fake, cookie))
    );
}

#[test]
fn released_flows_stay_so_until_they_are_adopted() {
    let (fake, mut tuner) = applied(&[(7, LAB), (8, LAB)], [lab()]);
    let halves = fake.host().halves.clone();
    let active = fake.host().control.active;
    assert_eq!(tuner.release(|l| l.cookie == 7).unwrap(), 1);
    assert_eq!(fake.orders(), [releases(7, "reno")]);
    assert_eq!(fake.journal().entries().count(), 1);
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), []);
    // Rules are for flows to come, and for the other one.
    assert_eq!(fake.host().halves, halves);
    assert_eq!(fake.host().control.active, active);
    assert_eq!((clamp_of(&fake, 7), clamp_of(&fake, 8)), (None, Some(0)));
    tuner.apply(policy([lab()])).unwrap();
    assert_eq!(fake.orders(), []);
    tuner.adopt().unwrap();
    assert_eq!(fake.orders(), [adopts(7, "fp_aimd")]);
    assert_eq!(tuner.release(|_| true).unwrap(), 2);
    assert_eq!(
        (fake.orders().len(), fake.journal().entries().count()),
        (2, 0)
    );
}

#[test]
fn what_is_not_to_be_had_any_more_becomes_the_default() {
    let fake = Fake::new(&[(7, LAB), (8, LAB)]);
    fake.host().socket(7).algorithm = "vegas".to_owned();
    let mut tuner = fake.tuner();
    tuner.apply(policy([lab()])).unwrap();
    fake.host().refused.insert("vegas".to_owned());
    fake.host().sockets.get_mut(&7).unwrap().default = "cubic".to_owned();
    fake.deeds();
    tuner.finish().unwrap();
    let orders = fake.orders();
    assert_eq!(
        orders,
        [
            releases(7, "vegas"),
            releases(8, "reno"),
            releases(7, "cubic")
        ]
    );
    assert!(fake.journal().has_returned(&fake.host().sockets[&7]));
}

#[test]
fn off_is_one_write_and_on_another() {
    let (fake, mut tuner) = applied(&[(7, LAB)], [with(|p| p.clamp = 5)]);
    let on = fake.host().control.clone();
    fake.host().now_us += 5;
    tuner.switch(true).unwrap();
    let off = Control {
        off: true,
        heartbeat_us: on.heartbeat_us + 5,
        ..on.clone()
    };
    assert_eq!(fake.deeds(), [Deed::Controlled(off)]);
    assert_eq!((clamp_of(&fake, 7), tuner.is_off()), (None, true));
    tuner.settle().unwrap();
    assert_eq!(fake.deeds(), []);
    tuner.switch(false).unwrap();
    let on = Control {
        heartbeat_us: on.heartbeat_us + 5,
        ..on
    };
    assert_eq!(fake.deeds(), [Deed::Controlled(on)]);
    assert_eq!(clamp_of(&fake, 7), Some(5));
}

#[test]
fn off_gives_flows_on_algorithms_of_the_kernel_back() {
    let (fake, mut tuner) = applied(&[(7, LAB)], [kernels("dctcp")]);
    tuner.switch(true).unwrap();
    assert_eq!(fake.orders(), [releases(7, "reno")]);
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), []);
    tuner.switch(false).unwrap();
    assert_eq!(fake.orders(), [adopts(7, "dctcp")]);
}

#[test]
fn flows_that_begin_while_it_is_off_are_left_alone_until_it_is_on() {
    let (fake, mut tuner) = applied(&[], [lab()]);
    tuner.switch(true).unwrap();
    fake.host().opens(7, LAB);
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), []);
    tuner.switch(false).unwrap();
    assert_eq!(fake.orders(), [adopts(7, "fp_aimd")]);
}

/// The tuner is killed, and its programs with it.
fn crash(fake: &Fake, tuner: Tuner<Fake>) {
    drop(tuner);
    fake.host().forgets();
    fake.deeds();
}

fn revert(fake: &Fake) -> Vec<String> {
    let seen = fake.clone().flows(&[]).unwrap();
    give_back(&mut fake.clone(), &mut fake.journal(), PREFIX, seen, |_| {
        true
    })
    .unwrap()
}

#[test]
fn revert_gives_back_what_the_journal_has() {
    let fake = Fake::new(&[(7, LAB), (8, LAB), (9, ELSEWHERE)]);
    fake.host().socket(7).algorithm = "cubic".to_owned();
    let mut tuner = fake.tuner();
    let sized = Rule {
        send_buffer: Some(50_000),
        ..kernels("dctcp")
    };
    tuner.apply(policy([sized])).unwrap();
    // One that the programs have given it, and one that somebody has changed since.
    fake.host().opens(10, LAB);
    hear(&mut tuner);
    assert_eq!(fake.host().socket(7).send_buffer, 100_000);
    crash(&fake, tuner);
    fake.host().choose(8, "bbr");
    let lines = revert(&fake);
    let orders = [
        releases(7, "cubic"),
        releases(8, "bbr"),
        releases(10, "reno"),
    ];
    assert_eq!((fake.orders(), lines.len()), (orders.to_vec(), 3));
    let mut host = fake.host();
    let socket = host.socket(7);
    assert_eq!((socket.send_buffer, socket.locks.send), (87_040, false));
    drop(host);
    // Once.
    assert_eq!((revert(&fake), fake.deeds()), (vec![], vec![]));
}

#[test]
fn sizes_come_back_where_the_socket_cannot_be_reached() {
    let sized = Rule {
        send_buffer: Some(50_000),
        ..lab()
    };
    let (fake, mut tuner) = applied(&[(7, LAB)], [sized]);
    fake.host().failing = Some(Failing::Resize);
    tuner.finish().unwrap();
    let mut host = fake.host();
    assert_eq!(
        (host.socket(7).send_buffer, host.socket(7).locks.send),
        (87_040, true)
    );
    let said = tuner.take_log().pop().unwrap();
    assert!(
        said.contains("does not tune its buffers any more"),
        "{said}"
    );
}

#[test]
fn what_a_tuner_before_has_left_is_given_back_first() {
    let (fake, tuner) = applied(&[(7, LAB), (8, ELSEWHERE)], [lab()]);
    crash(&fake, tuner);
    let mut next = fake.tuner();
    next.apply(policy([lab()])).unwrap();
    assert_eq!(fake.orders(), [releases(7, "reno"), adopts(7, "fp_aimd")]);
}

/// What is in force is `before`, for running flows and for new ones, after an apply that failed.
fn is_as_before(fake: &Fake, tuner: &mut Tuner<Fake>, clamp: u32, cookie: u64) {
    fake.host().failing = None;
    assert_eq!(clamp_of(fake, 7), Some(clamp));
    fake.host().opens(cookie, LAB);
    hear(tuner);
    assert_eq!(clamp_of(fake, cookie), Some(clamp));
    let Action::Ours { params, .. } = &tuner.rules()[0].action else {
        unreachable!("an action of ours")
    };
    assert_eq!(params.clamp, clamp);
}

#[test]
fn a_write_that_fails_leaves_the_rules_before_in_force() {
    let ceiling = |fake: &Fake| fake.journal().entry((1, 7)).unwrap().given.ceiling;
    let numbers =
        |clamp: u32, pacing: u64| policy([with(|p| (p.clamp, p.pacing) = (clamp, pacing))]);
    let (fake, mut tuner) = applied(&[(7, LAB)], numbers(10, 1000).rules);
    for (failing, cookie) in [(Failing::Fill, 20), (Failing::Control, 21)] {
        fake.host().failing = Some(failing);
        tuner.apply(numbers(20, 2000)).unwrap_err();
        is_as_before(&fake, &mut tuner, 10, cookie);
        assert_eq!(ceiling(&fake), 1000, "what flows have");
    }
    tuner.apply(numbers(20, 2000)).unwrap();
    assert_eq!(clamp_of(&fake, 7), Some(20));
    assert_eq!((ceiling(&fake), fake.orders()), (2000, vec![]));
}

#[test]
fn an_apply_whose_flows_cannot_be_moved_leaves_the_rules_before_in_force() {
    let (fake, mut tuner) = applied(&[(7, LAB), (8, LAB)], [with(|p| p.clamp = 10)]);
    for (failing, cookie) in [(Failing::Flows, 20), (Failing::Orders(0), 21)] {
        fake.host().failing = Some(failing);
        tuner.apply(policy([kernels("dctcp")])).unwrap_err();
        is_as_before(&fake, &mut tuner, 10, cookie);
    }
    // Some were moved: the next look moves them back.
    fake.host().failing = Some(Failing::Orders(1));
    tuner.apply(policy([kernels("dctcp")])).unwrap_err();
    assert_eq!(["dctcp", "fp_aimd"], [7, 8].map(|c| algorithm_of(&fake, c)));
    fake.host().failing = None;
    fake.deeds();
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), [adopts(7, "fp_aimd")]);
    // The journal says what they have, whatever was written before the failure.
    tuner.settle().unwrap();
    let journal = fake.journal();
    let given = [7, 8].map(|c| journal.entry((1, c)).unwrap().given.algorithm.as_str());
    assert_eq!(given, ["fp_aimd"; 2]);
    // And the next apply moves all.
    tuner.apply(policy([kernels("dctcp")])).unwrap();
    assert_eq!(fake.orders().len(), 4);
}

#[test]
fn a_release_that_fails_in_the_middle_is_mended_by_the_next() {
    let (fake, mut tuner) = applied(&[(7, LAB), (8, LAB)], [lab()]);
    fake.host().failing = Some(Failing::Orders(1));
    tuner.apply(empty()).unwrap_err();
    fake.host().failing = None;
    // The first has been given back, and nobody has heard of it: its algorithm is not its program's
    // choice.
    tuner.apply(policy([lab()])).unwrap();
    assert_eq!(["fp_aimd"; 2], [7, 8].map(|c| algorithm_of(&fake, c)));
    tuner.finish().unwrap();
    assert_eq!(["reno"; 2], [7, 8].map(|c| algorithm_of(&fake, c)));
}

#[test]
fn parameters_of_one_flow_that_cannot_be_given_are_none() {
    let (fake, mut tuner) = applied(&[(7, LAB), (8, LAB)], [with(|p| p.clamp = 10)]);
    let own = with(|p| p.clamp = 3).action;
    for failing in [
        Failing::Fill,
        Failing::Control,
        Failing::Flows,
        Failing::Orders(0),
    ] {
        fake.host().failing = Some(failing);
        tuner.set_flow(7, "lab", own.clone(), "own").unwrap_err();
        fake.host().failing = None;
        tuner.settle().unwrap();
        assert_eq!(
            [Some(10); 2],
            [7, 8].map(|c| clamp_of(&fake, c)),
            "{failing:?}"
        );
    }
    tuner.set_flow(7, "lab", own, "own").unwrap();
    assert_eq!([Some(3), Some(10)], [7, 8].map(|c| clamp_of(&fake, c)));
}

#[test]
fn a_sign_of_life_is_the_clocks() {
    let (fake, mut tuner) = applied(&[(7, LAB)], [with(|p| p.clamp = 10)]);
    let patience = PATIENCE.as_micros() as u64;
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

#[test]
fn a_flow_whose_record_was_lost_is_in_the_journal_with_the_next_look() {
    let (fake, mut tuner) = applied(&[], [kernels("dctcp")]);
    fake.host().is_full = true;
    fake.host().opens(7, LAB);
    hear(&mut tuner);
    tuner.settle().unwrap();
    crash(&fake, tuner);
    revert(&fake);
    assert_eq!(fake.orders(), [releases(7, "reno")]);
}

#[test]
fn a_record_that_comes_late_says_nothing_of_what_was_ordered_since() {
    let (fake, mut tuner) = applied(&[], [lab()]);
    fake.host().opens(7, LAB);
    fake.host().opens(8, LAB);
    // Before anybody has heard of them.
    tuner.apply(policy([kernels("dctcp")])).unwrap();
    tuner.release(|l| l.cookie == 8).unwrap();
    hear(&mut tuner);
    let journal = fake.journal();
    assert_eq!(journal.entry((1, 7)).unwrap().given.algorithm, "dctcp");
    assert!(journal.has_returned(&fake.host().sockets[&8]));
    fake.deeds();
    tuner.adopt().unwrap();
    assert_eq!(fake.orders(), [adopts(8, "dctcp")]);
}

#[test]
fn flows_whose_peer_has_closed_its_end_are_moved_too() {
    let (fake, mut tuner) = applied(&[(7, LAB)], [lab()]);
    fake.host().socket(7).state = CLOSE_WAIT;
    let other = rule("other", "203.0.113.0", 24);
    // The number of the path that has gone becomes another's.
    tuner.apply(policy([])).unwrap();
    tuner.apply(policy([other])).unwrap();
    assert_eq!(
        (clamp_of(&fake, 7), algorithm_of(&fake, 7)),
        (None, "reno".into())
    );
}
