//! The tuner's laws on ground `kernel`, by fullpipe's spelling.

use std::sync::atomic::AtomicBool;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_grounds::Sim;
use fullpipe_kernel::{Options, RunningKernel};
use fullpipe_run::{
    Buffer, Drops, FlowSpec, Ground, GroundError, LinkSpec, Outcome, RunSpec, Trace,
};
use fullpipe_tune::laws::Programs;
use fullpipe_units::{Rate, Span, Time};

use crate::support;

static NEVER: AtomicBool = AtomicBool::new(false);

/// The ground, with the laws or without; `None` where the machine cannot have it.
fn ground(laws: bool) -> Option<RunningKernel> {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: the tuner's tests need root");
        return None;
    }
    let options = Options {
        check: false,
        laws: if laws { Some(&Programs) } else { None },
        ..Options::default()
    };
    RunningKernel::new(options, &NEVER)
        .inspect_err(|why| eprintln!("skipped: {why}"))
        .ok()
}

/// One flow on 50 Mbit/s, 40 ms, one BDP of buffer (167 packets).
fn spec(stack: &str, secs: u64, lost: &[u64]) -> RunSpec {
    let half = Span::from_millis(20);
    let rate = Rate::from_bits_per_sec(50_000_000);
    let links = vec![
        LinkSpec::new("bottleneck", Some(rate), half, Buffer::Packets(167)),
        LinkSpec::pure_delay("back", half),
    ];
    let mut flow = FlowSpec::new(
        "main",
        StackSpec::parse(stack).unwrap(),
        SenderConfig::preset(Preset::Linux, 1500),
        ReceiverConfig::preset(Preset::Linux),
        vec![0],
        vec![1],
    );
    flow.preset = Some(Preset::Linux);
    flow.drops = Drops {
        segments: lost.to_vec(),
        ..Drops::default()
    };
    RunSpec {
        duration: Span::from_secs(secs),
        links,
        flows: vec![flow],
        trace: Trace::Every(Span::from_millis(20)),
        ..RunSpec::default()
    }
}

#[test]
fn a_law_that_the_kernel_lacks_runs_by_its_name() {
    let _turn = support::turn();
    let Some(with) = ground(true) else { return };
    let Some(without) = ground(false) else { return };
    let lossy = spec("aimd(increase=4,decrease=0.125)", 3, &[120]);
    assert!(matches!(
        without.check(&lossy),
        Err(GroundError::Unable { .. })
    ));
    with.check(&lossy).unwrap();
    assert_eq!(with.brought(&lossy), ["aimd(increase=4,decrease=0.125)"]);
    let notes = with.notes();
    assert!(
        notes.iter().any(|n| n.contains("fullpipe's own law")),
        "{notes:?}"
    );
    assert!(with.brought(&spec("cubic", 3, &[])).is_empty());
    assert_ne!(with.fingerprint(), without.fingerprint());
    let outcome = match with.run(&lossy) {
        Err(GroundError::Environment { what, .. }) => {
            eprintln!("skipped: {what}");
            return;
        }
        other => other.unwrap(),
    };
    // An eighth of some 120 segments is lost, and four are gained a round trip: three seconds bring
    // it near the 334 that path and buffer hold. Reno, from a half of them, comes to 125.
    let rows = &outcome.flows[0].series.rows;
    let last = rows.last().expect("samples").cwnd;
    assert!(last > 180.0, "{last} segments");
    // Nothing of it is left: names, groups.
    let names = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let names = std::fs::read_to_string(names).unwrap();
    let mine = fullpipe_tune::bpf::prefix_of_process('r');
    assert!(!names.contains(&mine), "{names}");
    let group = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    assert!(!group.contains("fullpipe-run-"), "{group}");
    // What cannot be had says what to write instead; a module of the kernel's own stays that.
    let refusal = with.check(&spec("reno+hystart", 3, &[])).unwrap_err();
    assert!(
        refusal.to_string().contains("no slow start `hystart`"),
        "{refusal}"
    );
    for own in ["cubic", "cubic-linux", "reno"] {
        without.check(&spec(own, 3, &[])).unwrap();
        with.check(&spec(own, 3, &[])).unwrap();
    }
}

