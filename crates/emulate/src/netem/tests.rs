use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_run::{Change, CrossSpec, DeliveryTrace, FlowSpec, Policer, Red, Reorder};
use fullpipe_units::{Rate, Time};
use nix::sched::{CloneFlags, unshare};

use super::*;
use crate::namespace::{DEVICE, HostSide, on_a_thread};
use crate::netlink::value;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(*bytes[at..].first_chunk().unwrap())
}

fn shape() -> Shape {
    Shape {
        link: 0,
        name: "bottleneck".into(),
        delay: Span::from_micros(10_500),
        loss: 0.25,
        bottleneck: Some(Bottleneck {
            rate: 2_500_000,
            room: Room::Packets(33),
            packet: 1500,
        }),
    }
}

/// Places are those of `struct tc_netem_qopt` and `TCA_NETEM_LATENCY64` in
/// include/uapi/linux/pkt_sched.h.
#[test]
fn netem_is_told_delay_loss_and_room() {
    let told = netem(&shape(), true);
    assert_eq!(word(&told, 0), 0, "latency, which the attribute has");
    // 33 packets, 10.5 ms at 2 Mpps, 1000.
    assert_eq!(word(&told, 4), 33 + 21_000 + 1000, "limit");
    assert_eq!(word(&told, 8), 1 << 30, "loss");
    assert_eq!(told[12..24], [0; 12], "gap, duplicate, jitter");
    let latency = value(&told[24..], 10).unwrap();
    assert_eq!(i64::from_ne_bytes(latency.try_into().unwrap()), 10_500_000);
    assert_eq!(told.len(), 24 + 4 + 8);
    assert_eq!(word(&netem(&shape(), false), 8), 0);
    let all = Shape {
        loss: 1.0,
        delay: Span::ZERO,
        ..shape()
    };
    let told = netem(&all, true);
    assert_eq!(word(&told, 8), u32::MAX);
    let latency = value(&told[24..], 10).unwrap();
    assert_eq!(latency, 1i64.to_ne_bytes(), "not none");
}

/// Places are those of `struct tc_tbf_qopt` in the same file.
#[test]
fn tbf_is_told_rate_and_bucket() {
    let told = tbf(&shape().bottleneck.unwrap());
    let parameters = value(&told, 1).unwrap();
    assert_eq!(parameters.len(), 12 + 12 + 3 * 4);
    assert_eq!(parameters[1], 1, "link layer");
    assert_eq!(word(parameters, 8), 2_500_000, "rate");
    assert_eq!(parameters[12..24], [0; 12], "rate of peaks");
    // A packet, and 250 us at the rate.
    assert_eq!(word(value(&told, 6).unwrap(), 0), 1500 + 625);
    assert_eq!(value(&told, 4), None);
    let fast = Bottleneck {
        rate: 5_000_000_000,
        ..shape().bottleneck.unwrap()
    };
    let told = tbf(&fast);
    assert_eq!(word(value(&told, 1).unwrap(), 8), u32::MAX);
    assert_eq!(value(&told, 4), Some(&5_000_000_000u64.to_ne_bytes()[..]));
}

/// Places are those of `struct tc_sizespec` in the same file.
#[test]
fn the_header_of_ethernet_does_not_count() {
    let told = sizes();
    let base = value(&told, 1).unwrap();
    assert_eq!(base.len(), 24);
    assert_eq!(word(base, 4).cast_signed(), -14, "overhead");
    assert_eq!(word(base, 8), 1, "link layer");
    assert_eq!(word(base, 20), 0, "length of the table");
}

fn path() -> RunSpec {
    let rate = Some(Rate::from_bits_per_sec(20_000_000));
    let delay = Span::from_millis(10);
    let mut spec = RunSpec {
        links: vec![
            LinkSpec::new("bottleneck", rate, delay, Buffer::Packets(33)),
            LinkSpec::new("return", rate, delay, Buffer::Time(Span::from_millis(12))),
            LinkSpec::pure_delay("access", Span::from_millis(2)),
        ],
        ..RunSpec::default()
    };
    spec.flows = vec![flow("one")];
    spec
}

