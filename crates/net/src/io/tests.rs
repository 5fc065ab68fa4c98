//! Over loopback: counts, order, sizes, code points; nothing here depends on how fast the machine
//! is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use fullpipe_units::{Span, Time};
use nix::errno::Errno;

use super::*;

fn socket(ip: impl Into<IpAddr>, config: &IoConfig) -> Socket {
    Socket::bind(SocketAddr::new(ip.into(), 0), config).unwrap()
}

/// Lengths that make runs of equal ones, shorter ends, and single ones.
const LENGTHS: [usize; 14] = [
    1472, 1472, 1472, 700, 700, 44, 60, 60, 60, 1, 1472, 1472, 9000, 1472,
];

/// Datagram `i`: its number, then bytes that follow from it.
fn write(i: usize, place: &mut [u8]) {
    for (j, byte) in place.iter_mut().enumerate() {
        *byte = (i * 31 + j) as u8;
    }
}

/// Sends `count` datagrams, receives them, and checks every byte, their order and senders.
fn carry(ip: IpAddr, near: &Socket, far: &Socket, ecn: Option<Ecn>) {
    let count = 200;
    let there = SocketAddr::new(ip, far.local().port());
    let mut outbox = Outbox::new(count, 9216);
    for i in 0..count {
        let len = LENGTHS[i % LENGTHS.len()];
        assert!(outbox.push(there, ecn, len, |place| write(i, place)));
    }
    assert_eq!(outbox.len(), count);
    assert_eq!(
        outbox.flush(near).unwrap(),
        Flushed {
            sent: count,
            refused: 0
        }
    );
    assert!(outbox.is_empty());
    let mut inbox = Inbox::new(far);
    let clock = Clock::new();
    let waiter = Waiter::new(WaitStrategy::Sleep, clock, Stop::new().unwrap()).unwrap();
    let mut next = 0;
    while next < count {
        let ready = waiter
            .wait(&[far], clock.now() + Span::from_secs(20), false)
            .unwrap();
        assert!(!ready.due, "{next} of {count} arrived");
        let n = far.receive(&mut inbox).unwrap();
        assert_eq!(n, inbox.iter().count());
        for datagram in inbox.iter() {
            let mut expected = vec![0; LENGTHS[next % LENGTHS.len()]];
            write(next, &mut expected);
            assert_eq!(datagram.bytes, expected, "datagram {next}");
            assert_eq!(datagram.from.port(), near.local().port());
            assert_eq!(
                datagram.ecn,
                ecn,
                "datagram {next}, {:?} to {:?}, {ip}",
                near.config(),
                far.config()
            );
            assert_eq!(datagram.to, Some(ip));
            assert_eq!(datagram.stamp.is_some(), far.granted().stamps);
            next += 1;
        }
    }
    assert_eq!(far.receive(&mut inbox).unwrap(), 0);
    assert_eq!(far.drops(), Some(0));
}

/// Loopback, both families if there are both.
fn families() -> Vec<IpAddr> {
    let families = [
        IpAddr::from(Ipv4Addr::LOCALHOST),
        Ipv6Addr::LOCALHOST.into(),
    ];
    families
        .into_iter()
        .filter(|ip| {
            let there = std::net::UdpSocket::bind((*ip, 0)).is_ok();
            if !there {
                eprintln!("skipped: no sockets on {ip}");
            }
            there
        })
        .collect()
}

#[test]
fn every_way_of_sending_and_receiving_carries_the_same_datagrams() {
    for ip in families() {
        for mode in [Mode::Packet, Mode::Bulk] {
            for (coalesce, stamps) in [(false, false), (false, true), (true, false), (true, true)] {
                let to = IoConfig {
                    coalesce,
                    stamps,
                    ..IoConfig::default()
                };
                for ecn in [None, Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::Ce)] {
                    let (near, far) = (socket(ip, &IoConfig::new(mode)), socket(ip, &to));
                    assert_eq!(far.granted().stamps, stamps);
                    carry(ip, &near, &far, ecn);
                }
                let (mut near, mut far) = (socket(ip, &IoConfig::new(mode)), socket(ip, &to));
                near.connect(far.local()).unwrap();
                far.connect(near.local()).unwrap();
                carry(ip, &near, &far, None);
                carry(ip, &far, &near, Some(Ecn::Ect0));
            }
        }
    }
}

