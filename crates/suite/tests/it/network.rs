//! Networks and traffic of a scenario file: what they resolve to, and what is wrong with them.

use std::fmt::Write as _;

use fullpipe_sim::{
    Arrivals, Buffer, Change, Discipline, LinkSpec, Loss, Policer, Reorder, RunSpec, SizeLaw,
    Spacing, Waveform,
};
use fullpipe_suite::scenario::{Loaded, Overrides, Precision, Scenario, TrafficKind, load};
use fullpipe_units::{Rate, Span, Time};

const HEAD: &str =
    "name = \"x\"\nduration = \"60s\"\n[path]\nrate = \"100Mbit/s\"\nrtt = \"80ms\"\n";

fn read(text: &str) -> Scenario {
    read_with(text, false)
}

fn read_with(text: &str, quick: bool) -> Scenario {
    let overrides = Overrides {
        quick,
        ..Overrides::default()
    };
    Scenario::parse(text, "test.toml", &overrides).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The run of a path with these keys and what follows.
fn spec(rest: &str) -> RunSpec {
    let scenario = read(&format!("{HEAD}{rest}"));
    assert_eq!(scenario.warnings, [], "{rest}");
    scenario.cases[0].run_spec(1)
}

fn link<'a>(spec: &'a RunSpec, name: &str) -> &'a LinkSpec {
    let found = spec.links.iter().find(|link| link.name == name);
    found.unwrap_or_else(|| panic!("no link {name} among {:?}", names(spec)))
}

fn names(spec: &RunSpec) -> Vec<&str> {
    spec.links.iter().map(|link| link.name.as_str()).collect()
}

fn way<'a>(spec: &'a RunSpec, links: &[usize]) -> Vec<&'a str> {
    links.iter().map(|i| spec.links[*i].name.as_str()).collect()
}

const fn mbit(n: u64) -> Rate {
    Rate::from_bits_per_sec(n * 1_000_000)
}

const fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

const FLOW: &str = "[[flow]]\nstack = \"reno\"\n";

#[test]
fn a_thin_way_back_is_a_bottleneck_of_acks() {
    let spec = spec(
        "return_rate = \"1Mbit/s\"\nreturn_buffer = \"20 packets\"\nreturn_loss = \"1%\"\nloss_of_acks = true\n\
         [[flow]]\nname = \"a\"\nstack = \"reno\"\n[[flow]]\nname = \"b\"\nstack = \"reno\"\nrtt = \"100ms\"\n",
    );
    let back = link(&spec, "return");
    assert_eq!(back.rate, Some(mbit(1)));
    assert_eq!(back.buffer, Buffer::Packets(20));
    assert_eq!(
        (back.loss, back.loss_of_acks),
        (Loss::Bernoulli { p: 0.01 }, true)
    );
    assert_eq!(
        (link(&spec, "bottleneck").delay, back.delay),
        (ms(40), ms(40))
    );
    assert_eq!(way(&spec, &spec.flows[0].back), ["return"]);
    assert_eq!(way(&spec, &spec.flows[1].back), ["return", "extra-20ms"]);
    assert_eq!(link(&spec, "extra-20ms").delay, ms(20));
}

#[test]
fn a_reverse_flow_makes_both_ways_bottlenecks() {
    let text = format!(
        "{HEAD}buffer = \"50 packets\"\nqueue = \"codel\"\n[[flow]]\nname = \"a\"\nstack = \"reno\"\n\
         [[flow]]\nname = \"b\"\nstack = \"reno\"\ndirection = \"reverse\"\nwindow = \"1BDP\"\n"
    );
    let scenario = read(&text);
    let spec = scenario.cases[0].run_spec(1);
    let back = link(&spec, "return");
    assert_eq!(
        (back.rate, back.buffer),
        (Some(mbit(100)), Buffer::Packets(50))
    );
    assert!(matches!(back.discipline, Discipline::Codel(_)));
    assert_eq!(way(&spec, &spec.flows[0].forward), ["bottleneck"]);
    assert_eq!(way(&spec, &spec.flows[0].back), ["return"]);
    assert_eq!(way(&spec, &spec.flows[1].forward), ["return"]);
    assert_eq!(way(&spec, &spec.flows[1].back), ["bottleneck"]);
    let [a, b] = scenario.cases[0].flows.as_slice() else {
        panic!("two flows")
    };
    assert!(!a.reverse && b.reverse);
    assert_eq!((a.bottleneck, b.bottleneck), (0, 1));
    // A BDP of a reverse flow is one of the way back.
    let thin = text.replace("queue = ", "return_rate = \"10Mbit/s\"\nqueue = ");
    let scenario = read(&thin);
    assert_eq!(scenario.cases[0].flows[1].window_cap, Some(66.0));
    assert_eq!(scenario.cases[0].flows[1].capacity, mbit(10));
}

