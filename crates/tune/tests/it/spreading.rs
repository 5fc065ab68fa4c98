//! Initial Spreading, as it is seen on the interface and where it ends.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use fullpipe_emulate::namespace::{DEVICE, Side, addresses};
use fullpipe_emulate::netlink::Links;
use fullpipe_emulate::queues::Queue;
use fullpipe_policy::{Params, Rule, Via};
use fullpipe_tune::bpf::Bpf;
use fullpipe_tune::namespaces::Scope;
use fullpipe_tune::spread::{Classifiers, Mechanism, Spreading, take_off};
use fullpipe_tune::tuner::Tuner;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

use crate::support::{Ground, Road, aimd, policy, rule};

pub const WINDOW: u32 = 24;
pub const GAP_MS: f64 = 4.0;

pub fn road() -> Road {
    Road {
        mbit: 100,
        rtt_ms: 300,
        buffer: 1000,
        lost: vec![],
    }
}

/// A path whose 24 segments are to leave 4 ms apart.
pub fn spread(name: &str, k: usize, via: Via) -> Rule {
    let params = Params {
        initial_window: WINDOW,
        spread_us: (f64::from(WINDOW) * GAP_MS * 1000.0) as u32,
        ..Params::default()
    };
    Rule {
        via,
        ..rule(name, k, "aimd", params, aimd(1.0, 0.5))
    }
}

/// Sees what leaves by the near host's interface, with the kernel's time of the departure: behind
/// every queue.
struct Wire(OwnedFd);

impl Wire {
    fn on(ground: &Ground) -> Self {
        Self(ground.on_near(|| {
            let wire = socket(
                AddressFamily::Packet,
                SockType::Datagram,
                SockFlag::SOCK_NONBLOCK,
                SockProtocol::EthAll,
            )?;
            nix::sys::socket::setsockopt(
                &wire,
                nix::sys::socket::sockopt::ReceiveTimestampns,
                &true,
            )?;
            Ok(wire)
        }))
    }

    /// Milliseconds of the departures, and payloads, of packets with data to the address.
    fn departures(&self, to: [u8; 4]) -> Vec<(f64, usize)> {
        use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
        let mut seen = Vec::new();
        let mut bytes = vec![0; 1 << 16];
        let mut space = nix::cmsg_space!(nix::sys::time::TimeSpec);
        loop {
            let mut parts = [io::IoSliceMut::new(&mut bytes)];
            let flags = MsgFlags::empty();
            let got = recvmsg::<()>(self.0.as_raw_fd(), &mut parts, Some(&mut space), flags);
            let Ok(got) = got else { return seen };
            let n = got.bytes;
            let stamp = got.cmsgs().unwrap().find_map(|c| match c {
                ControlMessageOwned::ScmTimestampns(t) => Some(t),
                _ => None,
            });
            let at = stamp.expect("a time stamp");
            // IPv4 and TCP, each with its length in words.
            let packet = &bytes[..n];
            if n < 40 || packet[0] >> 4 != 4 || packet[9] != 6 || packet[16..20] != to {
                continue;
            }
            let ip = usize::from(packet[0] & 15) * 4;
            let headers = ip + usize::from(packet[ip + 12] >> 4) * 4;
            if n > headers {
                let ms = at.tv_sec() as f64 * 1e3 + at.tv_nsec() as f64 / 1e6;
                seen.push((ms, n - headers));
            }
        }
    }
}

/// What leaves within a round trip when a program has much to say, to road `k` or, if the other end
/// connects, from it.
fn opening(ground: &Ground, wire: &Wire, from: Side, k: usize) -> Vec<(f64, usize)> {
    let to = match from {
        Side::Near => addresses(Side::Far, k).0,
        Side::Far => addresses(Side::Near, k).0,
    };
    let std::net::IpAddr::V4(far) = addresses(Side::Far, k).0 else {
        unreachable!("the first is IPv4")
    };
    let (near, _far) = ground.pair(from, to);
    near.set_nonblocking(true).unwrap();
    wire.departures(far.octets());
    assert!((&near).write(&[0; 100_000]).unwrap() > 50_000);
    std::thread::sleep(Duration::from_millis(200));
    wire.departures(far.octets())
}

