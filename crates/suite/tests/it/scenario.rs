//! Valid scenario files resolve to what they say.

use fullpipe_cc::Count;
use fullpipe_flow::{
    AckCompression, ArtificialLoss, Detector, LocalDrop, LossWindow, Reduction, RtoRule, RttSample,
    TimerGrain, Validation,
};
use fullpipe_sim::{Buffer, Drops, Loss, Trace};
use fullpipe_suite::scenario::{Overrides, RecoveredAt, Scenario};
use fullpipe_units::{Rate, Span, Time};

fn read(text: &str) -> Scenario {
    parse(text, &[])
}

fn parse(text: &str, set: &[(&str, &str)]) -> Scenario {
    let set = set
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    let overrides = Overrides {
        set,
        ..Overrides::default()
    };
    Scenario::parse(text, "test.toml", &overrides).unwrap_or_else(|e| panic!("{e}"))
}

/// The example of the file format's definition, without its cross traffic.
const CONTRACT: &str = r#"name = "early-loss"
about = "Time to full bandwidth after one loss early in slow start (Net100, 2003)"
duration = "700s"
seeds = 1                      # number of seeds, or a list

[path]                         # the bottleneck of a dumbbell; [[link]] and [[route]] describe other graphs
rate = "500Mbit/s"
rtt = "80ms"
buffer = "1BDP"                # "200 packets", "2MB", "50ms"
queue = "droptail"
mtu = 1500

[[flow]]
name = "main"
stack = "reno"
preset = "2003"                # 2003 | 2026 (default, the RFCs of today) | linux: a named set of endpoint switches; any switch can be set beside it
window = "3500 segments"
initial_window = "2 segments"
delayed_ack = false
start = "0s"
drop = { segment = 40 }        # or { at_cwnd = 32 }, { every = 1000 }, { probability = 1e-5 }; where = "path" | "sender"

[matrix]                       # any key, any list: the product is run
"flow.main.stack" = ["reno", "highspeed", "aimd(decrease=0.3,increase=15)"]
"path.mtu" = [1500, 9000]

[measure]
interval = "5s"
warmup = "20s"

[[expect]]
metric = "recovery_time_s"
where = { "flow.main.stack" = "reno", "path.mtu" = 1500 }
within = [252, 312]
source = "seed 000: 284 s"

[[report]]                     # which figures, which axes
figure = "cwnd"
"#;