#[test]
fn streams_may_differ_in_start_and_delay() {
    let spec = spec(
        "[[flow]]\nstack = \"reno\"\nstreams = 2\nstart_spread = \"1s\"\nrtt_spread = \"5ms\"\nmtu = 576\ntso = \"8kB\"\n",
    );
    assert_eq!(
        names(&spec),
        ["bottleneck", "spread-main.1", "spread-main.2"]
    );
    for flow in &spec.flows {
        let own = &spec.links[flow.back[0]];
        assert_eq!((own.delay, own.delay_spread), (ms(40), ms(5)));
        assert_eq!(flow.start_spread, Span::from_secs(1));
        assert_eq!(flow.sender.mss, 524);
        assert_eq!(flow.sender.tso_segments, 15);
    }
    assert_ne!(spec.flows[0].back, spec.flows[1].back);
}

#[test]
fn flows_of_one_host_share_its_interface() {
    let spec = spec(
        "[[flow]]\nname = \"a\"\nstack = \"reno\"\nhost = \"h\"\ntxqueuelen = 100\n\
         [[flow]]\nname = \"b\"\nstack = \"reno\"\nhost = \"h\"\nnic_rate = \"1Gbit/s\"\n\
         [[flow]]\nname = \"c\"\nstack = \"reno\"\n",
    );
    let nic = link(&spec, "nic-h");
    assert_eq!(
        (nic.rate, nic.buffer),
        (Some(mbit(1000)), Buffer::Packets(101))
    );
    assert_eq!(way(&spec, &spec.flows[0].forward), ["nic-h", "bottleneck"]);
    assert_eq!(spec.flows[0].forward, spec.flows[1].forward);
    assert!(spec.flows[1].local_queue && !spec.flows[2].local_queue);
    assert_eq!(way(&spec, &spec.flows[2].forward), ["bottleneck"]);
}

#[test]
fn queues_have_the_parameters_of_their_documents() {
    let queue = |text: &str| {
        let spec = spec(&format!("queue = {text}\n[[flow]]\nstack = \"reno\"\n"));
        spec.links[0].discipline
    };
    let Discipline::Red(red) = queue("\"red\"") else {
        panic!("red")
    };
    assert_eq!(
        (red.min, red.max, red.max_p, red.weight),
        (5.0, 15.0, 0.1, 0.002)
    );
    assert!(red.gentle && !red.adaptive && !red.ecn);
    // 100 Mbit/s is 8333 packets per second: 2.5 ms are 20.8 of them.
    let Discipline::Red(red) = queue("{ kind = \"adaptive-red\", max_p = 0.02 }") else {
        panic!("red")
    };
    assert!((red.min - 20.8333).abs() < 1e-3 && (red.max - 62.5).abs() < 1e-3);
    assert!(red.adaptive && (red.weight - 1.19993e-4).abs() < 1e-9 && red.max_p == 0.02);
    let Discipline::Red(red) = queue("{ kind = \"red\", min = \"1ms\", max = \"0.1BDP\" }") else {
        panic!("red")
    };
    assert!((red.min - 8.3333).abs() < 1e-3 && (red.max - 66.6667).abs() < 1e-3);
    let Discipline::Pie(pie) = queue("\"pie\"") else {
        panic!("pie")
    };
    assert_eq!(
        (pie.target, pie.update, pie.max_burst),
        (ms(15), ms(15), ms(150))
    );
    assert_eq!((pie.alpha, pie.beta, pie.ecn), (0.125, 1.25, None));
    let Discipline::FqCodel(fq) = queue("{ kind = \"fq-codel\", target = \"10ms\", flows = 32 }")
    else {
        panic!("fq-codel")
    };
    assert_eq!((fq.flows, fq.quantum, fq.codel.target), (32, 1500, ms(10)));
    assert_eq!(fq.codel.interval, ms(100));
    assert_eq!(queue("{ kind = \"droptail\" }"), Discipline::DropTail);
}

/// A flow that can say ECN is warned of only where nothing marks.
#[test]
fn a_marking_queue_needs_no_warning() {
    let text =
        |queue: &str| format!("{HEAD}queue = {queue}\n[[flow]]\nstack = \"reno\"\necn = true\n");
    assert_eq!(read(&text("\"pie\"")).warnings.len(), 1);
    assert_eq!(read(&text("{ kind = \"pie\", ecn = true }")).warnings, []);
}

#[test]
fn a_path_disturbs_packets() {
    let spec = spec(&format!(
        "jitter = \"2ms\"\nreorder = {{ probability = 0.01, extra = \"5ms\" }}\n\
         policer = {{ rate = \"50Mbit/s\", burst = \"100kB\" }}\n{FLOW}"
    ));
    let link = &spec.links[0];
    assert_eq!(link.jitter, ms(2));
    assert_eq!(
        link.reorder,
        Some(Reorder {
            probability: 0.01,
            extra: ms(5)
        })
    );
    assert_eq!(
        link.policer,
        Some(Policer {
            rate: mbit(50),
            burst: 100_000
        })
    );
    let off = read(&format!(
        "{HEAD}policer = \"off\"\n{FLOW}[matrix]\n\"path.reorder\" = [\"off\", {{ probability = 0.1, extra = \"1ms\" }}]\n"
    ));
    let spec = |i: usize| off.cases[i].run_spec(1);
    assert!(spec(0).links[0].policer.is_none() && spec(0).links[0].reorder.is_none());
    assert!(spec(1).links[0].reorder.is_some());
}

