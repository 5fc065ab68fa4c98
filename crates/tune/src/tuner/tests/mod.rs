//! What the tuner has the kernel do, in which order: each flow's rule, and what it had before.

mod failures;
mod paths;

use std::time::Duration;

use fullpipe_policy::{Measurements, Policy, Side, Source};

use super::*;
use crate::daemon::make_due;
use crate::fake::{CLOSE_WAIT, Deed, ENOENT, FIN_WAIT1, Failing, Fake, PREFIX, PROGRAM};
use crate::testing::{empty, rule};

const LAB: &str = "198.18.0.1";
const ELSEWHERE: &str = "203.0.113.1";

fn lab() -> Rule {
    rule("lab", "198.18.0.0", 15)
}

/// The same path on an algorithm of the kernel's own.
fn kernels(name: &str) -> Rule {
    Rule {
        action: Action::Kernel {
            name: name.to_owned(),
            pacing: 0,
        },
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
    let refused = format!(
        "refused, error {} (no such algorithm, or its module is not loaded)",
        -ENOENT
    );
    assert!(tuner.take_log()[0].ends_with(&refused));
    tuner.settle().unwrap();
    assert_eq!(fake.orders(), []);
    // With a new policy it is tried again.
    fake.host().refused.clear();
    tuner.apply(policy([kernels("dctcp")])).unwrap();
    assert_eq!(fake.orders(), [adopts(7, "dctcp")]);
}

/// A preview says what an apply of the same rules then does, and does none of it: what the kernel
/// has refused is asked for again.
#[test]
fn a_preview_is_what_an_apply_does() {
    for next in [kernels("dctcp"), lab(), kernels("cubic")] {
        let fake = Fake::new(&[(7, LAB), (8, LAB), (9, ELSEWHERE)]);
        fake.host().refused.insert("dctcp".to_owned());
        let mut tuner = fake.tuner();
        tuner.apply(policy([kernels("dctcp")])).unwrap();
        fake.deeds();
        let before = tuner.rules().to_vec();
        let decided = tuner.preview(policy([next.clone()])).unwrap();
        let orders = decided.iter().filter_map(|d| {
            let order = d.order.as_ref()?;
            Some((d.seen.listing.cookie, order.action, order.algorithm.clone()))
        });
        let orders: Vec<_> = orders.collect();
        assert_eq!(orders.len(), 2, "{orders:?}");
        assert_eq!((fake.deeds(), tuner.rules()), (vec![], &before[..]));
        tuner.apply(policy([next])).unwrap();
        assert_eq!(fake.orders(), orders);
    }
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

/// Behind the end nobody gives back what a flow is given.
#[test]
fn a_flow_that_begins_at_the_end_is_given_nothing() {
    for rule in [lab(), kernels("dctcp")] {
        let (fake, mut tuner) = applied(&[(7, LAB)], [rule]);
        fake.host().opening = Some((8, LAB));
        tuner.finish().unwrap();
        fake.host().opens(9, LAB);
        let had = [7, 8, 9].map(|cookie| fake.listing(cookie).algorithm);
        assert_eq!(had, ["reno", "reno", "reno"]);
    }
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