#[test]
fn the_contract_example_resolves() {
    let scenario = read(CONTRACT);
    assert_eq!(scenario.name, "early-loss");
    assert_eq!(scenario.seeds, [1]);
    assert_eq!(scenario.warnings, []);
    let params: Vec<Vec<&str>> = scenario
        .cases
        .iter()
        .map(|case| {
            case.params
                .iter()
                .map(|(_, value)| value.as_str())
                .collect()
        })
        .collect();
    let aimd = "aimd(decrease=0.3,increase=15)";
    assert_eq!(
        params,
        [
            ["reno", "1500"],
            ["reno", "9000"],
            ["highspeed", "1500"],
            ["highspeed", "9000"],
            [aimd, "1500"],
            [aimd, "9000"]
        ]
    );
    let json: Vec<String> = scenario.cases[1]
        .json_params()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    assert_eq!(json, ["flow.main.stack=\"reno\"", "path.mtu=9000"]);

    let spec = scenario.cases[0].run_spec(7);
    assert_eq!(spec.seed, 7);
    assert_eq!(spec.duration, Span::from_secs(700));
    assert_eq!(spec.measure_from, Time::ZERO + Span::from_secs(20));
    assert_eq!(spec.interval, Span::from_secs(5));
    assert_eq!(spec.trace, Trace::Every(Span::from_millis(350)));
    assert_eq!(spec.links.len(), 2);
    let bottleneck = &spec.links[0];
    assert_eq!(bottleneck.name, "bottleneck");
    assert_eq!(bottleneck.rate, Some(Rate::from_bits_per_sec(500_000_000)));
    assert_eq!(bottleneck.delay, Span::from_millis(40));
    assert_eq!(bottleneck.buffer, Buffer::Packets(3333));
    assert_eq!(bottleneck.loss, Loss::None);
    assert_eq!(
        (spec.links[1].name.as_str(), spec.links[1].rate),
        ("return-40ms", None)
    );
    assert_eq!(spec.links[1].buffer, Buffer::Unlimited);
    let [flow] = spec.flows.as_slice() else {
        panic!("one flow")
    };
    assert_eq!(
        (flow.name.as_str(), flow.stack.to_string().as_str()),
        ("main", "reno")
    );
    assert_eq!(
        (flow.forward.as_slice(), flow.back.as_slice()),
        ([0].as_slice(), [1].as_slice())
    );
    assert_eq!((flow.sender.mss, flow.sender.header), (1448, 52));
    assert_eq!(flow.sender.max_window, 3500.0);
    assert_eq!(flow.sender.initial_window, 2.0);
    assert_eq!(flow.sender.count, Count::Acks);
    assert_eq!(flow.sender.detector, Detector::Sack);
    assert_eq!(flow.receiver.ack_every, 1);
    assert_eq!(
        flow.drops,
        Drops {
            segments: vec![40],
            ..Drops::default()
        }
    );

    let jumbo = scenario.cases[1].run_spec(1);
    assert_eq!(jumbo.links[0].buffer, Buffer::Packets(555));
    assert_eq!(jumbo.flows[0].sender.mss, 8948);
    assert_eq!(scenario.cases[4].flows[0].stack, aimd_canonical());

    let [expectation] = scenario.expectations.as_slice() else {
        panic!("one expectation")
    };
    assert_eq!(expectation.cases, [0]);
    assert_eq!(expectation.bound, (252.0, 312.0));
    assert_eq!(expectation.flow.as_deref(), Some("main"));
    assert_eq!(expectation.source, "seed 000: 284 s");
    assert_eq!(expectation.line, 31);
    assert_eq!(
        expectation.name,
        "recovery_time_s: flow.main.stack = reno, path.mtu = 1500"
    );
    assert_eq!(expectation.where_, scenario.cases[0].params);
    assert_eq!(scenario.reports[0].figure, "cwnd");
}

fn aimd_canonical() -> String {
    fullpipe_cc::StackSpec::parse("aimd(decrease=0.3,increase=15)")
        .unwrap()
        .to_string()
}

const SMALL: &str = "name = \"x\"\nduration = \"60s\"\n[path]\nrate = \"100Mbit/s\"\nrtt = \"80ms\"\n[[flow]]\nstack = \"reno\"\n";

/// The smallest file with lines added to its flow (and tables behind it).
fn small(lines: &str) -> String {
    format!("{SMALL}{lines}")
}

#[test]
fn defaults() {
    let scenario = read(SMALL);
    assert_eq!(
        (scenario.seeds.as_slice(), scenario.cases.len()),
        ([1].as_slice(), 1)
    );
    let case = &scenario.cases[0];
    assert_eq!(case.params, []);
    let group = &case.flows[0];
    assert_eq!((group.name.as_str(), group.members.clone()), ("main", 0..1));
    assert_eq!(group.recovered_at, RecoveredAt::Rate(0.95));
    assert_eq!(
        (group.window_cap, group.transfer, group.stop),
        (None, None, None)
    );
    let spec = case.run_spec(1);
    assert_eq!(spec.interval, Span::from_secs(3), "a twentieth of the run");
    assert_eq!(spec.links[0].buffer, Buffer::Packets(666));
    let flow = &spec.flows[0];
    assert_eq!(
        flow.sender,
        fullpipe_flow::SenderConfig::preset(fullpipe_flow::Preset::Y2026, 1500)
    );
    assert_eq!(
        flow.receiver,
        fullpipe_flow::ReceiverConfig::preset(fullpipe_flow::Preset::Y2026)
    );
    assert_eq!(
        (flow.local_queue, flow.start, flow.stop),
        (false, Time::ZERO, None)
    );
}