#[test]
fn a_schedule_changes_the_bottleneck() {
    let spec = spec(&format!(
        "schedule = [{{ at = \"10s\", rate = \"50Mbit/s\" }}, {{ at = \"20s\", outage = \"2s\" }}, \
         {{ at = \"30s\", rtt = \"120ms\", loss = \"0.1%\" }}, {{ at = \"40s\", rtt = \"10ms\" }}]\n{FLOW}"
    ));
    // To fall to 10 ms, 70 ms of the 80 have to lie on the changing link.
    assert_eq!((spec.links[0].delay, spec.links[1].delay), (ms(70), ms(10)));
    let change = |s: u64| Change {
        at: Time::ZERO + Span::from_secs(s),
        rate: None,
        delay: None,
        loss: None,
    };
    assert_eq!(
        spec.links[0].schedule,
        [
            Change {
                rate: Some(mbit(50)),
                ..change(10)
            },
            Change {
                rate: Some(Rate::from_bits_per_sec(0)),
                ..change(20)
            },
            Change {
                rate: Some(mbit(50)),
                ..change(22)
            },
            Change {
                delay: Some(ms(110)),
                loss: Some(Loss::Bernoulli { p: 0.001 }),
                ..change(30)
            },
            Change {
                delay: Some(ms(0)),
                ..change(40)
            },
        ]
    );
}

#[test]
fn files_stand_beside_the_scenario() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    // Two packets of 1504 bytes in 4 ms: 6.016 Mbit/s.
    std::fs::write(at("cell.up"), "1\n4 # end\n").unwrap();
    std::fs::write(at("rates.csv"), "time,rate\n1,1000000\n2.5,3Mbit/s\n").unwrap();
    std::fs::write(at("sizes"), "1 0.25\n3 0.75\n11 1\n").unwrap();
    let text = "name = \"x\"\nduration = \"60s\"\n[path]\nrtt = \"80ms\"\ntrace = \"cell.up\"\n\
                [[flow]]\nstack = \"reno\"\n\
                [[traffic]]\nname = \"u\"\nkind = \"udp-file\"\nfile = \"rates.csv\"\nperiod = \"5s\"\n\
                [[traffic]]\nname = \"s\"\nkind = \"short-flows\"\nstack = \"reno\"\nper_second = 1\nsize = { file = \"sizes\" }\n";
    let origin = at("a.toml").display().to_string();
    let scenario =
        Scenario::parse(text, &origin, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let spec = scenario.cases[0].run_spec(1);
    let trace = spec.links[0].trace.as_ref().unwrap();
    assert_eq!(trace.opportunities, [1, 4]);
    assert_eq!(spec.links[0].rate, Some(Rate::from_bits_per_sec(6_016_000)));
    let zero = Rate::from_bits_per_sec(0);
    assert_eq!(
        spec.sources[0].waveform,
        Waveform::Steps {
            steps: vec![(Span::ZERO, zero), (ms(1000), mbit(1)), (ms(2500), mbit(3))],
            period: Some(ms(5000)),
        }
    );
    let points = vec![(1.0, 0.25), (3.0, 0.75), (11.0, 1.0)];
    assert_eq!(spec.arrivals[0].sizes, SizeLaw::Empirical(points));
    assert_eq!(scenario.files.len(), 3);

    std::fs::write(at("cell.up"), "1\n4\n3\n").unwrap();
    let error = Scenario::parse(text, &origin, &Overrides::default()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("a.toml:5: `path.trace = \"cell.up\"`: "),
        "{error}"
    );
    assert!(
        error.contains("cell.up: line 3 is before the one above it"),
        "{error}"
    );
}

fn traffic(lines: &str) -> (Scenario, RunSpec) {
    let scenario = read(&format!("{HEAD}[[traffic]]\nname = \"t\"\n{lines}\n"));
    let spec = scenario.cases[0].run_spec(1);
    (scenario, spec)
}

