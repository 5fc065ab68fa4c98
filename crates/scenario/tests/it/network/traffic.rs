//! Datagrams, blasts, probes and short flows.

use super::{HEAD, mbit, ms, read, spec, way};
use fullpipe_run::{Arrivals, Departures, RunSpec, Session, SizeLaw, Spacing, Waveform};
use fullpipe_scenario::{Scenario, TrafficKind};
use fullpipe_units::{Span, Time};

fn traffic(lines: &str) -> (Scenario, RunSpec) {
    let scenario = read(&format!("{HEAD}[[traffic]]\nname = \"t\"\n{lines}\n"));
    let spec = scenario.cases[0].run_spec(1);
    (scenario, spec)
}

#[test]
fn datagrams_have_a_waveform() {
    let waveform = |lines: &str| match traffic(lines).1.cross.remove(0).departures {
        Departures::Rate(waveform, Spacing::Even) => waveform,
        other => panic!("{other:?}"),
    };
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
    // What is left of the way is a step, too.
    assert_eq!(
        waveform(&stairs.replace("\"40M", "\"35M")),
        steps(&[(0, 10), (5, 20), (10, 30), (15, 35)], None)
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
    let source = &spec.cross[0];
    let end = Time::ZERO + Span::from_secs(3);
    assert_eq!(source.stop, Some(end + Span::from_nanos(1)));
    assert_eq!((source.packet, source.answered), (200, false));
    assert!(matches!(
        source.departures,
        Departures::Rate(_, Spacing::Poisson)
    ));
    assert_eq!(way(&spec, &source.forward), ["bottleneck"]);
    let group = &scenario.cases[0].traffic[0];
    assert_eq!(
        (group.kind, group.index, group.name.as_str()),
        (TrafficKind::Datagrams, 0, "t")
    );
    assert_eq!(group.offered, Some(mbit(80)));
}

/// Whatever the order of the file, what is answered comes last in a run, and every group knows its
/// place.
#[test]
fn probes_come_after_datagrams() {
    let table = |name: &str, rest: &str| format!("[[traffic]]\nname = \"{name}\"\n{rest}\n");
    let (ping, udp) = ("kind = \"ping\"", "kind = \"udp\"\nrate = \"1Mbit/s\"");
    let text = [("p", ping), ("a", udp), ("q", ping), ("b", udp)].map(|(n, rest)| table(n, rest));
    let scenario = read(&format!("{HEAD}{}", text.concat()));
    let spec = scenario.cases[0].run_spec(1);
    let names: Vec<&str> = spec.cross.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "p", "q"]);
    let groups = scenario.cases[0].traffic.iter();
    let places: Vec<(&str, usize)> = groups.map(|g| (g.name.as_str(), g.index)).collect();
    assert_eq!(places, [("p", 2), ("a", 0), ("q", 3), ("b", 1)]);
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
        assert_eq!(outcome.cross[0].sent, packets, "{rate} {volume}");
    }
}