/// Every key of a flow, with other values than the defaults.
const SWITCHES: &str = r#"name = "x"
duration = "60s"
[path]
rate = "100Mbit/s"
rtt = "80ms"
[[flow]]
stack = "reno"
preset = "2003"
streams = 3
window = "1BDP"
receive_window = "8MB"
initial_window = "4 segments"
ack_every = 3
ack_delay = "250ms"
start = "1s"
stop = "50s"
size = "10MB"
rtt = "160ms"
recovery = "newreno"
prr = true
tlp = true
frto = true
undo = true
min_rto = "300ms"
count = "segments"
pacing = true
validation = "rfc2861"
sendstall = "ignore"
txqueuelen = 100
nic_rate = "1Gbit/s"
timestamps = false
handshake = true
slow_start_limit = 8
lost_retransmission = "reduce"
decrease_base = "cwnd"
hz = 100
timers = "wheel"
rto_formula = "linux"
rtt_sample = "oldest"
loss_window = "flight"
recover_from_loss = true
timeout_reduces_in_recovery = false
head_restarts_timer = true
push = true
first_window = "45 segments"
quick_acks = 16
merge_acks = true
drop = [{ segment = [7, 3, 7] }, { at_cwnd = 32, where = "sender" }, { every = 1000 }, { time = ["4.73s", "2s"], probability = "0.001%", where = "sender" }]
"#;

#[test]
fn every_switch_of_a_flow() {
    let scenario = read(SWITCHES);
    let spec = scenario.cases[0].run_spec(1);
    let names: Vec<&str> = spec.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["main.1", "main.2", "main.3"]);
    let links: Vec<&str> = spec.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["bottleneck", "nic-main", "return-80ms"]);
    assert_eq!(spec.links[1].buffer, Buffer::Packets(101));
    assert_eq!(
        spec.links[1].rate,
        Some(Rate::from_bits_per_sec(1_000_000_000))
    );
    let flow = &spec.flows[2];
    assert_eq!(
        (
            flow.forward.as_slice(),
            flow.back.as_slice(),
            flow.local_queue
        ),
        ([1, 0].as_slice(), [2].as_slice(), true)
    );
    let s = &flow.sender;
    // 100 Mbit/s x 160 ms = 1333.3 packets; 10 MB / 1460 B = 6849.3 segments.
    assert_eq!(
        (s.mss, s.header, s.max_window, s.initial_window),
        (1460, 40, 1333.0, 4.0)
    );
    assert_eq!(s.transfer, Some(6850));
    assert_eq!(
        (s.reduction, s.tlp, s.frto, s.undo, s.handshake),
        (Reduction::Prr, true, true, true, true)
    );
    assert_eq!(s.rto.min, Span::from_millis(300));
    assert_eq!(
        (s.hz, s.timers, s.rto.rule, s.rto.sample, s.loss_window),
        (
            100,
            TimerGrain::Wheel,
            RtoRule::Linux,
            RttSample::Oldest,
            LossWindow::FlightPlusOne
        )
    );
    assert_eq!(
        (
            s.recover_from_loss,
            s.timeout_reduces_in_recovery,
            s.head_restarts_timer,
            s.refill
        ),
        (true, false, true, Some(0.694))
    );
    let r = &flow.receiver;
    assert_eq!(
        (r.hz, r.first_window, r.quick_acks, r.compression),
        (Some(100), Some(45), 16, Some(AckCompression::LINUX))
    );
    assert_eq!(
        (s.count, s.detector, s.validation),
        (Count::Segments, Detector::NewReno, Validation::Rfc2861)
    );
    assert_eq!(s.pacing, Some(fullpipe_cc::PacingGains::default()));
    assert_eq!(s.local_drop, LocalDrop::Ignore);
    assert_eq!(s.slow_start_limit, Some(8.0));
    assert!(s.reduce_on_lost_retransmission);
    assert_eq!(s.base, fullpipe_cc::Base::Cwnd);
    assert_eq!(s.max_ack_delay, Span::from_millis(250));
    let r = &flow.receiver;
    assert_eq!(
        (r.ack_every, r.ack_delay, r.sack, r.sack_blocks),
        (3, Span::from_millis(250), false, 4)
    );
    assert_eq!(r.window, Some(5479));
    let at = |secs: f64| Time::from_secs_f64(secs);
    assert_eq!(
        flow.drops,
        Drops {
            segments: vec![3, 7],
            every: Some(1000),
            ..Drops::default()
        }
    );
    let sender_side = ArtificialLoss {
        at_window: Some(32.0),
        times: vec![at(2.0), at(4.73)],
        probability: 1e-5,
        ..ArtificialLoss::default()
    };
    assert_eq!(s.artificial_loss, sender_side);
    let group = &scenario.cases[0].flows[0];
    assert_eq!(
        (group.members.clone(), group.window_cap, group.has_drops),
        (0..3, Some(1333.0), true)
    );
    assert_eq!((group.start, group.stop), (at(1.0), Some(at(50.0))));
}