#[test]
fn datagrams_have_a_waveform() {
    let waveform = |lines: &str| traffic(lines).1.sources.remove(0).waveform;
    let steps = |steps: &[(u64, u64)], period: Option<Span>| Waveform::Steps {
        steps: steps
            .iter()
            .map(|(s, r)| (Span::from_secs(*s), mbit(*r)))
            .collect(),
        period,
    };
    assert_eq!(
        waveform("kind = \"udp\"\nrate = \"20Mbit/s\""),
        steps(&[(0, 20)], None)
    );
    assert_eq!(
        waveform("kind = \"udp-on-off\"\nrate = \"20Mbit/s\"\non = \"1s\"\noff = \"2s\""),
        Waveform::OnOff {
            rate: mbit(20),
            on: ms(1000),
            off: ms(2000)
        }
    );
    assert_eq!(
        waveform(
            "kind = \"udp-sine\"\nmean = \"50Mbit/s\"\namplitude = \"30Mbit/s\"\nperiod = \"60s\""
        ),
        Waveform::Sine {
            mean: mbit(50),
            amplitude: mbit(30),
            period: Span::from_secs(60)
        }
    );
    let stairs = "kind = \"udp-staircase\"\nfrom = \"10Mbit/s\"\nto = \"40Mbit/s\"\nstep = \"10Mbit/s\"\nevery = \"5s\"\n";
    assert_eq!(
        waveform(stairs),
        steps(&[(0, 10), (5, 20), (10, 30), (15, 40)], None)
    );
    let down = stairs.replace("10Mbit/s\"\nto", "0bit/s\"\nto");
    let down = down.replace(
        "from = \"0bit/s\"\nto = \"40Mbit/s\"",
        "from = \"20Mbit/s\"\nto = \"0bit/s\"",
    );
    assert_eq!(
        waveform(&format!("{down}period = \"15s\"")),
        steps(&[(0, 20), (5, 10), (10, 0)], Some(Span::from_secs(15)))
    );
    // 10 MB at 80 Mbit/s last a second; the last datagram leaves at its end.
    let (scenario, spec) = traffic(
        "kind = \"udp-blast\"\nrate = \"80Mbit/s\"\nvolume = \"10MB\"\nstart = \"2s\"\npacket = 200\nspacing = \"poisson\"",
    );
    let source = &spec.sources[0];
    let end = Time::ZERO + Span::from_secs(3);
    assert_eq!(source.stop, Some(end + Span::from_nanos(1)));
    assert_eq!((source.packet, source.spacing), (200, Spacing::Poisson));
    assert_eq!(way(&spec, &source.forward), ["bottleneck"]);
    let group = &scenario.cases[0].traffic[0];
    assert_eq!(
        (group.kind, group.index, group.name.as_str()),
        (TrafficKind::Datagrams, 0, "t")
    );
    assert_eq!(group.offered, Some(mbit(80)));
}

/// 150 kB in packets of 1500 bytes: a hundred, whatever the rate does to the times.
#[test]
fn a_blast_sends_its_volume() {
    for (rate, volume, packets) in [
        ("12Mbit/s", "150kB", 100),
        ("7Mbit/s", "150kB", 100),
        ("33.3Mbit/s", "150kB", 100),
        ("12Mbit/s", "149.9kB", 99),
        ("12Mbit/s", "151.5kB", 101),
    ] {
        let (_, spec) = traffic(&format!(
            "kind = \"udp-blast\"\nrate = \"{rate}\"\nvolume = \"{volume}\"\nstart = \"2s\""
        ));
        let outcome = fullpipe_sim::run(&spec).unwrap();
        assert_eq!(outcome.sources[0].sent, packets, "{rate} {volume}");
    }
}

#[test]
fn probes_follow_the_path() {
    let (scenario, spec) = traffic("kind = \"ping\"");
    let ping = &spec.pings[0];
    assert_eq!((ping.interval, ping.size), (ms(100), 92));
    assert_eq!(way(&spec, &ping.forward), ["bottleneck"]);
    assert_eq!(way(&spec, &ping.back), ["return-40ms"]);
    assert_eq!(scenario.cases[0].traffic[0].base_rtt, ms(80));
    let (_, spec) =
        traffic("kind = \"ping\"\ndirection = \"reverse\"\ninterval = \"1s\"\nsize = \"1000B\"");
    let ping = &spec.pings[0];
    assert_eq!((ping.interval, ping.size), (ms(1000), 1028));
    assert_eq!(way(&spec, &ping.forward), ["return"]);
    assert_eq!(way(&spec, &ping.back), ["bottleneck"]);
}

#[test]
fn short_flows_arrive() {
    let head = "kind = \"short-flows\"\nstack = \"reno\"\npreset = \"2003\"\n";
    let one = |lines: &str| {
        let (scenario, mut spec) = traffic(&format!("{head}{lines}"));
        (scenario, spec.arrivals.remove(0))
    };
    // 60 % of 100 Mbit/s is 60 Mbit/s; ten packets of 1500 bytes are 120 kbit: 500 per second.
    let (scenario, class) = one("size = \"10 segments\"\nload = \"60%\"");
    assert_eq!(class.sizes, SizeLaw::Fixed(10));
    assert_eq!(class.arrivals, Arrivals::Poisson { per_second: 500.0 });
    assert_eq!(class.template.sender.initial_window, 2.0);
    let group = &scenario.cases[0].traffic[0];
    assert_eq!(
        (group.kind, group.mss, group.mean_size),
        (TrafficKind::ShortFlows, 1448, Some(10.0))
    );
    assert_eq!(group.offered, Some(mbit(60)));
    let (_, class) = one("size = { uniform = [2, 30] }\nevery = \"200ms\"\nrtt = \"100ms\"");
    assert_eq!(class.sizes, SizeLaw::Uniform(2, 30));
    assert_eq!(class.arrivals, Arrivals::Every(ms(200)));
    let (_, class) = one("size = \"125kB\"\ncount = 300\nstart = \"10s\"");
    assert_eq!(class.sizes, SizeLaw::Fixed(87));
    let within = Span::from_secs(50);
    assert_eq!(class.arrivals, Arrivals::Spread { count: 300, within });
    let pareto = "size = { pareto = { mean = \"10 segments\", shape = 2, most = \"1000 segments\" } }\nper_second = 5";
    let (scenario, class) = one(pareto);
    let law = SizeLaw::Pareto {
        mean: 10.0,
        shape: 2.0,
        most: 1000,
    };
    assert_eq!(class.sizes, law);
    // Sum over k of P(ceil X > k): 1 for k = 0 to 4 and (5/k)^2 from 5 to 999.
    let exact: f64 = 5.0 + (5..1000).map(|k| 25.0 / f64::from(k * k)).sum::<f64>();
    let mean = scenario.cases[0].traffic[0].mean_size.unwrap();
    assert!((mean - exact).abs() < 1e-9, "{mean} {exact}");
    let (_, class) = one("size = \"1 segment\"\nper_second = 5\ntxqueuelen = 10\n");
    assert!(class.template.local_queue);
}

