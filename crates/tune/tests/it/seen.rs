//! Every ACK as `watch` records it, and what `inject` does to segments.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use fullpipe_emulate::namespace::{DEVICE, Side, addresses};
use fullpipe_emulate::netlink::Links;
use fullpipe_observe::Filter;
use fullpipe_policy::Params;
use fullpipe_tune::inject::{self, Fault, InjectError, Losses};
use fullpipe_tune::layout::Kind;
use fullpipe_tune::watch::{self, Met, Seen, Sight, Watch};

use crate::flows::{gets_on, only};
use crate::layout::of_c;
use crate::support::{Ground, Road, aimd, policy, prefix, rule, run, send_buffer};

#[test]
fn structures_are_those_of_the_programs() {
    let Some(c) = of_c("seen.c") else { return };
    let filter = Filter {
        remote: vec!["192.0.2.0/24".parse().unwrap(), "::/0".parse().unwrap()],
        ports: vec![443, 5001, 5201],
        loopback: false,
    };
    assert_eq!(watch::filter_bytes(Some(&filter)), c["filter"]);
    assert_eq!(watch::filter_bytes(None), vec![0; watch::size::FILTER]);
    assert_eq!(watch::network_bytes(&filter.remote[0]), c["network"]);
    assert_eq!(c["known"].len(), watch::size::KNOWN);
    assert_eq!(c["known"][..4], 1u32.to_ne_bytes());
    let met = Met {
        time_us: 1,
        cookie: 2,
        local: "[::1]:4".parse().unwrap(),
        remote: "[2000::]:5".parse().unwrap(),
        algorithm: "fp_bic".into(),
        mss: 3,
    };
    assert_eq!(Sight::read(&c["met"]), Some(Sight::Met(met)));
    let seen = Seen {
        time_us: 1,
        cookie: 2,
        ours: Some((0.5, 5.0, 6.0 / 64.0)),
        cwnd: 7,
        ssthresh: 8,
        srtt_us: 9,
        rtt_us: 10,
        min_rtt_us: 11,
        packets_out: 12,
        sacked_out: 13,
        lost_out: 14,
        retrans_out: 15,
        delivered: 16,
        delivered_ce: 17,
        retransmitted: 18,
        timeouts: 19,
        mss: 20,
        state: 3,
        pacing: 22,
        bytes_acked: 23,
    };
    assert_eq!(Sight::read(&c["seen"]), Some(Sight::Ack(Box::new(seen))));
    let fault = Fault {
        kind: inject::Kind::Ack,
        to: Some((filter.remote[0].prefix().0, 24)),
        port: Some(5),
        every: Some(6),
        probability: 0.5,
        bursts: Some((0.25, 0.125)),
        places: [9, 7].into(),
    };
    assert_eq!(fault.bytes(1), c["fault"]);
    assert_eq!(c["losses"].len(), inject::size::LOSSES);
    let losses = Losses {
        packets: 1,
        segments: 2,
        lost_packets: 3,
        lost_segments: 4,
    };
    assert_eq!(Losses::read(&c["losses"]), losses);
}

fn slow(lost: Vec<u64>) -> Road {
    Road {
        mbit: 20,
        rtt_ms: 40,
        buffer: 200,
        lost,
    }
}