fn flow(name: &str) -> FlowSpec {
    FlowSpec::new(
        name,
        StackSpec::parse("reno").unwrap(),
        SenderConfig::preset(Preset::Y2026, 1500),
        ReceiverConfig::preset(Preset::Y2026),
        vec![2, 0],
        vec![1, 2],
    )
}

#[test]
fn delays_add_up_around_one_rate() {
    let mut spec = path();
    let [near, far] = Shape::of(&spec, 1500).unwrap();
    assert_eq!((near.name.as_str(), near.link), ("bottleneck", 0));
    assert_eq!(near.delay, Span::from_millis(12));
    let bottleneck = near.bottleneck.unwrap();
    assert_eq!(bottleneck.rate, 2_500_000);
    assert_eq!(bottleneck.room, Room::Packets(33));
    assert_eq!((far.name.as_str(), far.link), ("return", 1));
    assert_eq!(far.bottleneck.unwrap().room, Room::Bytes(30_000));
    // The sender of data is on the far host.
    spec.flows[0].reverse = true;
    let [near, far] = Shape::of(&spec, 1500).unwrap();
    assert_eq!(
        (near.name.as_str(), far.name.as_str()),
        ("return", "bottleneck")
    );
    // Losses of what comes, one after the other.
    for link in &mut spec.links {
        link.loss = Loss::Bernoulli { p: 0.5 };
        link.loss_of_acks = true;
    }
    assert_eq!(Shape::of(&spec, 1500).unwrap()[0].loss, 0.75);
}

#[test]
fn what_the_kernels_queues_cannot_do_is_named() {
    type With = fn(&mut RunSpec);
    let changes: &[(With, &str)] = &[
        (|s| s.flows.push(flow("two")), "2 pairs of hosts"),
        (
            |s| {
                let every = Span::from_millis(100);
                let pings = CrossSpec::probes("pings", 100, every, vec![0], vec![1]);
                s.cross.push(pings);
            },
            "datagrams of `pings`",
        ),
        (
            |s| s.links[0].discipline = Discipline::Red(Red::classic(100)),
            "queue discipline RED at link `bottleneck`",
        ),
        (
            |s| s.links[1].discipline = Discipline::Codel(Default::default()),
            "queue discipline CoDel at link `return`",
        ),
        (
            |s| s.links[1].discipline = Discipline::Pie(Default::default()),
            "queue discipline PIE at link `return`",
        ),
        (
            |s| s.links[1].discipline = Discipline::FqCodel(Default::default()),
            "queue discipline FQ-CoDel at link `return`",
        ),
        (
            |s| s.links[0].jitter = Span::from_millis(1),
            "jitter that keeps the order at link `bottleneck`",
        ),
        (
            |s| {
                s.links[2].reorder = Some(Reorder {
                    probability: 0.1,
                    extra: Span::from_millis(1),
                });
            },
            "packets that are overtaken at link `access`",
        ),
        (
            |s| {
                s.links[0].policer = Some(Policer {
                    rate: Rate::from_bits_per_sec(1_000_000),
                    burst: 3000,
                });
            },
            "a policer at link `bottleneck`",
        ),
        (
            |s| {
                s.links[0].schedule = vec![Change {
                    at: Time::ZERO,
                    rate: None,
                    delay: None,
                    loss: None,
                }];
            },
            "changes over time at link `bottleneck`",
        ),
        (
            |s| {
                let trace = DeliveryTrace {
                    opportunities: vec![1],
                };
                s.links[0].trace = Some(Arc::new(trace));
            },
            "a trace of delivery opportunities at link `bottleneck`",
        ),
        (
            |s| {
                s.links[1].loss = Loss::GilbertElliott {
                    to_bad: 0.1,
                    to_good: 0.5,
                    good: 0.0,
                    bad: 1.0,
                };
            },
            "losses in bursts at link `return`",
        ),
        (
            |s| s.links[0].rate = Some(Rate::from_bits_per_sec(0)),
            "an outage at link `bottleneck`",
        ),
        (
            |s| s.links[2].rate = Some(Rate::from_bits_per_sec(1_000_000)),
            "a second rate, that of link `bottleneck`",
        ),
    ];
    let refused = |change: &dyn Fn(&mut RunSpec)| {
        let mut spec = path();
        change(&mut spec);
        Shape::of(&spec, 1500).unwrap_err()
    };
    for &(change, what) in changes {
        let refused = refused(&change);
        assert_eq!((refused.what.as_str(), refused.remedy), (what, OURS));
    }
    let spares = refused(&|s| s.links[0].loss = Loss::Bernoulli { p: 0.1 });
    assert!(spares.what.ends_with("spares ACKs, SYNs and pings"));
    assert!(spares.remedy.contains("path.loss_of_acks=true"));
}