const PARKING: &str = "name = \"x\"\nduration = \"60s\"\n\
    [[flow]]\nname = \"long\"\nstack = \"reno\"\nwindow = \"1BDP\"\n\
    [[flow]]\nname = \"first\"\nstack = \"reno\"\nrtt = \"50ms\"\n\
    [[flow]]\nname = \"second\"\nstack = \"reno\"\n\
    [[link]]\nname = \"l1\"\nrate = \"10Mbit/s\"\ndelay = \"10ms\"\nqueue = \"red\"\n\
    [[link]]\nname = \"l2\"\nrate = \"20Mbit/s\"\ndelay = \"5ms\"\nbuffer = \"30 packets\"\nschedule = { at = \"1s\", delay = \"7ms\" }\n\
    [[link]]\nname = \"home\"\ndelay = \"20ms\"\n\
    [[route]]\nflow = \"long\"\nforward = [\"l1\", \"l2\"]\n\
    [[route]]\nflow = \"first\"\nforward = \"l1\"\nback = [\"home\"]\n\
    [[route]]\nflow = \"second\"\nforward = [\"l2\"]\nback = [\"home\"]\n";

#[test]
fn links_make_any_graph() {
    let scenario = read(PARKING);
    assert_eq!(scenario.warnings, []);
    let spec = scenario.cases[0].run_spec(1);
    let [long, first, second] = spec.flows.as_slice() else {
        panic!("three flows")
    };
    assert_eq!(way(&spec, &long.forward), ["l1", "l2"]);
    assert_eq!(way(&spec, &long.back), ["return-15ms"]);
    assert_eq!(way(&spec, &first.forward), ["l1"]);
    assert_eq!(way(&spec, &first.back), ["home", "extra-20ms"]);
    assert_eq!(way(&spec, &second.back), ["home"]);
    let groups = &scenario.cases[0].flows;
    let rtts: Vec<Span> = groups.iter().map(|group| group.base_rtt).collect();
    assert_eq!(rtts, [ms(30), ms(50), ms(25)]);
    assert_eq!(groups[0].capacity, mbit(10));
    assert_eq!(groups[2].capacity, mbit(20));
    // 10 Mbit/s in 30 ms: 25 packets.
    assert_eq!(groups[0].window_cap, Some(25.0));
    // The longest RTT over the first link is 50 ms: 41 packets.
    assert_eq!(link(&spec, "l1").buffer, Buffer::Packets(41));
    assert_eq!(link(&spec, "l2").buffer, Buffer::Packets(30));
    assert!(matches!(link(&spec, "l1").discipline, Discipline::Red(_)));
    assert_eq!(link(&spec, "l2").schedule[0].delay, Some(ms(7)));
    // Keys of links vary.
    let varied = read(&format!(
        "{PARKING}[matrix]\n\"link.l1.rate\" = [\"5Mbit/s\", \"10Mbit/s\"]\n"
    ));
    assert_eq!(varied.cases[0].flows[0].capacity, mbit(5));
}

#[test]
fn what_is_not_enabled_is_left_out() {
    let scenario = read(&format!(
        "{HEAD}[[flow]]\nname = \"a\"\nstack = \"reno\"\n[[flow]]\nname = \"b\"\nstack = \"reno\"\ndirection = \"reverse\"\n\
         [[traffic]]\nname = \"p\"\nkind = \"ping\"\n\
         [matrix]\n\"flow.b.enabled\" = [false, true]\n\"traffic.p.enabled\" = [false, true]\n"
    ));
    let shape = |i: usize| {
        let spec = scenario.cases[i].run_spec(1);
        (
            spec.flows.len(),
            spec.pings.len(),
            names(&spec).contains(&"return"),
        )
    };
    assert_eq!([shape(0), shape(3)], [(1, 0, false), (2, 1, true)]);
}