fn gaps(seen: &[(f64, usize)]) -> Vec<f64> {
    seen.windows(2).map(|w| w[1].0 - w[0].0).collect()
}

/// A flow opens, and its segments leave as they should. A machine that stops for a while spoils one
/// opening and not three. Before each the tuner gives a sign of life: without one for three seconds
/// flows are standard.
#[track_caller]
fn assert_leaves(
    tuner: &mut Tuner<Bpf>,
    open: impl Fn() -> Vec<(f64, usize)>,
    should: impl Fn(&[(f64, usize)]) -> Result<(), String>,
) -> Vec<(f64, usize)> {
    let mut wrong = String::new();
    for _ in 0..3 {
        tuner.tick(Duration::ZERO).unwrap();
        let seen = open();
        match should(&seen) {
            Ok(()) => return seen,
            Err(why) => wrong = why,
        }
        println!("{wrong}");
    }
    panic!("{wrong}");
}

/// One by one, as far apart as was asked for, from this one on.
#[track_caller]
fn assert_spread(
    tuner: &mut Tuner<Bpf>,
    first: usize,
    open: impl Fn() -> Vec<(f64, usize)>,
) -> Vec<(f64, usize)> {
    assert_leaves(tuner, open, |seen| spread_as_asked(seen, first))
}

/// The whole window within two of the gaps that spreading would make.
fn burst_as_asked(seen: &[(f64, usize)]) -> Result<(), String> {
    let last = gaps(seen).iter().sum::<f64>();
    let payload: usize = seen.iter().map(|(_, bytes)| bytes).sum();
    match last < 2.0 * GAP_MS && payload == WINDOW as usize * 1448 {
        true => Ok(()),
        false => Err(format!("{last} ms, {payload} bytes: {seen:?}")),
    }
}

fn spread_as_asked(seen: &[(f64, usize)], first: usize) -> Result<(), String> {
    let gaps = gaps(seen);
    println!("{} packets, gaps of {gaps:.2?} ms", seen.len());
    let is_whole = seen.len() == WINDOW as usize && seen.iter().all(|(_, bytes)| *bytes == 1448);
    if !is_whole {
        return Err(format!("{seen:?}"));
    }
    // A busy machine is late now and then, and never early by more than it was late before.
    let spaced = &gaps[first..];
    let mean = spaced.iter().sum::<f64>() / spaced.len() as f64;
    let near = spaced.iter().filter(|g| (*g - GAP_MS).abs() < 0.5).count();
    match (mean / GAP_MS - 1.0).abs() < 0.15 && near * 4 >= spaced.len() * 3 {
        true => Ok(()),
        false => Err(format!("{mean} ms: {gaps:?}")),
    }
}

fn queues(ground: &Ground) -> Vec<Queue> {
    ground.on_near(|| Links::open()?.queues(DEVICE))
}