#[test]
fn own_round_trips_share_the_forward_path() {
    let flows = r#"
[[flow]]
name = "b"
stack = "reno"
rtt = "200ms"
[[flow]]
name = "c"
stack = "reno"
rtt = "200ms"
"#;
    let text = SMALL.replace("[[flow]]", "[[flow]]\nname = \"a\"") + flows;
    let spec = read(&text).cases[0].run_spec(1);
    let links: Vec<(&str, Span)> = spec
        .links
        .iter()
        .map(|link| (link.name.as_str(), link.delay))
        .collect();
    let ms = Span::from_millis;
    assert_eq!(
        links,
        [
            ("bottleneck", ms(40)),
            ("return-40ms", ms(40)),
            ("return-160ms", ms(160))
        ]
    );
    let back: Vec<usize> = spec.flows.iter().map(|flow| flow.back[0]).collect();
    assert_eq!(back, [1, 2, 2]);
}

#[test]
fn windows_of_the_net100_path() {
    // 500 Mbit/s x 80 ms: 3500 segments of 1500 bytes, 583 of 9000.
    let text = CONTRACT.replace("3500 segments", "1.05BDP");
    let caps: Vec<Option<f64>> = read(&text)
        .cases
        .iter()
        .map(|case| case.flows[0].window_cap)
        .collect();
    assert_eq!(
        caps,
        [
            Some(3500.0),
            Some(583.0),
            Some(3500.0),
            Some(583.0),
            Some(3500.0),
            Some(583.0)
        ]
    );
    let text = text.replace("warmup", "recovered_at = { window = 1.0 }\nwarmup");
    assert_eq!(
        read(&text).cases[1].flows[0].recovered_at,
        RecoveredAt::Window(583.0)
    );
    let text = text.replace("window = 1.0", "window = \"1BDP\"");
    assert_eq!(
        read(&text).cases[1].flows[0].recovered_at,
        RecoveredAt::Window(555.0)
    );
}