const AXES: &str = "[matrix]\n\"path.buffer\" = [\"0.5BDP\", \"1BDP\", \"2BDP\"]\n\
    [[matrix.first]]\nname = \"reno\"\nflow.main.stack = \"reno\"\n\
    [[matrix.first]]\nname = \"cubic, wide\"\nflow.main.stack = \"cubic\"\nflow.main.window = \"9MB\"\n\
    [[matrix.place]]\nname = \"near\"\npath.rtt = \"10ms\"\n\
    [[matrix.place]]\nname = \"far\"\npath.rtt = \"70ms\"\n\
    [[expect]]\nmetric = \"utilization\"\nwhere = { first = \"cubic, wide\", \"path.buffer\" = \"2BDP\" }\nat_least = 0.1\n\
    [[expect]]\nmetric = \"utilization\"\nat_least = 0.2\nquick = false\n\
    [[expect]]\nmetric = \"utilization\"\nat_least = 0.3\nquick = true\n\
    [[report]]\nfigure = \"metric\"\nx = \"first\"\ny = \"goodput_mbps\"\n";

#[test]
fn named_axes_multiply() {
    let scenario = read(&format!("{HEAD}{FLOW}{AXES}"));
    assert_eq!(scenario.cases.len(), 12);
    assert_eq!(
        scenario.cases[11].params,
        [
            ("path.buffer".to_owned(), "2BDP".to_owned()),
            ("first".to_owned(), "cubic, wide".to_owned()),
            ("place".to_owned(), "far".to_owned())
        ]
    );
    assert_eq!(scenario.cases[11].flows[0].base_rtt, ms(70));
    assert_eq!(scenario.cases[11].flows[0].stack, "cubic");
    assert_eq!(scenario.expectations[0].cases, [10, 11]);
    assert_eq!(scenario.expectations.len(), 2);
}

#[test]
fn a_quick_run_has_fewer_cases() {
    let quick = "[quick]\nduration = \"5s\"\nseeds = 2\npath.buffer = [\"1BDP\"]\nplace = [\"far\"]\nflow.main.ack_every = 1\n";
    let text = format!("{HEAD}{FLOW}{AXES}{quick}");
    let full = read(&text);
    assert_eq!(
        (full.cases.len(), full.seeds.len(), full.quick),
        (12, 1, false)
    );
    let quick = read_with(&text, true);
    assert_eq!(
        (quick.cases.len(), quick.seeds.len(), quick.quick),
        (2, 2, true)
    );
    for case in &quick.cases {
        assert_eq!(case.duration, Span::from_secs(5));
        assert_eq!(case.params[0].1, "1BDP");
        assert_eq!(case.params[2].1, "far");
        assert_eq!(case.run_spec(1).flows[0].receiver.ack_every, 1);
    }
    // The first expectation's buffer is left out, the second is not for a quick run, the third only for one.
    let bounds: Vec<f64> = quick.expectations.iter().map(|e| e.bound.0).collect();
    assert_eq!(bounds, [0.3]);
    // A key set on the command line comes after.
    let overrides = Overrides {
        quick: true,
        set: vec![("place".to_owned(), "near".to_owned())],
        ..Overrides::default()
    };
    let set = Scenario::parse(&text, "test.toml", &overrides).unwrap();
    assert_eq!(set.cases[0].params[2].1, "near");
}

#[test]
fn measurements_may_be_repeated_and_held_against_a_baseline() {
    let axes =
        "[matrix]\n\"flow.main.stack\" = [\"cubic\", \"reno\"]\n\"path.mtu\" = [1500, 9000]\n";
    let scenario = read(&format!(
        "{HEAD}{FLOW}{axes}[measure]\nprecision = \"2%\"\nprecision_of = [\"goodput_mbps\", \"rtt_ms.p95\"]\n\
         max_seeds = 50\nbaseline = {{ \"flow.main.stack\" = \"reno\" }}\n"
    ));
    let precision = Precision {
        target: 0.02,
        of: vec!["goodput_mbps".to_owned(), "rtt_ms.p95".to_owned()],
        max_seeds: 50,
    };
    assert_eq!(scenario.measure.precision, Some(precision));
    let baselines: Vec<Option<usize>> = scenario.cases.iter().map(|c| c.baseline).collect();
    assert_eq!(baselines, [Some(2), Some(3), None, None]);
    let short = read(&format!("{HEAD}{FLOW}[measure]\nprecision = 0.05\n"));
    let precision = short.measure.precision.unwrap();
    assert_eq!(
        (precision.of, precision.max_seeds),
        (vec!["goodput_mbps".to_owned()], 30)
    );
}

#[test]
fn figures_of_two_keys() {
    let scenario = read(&format!(
        "{HEAD}[[flow]]\nname = \"a\"\nstack = \"reno\"\n[[flow]]\nname = \"b\"\nstack = \"reno\"\n\
         [matrix]\n\"flow.a.stack\" = [\"reno\", \"cubic\"]\n\"flow.b.stack\" = [\"reno\", \"cubic\"]\n\
         [[report]]\nfigure = \"matrix\"\nx = \"flow.a.stack\"\ny = \"flow.b.stack\"\nmetric = \"asymmetry\"\n"
    ));
    let figure = &scenario.reports[0];
    assert_eq!(figure.metric.as_deref(), Some("asymmetry"));
    assert_eq!(figure.y.as_deref(), Some("flow.b.stack"));
}

