//! A path of two hosts: its way back, its queues, its disturbances, its schedule.

use std::path::Path;

use super::{FLOW, HEAD, link, mbit, ms, names, read, spec, way};
use fullpipe_flow::CeEcho;
use fullpipe_run::{
    Buffer, Change, Departures, Discipline, Loss, Policer, QueueRule, Reorder, SizeLaw, Spacing,
    Waveform,
};
use fullpipe_scenario::{Overrides, Scenario};
use fullpipe_units::{Rate, Span, Time};

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
        assert_eq!(flow.sender.host.tso_segments, 15);
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

/// The bound on segments under way is one on the path, whatever a link is called; an interface has
/// its queue alone.
#[test]
fn a_fast_interface_is_no_long_pipe() {
    let read = |rest: &str| {
        let text = format!("name = \"x\"\nduration = \"60s\"\n{rest}");
        Scenario::parse(&text, "x.toml", &Overrides::default()).map_err(|error| error.to_string())
    };
    let flow = "[[flow]]\nstack = \"reno\"\n";
    let path = "[path]\nrate = \"1Mbit/s\"\nrtt = \"3s\"\n";
    assert!(read(&format!("{path}{flow}nic_rate = \"400Gbit/s\"\n")).is_ok());
    // 400 Gbit/s for 3 s: 1e8 packets of 1500 bytes.
    let link = "[[link]]\nname = \"x\"\nrate = \"400Gbit/s\"\ndelay = \"1500ms\"\n\
                [[route]]\nflow = \"main\"\nforward = [\"x\"]\n";
    let refused = read(&format!("{flow}{link}")).unwrap_err();
    assert!(
        refused.contains("segments would be on the way at once"),
        "{refused}"
    );
}

/// An interface has the rate of the fastest link on the way of any of its flows, at any time, and
/// Linux's queue.
#[test]
fn an_interface_is_as_fast_as_what_its_host_meets() {
    let flows = |keys: &str| {
        let route = |flow: &str, link: &str| {
            format!("[[route]]\nflow = \"{flow}\"\nforward = [\"slow\", \"{link}\"]\n")
        };
        let of_link = |name: &str, rest: &str| {
            format!("[[link]]\nname = \"{name}\"\ndelay = \"1ms\"\n{rest}\n")
        };
        let text = [
            format!("[[flow]]\nname = \"a\"\nstack = \"reno\"\nhost = \"h\"\n{keys}"),
            "[[flow]]\nname = \"b\"\nstack = \"reno\"\nhost = \"h\"\n".to_owned(),
            of_link("slow", "rate = \"10Mbit/s\""),
            of_link("fast", "rate = \"50Mbit/s\""),
            of_link(
                "later",
                "rate = \"1Mbit/s\"\nbuffer = \"9 packets\"\nschedule = [{ at = \"1s\", rate = \"70Mbit/s\" }]",
            ),
            route("a", "fast"),
            route("b", "later"),
        ];
        spec(&text.concat())
    };
    for (keys, rate, packets) in [
        ("txqueuelen = 5\n", 70, 6),
        ("nic_rate = \"1Gbit/s\"\n", 1000, 1001),
        ("nic_rate = \"2Mbit/s\"\ntxqueuelen = 10\n", 2, 11),
    ] {
        let spec = flows(keys);
        let nic = link(&spec, "nic-h");
        assert_eq!(
            (nic.rate, nic.buffer),
            (Some(mbit(rate)), Buffer::Packets(packets)),
            "{keys}"
        );
    }
}