#[test]
fn buffers_and_losses() {
    let link = |lines: &str| {
        let text = SMALL.replace("rtt = \"80ms\"\n", &format!("rtt = \"80ms\"\n{lines}\n"));
        read(&text).cases[0].run_spec(1).links.remove(0)
    };
    assert_eq!(link("buffer = \"2MB\"").buffer, Buffer::Bytes(2_000_000));
    assert_eq!(
        link("buffer = \"50ms\"").buffer,
        Buffer::Time(Span::from_millis(50))
    );
    assert_eq!(link("buffer = \"0.5BDP\"").buffer, Buffer::Packets(333));
    assert_eq!(link("buffer = \"unlimited\"").buffer, Buffer::Unlimited);
    assert_eq!(link("loss = 0.25").loss, Loss::Bernoulli { p: 0.25 });
    assert_eq!(link("loss = \"0.01%\"").loss, Loss::Bernoulli { p: 1e-4 });
    assert_eq!(link("loss = 0").loss, Loss::None);
    let table = "loss = { model = \"gilbert-elliott\", to_bad = 1e-4, to_good = 0.1 }";
    assert_eq!(
        link(table).loss,
        Loss::GilbertElliott {
            to_bad: 1e-4,
            to_good: 0.1,
            good: 0.0,
            bad: 1.0
        }
    );
}

#[test]
fn tables_and_keys_inside_them_vary() {
    let scenario = read(&small(
        r#"
drop = { probability = 0.01 }
[matrix]
"flow.main.drop.where" = ["path", "sender"]
"flow.main.drop.probability" = [1e-2, 1e-3]
"#,
    ));
    let losses: Vec<(f64, f64)> = scenario
        .cases
        .iter()
        .map(|case| {
            let flow = &case.run_spec(1).flows[0];
            (
                flow.drops.probability,
                flow.sender.artificial_loss.probability,
            )
        })
        .collect();
    assert_eq!(losses, [(1e-2, 0.0), (1e-3, 0.0), (0.0, 1e-2), (0.0, 1e-3)]);

    let scenario = read(&small(
        "[matrix]\n\"flow.*.drop\" = [{ every = 100 }, { segment = 7, where = \"sender\" }]",
    ));
    assert_eq!(
        scenario.cases[1].params[0].1,
        "{ segment = 7, where = \"sender\" }"
    );
    assert_eq!(
        scenario.cases[1].run_spec(1).flows[0]
            .sender
            .artificial_loss
            .segments,
        [7]
    );

    // A table of a case takes the place of the file's table; a dotted key goes into it.
    let scenario = read(&small(
        r#"
drop = { segment = 20 }
[[matrix.case]]
name = "as in the file"
[[matrix.case]]
name = "replaced"
flow.main.drop = { every = 100 }
[[matrix.case]]
name = "refined"
flow.main.drop.every = 100
[[matrix.case]]
name = "none"
flow.main.drop = []
"#,
    ));
    let drops: Vec<(usize, Option<u64>)> = scenario
        .cases
        .iter()
        .map(|case| case.run_spec(1).flows.remove(0).drops)
        .map(|drops| (drops.segments.len(), drops.every))
        .collect();
    assert_eq!(
        drops,
        [(1, None), (0, Some(100)), (1, Some(100)), (0, None)]
    );

    // Without quotes a dotted key is a nest of tables.
    let scenario = read(&small(
        "[matrix]\nflow.main.stack = [\"reno\", \"highspeed\"]",
    ));
    assert_eq!(scenario.cases[1].flows[0].stack, "highspeed");
}