#[test]
fn a_study_names_scenarios() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(at("mine.toml"), format!("{HEAD}{FLOW}")).unwrap();
    let write = |text: &str| std::fs::write(at("study.toml"), text).unwrap();
    write("name = \"both\"\nabout = \"Two\"\nstudy = [\"first-run\", \"mine.toml\"]\n");
    let study = match load(&at("study.toml"), &Overrides::default()).unwrap() {
        Loaded::Study(study) => study,
        Loaded::Scenario(_) => panic!("a study"),
    };
    assert_eq!((study.name.as_str(), study.about.as_str()), ("both", "Two"));
    assert_eq!(study.scenarios, ["first-run".to_owned(), at("mine.toml")]);
    let refused = Scenario::load(&at("study.toml"), &Overrides::default()).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("this is a study, not a scenario"),
        "{refused}"
    );
    write(
        "name = \"both\"\nduration = \"5s\"\nstudy = [\"first-rum\", \"study.toml\", \"first-run\", \"first-run\"]\n",
    );
    let error = load(&at("study.toml"), &Overrides::default())
        .unwrap_err()
        .to_string();
    for part in [
        "study.toml:2: `duration`: a study has no cases of its own",
        "study.toml:3: `study = [\"first-rum\", \"study.toml\", \"first-run\", \"first-run\"]`: there is no scenario `first-rum`\n  hint: did you mean \"first-run\"?",
        "`study.toml` is a study itself",
        "`first-run` stands twice",
    ] {
        assert!(error.contains(part), "{part}\n{error}");
    }
}