#[test]
fn queues_have_the_parameters_of_their_documents() {
    let queue = |text: &str| {
        let asks = text.contains("ecn = true");
        let flow = format!("[[flow]]\nstack = \"reno\"\necn = {asks}\n");
        let spec = spec(&format!("queue = {text}\n{flow}"));
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

/// Whose discipline it is, and what follows from that.
#[test]
fn queues_are_their_documents_or_the_kernels() {
    let queue = |text: &str| {
        let asks = text.contains("ecn = true");
        let flow = format!("[[flow]]\nstack = \"reno\"\necn = {asks}\n");
        let spec = spec(&format!("queue = {text}\n{flow}"));
        spec.links[0].discipline
    };
    for kind in ["red", "adaptive-red", "pie", "codel", "fq-codel"] {
        let plain = queue(&format!("\"{kind}\""));
        assert_eq!(plain.by(), Some(QueueRule::Rfc), "{kind}");
        let linux = queue(&format!("{{ kind = \"{kind}\", by = \"linux\" }}"));
        assert_eq!(linux.by(), Some(QueueRule::Linux), "{kind}");
    }
    let ns2 = queue("{ kind = \"adaptive-red\", by = \"ns-2\" }");
    assert_eq!(ns2.by(), Some(QueueRule::Ns2));
    let red = |text: &str| match queue(&format!("{{ kind = \"red\", {text} }}")) {
        Discipline::Red(red) => (red.gentle, red.harddrop),
        other => panic!("{other:?}"),
    };
    assert_eq!(red("ecn = true"), (true, true));
    assert_eq!(red("by = \"ns-2\", ecn = true"), (true, true));
    assert_eq!(red("by = \"linux\""), (false, false));
    assert_eq!(red("by = \"linux\", harddrop = true"), (false, true));
    let Discipline::Pie(pie) = queue("{ kind = \"pie\", by = \"linux\", hz = 1000 }") else {
        panic!("pie")
    };
    assert_eq!(pie.hz, 1000);
}

/// 60,000 packets of 1500 bytes take 27 bits, which leave four for the weight: 2^-4
/// (`red_check_params`: their sum is below 32). The papers' RED counts in reals.
#[test]
fn the_weight_of_the_kernels_red_is_what_it_can_count() {
    let weight = |text: &str| {
        let text = format!("queue = {{ min = \"20000 packets\", {text} }}\n{FLOW}");
        match spec(&text).links[0].discipline {
            Discipline::Red(red) => red.weight,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(weight("kind = \"red\", by = \"linux\""), 1.0 / 16.0);
    assert_eq!(weight("kind = \"red\""), 0.002);
    let adaptive = "kind = \"adaptive-red\", by = \"linux\"";
    assert_eq!(weight(adaptive), 1.0 / 16.0);
    // The nearest power of two counts.
    assert_eq!(weight(&format!("{adaptive}, weight = 0.05")), 0.05);
}

/// Datagrams of 9000 bytes at twice the rate keep the kernel's RED full: a buffer of 40 packets has
/// 39 that wait, and thresholds in bytes are those bytes, whatever the length of packets.
#[test]
fn the_kernels_red_has_packets_of_the_path() {
    let most = |red: &str| {
        let text = format!(
            "mtu = 9000\nbuffer = \"40 packets\"\n\
             queue = {{ kind = \"red\", by = \"linux\", {red} }}\n{FLOW}[[traffic]]\n\
             name = \"flood\"\nkind = \"udp\"\nrate = \"200Mbit/s\"\n"
        );
        let mut spec = spec(&text);
        spec.flows.clear();
        let outcome = fullpipe_sim::run(&spec).unwrap();
        outcome.links[0].queue_max
    };
    assert_eq!(most("min = \"100 packets\""), 40);
    assert_eq!(most("min = \"900kB\", max = \"2.7MB\""), 40);
    // Above 30 packets everything is dropped.
    let low = most("min = \"90kB\", max = \"270kB\", weight = 0.5");
    assert!((28..=33).contains(&low), "{low}");
}

/// A flow that can say ECN is warned of only where nothing marks.
#[test]
fn a_marking_queue_needs_no_warning() {
    let text =
        |queue: &str| format!("{HEAD}queue = {queue}\n[[flow]]\nstack = \"reno\"\necn = true\n");
    assert_eq!(read(&text("\"pie\"")).warnings.len(), 1);
    assert_eq!(read(&text("{ kind = \"pie\", ecn = true }")).warnings, []);
}

/// DCTCP asks for ECN and exact echoes itself. It is told where nothing marks, where `ecn` is off,
/// and where its step comes too late.
#[test]
fn dctcp_needs_a_queue_that_marks() {
    let text = |queue: &str, more: &str| {
        format!("{HEAD}queue = {queue}\n[[flow]]\nname = \"a\"\nstack = \"dctcp\"\n{more}")
    };
    let said = |queue: &str, more: &str| -> Vec<String> {
        let warnings = read(&text(queue, more)).warnings;
        let said = warnings.iter().map(|w| format!("{}: {}", w.key, w.message));
        said.collect()
    };
    let step = "{ kind = \"codel\", ce_threshold = \"1ms\" }";
    assert_eq!(said(step, ""), [""; 0]);
    let spec = read(&text(step, "")).cases[0].run_spec(1);
    let flow = &spec.flows[0];
    assert!(flow.sender.ecn);
    assert_eq!(flow.receiver.ce_echo, CeEcho::EachChange);
    let plain = said("\"droptail\"", "");
    assert!(
        plain[0].starts_with("flow.a.ecn: `dctcp` lives on marks"),
        "{plain:?}"
    );
    let off = said(step, "ecn = false\n");
    assert!(
        off.iter().any(|w| w.ends_with("its `ecn` is false")),
        "{off:?}"
    );
    let late = said("{ kind = \"fq-codel\", ce_threshold = \"6ms\" }", "");
    let expected = "path.queue.ce_threshold: the law acts from `target`, 5ms, on";
    assert!(late.len() == 1 && late[0].starts_with(expected), "{late:?}");
}

/// A queue that is to mark is warned of where no flow over it asks for ECN, whatever other queues
/// and flows there are, and in a matrix beside values that mark nothing.
#[test]
fn a_marking_queue_needs_a_flow_that_asks_for_ecn() {
    let said = |text: &str| -> Vec<String> {
        let warnings = read(&format!("{HEAD}{text}")).warnings;
        let said = warnings.iter().map(|w| format!("{}: {}", w.key, w.message));
        said.collect()
    };
    let marks = "{ kind = \"codel\", ecn = true }";
    let flow =
        |name: &str, more: &str| format!("[[flow]]\nname = \"{name}\"\nstack = \"reno\"\n{more}");
    let alone = format!("queue = {marks}\n{}", flow("a", ""));
    let of_a = "path.queue.ecn: nothing is marked: `flow.a`, alone over this queue, does not ask \
                for ECN, as `flow.a.ecn = true` does";
    assert_eq!(said(&alone), [of_a]);
    assert_eq!(said(&format!("{alone}ecn = true\n")), [""; 0]);
    let matrix = format!(
        "{}[matrix]\n\"path.queue\" = [\"droptail\", {marks}, {{ kind = \"pie\" }}]\n",
        flow("a", "")
    );
    assert_eq!(said(&matrix), [of_a]);

    // The second of two queues in a row, which others than the first's flow cross.
    let links = |asks: &str| {
        let link = |name: &str| {
            format!(
                "[[link]]\nname = \"{name}\"\nrate = \"9Mbit/s\"\ndelay = \"5ms\"\nqueue = {marks}\n"
            )
        };
        let web = "[[traffic]]\nname = \"web\"\nkind = \"short-flows\"\nstack = \"reno\"\n\
                   size = \"9 segments\"\nper_second = 1\n";
        let route = |flow: &str, over: &str| {
            format!("[[route]]\nflow = \"{flow}\"\nforward = [\"{over}\"]\n")
        };
        said(
            &[
                link("one"),
                link("two"),
                flow("a", "ecn = true\n"),
                flow("b", asks),
                web.to_owned(),
                route("a", "one"),
                route("b", "two"),
                route("web", "two"),
            ]
            .concat(),
        )
    };
    assert_eq!(
        links(""),
        [
            "link.two.queue.ecn: nothing is marked: over this queue neither `flow.b` nor \
          `traffic.web` asks for ECN, as `flow.b.ecn = true` does"
        ]
    );
    assert_eq!(links("ecn = true\n"), [""; 0]);
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

/// The run of the file lasts 60 s.
#[test]
fn an_outage_beyond_the_end_is_remarked_on() {
    let said = |at: &str, outage: &str| {
        let schedule = format!("schedule = {{ at = \"{at}\", outage = \"{outage}\" }}\n");
        let warnings = read(&format!("{HEAD}{schedule}{FLOW}")).warnings;
        warnings
            .iter()
            .map(|w| w.message.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(said("50s", "10s"), [""; 0]);
    assert_eq!(said("50s", "11s"), ["the run ends before this does"]);
    assert_eq!(said("60s", "1s").len(), 1, "nothing of it happens");
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
        spec.cross[0].departures,
        Departures::Rate(
            Waveform::Steps {
                steps: vec![(Span::ZERO, zero), (ms(1000), mbit(1)), (ms(2500), mbit(3))],
                period: Some(ms(5000)),
            },
            Spacing::Even
        )
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

/// A kind of path stands for the keys of its file, which the reference page tells; a key beside it
/// wins.
#[test]
fn a_kind_of_path_stands_for_its_keys() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("paths");
    let files = std::fs::read_dir(folder).unwrap();
    let page = Scenario::reference();
    let mut kinds = Vec::new();
    for file in files.map(|f| f.unwrap().path()) {
        let kind = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let keys = std::fs::read_to_string(&file).unwrap();
        assert!(keys.starts_with("# "), "{kind}: its source");
        let head = "name = \"x\"\nduration = \"10s\"\n[path]\n";
        let long = read(&format!("{head}{keys}{FLOW}"));
        let short = read(&format!("{head}preset = \"{kind}\"\n{FLOW}"));
        assert_eq!(short.warnings, [], "{kind}");
        let [short, long] = [short, long].map(|s| format!("{:?}", s.cases[0].run_spec(1)));
        assert_eq!(short, long, "{kind}");
        let doc = page
            .lines()
            .find(|l| l.starts_with(&format!("- `\"{kind}\"`: ")));
        for line in keys.lines().filter(|l| !l.starts_with('#')) {
            let (_, value) = line.split_once(" = ").unwrap();
            let value = value.trim_matches('"');
            assert!(doc.unwrap().contains(value), "{kind}: {value}");
        }
        kinds.push(kind);
    }
    kinds.sort();
    assert_eq!(
        kinds,
        [
            "cellular",
            "dtn",
            "geo",
            "leo",
            "metro",
            "transatlantic",
            "wifi"
        ]
    );
    let path = "name = \"x\"\nduration = \"10s\"\n[path]\npreset = \"geo\"\nrtt = \"20ms\"\n";
    let matrix = "[matrix]\n\"path.preset\" = [\"geo\", \"metro\"]\n\"path.mtu\" = [1500, 9000]\n";
    let both = read(&format!("{path}{FLOW}{matrix}"));
    let rates = both.cases.iter().map(|case| {
        let spec = case.run_spec(1);
        assert_eq!(case.flows[0].base_rtt, ms(20), "a key of the file wins");
        link(&spec, "bottleneck").rate.unwrap()
    });
    let rates: Vec<Rate> = rates.collect();
    assert_eq!(rates, [mbit(100), mbit(100), mbit(1000), mbit(1000)]);
    let metro = both.cases[2].run_spec(1);
    assert!(names(&both.cases[0].run_spec(1)).contains(&"return"));
    assert!(
        !names(&metro).contains(&"return"),
        "that of the other kind only"
    );
}