#[test]
fn settings() {
    let scenario = parse(
        SMALL,
        &[
            ("path.rate", "1Gbit/s"),
            ("flow.stack", "highspeed(low_window=31)"),
            ("duration", "\"10s\""),
            ("seeds", "[4, 5]"),
        ],
    );
    let spec = scenario.cases[0].run_spec(1);
    assert_eq!(
        spec.links[0].rate,
        Some(Rate::from_bits_per_sec(1_000_000_000))
    );
    assert_eq!(spec.flows[0].stack.to_string(), "highspeed(low_window=31)");
    assert_eq!(
        (spec.duration, scenario.seeds.as_slice()),
        (Span::from_secs(10), [4, 5].as_slice())
    );
    assert_eq!(scenario.cases[0].params, []);

    // A key of the matrix keeps its place with one value; expectations about the others do not apply.
    let scenario = parse(CONTRACT, &[("flow.main.stack", "highspeed")]);
    assert_eq!(scenario.cases.len(), 2);
    assert_eq!(
        scenario.cases[1].params[0],
        ("flow.main.stack".to_owned(), "highspeed".to_owned())
    );
    assert_eq!(scenario.expectations, []);
    let scenario = parse(
        CONTRACT,
        &[("path.mtu", "1500"), ("flow.main.drop.segment", "41")],
    );
    assert_eq!((scenario.cases.len(), scenario.expectations.len()), (3, 1));
    assert_eq!(scenario.cases[2].run_spec(1).flows[0].drops.segments, [41]);

    let seeded = |seed, repeat| {
        Scenario::parse(
            SMALL,
            "x",
            &Overrides {
                seed,
                repeat,
                ..Overrides::default()
            },
        )
        .unwrap()
        .seeds
    };
    assert_eq!(seeded(Some(9), None), [9]);
    assert_eq!(seeded(None, Some(3)), [1, 2, 3]);
    assert_eq!(seeded(Some(9), Some(2)), [9, 10]);
}

#[test]
fn bounds() {
    let bound = |lines: &str| {
        read(&small(&format!(
            "[[expect]]\nmetric = \"goodput_mbps\"\n{lines}"
        )))
        .expectations[0]
            .bound
    };
    assert_eq!(bound("within = [1, 2.5]"), (1.0, 2.5));
    assert_eq!(bound("at_least = 3"), (3.0, f64::INFINITY));
    assert_eq!(bound("at_most = -1"), (f64::NEG_INFINITY, -1.0));
    assert_eq!(bound("at_least = 1\nat_most = 2"), (1.0, 2.0));
    assert_eq!(bound("equals = 10\ntolerance = 1"), (9.0, 11.0));
    assert_eq!(
        bound("equals = 0.3298783\ntolerance = 1e-6"),
        (0.3298773, 0.3298793)
    );
    assert_eq!(bound("equals = -10\ntolerance = \"10%\""), (-11.0, -9.0));
    assert_eq!(
        read(&small("[[expect]]\nmetric = \"drops\"\nat_most = 0")).expectations[0]
            .link
            .as_deref(),
        Some("bottleneck")
    );
}

#[test]
fn warnings() {
    let scenario = read(&small("ecn = true\nsendstall = \"ignore\""));
    let lines: Vec<String> = scenario.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "test.toml:8: `flow.main.ecn = true`: no queue on its way marks packets: `ecn` changes nothing",
            "test.toml:9: `flow.main.sendstall = \"ignore\"`: there is no interface queue that could refuse a segment"
        ]
    );
}

#[test]
fn equal_cases_have_equal_keys() {
    let key = |text: &str| read(text).cases[0].key_text();
    let base = key(SMALL);
    assert_eq!(key(&SMALL.replace("80ms", "0.08s")), base);
    assert_eq!(key(&SMALL.replace("\"x\"", "\"y\"")), base);
    assert_eq!(key(&small("preset = \"2026\"")), base);
    for other in [
        "ack_every = 1",
        "start = \"1ms\"",
        "name = \"other\"",
        "drop = { segment = 1 }",
        "window = \"1BDP\"",
    ] {
        assert_ne!(key(&small(other)), base, "{other}");
    }
    assert_ne!(
        key(&small("[measure]\nrecovered_at = { rate = 0.9 }")),
        base
    );
}

/// `UPDATE_DOCS=1` writes the page anew.
#[test]
fn the_reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
    let page = Scenario::reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(
        kept == page,
        "docs/scenario.md differs from the key tables: run this test with UPDATE_DOCS=1"
    );
}

#[test]
fn the_example_of_the_reference_page_is_valid() {
    let page = Scenario::reference();
    let example = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    assert_eq!(read(example).cases.len(), 4);
}