/// Title, and what stands behind `[path]` with rate and rtt.
const WRONG: &[(&str, &str)] = &[
    (
        "a kind without its key",
        "[[traffic]]\nname = \"t\"\nkind = \"udp\"\n",
    ),
    (
        "a key of another kind",
        "[[traffic]]\nname = \"t\"\nkind = \"udp\"\nrate = \"1Mbit/s\"\namplitude = \"1Mbit/s\"\n",
    ),
    (
        "a transport's key of datagrams",
        "[[traffic]]\nname = \"t\"\nkind = \"udp\"\nrate = \"1Mbit/s\"\nwindow = \"1MB\"\n",
    ),
    ("traffic without a name", "[[traffic]]\nkind = \"ping\"\n"),
    ("traffic without a kind", "[[traffic]]\nname = \"t\"\n"),
    (
        "traffic named as a flow",
        "[[flow]]\nstack = \"reno\"\n[[traffic]]\nname = \"main\"\nkind = \"ping\"\n",
    ),
    (
        "an amplitude above the mean",
        "[[traffic]]\nname = \"t\"\nkind = \"udp-sine\"\nmean = \"1Mbit/s\"\namplitude = \"2Mbit/s\"\nperiod = \"1s\"\n",
    ),
    (
        "a staircase without stairs",
        "[[traffic]]\nname = \"t\"\nkind = \"udp-staircase\"\nfrom = \"1Mbit/s\"\nto = \"2Mbit/s\"\nstep = \"5Mbit/s\"\nevery = \"1s\"\n",
    ),
    (
        "a period shorter than its staircase",
        "[[traffic]]\nname = \"t\"\nkind = \"udp-staircase\"\nfrom = \"1Mbit/s\"\nto = \"2Mbit/s\"\nstep = \"1Mbit/s\"\nevery = \"1s\"\nperiod = \"1s\"\n",
    ),
    (
        "a file that is not there",
        "[[traffic]]\nname = \"t\"\nkind = \"udp-file\"\nfile = \"no-such-file.csv\"\n",
    ),
    (
        "short flows without a number",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\n",
    ),
    (
        "short flows with two numbers",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nload = \"10%\"\ncount = 5\n",
    ),
    (
        "short flows without a stack and a size",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nload = \"10%\"\n",
    ),
    (
        "no load at all",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nload = 0\n",
    ),
    (
        "a law of sizes in parts",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = { uniform = [0.5, 2] }\nload = \"10%\"\n",
    ),
    (
        "two laws of sizes",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = { uniform = [1, 2], file = \"x\" }\nload = \"10%\"\n",
    ),
    (
        "a Pareto law without a mean",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = { pareto = { shape = 1.2 } }\nload = \"10%\"\n",
    ),
    (
        "more flows than a machine holds",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nper_second = 1e6\n",
    ),
    (
        "a probe in segments",
        "[[traffic]]\nname = \"t\"\nkind = \"ping\"\nsize = \"1 segment\"\n",
    ),
    (
        "a probe larger than the mtu",
        "[[traffic]]\nname = \"t\"\nkind = \"ping\"\nsize = \"1500B\"\n",
    ),
    (
        "traffic after the end",
        "[[traffic]]\nname = \"t\"\nkind = \"ping\"\nstart = \"60s\"\n",
    ),
    (
        "an unknown queue in a table",
        "queue = { kind = \"blue\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a queue without a kind",
        "queue = { ecn = true }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a parameter of another queue",
        "queue = { kind = \"codel\", min = \"5 packets\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a parameter of a plain queue",
        "queue = { kind = \"droptail\", ecn = true }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "thresholds in the wrong order",
        "queue = { kind = \"red\", min = \"20 packets\", max = \"10 packets\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a threshold without end",
        "queue = { kind = \"red\", min = \"unlimited\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "marking that is off",
        "queue = { kind = \"pie\", mark_until = 0.2 }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "reordering by nothing",
        "reorder = { probability = 0.1 }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a bucket below one packet",
        "policer = { rate = \"1Mbit/s\", burst = \"100B\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "an empty change",
        "schedule = { at = \"1s\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "changes out of order",
        "schedule = [{ at = \"2s\", rate = \"1Mbit/s\" }, { at = \"1s\", rate = \"2Mbit/s\" }]\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a rate in an outage",
        "schedule = [{ at = \"1s\", outage = \"5s\" }, { at = \"2s\", rate = \"2Mbit/s\" }]\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "an outage with a rate",
        "schedule = { at = \"1s\", outage = \"5s\", rate = \"1Mbit/s\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a trace that is not there",
        "trace = \"no-such-file\"\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a return buffer below one packet",
        "return_rate = \"1kbit/s\"\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "an mtu above that of the path",
        "[[flow]]\nstack = \"reno\"\nmtu = 9000\n",
    ),
    (
        "a train below two segments",
        "[[flow]]\nstack = \"reno\"\ntso = \"2kB\"\n",
    ),
    (
        "a host on both sides",
        "[[flow]]\nname = \"a\"\nstack = \"reno\"\nhost = \"h\"\ntxqueuelen = 5\n[[flow]]\nname = \"b\"\nstack = \"reno\"\nhost = \"h\"\ndirection = \"reverse\"\n",
    ),
    (
        "a host with two queues",
        "[[flow]]\nname = \"a\"\nstack = \"reno\"\nhost = \"h\"\ntxqueuelen = 5\n[[flow]]\nname = \"b\"\nstack = \"reno\"\nhost = \"h\"\ntxqueuelen = 6\n",
    ),
    (
        "a start after the end",
        "[[flow]]\nstack = \"reno\"\nstart_spread = \"2min\"\n",
    ),
    (
        "links without routes",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"l\"\nrate = \"1Mbit/s\"\n",
    ),
    (
        "an unknown link",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"left\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[route]]\nflow = \"main\"\nforward = [\"lft\"]\n",
    ),
    (
        "an unknown flow of a route",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"left\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[route]]\nflow = \"man\"\nforward = [\"left\"]\n",
    ),
    (
        "a link twice in a route",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"l\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[route]]\nflow = \"main\"\nforward = [\"l\", \"l\"]\n",
    ),
    (
        "two routes of a flow",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"l\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[route]]\nflow = \"main\"\nforward = [\"l\"]\n[[route]]\nflow = \"main\"\nforward = [\"l\"]\n",
    ),
    (
        "a route of pure delays",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"l\"\ndelay = \"1ms\"\n[[route]]\nflow = \"main\"\nforward = [\"l\"]\n",
    ),
    (
        "a route in reverse",
        "[[flow]]\nstack = \"reno\"\ndirection = \"reverse\"\n[[link]]\nname = \"l\"\nrate = \"1Mbit/s\"\ndelay = \"20ms\"\n[[route]]\nflow = \"main\"\nforward = [\"l\"]\n",
    ),
    (
        "a link called bottleneck",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"bottleneck\"\nrate = \"1Mbit/s\"\n[[route]]\nflow = \"main\"\nforward = [\"bottleneck\"]\n",
    ),
    (
        "a queue without a rate",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"l\"\ndelay = \"1ms\"\nqueue = \"red\"\n[[route]]\nflow = \"main\"\nforward = [\"bottleneck\", \"l\"]\n",
    ),
    (
        "a named axis without names",
        "[[flow]]\nstack = \"reno\"\n[[matrix.first]]\npath.mtu = 1500\n",
    ),
    (
        "axes that set the same",
        "[[flow]]\nstack = \"reno\"\n[[matrix.first]]\nname = \"a\"\npath.mtu = 1500\n[[matrix.second]]\nname = \"b\"\npath.mtu = 9000\n",
    ),
    (
        "quick: an unknown key",
        "[[flow]]\nstack = \"reno\"\n[quick]\npath.ratte = \"1Mbit/s\"\n",
    ),
    (
        "quick: an unknown name",
        "[[flow]]\nstack = \"reno\"\n[[matrix.first]]\nname = \"wide\"\npath.mtu = 1500\n[quick]\nfirst = [\"wid\"]\n",
    ),
    (
        "quick: a value twice",
        "[[flow]]\nstack = \"reno\"\n[matrix]\n\"path.mtu\" = [1500, 9000]\n[quick]\n\"path.mtu\" = [1500, 1500]\n",
    ),
    (
        "quick: a wrong value",
        "[[flow]]\nstack = \"reno\"\n[quick]\nduration = 5\n",
    ),
];

#[test]
fn wrong_networks() {
    let mut out = String::new();
    for (title, rest) in WRONG {
        let message =
            match Scenario::parse(&format!("{HEAD}{rest}"), "x.toml", &Overrides::default()) {
                Ok(_) => panic!("accepted: {title}"),
                Err(error) => error.to_string(),
            };
        writeln!(out, "# {title}\n{message}\n").unwrap();
    }
    insta::assert_snapshot!(out);
}