#[test]
fn a_socket_of_all_addresses_tells_where_a_datagram_arrived_and_its_code_point() {
    for ip in families() {
        let any: IpAddr = match ip {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        for coalesce in [false, true] {
            let to = IoConfig {
                coalesce,
                stamps: true,
                ..IoConfig::default()
            };
            let (near, far) = (socket(ip, &IoConfig::new(Mode::Bulk)), socket(any, &to));
            assert_eq!(far.granted().stamps, !coalesce);
            carry(ip, &near, &far, Some(Ecn::Ect0));
            // With one peer it has one address: saying so with each datagram makes room for the
            // stamp.
            let mut far = socket(any, &to);
            far.connect(near.local()).unwrap();
            assert!(far.granted().stamps);
            carry(ip, &near, &far, Some(Ecn::Ect0));
        }
    }
}

#[test]
fn code_points_change_from_datagram_to_datagram() {
    for mode in [Mode::Packet, Mode::Bulk] {
        let (near, far) = (
            socket(Ipv4Addr::LOCALHOST, &IoConfig::new(mode)),
            socket(Ipv4Addr::LOCALHOST, &IoConfig::default()),
        );
        let sent = [
            None,
            None,
            Some(Ecn::Ect0),
            Some(Ecn::Ect0),
            None,
            Some(Ecn::Ce),
            Some(Ecn::Ect0),
        ];
        let mut outbox = Outbox::new(16, 200);
        for ecn in sent {
            assert!(outbox.push(far.local(), ecn, 200, |_| {}));
        }
        assert_eq!(outbox.flush(&near).unwrap().sent, sent.len());
        let mut inbox = Inbox::new(&far);
        let mut seen = Vec::new();
        while far.receive(&mut inbox).unwrap() > 0 {
            seen.extend(inbox.iter().map(|d| d.ecn));
        }
        assert_eq!(seen, sent, "{mode:?}");
    }
}

#[test]
fn a_full_outbox_says_so_and_leaves_payload_in_place() {
    let far = socket(Ipv4Addr::LOCALHOST, &IoConfig::default());
    let mut outbox = Outbox::new(2, 100);
    assert!(outbox.push(far.local(), None, 100, |place| place.fill(7)));
    assert!(!outbox.push(far.local(), None, 101, |_| panic!("no room")));
    assert!(outbox.has_room(100) && !outbox.has_room(101));
    assert!(outbox.push(far.local(), None, 50, |_| {}));
    assert!(!outbox.push(far.local(), None, 1, |_| panic!("two datagrams at most")));
    outbox.flush(&far).unwrap();
    assert!(outbox.push(far.local(), None, 100, |place| assert_eq!(place, [7; 100])));
}

#[test]
fn what_is_too_long_is_counted_and_does_not_hide_the_rest() {
    for coalesce in [false, true] {
        let near = socket(Ipv4Addr::LOCALHOST, &IoConfig::new(Mode::Bulk));
        let far = socket(
            Ipv4Addr::LOCALHOST,
            &IoConfig {
                longest: 1000,
                coalesce,
                ..IoConfig::default()
            },
        );
        let mut outbox = Outbox::new(8, 3000);
        for len in [1000, 1001, 3000, 3000, 1000, 0] {
            assert!(outbox.push(far.local(), None, len, |_| {}));
        }
        assert_eq!(outbox.flush(&near).unwrap().sent, 6);
        let mut inbox = Inbox::new(&far);
        let mut seen = Vec::new();
        while far.receive(&mut inbox).unwrap() > 0 {
            seen.extend(inbox.iter().map(|d| d.bytes.len()));
        }
        assert_eq!(seen, [1000, 1000, 0], "coalesce {coalesce}");
        let (datagrams, bytes) = inbox.oversize();
        assert_eq!(datagrams, 3);
        // Of one that is not merged no more is read than shows that it is too long.
        let most = 1001 + 2 * 3000;
        let (least, most) = if coalesce {
            (most, most)
        } else {
            (3 * 1001, most)
        };
        assert!(
            (least..=most).contains(&bytes),
            "coalesce {coalesce}: {bytes}"
        );
    }
}

#[test]
fn a_flood_of_what_is_too_long_does_not_keep_the_reader() {
    let near = socket(Ipv4Addr::LOCALHOST, &IoConfig::new(Mode::Bulk));
    let config = IoConfig {
        longest: 100,
        ..IoConfig::default()
    };
    let far = socket(Ipv4Addr::LOCALHOST, &config);
    let mut outbox = Outbox::new(600, 101);
    for _ in 0..600 {
        assert!(outbox.push(far.local(), None, 101, |_| {}));
    }
    assert_eq!(outbox.flush(&near).unwrap().sent, 600);
    let mut inbox = Inbox::new(&far);
    assert_eq!(far.receive(&mut inbox).unwrap(), 0);
    let (first, bytes) = inbox.oversize();
    assert_eq!(bytes, 101 * first);
    assert!((1..600).contains(&first), "{first}");
    while inbox.oversize().0 < 600 {
        assert_eq!(far.receive(&mut inbox).unwrap(), 0);
    }
}

#[test]
fn what_can_never_leave_is_an_error_and_can_be_skipped() {
    let near = socket(Ipv4Addr::LOCALHOST, &IoConfig::default());
    let mut outbox = Outbox::new(3, 70_000);
    let to = near.local();
    for len in [10, 66_000, 20] {
        assert!(outbox.push(to, None, len, |_| {}));
    }
    // The first leaves; why the second did not is known when it is first in its call.
    assert_eq!(
        outbox.flush(&near).unwrap(),
        Flushed {
            sent: 1,
            refused: 2
        }
    );
    assert!(outbox.flush(&near).is_err());
    assert_eq!(outbox.len(), 2);
    outbox.skip();
    assert_eq!(
        outbox.flush(&near).unwrap(),
        Flushed {
            sent: 1,
            refused: 0
        }
    );
}

#[test]
fn an_unreachable_peer_is_counted_and_breaks_nothing() {
    let far = socket(Ipv4Addr::LOCALHOST, &IoConfig::default()).local();
    let near = socket(Ipv4Addr::LOCALHOST, &IoConfig::default());
    let mut outbox = Outbox::new(4, 10);
    let mut inbox = Inbox::new(&near);
    for _ in 0..50 {
        for _ in 0..4 {
            assert!(outbox.push(far, None, 10, |_| {}));
        }
        assert_eq!(
            outbox.flush(&near).unwrap(),
            Flushed {
                sent: 4,
                refused: 0
            }
        );
        assert_eq!(near.receive(&mut inbox).unwrap(), 0);
    }
    assert!(near.unreachable() > 0);
}

#[test]
fn dropped_arrivals_are_counted() {
    let near = socket(Ipv4Addr::LOCALHOST, &IoConfig::default());
    let far = socket(
        Ipv4Addr::LOCALHOST,
        &IoConfig {
            receive_buffer: 0,
            ..IoConfig::default()
        },
    );
    let mut outbox = Outbox::new(1000, 1472);
    for _ in 0..1000 {
        assert!(outbox.push(far.local(), None, 1472, |_| {}));
    }
    assert_eq!(outbox.flush(&near).unwrap().sent, 1000);
    let mut inbox = Inbox::new(&far);
    let mut arrived = 0;
    loop {
        match far.receive(&mut inbox).unwrap() {
            0 => break,
            n => arrived += n as u64,
        }
    }
    let drops = far.drops().unwrap();
    assert!(drops > 0);
    assert_eq!(arrived + drops, 1000);
}

#[test]
fn a_wait_ends_with_a_datagram_a_moment_or_the_end() {
    for wait in [WaitStrategy::Sleep, WaitStrategy::Spin] {
        let (near, far) = (
            socket(Ipv4Addr::LOCALHOST, &IoConfig::default()),
            socket(Ipv4Addr::LOCALHOST, &IoConfig::default()),
        );
        let clock = Clock::new();
        let stop = Stop::new().unwrap();
        let waiter = Waiter::new(wait, clock, stop.clone()).unwrap();

        // A moment in the past still looks at the sockets.
        let found = waiter.wait(&[&near, &far], Time::ZERO, false).unwrap();
        assert_eq!(
            found,
            Ready {
                due: true,
                ..Ready::default()
            }
        );
        let found = waiter.wait(&[&near, &far], Time::MAX, true).unwrap();
        assert_eq!((found.readable, found.writable), (0, 3));

        let until = clock.now() + Span::from_micros(2_500);
        assert!(waiter.wait(&[&far], until, false).unwrap().due);
        assert!(clock.now() >= until);

        let mut outbox = Outbox::new(1, 10);
        outbox.push(far.local(), None, 10, |_| {});
        outbox.flush(&near).unwrap();
        let found = waiter
            .wait(&[&near, &far], clock.now() + Span::from_secs(20), false)
            .unwrap();
        assert_eq!(found.readable, 2);
        far.receive(&mut Inbox::new(&far)).unwrap();

        let ender = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            stop.set();
        });
        let found = waiter.wait(&[&far], Time::MAX, false).unwrap();
        assert!(found.stopped && waiter.stop().is_set());
        ender.join().unwrap();
    }
}