#[test]
fn named_cases_set_several_keys() {
    let scenario = parse(CASES, &[]);
    let names: Vec<&str> = scenario
        .cases
        .iter()
        .map(|case| case.params[0].1.as_str())
        .collect();
    assert_eq!(names, ["short", "short", "long", "long"]);
    let spec = scenario.cases[3].run_spec(1);
    assert_eq!(spec.links[0].delay, Span::from_millis(85));
    assert_eq!(
        (spec.flows[0].sender.max_window, spec.flows[0].drops.every),
        (5524.0, Some(100))
    );
    assert_eq!(
        (spec.flows[0].stack.to_string().as_str(), spec.duration),
        ("highspeed", Span::from_secs(60))
    );
    assert_eq!(scenario.cases[0].run_spec(1).duration, Span::from_secs(10));
    assert_eq!(scenario.expectations[0].cases, [2, 3]);
    assert_eq!(
        scenario.expectations[0].where_,
        [("case".to_owned(), "long".to_owned())]
    );

    // What the command line sets holds in every case, also in those that set it themselves.
    let scenario = parse(
        CASES,
        &[("path.rtt", "20ms"), ("flow.main.drop.every", "7")],
    );
    let delays: Vec<Span> = scenario
        .cases
        .iter()
        .map(|case| case.run_spec(1).links[0].delay)
        .collect();
    assert_eq!(delays, [Span::from_millis(10); 4]);
    assert_eq!(scenario.cases[0].run_spec(1).flows[0].drops.every, Some(7));

    let scenario = parse(CASES, &[("case", "short")]);
    assert_eq!((scenario.cases.len(), scenario.expectations.len()), (2, 0));
}

const CASES: &str = r#"
name = "x"
duration = "60s"
[path]
rate = "1Gbit/s"
rtt = "80ms"
[[flow]]
stack = "reno"
[[matrix.case]]
name = "short"
duration = "10s"
path.rtt = "10ms"
[[matrix.case]]
name = "long"
path.rtt = "170ms"
flow.main.window = "8MB"
flow.main.drop = { every = 100 }
[matrix]
"flow.main.stack" = ["reno", "highspeed"]
[[expect]]
metric = "goodput_mbps"
where = { case = "long" }
at_least = 100
"#;

#[test]
fn built_in_scenarios_are_valid() {
    use fullpipe_suite::scenario::{Loaded, builtin, load};
    for (name, text) in builtin::BUILT_IN {
        assert_eq!(builtin::find(name), Some(*text));
        let quick = Overrides {
            quick: true,
            ..Overrides::default()
        };
        for overrides in [Overrides::default(), quick] {
            let scenario = match load(name, &overrides).unwrap_or_else(|e| panic!("{e}")) {
                Loaded::Scenario(scenario) => scenario,
                Loaded::Study(study) => {
                    assert_eq!(
                        (study.name.as_str(), study.about.is_empty()),
                        (*name, false)
                    );
                    assert!(study.scenarios.len() > 1);
                    continue;
                }
            };
            assert_eq!(scenario.name, *name);
            assert_eq!(scenario.warnings, [], "{name}");
            assert_eq!(scenario.origin, format!("built-in:{name}"));
            assert!(
                !scenario.expectations.is_empty() && !scenario.about.is_empty(),
                "{name}"
            );
            assert!(
                scenario.expectations.iter().all(|e| !e.source.is_empty()),
                "{name}: a bound without a source"
            );
        }
    }
    assert_eq!(builtin::find("early-los"), None);
}

/// The JSON Schema, as an editor would apply it.
fn schema() -> jsonschema::Validator {
    jsonschema::validator_for(Scenario::json_schema().as_value()).unwrap()
}

fn as_json(text: &str) -> serde_json::Value {
    serde_json::to_value(toml::from_str::<toml::Value>(text).unwrap()).unwrap()
}