/// One flow runs a law of ours, one the kernel's own, and one is not asked for.
#[test]
fn every_ack_of_the_chosen_flows_is_recorded_and_no_other() {
    let Some(mut ground) = Ground::new(&[slow(vec![60]), slow(vec![60]), slow(vec![])]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let [first, second] = [0, 1].map(|k| addresses(Side::Far, k).0);
    let chosen = Filter {
        remote: vec![first.to_string().parse().unwrap()],
        ..Filter::default()
    };
    let mut watch = Watch::begin(Some(&chosen)).unwrap();
    let held = rule("path", 0, "aimd", Params::default(), aimd(4.0, 0.25));
    tuner.apply(policy(vec![held])).unwrap();
    tuner.watch(u64::MAX).unwrap();
    ground.flow(0);
    let named = ground.prepared(1, true, |_| ());
    watch
        .add(rustix::net::sockopt::socket_cookie(&named).unwrap())
        .unwrap();
    ground.flow(2);
    let (mut seen, mut met, mut events) = (Vec::new(), Vec::new(), Vec::new());
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(4) {
        events.extend(run(&mut tuner, Duration::from_millis(100), |_| false));
        for sight in watch.sights().unwrap() {
            match sight {
                Sight::Met(m) => met.push(m),
                Sight::Ack(ack) => seen.push(*ack),
            }
        }
    }
    assert_eq!(watch.missed().unwrap(), 0);
    let mut flows: Vec<_> = met
        .iter()
        .map(|m| (m.remote.ip(), m.algorithm.as_str()))
        .collect();
    flows.sort();
    let ours = format!("{}aimd", prefix());
    assert_eq!(flows, [(first, ours.as_str()), (second, "reno")]);
    let of = |address| {
        let flow = met.iter().find(|m| m.remote.ip() == address).unwrap();
        seen.iter()
            .filter(|s| s.cookie == flow.cookie)
            .collect::<Vec<_>>()
    };
    let (tuned, plain) = (of(first), of(second));
    assert!(
        plain.len() > 500 && plain.iter().all(|s| s.ours.is_none()),
        "{}",
        plain.len()
    );
    // What the law itself has written at an ACK is what the next one finds.
    let mut compared = 0;
    for event in events
        .iter()
        .filter(|e| e.kind == Kind::Ack && e.rule.is_some())
    {
        let next = tuned
            .iter()
            .find(|s| s.delivered == event.delivered && s.state == event.state);
        let Some(next) = next else { continue };
        let (fraction, a, b) = next.ours.unwrap();
        assert_eq!(
            f64::from(next.cwnd) + fraction,
            event.window,
            "{next:?} {event:?}"
        );
        assert_eq!((a, b), (event.a, event.b));
        compared += 1;
    }
    println!(
        "{} ACKs of ours, {compared} compared; {} of the kernel's own",
        tuned.len(),
        plain.len()
    );
    assert!(compared > 500, "{compared}");
    for flow in [&tuned, &plain] {
        assert!(flow.windows(2).all(|w| w[0].time_us <= w[1].time_us));
        assert!(flow.windows(2).all(|w| w[0].delivered <= w[1].delivered));
        // One loss: a recovery with its ACKs, one retransmission.
        assert!(flow.iter().any(|s| s.state == 3), "no recovery");
        assert_eq!(flow.last().unwrap().retransmitted, 1);
    }
    drop(watch);
    tuner.finish().unwrap();
}

/// A flow that never fills the path's buffer: what it loses has been taken from it.
fn small(ground: &mut Ground, k: usize) {
    ground.prepared(k, true, |socket| send_buffer(socket, 100_000));
}

/// The interface sends single segments.
fn singly(ground: &Ground) {
    ground.on_near(|| Links::open()?.set_offload(DEVICE, 1));
}

fn queues(ground: &Ground) -> String {
    ground.on_near(|| {
        let tc = |args: &[&str]| {
            let out = Command::new("tc")
                .args(args)
                .args(["show", "dev", DEVICE])
                .output();
            out.map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
        };
        let filters = |way: &str| {
            let out = Command::new("tc")
                .args(["filter", "show", "dev", DEVICE, way])
                .output();
            out.map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
        };
        Ok(tc(&["qdisc"])? + &filters("egress")? + &filters("ingress")?)
    })
}

/// Loses segments for a time, on the near host.
fn lose(ground: &Ground, fault: &Fault, time: Duration) -> Result<Losses, InjectError> {
    static NEVER: AtomicBool = AtomicBool::new(false);
    let (fault, folder) = (fault.clone(), ground.folder.path().join("inject"));
    ground.on_near(move || Ok(inject::run(&fault, DEVICE, time, &folder, &NEVER, || ())))
}

fn to(k: usize) -> Fault {
    Fault {
        to: Some((addresses(Side::Far, k).0, 32)),
        ..Fault::default()
    }
}

/// All that was lost; on a busy host timers send a little more, by far not all.
fn sent_again(losses: &Losses, again: u32) {
    let (lost, again) = (losses.lost_segments, u64::from(again));
    let timers = 20 + losses.segments / 20;
    assert!(
        (lost..=4 * lost + timers).contains(&again),
        "{losses:?} {again}"
    );
}

#[test]
fn what_is_injected_is_lost_by_number_by_turns_and_by_chance_and_nobody_else_is_hit() {
    let Some(mut ground) = Ground::new(&[slow(vec![])]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    singly(&ground);
    let before = queues(&ground);
    small(&mut ground, 0);
    thread::sleep(Duration::from_millis(500));
    let port = eye.flows()[0].remote.1;
    let mut by = |fault: Fault| {
        let from = eye.flows()[0].retransmitted;
        let losses = lose(&ground, &fault, Duration::from_secs(2)).unwrap();
        // What was lost last is sent again a round trip later.
        thread::sleep(Duration::from_millis(600));
        let again = eye.flows()[0].retransmitted - from;
        println!("{fault:?}: {losses:?}, sent again {again}");
        (losses, again)
    };
    let (losses, again) = by(Fault {
        places: [100, 300].into(),
        ..to(0)
    });
    assert_eq!((losses.lost_segments, losses.lost_packets), (2, 2));
    sent_again(&losses, again);
    let (losses, again) = by(Fault {
        every: Some(200),
        port: Some(port),
        ..to(0)
    });
    assert!(losses.segments > 400, "{losses:?}");
    assert_eq!(losses.lost_segments, losses.segments / 200);
    sent_again(&losses, again);
    let (losses, again) = by(Fault {
        probability: 0.04,
        ..to(0)
    });
    // Five standard deviations, and some at all: none of a dozen that are due is as rare.
    let due = losses.segments as f64 * 0.04;
    let off = (losses.lost_segments as f64 - due).abs();
    assert!(off < 5.0 * due.sqrt() + 1.0, "{losses:?}");
    assert!(losses.lost_segments > 0, "{losses:?}");
    sent_again(&losses, again);
    let (losses, _) = by(Fault {
        bursts: Some((0.01, 0.5)),
        ..to(0)
    });
    assert!(losses.lost_segments > 0, "{losses:?}");
    let (losses, _) = by(Fault {
        kind: inject::Kind::Ack,
        every: Some(3),
        ..to(0)
    });
    assert!(losses.lost_packets > 50, "{losses:?}");
    // Of another host, and of another port, it is for nothing.
    let nobody = Fault {
        every: Some(2),
        ..to(1)
    };
    let other_port = Fault {
        every: Some(2),
        port: Some(port ^ 1),
        ..to(0)
    };
    for fault in [nobody, other_port] {
        assert_eq!(by(fault).0, Losses::default());
    }
    assert_eq!(
        queues(&ground),
        before,
        "something is left on the interface"
    );
    assert!(eye.gets_on(), "a flow stalls");
}

/// A segment that is refused reduces the window; nothing is lost. One that is lost is sent again.
/// A device that lost packets of its own, as one may whose reader a busy machine holds up, has
/// stalls and losses of its own: then it is tried again.
#[test]
fn a_refusal_is_a_stall_and_a_loss_is_a_cut() {
    for _ in 0..12 {
        let Some(mut ground) = Ground::new(&[slow(vec![])]) else {
            return;
        };
        let Some(mut tuner) = ground.tuner() else {
            return;
        };
        singly(&ground);
        let held = rule("path", 0, "aimd", Params::default(), aimd(1.0, 0.25));
        tuner.apply(policy(vec![held])).unwrap();
        small(&mut ground, 0);
        gets_on(&mut tuner);
        let mut after = |kind| {
            let fault = Fault {
                kind,
                places: [200].into(),
                ..to(0)
            };
            let losses = lose(&ground, &fault, Duration::from_secs(1)).unwrap();
            run(&mut tuner, Duration::from_millis(200), |_| false);
            let known = only(&mut tuner);
            let flow = known.flow.unwrap();
            let seen = (flow.stalls, flow.cuts, known.retransmitted);
            (losses.lost_segments, seen)
        };
        let seen = [inject::Kind::Stall, inject::Kind::Loss].map(&mut after);
        tuner.finish().unwrap();
        if ground.device_drops() == 0 {
            assert_eq!(seen, [(1, (1, 0, 0)), (1, (1, 1, 1))]);
            return;
        }
        eprintln!("{seen:?}, and {} lost by devices", ground.device_drops());
    }
    panic!("the devices lost packets in each of twelve attempts");
}

/// What a filter lets pass is not seen by those behind it: ours is the first one, and leaves the
/// others where they are. Before one in the first place nothing can be, and that is said.
#[test]
fn filters_that_were_there_hide_nothing_and_stay() {
    let Some(mut ground) = Ground::new(&[slow(vec![])]) else {
        return;
    };
    let tc = |ground: &Ground, line: &'static str| {
        let words = line.split(' ').collect::<Vec<_>>();
        ground.on_near(move || Command::new("tc").args(words).output())
    };
    singly(&ground);
    tc(&ground, "qdisc add dev fullpipe0 clsact");
    for line in [
        "filter add dev fullpipe0 ingress prio 7 u32 match u32 0 0 flowid 1:1",
        "filter add dev fullpipe0 egress prio 7 u32 match u32 0 0 flowid 1:1",
    ] {
        let made = tc(&ground, line);
        if !made.status.success() {
            eprintln!("skipped: {}", String::from_utf8_lossy(&made.stderr));
            return;
        }
    }
    let before = queues(&ground);
    small(&mut ground, 0);
    for kind in [inject::Kind::Ack, inject::Kind::Loss] {
        let fault = Fault {
            kind,
            every: Some(20),
            ..to(0)
        };
        let losses = lose(&ground, &fault, Duration::from_secs(2)).unwrap();
        println!("{kind:?}: {losses:?}");
        assert!(losses.lost_packets > 5, "{kind:?}: {losses:?}");
        assert_eq!(queues(&ground), before, "{kind:?}");
    }
    let first = "filter add dev fullpipe0 ingress prio 1 u32 match u32 0 0 flowid 1:1";
    assert!(tc(&ground, first).status.success());
    let before = queues(&ground);
    let fault = Fault {
        kind: inject::Kind::Ack,
        every: Some(20),
        ..to(0)
    };
    let refused = lose(&ground, &fault, Duration::from_secs(1)).unwrap_err();
    let why = refused.to_string();
    assert!(
        why.starts_with("another filter has the first place on fullpipe0"),
        "{why}"
    );
    assert_eq!(queues(&ground), before);
}

#[test]
fn what_is_not_narrow_is_refused() {
    let address = addresses(Side::Far, 0).0;
    let every = Fault {
        every: Some(10),
        ..Fault::default()
    };
    for (fault, why) in [
        (every.clone(), "no network is given"),
        (to(0), "nothing says what is lost"),
        (
            Fault {
                to: Some((address, 24)),
                ..every.clone()
            },
            "a network takes a port besides",
        ),
        (
            Fault {
                to: Some((address, 23)),
                port: Some(5001),
                ..every.clone()
            },
            "the network has more than 256 addresses",
        ),
        (
            Fault {
                to: Some((address, 32)),
                places: (0..17).collect(),
                ..every.clone()
            },
            "more than 16 segments by number",
        ),
    ] {
        assert_eq!(fault.narrow().unwrap_err().to_string(), why);
    }
    let narrow = Fault {
        to: Some((address, 24)),
        port: Some(5001),
        ..every
    };
    narrow.narrow().unwrap();
    static NEVER: AtomicBool = AtomicBool::new(false);
    let folder = tempfile::tempdir().unwrap();
    let long = Duration::from_secs(601);
    let refused = inject::run(&narrow, "lo", long, folder.path(), &NEVER, || ());
    assert_eq!(refused.unwrap_err().to_string(), "longer than 600 s");
    assert!(!inject::clear(folder.path()).unwrap());
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "a note that says nothing");
}