#[test]
fn a_thread_can_be_kept_on_a_processor() {
    thread::spawn(|| {
        let Some(cpu) = (0..1024).find(|&cpu| pin(cpu).is_ok()) else {
            panic!("no processor")
        };
        assert!(pin(cpu).is_ok());
        assert!(pin(100_000).is_err());
    })
    .join()
    .unwrap();
}

/// Whether this process is the one that [`in_own_network`] starts.
const INSIDE: &str = "FULLPIPE_TEST_IN_OWN_NETWORK";

/// Runs `body` in a network of its own that `setup` has prepared, as the test of this name in a
/// second process; skips it with the reason where that cannot be.
fn in_own_network(test: &str, setup: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        body();
        return;
    }
    let setup = format!("{{ {setup}; }} || exit 77; exec \"$0\" \"$@\"");
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "sh", "-c", &setup])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("io::tests::{test}")])
        .env(INSIDE, "1")
        .output();
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output {
        Err(e) => eprintln!("skipped: unshare: {e}"),
        Ok(o) if o.status.code() == Some(77) || words(&o.stdout).is_empty() => {
            eprintln!("skipped: {}", words(&o.stderr));
        }
        Ok(o) => {
            let said = words(&o.stdout);
            assert!(o.status.success() && said.contains("1 passed"), "{said}");
        }
    }
}

