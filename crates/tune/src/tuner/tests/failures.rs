//! What stands after a failure, a crash, and records that come late or not at all.

use super::*;
use crate::fake::NAMESPACE;

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
    .lines
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

/// A flow without an ACK since its part became smaller has the ceiling from before, and one whose
/// order was cut off by a crash its algorithm and its buffer: the journal knows those, too.
#[test]
fn what_has_not_reached_a_flow_yet_does_not_hide_what_it_has() {
    let given_back = |fake: &Fake| {
        revert(fake);
        let flow = fake.listing(7);
        (flow.algorithm, flow.max_pacing, flow.send_buffer)
    };
    let before = ("reno".to_owned(), u64::MAX, 87_040);
    let whole = Rule {
        divide: true,
        ..with(|p| p.pacing = 9_000)
    };
    let (fake, mut tuner) = applied(&[(7, LAB)], [whole]);
    // By the programs, at an ACK.
    fake.host().socket(7).max_pacing = 9_000;
    fake.host().opens(9, LAB);
    hear(&mut tuner);
    assert_eq!(fake.journal().entry((1, 7)).unwrap().given.ceiling, 4_500);
    crash(&fake, tuner);
    assert_eq!(given_back(&fake), before);

    let buffered = |name: &str, bytes| Rule {
        send_buffer: Some(bytes),
        ..kernels(name)
    };
    let (fake, mut tuner) = applied(&[(7, LAB)], [buffered("dctcp", 120_000)]);
    fake.host().failing = Some(Failing::Orders(0));
    tuner.apply(policy([buffered("bbr", 60_000)])).unwrap_err();
    fake.host().failing = None;
    crash(&fake, tuner);
    assert_eq!(fake.listing(7).algorithm, "dctcp");
    assert_eq!(given_back(&fake), before);
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
fn what_the_journal_does_not_know_is_told() {
    let (fake, tuner) = applied(&[(7, LAB), (8, LAB)], [lab()]);
    crash(&fake, tuner);
    let path = fake.host().journal();
    let text = std::fs::read_to_string(&path).unwrap();
    let damaged = text.lines().filter(|line| !line.contains("\"cookie\":8,"));
    std::fs::write(&path, damaged.collect::<Vec<_>>().join("\n")).unwrap();
    let lines = revert(&fake);
    assert_eq!(lines.len(), 2);
    assert!(lines[0].ends_with(": reno again"), "{lines:?}");
    assert!(
        lines[1].contains("the journal has no line about it"),
        "{lines:?}"
    );
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

/// A program may close what it has written long before the last of it has left.
#[test]
fn what_a_program_has_closed_stays_on_its_path() {
    let mut only = lab();
    only.selector.process = Some(PROGRAM.to_owned());
    let (fake, mut tuner) = applied(&[(7, LAB)], [only]);
    assert_eq!(algorithm_of(&fake, 7), format!("{PREFIX}aimd"));
    {
        let mut host = fake.host();
        let socket = host.socket(7);
        (socket.state, socket.inode) = (FIN_WAIT1, 0);
    }
    tuner.settle().unwrap();
    assert_eq!(fake.deeds(), []);
    assert_eq!(algorithm_of(&fake, 7), format!("{PREFIX}aimd"));
    // Without its path it goes like any other.
    tuner.apply(policy([])).unwrap();
    assert_eq!(algorithm_of(&fake, 7), "reno");
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

/// A crash would leave what is not written down.
#[test]
fn new_flows_that_cannot_be_written_down_are_given_back_until_they_can() {
    let (fake, mut tuner) = applied(&[(7, LAB)], [lab()]);
    tuner.journal.fill_disk(true);
    fake.host().opens(8, LAB);
    let why = tuner.tick(Duration::ZERO).unwrap_err();
    assert!(matches!(why, TuneError::Journal(_)), "{why}");
    assert_eq!(["fp_aimd", "reno"], [7, 8].map(|c| algorithm_of(&fake, c)));
    let said = tuner.take_log().pop().unwrap();
    assert!(
        said.ends_with(": given back, as it could not be written down: reno again"),
        "{said}"
    );
    // A look does not take it either.
    tuner.settle().unwrap_err();
    assert_eq!(algorithm_of(&fake, 8), "reno");
    tuner.journal.fill_disk(false);
    tuner.settle().unwrap();
    assert_eq!(algorithm_of(&fake, 8), "fp_aimd");
    assert!(fake.journal().knows((1, 8)));
}

#[test]
fn a_full_disk_keeps_nothing_from_being_given_back_and_nothing_in_the_journal() {
    let (fake, mut tuner) = applied(&[(7, LAB), (8, LAB)], [lab()]);
    fake.host().ends(8);
    tuner.take_log();
    tuner.journal.fill_disk(true);
    tuner.finish().unwrap();
    assert_eq!(algorithm_of(&fake, 7), "reno");
    assert_eq!(tuner.take_log().len(), 1);
    let journal = fake.journal();
    assert_eq!(journal.entries().count(), 0);
    assert!(journal.has_returned(&fake.host().sockets[&7]));
}

#[test]
fn flows_out_of_reach_are_counted_and_stay_written_down() {
    let (fake, mut tuner) = applied(&[(7, LAB)], [lab()]);
    let entry = tuner.journal.entries().next().unwrap().1.clone();
    let elsewhere = |cookie| ((NAMESPACE + 1, cookie), entry.clone());
    tuner.journal.touch([elsewhere(8), elsewhere(9)]).unwrap();
    // No listing shows them.
    tuner.settle().unwrap();
    tuner.finish().unwrap();
    assert_eq!(algorithm_of(&fake, 7), "reno");
    assert_eq!(tuner.out_of_reach(), 2);
}