#[test]
fn an_initial_window_is_spread_on_the_wire() {
    let Some(ground) = Ground::new(&[road(), road(), road()]) else {
        return;
    };
    let Some((mut tuner, classifiers)) = ground.tuner_with_classifiers() else {
        return;
    };
    let record = ground.folder.path().join("queues");
    let scope = || Scope::Some(vec![ground.near()]);
    let mut spreading = Spreading::new(classifiers, scope(), &record).unwrap();
    let before = queues(&ground);
    let burst = Params {
        initial_window: WINDOW,
        ..Params::default()
    };
    let rules = vec![
        spread("spread", 0, Via::Auto),
        rule("burst", 1, "aimd", burst, aimd(1.0, 0.5)),
    ];
    tuner.apply(policy(rules)).unwrap();
    let wire = Wire::on(&ground);
    // Without a queue the kernel's pacing has those from the eleventh on.
    let seen = assert_spread(&mut tuner, 9, || opening(&ground, &wire, Side::Near, 0));
    let ten = gaps(&seen)[..9].iter().sum::<f64>();
    assert!(ten < GAP_MS, "{ten} ms: {seen:?}");
    let lines = spreading
        .apply(tuner.rules(), |path| tuner.number(path))
        .unwrap();
    println!("{lines:?}");
    let how = spreading.mechanisms().next().expect("an interface").1;
    if how == Mechanism::BeyondTen {
        eprintln!("skipped: neither sch_fq nor sch_htb: {lines:?}");
        return;
    }
    for from in [Side::Near, Side::Far] {
        assert_spread(&mut tuner, 0, || opening(&ground, &wire, from, 0));
    }
    // Others leave as they did.
    assert_leaves(
        &mut tuner,
        || opening(&ground, &wire, Side::Near, 1),
        burst_as_asked,
    );
    assert!(tuner.counters().unwrap().spread >= 2 * u64::from(WINDOW));
    // A second time nothing changes; a path that comes is added.
    assert_eq!(
        spreading
            .apply(tuner.rules(), |path| tuner.number(path))
            .unwrap(),
        Vec::<String>::new()
    );
    let rules = vec![spread("spread", 0, Via::Auto), spread("late", 2, Via::Auto)];
    tuner.apply(policy(rules)).unwrap();
    spreading
        .apply(tuner.rules(), |path| tuner.number(path))
        .unwrap();
    assert_spread(&mut tuner, 0, || opening(&ground, &wire, Side::Near, 2));
    // Nobody wants it any more.
    assert_ne!(queues(&ground), before);
    tuner.apply(policy(vec![])).unwrap();
    let lines = spreading
        .apply(tuner.rules(), |path| tuner.number(path))
        .unwrap();
    assert_eq!(lines, [format!("{DEVICE}: its queue is as before")]);
    assert_eq!(queues(&ground), before);
    tuner.finish().unwrap();
}

#[test]
fn queues_that_somebody_chose_stay() {
    let Some(ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some((mut tuner, first)) = ground.tuner_with_classifiers() else {
        return;
    };
    let second = Classifiers {
        class: first.class.try_clone().unwrap(),
        departure: first.departure.try_clone().unwrap(),
    };
    let record = ground.folder.path().join("queues");
    let scope = || Scope::Some(vec![ground.near()]);
    let mut spreading = Spreading::new(first, scope(), &record).unwrap();
    tuner
        .apply(policy(vec![spread("spread", 0, Via::Auto)]))
        .unwrap();
    let before = queues(&ground);
    spreading
        .apply(tuner.rules(), |path| tuner.number(path))
        .unwrap();
    if spreading.mechanisms().next().expect("an interface").1 != Mechanism::Htb {
        eprintln!("skipped: no sch_htb");
        return;
    }
    let put = queues(&ground);
    // A daemon that was killed: `revert` takes it off.
    drop(spreading);
    assert_eq!(queues(&ground), put);
    let taken_off = || {
        let mut lines = Vec::new();
        take_off(&record, &scope(), &mut lines).unwrap();
        lines
    };
    let lines = taken_off();
    assert_eq!((lines.len(), queues(&ground)), (1, before.clone()));
    assert_eq!(taken_off(), Vec::<String>::new());
    // One that an administrator has put in its place, before or since, stays.
    let other = || ground.on_near(|| Links::open()?.put_htb(DEVICE, 0x77));
    let mut spreading = Spreading::new(second, scope(), &record).unwrap();
    spreading
        .apply(tuner.rules(), |path| tuner.number(path))
        .unwrap();
    ground.on_near(|| Links::open()?.remove_root(DEVICE, fullpipe_tune::layout::QUEUE));
    other();
    let chosen = queues(&ground);
    spreading.finish(&mut Vec::new()).unwrap();
    assert_eq!(queues(&ground), chosen);
    let lines = spreading
        .apply(tuner.rules(), |path| tuner.number(path))
        .unwrap();
    assert!(lines[0].contains("was put there by somebody"), "{lines:?}");
    let how = spreading.mechanisms().next().expect("an interface").1;
    assert_eq!((how, queues(&ground)), (Mechanism::BeyondTen, chosen));
    assert!(!record.exists());
    tuner.finish().unwrap();
}