/// Behind a token bucket of 8 Mbit/s with a queue of six packets.
#[test]
fn a_full_queue_of_this_host_is_a_refusal() {
    in_own_network(
        "a_full_queue_of_this_host_is_a_refusal",
        "ip link set lo up && \
         tc qdisc add dev lo root tbf rate 8mbit burst 3000 limit 9000",
        fill_the_queue,
    );
}

/// The kernel reports it in the queue of errors too, where the answers of the network are.
#[test]
fn a_datagram_longer_than_the_interface_allows_is_an_error() {
    in_own_network(
        "a_datagram_longer_than_the_interface_allows_is_an_error",
        "ip link set lo up mtu 1300",
        || {
            for mode in [Mode::Packet, Mode::Bulk] {
                let near = socket(Ipv4Addr::LOCALHOST, &IoConfig::new(mode));
                let far = socket(Ipv4Addr::LOCALHOST, &IoConfig::default());
                let mut outbox = Outbox::new(64, 1472);
                for len in [1472, 100] {
                    assert!(outbox.push(far.local(), None, len, |_| {}));
                }
                let error = outbox.flush(&near).unwrap_err();
                assert_eq!(
                    error.raw_os_error(),
                    Some(Errno::EMSGSIZE as i32),
                    "{mode:?}"
                );
                assert_eq!(near.unreachable(), 0, "{mode:?}");
                outbox.skip();
                assert_eq!(outbox.flush(&near).unwrap().sent, 1, "{mode:?}");
            }
        },
    );
}

fn fill_the_queue() {
    for (mode, report_stalls) in [
        (Mode::Packet, true),
        (Mode::Bulk, true),
        (Mode::Packet, false),
    ] {
        let config = IoConfig {
            report_stalls,
            ..IoConfig::new(mode)
        };
        let near = socket(Ipv4Addr::LOCALHOST, &config);
        let far = socket(Ipv4Addr::LOCALHOST, &IoConfig::default());
        let waiter = Waiter::new(WaitStrategy::Sleep, Clock::new(), Stop::new().unwrap()).unwrap();
        let (mut outbox, mut inbox) = (Outbox::new(64, 1400), Inbox::new(&far));
        let (mut sent, mut refused, mut arrived) = (0, 0, 0);
        for round in 0..4 {
            // One by one in bulk mode too, because a run larger than the bucket can never pass it.
            for i in 0..40 {
                assert!(outbox.push(far.local(), None, 1300 + i, |_| {}));
            }
            let flushed = outbox.flush(&near).unwrap();
            assert!(flushed.sent > 0, "round {round}, {mode:?}");
            let mut back = 0;
            outbox.take_refused(|_, bytes| {
                assert_eq!(bytes.len(), 1339 - back);
                back += 1;
            });
            assert_eq!(back, flushed.refused);
            sent += flushed.sent;
            refused += back;
            let until = waiter.clock().now() + Span::from_millis(30);
            waiter.wait(&[], until, false).unwrap();
        }
        loop {
            match far.receive(&mut inbox).unwrap() {
                0 => break,
                n => arrived += n,
            }
        }
        assert_eq!(refused > 0, report_stalls, "{sent} sent, {arrived} arrived");
        // Without being told, what was dropped counts as sent.
        assert_eq!(
            arrived == sent,
            report_stalls,
            "{sent} sent, {arrived} arrived"
        );
    }
}