const FOLDER: &str = "INJECT_FOLDER";

/// The process that is killed.
#[test]
#[ignore = "the process of the other test, which starts it"]
fn inject_process() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    static NEVER: AtomicBool = AtomicBool::new(false);
    let fault = Fault {
        every: Some(2),
        ..to(0)
    };
    let begun = || eprintln!("begun");
    let time = Duration::from_secs(3);
    inject::run(&fault, DEVICE, time, &PathBuf::from(folder), &NEVER, begun).unwrap();
}

#[test]
fn a_killed_inject_ends_by_itself_and_is_taken_away() {
    use std::io::{BufRead, BufReader};
    let Some(mut ground) = Ground::new(&[slow(vec![])]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let before = queues(&ground);
    let folder = ground.folder.path().join("inject");
    small(&mut ground, 0);
    let mut command = Command::new("/proc/self/exe");
    command.args([
        "--ignored",
        "--exact",
        "--nocapture",
        "seen::inject_process",
    ]);
    command
        .env(FOLDER, &folder)
        .stderr(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = ground.on_near(move || command.spawn());
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let begun = Instant::now();
    assert_eq!(said.next().unwrap().unwrap(), "begun");
    // Another one at the same time is refused.
    let other = lose(
        &ground,
        &Fault {
            every: Some(2),
            ..to(0)
        },
        Duration::from_secs(1),
    );
    assert!(
        other
            .unwrap_err()
            .to_string()
            .contains("another `inject` runs")
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(
        queues(&ground),
        before,
        "nothing is left that could be taken away"
    );
    // Half of all segments are lost until its time is over, and none after.
    thread::sleep(Duration::from_secs(4).saturating_sub(begun.elapsed()));
    let resent = |eye: &mut crate::support::Eye| eye.flows()[0].retransmitted;
    assert!(resent(&mut eye) > 5);
    let mut quiet = 0;
    while quiet < 2 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it goes on losing"
        );
        let from = resent(&mut eye);
        assert!(eye.gets_on(), "the flow stalls");
        thread::sleep(Duration::from_millis(300));
        quiet = if resent(&mut eye) == from {
            quiet + 1
        } else {
            0
        };
    }
    let cleared = |folder: &Path| {
        ground.on_near({
            let folder = folder.to_owned();
            move || Ok(inject::clear(&folder))
        })
    };
    assert!(cleared(&folder).unwrap());
    assert_eq!(queues(&ground), before, "something is left");
    assert!(!cleared(&folder).unwrap());
    assert!(!folder.join("note").exists(), "an empty note");
}