/// Full traces have a row for every ACK, of the kernel's own module too: a packet in two is
/// acknowledged, 2,000 a second, of which samples would show 500.
#[test]
fn a_full_trace_has_a_row_for_every_ack() {
    let _turn = support::turn();
    let Some(with) = ground(true) else { return };
    let mut spec = spec("cubic-linux", 2, &[300]);
    spec.trace = Trace::Full;
    let outcome = match with.run(&spec) {
        Err(GroundError::Environment { what, .. }) => {
            eprintln!("skipped: {what}");
            return;
        }
        other => other.unwrap(),
    };
    let notes = with.notes();
    if notes.iter().any(|note| note.contains("samples, not ACKs")) {
        eprintln!("skipped: {notes:?}");
        return;
    }
    let flow = &outcome.flows[0];
    let (rows, acks) = (&flow.series.rows, flow.totals.acks);
    let part = rows.len() as f64 / acks as f64;
    assert!(
        (0.95..=1.01).contains(&part),
        "{} rows of {acks} ACKs",
        rows.len()
    );
    assert!(rows.is_sorted_by_key(|row| row.time));
    assert!(rows.is_sorted_by_key(|row| row.delivered));
    assert!(flow.totals.loss_events >= 1, "{:?}", flow.episodes);
    let of_data = rows.iter().filter(|row| row.delivered >= 20);
    let least = of_data.map(|row| row.rtt).min();
    assert!(least >= Some(Span::from_millis(40)), "{least:?}");
    // Beside them all fields of the samples, 500 a second on an idle machine: rows of ACKs have
    // some of them.
    let (at, last) = flow.looks.iter().last().unwrap();
    assert!(flow.looks.len() >= 5, "{} looks", flow.looks.len());
    assert!(at > Time::ZERO + Span::from_millis(1500), "{at:?}");
    let buffer = flow
        .looks
        .fields()
        .iter()
        .position(|f| f.name == "rcv_space");
    assert!(last[buffer.unwrap()] > Some(0), "{last:?}");
}

/// Westwood+ without a start-up that overshoots: after that it would keep 3 % of the window, and
/// the tuner's limits keep a half.
const STACKS: [&str; 16] = [
    "reno+limited(max_ssthresh=50)",
    "reno+gamma(threshold=10)",
    "aimd(increase=6,decrease=0.3)",
    "aimd(increase=4,decrease=0.125)",
    "highspeed",
    // As the daemons of 2002 did: a and b every 0.1 s.
    "highspeed(retune=100ms)",
    "multcp(n=4)",
    "pretuned(window=333)",
    "scalable",
    "htcp",
    "bic",
    "cubic(c=0.4)",
    "westwood+limited(max_ssthresh=50)",
    "vegas",
    "fast",
    "hstcp-lp",
];

/// The table of docs/tuner.md: the same case on the kernel, by the tuner's law, in the simulator,
/// and by the kernel's own module.
#[test]
#[ignore = "three minutes: make verify-tuner"]
fn each_law_beside_the_simulator_and_the_kernel_s_module() {
    let _turn = support::turn();
    let Some(with) = ground(true) else { return };
    println!(
        "| stack | goodput, Mbit/s: tuner | simulator | module | mean window, segments: tuner | simulator | module | reductions: tuner | simulator | module |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for stack in STACKS {
        let mut case = spec(stack, 12, &[]);
        case.measure_from = Time::ZERO + Span::from_secs(2);
        let mine = with.run(&case).unwrap();
        let sim = Sim.run(&case).unwrap();
        let name = stack.split(['(', '+']).next().unwrap();
        let mut own = case.clone();
        own.flows[0].stack = StackSpec::parse(&format!("{name}-linux"))
            .unwrap_or_else(|_| StackSpec::parse("reno").unwrap());
        // Only where the whole stack is the module's.
        let is_module = [
            "cubic",
            "bic",
            "htcp",
            "westwood",
            "vegas",
            "highspeed",
            "scalable",
        ];
        let own = match is_module.contains(&name) {
            true => with.run(&own).ok(),
            false => None,
        };
        let goodput = |o: &Outcome| {
            let f = &o.flows[0];
            f.totals.delivered_measured as f64 * f64::from(f.mss) * 8.0 / 10e6
        };
        let row = |of: &dyn Fn(&Outcome) -> String| {
            let own = own.as_ref().map_or("-".to_owned(), of);
            format!("{} | {} | {own}", of(&mine), of(&sim))
        };
        let first = row(&|o| format!("{:.2}", goodput(o)));
        let second = row(&|o| format!("{:.1}", o.flows[0].cwnd_mean));
        let third = row(&|o| o.flows[0].totals.loss_events_measured.to_string());
        println!("| `{stack}` | {first} | {second} | {third} |");
        let ratio = goodput(&mine) / goodput(&sim);
        assert!(
            (0.9..1.1).contains(&ratio),
            "{stack}: {ratio} of the simulator's goodput"
        );
    }
}