/// tbf alone, which more kernels have: the first packet takes the tokens, two wait, and the
/// others find no room.
#[test]
fn a_full_buffer_drops_and_counts() {
    let tried = on_a_thread(|| -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        let mut links = Links::open()?;
        links.up("lo")?;
        let slow = Bottleneck {
            rate: 100,
            room: Room::Packets(2),
            packet: 1500,
        };
        match links.put_rate("lo", ROOT, &slow) {
            Err(Lacking { error, .. }) if error.raw_os_error() == Some(2) => {
                eprintln!("skipped: no sch_tbf");
                return Ok(());
            }
            other => other.unwrap(),
        }
        let to = UdpSocket::bind("127.0.0.1:0")?;
        let from = UdpSocket::bind("127.0.0.1:0")?;
        for _ in 0..7 {
            // The kernel tells of packets that its own queue drops; these are on their way.
            let _ = from.send_to(&[0; 1000], to.local_addr()?);
        }
        let counted = links.counts("lo")?.rate;
        let expected = Counted {
            left: 1,
            dropped: 4,
            waiting: 2,
        };
        assert_eq!(counted, expected);
        Ok(())
    });
    skip_or_fail(tried);
}

/// Addresses, MTU and both ends; and with one host the other's end goes, too.
#[test]
fn a_wire_ends_with_a_host() {
    let tried = || -> io::Result<()> {
        let denied = |e: crate::namespace::HostError| e.error;
        let near = HostSide::alone().map_err(denied)?;
        let far = HostSide::alone().map_err(denied)?;
        let end = far.as_fd();
        near.enter(|| Links::open()?.add_wire(DEVICE, end, 1400))?;
        let devices = || {
            far.enter(|| {
                let read = |name: &str| {
                    let file = format!("/proc/thread-self/net/{name}");
                    std::fs::read_to_string(file)
                };
                Ok(read("dev")?.contains(DEVICE))
            })
        };
        assert!(devices()?);
        drop(near);
        for _ in 0..200 {
            if !devices()? {
                return Ok(());
            }
            sleep(Duration::from_millis(10));
        }
        panic!("the far end is left");
    };
    match tried() {
        Err(e) if e.raw_os_error() == Some(Errno::EOPNOTSUPP as i32) => {
            eprintln!("skipped: no veth");
        }
        other => skip_or_fail(other),
    }
}

/// Without netem the error names the module and what needs none.
#[test]
fn a_kernel_without_netem_is_told_from_a_refusal() {
    let lacking = Lacking {
        module: "sch_netem",
        error: Errno::ENOENT.into(),
    };
    let said = "no path by netem: this kernel has no `sch_netem`";
    assert_eq!(lacking.to_string(), said);
    assert!(lacking.remedy().contains("CONFIG_NET_SCH_NETEM"));
    assert!(lacking.remedy().contains("without `--by netem`"));
    assert!(
        of("veth")(Errno::EPERM.into())
            .remedy()
            .contains("CONFIG_VETH")
    );
    let refused = of("sch_tbf")(Errno::EPERM.into()).to_string();
    assert!(
        refused.starts_with("no path by netem: `sch_tbf`: "),
        "{refused}"
    );
}

fn skip_or_fail(tried: io::Result<()>) {
    match tried {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            eprintln!("skipped: a network namespace: {e}");
        }
        Err(e) => panic!("{e}"),
    }
}