#[test]
fn the_schema_accepts_what_is_valid() {
    let schema = schema();
    let built_in = fullpipe_suite::scenario::builtin::BUILT_IN
        .iter()
        .map(|(_, text)| *text);
    for text in built_in.chain([CONTRACT, SMALL, CASES, SWITCHES]) {
        let problems: Vec<String> = schema
            .iter_errors(&as_json(text))
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(
            problems.is_empty(),
            "{}: {problems:#?}",
            text.lines().nth(1).unwrap()
        );
    }
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    let schema = schema();
    for (good, bad) in [
        ("\"60s\"", "60"),
        ("\"60s\"", "\"60\""),
        ("100Mbit/s", "100Mbps"),
        ("name = \"x\"", "nmae = \"x\""),
        ("rtt = \"80ms\"", "rtt = \"80ms\"\nmtu = 9"),
        ("rtt = \"80ms\"", "rtt = \"80ms\"\nloss = 2"),
        ("rtt = \"80ms\"", "rtt = \"80ms\"\nqueue = \"codell\""),
        ("stack = \"reno\"", "stack = 1"),
        ("stack = \"reno\"", "stack = \"reno\"\npreset = \"1999\""),
        (
            "stack = \"reno\"",
            "stack = \"reno\"\ndrop = { segmnet = 1 }",
        ),
        (
            "stack = \"reno\"",
            "stack = \"reno\"\n[[expect]]\nmetric = \"speed\"",
        ),
    ] {
        assert!(SMALL.contains(good));
        let text = SMALL.replace(good, bad);
        assert!(!schema.is_valid(&as_json(&text)), "{bad}");
    }
}

const RATIOS: &str = r#"
name = "ratios"
duration = "2s"
[path]
rate = "10Mbit/s"
rtt = "20ms"
[[flow]]
stack = "reno"
[matrix]
"flow.main.stack" = ["reno", "cubic", "scalable"]
"flow.main.window" = ["4 segments", "8 segments"]
"#;

#[test]
fn an_expectation_may_name_several_values_of_a_key() {
    let text = format!(
        "{RATIOS}[[expect]]\nmetric = \"goodput_mbps\"\nat_least = 1\n\
         where = {{ \"flow.main.stack\" = [\"cubic\", \"reno\"], \"flow.main.window\" = \"4 segments\" }}\n"
    );
    let scenario = read(&text);
    assert_eq!(scenario.expectations[0].cases, [0, 2]);
    assert_eq!(
        scenario.expectations[0].name,
        "goodput_mbps: flow.main.stack = reno, cubic, flow.main.window = 4 segments"
    );
}

/// A window of 8 segments instead of 4 doubles the rate of a flow that the window limits, whatever the law.
#[test]
fn an_expectation_may_be_a_ratio_of_two_cases() {
    let text = format!(
        "{RATIOS}[[expect]]\nmetric = \"goodput_mbps\"\nwithin = [1.98, 2.02]\n\
         where = {{ \"flow.main.window\" = \"8 segments\" }}\nratio_to = {{ \"flow.main.window\" = \"4 segments\" }}\n"
    );
    let scenario = read(&text);
    assert_eq!(scenario.expectations[0].pairs, [(1, 0), (3, 2), (5, 4)]);
    let options = fullpipe_suite::run::Options {
        jobs: 1,
        out: None,
        resume: false,
        captures: fullpipe_suite::export::Captures::default(),
        progress: &fullpipe_suite::run::Silent,
        interrupt: &std::sync::atomic::AtomicBool::new(false),
    };
    let ran = fullpipe_suite::run::run_all(&scenario, &options).unwrap();
    let found = &ran.result.expectations;
    assert_eq!(found.len(), 3);
    for e in found {
        assert!(e.pass && (e.observed.unwrap() - 2.0).abs() < 0.02, "{e:?}");
        assert_eq!(e.bound, [1.98, 2.02]);
    }
}
