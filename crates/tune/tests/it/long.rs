//! What takes a minute: `make verify-tuner` runs it.

use std::time::Duration;

use fullpipe_emulate::namespace::{Side, addresses};
use fullpipe_policy::{Compiled, Policy, Source};
use libbpf_rs::query::ProgInfoIter;

use crate::flows::gets_on;
use crate::support::{Ground, Road, run};

/// One path to road 0 with these lines.
fn by_text(lines: &str) -> Compiled {
    let name = if lines.contains("name") {
        ""
    } else {
        "name = \"path\""
    };
    let to = addresses(Side::Far, 0).0;
    let source = Source {
        name: "policy.toml".into(),
        text: format!("[[path]]\n{name}\nto = \"{to}\"\n{lines}\n"),
    };
    Policy::parse(&[source]).expect("a policy").compiled
}

/// Runs and nanoseconds of the programs of this name.
fn spent(name: &str) -> (u64, u64) {
    let mine = ProgInfoIter::default().filter(|p| p.name.as_encoded_bytes() == name.as_bytes());
    mine.fold((0, 0), |(runs, ns), p| {
        (runs + p.run_cnt, ns + p.run_time_ns)
    })
}

/// Has the kernel account for its programs as long as it lives.
#[allow(unsafe_code)]
fn accounting() -> std::os::fd::OwnedFd {
    use std::os::fd::FromRawFd;
    // SAFETY: a plain number goes in; what comes out is a new descriptor of nobody else.
    let fd = unsafe { libbpf_rs::libbpf_sys::bpf_enable_stats(0) };
    assert!(fd >= 0, "bpf_enable_stats: {fd}");
    // SAFETY: see above.
    unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) }
}

/// The table of docs/tuner.md.
#[test]
#[ignore = "a minute: make verify-tuner"]
fn cost_per_ack_of_each_law() {
    let path = Road {
        mbit: 100,
        rtt_ms: 20,
        buffer: 300,
        lost: vec![],
    };
    let Some(mut ground) = Ground::new(&[path]) else {
        return;
    };
    let Some(mut tuner) = ground.tuner() else {
        return;
    };
    let _stats = accounting();
    tuner.apply(by_text("stack = \"reno\"")).unwrap();
    ground.flow(0);
    gets_on(&mut tuner);
    println!("| law | runs | `cong_avoid`, ns | `pkts_acked`, ns | with a record per ACK, ns |");
    println!("|---|---|---|---|---|");
    for stack in [
        "reno",
        "aimd(increase=4,decrease=0.125)",
        "highspeed",
        "scalable",
        "htcp",
        "bic",
        "cubic",
        "westwood",
        "vegas",
        "fast",
        "hstcp-lp",
    ] {
        tuner
            .apply(by_text(&format!("rtt = \"20ms\"\nstack = \"{stack}\"")))
            .unwrap();
        let mut measured = |watched: u64, name: &str| {
            tuner.watch(watched).unwrap();
            run(&mut tuner, Duration::from_millis(300), |_| false);
            let from = spent(name);
            run(&mut tuner, Duration::from_secs(2), |_| false);
            let to = spent(name);
            let runs = to.0 - from.0;
            assert!(runs > 500, "{stack}: {runs} runs of {name} are no measure");
            (runs, (to.1 - from.1) as f64 / runs as f64)
        };
        let (runs, growth) = measured(0, "fp_cong_avoid");
        let (_, sample) = measured(0, "fp_pkts_acked");
        let (_, traced) = measured(u64::MAX, "fp_cong_avoid");
        println!("| `{stack}` | {runs} | {growth:.0} | {sample:.0} | {traced:.0} |");
    }
    tuner.finish().unwrap();
}

#[test]
#[ignore = "half a minute: make verify-tuner"]
fn a_policy_is_replaced_every_second_under_a_thousand_flows() {
    crate::many::reload(20, Duration::from_secs(1));
}