#[test]
fn probes_follow_the_path() {
    let (scenario, spec) = traffic("kind = \"ping\"");
    let ping = &spec.cross[0];
    let every = |gap| Departures::Every(ms(gap));
    assert_eq!((&ping.departures, ping.packet), (&every(100), 92));
    assert!(ping.answered);
    assert_eq!(way(&spec, &ping.forward), ["bottleneck"]);
    assert_eq!(way(&spec, &ping.back), ["return-40ms"]);
    assert_eq!(scenario.cases[0].traffic[0].base_rtt, ms(80));
    let (_, spec) =
        traffic("kind = \"ping\"\ndirection = \"reverse\"\ninterval = \"1s\"\nsize = \"1000B\"");
    let ping = &spec.cross[0];
    assert_eq!((&ping.departures, ping.packet), (&every(1000), 1028));
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
    assert_eq!(class.template.sender.window.initial, 2.0);
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

/// 60 Mbit/s of ten packets each are 500 transfers per second: 100 sessions of five.
#[test]
fn sessions_offer_the_load_of_all_their_transfers() {
    let head = "kind = \"short-flows\"\nstack = \"reno\"\nsize = \"10 segments\"\n";
    let one = |lines: &str| {
        let (scenario, mut spec) = traffic(&format!("{head}{lines}"));
        (scenario, spec.arrivals.remove(0))
    };
    let (_, class) = one("load = \"60%\"");
    assert_eq!(class.session, Session::default());
    let (scenario, class) = one("load = \"60%\"\nexchanges = 5\nthink = \"2s\"");
    let session = Session {
        exchanges: 5.0,
        think: ms(2000),
    };
    assert_eq!(class.session, session);
    assert_eq!(class.arrivals, Arrivals::Poisson { per_second: 100.0 });
    let group = &scenario.cases[0].traffic[0];
    assert_eq!(
        (group.mean_size, group.offered),
        (Some(10.0), Some(mbit(60)))
    );
    let (scenario, _) = one("every = \"100ms\"\nexchanges = 5");
    assert_eq!(scenario.cases[0].traffic[0].offered, Some(mbit(6)));
    // Users who never leave: in a minute of round trips of 80 ms and thoughts of 1 s none has more
    // than 57 transfers, and one is open at a time.
    let (_, class) = one("count = 10000\nexchanges = 1e6\nthink = \"1s\"");
    assert_eq!(class.session.exchanges, 1e6);

    // In the long run the link is as busy as the load says: 100 transfers a second in all.
    let (_, spec) = traffic(&format!(
        "{head}load = \"12%\"\nexchanges = 5\nthink = \"100ms\""
    ));
    let outcome = fullpipe_sim::run(&spec).unwrap();
    let transfers = outcome.arrivals[0].transfers.len() as f64;
    // Of 1200 sessions; the variance of a sum of geometric ones is 1200 (20 + 25).
    assert!(
        (transfers - 6000.0).abs() < 4.0 * 54e3f64.sqrt(),
        "{transfers}"
    );
}

/// The camps of draft-irtf-iccrg-tcpeval-01 section 6.1.2, whatever stack either has; one that is
/// left out still says what the other has.
#[test]
fn paired_camps_have_the_same_transfers() {
    let camp = |name: &str, lines: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"short-flows\"\nload = \"20%\"\n\
             size = {{ uniform = [2, 30] }}\n{lines}\n"
        )
    };
    let a = camp("a", "stack = \"reno\"");
    let b = camp("b", "stack = \"cubic\"\npaired_with = \"a\"");
    let paired = spec(&format!("{a}{b}"));
    assert_eq!(paired.arrivals[0].seeded_by, None);
    assert_eq!(paired.arrivals[1].seeded_by.as_deref(), Some("a"));
    let drawn = |spec: &RunSpec, i: usize| -> Vec<(Time, u64)> {
        let outcome = fullpipe_sim::run(spec).unwrap();
        let transfers = outcome.arrivals[i].transfers.iter();
        transfers.map(|t| (t.start, t.size)).collect()
    };
    let transfers = drawn(&paired, 0);
    assert!(transfers.len() > 500);
    assert_eq!(transfers, drawn(&paired, 1));
    // The order of the tables does not matter.
    let turned = spec(&format!("{b}{a}"));
    assert_eq!(drawn(&turned, 0), transfers);
    let apart = spec(&format!("{a}{}", camp("b", "stack = \"cubic\"")));
    assert_ne!(drawn(&apart, 1)[..50], transfers[..50]);
    let away = camp("a", "stack = \"reno\"\nenabled = false");
    assert_eq!(drawn(&spec(&format!("{away}{b}")), 0), transfers);
}

/// On grounds whose hosts have a place, short flows in reverse set out at the far one.
#[test]
fn short_flows_in_reverse_set_out_at_the_other_host() {
    for (direction, reverse) in [("forward", false), ("reverse", true)] {
        let spec = spec(&format!(
            "[[traffic]]\nname = \"web\"\nkind = \"short-flows\"\nstack = \"reno\"\n\
             size = \"9 segments\"\nper_second = 1\ndirection = \"{direction}\"\n"
        ));
        assert_eq!(spec.arrivals[0].template.reverse, reverse, "{direction}");
    }
}
