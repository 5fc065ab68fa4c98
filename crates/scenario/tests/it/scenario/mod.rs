//! Valid scenario files resolve to what they say.

mod expect;
mod flow;
mod matrix;
mod published;
mod world;

use fullpipe_cc::Count;
use fullpipe_flow::Detector;
use fullpipe_run::{Buffer, Drops, Loss, Trace};
use fullpipe_scenario::{Overrides, RecoveredAt, Scenario};
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
source = "Net100 2003: 284 s"

[[report]]                     # which figures, which axes
figure = "cwnd"
"#;

#[test]
fn the_contract_example_resolves() {
    let scenario = read(CONTRACT);
    assert_eq!(scenario.name, "early-loss");
    assert_eq!(scenario.seeds, [1]);
    assert_eq!(scenario.warnings, []);
    let params: Vec<Vec<String>> = scenario
        .cases
        .iter()
        .map(|case| case.params().into_iter().map(|(_, value)| value).collect())
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
    assert_eq!(flow.sender.window.max, 3500.0);
    assert_eq!(flow.sender.window.initial, 2.0);
    assert_eq!(flow.sender.window.count, Count::Acks);
    assert_eq!(flow.sender.recovery.detector, Detector::Sack);
    assert_eq!(flow.receiver.acks.every, 1);
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
    assert_eq!(expectation.source, "Net100 2003: 284 s");
    assert_eq!(expectation.line, 31);
    assert_eq!(
        expectation.name,
        "recovery_time_s: flow.main.stack = reno, path.mtu = 1500"
    );
    assert_eq!(expectation.where_, scenario.cases[0].params());
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
    assert_eq!(case.params(), []);
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

#[test]
fn warnings() {
    let scenario = read(&small("ecn = true\nsendstall = \"ignore\""));
    let lines: Vec<String> = scenario.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "test.toml:8: `flow.main.ecn = true`: this changes nothing: it needs a queue on its way that marks packets, as `queue = { kind = \"codel\", ecn = true }`",
            "test.toml:9: `flow.main.sendstall = \"ignore\"`: the host has no interface that could be full: `txqueuelen = 1000` gives it one as fast as the path, `nic_rate` one of another rate"
        ]
    );
}

/// The queue that is there is the one that is to mark.
#[test]
fn ecn_is_told_which_queue_would_mark() {
    let text = small("ecn = true").replace("[path]", "[path]\nqueue = \"pie\"");
    let warnings = read(&text).warnings;
    let remedy = "as `queue = { kind = \"pie\", ecn = true }`";
    assert!(warnings[0].message.ends_with(remedy), "{warnings:?}");
}

/// One warning for a path of several rates, and none once the remedy is taken.
#[test]
fn a_host_without_interface_is_told_how_to_get_one() {
    let of = |lines: &str| {
        let matrix = "\n[matrix]\n\"path.rate\" = [\"10Mbit/s\", \"1Gbit/s\"]\n";
        read(&format!("{}{matrix}", small(lines))).warnings
    };
    for key in ["sendstall = \"ignore\"", "tsq = true"] {
        let warnings = of(key);
        assert_eq!(warnings.len(), 1, "{key}: {warnings:?}");
        assert!(warnings[0].message.contains("`txqueuelen = 1000`"));
        for remedy in ["txqueuelen = 1000", "nic_rate = \"1Gbit/s\""] {
            let warnings = of(&format!("{key}\n{remedy}"));
            assert!(warnings.is_empty(), "{key}, {remedy}: {warnings:?}");
        }
    }
    assert!(of("").is_empty(), "who asks for nothing is told nothing");
}
