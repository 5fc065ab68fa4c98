//! What a flow and its path resolve to.

use super::{CONTRACT, SMALL, read};
use fullpipe_cc::Count;
use fullpipe_flow::{
    AckCompression, ArtificialLoss, Detector, LocalDrop, LossWindow, PacerRule, Reduction, RtoRule,
    RttSample, SpuriousRule, TimerGrain, Validation,
};
use fullpipe_run::{Buffer, Drops, Loss};
use fullpipe_scenario::{Overrides, RecoveredAt, Scenario};
use fullpipe_units::{Rate, Span, Time};

/// Every key of a flow, with other values than the defaults.
pub(super) const SWITCHES: &str = r#"name = "x"
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
tsq = false
tso = "64kB"
tso_autosize = true
pacer = "linux"
rate = "50Mbit/s"
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
undo_by = "linux"
frto_by = "linux"
reordering_by = "linux"
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
        (s.mss, s.header, s.window.max, s.window.initial),
        (1460, 40, 1333.0, 4.0)
    );
    assert_eq!(s.transfer, Some(6850));
    assert_eq!(
        (
            s.recovery.reduction,
            s.recovery.tlp,
            s.recovery.frto,
            s.recovery.undo,
            s.handshake
        ),
        (Reduction::Prr, true, true, true, true)
    );
    assert_eq!(s.rto.min, Span::from_millis(300));
    assert_eq!(
        (
            s.timers.hz,
            s.timers.grain,
            s.rto.rule,
            s.rto.sample,
            s.recovery.loss_window
        ),
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
            s.recovery.undo_by,
            s.recovery.frto_by,
            s.recovery.reordering_by,
            s.recovery.recover_from_loss,
            s.recovery.timeout_reduces_in_recovery,
            s.timers.head_restarts_rto,
            s.host.send_buffer
        ),
        (
            SpuriousRule::Linux,
            SpuriousRule::Linux,
            SpuriousRule::Linux,
            true,
            false,
            true,
            true
        )
    );
    let r = &flow.receiver;
    assert_eq!(
        (r.acks.hz, r.window.first, r.acks.quick, r.acks.compression),
        (Some(100), Some(45), 16, Some(AckCompression::LINUX))
    );
    assert_eq!(
        (r.window.widest, r.window.buffer),
        (None, None),
        "the key limits"
    );
    assert_eq!(
        (s.window.count, s.recovery.detector, s.window.validation),
        (Count::Segments, Detector::NewReno, Validation::Rfc2861)
    );
    assert_eq!(s.pacing.gains, Some(fullpipe_cc::PacingGains::default()));
    assert_eq!(s.host.local_drop, LocalDrop::Ignore);
    // 64 kB of 1460 bytes each, whole ones.
    assert_eq!(
        (s.host.tso_segments, s.host.tso_autosize, s.host.small_queue),
        (43, true, false)
    );
    assert_eq!(
        (s.pacing.max, s.pacing.rule),
        (Some(Rate::from_bits_per_sec(50_000_000)), PacerRule::Linux)
    );
    assert_eq!(s.window.slow_start_limit, Some(8.0));
    assert!(s.recovery.reduce_on_lost_retransmission);
    assert_eq!(s.window.decrease_base, fullpipe_cc::Base::Cwnd);
    assert_eq!(s.timers.max_ack_delay, Span::from_millis(250));
    let r = &flow.receiver;
    assert_eq!(
        (r.acks.every, r.acks.delay, r.sack.enabled, r.sack.blocks),
        (3, Span::from_millis(250), false, 4)
    );
    assert_eq!(r.window.max, Some(5479));
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
    assert_eq!(read(&text).cases[1].flows[0].recovered_from, None);
    let text = text.replace("window = \"1BDP\"", "window = \"1BDP\", from = \"20s\"");
    let from = read(&text).cases[1].flows[0].recovered_from;
    assert_eq!(from, Some(Time::ZERO + Span::from_secs(20)));
}

/// A receiver cannot check stamps that no segment carries, whatever the preset says.
#[test]
fn without_time_stamps_none_is_checked() {
    let paws = |lines: &str| {
        let text = format!("{SMALL}preset = \"linux\"\n{lines}");
        read(&text).cases[0]
            .run_spec(1)
            .flows
            .remove(0)
            .receiver
            .paws
    };
    assert!(paws(""));
    assert!(!paws("timestamps = false\n"));
    assert!(!paws("timestamps = false\npaws = false\n"));
}

/// Linux advertises 64 KiB at first, whatever a segment is: seven of the ten segments of the
/// initial window may leave over jumbo frames. Linux 6.1 (ground `linux`): 274 retransmissions, a
/// window of 942 segments.
#[test]
fn the_first_window_of_the_preset_is_64_kib() {
    let scenario = |lines: &str| {
        let text = "name = \"jumbo\"\nduration = \"30s\"\n[path]\nmtu = 9000\n\
                    rate = \"60Mbit/s\"\nrtt = \"1s\"\nbuffer = \"200 packets\"\n[[flow]]\n\
                    stack = \"reno-linux\"\n";
        read(&format!("{text}{lines}")).cases[0].run_spec(1)
    };
    let first = |lines: &str| scenario(lines).flows[0].receiver.window.first;
    assert_eq!(first("preset = \"linux\"\n"), Some(7));
    assert_eq!(first("preset = \"linux\"\nmtu = 1500\n"), Some(45));
    assert_eq!(first("preset = \"linux\"\nmtu = 576\n"), Some(125));
    let written = "preset = \"linux\"\nfirst_window = \"45 segments\"\n";
    assert_eq!(first(written), Some(45));
    assert_eq!(first("preset = \"2026\"\n"), None);
    let outcome = fullpipe_sim::run(&scenario("preset = \"linux\"\n")).unwrap();
    let flow = &outcome.flows[0];
    assert!(
        flow.totals.retransmits.abs_diff(274) <= 2,
        "{:?}",
        flow.totals
    );
    assert!((flow.cwnd_max - 942.0).abs() <= 2.0, "{}", flow.cwnd_max);
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

/// An old system as the receiver stands for its keys; a key beside it wins, and the sender knows
/// how long an ACK may take.
#[test]
fn a_receiver_stands_for_how_it_acknowledges() {
    let spec = |lines: &str| {
        let scenario =
            read(&SMALL.replace("stack = \"reno\"", &format!("stack = \"reno\"\n{lines}")));
        assert_eq!(scenario.warnings, [], "{lines}");
        let flow = scenario.cases[0].run_spec(1).flows.remove(0);
        (
            format!("{:?}", flow.receiver),
            flow.sender.timers.max_ack_delay,
        )
    };
    for (system, every, quick, delay) in [
        ("linux-2.2", 2, 1, "20ms"),
        ("linux-2.4", 2, 16, "40ms"),
        ("solaris", 2, 0, "100ms"),
    ] {
        for preset in ["2003", "2026", "linux", "linux-6.6"] {
            let preset = format!("preset = \"{preset}\"");
            let keys = format!(
                "ack_every = {every}\nquick_acks = {quick}\nack_delay = \"{delay}\"\nmerge_acks = false"
            );
            let by_name = format!("{preset}\nreceiver = \"{system}\"");
            assert_eq!(
                spec(&by_name),
                spec(&format!("{preset}\n{keys}")),
                "{system}"
            );
            let beside = format!("{by_name}\nquick_acks = 7\nack_every = 4");
            let keys = keys.replace(&format!("quick_acks = {quick}"), "quick_acks = 7");
            let keys = keys.replace("ack_every = 2", "ack_every = 4");
            assert_eq!(
                spec(&beside),
                spec(&format!("{preset}\n{keys}")),
                "{system}"
            );
        }
    }
}

/// What a run cannot come to is said before it runs.
#[test]
fn a_run_without_its_round_trip_or_its_loss_warns() {
    let warnings = |path: &str, flow: &str| -> Vec<String> {
        let text = format!(
            "name = \"x\"\nduration = \"20s\"\n[path]\nrate = \"12Mbit/s\"\n{path}\n\
             [[flow]]\nstack = \"reno\"\n{flow}\n"
        );
        let scenario = Scenario::parse(&text, "x.toml", &Overrides::default()).unwrap();
        let all = scenario.warnings.iter();
        all.map(|warning| warning.to_string()).collect()
    };
    assert_eq!(warnings("rtt = \"80ms\"", ""), [""; 0]);
    let first = "the run is over before the first ACK is back";
    let of_path = warnings("rtt = \"20s\"", "");
    assert!(of_path[0].contains("`path.rtt = \"20s\"`") && of_path[0].contains(first));
    let of_flow = warnings("rtt = \"80ms\"", "rtt = \"20s\"");
    assert!(of_flow[0].contains("`flow.main.rtt = \"20s\"`") && of_flow[0].contains(first));
    let late = warnings("rtt = \"80ms\"", "start = \"19950ms\"");
    assert!(late[0].contains("`flow.main.start = \"19950ms\"`") && late[0].contains(first));
    // The ACK comes after the flow has stopped.
    let stopped = warnings("rtt = \"80ms\"", "rtt = \"2s\"\nstop = \"1s\"");
    assert_eq!(stopped, [""; 0]);
    // 12 Mbit/s for 20 s: 20,000 packets of 1500 bytes, and 80 in the buffer and 1000 in the host.
    let drop = |segment: u64| {
        warnings(
            "rtt = \"80ms\"",
            &format!("drop = {{ segment = {segment} }}"),
        )
    };
    assert_eq!(drop(21_079), [""; 0]);
    assert!(drop(21_080)[0].contains("segment 21080 is never sent"));
}

/// At 1 kbit/s a segment's time is twelve seconds: what waits for its end leaves as soon as the new
/// rate lets it.
#[test]
fn a_rate_that_rises_counts_at_once() {
    for preset in ["2026", "linux"] {
        let s = read(&format!(
            r#"
name = "rises"
duration = "8s"
[path]
rate = "100Mbit/s"
rtt = "20ms"
[[flow]]
stack = "reno"
preset = "{preset}"
rate = "5Mbit/s"
change = [{{ at = "1s", rate = "1kbit/s" }}, {{ at = "3s", rate = "5Mbit/s" }}]
[measure]
interval = "1s"
"#
        ));
        let outcome = fullpipe_sim::run(&s.cases[0].run_spec(1)).unwrap();
        let delivered = &outcome.flows[0].delivered_per_interval;
        // 5 Mbit/s are 431 segments of 1448 bytes.
        assert!(delivered[1..3].iter().all(|n| *n < 50), "{delivered:?}");
        assert!(
            delivered[3..].iter().all(|n| *n > 350),
            "{preset} {delivered:?}"
        );
    }
}
